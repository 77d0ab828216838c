/* What a replication does in each state. See replication.h. */
#ifndef ASI_SERVER_REPLICATION_STEPS_H
#define ASI_SERVER_REPLICATION_STEPS_H

#include "server/replication.h"

/* One step; returns its work count. In CLOSING it does nothing. */
int asi_replication_step(asi_replication *replication);

#endif

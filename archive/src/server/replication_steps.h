/* Steps of a replication, by state. See replication.h. */
#ifndef ASI_SERVER_REPLICATION_STEPS_H
#define ASI_SERVER_REPLICATION_STEPS_H

#include "server/replication.h"

/* Executes one step and returns its work count. Does nothing in CLOSING. */
int asi_replication_step(asi_replication *replication);

#endif

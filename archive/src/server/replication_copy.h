/* Steps of the copy itself, plain or merged with the live stream. See replication.h. */
#ifndef ASI_SERVER_REPLICATION_COPY_H
#define ASI_SERVER_REPLICATION_COPY_H

#include "server/replication.h"

int asi_replication_step_replicate(asi_replication *replication);
int asi_replication_step_catchup(asi_replication *replication);
int asi_replication_step_live_join(asi_replication *replication);
/* Callback of the destination's recording subscription: one of its recordings has ended, and STOP is not signalled yet. */
void asi_replications_on_recording_end(as_archive *archive, int64_t subscription_id, int64_t stop_position);

#endif

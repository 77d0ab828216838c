/* Counters as records, for clients and inspectors. Any thread. */
#ifndef ASI_CLIENT_COUNTER_ROWS_H
#define ASI_CLIENT_COUNTER_ROWS_H

#include "client/state.h"

as_result asi_counter_row_read(const asi_counters *counters, int32_t counter_id, as_counter_row *row) AS_MUST_USE;
/* Value of a channel status counter, as the public calls give it. */
int64_t asi_channel_status(const as_client *client, int32_t counter_id);

#endif

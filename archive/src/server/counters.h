/* Allocates the archive's counters, with keys and labels exactly as stock. Spec: 08 §3.
 *
 * The conductor allocates them through the archive's Aeron client. Each counter is written by the agent it belongs to. */
#ifndef ASI_SERVER_COUNTERS_H
#define ASI_SERVER_COUNTERS_H

#include "aeron_spark/as_client.h"
#include "base/clock.h"
#include "server/config.h"

enum
{
    ASI_ARCHIVE_COUNTER_RECORDING_POSITION = 100,
    ASI_ARCHIVE_COUNTER_ERRORS = 101,
    ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS = 102,
    ASI_ARCHIVE_COUNTER_MAX_CYCLE_TIME = 103,
    ASI_ARCHIVE_COUNTER_CYCLE_EXCEEDED = 104,
    ASI_ARCHIVE_COUNTER_MAX_WRITE_TIME = 105,
    ASI_ARCHIVE_COUNTER_WRITE_BYTES = 106,
    ASI_ARCHIVE_COUNTER_WRITE_TIME = 107,
    ASI_ARCHIVE_COUNTER_MAX_READ_TIME = 108,
    ASI_ARCHIVE_COUNTER_READ_BYTES = 109,
    ASI_ARCHIVE_COUNTER_READ_TIME = 110,
    ASI_ARCHIVE_COUNTER_RECORDING_SESSIONS = 111,
    ASI_ARCHIVE_COUNTER_REPLAY_SESSIONS = 112,
    ASI_ARCHIVE_COUNTER_CONTROL_SESSION = 113
};

typedef struct asi_archive_counters
{
    as_counter *errors;
    as_counter *control_sessions;
    as_counter *max_write_ns;
    as_counter *write_bytes;
    as_counter *write_ns;
    as_counter *max_read_ns;
    as_counter *read_bytes;
    as_counter *read_ns;
    as_counter *recording_sessions;
    as_counter *replay_sessions;
} asi_archive_counters;

/* Longest time between two cycles of an agent, and the number of cycles above the threshold. One agent's thread. */
typedef struct asi_cycle_counters
{
    as_counter *max_ns;
    as_counter *exceeded;
    int64_t threshold_ns;
    int64_t last_ns;     /* 0: no cycle yet */
} asi_cycle_counters;

/* Opens the first counter. AS_E_USAGE: counters of a live archive with that id exist. */
as_result asi_counters_open_errors(as_client *client, const as_inspector *inspector, const asi_clock *clock, int64_t archive_id,
    as_counter **errors) AS_MUST_USE;
/* Opens the other counters, except the agents' own, which stock allocates in between. */
as_result asi_counters_open(as_client *client, int64_t archive_id, asi_archive_counters *counters) AS_MUST_USE;
/* Frees the counters at the driver at once. Closing only the client would leave them until the driver checks for dead clients,
 * and a restart with the same id would have to wait. Also closes partly opened counters. */
void asi_counters_close(asi_archive_counters *counters);
as_result asi_cycle_counters_open(as_client *client, int64_t archive_id, const char *agent, asi_archive_threading threading,
    int64_t threshold_ns, asi_cycle_counters *cycle) AS_MUST_USE;
void asi_cycle_counters_close(asi_cycle_counters *cycle);
/* Call at the start of each cycle. */
void asi_cycle_counters_update(asi_cycle_counters *cycle, int64_t now_ns);

typedef struct asi_recording_counter
{
    int64_t recording_id;
    int64_t archive_id;
    int32_t session_id;
    int32_t stream_id;
    const char *source_identity;
    const char *stripped_channel;
} asi_recording_counter;

as_result asi_counters_add_recording(
    as_client *client, const asi_recording_counter *recording, as_counter **counter) AS_MUST_USE;

typedef struct asi_session_counter
{
    int64_t archive_id;
    int64_t control_session_id;
    const char *client_info;
    const char *source_identity;
    int32_t session_id;
} asi_session_counter;

as_result asi_counters_async_add_session(
    as_client *client, const asi_session_counter *session, int64_t *correlation_id) AS_MUST_USE;

#endif

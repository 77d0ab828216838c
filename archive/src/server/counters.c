/* See counters.h. */
#include "server/counters.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/result.h"
#include "shm/counters.h"

#define ID_KEY_LENGTH 8
#define LAST_RUN_TIMEOUT_NS 3000000000LL /* a driver checks for dead clients once a second */

/* Makes a label from `text` and the suffix of all labels of an archive. Truncates the text so that both fit. Spec: 08 §3. */
static void make_label(char *label, int64_t archive_id, const char *text)
{
    char suffix[48];
    const int suffix_length = snprintf(suffix, sizeof(suffix), " - archiveId=%lld", (long long)archive_id);
    snprintf(label, ASI_COUNTER_LABEL_CAPACITY + 1, "%.*s%s", ASI_COUNTER_LABEL_CAPACITY - suffix_length, text, suffix);
}

static as_result add(as_client *client, int32_t type_id, int64_t archive_id, const char *label, as_counter **counter)
{
    uint8_t key[ID_KEY_LENGTH];
    asi_put_i64(key, archive_id);
    const as_result result = as_client_add_counter(client, type_id, key, sizeof(key), label, counter);
    return AS_OK == result ? AS_OK : asi_fail_in(result, "counter '%s'", label);
}

static bool has_archive(const as_inspector *inspector, int64_t archive_id)
{
    const int32_t max_id = as_inspector_max_counter_id(inspector);
    for (int32_t id = 0; id <= max_id; id++)
    {
        as_counter_row row;
        if (AS_OK == as_inspector_counter(inspector, id, &row) && ASI_ARCHIVE_COUNTER_ERRORS == row.type_id &&
            archive_id == asi_get_i64(row.key))
        {
            return true;
        }
    }
    return false;
}

/* Fails if another archive has this id. The driver frees a killed archive's counters only after a while, so a restart retries
 * until a deadline. */
static as_result check_unique(
    as_client *client, const as_inspector *inspector, const asi_clock *clock, int64_t archive_id)
{
    const int64_t deadline_ns = asi_clock_ns(clock) + LAST_RUN_TIMEOUT_NS;
    while (has_archive(inspector, archive_id))
    {
        if (asi_clock_ns(clock) > deadline_ns)
        {
            return asi_fail(AS_E_USAGE, 0, "found existing archive for archiveId=%lld on this media driver; stop it, wait until "
                "the driver has dropped a dead one, or set another aeron.archive.id", (long long)archive_id);
        }
        as_client_invoke(client);
        sched_yield();
    }
    return AS_OK;
}

as_result asi_counters_open_errors(as_client *client, const as_inspector *inspector, const asi_clock *clock, int64_t archive_id,
    as_counter **errors)
{
    const as_result result = check_unique(client, inspector, clock, archive_id);
    if (AS_OK != result)
    {
        return result;
    }
    char label[ASI_COUNTER_LABEL_CAPACITY + 1];
    snprintf(label, sizeof(label), "Archive Errors - archiveId=%lld version=%s commit=%s", (long long)archive_id,
        as_version_text(), as_commit_text());
    return add(client, ASI_ARCHIVE_COUNTER_ERRORS, archive_id, label, errors);
}

as_result asi_counters_open(as_client *client, int64_t archive_id, asi_archive_counters *counters)
{
    const struct
    {
        as_counter **counter;
        int32_t type_id;
        const char *text;
    } rows[] = {
        { &counters->control_sessions, ASI_ARCHIVE_COUNTER_CONTROL_SESSIONS, "Archive Control Sessions" },
        { &counters->recording_sessions, ASI_ARCHIVE_COUNTER_RECORDING_SESSIONS, "Archive Recording Sessions" },
        { &counters->replay_sessions, ASI_ARCHIVE_COUNTER_REPLAY_SESSIONS, "Archive Replay Sessions" },
        { &counters->max_write_ns, ASI_ARCHIVE_COUNTER_MAX_WRITE_TIME, "archive-recorder max write time in ns" },
        { &counters->write_bytes, ASI_ARCHIVE_COUNTER_WRITE_BYTES, "archive-recorder total write bytes" },
        { &counters->write_ns, ASI_ARCHIVE_COUNTER_WRITE_TIME, "archive-recorder total write time in ns" },
        { &counters->max_read_ns, ASI_ARCHIVE_COUNTER_MAX_READ_TIME, "archive-replayer max read time in ns" },
        { &counters->read_bytes, ASI_ARCHIVE_COUNTER_READ_BYTES, "archive-replayer total read bytes" },
        { &counters->read_ns, ASI_ARCHIVE_COUNTER_READ_TIME, "archive-replayer total read time in ns" },
    };
    as_result result = AS_OK;
    for (size_t i = 0; AS_OK == result && i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        char label[ASI_COUNTER_LABEL_CAPACITY + 1];
        make_label(label, archive_id, rows[i].text);
        result = add(client, rows[i].type_id, archive_id, label, rows[i].counter);
    }
    return result;
}

void asi_counters_close(asi_archive_counters *counters)
{
    as_counter *const all[] = { counters->errors, counters->control_sessions, counters->max_write_ns, counters->write_bytes,
        counters->write_ns, counters->max_read_ns, counters->read_bytes, counters->read_ns, counters->recording_sessions,
        counters->replay_sessions };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
    {
        as_counter_close(all[i]);
    }
    *counters = (asi_archive_counters){ .errors = NULL };
}

as_result asi_cycle_counters_open(as_client *client, int64_t archive_id, const char *agent, asi_archive_threading threading,
    int64_t threshold_ns, asi_cycle_counters *cycle)
{
    static const char *const MODES[] = { "DEDICATED", "SHARED", "INVOKER" };
    char text[128];
    char threshold[32];
    char label[ASI_COUNTER_LABEL_CAPACITY + 1];
    *cycle = (asi_cycle_counters){ .threshold_ns = threshold_ns };
    snprintf(text, sizeof(text), "%s max cycle time in ns: %s", agent, MODES[threading]);
    make_label(label, archive_id, text);
    const as_result result = add(client, ASI_ARCHIVE_COUNTER_MAX_CYCLE_TIME, archive_id, label, &cycle->max_ns);
    if (AS_OK != result)
    {
        return result;
    }
    asi_format_duration(threshold, sizeof(threshold), threshold_ns);
    snprintf(text, sizeof(text), "%s work cycle time exceeded count: threshold=%s %s", agent, threshold, MODES[threading]);
    make_label(label, archive_id, text);
    return add(client, ASI_ARCHIVE_COUNTER_CYCLE_EXCEEDED, archive_id, label, &cycle->exceeded);
}

void asi_cycle_counters_close(asi_cycle_counters *cycle)
{
    as_counter_close(cycle->max_ns);
    as_counter_close(cycle->exceeded);
    *cycle = (asi_cycle_counters){ .max_ns = NULL };
}

void asi_cycle_counters_update(asi_cycle_counters *cycle, int64_t now_ns)
{
    const int64_t elapsed_ns = 0 == cycle->last_ns ? 0 : now_ns - cycle->last_ns;
    cycle->last_ns = now_ns;
    if (elapsed_ns > as_counter_get(cycle->max_ns))
    {
        as_counter_set(cycle->max_ns, elapsed_ns);
    }
    if (elapsed_ns > cycle->threshold_ns)
    {
        as_counter_add(cycle->exceeded, 1);
    }
}

/* Key: 0 i64 recordingId, 8 i32 sessionId, 12 i32 length L, 16 source identity, 16 + L i64 archiveId. Spec: 08 §3. */
as_result asi_counters_add_recording(as_client *client, const asi_recording_counter *recording, as_counter **counter)
{
    uint8_t key[ASI_COUNTER_KEY_CAPACITY];
    const size_t identity_capacity = sizeof(key) - 16 - ID_KEY_LENGTH;
    const size_t full_length = strlen(recording->source_identity);
    const size_t identity_length = full_length < identity_capacity ? full_length : identity_capacity;
    asi_put_i64(key, recording->recording_id);
    asi_put_i32(key + 8, recording->session_id);
    asi_put_i32(key + 12, (int32_t)identity_length);
    memcpy(key + 16, recording->source_identity, identity_length);
    asi_put_i64(key + 16 + identity_length, recording->archive_id);
    char text[ASI_COUNTER_LABEL_CAPACITY + 1];
    char label[ASI_COUNTER_LABEL_CAPACITY + 1];
    snprintf(text, sizeof(text), "rec-pos: %lld %d %d %s", (long long)recording->recording_id, recording->session_id,
        recording->stream_id, recording->stripped_channel);
    make_label(label, recording->archive_id, text);
    return as_client_add_counter(client, ASI_ARCHIVE_COUNTER_RECORDING_POSITION, key,
        (int64_t)(16 + identity_length + ID_KEY_LENGTH), label, counter);
}

as_result asi_counters_async_add_session(as_client *client, const asi_session_counter *session, int64_t *correlation_id)
{
    uint8_t key[2 * ID_KEY_LENGTH];
    asi_put_i64(key, session->archive_id);
    asi_put_i64(key + ID_KEY_LENGTH, session->control_session_id);
    char text[ASI_COUNTER_LABEL_CAPACITY + 1];
    char label[ASI_COUNTER_LABEL_CAPACITY + 1];
    snprintf(text, sizeof(text), "control-session: %s%ssourceIdentity=%s sessionId=%d", session->client_info,
        '\0' == session->client_info[0] ? "" : " ", session->source_identity, session->session_id);
    make_label(label, session->archive_id, text);
    return as_client_async_add_counter(
        client, ASI_ARCHIVE_COUNTER_CONTROL_SESSION, key, sizeof(key), label, correlation_id);
}

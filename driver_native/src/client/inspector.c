/* Read-only view of a driver's directory, and the request to terminate a driver. Spec: 01 §1.7, §5, §8. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "client/counter_rows.h"
#include "shm/cnc.h"
#include "shm/counters.h"
#include "shm/error_log.h"
#include "shm/loss_report.h"
#include "shm/ring_mpsc.h"
#include "wire/command.h"

#define ACTIVE_TIMEOUT_MS 10000
#define TOKEN_MAX_LENGTH 4096

struct as_inspector
{
    char aeron_dir[AS_PATH_MAX];
    asi_cnc cnc; /* owned */
    asi_counters counters;
};

/* Copies the directory's path to `dir`. A read-only opening accepts a directory of any user. */
static as_result open_cnc(asi_cnc *cnc, char *dir, const char *aeron_dir, bool writable)
{
    asi_trust trust;
    const as_result parsed = asi_trust_parse(&trust, NULL, NULL);
    if (AS_OK != parsed)
    {
        return parsed;
    }
    if (NULL == aeron_dir || '\0' == aeron_dir[0])
    {
        asi_default_aeron_dir(dir, AS_PATH_MAX);
        aeron_dir = dir;
    }
    else if (snprintf(dir, AS_PATH_MAX, "%s", aeron_dir) >= AS_PATH_MAX)
    {
        return asi_fail(AS_E_USAGE, ENAMETOOLONG, "the path of the Aeron directory has more than %d bytes", AS_PATH_MAX - 1);
    }
    const as_result result =
        writable ? asi_cnc_open_own_untrusted(cnc, aeron_dir, &trust) : asi_cnc_open_read_only_untrusted(cnc, aeron_dir);
    /* Does not wait: a file that a starting driver has not created yet counts as missing. */
    return AS_OK == result ? AS_OK :
        asi_fail_in(AS_AGAIN == result ? AS_E_STORAGE : result, "no driver's files in %s", aeron_dir);
}

as_result as_inspector_open(const char *aeron_dir, as_inspector **inspector)
{
    as_inspector *fresh = calloc(1, sizeof(*fresh));
    if (NULL == fresh)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for an inspector");
    }
    as_result result = open_cnc(&fresh->cnc, fresh->aeron_dir, aeron_dir, false);
    if (AS_OK == result)
    {
        result = asi_counters_init(&fresh->counters, fresh->cnc.counters_metadata, fresh->cnc.lengths.counters_metadata,
            fresh->cnc.counters_values, fresh->cnc.lengths.counters_values);
    }
    if (AS_OK != result)
    {
        as_inspector_close(fresh);
        return result;
    }
    *inspector = fresh;
    return AS_OK;
}

void as_inspector_close(as_inspector *inspector)
{
    if (NULL != inspector)
    {
        asi_cnc_close(&inspector->cnc);
        free(inspector);
    }
}

void as_inspector_driver_info(const as_inspector *inspector, as_driver_info *info)
{
    const asi_clock clock = asi_clock_system();
    const int64_t heartbeat_ms = asi_cnc_driver_heartbeat(&inspector->cnc);
    *info = (as_driver_info){
        .pid = inspector->cnc.pid,
        .start_timestamp_ms = inspector->cnc.start_timestamp_ms,
        .heartbeat_ms = heartbeat_ms,
        .client_liveness_timeout_ns = inspector->cnc.client_liveness_timeout_ns,
        .cnc_version = inspector->cnc.version,
        .is_active = heartbeat_ms > 0 && asi_clock_ms(&clock) - heartbeat_ms <= ACTIVE_TIMEOUT_MS,
    };
}

int32_t as_inspector_max_counter_id(const as_inspector *inspector)
{
    return inspector->counters.max_count - 1;
}

as_result as_inspector_counter(const as_inspector *inspector, int32_t counter_id, as_counter_row *row)
{
    return asi_counter_row_read(&inspector->counters, counter_id, row);
}

int64_t as_inspector_counters(const as_inspector *inspector, int32_t *next_id, as_counter_row *rows, int64_t capacity)
{
    const asi_counters *counters = &inspector->counters;
    int64_t count = 0;
    int32_t id = *next_id;
    /* Spec: 01 §5.3 - ids are given out in order, so nothing follows an unused one. */
    while (count < capacity && ASI_COUNTER_UNUSED != asi_counter_state(counters, id))
    {
        count += AS_OK == asi_counter_row_read(counters, id++, &rows[count]) ? 1 : 0;
    }
    *next_id = id;
    return count;
}

as_result as_inspector_counter_value(
    const as_inspector *inspector, int32_t counter_id, int64_t registration_id, int64_t *value)
{
    const asi_counters *counters = &inspector->counters;
    const int32_t state = asi_counter_state(counters, counter_id);
    if (ASI_COUNTER_UNUSED == state)
    {
        return AS_AGAIN;
    }
    const asi_counter_value *at = &counters->values[counter_id];
    const int64_t read = asi_load_acquire_i64(&at->value);
    /* A new owner clears the registration id before it sets the value. While the old id is present, the value is the old
       owner's. */
    if (registration_id != asi_load_acquire_i64(&at->registration_id))
    {
        return AS_AGAIN;
    }
    *value = read;
    return ASI_COUNTER_ALLOCATED == state ? AS_OK : AS_E_CLOSED;
}

typedef struct error_call
{
    as_on_error_entry on_entry;
    void *context;
} error_call;

static void pass_on(const asi_error_entry *entry, void *context)
{
    const error_call *call = context;
    call->on_entry(call->context, entry->count, entry->first_ms, entry->last_ms, entry->text, entry->text_length);
}

int64_t as_inspector_errors(const as_inspector *inspector, int64_t since_ms, as_on_error_entry on_entry, void *context)
{
    error_call call = { .on_entry = on_entry, .context = context };
    return asi_error_log_read_untrusted(
        inspector->cnc.error_log, inspector->cnc.lengths.error_log, since_ms, pass_on, &call);
}

typedef struct loss_call
{
    as_on_loss_row on_row;
    void *context;
} loss_call;

static void pass_on_loss(const asi_loss_entry *entry, void *context)
{
    const loss_call *call = context;
    const as_loss_row row = {
        .observation_count = entry->observation_count,
        .total_bytes_lost = entry->total_bytes_lost,
        .first_observation_ms = entry->first_observation_ms,
        .last_observation_ms = entry->last_observation_ms,
        .session_id = entry->session_id,
        .stream_id = entry->stream_id,
        .channel_length = entry->channel_length,
        .source_length = entry->source_length,
        .channel = entry->channel,
        .source = entry->source
    };
    call->on_row(call->context, &row);
}

as_result as_inspector_losses(const as_inspector *inspector, as_on_loss_row on_row, void *context)
{
    char path[AS_PATH_MAX + sizeof("/" ASI_LOSS_REPORT_FILE)];
    snprintf(path, sizeof(path), "%s/" ASI_LOSS_REPORT_FILE, inspector->aeron_dir);
    asi_map map = { 0 };
    const as_result result = asi_map_open(&map, path, 1, false);
    if (AS_OK == result)
    {
        loss_call call = { .on_row = on_row, .context = context };
        asi_loss_report_read_untrusted(map.base, map.length, pass_on_loss, &call);
        asi_map_close(&map);
    }
    return AS_AGAIN == result ? AS_OK : result;
}

as_result as_check_aeron_dir(const char *aeron_dir, const char *dir_owner, const char *dir_writers)
{
    asi_trust trust;
    asi_map map = { 0 };
    as_result result = asi_trust_parse(&trust, dir_owner, dir_writers);
    result = AS_OK == result ? asi_map_open_in(&map, aeron_dir, ASI_CNC_FILE, &trust, 0, false) : result;
    asi_map_close(&map);
    /* A directory that cannot be read is no reason for distrust; opening it reports the error. */
    return AS_E_USAGE == result ? result : AS_OK;
}

as_result as_request_driver_termination(const char *aeron_dir, const uint8_t *token, int64_t token_length)
{
    if (token_length < 0 || token_length > TOKEN_MAX_LENGTH || (NULL == token && token_length > 0))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "token has %lld bytes, 0 to %d are possible", (long long)token_length,
            TOKEN_MAX_LENGTH);
    }
    asi_cnc cnc = { 0 };
    asi_ring_mpsc ring;
    char dir[AS_PATH_MAX];
    as_result result = open_cnc(&cnc, dir, aeron_dir, true);
    if (AS_OK != result)
    {
        return result;
    }
    result = asi_ring_mpsc_init(&ring, cnc.to_driver, cnc.lengths.to_driver);
    if (AS_OK == result)
    {
        struct
        {
            asi_cmd_terminate fixed;
            uint8_t token[TOKEN_MAX_LENGTH];
        } message;
        AS_STATIC_ASSERT(offsetof(__typeof__(message), token) == sizeof(asi_cmd_terminate), "the token follows the fixed part");
        message.fixed = (asi_cmd_terminate){ .token_length = (int32_t)token_length };
        message.fixed.correlated.client_id = asi_ring_mpsc_next_correlation_id(&ring);
        message.fixed.correlated.correlation_id = asi_ring_mpsc_next_correlation_id(&ring);
        if (token_length > 0)
        {
            memcpy(message.token, token, (size_t)token_length);
        }
        result = asi_ring_mpsc_write(&ring, ASI_CMD_TERMINATE_DRIVER, &message, (int64_t)sizeof(message.fixed) + token_length);
    }
    asi_cnc_close(&cnc);
    return AS_AGAIN == result ? asi_fail(AS_E_TIMEOUT, 0, "the driver's command ring is full, it is stuck or gone") : result;
}

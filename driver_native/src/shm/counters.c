/* Counters: views, allocation and freeing, labels and keys, lookups; see counters.h.
 *
 * Every process maps the records read-write, so lengths found in them are clipped before use. */
#include "shm/counters.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/idle.h"
#include "wire/command.h"

#define STREAM_KEY_CHANNEL_LENGTH_OFFSET 16
#define STREAM_KEY_CHANNEL_OFFSET 20

as_result asi_counters_init(
    asi_counters *counters, void *metadata, int64_t metadata_length, void *values, int64_t values_length)
{
    const int64_t max_count = values_length / (int64_t)sizeof(asi_counter_value);
    if (max_count < 1 || max_count > INT32_MAX || metadata_length / (int64_t)sizeof(asi_counter_metadata) < max_count)
    {
        return asi_fail(AS_E_DATA, 0, "counters of %" PRId64 " bytes values and %" PRId64 " bytes metadata: 4 times as many "
            "metadata as values are needed", values_length, metadata_length);
    }
    *counters = (asi_counters){ .metadata = metadata, .values = values, .max_count = (int32_t)max_count };
    return AS_OK;
}

as_result asi_counters_manager_init(asi_counters_manager *manager, const asi_counters *counters, int64_t reuse_timeout_ms)
{
    int32_t *free_ids = calloc((size_t)counters->max_count, sizeof(*free_ids));
    if (NULL == free_ids)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for %" PRId32 " counter ids", counters->max_count);
    }
    *manager = (asi_counters_manager){
        .counters = *counters,
        .reuse_timeout_ms = reuse_timeout_ms,
        .high_water_id = -1,
        .free_ids = free_ids,
    };
    return AS_OK;
}

void asi_counters_manager_close(asi_counters_manager *manager)
{
    free(manager->free_ids);
    *manager = (asi_counters_manager){ 0 };
}

/* Returns the oldest freed id if its reuse deadline has passed, else a new id; -1 if every id is taken. Ids are freed in the
 * order of their deadlines, so only the oldest is checked. */
static int32_t take_id(asi_counters_manager *manager, int64_t now_ms)
{
    const int32_t max_count = manager->counters.max_count;
    if (manager->free_count > 0)
    {
        const int32_t oldest = manager->free_ids[manager->free_head];
        if (now_ms >= manager->counters.metadata[oldest].free_for_reuse_deadline_ms)
        {
            manager->free_head = (manager->free_head + 1) % max_count;
            manager->free_count--;
            return oldest;
        }
    }
    return manager->high_water_id < max_count - 1 ? ++manager->high_water_id : -1;
}

static int64_t clip(int64_t length, int64_t capacity) { return length < 0 ? 0 : length < capacity ? length : capacity; }

/* `from` may be NULL if `length` is 0. */
static void copy_bytes(uint8_t *to, const void *from, int64_t length)
{
    if (length > 0)
    {
        memcpy(to, from, (size_t)length);
    }
}

int32_t asi_counters_left(const asi_counters_manager *manager)
{
    return manager->counters.max_count - 1 - manager->high_water_id + manager->free_count;
}

as_result asi_counters_allocate(
    asi_counters_manager *manager, const asi_counter_request *request, int64_t now_ms, int32_t *counter_id)
{
    const int32_t id = take_id(manager, now_ms);
    if (id < 0)
    {
        return asi_fail(AS_E_STORAGE, ENOMEM, "all %" PRId32 " counters are in use, raise the counters buffer length",
            manager->counters.max_count);
    }
    asi_counter_value *value = &manager->counters.values[id];
    /* Registration id first: a holder of the old counter detects that it is gone before anything else changes. */
    asi_store_release_i64(&value->registration_id, 0);
    value->owner_id = 0;
    value->reference_id = 0;
    asi_store_release_i64(&value->value, request->initial_value);

    asi_counter_metadata *metadata = &manager->counters.metadata[id];
    const int64_t key_length = clip(request->key_length, ASI_COUNTER_KEY_CAPACITY);
    const int64_t label_length = clip(request->label_length, ASI_COUNTER_LABEL_CAPACITY);
    metadata->type_id = request->type_id;
    metadata->free_for_reuse_deadline_ms = INT64_MAX;
    copy_bytes(metadata->key, request->key, key_length);
    memset(metadata->key + key_length, 0, (size_t)(ASI_COUNTER_KEY_CAPACITY - key_length));
    copy_bytes(metadata->label, request->label, label_length);
    asi_store_release_i32(&metadata->label_length, (int32_t)label_length);
    asi_store_release_i32(&metadata->state, ASI_COUNTER_ALLOCATED);

    asi_store_release_i64(&value->registration_id, request->registration_id);
    value->owner_id = request->owner_id;
    value->reference_id = request->reference_id;
    *counter_id = id;
    return AS_OK;
}

void asi_counters_free(asi_counters_manager *manager, int32_t counter_id, int64_t now_ms)
{
    const int32_t max_count = manager->counters.max_count;
    if (ASI_COUNTER_ALLOCATED != asi_counter_state(&manager->counters, counter_id) || manager->free_count >= max_count)
    {
        return;
    }
    asi_counter_metadata *metadata = &manager->counters.metadata[counter_id];
    asi_store_release_i32(&metadata->state, ASI_COUNTER_RECLAIMED);
    memset(metadata->key, 0, sizeof(metadata->key));
    metadata->free_for_reuse_deadline_ms = now_ms + manager->reuse_timeout_ms;
    manager->free_ids[(manager->free_head + (int64_t)manager->free_count) % max_count] = counter_id;
    manager->free_count++;
}

int32_t asi_counter_state(const asi_counters *counters, int32_t counter_id)
{
    return counter_id >= 0 && counter_id < counters->max_count ?
        asi_load_acquire_i32(&counters->metadata[counter_id].state) : ASI_COUNTER_UNUSED;
}

void asi_counter_label(const asi_counters *counters, int32_t counter_id, char *to)
{
    const asi_counter_metadata *metadata = &counters->metadata[counter_id];
    const int64_t length = clip(asi_load_acquire_i32(&metadata->label_length), ASI_COUNTER_LABEL_CAPACITY);
    memcpy(to, metadata->label, (size_t)length);
    to[length] = '\0';
}

void asi_counter_append_label(asi_counters *counters, int32_t counter_id, const char *suffix)
{
    asi_counter_metadata *metadata = &counters->metadata[counter_id];
    const int64_t length = clip(asi_load_acquire_i32(&metadata->label_length), ASI_COUNTER_LABEL_CAPACITY);
    const int64_t added = clip((int64_t)strlen(suffix), ASI_COUNTER_LABEL_CAPACITY - length);
    memcpy(metadata->label + length, suffix, (size_t)added);
    asi_store_release_i32(&metadata->label_length, (int32_t)(length + added));
}

int32_t asi_counters_find(const asi_counters *counters, int32_t type_id,
    bool (*matches)(const asi_counters *counters, int32_t counter_id, void *context), void *context)
{
    for (int32_t id = 0; id < counters->max_count; id++)
    {
        const int32_t state = asi_load_acquire_i32(&counters->metadata[id].state);
        if (ASI_COUNTER_UNUSED == state)
        {
            break; /* ids are allocated in order: all later ids are unused too */
        }
        if (ASI_COUNTER_ALLOCATED == state && counters->metadata[id].type_id == type_id &&
            (NULL == matches || matches(counters, id, context)))
        {
            return id;
        }
    }
    return -1;
}

static bool has_registration_id(const asi_counters *counters, int32_t counter_id, void *context)
{
    return asi_load_acquire_i64(&counters->values[counter_id].registration_id) == *(const int64_t *)context;
}

int32_t asi_counters_find_by_registration(const asi_counters *counters, int32_t type_id, int64_t registration_id)
{
    return asi_counters_find(counters, type_id, has_registration_id, &registration_id);
}

as_result asi_counters_allocate_stream(
    asi_counters_manager *manager, const asi_stream_counter *stream, int64_t now_ms, int32_t *counter_id)
{
    uint8_t key[ASI_COUNTER_KEY_CAPACITY] = { 0 };
    const int64_t channel_length =
        clip((int64_t)strlen(stream->channel), ASI_COUNTER_KEY_CAPACITY - STREAM_KEY_CHANNEL_OFFSET);
    asi_put_i64(key, stream->registration_id);
    asi_put_i32(key + 8, stream->session_id);
    asi_put_i32(key + 12, stream->stream_id);
    asi_put_i32(key + STREAM_KEY_CHANNEL_LENGTH_OFFSET, (int32_t)channel_length);
    memcpy(key + STREAM_KEY_CHANNEL_OFFSET, stream->channel, (size_t)channel_length);

    char label[ASI_COUNTER_LABEL_CAPACITY + 1];
    const int label_length = snprintf(label, sizeof(label), "%s: %" PRId64 " %" PRId32 " %" PRId32 " %s%s", stream->name,
        stream->registration_id, stream->session_id, stream->stream_id, stream->channel,
        NULL != stream->suffix ? stream->suffix : "");
    const asi_counter_request request = {
        .type_id = stream->type_id,
        .key = key,
        .key_length = sizeof(key),
        .label = label,
        .label_length = label_length,
        .registration_id = stream->counter_registration_id,
        .owner_id = stream->owner_id,
        .reference_id = stream->reference_id,
        .initial_value = stream->initial_value,
    };
    return asi_counters_allocate(manager, &request, now_ms, counter_id);
}

/* Spec: 01 §6. label_suffix() adds what configuration appends to a label. */
static const char *const SYSTEM_LABELS[ASI_SYSTEM_COUNTER_COUNT] = {
    "Bytes sent",
    "Bytes received",
    "Failed offers to ReceiverProxy",
    "Failed offers to SenderProxy",
    "Failed offers to DriverConductorProxy",
    "NAKs sent",
    "NAKs received",
    "Status Messages sent",
    "Status Messages received",
    "Heartbeats sent",
    "Heartbeats received",
    "Retransmits sent",
    "Flow control under runs",
    "Flow control over runs",
    "Invalid packets",
    /* NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one label of two texts */
    "Errors: version=" ASI_AERON_VERSION_TEXT " commit=",
    "Short sends",
    "Failed attempts to free log buffers",
    "Sender flow control limits, i.e. back-pressure events",
    "Unblocked Publications",
    "Unblocked Control Commands",
    "Possible TTL Asymmetry",
    "ControllableIdleStrategy status",
    "Loss gap fills",
    "Client liveness timeouts",
    "Resolution changes: driverName=",
    "Conductor max cycle time doing its work in ns: ",
    "Conductor work cycle exceeded threshold count: ",
    "Sender max cycle time doing its work in ns: ",
    "Sender work cycle exceeded threshold count: ",
    "Receiver max cycle time doing its work in ns: ",
    "Receiver work cycle exceeded threshold count: ",
    "NameResolver max time in ns",
    "NameResolver exceeded threshold count: ",
    /* NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one label of two texts */
    "Aeron software: version=" ASI_AERON_VERSION_TEXT " commit=",
    "Bytes currently mapped",
    "Retransmitted bytes",
    "Retransmit Pool Overflow count",
    "Error Frames received",
    "Error Frames sent",
    "Publications Revoked",
    "Publication Images Revoked",
    "Images rejected",
    "Control protocol version",
    "Status Messages rejected",
    "Failed offers to NativeResourceAgentProxy",
};

/* "threshold=<duration>", with the agent's threading mode if it is an agent's counter. */
static void threshold_suffix(char *to, size_t capacity, int64_t threshold_ns, const char *mode)
{
    char duration[32];
    asi_format_duration(duration, sizeof(duration), threshold_ns);
    snprintf(to, capacity, "threshold=%s%s%s", duration, NULL != mode ? " " : "", NULL != mode ? mode : "");
}

static void label_suffix(char *to, size_t capacity, int32_t id, const asi_system_labels *labels)
{
    to[0] = '\0';
    switch (id)
    {
        case ASI_SYSTEM_ERRORS:
        case ASI_SYSTEM_AERON_VERSION:
            snprintf(to, capacity, "%s", as_commit_text());
            break;
        case ASI_SYSTEM_RESOLUTION_CHANGES:
            snprintf(to, capacity, "%s", labels->driver_name);
            break;
        case ASI_SYSTEM_CONDUCTOR_MAX_CYCLE_TIME:
        case ASI_SYSTEM_SENDER_MAX_CYCLE_TIME:
        case ASI_SYSTEM_RECEIVER_MAX_CYCLE_TIME:
            snprintf(to, capacity, "%s", labels->mode);
            break;
        case ASI_SYSTEM_CONDUCTOR_CYCLE_EXCEEDED:
            threshold_suffix(to, capacity, labels->conductor_threshold_ns, labels->mode);
            break;
        case ASI_SYSTEM_SENDER_CYCLE_EXCEEDED:
            threshold_suffix(to, capacity, labels->sender_threshold_ns, labels->mode);
            break;
        case ASI_SYSTEM_RECEIVER_CYCLE_EXCEEDED:
            threshold_suffix(to, capacity, labels->receiver_threshold_ns, labels->mode);
            break;
        case ASI_SYSTEM_RESOLVER_EXCEEDED:
            threshold_suffix(to, capacity, labels->resolver_threshold_ns, NULL);
            break;
        default:
            break;
    }
}

static int64_t initial_system_value(int32_t id)
{
    return ASI_SYSTEM_AERON_VERSION == id ? ASI_AERON_VERSION :
        ASI_SYSTEM_CONTROL_PROTOCOL_VERSION == id ? ASI_CONTROL_PROTOCOL_VERSION : 0;
}

as_result asi_counters_allocate_system(asi_counters_manager *manager, const asi_system_labels *labels, int64_t now_ms)
{
    for (int32_t id = 0; id < ASI_SYSTEM_COUNTER_COUNT; id++)
    {
        char label[ASI_COUNTER_LABEL_CAPACITY + 1];
        char suffix[ASI_COUNTER_LABEL_CAPACITY / 2];
        label_suffix(suffix, sizeof(suffix), id, labels);
        const asi_counter_request request = {
            .type_id = ASI_COUNTER_TYPE_SYSTEM,
            .key = &id,
            .key_length = sizeof(id),
            .label = label,
            .label_length = snprintf(label, sizeof(label), "%s%s", SYSTEM_LABELS[id], suffix),
            .registration_id = id,
            .owner_id = AS_NULL_VALUE,
            .initial_value = initial_system_value(id),
        };
        int32_t counter_id;
        const as_result result = asi_counters_allocate(manager, &request, now_ms, &counter_id);
        if (AS_OK != result)
        {
            return result;
        }
        if (counter_id != id)
        {
            return asi_fail(AS_E_USAGE, EINVAL, "system counter %" PRId32 " got id %" PRId32 ": the counters are not fresh", id,
                counter_id);
        }
    }
    return AS_OK;
}

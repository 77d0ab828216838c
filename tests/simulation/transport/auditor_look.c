/* Checks shared memory and connections: counters, dead clients, and what remains at the end. See auditor.h. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "auditor.h"
#include "sim_trace.h"
#include "wire/frame_check.h"

#define NAME_CAPACITY (AS_PATH_MAX + 32)

/* Copies and resends of acknowledged data arrive no later than this. */
#define MOST_TURNED_AWAY_NS 200000000LL

static const int64_t NS_PER_MS = 1000000;

void auditor_set_calm(auditor *a, bool is_calm)
{
    if (is_calm != a->is_calm)
    {
        a->is_calm = is_calm;
        a->calm_since_ns = *a->now_ns;
    }
}

/* -- the wire ----------------------------------------------------------------------------------------------------------- */

static int32_t driver_of(const auditor *a, const sim_host *host)
{
    for (int32_t i = a->driver_count - 1; i >= 0; i--)
    {
        if (a->drivers[i].host == host)
        {
            return i;
        }
    }
    return -1;
}

/* Else forgeries would fill the table. */
static bool is_stream(const auditor *a, int32_t stream_id)
{
    for (int32_t i = 0; i < a->stream_count; i++)
    {
        if (a->streams[i].stream_id == stream_id)
        {
            return true;
        }
    }
    return false;
}

static void hear(auditor *a, int32_t driver, const asi_frame_header *frame, bool is_heartbeat, bool is_hostile)
{
    auditor_heard *heard = NULL;
    if (sim_is_hostile_session(frame->session_id))
    {
        return;
    }
    for (int32_t i = 0; i < a->heard_count && NULL == heard; i++)
    {
        auditor_heard *at = &a->heard[i];
        heard = at->driver == driver && at->session_id == frame->session_id && at->stream_id == frame->stream_id ? at : NULL;
    }
    if (NULL == heard && is_stream(a, frame->stream_id) && a->heard_count < (int32_t)(sizeof(a->heard) / sizeof(a->heard[0])))
    {
        heard = &a->heard[a->heard_count++];
        *heard = (auditor_heard){ .driver = driver, .session_id = frame->session_id, .stream_id = frame->stream_id };
    }
    if (NULL != heard)
    {
        /* Some of what came was turned away, so that the image may have been given up after less than the whole timeout. */
        const bool is_long = *a->now_ns - heard->last_honest_ns > a->times.image_liveness_ns - MOST_TURNED_AWAY_NS;
        heard->last_silence_ns = is_long ? *a->now_ns : heard->last_silence_ns;
        heard->last_ns = *a->now_ns;
        heard->last_honest_ns = is_hostile ? heard->last_honest_ns : *a->now_ns;
        heard->last_heartbeat_ns = is_heartbeat && !is_hostile ? *a->now_ns : heard->last_heartbeat_ns;
    }
}

static void hear_receiver(auditor *a, int32_t driver, const uint8_t *bytes, bool is_end)
{
    const int32_t session_id = asi_get_i32(bytes + 8);
    const int32_t stream_id = asi_get_i32(bytes + 12);
    for (int32_t i = 0; i < a->stream_count; i++)
    {
        auditor_stream *stream = &a->streams[i];
        if (stream->driver == driver && stream->session_id == session_id && stream->stream_id == stream_id)
        {
            if (is_end)
            {
                stream->last_end_status_ns = *a->now_ns;
            }
            else
            {
                stream->last_status_ns = *a->now_ns;
            }
        }
    }
}

void auditor_on_datagram(void *context, const sim_host *host, const uint8_t *bytes, int32_t length, bool is_hostile)
{
    auditor *a = context;
    const int32_t driver = driver_of(a, host);
    if (driver < 0 || length < (int32_t)sizeof(asi_frame_prefix) || 0 != bytes[4])
    {
        return;
    }
    const uint16_t type = asi_get_u16(bytes + 6);
    if ((ASI_FRAME_DATA == type || ASI_FRAME_PAD == type) && length >= AS_FRAME_HEADER_LENGTH)
    {
        hear(a, driver, (const asi_frame_header *)(const void *)bytes, asi_is_heartbeat(bytes, length), is_hostile);
    }
    else if (ASI_FRAME_STATUS == type && length >= ASI_STATUS_LENGTH && 0 == (bytes[5] & ASI_STATUS_FLAG_SEND_SETUP))
    {
        hear_receiver(a, driver, bytes, 0 != (bytes[5] & ASI_STATUS_FLAG_EOS));
    }
    else if (ASI_FRAME_ERROR == type && length >= (int32_t)sizeof(asi_error_frame))
    {
        hear_receiver(a, driver, bytes, true);
    }
}

/* -- counters ----------------------------------------------------------------------------------------------------------- */

static auditor_stream *stream_of_key(auditor *a, const asi_counter_metadata *metadata)
{
    const int32_t session_id = asi_get_i32(metadata->key + 8);
    const int32_t stream_id = asi_get_i32(metadata->key + 12);
    for (int32_t i = a->stream_count - 1; i >= 0; i--)
    {
        if (a->streams[i].session_id == session_id && a->streams[i].stream_id == stream_id)
        {
            return &a->streams[i];
        }
    }
    return NULL;
}

static bool is_monotonous(const auditor *a, int32_t type_id)
{
    return ASI_COUNTER_TYPE_PUBLISHER_POSITION == type_id || ASI_COUNTER_TYPE_SENDER_POSITION == type_id ||
        ASI_COUNTER_TYPE_RECEIVER_HWM == type_id || ASI_COUNTER_TYPE_RECEIVER_POSITION == type_id ||
        (ASI_COUNTER_TYPE_SUBSCRIBER_POSITION == type_id && !a->has_untethered);
}

static void note_value(auditor *a, int32_t driver, const asi_counter_metadata *metadata, int64_t value)
{
    auditor_stream *stream = stream_of_key(a, metadata);
    if (NULL == stream)
    {
        return;
    }
    switch (metadata->type_id)
    {
        case ASI_COUNTER_TYPE_RECEIVER_POSITION:
        case ASI_COUNTER_TYPE_SUBSCRIBER_POSITION:
            stream->max_received = value > stream->max_received ? value : stream->max_received;
            break;
        case ASI_COUNTER_TYPE_SENDER_LIMIT:
            stream->max_limit = stream->driver == driver && value > stream->max_limit ? value : stream->max_limit;
            break;
        case ASI_COUNTER_TYPE_SENDER_POSITION:
            stream->sender_position = stream->driver == driver ? value : stream->sender_position;
            break;
        case ASI_COUNTER_TYPE_PUBLISHER_LIMIT:
            stream->publisher_limit = stream->driver == driver ? value : stream->publisher_limit;
            break;
        default: break;
    }
}

static bool has_gone_back(const auditor *a, const auditor_counter_memory *before, const auditor_counter_memory *now)
{
    return before->registration_id == now->registration_id && before->type_id == now->type_id &&
        before->session_id == now->session_id && now->value < before->value && is_monotonous(a, now->type_id);
}

static void look_at_counters(auditor *a, int32_t index)
{
    auditor_driver *driver = &a->drivers[index];
    const asi_counters *counters = &driver->counters;
    /* Otherwise an unchanged value is noted already. */
    const bool is_all_new = driver->noted_streams != a->stream_count;
    driver->noted_streams = a->stream_count;
    for (int32_t id = 0; id < counters->max_count; id++)
    {
        const asi_counter_metadata *metadata = &counters->metadata[id];
        const int32_t state = asi_load_acquire_i32(&metadata->state);
        if (ASI_COUNTER_UNUSED == state)
        {
            break;
        }
        if (ASI_COUNTER_ALLOCATED != state || ASI_COUNTER_TYPE_SYSTEM == metadata->type_id)
        {
            continue;
        }
        auditor_counter_memory *memory = &driver->memory[id];
        const auditor_counter_memory now = { .registration_id = counters->values[id].registration_id,
            .type_id = metadata->type_id, .value = counters->values[id].value, .session_id = asi_get_i32(metadata->key + 8) };
        if (!is_all_new && memory->value == now.value && memory->registration_id == now.registration_id &&
            memory->type_id == now.type_id && memory->session_id == now.session_id)
        {
            continue;
        }
        if (has_gone_back(a, memory, &now))
        {
            char label[ASI_COUNTER_LABEL_CAPACITY + 1];
            asi_counter_label(counters, id, label);
            sim_fail("back", "driver %d: %s went from %" PRId64 " back to %" PRId64, index, label, memory->value, now.value);
        }
        *memory = now;
        note_value(a, index, metadata, now.value);
    }
}

/* Padding travels as its header alone, so that the sender's position may go beyond its limit by the rest of it. */
static bool is_behind_padding(const auditor_stream *stream, int64_t position)
{
    int64_t i = stream->count - 1;
    while (i > 0 && stream->messages[i].start >= position)
    {
        i--;
    }
    return 0 == position % stream->term_length ||
        (i >= 0 && stream->messages[i].number < 0 && stream->messages[i].end == position);
}

static void check_limits(const auditor *a, const auditor_stream *stream)
{
    const int64_t half = stream->term_length / 2;
    if (AUDITOR_OPEN != stream->end || !a->drivers[stream->driver].is_alive)
    {
        return;
    }
    /* A forged status message may claim what was not received, up to half a term ahead of the sender (Spec: 04 §24 T9). */
    const int64_t claimed = a->bounds.is_on ? stream->sender_position + half : 0;
    const int64_t received = claimed > stream->max_received ? claimed : stream->max_received;
    if (stream->is_network && stream->max_limit > received + half)
    {
        sim_fail("limit", "session %d: the sender's limit %" PRId64 " is more than half a term beyond what any receiver has, %"
            PRId64, stream->session_id, stream->max_limit, received);
    }
    /* An old status message that is replayed takes the limit back within a round, so that no check sees its highest value. */
    const bool is_unseen = a->bounds.is_on && stream->sender_position <= stream->max_received + half;
    if (stream->is_network && !stream->follows_spies && stream->sender_position > stream->max_limit && !is_unseen &&
        !is_behind_padding(stream, stream->sender_position))
    {
        sim_fail("limit", "session %d: the sender is at %" PRId64 ", its limit was never beyond %" PRId64, stream->session_id,
            stream->sender_position, stream->max_limit);
    }
    const int64_t consumed = stream->is_network ? stream->sender_position : stream->max_received;
    if (stream->publisher_limit > consumed + stream->window_length)
    {
        sim_fail("limit", "session %d: the publisher's limit %" PRId64 " is more than its window of %" PRId64 " beyond %" PRId64,
            stream->session_id, stream->publisher_limit, stream->window_length, consumed);
    }
}

/* -- timeouts ----------------------------------------------------------------------------------------------------------- */

void auditor_on_client_dead(auditor *a, int32_t driver, int64_t client_id)
{
    const asi_counters *counters = &a->drivers[driver].counters;
    const int32_t id = asi_counters_find_by_registration(counters, ASI_COUNTER_TYPE_CLIENT_HEARTBEAT, client_id);
    if (id >= 0 && a->corpse_count < (int32_t)(sizeof(a->corpses) / sizeof(a->corpses[0])))
    {
        a->corpses[a->corpse_count++] =
            (auditor_corpse){ .driver = driver, .client_id = client_id, .heartbeat_ms = counters->values[id].value };
    }
}

static void check_corpse(auditor *a, auditor_corpse *corpse)
{
    const auditor_driver *driver = &a->drivers[corpse->driver];
    if (corpse->is_missed || !driver->is_alive)
    {
        return;
    }
    corpse->is_missed =
        asi_counters_find_by_registration(&driver->counters, ASI_COUNTER_TYPE_CLIENT_HEARTBEAT, corpse->client_id) < 0;
    const int64_t silent_ns = *a->now_ns + driver->host->net->epoch_offset_ns - corpse->heartbeat_ms * NS_PER_MS;
    if (corpse->is_missed && silent_ns + NS_PER_MS < a->times.client_liveness_ns)
    {
        sim_fail("client", "driver %d gave client %" PRId64 " up %" PRId64 " ms after its last heartbeat", corpse->driver,
            corpse->client_id, silent_ns / NS_PER_MS);
    }
    if (!corpse->is_missed &&
        silent_ns > a->times.client_liveness_ns + 2 * a->times.timer_interval_ns + a->times.slack_ns + NS_PER_MS)
    {
        sim_fail("client", "driver %d still keeps client %" PRId64 ", %" PRId64 " ms after its last heartbeat", corpse->driver,
            corpse->client_id, silent_ns / NS_PER_MS);
    }
}

/* An image of a stream that is silent must go, once its subscriber has read what there is. */
static void check_image(const auditor *a, const auditor_image *image)
{
    if (!image->is_open || image->is_local || NULL == image->stream || !a->drivers[image->driver].is_alive)
    {
        return;
    }
    const auditor_times *times = &a->times;
    const int64_t heard_ns = auditor_last_heard_ns(a, image, false);
    const int64_t from_ns = heard_ns + times->image_liveness_ns > image->stalled_until_ns ?
        heard_ns + times->image_liveness_ns : image->stalled_until_ns;
    if (*a->now_ns > from_ns + 4 * times->timer_interval_ns + 6 * times->status_message_ns + 2 * times->slack_ns)
    {
        sim_fail("liveness", "session %d, driver %d: the image is still there %" PRId64 " us after the last frame",
            image->stream->session_id, image->driver, (*a->now_ns - heard_ns) / 1000);
    }
}

void auditor_look(auditor *a)
{
    for (int32_t i = 0; i < a->driver_count; i++)
    {
        if (a->drivers[i].is_alive)
        {
            look_at_counters(a, i);
        }
    }
    for (int32_t i = 0; i < a->stream_count; i++)
    {
        check_limits(a, &a->streams[i]);
    }
    for (int32_t i = 0; i < a->image_count; i++)
    {
        check_image(a, &a->images[i]);
    }
    for (int32_t i = 0; i < a->corpse_count; i++)
    {
        check_corpse(a, &a->corpses[i]);
    }
}

void auditor_look_at_publication(auditor *a, auditor_stream *stream, const as_publication *publication, bool is_active)
{
    const bool is_connected = as_publication_is_connected(publication);
    const int64_t last_ns = stream->last_status_ns > 0 ? stream->last_status_ns : stream->seen_since_ns;
    const int64_t silent_ns = *a->now_ns - last_ns;
    const auditor_times *times = &a->times;
    if (!stream->is_plain_unicast || !is_active || AUDITOR_OPEN != stream->end)
    {
        return;
    }
    if (is_connected && silent_ns > times->connection_ns + times->slack_ns)
    {
        sim_fail("connected", "session %d: still connected %" PRId64 " us after the last status message", stream->session_id,
            silent_ns / 1000);
    }
    if (!is_connected && a->is_calm && a->is_wire_clean && stream->last_status_ns > stream->last_end_status_ns &&
        stream->last_status_ns > a->calm_since_ns + times->connection_ns && silent_ns > times->slack_ns &&
        silent_ns < times->connection_ns - times->slack_ns)
    {
        sim_fail("connected", "session %d: not connected, though a status message came %" PRId64 " us ago", stream->session_id,
            silent_ns / 1000);
    }
}

/* -- leftovers -------------------------------------------------------------------------------------------------------------- */

static bool is_folder_empty(const char *dir, const char *name, char *what, size_t capacity)
{
    char path[NAME_CAPACITY];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    DIR *folder = opendir(path);
    if (NULL == folder)
    {
        return true;
    }
    bool is_empty = true;
    for (const struct dirent *entry = readdir(folder); NULL != entry && is_empty; entry = readdir(folder))
    {
        if ('.' != entry->d_name[0])
        {
            is_empty = false;
            snprintf(what, capacity, "file %s/%.64s", name, entry->d_name);
        }
    }
    closedir(folder);
    return is_empty;
}

static bool is_drivers_own(int32_t type_id)
{
    return ASI_COUNTER_TYPE_SYSTEM == type_id || ASI_COUNTER_TYPE_RESOLVER_NEIGHBORS == type_id ||
        ASI_COUNTER_TYPE_RESOLVER_CACHE == type_id || ASI_COUNTER_TYPE_BOOTSTRAP_NEIGHBOR == type_id;
}

bool auditor_is_empty(const auditor *a, int32_t index, char *what, size_t capacity)
{
    const auditor_driver *driver = &a->drivers[index];
    for (int32_t id = 0; id < driver->counters.max_count; id++)
    {
        const int32_t state = asi_counter_state(&driver->counters, id);
        if (ASI_COUNTER_UNUSED == state)
        {
            break;
        }
        if (ASI_COUNTER_ALLOCATED == state && !is_drivers_own(driver->counters.metadata[id].type_id))
        {
            char label[ASI_COUNTER_LABEL_CAPACITY + 1];
            asi_counter_label(&driver->counters, id, label);
            snprintf(what, capacity, "counter %d of type %d: %s", id, driver->counters.metadata[id].type_id, label);
            return false;
        }
    }
    if (!is_folder_empty(driver->dir, "publications", what, capacity) ||
        !is_folder_empty(driver->dir, "images", what, capacity))
    {
        return false;
    }
    const int32_t sockets = sim_net_open_sockets(driver->host->net, driver->host);
    snprintf(what, capacity, "%d sockets", sockets);
    return (a->bounds.is_on && a->bounds.limits.gossip_interval_ns > 0 ? 1 : 0) == sockets;
}

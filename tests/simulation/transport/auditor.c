/* Streams, images and their bytes; auditor_look.c has the counters. See auditor.h. */
#include "auditor.h"

#include <stdlib.h>
#include <string.h>

#include "sim_trace.h"
#include "wire/frame.h"

#define NOISE_LENGTH (64 * 1024)

void auditor_close(auditor *a)
{
    for (int32_t i = 0; i < a->driver_count; i++)
    {
        asi_cnc_close(&a->drivers[i].cnc);
        free(a->drivers[i].memory);
    }
    for (int32_t i = 0; i < a->stream_count; i++)
    {
        free(a->streams[i].messages);
    }
}

/* Bytes of messages are stretches of one table of noise, from a place told by their number: a byte too far or of another message
 * shows, and filling and comparing cost little. */
static uint8_t noise[2 * NOISE_LENGTH];

static void make_noise(void)
{
    asi_rand rand;
    asi_rand_seed(&rand, NOISE_LENGTH);
    for (int64_t i = 0; i < NOISE_LENGTH; i++)
    {
        noise[i] = noise[i + NOISE_LENGTH] = (uint8_t)asi_rand_u64(&rand);
    }
}

static const uint8_t *bytes_of(int64_t number, int64_t offset)
{
    const uint64_t place = (uint64_t)number * 0x9e3779b97f4a7c15ULL >> 20;
    return noise + (place + (uint64_t)offset) % NOISE_LENGTH;
}

void auditor_fill(uint8_t *to, int64_t number, int64_t offset, int64_t length)
{
    memcpy(to, bytes_of(number, offset), (size_t)length);
}

void auditor_open(auditor *a, const int64_t *now_ns, const auditor_times *times)
{
    memset(a, 0, sizeof(*a));
    a->now_ns = now_ns;
    a->times = *times;
    make_noise();
}

/* -- drivers and streams ------------------------------------------------------------------------------------------------ */

int32_t auditor_on_driver(auditor *a, const sim_host *host, const char *dir)
{
    auditor_driver *driver = &a->drivers[a->driver_count];
    driver->host = host;
    driver->is_alive = true;
    strcpy(driver->dir, dir);
    driver->memory = calloc(AUDITOR_COUNTERS, sizeof(*driver->memory));
    if (NULL == driver->memory || AS_OK != asi_cnc_open_untrusted(&driver->cnc, dir) ||
        AS_OK != asi_counters_init(&driver->counters, driver->cnc.counters_metadata, driver->cnc.lengths.counters_metadata,
            driver->cnc.counters_values, driver->cnc.lengths.counters_values))
    {
        sim_fail("setup", "cannot look into %s: %s", dir, as_error_text());
    }
    return a->driver_count++;
}

void auditor_on_driver_gone(auditor *a, int32_t driver) { a->drivers[driver].is_alive = false; }

auditor_stream *auditor_on_publication(auditor *a, int32_t driver, as_publication *publication)
{
    as_publication_constants constants;
    as_publication_get_constants(publication, &constants);
    for (int32_t i = 0; i < a->stream_count; i++)
    {
        auditor_stream *known = &a->streams[i];
        if (known->driver == driver && known->registration_id == constants.original_registration_id)
        {
            known->end = AUDITOR_OPEN; /* shared: taken up again before the driver let it go */
            return known;
        }
    }
    if (AUDITOR_MAX_STREAMS == a->stream_count)
    {
        sim_fail("setup", "more than %d streams", AUDITOR_MAX_STREAMS);
    }
    auditor_stream *stream = &a->streams[a->stream_count++];
    const int64_t position = as_publication_position(publication);
    *stream = (auditor_stream){
        .session_id = constants.session_id,
        .stream_id = constants.stream_id,
        .initial_term_id = constants.initial_term_id,
        .term_length = constants.term_length,
        .mtu_length = constants.mtu_length,
        .registration_id = constants.original_registration_id,
        .driver = driver,
        .seen_since_ns = *a->now_ns,
        .window_length = constants.term_length / 2,
        .first_position = position,
        .position = position,
        .max_received = position,
        .max_limit = position,
        .sender_position = position,
        .publisher_limit = position
    };
    return stream;
}

static int64_t framed_length(const auditor_stream *stream, int64_t length)
{
    const int64_t max_payload = stream->mtu_length - AS_FRAME_HEADER_LENGTH;
    const int64_t whole = length / max_payload;
    const int64_t rest = length % max_payload;
    return whole * stream->mtu_length +
        (rest > 0 || 0 == length ? asi_align_i64(rest + AS_FRAME_HEADER_LENGTH, AS_FRAME_ALIGNMENT) : 0);
}

void auditor_on_offer(auditor *a, auditor_stream *stream, const auditor_offer *offer)
{
    const int64_t start = offer->position - framed_length(stream, offer->length);
    if (offer->position_before >= offer->limit_before)
    {
        sim_fail("limit", "session %d: a message was taken at %" PRId64 " though the limit is %" PRId64, stream->session_id,
            offer->position_before, offer->limit_before);
    }
    if (start < stream->position)
    {
        sim_fail("bytes", "session %d: a message was put to %" PRId64 ", before the end of the last one at %" PRId64,
            stream->session_id, start, stream->position);
    }
    if (stream->count == stream->capacity)
    {
        stream->capacity = 0 == stream->capacity ? 256 : 2 * stream->capacity;
        stream->messages = realloc(stream->messages, (size_t)stream->capacity * sizeof(*stream->messages));
        if (NULL == stream->messages)
        {
            sim_fail("setup", "no memory");
        }
    }
    stream->messages[stream->count++] = (auditor_message){
        .start = start, .end = offer->position, .number = offer->number, .length = offer->length };
    stream->position = offer->position;
    a->published_bytes += offer->number < 0 ? 0 : offer->length;
    sim_digest(stream->session_id, offer->position, offer->length);
}

void auditor_on_publication_end(auditor *a, auditor_stream *stream, const as_publication *publication, auditor_end end)
{
    if (AUDITOR_OPEN == stream->end)
    {
        /* Padding at the end of a term is no message. */
        const int64_t position = NULL == publication ? stream->position : as_publication_position(publication);
        stream->position = position > stream->position ? position : stream->position;
        stream->end = end;
        stream->ended_ns = *a->now_ns;
    }
}

/* -- images ------------------------------------------------------------------------------------------------------------- */

auditor_image *auditor_find_image(auditor *a, const void *subscription, int64_t correlation_id)
{
    for (int32_t i = a->image_count - 1; i >= 0; i--)
    {
        auditor_image *image = &a->images[i];
        if (image->is_open && image->subscription == subscription && image->correlation_id == correlation_id)
        {
            return image;
        }
    }
    return NULL;
}

static auditor_stream *find_stream(auditor *a, int32_t session_id, int32_t stream_id)
{
    for (int32_t i = a->stream_count - 1; i >= 0; i--)
    {
        if (a->streams[i].session_id == session_id && a->streams[i].stream_id == stream_id)
        {
            return &a->streams[i];
        }
    }
    return NULL;
}

/* A subscriber may hear of a stream before its publisher does. */
static void find_stream_of(auditor *a, auditor_image *image)
{
    auditor_stream *stream = NULL == image->stream ? find_stream(a, image->session_id, image->stream_id) : NULL;
    if (NULL == stream)
    {
        return;
    }
    if (image->term_length != stream->term_length || image->initial_term_id != stream->initial_term_id)
    {
        sim_fail("bytes", "image of session %d has another geometry than its stream", image->session_id);
    }
    while (image->next < stream->count && stream->messages[image->next].end <= image->cursor)
    {
        image->next++;
    }
    stream->max_received = image->cursor > stream->max_received ? image->cursor : stream->max_received;
    image->stream = stream;
}

/* The adversary makes more of them than the table holds; one that has ended needs no entry. */
static auditor_image *new_image(auditor *a)
{
    for (int32_t i = 0; i < a->image_count && a->bounds.is_on; i++)
    {
        if (a->images[i].is_hostile && !a->images[i].is_open)
        {
            return &a->images[i];
        }
    }
    if (AUDITOR_MAX_IMAGES == a->image_count)
    {
        sim_fail("setup", "more than %d images", AUDITOR_MAX_IMAGES);
    }
    return &a->images[a->image_count++];
}

auditor_image *auditor_on_image(auditor *a, int32_t driver, const void *subscription, as_image *image, bool is_local)
{
    as_image_constants constants;
    as_image_get_constants(image, &constants);
    if (NULL != auditor_find_image(a, subscription, constants.correlation_id))
    {
        sim_fail("bytes", "image %" PRId64 " became available twice", constants.correlation_id);
    }
    auditor_image *added = new_image(a);
    *added = (auditor_image){
        .subscription = subscription,
        .correlation_id = constants.correlation_id,
        .session_id = constants.session_id,
        .stream_id = constants.stream_id,
        .term_length = constants.term_length,
        .initial_term_id = constants.initial_term_id,
        .driver = driver,
        .is_hostile = sim_is_hostile_session(constants.session_id),
        .join_position = constants.join_position,
        .cursor = constants.join_position,
        .is_open = true,
        .is_reliable = true,
        .is_local = is_local,
        .since_ns = *a->now_ns
    };
    find_stream_of(a, added);
    added->made_ns = added->since_ns;
    for (int32_t i = 0; i < a->image_count; i++)
    {
        const auditor_image *other = &a->images[i];
        if (other->driver != driver || other->correlation_id != constants.correlation_id)
        {
            continue;
        }
        if (other->made_ns < added->made_ns)
        {
            added->made_ns = other->made_ns;
        }
        /* Nobody joins while a rejection holds, so the driver let this one in before it read of the rejection, which ends it, too. */
        if (other->is_rejected && added->since_ns - other->rejected_ns < a->times.image_liveness_ns)
        {
            added->is_rejected = true;
            added->rejected_ns = other->rejected_ns;
        }
    }
    sim_trace("image %" PRId64 " of session %d at driver %d joins at %" PRId64, constants.correlation_id, constants.session_id,
        driver, constants.join_position);
    return added;
}

/* Only padding may lie between the delivered position and `to`, unless the stream is unreliable. */
static void skip_to(auditor *a, auditor_image *image, int64_t to)
{
    auditor_stream *stream = image->stream;
    bool is_gap = false;
    while (image->next < stream->count && stream->messages[image->next].start < to)
    {
        const auditor_message *message = &stream->messages[image->next];
        const int64_t from = image->cursor > message->start ? image->cursor : message->start;
        const int64_t until = message->end < to ? message->end : to;
        if (message->number >= 0 && from < until)
        {
            if (image->is_reliable || image->is_local || a->is_lossless)
            {
                sim_fail("bytes", "session %d, driver %d, image %" PRId64 ": delivery jumps from %" PRId64 " to %" PRId64
                    " over message %" PRId64 " of [%" PRId64 ", %" PRId64 ")", stream->session_id, image->driver,
                    image->correlation_id, image->cursor, to, message->number, message->start, message->end);
            }
            is_gap = true;
        }
        if (message->end > to)
        {
            break;
        }
        image->next++;
    }
    if (is_gap)
    {
        image->gaps++;
        a->gaps++;
        const auditor_driver *driver = &a->drivers[image->driver];
        if (asi_load_acquire_i64(asi_counter_addr(&driver->counters, ASI_SYSTEM_LOSS_GAP_FILLS)) < image->gaps)
        {
            sim_fail("bytes", "session %d, driver %d: %" PRId64 " gaps, but fewer gap fills counted", stream->session_id,
                image->driver, image->gaps);
        }
    }
    image->cursor = to > image->cursor ? to : image->cursor;
}

static void check_fragment(
    const auditor_image *image, const auditor_message *message, int64_t begin, const uint8_t *data, int64_t length, uint8_t flags)
{
    const auditor_stream *stream = image->stream;
    const int64_t max_payload = stream->mtu_length - AS_FRAME_HEADER_LENGTH;
    const int64_t index = (begin - message->start) / stream->mtu_length;
    const int64_t offset = index * max_payload;
    const int64_t left = message->length - offset;
    const int64_t due = left < max_payload ? left : max_payload;
    const uint8_t due_flags = (uint8_t)((0 == index ? ASI_FLAG_BEGIN : 0) | (left <= max_payload ? ASI_FLAG_END : 0));
    if (message->number < 0 || begin != message->start + index * stream->mtu_length || length != due ||
        due_flags != (flags & ASI_FLAG_UNFRAGMENTED))
    {
        sim_fail("bytes", "session %d, driver %d: a fragment of %" PRId64 " bytes, flags %02x, at %" PRId64
            " is not of message %" PRId64 " at [%" PRId64 ", %" PRId64 ")", stream->session_id, image->driver, length, flags,
            begin, message->number, message->start, message->end);
    }
    if (0 != memcmp(bytes_of(message->number, offset), data, (size_t)due))
    {
        sim_fail("bytes", "session %d, driver %d: other bytes at %" PRId64 " than message %" PRId64 " has", stream->session_id,
            image->driver, begin, message->number);
    }
}

void auditor_on_fragment(auditor *a, const void *subscription, const uint8_t *data, int64_t length, const as_header *header)
{
    as_image_constants constants;
    as_image_get_constants(header->image, &constants);
    auditor_image *image = auditor_find_image(a, subscription, constants.correlation_id);
    if (NULL != image)
    {
        find_stream_of(a, image);
    }
    if (NULL != image && NULL == image->stream && image->is_hostile)
    {
        return;
    }
    if (NULL == image || NULL == image->stream)
    {
        sim_fail("bytes", "session %d: bytes of a stream that nobody published", header->session_id);
    }
    auditor_stream *stream = image->stream;
    const int64_t begin = header->position - asi_align_i64(length + AS_FRAME_HEADER_LENGTH, AS_FRAME_ALIGNMENT);
    const int64_t told = (int64_t)asi_wrap_sub(header->term_id, stream->initial_term_id) * stream->term_length +
        header->term_offset;
    if (told != begin || header->session_id != stream->session_id || header->stream_id != stream->stream_id)
    {
        sim_fail("bytes", "session %d: a frame at %" PRId64 " says it is at %" PRId64, stream->session_id, begin, told);
    }
    if (begin < image->cursor)
    {
        sim_fail("bytes", "session %d, driver %d: %" PRId64 " is delivered again, %" PRId64 " was reached", stream->session_id,
            image->driver, begin, image->cursor);
    }
    skip_to(a, image, begin);
    if (image->next >= stream->count || stream->messages[image->next].start > begin)
    {
        sim_fail("bytes", "session %d, driver %d: nothing was published at %" PRId64, stream->session_id, image->driver, begin);
    }
    const auditor_message *message = &stream->messages[image->next];
    check_fragment(image, message, begin, data, length, header->flags);
    image->cursor = header->position;
    image->next += header->position >= message->end ? 1 : 0;
    stream->max_received = header->position > stream->max_received ? header->position : stream->max_received;
    a->delivered_bytes += length;
    a->delivered_messages += 0 != (header->flags & ASI_FLAG_END) ? 1 : 0;
    sim_digest(header->session_id, header->position, image->driver);
}

void auditor_on_position(auditor *a, const void *subscription, as_image *client_image)
{
    as_image_constants constants;
    as_image_get_constants(client_image, &constants);
    auditor_image *image = auditor_find_image(a, subscription, constants.correlation_id);
    if (NULL != image && NULL != image->stream)
    {
        skip_to(a, image, as_image_position(client_image));
    }
}

/* -- the end of an image ------------------------------------------------------------------------------------------------ */

const auditor_heard *auditor_find_heard(const auditor *a, const auditor_image *image)
{
    for (int32_t i = 0; i < a->heard_count; i++)
    {
        const auditor_heard *heard = &a->heard[i];
        if (heard->driver == image->driver && heard->session_id == image->session_id && heard->stream_id == image->stream_id)
        {
            return heard;
        }
    }
    return NULL;
}

int64_t auditor_last_heard_ns(const auditor *a, const auditor_image *image, bool is_heartbeat)
{
    const auditor_heard *heard = auditor_find_heard(a, image);
    const int64_t last_ns = NULL == heard ? 0 : is_heartbeat ? heard->last_heartbeat_ns : heard->last_ns;
    const int64_t made_ns = is_heartbeat ? image->made_ns : image->since_ns;
    return last_ns > made_ns ? last_ns : made_ns;
}

static void check_end_position(const auditor_image *image, as_image *client_image)
{
    const auditor_stream *stream = image->stream;
    const int64_t end = as_image_end_of_stream_position(client_image);
    const int64_t position = as_image_position(client_image);
    if (AUDITOR_OPEN == stream->end || end != stream->position || (position != end && !image->may_rest))
    {
        sim_fail("eos", "session %d, driver %d: the image ended at %" PRId64 ", read to %" PRId64 ", the stream at %" PRId64 "%s",
            stream->session_id, image->driver, end, position, stream->position,
            AUDITOR_OPEN == stream->end ? " is open" : "");
    }
}

/* Without an end of the stream. */
static void check_silence(const auditor *a, const auditor_image *image)
{
    const auditor_stream *stream = image->stream;
    const int64_t silent_ns = *a->now_ns - auditor_last_heard_ns(a, image, true);
    const auditor_times *times = &a->times;
    const int64_t settled_ns = 2 * times->image_liveness_ns + 4 * times->timer_interval_ns +
        6 * times->status_message_ns + 2 * times->slack_ns;
    const bool is_settled = a->is_calm && stream->waits_for_all && *a->now_ns - a->calm_since_ns > settled_ns && image->since_ns < a->calm_since_ns;
    /* Spec: 04 §24 T11 - a unicast publication that once saw a receiver leave does not linger, so it announces no end. */
    const bool has_lingered = !stream->is_unicast || 0 == stream->last_end_status_ns;
    if (AUDITOR_CLOSED == stream->end && stream->has_eos && has_lingered && a->is_calm &&
        stream->ended_ns - a->calm_since_ns > settled_ns)
    {
        sim_fail("eos", "session %d, driver %d: the stream was closed, its image ended without the end of the stream",
            stream->session_id, image->driver);
    }
    const auditor_heard *heard = auditor_find_heard(a, image);
    const bool has_been_silent = NULL != heard && heard->last_silence_ns > image->made_ns;
    if (silent_ns < times->image_liveness_ns && !has_been_silent &&
        (is_settled || (a->is_wire_clean && stream->is_plain_unicast && image->cursor > image->join_position)))
    {
        sim_fail("liveness", "session %d, driver %d: the image ended though the stream was heard %" PRId64 " us ago",
            stream->session_id, image->driver, silent_ns / 1000);
    }
}

void auditor_on_image_gone(auditor *a, const void *subscription, as_image *client_image, auditor_why why)
{
    as_image_constants constants;
    as_image_get_constants(client_image, &constants);
    auditor_image *image = auditor_find_image(a, subscription, constants.correlation_id);
    if (NULL == image)
    {
        sim_fail("bytes", "image %" PRId64 " became unavailable before it was available", constants.correlation_id);
    }
    const bool is_end = as_image_is_end_of_stream(client_image);
    const bool is_revoked = as_image_is_publication_revoked(client_image);
    sim_trace("image %" PRId64 " of session %d at driver %d ends at %" PRId64 "%s%s%s", constants.correlation_id,
        constants.session_id, image->driver, as_image_position(client_image), is_end ? " eos" : "", is_revoked ? " revoked" : "",
        AUDITOR_LEAVES == why ? " left" : "");
    image->is_open = false;
    find_stream_of(a, image);
    const auditor_stream *stream = image->stream;
    if (NULL == stream || AUDITOR_LEAVES == why || image->is_rejected)
    {
        return;
    }
    if (is_revoked)
    {
        if (AUDITOR_REVOKED != stream->end)
        {
            sim_fail("eos", "session %d: revoked by nobody", stream->session_id);
        }
    }
    else if (image->is_local)
    {
        if (AUDITOR_OPEN == stream->end && !image->may_rest)
        {
            sim_fail("liveness", "session %d, driver %d: a local image ended though its stream is open", stream->session_id,
                image->driver);
        }
    }
    else if (is_end)
    {
        check_end_position(image, client_image);
    }
    else if (!image->may_rest && AUDITOR_REVOKED != stream->end)
    {
        check_silence(a, image);
    }
}

bool auditor_is_delivered(auditor *a, const void *subscription, const auditor_stream *stream)
{
    for (int32_t i = 0; i < a->image_count; i++)
    {
        auditor_image *image = &a->images[i];
        if (image->is_open && image->subscription == subscription)
        {
            find_stream_of(a, image);
        }
        if (image->is_open && image->subscription == subscription && image->stream == stream)
        {
            int64_t next = image->next;
            while (next < stream->count && stream->messages[next].number < 0)
            {
                next++; /* claims given up: padding that no handler sees */
            }
            return next == stream->count;
        }
    }
    return false;
}

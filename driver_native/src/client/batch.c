/* Batches: offers Arrow-style columns to a publication, and polls images to columns. Takes no lock, allocates nothing and
 * makes no per-message call out of C. Spec: 02 §5, §10.4. */
#include <errno.h>
#include <inttypes.h>

#include "client/lock.h"
#include "client/poll.h"
#include "client/publication.h"
#include "client/wait.h"
#include "term/columns.h"

/* A rotation completes within this many retries, unless its thread died. Then the driver completes it, which takes longer. */
#define ROTATION_TRIES 100

/* -- waiting ------------------------------------------------------------------------------------------------------------ */

/* Time limit of one call. The clock is read only when the call has to wait. */
typedef struct time_limit
{
    int64_t timeout_ns;
    int64_t deadline_ns; /* AS_NULL_VALUE before the first wait */
    asi_idle idle;
} time_limit;

static time_limit start_time_limit(int64_t timeout_ns)
{
    return (time_limit){ .timeout_ns = timeout_ns, .deadline_ns = AS_NULL_VALUE, .idle = asi_client_backoff() };
}

/* After progress the next wait starts with spinning again. */
static inline void restart_backoff(asi_idle *idle)
{
    idle->idle_count = 0;
    idle->park_ns = idle->min_park_ns;
}

/* Idles once; false when the time is over. */
static bool idle_within(as_client *client, time_limit *limit)
{
    if (limit->timeout_ns <= 0)
    {
        return false;
    }
    const int64_t now_ns = asi_clock_ns(&client->clock);
    if (AS_NULL_VALUE == limit->deadline_ns)
    {
        /* INT64_MAX means no limit. */
        limit->deadline_ns = limit->timeout_ns < INT64_MAX - now_ns ? now_ns + limit->timeout_ns : INT64_MAX;
    }
    if (now_ns >= limit->deadline_ns)
    {
        return false;
    }
    asi_client_idle(client, &limit->idle);
    return true;
}

/* -- offering ----------------------------------------------------------------------------------------------------------- */

static const char *describe_wait(int64_t status)
{
    switch (status)
    {
        case AS_NOT_CONNECTED:
            return "no subscriber is connected";
        case AS_ADMIN_ACTION:
            return "the log is being rotated";
        default:
            return "subscribers are behind by the publication window";
    }
}

static as_result fail_offer(const as_publication *publication, int64_t status, int64_t timeout_ns)
{
    const char *channel = publication->channel;
    const int32_t stream_id = publication->appender.stream_id;
    switch (status)
    {
        case AS_PUBLICATION_CLOSED:
            return as_client_is_closed(publication->client) ? asi_client_fail_closed(publication->client) :
                asi_fail(AS_E_CLOSED, 0, "publication of %s, stream %d is closed", channel, stream_id);
        case AS_MAX_POSITION_EXCEEDED:
            return asi_fail(AS_E_CLOSED, 0, "publication of %s, stream %d has reached its last position, add a new one", channel,
                stream_id);
        case AS_PUBLICATION_ERROR:
            return AS_E_DATA; /* the appender has set the error text */
        default:
            return asi_fail(AS_E_TIMEOUT, 0, "publication of %s, stream %d took nothing more within %" PRId64 " ms: %s", channel,
                stream_id, timeout_ns / 1000000, describe_wait(status));
    }
}

/* Returns message i of the batch; AS_E_USAGE when its offsets or its length are invalid. */
static as_result get_message(
    const as_publication *publication, const as_messages *messages, int64_t index, struct asi_append_part *part)
{
    const int64_t begin = NULL != messages->offsets64 ? messages->offsets64[index] : messages->offsets32[index];
    const int64_t end = NULL != messages->offsets64 ? messages->offsets64[index + 1] : messages->offsets32[index + 1];
    if (__builtin_expect(begin < 0 || end < begin, 0))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "message %" PRId64 " has offsets %" PRId64 " to %" PRId64 ", they must not descend",
            index, begin, end);
    }
    if (__builtin_expect(end - begin > publication->max_message_length, 0))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "message %" PRId64 " has %" PRId64 " bytes, publication of %s, stream %d takes %d at "
            "most, raise its term-length", index, end - begin, publication->channel, publication->appender.stream_id,
            publication->max_message_length);
    }
    if (__builtin_expect(NULL == messages->data && end > begin, 0))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "message %" PRId64 " has %" PRId64 " bytes, but the batch has no data", index,
            end - begin);
    }
    *part = (struct asi_append_part){ .data = NULL == messages->data ? NULL : messages->data + begin, .length = end - begin };
    return AS_OK;
}

as_result as_publication_offer_messages(
    as_publication *publication, const as_messages *messages, int64_t timeout_ns, as_offer_outcome *outcome)
{
    as_client *client = publication->client;
    *outcome = (as_offer_outcome){ 0 };
    if (messages->count < 0 || (NULL == messages->offsets32) == (NULL == messages->offsets64))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "a batch needs a count and either 32-bit or 64-bit offsets");
    }
    time_limit limit = start_time_limit(timeout_ns);
    int rotation_tries = 0;
    while (outcome->accepted < messages->count)
    {
        struct asi_append_part part;
        const as_result result = get_message(publication, messages, outcome->accepted, &part);
        if (AS_OK != result)
        {
            outcome->status = AS_PUBLICATION_ERROR;
            return result;
        }
        const asi_append_source source = {
            .parts = &part,
            .part_count = 1,
            .length = part.length,
            .has_reserved_value = NULL != messages->reserved_values,
            .reserved_value = NULL != messages->reserved_values ? messages->reserved_values[outcome->accepted] : 0,
        };
        const int64_t position = asi_client_publication_append(publication, &source);
        if (__builtin_expect(position > 0, 1))
        {
            outcome->accepted++;
            outcome->position = position;
            rotation_tries = 0;
            restart_backoff(&limit.idle);
            continue;
        }
        if (AS_ADMIN_ACTION == position && rotation_tries++ < ROTATION_TRIES)
        {
            asi_cpu_pause();
            continue;
        }
        const bool is_passing = AS_BACK_PRESSURED == position || AS_NOT_CONNECTED == position || AS_ADMIN_ACTION == position;
        if (!is_passing || !idle_within(client, &limit))
        {
            outcome->status = position;
            return fail_offer(publication, position, timeout_ns);
        }
    }
    return AS_OK;
}

/* -- polling to columns ------------------------------------------------------------------------------------------------- */

typedef enum take_outcome
{
    TAKE_ALL,  /* everything committed was taken */
    TAKE_FULL, /* the columns are full */
    TAKE_CLOSED,
    TAKE_FAILED
} take_outcome;

static as_result fail_take(const as_image *image, const asi_columns_range *range, asi_columns_stop stop)
{
    if (ASI_COLUMNS_TOO_LARGE == stop)
    {
        return asi_fail(AS_E_USAGE, 0, "message at position %" PRId64 " of session %d, stream %d needs %" PRId64
            " bytes of columns, raise byte_capacity", range->term_position + range->offset, image->session_id, image->stream_id,
            range->needed_bytes);
    }
    return asi_fail(AS_E_DATA, 0, "broken frame at position %" PRId64 " of session %d, stream %d (%s)",
        range->term_position + range->fault_offset, image->session_id, image->stream_id, image->source_identity);
}

/* A stream may end inside a message, for example the replay of a recording that was truncated there. The END fragment never
 * arrives. The message is skipped, as in the assemblers, so that the image reaches its end. */
static bool ends_inside_message(const as_image *image, const asi_columns_range *range)
{
    return range->term_position + range->unfinished_end == asi_load_acquire_i64(&image->metadata->end_of_stream_position);
}

/* Takes what is available now, across terms, and moves the subscriber position. *result is set with TAKE_FAILED. */
static take_outcome take_columns(as_image *image, as_columns *columns, as_result *result)
{
    for (;;)
    {
        if (asi_load_acquire_bool(&image->is_closed))
        {
            return TAKE_CLOSED;
        }
        if (!asi_client_image_owns_position(image))
        {
            return TAKE_ALL; /* the conductor is about to close it */
        }
        const int64_t position = asi_load_relaxed_i64(image->subscriber_position);
        const int64_t offset = position & (image->term_length - 1);
        asi_columns_range range = {
            .term = image->terms[asi_log_index_of_position(position, image->position_bits)],
            .term_length = image->term_length,
            .term_position = position - offset,
            .begin_limit = image->term_length,
            .data_limit = image->term_length,
            .offset = offset,
        };
        const asi_columns_stop stop = asi_columns_append(&range, columns);
        if (ASI_COLUMNS_PARTIAL == stop && ends_inside_message(image, &range))
        {
            range.offset = range.unfinished_end;
        }
        const int64_t next = range.term_position + range.offset;
        if (next > position && !asi_load_acquire_bool(&image->is_closed) && asi_client_image_owns_position(image))
        {
            asi_store_release_i64(image->subscriber_position, next);
        }
        switch (stop)
        {
            case ASI_COLUMNS_FULL:
                return TAKE_FULL;
            case ASI_COLUMNS_TOO_LARGE:
            case ASI_COLUMNS_BROKEN:
                *result = fail_take(image, &range, stop);
                return TAKE_FAILED;
            case ASI_COLUMNS_END:
            case ASI_COLUMNS_PARTIAL:
            case ASI_COLUMNS_PADDING: /* occurs in recordings only */
                break;
        }
        if (range.offset < image->term_length)
        {
            return TAKE_ALL;
        }
    }
}

static as_result start_columns(as_columns *columns)
{
    columns->row_count = 0;
    columns->byte_count = 0;
    if (columns->row_capacity <= 0 || columns->byte_capacity < 0 || columns->byte_capacity > INT32_MAX ||
        (NULL == columns->value) != (NULL == columns->value_offset))
    {
        return asi_fail(AS_E_USAGE, EINVAL,
            "columns need a row_capacity, a byte_capacity up to 2^31 - 1, and value with value_offset or neither");
    }
    if (NULL != columns->value_offset)
    {
        columns->value_offset[0] = 0;
    }
    return AS_OK;
}

as_result as_image_poll_columns(as_image *image, as_columns *columns, int64_t timeout_ns)
{
    as_result result = start_columns(columns);
    if (AS_OK != result)
    {
        return result;
    }
    time_limit limit = start_time_limit(timeout_ns);
    for (;;)
    {
        const take_outcome outcome = take_columns(image, columns, &result);
        if (columns->row_count > 0)
        {
            return AS_OK; /* the next call meets the fault after these rows first */
        }
        if (TAKE_FAILED == outcome)
        {
            return result;
        }
        if (TAKE_CLOSED == outcome)
        {
            return asi_fail(AS_E_CLOSED, 0, "image of session %d, stream %d is closed at position %" PRId64, image->session_id,
                image->stream_id, image->final_position);
        }
        if (!idle_within(image->client, &limit))
        {
            return AS_OK;
        }
    }
}

/* Polls each image once. Returns AS_OK with or without rows, or the first failure if there are no rows. */
static as_result take_round(as_subscription *subscription, as_columns *columns)
{
    const asi_client_image_list *list = asi_client_subscription_poll_begin(subscription);
    if (NULL == list)
    {
        return asi_client_subscription_refuse_poll(subscription);
    }
    const uint32_t count = (uint32_t)list->count;
    /* Each call starts with another image, so that an image that fills the columns alone does not starve the others. */
    const uint32_t start = count > 0 ? subscription->round_robin++ % count : 0;
    as_result failure = AS_OK;
    for (uint32_t i = 0; i < count; i++)
    {
        as_result taken = AS_OK;
        const take_outcome outcome = take_columns(list->images[(start + i) % count], columns, &taken);
        failure = TAKE_FAILED == outcome && AS_OK == failure ? taken : failure;
        if (TAKE_FULL == outcome)
        {
            break;
        }
    }
    asi_client_subscription_poll_end(subscription);
    return columns->row_count > 0 ? AS_OK : failure;
}

as_result as_subscription_poll_columns(as_subscription *subscription, as_columns *columns, int64_t timeout_ns)
{
    as_result result = start_columns(columns);
    if (AS_OK != result)
    {
        return result;
    }
    time_limit limit = start_time_limit(timeout_ns);
    do
    {
        result = take_round(subscription, columns);
    } while (AS_OK == result && 0 == columns->row_count && idle_within(subscription->client, &limit));
    return result;
}

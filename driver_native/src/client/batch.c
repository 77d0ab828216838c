/* Batches: offers Arrow-style columns to a publication, or to several in time, and polls images to columns. Takes no lock,
 * allocates nothing and makes no per-message call out of C. Spec: 02 §5, §10.4. */
#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "client/image.h"
#include "client/lock.h"
#include "client/poll.h"
#include "client/publication.h"
#include "client/wait.h"
#include "term/columns.h"

/* A sleep may end this late; the rest of a wait is spun. */
#define SPIN_NS 100000
#define TIMING_BINS 320

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

static inline int64_t append_message(
    as_publication *publication, const as_messages *messages, int64_t index, const struct asi_append_part *part)
{
    const asi_append_source source = {
        .parts = part,
        .part_count = 1,
        .length = part->length,
        .has_reserved_value = NULL != messages->reserved_values,
        .reserved_value = NULL != messages->reserved_values ? messages->reserved_values[index] : 0,
    };
    return asi_client_publication_append(publication, &source);
}

static as_result check_layout(const as_messages *messages)
{
    if (messages->count < 0 || (NULL == messages->offsets32) == (NULL == messages->offsets64))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "a batch needs a count and either 32-bit or 64-bit offsets");
    }
    return AS_OK;
}

/* The caller may try again. */
static inline bool is_passing(int64_t status)
{
    return AS_BACK_PRESSURED == status || AS_NOT_CONNECTED == status || AS_ADMIN_ACTION == status;
}

as_result as_publication_offer_messages(
    as_publication *publication, const as_messages *messages, int64_t timeout_ns, as_offer_outcome *outcome)
{
    as_client *client = publication->client;
    *outcome = (as_offer_outcome){ 0 };
    const as_result layout = check_layout(messages);
    if (AS_OK != layout)
    {
        return layout;
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
        const int64_t position = append_message(publication, messages, outcome->accepted, &part);
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
        if (!is_passing(position) || !idle_within(client, &limit))
        {
            outcome->status = position;
            return fail_offer(publication, position, timeout_ns);
        }
    }
    return AS_OK;
}

/* -- offering in time --------------------------------------------------------------------------------------------------- */

/* Saturates: recorded times may be anything. */
static int64_t due_ns(const as_schedule *schedule, int64_t index)
{
    int64_t ahead_ns;
    if (__builtin_sub_overflow(schedule->times_ns[index], schedule->time_ns, &ahead_ns))
    {
        ahead_ns = schedule->times_ns[index] < schedule->time_ns ? INT64_MIN : INT64_MAX;
    }
    const double scaled_ns = (double)ahead_ns * schedule->pace;
    const double most_ns = (double)(INT64_MAX / 4);
    const int64_t bounded_ns = (int64_t)(scaled_ns < -most_ns ? -most_ns : scaled_ns > most_ns ? most_ns : scaled_ns);
    return schedule->at_ns + bounded_ns;
}

static void count(int64_t *counts, int64_t *most_ns, int64_t ns)
{
    *most_ns = ns > *most_ns ? ns : *most_ns;
    int64_t bin = ns;
    if (ns >= 8)
    {
        const int shift = 60 - __builtin_clzll((uint64_t)ns);
        bin = (shift + 1) * 8 + ((ns >> shift) & 7);
    }
    counts[bin < TIMING_BINS ? bin : TIMING_BINS - 1]++;
}

static void measure(as_timing *timing, int64_t due, int64_t now_ns)
{
    if (AS_NULL_VALUE != timing->last_due_ns)
    {
        const int64_t signed_ns = (now_ns - timing->last_at_ns) - (due - timing->last_due_ns);
        const int64_t error_ns = signed_ns < 0 ? -signed_ns : signed_ns;
        count(timing->error_counts, &timing->max_error_ns, error_ns);
    }
    count(timing->late_counts, &timing->max_late_ns, now_ns - due);
    timing->last_due_ns = due;
    timing->last_at_ns = now_ns;
}

static void wait_a_while(as_client *client, int64_t wait_ns, asi_idle *idle)
{
    if (client->options.use_invoker)
    {
        asi_client_idle(client, idle);
    }
    else if (wait_ns > SPIN_NS)
    {
        const int64_t sleep_ns = wait_ns - SPIN_NS;
        const struct timespec length = { .tv_sec = sleep_ns / 1000000000, .tv_nsec = sleep_ns % 1000000000 };
        (void)nanosleep(&length, NULL); /* one that a signal ends is repeated by the caller */
    }
    else
    {
        asi_cpu_pause();
    }
}

static as_result check_schedule(
    as_publication *const *publications, int32_t count, const as_messages *messages, const as_schedule *schedule)
{
    const as_result layout = check_layout(messages);
    if (AS_OK != layout)
    {
        return layout;
    }
    bool is_right = count > 0 && schedule->pace >= 0 && schedule->pace <= 1e12;
    is_right = is_right && schedule->at_ns >= 0 && schedule->at_ns < INT64_MAX / 2;
    for (int32_t i = 1; is_right && i < count; i++)
    {
        is_right = publications[i]->client == publications[0]->client;
    }
    for (int64_t i = 0; is_right && i < messages->count; i++)
    {
        is_right = schedule->targets[i] >= 0 && schedule->targets[i] < count;
    }
    return is_right ? AS_OK : asi_fail(AS_E_USAGE, EINVAL,
        "a schedule needs publications of one client, targets among them, a pace of 0 to 1e12 and a start on the clock");
}

as_result as_publications_offer_timed(as_publication *const *publications, int32_t publication_count,
    const as_messages *messages, const as_schedule *schedule, int64_t timeout_ns, as_timing *timing)
{
    timing->accepted = timing->status = timing->blocked_ns = 0;
    as_result result = check_schedule(publications, publication_count, messages, schedule);
    if (AS_OK != result)
    {
        return result;
    }
    as_client *client = publications[0]->client;
    asi_idle idle = asi_client_backoff();
    int64_t now_ns = asi_clock_ns(&client->clock);
    const int64_t deadline_ns = timeout_ns < INT64_MAX - now_ns ? now_ns + timeout_ns : INT64_MAX;
    while (timing->accepted < messages->count)
    {
        const int64_t due = due_ns(schedule, timing->accepted);
        for (; now_ns < due && schedule->pace > 0; now_ns = asi_clock_ns(&client->clock))
        {
            if (now_ns >= deadline_ns)
            {
                return AS_OK;
            }
            wait_a_while(client, (due < deadline_ns ? due : deadline_ns) - now_ns, &idle);
        }
        as_publication *publication = publications[schedule->targets[timing->accepted]];
        struct asi_append_part part;
        result = get_message(publication, messages, timing->accepted, &part);
        if (AS_OK != result)
        {
            timing->status = AS_PUBLICATION_ERROR;
            return result;
        }
        const int64_t first_try_ns = now_ns;
        int64_t position;
        restart_backoff(&idle);
        while ((position = append_message(publication, messages, timing->accepted, &part)) <= 0)
        {
            if (!is_passing(position))
            {
                timing->status = position;
                return fail_offer(publication, position, timeout_ns);
            }
            now_ns = asi_clock_ns(&client->clock);
            if (now_ns >= deadline_ns)
            {
                timing->status = position;
                timing->blocked_ns = now_ns - first_try_ns;
                return AS_OK;
            }
            asi_client_idle(client, &idle);
        }
        timing->accepted++;
        now_ns = asi_clock_ns(&client->clock);
        if (schedule->pace > 0)
        {
            measure(timing, due, now_ns);
        }
        if (now_ns >= deadline_ns)
        {
            return AS_OK;
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

/* Over UDP a publisher sends up to a window beyond the counter, and congestion control may make that window one MTU. If the
 * counter stayed at the begin of a message that is longer, its END would never be sent. So the counter passes the fragments that
 * have arrived, while the image's own position stays, and polls begin there. This is safe because the driver cleans the log of an
 * image a term behind the counter, and a message lies in one term. Spec: 02 §8. The log of an IPC publication is cleaned up to the
 * counter, but there offers append a message whole, however small the window. For who appends fragments see never_ends. */
static void pass_unfinished(as_image *image, const asi_columns_range *range)
{
    if (image->is_network)
    {
        asi_client_image_advance_flow(image, range->term_position + range->unfinished_end);
    }
}

/* Replays append fragments as their window allows; by default it is half a term, which holds any message. Where the driver is set
 * to a smaller one, the limit stays behind the end of a message that does not fit: the counter stays at its begin, and the driver
 * raises the limit of an IPC publication in steps of an eighth of the window, that of one over UDP, with a spy, at once. */
static bool never_ends(const as_image *image, int64_t begin, int64_t unfinished_end)
{
    const int64_t window = image->metadata->publication_window_length; /* 0 where the driver is older than the field */
    const int64_t step = window / 8;
    if (image->is_network || window <= 0 || unfinished_end - begin < window - step ||
        asi_log_producer_position(&image->log->log) != unfinished_end) /* it is being appended */
    {
        return false;
    }
    const asi_counters *counters = &image->client->counters;
    const int64_t id = image->correlation_id;
    const int32_t limit_id = asi_counters_find_by_registration(counters, ASI_COUNTER_TYPE_PUBLISHER_LIMIT, id);
    if (limit_id < 0)
    {
        return false;
    }
    const int64_t limit = asi_load_acquire_i64(asi_counter_addr(counters, limit_id));
    const bool is_spy = asi_counters_find_by_registration(counters, ASI_COUNTER_TYPE_SENDER_POSITION, id) >= 0;
    return unfinished_end >= limit && begin + window <= limit + (is_spy ? 0 : step);
}

static as_result fail_unfinished(const as_image *image, int64_t begin)
{
    return asi_fail(AS_E_USAGE, 0, "message at position %" PRId64 " of session %d, stream %d is longer than its publisher's window "
        "of %d bytes lets it send: raise pub-wnd of its channel, for a replay aeron.ipc.publication.term.window.length of the "
        "driver, or poll fragments", begin, image->session_id, image->stream_id, image->metadata->publication_window_length);
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
        if (asi_load_relaxed_bool(&image->is_polled))
        {
            *result = asi_client_image_refuse_poll(image);
            return TAKE_FAILED;
        }
        const int64_t position = asi_load_relaxed_i64(&image->position);
        const int64_t offset = position & (image->term_length - 1);
        asi_columns_range range = {
            .term = image->terms[asi_log_index_of_position(position, image->position_bits)],
            .term_length = image->term_length,
            .term_position = position - offset,
            .begin_limit = image->term_length,
            .data_limit = image->term_length,
            .offset = offset,
        };
        const int64_t row_count = columns->row_count;
        const int64_t byte_count = columns->byte_count;
        const asi_columns_stop stop = asi_columns_append(&range, columns);
        asi_fence_acquire(); /* after the copy: the log may be overwritten meanwhile */
        if (!asi_client_image_has_frame(image, (const asi_frame_header *)(const void *)(range.term + offset), position))
        {
            columns->row_count = row_count;
            columns->byte_count = byte_count;
            return TAKE_ALL; /* nothing is there, or a later lap's frame: the conductor is about to close the image */
        }
        if (ASI_COLUMNS_PARTIAL == stop)
        {
            pass_unfinished(image, &range);
            range.offset = ends_inside_message(image, &range) ? range.unfinished_end : range.offset;
        }
        const int64_t next = range.term_position + range.offset;
        if (next > position)
        {
            asi_client_image_advance(image, next);
        }
        switch (stop)
        {
            case ASI_COLUMNS_FULL:
                return TAKE_FULL;
            case ASI_COLUMNS_TOO_LARGE:
            case ASI_COLUMNS_BROKEN:
                *result = fail_take(image, &range, stop);
                return TAKE_FAILED;
            case ASI_COLUMNS_PARTIAL:
                if (next < range.term_position + range.unfinished_end &&
                    never_ends(image, next, range.term_position + range.unfinished_end))
                {
                    *result = fail_unfinished(image, next);
                    return TAKE_FAILED;
                }
                break;
            case ASI_COLUMNS_END:
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
                image->stream_id, as_image_position(image));
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

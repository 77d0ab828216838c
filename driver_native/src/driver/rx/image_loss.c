/* Rebuild and loss; see image_loss.h. */
#include "driver/rx/image_loss.h"

#include <math.h>

#include "base/assert.h"
#include "base/atomic.h"

#define STEADY_REPEATS 64
#define LONGEST_RETRY_NS 100000000LL
/* For how long a sender does not repeat a resend, unless another one came between. Spec: 04 §7.4 */
#define RESEND_LINGER_NS 10000000LL

static int32_t word_at(const asi_log *log, const uint8_t *at)
{
    return asi_log_is_backed(log, at) ? asi_load_acquire_i32((const int32_t *)(const void *)at) : 0;
}

/* Reads slots that the receiver may be writing at the same time. The value only affects the length of the first request, so any
 * value is harmless, and the thread sanitizer ignores the access. */
__attribute__((no_sanitize_thread)) static int32_t gap_end(const asi_log *log, const uint8_t *term, int32_t begin, int32_t limit)
{
    int32_t end = begin + AS_FRAME_ALIGNMENT;
    while (end < limit)
    {
        if (!asi_log_is_backed(log, term + end))
        {
            end = asi_align_i32(end + 1, 1 << log->page_bits); /* the whole page is empty */
            continue;
        }
        if (0 != *(const volatile int32_t *)(const void *)(term + end))
        {
            break;
        }
        end += AS_FRAME_ALIGNMENT;
    }
    return end < limit ? end : limit;
}

int32_t asi_gap_scan_untrusted(
    const asi_log *log, const uint8_t *term, int32_t offset, int32_t limit, int32_t max_gap, int32_t *gap_length)
{
    *gap_length = 0;
    while (offset < limit)
    {
        const int32_t frame_length = word_at(log, term + offset);
        if (frame_length <= 0)
        {
            *gap_length = gap_end(log, term, offset, limit - offset > max_gap ? offset + max_gap : limit) - offset;
            break;
        }
        const int64_t occupied = asi_frame_occupancy(frame_length);
        if (occupied > log->term_length - offset)
        {
            return log->term_length;
        }
        offset += (int32_t)occupied;
    }
    return offset;
}

int64_t asi_nak_multicast_delay_ns(const asi_nak_delay *delay, double u)
{
    const double lambda = log((double)delay->group_size) + 1;
    const double spread = exp(lambda) - 1;
    const double max_ns = (double)delay->max_backoff_ns;
    const double x = u * lambda / max_ns + lambda / (max_ns * spread);
    return (int64_t)(max_ns / lambda * log(x * spread * (max_ns / lambda)));
}

static int64_t multicast_delay_ns(asi_loss_detector *detector)
{
    const double u = (double)(asi_rand_u64(&detector->rand) >> 11) * 0x1.0p-53;
    return asi_nak_multicast_delay_ns(&detector->delay, u);
}

int64_t asi_nak_first_delay_ns(asi_loss_detector *detector)
{
    return detector->delay.is_multicast ? multicast_delay_ns(detector) : detector->delay.first_ns;
}

int64_t asi_nak_retry_delay_ns(asi_loss_detector *detector)
{
    return detector->delay.is_multicast ? multicast_delay_ns(detector) : detector->delay.retry_ns;
}

/* Exponential backoff when a gap's first requests stay unanswered. Otherwise a peer could open many sessions with a frame far
 * ahead and make the driver send ten thousand NAKs a second for each, more than a core can send. An honest publisher has answered
 * by then, or has gone. */
static int64_t backed_off_ns(const asi_loss_detector *detector, int64_t retry_ns)
{
    /* A gap of an unreliable stream is filled without a delay, unless the file system has no room for that. */
    int64_t delay_ns = retry_ns > 0 || detector->repeats < STEADY_REPEATS ? retry_ns : 1;
    for (int32_t i = STEADY_REPEATS; i < detector->repeats && delay_ns < LONGEST_RETRY_NS; i++)
    {
        delay_ns = 2 * delay_ns < LONGEST_RETRY_NS ? 2 * delay_ns : LONGEST_RETRY_NS;
    }
    return delay_ns;
}

static bool is_same_gap(const asi_gap *a, const asi_gap *b)
{
    return a->term_id == b->term_id && a->term_offset == b->term_offset && a->length == b->length;
}

/* The gap is longer than a sender may have in flight. Such data arrives when other receivers permit it, or never. The same frame
 * far ahead is therefore not a new gap after each datagram that arrives in order. */
static bool is_as_before(const asi_rx_image *image, const asi_gap *gap)
{
    const asi_gap *active = &image->loss.active;
    return is_same_gap(active, gap) || (gap->length == image->max_window && active->length == gap->length);
}

/* A sender that keeps one resend only ignores requests for the active gap while its resend is on the way, but not behind one for
 * another gap. */
static void postpone_retry(asi_loss_detector *detector)
{
    const int64_t earliest_ns = detector->requested_ns + RESEND_LINGER_NS;
    detector->deadline_ns = detector->deadline_ns > earliest_ns ? detector->deadline_ns : earliest_ns;
}

/* True when the gap, which ends at `end`, is a new one. */
static bool on_gap(asi_rx_image *image, const asi_gap *gap, int64_t end, int64_t now_ns, asi_gap *published)
{
    asi_loss_detector *detector = &image->loss;
    const bool is_new = !is_as_before(image, gap);
    const bool is_elsewhere = detector->active.term_id != gap->term_id || detector->active.term_offset != gap->term_offset;
    detector->active = *gap;
    detector->repeats = is_elsewhere ? 0 : detector->repeats; /* data arrived */
    if (is_new)
    {
        const bool is_asked = end <= detector->asked_position;
        detector->requested_ns = is_asked ? now_ns : INT64_MIN;
        detector->deadline_ns = now_ns + (is_asked ? asi_nak_retry_delay_ns(detector) : asi_nak_first_delay_ns(detector));
        postpone_retry(detector);
    }
    if (now_ns >= detector->deadline_ns)
    {
        asi_rx_image_publish_gap(image, gap);
        *published = *gap;
        detector->requested_ns = now_ns;
        detector->deadline_ns = now_ns + backed_off_ns(detector, asi_nak_retry_delay_ns(detector));
        detector->repeats++;
    }
    return is_new;
}

/* Requests the next gap behind the active one when the receiver has taken the last request, so that one round trip fills all gaps
 * of a window. Each is requested once; what is still missing when it is the active gap is requested again as that. */
static void request_ahead(
    asi_rx_image *image, const uint8_t *term, int64_t term_base, int32_t limit, int64_t now_ns, asi_gap *published)
{
    asi_loss_detector *detector = &image->loss;
    const int64_t active_end = term_base + detector->active.term_offset + detector->active.length;
    const int64_t from = detector->asked_position > active_end ? detector->asked_position : active_end;
    asi_gap gap = { .term_id = detector->active.term_id };
    gap.term_offset = asi_gap_scan_untrusted(
        &image->log, term, (int32_t)(from - term_base), limit, image->max_window, &gap.length);
    const int64_t position = term_base + gap.term_offset;
    detector->asked_position = position;
    if (0 == gap.length)
    {
        detector->ahead_deadline_ns = INT64_MAX;
        return;
    }
    if (position != detector->ahead_position || INT64_MAX == detector->ahead_deadline_ns)
    {
        detector->ahead_position = position;
        detector->ahead_deadline_ns = now_ns + asi_nak_first_delay_ns(detector);
    }
    if (now_ns >= detector->ahead_deadline_ns && asi_rx_image_is_gap_taken(image))
    {
        asi_rx_image_publish_gap(image, &gap);
        *published = gap;
        detector->asked_position = position + gap.length;
        detector->ahead_deadline_ns = now_ns;
        postpone_retry(detector);
    }
}

static void look_ahead(
    asi_rx_image *image, const uint8_t *term, int64_t term_base, int32_t limit, int64_t now_ns, asi_gap *published)
{
    if (!image->loss.delay.is_ahead || image->loss.active.length == image->max_window) /* that was not sent yet */
    {
        image->loss.ahead_deadline_ns = INT64_MAX;
    }
    else if (published->length > 0) /* the active gap's request takes this cycle */
    {
        image->loss.ahead_deadline_ns = now_ns;
    }
    else
    {
        request_ahead(image, term, term_base, limit, now_ns, published);
    }
}

/* A subscriber may be ahead of the rebuild by what it has read since the last cycle, at most to the end of the receiver's current
 * term (a padding frame ends beyond rcv-hwm). Its counter may hold any value; impossible ones are ignored. */
static int64_t start_of_scan(const asi_rx_image *image, int64_t max_subscriber_position, int64_t hwm)
{
    const int64_t end_of_term = asi_align_i64(hwm, image->log.term_length);
    return max_subscriber_position > image->rebuild_position && max_subscriber_position <= end_of_term &&
        0 == max_subscriber_position % AS_FRAME_ALIGNMENT ? max_subscriber_position : image->rebuild_position;
}

/* True when nothing arrived since the active gap was measured, and the gap is not due. Otherwise hundreds of images with a frame
 * far ahead would make the conductor measure their gaps in every cycle. A gap that is due is measured again, because a datagram
 * may have arrived in the receiver cycle in which it was measured. */
static bool is_measured(const asi_rx_image *image, int64_t position, int64_t hwm, int64_t packet_ns, int64_t now_ns)
{
    const asi_log *log = &image->log;
    const asi_loss_detector *detector = &image->loss;
    const int32_t offset = (int32_t)(position & (log->term_length - 1));
    return hwm == detector->scanned_hwm && packet_ns == detector->scanned_packet_ns && now_ns < detector->deadline_ns &&
        now_ns < detector->ahead_deadline_ns && detector->active.length > 0 && offset == detector->active.term_offset &&
        detector->active.term_id == asi_log_term_id_of_position(position, log->position_bits, log->initial_term_id) &&
        word_at(log, log->terms[asi_log_index_of_position(position, log->position_bits)] + offset) <= 0;
}

int asi_rx_image_rebuild(
    asi_rx_image *image, int64_t max_subscriber_position, int64_t now_ns, bool *found_loss, asi_gap *published)
{
    const asi_log *log = &image->log;
    const int64_t packet_ns = asi_load_acquire_i64(&image->last_packet_ns);
    const int64_t hwm = asi_load_acquire_i64(&image->hwm);
    int64_t position = start_of_scan(image, max_subscriber_position, hwm);
    *found_loss = false;
    published->length = 0;
    if (position < hwm && !is_measured(image, position, hwm, packet_ns, now_ns))
    {
        const int32_t offset = (int32_t)(position & (log->term_length - 1));
        const int64_t term_base = position - offset;
        const int32_t limit = hwm - term_base < log->term_length ? (int32_t)(hwm - term_base) : log->term_length;
        asi_gap gap = { .term_id = asi_log_term_id_of_position(position, log->position_bits, log->initial_term_id) };
        const uint8_t *term = log->terms[asi_log_index_of_position(position, log->position_bits)];
        gap.term_offset = asi_gap_scan_untrusted(log, term, offset, limit, image->max_window, &gap.length);
        position = term_base + gap.term_offset;
        image->loss.scanned_hwm = hwm;
        image->loss.scanned_packet_ns = packet_ns;
        if (gap.length > 0)
        {
            *found_loss = on_gap(image, &gap, position + gap.length, now_ns, published);
            look_ahead(image, term, term_base, limit, now_ns, published);
        }
    }
    if (position <= image->rebuild_position)
    {
        return published->length > 0 ? 1 : 0;
    }
    AS_ASSERT(0 == position % AS_FRAME_ALIGNMENT && position <= asi_align_i64(hwm, log->term_length));
    image->rebuild_position = position;
    asi_store_release_i64(image->position_counter, position);
    return 1;
}

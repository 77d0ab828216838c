/* Rebuild, subscribers and life cycle of images; see images.h. */
#include "driver/ctl/images.h"

#include "base/assert.h"
#include "driver/ctl/agent_queues.h"
#include "driver/ctl/receive_channels.h"
#include "driver/ctl/report.h"
#include "driver/rx/image_loss.h"
#include "driver/rx/image_status.h"

#define QUIET_NS 10000000LL   /* maximum delay until a change without notification is seen */
#define PAGES_FOR_DATA 16     /* for a log that is not sparse: bytes to populate for each byte received */
#define PAGES_IN_CYCLE (128 * 1024)
#define EOS_STATUS_MESSAGES 5 /* an ended image stays for at least this many status message timeouts. Spec: 04 §8.9 */

asi_network_image *asi_network_image_find(const asi_conductor *conductor, int64_t registration_id)
{
    for (int32_t i = 0; i < conductor->network.images.count; i++)
    {
        asi_network_image *image = conductor->network.images.items[i];
        if (registration_id == image->registration_id && image->state <= ASI_IMAGE_DRAINING)
        {
            return image;
        }
    }
    return NULL;
}

bool asi_network_image_is_wanted(const asi_network_image *image, const asi_ctl_subscription *subscription)
{
    return asi_ctl_subscription_matches_image(
        subscription, image->channel, image->image.stream_id, image->image.session_id);
}

/* A final padding frame arrives as a header only, so subscribers may be ahead of the received position, within its term. */
static asi_position_span span_of(const asi_network_image *image)
{
    const int64_t hwm = asi_load_acquire_i64(&image->image.hwm);
    return asi_subscribers_span(
        &image->subscribers, image->image.floor_position, asi_align_i64(hwm, image->image.log.term_length));
}

static int64_t join_position(const asi_network_image *image)
{
    const asi_position_span span = span_of(image);
    return span.min < image->image.rebuild_position ? span.min : image->image.rebuild_position;
}

static bool is_drained(const asi_network_image *image)
{
    return asi_subscribers_have_read(&image->subscribers, image->image.rebuild_position);
}

/* -- subscribers -------------------------------------------------------------------------------------------------------- */

void asi_network_image_link(asi_conductor *conductor, asi_network_image *image, asi_ctl_subscription *subscription)
{
    if (image->state > ASI_IMAGE_DRAINING || !asi_network_image_is_wanted(image, subscription) ||
        asi_subscribers_is_linked(&image->subscribers, subscription) ||
        !asi_subscribers_has_working(&image->subscribers) || (ASI_IMAGE_DRAINING == image->state && is_drained(image)))
    {
        return;
    }
    const as_result result = asi_subscribers_link(conductor, &image->subscribers, subscription, join_position(image));
    if (AS_OK != result)
    {
        asi_conductor_log_failure(conductor, result);
        return;
    }
    image->is_rejoin = subscription->is_rejoin;
    image->quiet_until_ns = INT64_MIN;
}

bool asi_network_image_unlink(asi_conductor *conductor, asi_network_image *image, const asi_ctl_subscription *subscription)
{
    image->quiet_until_ns = INT64_MIN;
    return asi_subscribers_unlink(conductor, &image->subscribers, subscription);
}

void asi_network_image_reject(asi_conductor *conductor, asi_network_image *image, const char *reason, int64_t reason_length)
{
    if ('\0' != image->image.rejection_reason[0])
    {
        return; /* keep the first reason: the receiver reads it from now on */
    }
    memcpy(image->image.rejection_reason, reason, (size_t)reason_length);
    const asi_receiver_command command = { .kind = ASI_RECEIVER_REJECT_IMAGE, .endpoint = &image->channel->endpoint,
        .image = &image->image };
    asi_network_to_receiver(conductor, &command);
}

/* -- each cycle ----------------------------------------------------------------------------------------------------------- */

/* Spec: 04 §19 - a gap that is reported again counts only the bytes by which it grew. */
static void report_loss(asi_conductor *conductor, asi_network_image *image, const asi_gap *gap)
{
    const int32_t end_offset = gap->term_offset + gap->length;
    const bool is_overlapping = AS_NULL_VALUE != image->loss_entry && gap->term_id == image->loss_term_id &&
        gap->term_offset < image->loss_end_offset;
    const int32_t bytes = is_overlapping ? end_offset - image->loss_end_offset : gap->length;
    if (image->is_loss_report_off || bytes <= 0)
    {
        return;
    }
    asi_loss_report *report = &conductor->network.loss_report;
    if (AS_NULL_VALUE == image->loss_entry)
    {
        const asi_loss_source source = { .session_id = image->image.session_id, .stream_id = image->image.stream_id,
            .channel = image->loss_channel, .source = image->source_identity };
        image->loss_entry = asi_loss_report_add(report, &source, bytes, conductor->now_ms);
        image->is_loss_report_off = AS_NULL_VALUE == image->loss_entry;
    }
    else
    {
        asi_loss_report_observe(report, image->loss_entry, bytes, conductor->now_ms);
    }
    image->loss_term_id = gap->term_id;
    image->loss_end_offset = end_offset;
}

static void change_state(asi_conductor *conductor, asi_network_image *image, asi_ctl_image_state state)
{
    AS_ASSERT(state == image->state + 1);
    image->quiet_until_ns = INT64_MIN;
    image->state = state;
    image->state_since_ns = conductor->now_ns;
}

static void start_eos_status(asi_network_image *image)
{
    asi_store_release_bool(&image->image.is_sending_eos_sm, true);
    asi_rx_image_schedule_sm_now(&image->image);
}

static bool is_at_end_of_stream(const asi_network_image *image)
{
    return asi_load_acquire_bool(&image->image.is_end_of_stream) &&
        image->image.rebuild_position >= asi_load_acquire_i64(&image->image.hwm);
}

/* True when subscribers have read everything and time alone changes nothing. Cubic windows grow with time. */
static bool can_be_quiet(const asi_network_image *image, const asi_position_span *span)
{
    return ASI_IMAGE_ACTIVE == image->state && span->min >= image->image.rebuild_position &&
        ASI_CONGESTION_STATIC == image->image.congestion.params.kind;
}

static bool is_quiet(const asi_conductor *conductor, const asi_network_image *image)
{
    return conductor->now_ns < image->quiet_until_ns &&
        asi_load_acquire_i64(&image->image.hwm) <= image->image.rebuild_position &&
        !asi_load_acquire_bool(&image->image.is_end_of_stream) && !asi_load_acquire_bool(&image->image.is_revoked);
}

/* Populates pages as data arrives: a host that can inject a forged stream must not make the driver populate a whole log with one
 * datagram. A log that is not sparse is populated ahead of the data, by PAGES_FOR_DATA. */
static int make_pages(asi_network_image *image)
{
    asi_log *log = &image->image.log;
    if (!asi_load_acquire_bool(&image->image.is_begun)) /* its position may be forged */
    {
        return 0;
    }
    const int64_t hwm = asi_load_acquire_i64(&image->image.hwm);
    const bool made = asi_log_page_ahead(log, hwm);
    const int64_t earned = PAGES_FOR_DATA * (hwm - join_position(image)) - image->populated;
    if (image->populated == log->map.length || earned <= 0)
    {
        return made;
    }
    if (!asi_log_populate(log, &image->populated, earned < PAGES_IN_CYCLE ? earned : PAGES_IN_CYCLE))
    {
        image->populated = log->map.length; /* no storage left */
    }
    return 1;
}

int asi_network_image_update(asi_conductor *conductor, asi_network_image *image)
{
    if (is_quiet(conductor, image))
    {
        return 0;
    }
    if (image->state > ASI_IMAGE_DRAINING || asi_load_acquire_bool(&image->image.is_revoked))
    {
        return 0;
    }
    const asi_position_span span = span_of(image);
    if (!span.has_working)
    {
        return 0;
    }
    int work = make_pages(image);
    bool found_loss = false;
    asi_gap published = { .length = 0 };
    work += asi_rx_image_rebuild(&image->image, span.max, conductor->now_ns, &found_loss, &published);
    if (published.length > 0)
    {
        report_loss(conductor, image, &published);
    }
    work += asi_rx_image_update_status(&image->image, span.min, found_loss, conductor->now_ns);
    /* Spec: 04 §23 rows 4 and 5 - notify the publisher of the end at once. */
    if (ASI_IMAGE_ACTIVE == image->state && is_at_end_of_stream(image))
    {
        start_eos_status(image);
        change_state(conductor, image, ASI_IMAGE_DRAINING);
        work++;
    }
    image->quiet_until_ns = can_be_quiet(image, &span) ? conductor->now_ns + QUIET_NS : INT64_MIN;
    return work;
}

/* -- life cycle, Spec: 04 §8.9 --------------------------------------------------------------------------------------------- */

static void check_tethers(asi_conductor *conductor, asi_network_image *image)
{
    const asi_position_span span = span_of(image);
    const int64_t window = image->image.next_sm_window;
    const asi_tether_rules rules = {
        .limit = span.max - window + window / 4,
        .floor = image->image.floor_position,
        .ceiling = INT64_MAX,
        .join_position = join_position(image),
        .timeouts = image->untethered
    };
    if (span.has_working)
    {
        asi_subscribers_check_tethers(conductor, &image->subscribers, &rules);
    }
}

static void on_active(asi_conductor *conductor, asi_network_image *image)
{
    const int64_t silent_ns = conductor->now_ns - asi_load_acquire_i64(&image->image.last_packet_ns);
    if (asi_load_acquire_bool(&image->image.is_revoked))
    {
        change_state(conductor, image, ASI_IMAGE_DRAINING);
    }
    else if (!asi_subscribers_has_working(&image->subscribers) ||
        silent_ns > conductor->settings->image_liveness_timeout_ns || is_at_end_of_stream(image) ||
        asi_load_acquire_bool(&image->image.is_left_behind))
    {
        start_eos_status(image);
        change_state(conductor, image, ASI_IMAGE_DRAINING);
    }
    else
    {
        check_tethers(conductor, image);
    }
}

static void end(asi_conductor *conductor, asi_network_image *image)
{
    asi_receive_channel *channel = image->channel;
    asi_receiver_command command = { .kind = ASI_RECEIVER_REMOVE_IMAGE, .endpoint = &channel->endpoint, .image = &image->image,
        .stream_id = image->image.stream_id, .session_id = image->image.session_id };
    asi_network_to_receiver(conductor, &command);
    if (image->is_rejoin)
    {
        command.kind = ASI_RECEIVER_CLEAR_COOL_DOWN;
        asi_network_to_receiver(conductor, &command);
    }
    asi_subscribers_withdraw(conductor, &image->subscribers);
    change_state(conductor, image, ASI_IMAGE_LINGER);
    image->channel = NULL;
    AS_ASSERT(channel->image_count > 0);
    channel->image_count--;
    asi_receive_channel_drop_if_unused(conductor, channel);
}

static void on_draining(asi_conductor *conductor, asi_network_image *image)
{
    const int64_t elapsed_ns = conductor->now_ns - image->state_since_ns;
    const int64_t liveness_ns = conductor->settings->image_liveness_timeout_ns;
    const int64_t status_ns = conductor->settings->status_message_timeout_ns;
    const int64_t least_ns = status_ns < liveness_ns / EOS_STATUS_MESSAGES ? EOS_STATUS_MESSAGES * status_ns : liveness_ns;
    if (asi_load_acquire_bool(&image->image.is_revoked))
    {
        asi_events_log(conductor->events, ASI_EVENT_PUBLICATION_IMAGE_REVOKE, "sessionId=%d streamId=%d source=%s",
            image->image.session_id, image->image.stream_id, image->source_identity);
        start_eos_status(image);
        end(conductor, image);
    }
    else if (elapsed_ns > least_ns && is_drained(image))
    {
        end(conductor, image);
    }
}

void asi_network_image_on_timer(asi_conductor *conductor, asi_network_image *image)
{
    switch (image->state)
    {
        case ASI_IMAGE_ACTIVE: on_active(conductor, image); break;
        case ASI_IMAGE_DRAINING: on_draining(conductor, image); break;
        case ASI_IMAGE_LINGER:
            if (!asi_subscribers_has_working(&image->subscribers) ||
                conductor->now_ns - image->state_since_ns > conductor->settings->image_liveness_timeout_ns)
            {
                change_state(conductor, image, ASI_IMAGE_DONE);
            }
            break;
        case ASI_IMAGE_DONE: break;
    }
}

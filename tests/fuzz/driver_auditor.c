/* See driver_auditor.h. */
#include "driver_auditor.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "check.h"
#include "driver/ctl/images.h"
#include "driver/ctl/network_publications.h"

#define RESEND_MARGIN_MAX (16 * 1024 * 1024) /* Spec: 04 §7.5 */
#define PAGE_LENGTH 4096

/* An image as it was at the last look. */
struct audited_image
{
    audited_image *next;
    int64_t correlation_id;
    int64_t acknowledged; /* last status message: data before it is dropped */
    int64_t rebuilt;
    int64_t hwm;
    int64_t zeroed;
    int64_t filled;
    int32_t page_count;
    uint8_t **pages;      /* owned copies of the terms' pages; NULL: zeros, or none yet */
    asi_log_metadata constants;
    bool is_there;
};

struct audited_publication
{
    audited_publication *next;
    int64_t registration_id;
    int64_t position;
    int64_t limit;   /* the highest */
    bool is_there;
};

void driver_auditor_open(driver_auditor *auditor, const as_driver *driver)
{
    *auditor = (driver_auditor){ .conductor = asi_driver_conductor(driver) };
}

static void *make(size_t length)
{
    void *made = calloc(1, length);
    CHECK(NULL != made);
    return made;
}

/* -- logs ------------------------------------------------------------------------------------------------------------------------- */

static uint8_t *byte_at(const asi_log *log, int64_t position)
{
    return log->terms[asi_log_index_of_position(position, log->position_bits)] + (position & (log->term_length - 1));
}

/* Bytes of one page are as they were, or zeros if they may be cleared. */
static bool is_unwritten(const audited_image *was, const asi_log *log, int64_t position, int64_t length, bool may_be_cleared)
{
    static const uint8_t zeros[PAGE_LENGTH];
    const uint8_t *now = byte_at(log, position);
    const uint8_t *page = was->pages[(now - log->terms[0]) / PAGE_LENGTH];
    const uint8_t *before = NULL == page ? zeros : page + (now - log->terms[0]) % PAGE_LENGTH;
    if (!asi_log_is_backed(log, now) || 0 == memcmp(now, before, (size_t)length))
    {
        return true; /* a page without storage is not read: reading would give it some */
    }
    bool is_so = may_be_cleared;
    for (int64_t i = 0; is_so && i < length; i++)
    {
        is_so = now[i] == before[i] || 0 == now[i];
    }
    return is_so;
}

static int64_t left_in_page(int64_t position, int64_t end)
{
    const int64_t left = PAGE_LENGTH - (position & (PAGE_LENGTH - 1));
    return left < end - position ? left : end - position;
}

static void check_bytes(const audited_image *was, const asi_log *log, int64_t from, int64_t to, bool may_be_cleared)
{
    for (int64_t at = from; at < to; at += left_in_page(at, to))
    {
        CHECK(is_unwritten(was, log, at, left_in_page(at, to), may_be_cleared));
    }
}

static void copy_bytes(audited_image *was, const asi_log *log, int64_t from, int64_t to)
{
    for (int64_t at = from; at < to; at += left_in_page(at, to))
    {
        const uint8_t *now = byte_at(log, at & ~(int64_t)(PAGE_LENGTH - 1));
        uint8_t **page = &was->pages[(now - log->terms[0]) / PAGE_LENGTH];
        if (asi_log_is_backed(log, now))
        {
            *page = NULL == *page ? make(PAGE_LENGTH) : *page;
            memcpy(*page, now, PAGE_LENGTH);
        }
    }
}

/* What only the driver writes, once, and what changes as the stream does. */
static asi_log_metadata constants_of(const asi_log *log)
{
    asi_log_metadata constants = *log->metadata;
    memset(&constants, 0, offsetof(asi_log_metadata, correlation_id));
    constants.is_publication_revoked = 0;
    return constants;
}

static void check_log(audited_image *was, const asi_rx_image *image, int64_t end)
{
    const asi_log *log = &image->log;
    const int64_t from = was->filled > was->acknowledged ? was->filled : was->acknowledged;
    const int64_t wrap = from + ASI_LOG_PARTITION_COUNT * (int64_t)log->term_length;
    const int64_t window_end = image->over_run_threshold < wrap ? image->over_run_threshold : wrap;
    const int64_t cleared_to = end + AS_FRAME_ALIGNMENT < wrap ? end + AS_FRAME_ALIGNMENT : wrap;
    const asi_log_metadata constants = constants_of(log);
    check_bytes(was, log, window_end, cleared_to, true);
    check_bytes(was, log, cleared_to, wrap, false);
    copy_bytes(was, log, from, cleared_to);
    CHECK(0 == memcmp(&was->constants, &constants, sizeof(constants)));
}

/* -- images ----------------------------------------------------------------------------------------------------------------------- */

static audited_image *find_image(driver_auditor *auditor, const asi_rx_image *image)
{
    for (audited_image *at = auditor->images; NULL != at; at = at->next)
    {
        if (at->correlation_id == image->correlation_id)
        {
            return at;
        }
    }
    audited_image *added = make(sizeof(*added));
    added->correlation_id = image->correlation_id;
    added->acknowledged = added->rebuilt = added->hwm = added->zeroed = image->join_position;
    added->page_count = (int32_t)(ASI_LOG_PARTITION_COUNT * (int64_t)image->log.term_length / PAGE_LENGTH);
    added->pages = make((size_t)added->page_count * sizeof(*added->pages));
    added->constants = constants_of(&image->log);
    added->next = auditor->images;
    auditor->images = added;
    return added;
}

static void check_positions(const audited_image *was, const asi_rx_image *image, int64_t end)
{
    const int32_t term_length = image->log.term_length;
    CHECK(image->last_sm_position >= was->acknowledged && image->rebuild_position >= was->rebuilt && image->hwm >= was->hwm);
    CHECK(image->zeroed_position >= was->zeroed && image->filled_position >= was->filled);
    CHECK(image->last_sm_position <= image->next_sm_position && image->next_sm_position <= image->rebuild_position);
    CHECK(image->over_run_threshold == image->last_sm_position + term_length / 2);
    CHECK(image->max_window <= term_length / 2 && image->next_sm_window >= 0 && image->next_sm_window <= image->max_window);
    CHECK(image->hwm <= end && image->filled_position <= end && image->zeroed_position <= end + AS_FRAME_ALIGNMENT);
    CHECK(image->rebuild_position <= asi_align_i64(image->hwm, term_length));
    CHECK(image->hwm == image->join_position || image->hwm + AS_FRAME_ALIGNMENT <= image->zeroed_position);
}

/* From what was rebuilt at the last look on, a term at most. */
static void check_frames(const audited_image *was, const asi_rx_image *image)
{
    const asi_log *log = &image->log;
    int64_t position = was->rebuilt;
    while (position < image->rebuild_position && image->rebuild_position - was->rebuilt <= log->term_length)
    {
        const asi_frame_header *frame = (const asi_frame_header *)(const void *)byte_at(log, position);
        const int64_t offset = position & (log->term_length - 1);
        CHECK(asi_log_is_backed(log, byte_at(log, position)) && frame->frame_length >= AS_FRAME_HEADER_LENGTH);
        CHECK(frame->term_offset == offset && offset + asi_frame_occupancy(frame->frame_length) <= log->term_length);
        CHECK(frame->term_id == asi_log_term_id_of_position(position, log->position_bits, log->initial_term_id));
        CHECK(frame->session_id == image->session_id && frame->stream_id == image->stream_id);
        position += asi_frame_occupancy(frame->frame_length);
    }
}

static void look_at_image(driver_auditor *auditor, const asi_network_image *whole)
{
    const asi_rx_image *image = &whole->image;
    audited_image *was = find_image(auditor, image);
    const int64_t end = asi_align_i64(image->over_run_threshold, image->log.term_length);
    was->is_there = true;
    CHECK(image->log.term_length <= auditor->conductor->settings->image_term_length_max);
    check_positions(was, image, end);
    check_frames(was, image);
    check_log(was, image, end);
    if (ASI_IMAGE_ACTIVE == whole->state)
    {
        CHECK_I64(*image->hwm_counter, image->hwm);
        CHECK_I64(*image->position_counter, image->rebuild_position);
    }
    was->acknowledged = image->last_sm_position;
    was->rebuilt = image->rebuild_position;
    was->hwm = image->hwm;
    was->zeroed = image->zeroed_position;
    was->filled = image->filled_position;
}

static void look_at_images(driver_auditor *auditor)
{
    const asi_list *images = &auditor->conductor->network.images;
    int64_t unbegun = 0;
    for (int32_t i = 0; i < images->count; i++)
    {
        const asi_network_image *image = images->items[i];
        int64_t of_stream = 0;
        for (int32_t k = 0; k < images->count; k++)
        {
            const asi_network_image *other = images->items[k];
            of_stream += ASI_IMAGE_ACTIVE == other->state && other->image.endpoint == image->image.endpoint &&
                other->image.stream_id == image->image.stream_id ? 1 : 0;
        }
        CHECK(ASI_IMAGE_ACTIVE != image->state || of_stream <= auditor->conductor->settings->stream_session_limit);
        unbegun += image->image.is_begun ? 0 : 1;
        look_at_image(auditor, image);
    }
    CHECK(unbegun <= auditor->conductor->settings->images_unbegun_max);
}

/* -- publications ----------------------------------------------------------------------------------------------------------------- */

static audited_publication *find_publication(driver_auditor *auditor, const asi_sender_publication *sender)
{
    for (audited_publication *at = auditor->publications; NULL != at; at = at->next)
    {
        if (at->registration_id == sender->registration_id)
        {
            return at;
        }
    }
    audited_publication *added = make(sizeof(*added));
    added->registration_id = sender->registration_id;
    added->position = sender->position;
    added->limit = sender->limit;
    added->next = auditor->publications;
    auditor->publications = added;
    return added;
}

static void check_resends(const asi_retransmit *retransmit)
{
    int32_t active = 0;
    for (int32_t i = 0; i < retransmit->capacity; i++)
    {
        const asi_resend *resend = &retransmit->resends[i];
        active += ASI_RESEND_INACTIVE == resend->state ? 0 : 1;
        CHECK(resend->term_offset >= 0 && resend->length >= 0 && resend->term_offset <= retransmit->term_length - resend->length);
        CHECK(resend->length <= retransmit->max_length && resend->length <= retransmit->window_length);
        CHECK(resend->done >= 0 && resend->done <= resend->length);
    }
    CHECK_I64(retransmit->active_count, active);
    CHECK(retransmit->window_length <= retransmit->term_length / 2);
}

static void look_at_publication(driver_auditor *auditor, const asi_network_publication *publication)
{
    const asi_sender_publication *sender = &publication->sender;
    const int64_t term_length = sender->log.term_length;
    audited_publication *was = find_publication(auditor, sender);
    was->is_there = true;
    was->limit = sender->limit > was->limit ? sender->limit : was->limit;
    CHECK(sender->position >= was->position && sender->position <= asi_align_i64(was->limit, (int32_t)term_length));
    CHECK(sender->limit <= sender->position + term_length); /* half a term of window, at most half a term ahead */
    const int64_t published = publication->producer_position > sender->position ? publication->producer_position : sender->position;
    CHECK(publication->limit <= published + publication->params.window_length);
    CHECK(publication->limit <= sender->zeroed_limit);
    CHECK(sender->fan_out.done <= sender->fan_out.slots && sender->cycle_bytes_left <= INT32_MAX);
    check_resends(&sender->retransmit);
    if (ASI_PUBLICATION_ACTIVE == publication->state)
    {
        CHECK_I64(*sender->position_counter, sender->position);
        CHECK_I64(*sender->limit_counter, sender->limit);
    }
    was->position = sender->position;
}

static void look_at_destinations(const asi_driver_settings *settings, const asi_destinations *destinations)
{
    int32_t used = 0;
    int32_t newcomers = 0;
    for (int32_t i = 0; i < destinations->capacity; i++)
    {
        const asi_destination *one = &destinations->items[i];
        int64_t of_host = 0;
        for (int32_t k = 0; one->is_used && k < destinations->capacity; k++)
        {
            const asi_destination *other = &destinations->items[k];
            of_host += other->is_used && other->is_proven && asi_address_same_host(&one->address, &other->address) ? 1 : 0;
        }
        used += one->is_used ? 1 : 0;
        newcomers += one->is_used && !one->is_proven ? 1 : 0;
        CHECK(!one->is_used || i < destinations->slot_count);
        CHECK(destinations->is_manual || of_host <= settings->destinations_per_address_max);
        CHECK(one->rounds_left >= 0 && one->rounds_left <= ASI_NEWCOMER_ROUNDS);
        CHECK(one->frames_left >= 0 && one->frames_left <= ASI_NEWCOMER_FRAMES);
    }
    CHECK(destinations->capacity <= settings->destinations_max);
    CHECK_I64(destinations->count, used);
    CHECK_I64(destinations->newcomer_count, newcomers);
    CHECK(newcomers <= ASI_NEWCOMERS_CAPACITY);
}

/* -- all of it -------------------------------------------------------------------------------------------------------------------- */

static void free_image(audited_image *image)
{
    for (int32_t i = 0; i < image->page_count; i++)
    {
        free(image->pages[i]);
    }
    free(image->pages);
    free(image);
}

/* What was not seen in this look is gone. */
static void forget(driver_auditor *auditor)
{
    for (audited_image **at = &auditor->images; NULL != *at;)
    {
        audited_image *image = *at;
        if (image->is_there)
        {
            image->is_there = false;
            at = &image->next;
            continue;
        }
        *at = image->next;
        free_image(image);
    }
    for (audited_publication **at = &auditor->publications; NULL != *at;)
    {
        audited_publication *publication = *at;
        if (publication->is_there)
        {
            publication->is_there = false;
            at = &publication->next;
            continue;
        }
        *at = publication->next;
        free(publication);
    }
}

void driver_auditor_look(driver_auditor *auditor)
{
    const asi_network *network = &auditor->conductor->network;
    look_at_images(auditor);
    for (int32_t i = 0; i < network->publications.count; i++)
    {
        look_at_publication(auditor, network->publications.items[i]);
    }
    for (int32_t i = 0; i < network->send_channels.count; i++)
    {
        const asi_send_channel *channel = network->send_channels.items[i];
        if (channel->sender.has_destinations)
        {
            look_at_destinations(auditor->conductor->settings, &channel->sender.destinations);
        }
    }
    forget(auditor);
}

void driver_auditor_close(driver_auditor *auditor)
{
    forget(auditor);
    *auditor = (driver_auditor){ 0 };
}

void driver_auditor_on_sent(const driver_auditor *auditor, const uint8_t *bytes, int32_t length)
{
    const asi_frame_header *frame = (const asi_frame_header *)(const void *)bytes;
    if (length < AS_FRAME_HEADER_LENGTH || (ASI_FRAME_DATA != frame->type && ASI_FRAME_PAD != frame->type) || 0 == frame->frame_length)
    {
        return;
    }
    const asi_list *publications = &auditor->conductor->network.publications;
    bool is_known = false;
    for (int32_t i = 0; i < publications->count; i++)
    {
        const asi_sender_publication *sender = publications->items[i];
        const asi_log *log = &sender->log;
        if (sender->session_id == frame->session_id && sender->stream_id == frame->stream_id)
        {
            const int64_t position =
                asi_log_position(frame->term_id, frame->term_offset, log->position_bits, log->initial_term_id);
            const int64_t margin = log->term_length / 8 < RESEND_MARGIN_MAX ? log->term_length / 8 : RESEND_MARGIN_MAX;
            const int64_t batch_end = sender->position + (sender->fan_out.slots > 0 ? sender->batch_length : 0);
            is_known |= position >= sender->position - log->term_length / 2 - margin &&
                position < (sender->limit > batch_end ? sender->limit : batch_end);
        }
    }
    CHECK(is_known);
}

/* Polls one image, or all images of a subscription. Spec: 02 §10.
 *
 * The polling thread is the only writer of the subscriber position. A poll never leaves the term in which it began.
 * term/frame_walk steps over the frames and checks their lengths, because other processes write the log. The polls of images
 * and of subscriptions share a file, so that the compiler makes one function of the usual poll: a subscription with one
 * image. */
#include "client/poll.h"

#include <errno.h>
#include <inttypes.h>

#include "client/image.h"
#include "client/subscription.h"
#include "term/frame_walk.h"

#define HEADERS_AHEAD 8 /* frames of a block often have one length; without this each header is a cache miss */
#define ALWAYS_INLINE __attribute__((always_inline)) static inline

/* -- one image ---------------------------------------------------------------------------------------------------------- */

/* The part of a term that a poll reads. */
typedef struct poll_range
{
    int64_t position;      /* where the poll begins */
    int64_t term_position; /* position of the term's first byte */
    asi_frame_walk walk;
} poll_range;

ALWAYS_INLINE poll_range start_poll(const as_image *image, int64_t limit_position)
{
    const int64_t position = asi_load_relaxed_i64(&image->position);
    const int64_t offset = position & (image->term_length - 1);
    const int64_t term_position = position - offset;
    const int64_t bound = INT64_MAX == limit_position ? INT64_MAX : limit_position - term_position;
    return (poll_range){
        .position = position,
        .term_position = term_position,
        .walk = asi_frame_walk_start(image->terms[asi_log_index_of_position(position, image->position_bits)], offset,
            bound < image->term_length ? bound : image->term_length, image->term_length),
    };
}

ALWAYS_INLINE asi_walk_step next_frame(const as_image *image, poll_range *range)
{
    const asi_walk_step step = asi_frame_walk_next(&range->walk);
    if (ASI_WALK_FRAME == step &&
        !asi_client_image_has_frame(image, range->walk.frame, range->term_position + range->walk.frame_offset))
    {
        range->walk.offset = range->walk.frame_offset;
        return ASI_WALK_END; /* the conductor is about to close the image */
    }
    return step;
}

/* Copies field by field, with loads that the compiler does not merge. Within one thread a frame is read just after it was
 * written, and a wide load would stall until the narrower stores have left the store buffer. */
ALWAYS_INLINE void fill_header(as_header *header, const as_image *image, const poll_range *range)
{
    const asi_frame_header *frame = range->walk.frame;
    header->frame = (const uint8_t *)frame;
    header->position = range->term_position + range->walk.offset;
    header->reserved_value = asi_load_relaxed_i64(&frame->reserved_value);
    header->session_id = asi_load_relaxed_i32(&frame->session_id);
    header->stream_id = asi_load_relaxed_i32(&frame->stream_id);
    header->term_id = asi_load_relaxed_i32(&frame->term_id);
    header->term_offset = asi_load_relaxed_i32(&frame->term_offset);
    header->initial_term_id = image->initial_term_id;
    header->flags = frame->flags;
    header->image = (as_image *)(uintptr_t)image;
}

__attribute__((cold, noinline)) static as_result fail_broken(const as_image *image, int64_t position)
{
    return asi_fail(AS_E_DATA, 0,
        "broken frame at position %" PRId64 " of session %d, stream %d (%s), its publisher has written an invalid length",
        position, image->session_id, image->stream_id, image->source_identity);
}

/* A poll within a poll would hand the same frames out, and the outer one would set the position back. */
ALWAYS_INLINE bool begin_poll(as_image *image)
{
    if (!asi_client_image_can_poll(image) || asi_load_relaxed_bool(&image->is_polled))
    {
        return false;
    }
    asi_store_relaxed_bool(&image->is_polled, true);
    return true;
}

ALWAYS_INLINE void end_poll(as_image *image, int64_t from, int64_t to)
{
    if (to > from)
    {
        asi_client_image_advance(image, to);
    }
    asi_store_relaxed_bool(&image->is_polled, false);
}

static inline as_result check_poll(const void *handler, int64_t limit)
{
    return __builtin_expect(NULL == handler || limit <= 0, 0) ?
        asi_fail(AS_E_USAGE, EINVAL, "a poll needs a handler and a positive limit") : AS_OK;
}

/* The caller has checked the arguments. */
ALWAYS_INLINE int64_t poll_image(
    as_image *image, as_fragment_handler handler, void *context, int64_t limit_position, int64_t limit)
{
    if (!begin_poll(image))
    {
        return asi_client_image_refuse_poll(image);
    }
    poll_range range = start_poll(image, limit_position);
    asi_walk_step step;
    int64_t fragments = 0;
    do
    {
        step = next_frame(image, &range);
        if (ASI_WALK_FRAME != step)
        {
            break;
        }
        if (asi_frame_is_padding(range.walk.frame))
        {
            continue;
        }
        as_header header;
        fill_header(&header, image, &range);
        fragments++;
        handler(context, header.frame + AS_FRAME_HEADER_LENGTH, range.walk.frame_length - AS_FRAME_HEADER_LENGTH,
            &header);
    } while (fragments < limit && asi_client_image_is_open(image));
    end_poll(image, range.position, range.term_position + range.walk.offset);
    const bool is_broken = ASI_WALK_BROKEN == step && 0 == fragments;
    return is_broken ? (int64_t)fail_broken(image, range.term_position + range.walk.offset) : fragments;
}

int64_t as_image_bounded_poll(
    as_image *image, as_fragment_handler handler, void *context, int64_t limit_position, int64_t limit)
{
    const as_result result = check_poll((const void *)handler, limit);
    return AS_OK == result ? poll_image(image, handler, context, limit_position, limit) : (int64_t)result;
}

int64_t as_image_poll(as_image *image, as_fragment_handler handler, void *context, int64_t limit)
{
    const as_result result = check_poll((const void *)handler, limit);
    return AS_OK == result ? poll_image(image, handler, context, INT64_MAX, limit) : (int64_t)result;
}

/* The caller has checked the arguments. */
ALWAYS_INLINE int64_t controlled_poll_image(
    as_image *image, as_controlled_handler handler, void *context, int64_t limit_position, int64_t limit)
{
    if (!begin_poll(image))
    {
        return asi_client_image_refuse_poll(image);
    }
    poll_range range = start_poll(image, limit_position);
    asi_walk_step step;
    as_action action = AS_ACTION_CONTINUE;
    int64_t fragments = 0;
    do
    {
        step = next_frame(image, &range);
        if (ASI_WALK_FRAME != step)
        {
            break;
        }
        if (asi_frame_is_padding(range.walk.frame))
        {
            continue;
        }
        as_header header;
        fill_header(&header, image, &range);
        action = handler(context, header.frame + AS_FRAME_HEADER_LENGTH, range.walk.frame_length - AS_FRAME_HEADER_LENGTH,
            &header);
        if (AS_ACTION_ABORT == action)
        {
            range.walk.offset = range.walk.frame_offset;
            break;
        }
        fragments++;
        if (AS_ACTION_COMMIT == action)
        {
            range.position = range.term_position + range.walk.offset;
            asi_client_image_advance(image, range.position);
        }
    } while (fragments < limit && AS_ACTION_BREAK != action && asi_client_image_is_open(image));
    end_poll(image, range.position, range.term_position + range.walk.offset);
    const bool is_broken = ASI_WALK_BROKEN == step && 0 == fragments;
    return is_broken ? (int64_t)fail_broken(image, range.term_position + range.walk.offset) : fragments;
}

int64_t as_image_bounded_controlled_poll(
    as_image *image, as_controlled_handler handler, void *context, int64_t limit_position, int64_t limit)
{
    const as_result result = check_poll((const void *)handler, limit);
    return AS_OK == result ? controlled_poll_image(image, handler, context, limit_position, limit) : (int64_t)result;
}

int64_t as_image_controlled_poll(as_image *image, as_controlled_handler handler, void *context, int64_t limit)
{
    return as_image_bounded_controlled_poll(image, handler, context, INT64_MAX, limit);
}

int64_t as_image_block_poll(as_image *image, as_block_handler handler, void *context, int64_t limit_bytes)
{
    const as_result result = check_poll((const void *)handler, limit_bytes);
    if (AS_OK != result || !begin_poll(image))
    {
        return AS_OK != result ? result : asi_client_image_refuse_poll(image);
    }
    poll_range range = start_poll(image, INT64_MAX);
    const int64_t begin = range.walk.offset;
    const int64_t left_in_term = image->term_length - begin;
    const int64_t bound = begin + (limit_bytes < left_in_term ? limit_bytes : left_in_term);
    const asi_frame_header *first = NULL;
    int64_t end = begin;
    asi_walk_step step;
    while (ASI_WALK_FRAME == (step = asi_frame_walk_next(&range.walk)))
    {
        const bool is_padding = asi_frame_is_padding(range.walk.frame);
        /* Spec: 02 §10.1 - padding is a block of its own, and then the limit does not count. */
        if (is_padding ? end > begin : range.walk.offset > bound)
        {
            break;
        }
        __builtin_prefetch((const void *)((uintptr_t)range.walk.frame + HEADERS_AHEAD * (uintptr_t)(range.walk.offset - end)));
        first = NULL == first ? range.walk.frame : first;
        end = range.walk.offset;
        if (is_padding)
        {
            break;
        }
    }
    asi_fence_acquire();
    const bool has_block = NULL != first && asi_client_image_has_frame(image, first, range.position);
    if (has_block)
    {
        handler(context, (const uint8_t *)first, end - begin, image->session_id, first->term_id);
    }
    end_poll(image, range.position, has_block ? range.term_position + end : range.position);
    const bool is_broken = ASI_WALK_BROKEN == step && NULL == first;
    return is_broken ? (int64_t)fail_broken(image, range.term_position + range.walk.offset) : has_block ? end - begin : 0;
}

/* -- all images --------------------------------------------------------------------------------------------------------- */

as_result asi_client_subscription_refuse_poll(as_subscription *subscription)
{
    if (asi_load_acquire_bool(&subscription->is_closed))
    {
        return asi_client_subscription_fail_closed(subscription);
    }
    return asi_fail(AS_E_USAGE, 0, "subscription of %s, stream %d is polled by another thread or from its own handler",
        subscription->channel, subscription->stream_id);
}

static inline uint32_t start_index(as_subscription *subscription, const asi_client_image_list *list)
{
    /* Spec: 02 §10.2 - round robin: each poll starts with another image. */
    const uint32_t index = subscription->round_robin++;
    if (index < (uint32_t)list->count)
    {
        return index;
    }
    subscription->round_robin = 1;
    return 0;
}

__attribute__((noinline)) static int64_t poll_several(as_subscription *subscription, const asi_client_image_list *list,
    as_fragment_handler handler, as_controlled_handler controlled, void *context, int64_t limit)
{
    const uint32_t count = (uint32_t)list->count;
    const uint32_t start = start_index(subscription, list);
    int64_t fragments = 0;
    as_result failure = AS_OK;
    for (uint32_t i = 0; i < count && fragments < limit; i++)
    {
        as_image *image = list->images[start + i < count ? start + i : start + i - count];
        const int64_t delivered = NULL == controlled ? as_image_poll(image, handler, context, limit - fragments) :
            as_image_controlled_poll(image, controlled, context, limit - fragments);
        if (delivered < 0)
        {
            failure = (as_result)delivered; /* the other images continue */
            continue;
        }
        fragments += delivered;
    }
    return 0 == fragments ? (int64_t)failure : fragments;
}

/* `controlled` or `handler` is NULL; the compiler sees which, because this is inlined. Most subscriptions have one image. */
ALWAYS_INLINE int64_t poll_all(
    as_subscription *subscription, as_fragment_handler handler, as_controlled_handler controlled, void *context, int64_t limit)
{
    const asi_client_image_list *list = asi_client_subscription_poll_begin(subscription);
    if (__builtin_expect(NULL == list, 0))
    {
        return asi_client_subscription_refuse_poll(subscription);
    }
    const int32_t count = list->count;
    int64_t fragments = 0;
    if (__builtin_expect(1 == count, 1))
    {
        fragments = NULL == controlled ? poll_image(list->images[0], handler, context, INT64_MAX, limit) :
            controlled_poll_image(list->images[0], controlled, context, INT64_MAX, limit);
    }
    else if (count > 1)
    {
        fragments = poll_several(subscription, list, handler, controlled, context, limit);
    }
    asi_client_subscription_poll_end(subscription);
    return fragments;
}

int64_t as_subscription_poll(as_subscription *subscription, as_fragment_handler handler, void *context, int64_t limit)
{
    const as_result result = check_poll((const void *)handler, limit);
    return AS_OK == result ? poll_all(subscription, handler, NULL, context, limit) : (int64_t)result;
}

int64_t as_subscription_controlled_poll(
    as_subscription *subscription, as_controlled_handler handler, void *context, int64_t limit)
{
    const as_result result = check_poll((const void *)handler, limit);
    return AS_OK == result ? poll_all(subscription, NULL, handler, context, limit) : (int64_t)result;
}

int64_t as_subscription_block_poll(as_subscription *subscription, as_block_handler handler, void *context, int64_t limit_bytes)
{
    const as_result result = check_poll((const void *)handler, limit_bytes);
    if (AS_OK != result)
    {
        return result;
    }
    const asi_client_image_list *list = asi_client_subscription_poll_begin(subscription);
    if (NULL == list)
    {
        return asi_client_subscription_refuse_poll(subscription);
    }
    int64_t bytes = 0;
    as_result failure = AS_OK;
    /* Spec: 02 §10.2 - every image is visited with the full limit. */
    for (int32_t i = 0; i < list->count; i++)
    {
        const int64_t consumed = as_image_block_poll(list->images[i], handler, context, limit_bytes);
        failure = consumed < 0 ? (as_result)consumed : failure;
        bytes += consumed > 0 ? consumed : 0;
    }
    asi_client_subscription_poll_end(subscription);
    return 0 == bytes ? (int64_t)failure : bytes;
}

/* Lifetime and state of images. poll.c reads their frames. Spec: 02 §10. */
#include "client/image.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -- lifetime; under the lock ------------------------------------------------------------------------------------------- */

as_result asi_client_image_create(as_subscription *subscription, const asi_rsp_available_image *available, const char *path,
    const char *source_identity, as_image **image)
{
    as_client *client = subscription->client;
    if (available->subscriber_position_id < 0 || available->subscriber_position_id >= client->counters.max_count)
    {
        return asi_fail(AS_E_DATA, 0, "the driver announced an image with position counter %d, ids are 0 to %d",
            available->subscriber_position_id, client->counters.max_count - 1);
    }
    int64_t *position = asi_counter_addr(&client->counters, available->subscriber_position_id);
    const int64_t join_position = asi_load_acquire_i64(position);
    if (join_position < 0 || 0 != (join_position & (AS_FRAME_ALIGNMENT - 1)))
    {
        return asi_fail(AS_E_DATA, 0, "the driver announced an image that begins at position %" PRId64 ", no frame does",
            join_position);
    }
    as_image *fresh = calloc(1, sizeof(*fresh));
    char *identity = strdup(source_identity);
    as_result result = NULL == fresh || NULL == identity ? asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for an image") :
        asi_log_cache_acquire(&client->logs, available->image_correlation_id, path, &fresh->log);
    if (AS_OK != result)
    {
        free(fresh);
        free(identity);
        return result;
    }
    const asi_log *log = &fresh->log->log;
    memcpy(fresh->terms, log->terms, sizeof(fresh->terms));
    fresh->metadata = log->metadata;
    fresh->subscriber_position = position;
    fresh->position_registration_id = asi_counter_registration(position);
    fresh->term_length = log->term_length;
    fresh->position_bits = log->position_bits;
    fresh->initial_term_id = log->initial_term_id;
    fresh->mtu_length = log->mtu_length;
    fresh->session_id = available->session_id;
    fresh->stream_id = available->stream_id;
    fresh->subscriber_position_id = available->subscriber_position_id;
    fresh->correlation_id = available->image_correlation_id;
    fresh->subscription_registration_id = subscription->registration_id;
    fresh->join_position = join_position;
    fresh->position = join_position;
    fresh->flow_position = join_position;
    fresh->is_network = 0 != strcmp(source_identity, ASI_IPC_SOURCE_IDENTITY);
    fresh->client = client;
    fresh->source_identity = identity;
    fresh->final_end_of_stream_position = INT64_MAX;
    fresh->reference_count = 1;
    fresh->watch_count = 1;
    *image = fresh;
    return AS_OK;
}

void asi_client_image_close(as_image *image)
{
    if (image->is_closed)
    {
        return;
    }
    image->final_end_of_stream_position = asi_load_acquire_i64(&image->metadata->end_of_stream_position);
    image->final_is_revoked = 1 == asi_load_acquire_u8(&image->metadata->is_publication_revoked);
    asi_store_release_bool(&image->is_closed, true);
}

void asi_client_image_free(as_image *image)
{
    asi_client_image_unwatch(image);
}

as_image *asi_client_image_watch(as_image *image)
{
    if (NULL != image)
    {
        asi_fetch_add_i32(&image->watch_count, 1);
    }
    return image;
}

void asi_client_image_unwatch(as_image *image)
{
    if (NULL != image && 1 == asi_fetch_add_i32(&image->watch_count, -1))
    {
        free(image->source_identity);
        free(image);
    }
}

as_image *as_image_retain(as_image *image)
{
    asi_fetch_add_i32(&image->reference_count, 1);
    return image;
}

void as_image_release(as_image *image)
{
    /* The conductor holds one reference while the client lives, so this frees only an image that outlived its client. */
    if (NULL != image && 1 == asi_fetch_add_i32(&image->reference_count, -1))
    {
        asi_client_image_free(image);
    }
}

/* -- state -------------------------------------------------------------------------------------------------------------- */

void as_image_get_constants(const as_image *image, as_image_constants *constants)
{
    *constants = (as_image_constants){
        .source_identity = image->source_identity,
        .correlation_id = image->correlation_id,
        .join_position = image->join_position,
        .subscription_registration_id = image->subscription_registration_id,
        .session_id = image->session_id,
        .stream_id = image->stream_id,
        .initial_term_id = image->initial_term_id,
        .term_length = image->term_length,
        .mtu_length = image->mtu_length,
        .subscriber_position_id = image->subscriber_position_id,
    };
}

bool as_image_is_closed(const as_image *image)
{
    return !asi_client_image_is_open(image);
}

int64_t as_image_position(const as_image *image)
{
    const int64_t position = asi_load_acquire_i64(&image->position);
    const int64_t flow_position = asi_load_acquire_i64(&image->flow_position);
    const bool is_cut_off = position < flow_position && !asi_client_image_is_open(image) &&
        flow_position >= image->final_end_of_stream_position;
    return is_cut_off ? flow_position : position; /* passes a message that the end of the stream cut off */
}

int64_t as_image_flow_position(const as_image *image)
{
    return asi_load_acquire_i64(&image->flow_position);
}

__attribute__((cold, noinline)) as_result asi_client_image_refuse_poll(const as_image *image)
{
    return !asi_client_image_can_poll(image) ? AS_OK :
        asi_fail(AS_E_USAGE, 0, "image of session %d, stream %d is polled by another thread or from its own handler",
            image->session_id, image->stream_id);
}

as_result as_image_set_position(as_image *image, int64_t position)
{
    if (!asi_client_image_can_poll(image))
    {
        return asi_fail(AS_E_CLOSED, 0, "image of session %d, stream %d is closed", image->session_id, image->stream_id);
    }
    if (asi_load_relaxed_bool(&image->is_polled))
    {
        return asi_client_image_refuse_poll(image); /* the poll would set the position back */
    }
    const int64_t current = asi_load_relaxed_i64(&image->position);
    const int64_t end_of_term = (current & ~(int64_t)(image->term_length - 1)) + image->term_length;
    if (position < current || position > end_of_term || 0 != (position & (AS_FRAME_ALIGNMENT - 1)))
    {
        return asi_fail(AS_E_USAGE, EINVAL,
            "position %" PRId64 " is no multiple of 32 from the current %" PRId64 " to the end of its term %" PRId64, position,
            current, end_of_term);
    }
    asi_client_image_advance(image, position);
    return AS_OK;
}

int64_t as_image_end_of_stream_position(const as_image *image)
{
    return asi_client_image_is_open(image) ? asi_load_acquire_i64(&image->metadata->end_of_stream_position) :
        image->final_end_of_stream_position;
}

bool as_image_is_end_of_stream(const as_image *image)
{
    return as_image_position(image) >= as_image_end_of_stream_position(image);
}

bool as_image_is_publication_revoked(const as_image *image)
{
    return asi_client_image_is_open(image) ? 1 == asi_load_acquire_u8(&image->metadata->is_publication_revoked) :
        image->final_is_revoked;
}

int32_t as_image_active_transport_count(const as_image *image)
{
    return asi_client_image_is_open(image) ? asi_load_acquire_i32(&image->metadata->active_transport_count) : 0;
}

bool as_image_has_data(const as_image *image)
{
    if (!asi_client_image_can_poll(image))
    {
        return false;
    }
    const int64_t position = asi_load_relaxed_i64(&image->position);
    const uint8_t *term = image->terms[asi_log_index_of_position(position, image->position_bits)];
    const uint8_t *frame = term + (position & (image->term_length - 1));
    return asi_load_acquire_i32(&((const asi_frame_header *)(const void *)frame)->frame_length) > 0;
}

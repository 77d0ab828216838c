/* Subscriptions: the list of images, and its replacement while a thread polls (poll.c). Spec: 02 §10, 03 §15.6-15.7.
 *
 * The conductor replaces the list as a whole. It keeps old lists and removed images until no thread can be reading them. The
 * polling thread makes poll_sequence odd, executes a fence and reads the list; at its end it makes the sequence even
 * (release). The conductor stores the new list, executes a fence and reads the sequence. One of the two fences comes first.
 * If it is the conductor's, the poll sees the new list. If it is the poll's, the conductor sees an odd sequence and frees
 * nothing that it retired until the sequence has changed. Without the fences both could miss each other, and a poll would
 * read freed memory. Polls are frequent and replacements rare, so the conductor executes both fences (asi_fence_for_all). If
 * the kernel does not support that, each poll executes its own. Images are also kept for the linger time, because handlers
 * have received their pointers. */
#include "client/subscription.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/counter_rows.h"
#include "client/image.h"
#include "client/lock.h"
#include "client/request.h"
#include "client/waiting_images.h"

#define CHANNEL_ACTIVE 1

/* -- lists, under the lock ---------------------------------------------------------------------------------------------- */

static asi_client_image_list *new_list(int32_t count)
{
    asi_client_image_list *list = calloc(1, sizeof(*list) + sizeof(list->images[0]) * (size_t)count);
    if (NULL != list)
    {
        list->count = count;
    }
    return list;
}

static int64_t read_sequence(as_subscription *subscription)
{
    if (subscription->fences_for_all)
    {
        asi_fence_for_all();
    }
    else
    {
        asi_fence_full();
    }
    return asi_load_acquire_i64(&subscription->poll_sequence);
}

static bool has_poll_passed(const as_subscription *subscription, int64_t retired_sequence)
{
    const int64_t sequence = asi_load_acquire_i64(&subscription->poll_sequence);
    return 0 == (retired_sequence & 1) || sequence != retired_sequence;
}

/* Returns the sequence that was read. Whatever only the old list references is retired with it. */
static int64_t replace_list(as_subscription *subscription, asi_client_image_list *list)
{
    asi_client_image_list *old = subscription->image_list;
    asi_store_release_ptr(&subscription->image_list, list);
    asi_store_release_i32(&subscription->image_count, list->count);
    old->retired_sequence = read_sequence(subscription);
    old->next_retired = subscription->retired_lists;
    subscription->retired_lists = old;
    return old->retired_sequence;
}

static void retire_image(as_client *client, as_subscription *subscription, as_image *image, int64_t retired_sequence)
{
    image->retired_from = subscription;
    image->retired_sequence = retired_sequence;
    image->free_at_ns = asi_clock_ns(&client->clock) + client->options.resource_linger_ns;
    image->next = client->retired_images;
    client->retired_images = image;
}

as_result asi_client_subscription_create(as_client *client, asi_request *request, int32_t channel_status_counter_id)
{
    as_subscription *subscription = aligned_alloc(ASI_CACHE_LINE, (size_t)asi_align_i64(sizeof(*subscription), ASI_CACHE_LINE));
    asi_client_image_list *list = new_list(0);
    if (NULL == subscription || NULL == list)
    {
        free(subscription);
        free(list);
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a subscription");
    }
    *subscription = (as_subscription){
        .client = client,
        .channel = request->channel,
        .registration_id = request->correlation_id,
        .stream_id = request->stream_id,
        .channel_status_counter_id = channel_status_counter_id,
        .on_available = request->on_available,
        .on_unavailable = request->on_unavailable,
        .image_context = request->image_context,
        .image_list = list,
        .highest_image_id = INT64_MIN,
        .fences_for_all = client->fences_for_all,
        .next = client->subscriptions,
    };
    request->channel = NULL;
    client->subscriptions = subscription;
    asi_request_done(request, subscription, 0);
    return AS_OK;
}

/* Drivers count their ids, so an id above all others is new. A look at each of thousands of images would take a millisecond. */
static bool has_image(const as_subscription *subscription, int64_t correlation_id)
{
    const asi_client_image_list *list = subscription->image_list;
    bool found = false;
    for (int32_t i = 0; correlation_id <= subscription->highest_image_id && !found && i < list->count; i++)
    {
        found = list->images[i]->correlation_id == correlation_id;
    }
    return found;
}

as_result asi_client_subscription_add_image(
    as_subscription *subscription, const asi_rsp_available_image *available, const char *path, const char *source_identity)
{
    const asi_client_image_list *old = subscription->image_list;
    if (has_image(subscription, available->image_correlation_id))
    {
        return AS_OK;
    }
    asi_client_image_list *list = new_list(old->count + 1);
    if (NULL == list)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for an image");
    }
    as_image *image;
    const as_result result = asi_client_image_create(subscription, available, path, source_identity, &image);
    if (AS_OK != result)
    {
        free(list);
        return result;
    }
    memcpy(list->images, old->images, sizeof(old->images[0]) * (size_t)old->count);
    list->images[old->count] = image;
    replace_list(subscription, list);
    subscription->highest_image_id =
        image->correlation_id > subscription->highest_image_id ? image->correlation_id : subscription->highest_image_id;
    if (NULL != subscription->on_available)
    {
        subscription->on_available(subscription->image_context, subscription, image);
    }
    return AS_OK;
}

static void end_image(as_subscription *subscription, as_image *image, int64_t retired_sequence)
{
    asi_client_image_close(image);
    if (NULL != subscription->on_unavailable)
    {
        subscription->on_unavailable(subscription->image_context, subscription, image);
    }
    retire_image(subscription->client, subscription, image, retired_sequence);
}

void asi_client_subscription_remove_image(as_subscription *subscription, int64_t correlation_id)
{
    const asi_client_image_list *old = subscription->image_list;
    int32_t index = 0;
    while (index < old->count && old->images[index]->correlation_id != correlation_id)
    {
        index++;
    }
    if (index == old->count)
    {
        return;
    }
    as_image *image = old->images[index];
    asi_client_image_list *list = new_list(old->count - 1);
    if (NULL == list)
    {
        /* If there is no memory for a shorter list, the closed image stays in the list and polls skip it. */
        asi_client_image_close(image);
        return;
    }
    memcpy(list->images, old->images, sizeof(old->images[0]) * (size_t)index);
    memcpy(list->images + index, old->images + index + 1, sizeof(old->images[0]) * (size_t)(old->count - index - 1));
    end_image(subscription, image, replace_list(subscription, list));
}

void asi_client_subscription_terminate(as_subscription *subscription)
{
    asi_store_release_bool(&subscription->is_closed, true);
    asi_waiting_images_drop(subscription, AS_NULL_VALUE);
    asi_client_image_list *old = subscription->image_list;
    asi_client_image_list *empty = new_list(0);
    const int64_t retired_sequence = NULL != empty ? replace_list(subscription, empty) : 0;
    for (int32_t i = 0; i < old->count; i++)
    {
        if (NULL != empty)
        {
            end_image(subscription, old->images[i], retired_sequence);
        }
        else
        {
            asi_client_image_close(old->images[i]);
        }
    }
}

/* No thread polls the subscription any more. It lists images only after an allocation failure; they are freed as with the
   client. */
void asi_client_subscription_free(as_subscription *subscription)
{
    asi_client_image_list *list = subscription->image_list;
    for (int32_t i = 0; i < list->count; i++)
    {
        as_image_release(list->images[i]);
    }
    free(list);
    while (NULL != subscription->retired_lists)
    {
        asi_client_image_list *retired = subscription->retired_lists;
        subscription->retired_lists = retired->next_retired;
        free(retired);
    }
    free(subscription->channel);
    free(subscription);
}

int asi_client_subscription_sweep(as_client *client, int64_t now_ns)
{
    int freed = 0;
    for (as_image **link = &client->retired_images; NULL != *link;)
    {
        as_image *image = *link;
        const bool is_polled =
            NULL != image->retired_from && !has_poll_passed(image->retired_from, image->retired_sequence);
        if (now_ns < image->free_at_ns || is_polled || asi_load_acquire_i32(&image->reference_count) > 1)
        {
            link = &image->next;
            continue;
        }
        *link = image->next;
        asi_log_cache_release(image->log, now_ns);
        asi_client_image_free(image);
        freed++;
    }
    for (as_subscription *at = client->subscriptions; NULL != at; at = at->next)
    {
        for (asi_client_image_list **link = &at->retired_lists; NULL != *link;)
        {
            asi_client_image_list *list = *link;
            if (!has_poll_passed(at, list->retired_sequence))
            {
                link = &list->next_retired;
                continue;
            }
            *link = list->next_retired;
            free(list);
            freed++;
        }
    }
    return freed;
}

void as_subscription_close(as_subscription *subscription)
{
    if (NULL == subscription || AS_OK != asi_client_lock(subscription->client))
    {
        return;
    }
    as_client *client = subscription->client;
    for (as_subscription **link = &client->subscriptions; NULL != *link; link = &(*link)->next)
    {
        if (*link != subscription)
        {
            continue;
        }
        if (!subscription->is_closed)
        {
            asi_client_subscription_terminate(subscription);
        }
        *link = subscription->next;
        asi_client_send_remove(client, ASI_CMD_REMOVE_SUBSCRIPTION, subscription->registration_id, 0);
        for (as_image *image = client->retired_images; NULL != image; image = image->next)
        {
            image->retired_from = image->retired_from == subscription ? NULL : image->retired_from;
        }
        asi_client_subscription_free(subscription);
        break;
    }
    asi_client_unlock(client);
}

/* -- state -------------------------------------------------------------------------------------------------------------- */

void as_subscription_get_constants(const as_subscription *subscription, as_subscription_constants *constants)
{
    *constants = (as_subscription_constants){
        .channel = subscription->channel,
        .registration_id = subscription->registration_id,
        .stream_id = subscription->stream_id,
        .channel_status_counter_id = subscription->channel_status_counter_id,
    };
}

int32_t as_subscription_image_count(const as_subscription *subscription)
{
    return asi_load_acquire_i32(&subscription->image_count);
}

bool as_subscription_is_connected(const as_subscription *subscription)
{
    return as_subscription_image_count(subscription) > 0;
}

bool as_subscription_is_closed(const as_subscription *subscription)
{
    return asi_load_acquire_bool(&subscription->is_closed);
}

int64_t as_subscription_channel_status(const as_subscription *subscription)
{
    return as_subscription_is_closed(subscription) ? AS_NULL_VALUE :
        asi_channel_status(subscription->client, subscription->channel_status_counter_id);
}

/* Runs under the lock. Takes it, unless the caller is a handler that already holds it. */
static as_image *retain_first(
    as_subscription *subscription, bool (*matches)(const as_image *image, int32_t index, int32_t wanted), int32_t wanted)
{
    const bool is_locked_here = AS_OK == asi_client_lock(subscription->client);
    const asi_client_image_list *list = subscription->image_list;
    as_image *found = NULL;
    for (int32_t i = 0; i < list->count && NULL == found; i++)
    {
        found = matches(list->images[i], i, wanted) ? as_image_retain(list->images[i]) : NULL;
    }
    if (is_locked_here)
    {
        asi_client_unlock(subscription->client);
    }
    return found;
}

static bool is_at(const as_image *image, int32_t index, int32_t wanted)
{
    (void)image;
    return index == wanted;
}

static bool has_session(const as_image *image, int32_t index, int32_t wanted)
{
    (void)index;
    return image->session_id == wanted;
}

as_image *as_subscription_image_at(as_subscription *subscription, int32_t index)
{
    return retain_first(subscription, is_at, index);
}

as_image *as_subscription_image_by_session(as_subscription *subscription, int32_t session_id)
{
    return retain_first(subscription, has_session, session_id);
}

as_result asi_client_subscription_fail_closed(const as_subscription *subscription)
{
    return asi_load_acquire_bool(&subscription->client->is_closed) ? asi_client_fail_closed(subscription->client) :
        asi_fail(AS_E_CLOSED, 0, "subscription of %s, stream %d is closed", subscription->channel, subscription->stream_id);
}

/* Key of a local address counter: 0 i32 channel status counter id, 4 i32 length, 8 address. Spec: 01 §5.4. */
as_result as_subscription_resolved_endpoint(const as_subscription *subscription, char *endpoint, int64_t capacity)
{
    if (as_subscription_is_closed(subscription))
    {
        return asi_client_subscription_fail_closed(subscription);
    }
    const asi_counters *counters = &subscription->client->counters;
    for (int32_t id = 0; id < counters->max_count; id++)
    {
        const int32_t state = asi_counter_state(counters, id);
        const asi_counter_metadata *metadata = &counters->metadata[id];
        if (ASI_COUNTER_UNUSED == state)
        {
            break; /* ids are allocated in order: all ids from here on are unused */
        }
        if (ASI_COUNTER_ALLOCATED != state || ASI_COUNTER_TYPE_LOCAL_SOCKADDR != metadata->type_id ||
            asi_get_i32(metadata->key) != subscription->channel_status_counter_id ||
            CHANNEL_ACTIVE != asi_load_acquire_i64(asi_counter_addr(counters, id)))
        {
            continue;
        }
        const int32_t length = asi_get_i32(metadata->key + sizeof(int32_t));
        if (length <= 0 || length > (int32_t)(ASI_COUNTER_KEY_CAPACITY - 2 * sizeof(int32_t)))
        {
            continue; /* a socket that is not bound yet */
        }
        if (length >= capacity)
        {
            return asi_fail(AS_E_USAGE, 0, "the endpoint has %d bytes, there is room for %" PRId64, length, capacity);
        }
        memcpy(endpoint, metadata->key + 2 * sizeof(int32_t), (size_t)length);
        endpoint[length] = '\0';
        return AS_OK;
    }
    return AS_AGAIN;
}

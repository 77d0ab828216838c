/* Handles the conductor's commands to the receiver: adding and returning resources. Spec: 04 §8; lifetimes in
 * receiver_command.h. */
#include "driver/rx/receiver_commands.h"

#include <stdio.h>

#include "base/atomic.h"
#include "driver/rx/receiver_report.h"
#include "driver/rx/receiver_send.h"

static as_result fail_full(const char *what, int32_t capacity)
{
    return asi_fail(AS_E_STORAGE, 0, "the receiver has no room for another %s: it holds %d", what, capacity);
}

/* Requests SETUPs at an explicit control address, now and every second. Spec: 04 §8.3. */
static void start_periodic_setup(
    asi_receiver *receiver, asi_receive_endpoint *endpoint, asi_receive_destination *destination)
{
    if (!destination->has_explicit_control)
    {
        return;
    }
    const asi_pending_setup pending = {
        .endpoint = endpoint, .destination = destination, .is_periodic = true, .since_ns = receiver->now_ns
    };
    if (!asi_receiver_add_pending(receiver, &pending, &destination->control_address))
    {
        asi_receiver_report(receiver, fail_full("pending setup", ASI_PENDING_SETUP_CAPACITY));
    }
}

static void clear_session(asi_receiver *receiver, const asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id,
    asi_session_state expected)
{
    asi_session *session = asi_dispatch_find(&receiver->dispatch, endpoint, stream_id, session_id);
    if (NULL != session && expected == (asi_session_state)session->state)
    {
        asi_dispatch_set_state(&receiver->dispatch, session, ASI_SESSION_NONE, NULL);
    }
}

/* A session requested through a removed destination may be requested again through another one. */
static void drop_pending(asi_receiver *receiver, const asi_receive_endpoint *endpoint, const asi_receive_destination *destination)
{
    for (int32_t i = receiver->pending_count - 1; i >= 0; i--)
    {
        const asi_pending_setup *pending = &receiver->pending[i];
        if (pending->endpoint == endpoint && (NULL == destination || pending->destination == destination))
        {
            if (!pending->is_periodic)
            {
                clear_session(
                    receiver, endpoint, pending->stream_id, pending->session_id, ASI_SESSION_PENDING_SETUP);
            }
            receiver->pending[i] = receiver->pending[--receiver->pending_count];
        }
    }
}

static void take_destination(
    asi_receiver *receiver, asi_receive_endpoint *endpoint, asi_receive_destination *destination)
{
    destination->endpoint = endpoint;
    asi_udp_poller_add(&receiver->poller, receiver->params.ops, destination->socket, destination);
    start_periodic_setup(receiver, endpoint, destination);
}

/* The receiver's last access. */
static void release_destination(asi_receiver *receiver, asi_receive_destination *destination)
{
    if (NULL != destination->endpoint)
    {
        asi_udp_poller_remove(&receiver->poller, receiver->params.ops, destination->socket);
    }
    asi_store_release_bool(&destination->is_released, true);
}

static void on_add_endpoint(asi_receiver *receiver, asi_receive_endpoint *endpoint)
{
    if (ASI_RECEIVER_MAX_ENDPOINTS == receiver->endpoint_count)
    {
        asi_receiver_report(receiver, fail_full("endpoint", ASI_RECEIVER_MAX_ENDPOINTS));
        return;
    }
    receiver->endpoints[receiver->endpoint_count++] = endpoint;
    for (int32_t i = 0; i < endpoint->destination_count; i++)
    {
        take_destination(receiver, endpoint, endpoint->destinations[i]);
    }
}

static void on_remove_endpoint(asi_receiver *receiver, asi_receive_endpoint *endpoint)
{
    asi_dispatch_remove_endpoint(&receiver->dispatch, endpoint);
    drop_pending(receiver, endpoint, NULL);
    for (int32_t i = receiver->endpoint_count - 1; i >= 0; i--)
    {
        if (receiver->endpoints[i] == endpoint)
        {
            receiver->endpoints[i] = receiver->endpoints[--receiver->endpoint_count];
        }
    }
    for (int32_t i = 0; i < endpoint->destination_count; i++)
    {
        release_destination(receiver, endpoint->destinations[i]);
    }
    asi_store_release_bool(&endpoint->is_released, true);
}

static void on_add_destination(
    asi_receiver *receiver, asi_receive_endpoint *endpoint, asi_receive_destination *destination)
{
    if (ASI_ENDPOINT_MAX_DESTINATIONS == endpoint->destination_count)
    {
        asi_receiver_report(receiver, fail_full("destination of one subscription", ASI_ENDPOINT_MAX_DESTINATIONS));
        return;
    }
    endpoint->destinations[endpoint->destination_count++] = destination;
    for (int32_t i = 0; i < receiver->image_count; i++)
    {
        if (receiver->images[i]->endpoint == endpoint)
        {
            asi_rx_image_add_connection(receiver->images[i], destination, receiver->now_ns);
        }
    }
    take_destination(receiver, endpoint, destination);
}

static void on_remove_destination(
    asi_receiver *receiver, asi_receive_endpoint *endpoint, asi_receive_destination *destination)
{
    for (int32_t i = endpoint->destination_count - 1; i >= 0; i--)
    {
        if (endpoint->destinations[i] == destination)
        {
            endpoint->destinations[i] = endpoint->destinations[--endpoint->destination_count];
        }
    }
    for (int32_t i = 0; i < receiver->image_count; i++)
    {
        if (receiver->images[i]->endpoint == endpoint)
        {
            asi_rx_image_remove_connection(receiver->images[i], destination, receiver->now_ns);
        }
    }
    drop_pending(receiver, endpoint, destination);
    release_destination(receiver, destination);
}

/* Sends one more SM with session and stream to each explicit control address. Spec: 04 §8.3, §14. */
static void request_setup(asi_receiver *receiver, const asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id)
{
    for (int32_t i = 0; i < endpoint->destination_count; i++)
    {
        const asi_receive_destination *destination = endpoint->destinations[i];
        if (destination->has_explicit_control)
        {
            asi_receiver_send_setup_request(
                receiver, endpoint, destination, stream_id, session_id, &destination->control_address);
        }
    }
}

static void on_add_interest(asi_receiver *receiver, const asi_receiver_command *command)
{
    const bool is_session = ASI_RECEIVER_ADD_SESSION == command->kind;
    const as_result result = is_session ?
        asi_dispatch_add_session(&receiver->dispatch, command->endpoint, command->stream_id, command->session_id) :
        asi_dispatch_add_stream(&receiver->dispatch, command->endpoint, command->stream_id);
    if (AS_OK != result)
    {
        asi_receiver_report(receiver, result);
    }
    else if (is_session)
    {
        request_setup(receiver, command->endpoint, command->stream_id, command->session_id);
    }
}

static void on_add_image(asi_receiver *receiver, asi_rx_image *image)
{
    asi_session *session =
        asi_dispatch_get_or_add(&receiver->dispatch, image->endpoint, image->stream_id, image->session_id);
    if (NULL != session) /* otherwise all interest is gone; the conductor will notice it as well */
    {
        asi_dispatch_set_state(&receiver->dispatch, session, ASI_SESSION_ACTIVE, image);
    }
    if (ASI_RECEIVER_MAX_IMAGES == receiver->image_count)
    {
        asi_receiver_report(receiver, fail_full("image", ASI_RECEIVER_MAX_IMAGES));
        return;
    }
    image->list_index = receiver->image_count;
    receiver->images[receiver->image_count++] = image;
}

static void on_challenge(asi_receiver *receiver, const asi_receiver_command *command)
{
    const asi_proof_subject subject =
        { .source = &command->address, .stream_id = command->stream_id, .session_id = command->session_id };
    clear_session(receiver, command->endpoint, command->stream_id, command->session_id, ASI_SESSION_INIT_IN_PROGRESS);
    asi_receiver_challenge(receiver, command->endpoint, command->destination, &subject);
}

static void on_remove_image(asi_receiver *receiver, asi_rx_image *image)
{
    asi_session *session =
        asi_dispatch_find(&receiver->dispatch, image->endpoint, image->stream_id, image->session_id);
    if (NULL != session && session->image == image) /* Spec: 04 §8.9.2 */
    {
        asi_dispatch_set_state(
            &receiver->dispatch, session, image->is_end_of_stream ? ASI_SESSION_NONE : ASI_SESSION_COOL_DOWN, NULL);
    }
    asi_round_robin_remove(&receiver->schedule, image);
    if (image->list_index >= 0)
    {
        asi_rx_image *last = receiver->images[--receiver->image_count];
        receiver->images[image->list_index] = last;
        last->list_index = image->list_index;
    }
    asi_store_release_bool(&image->is_released, true);
}

void asi_receiver_on_command(asi_receiver *receiver, const asi_receiver_command *command)
{
    switch (command->kind)
    {
        case ASI_RECEIVER_ADD_ENDPOINT:
            on_add_endpoint(receiver, command->endpoint);
            break;
        case ASI_RECEIVER_REMOVE_ENDPOINT:
            on_remove_endpoint(receiver, command->endpoint);
            break;
        case ASI_RECEIVER_ADD_DESTINATION:
            on_add_destination(receiver, command->endpoint, command->destination);
            break;
        case ASI_RECEIVER_REMOVE_DESTINATION:
            on_remove_destination(receiver, command->endpoint, command->destination);
            break;
        case ASI_RECEIVER_ADD_STREAM:
        case ASI_RECEIVER_ADD_SESSION:
            on_add_interest(receiver, command);
            break;
        case ASI_RECEIVER_REMOVE_STREAM:
            asi_dispatch_remove_stream(&receiver->dispatch, command->endpoint, command->stream_id);
            break;
        case ASI_RECEIVER_REMOVE_SESSION:
            asi_dispatch_remove_session(&receiver->dispatch, command->endpoint, command->stream_id, command->session_id);
            break;
        case ASI_RECEIVER_REQUEST_SETUP:
            request_setup(receiver, command->endpoint, command->stream_id, command->session_id);
            break;
        case ASI_RECEIVER_ADD_IMAGE:
            on_add_image(receiver, command->image);
            break;
        case ASI_RECEIVER_REMOVE_IMAGE:
            on_remove_image(receiver, command->image);
            break;
        case ASI_RECEIVER_CLEAR_INIT:
            clear_session(receiver, command->endpoint, command->stream_id, command->session_id, ASI_SESSION_INIT_IN_PROGRESS);
            break;
        case ASI_RECEIVER_CHALLENGE:
            on_challenge(receiver, command);
            break;
        case ASI_RECEIVER_CLEAR_COOL_DOWN:
            clear_session(receiver, command->endpoint, command->stream_id, command->session_id, ASI_SESSION_COOL_DOWN);
            break;
        case ASI_RECEIVER_REJECT_IMAGE:
            command->image->is_rejected = true;
            break;
        case ASI_RECEIVER_CONTROL_MOVED:
            command->destination->control_address = command->address;
            break;
    }
}

/* See on_agent_command.h. */
#include "driver/ctl/on_agent_command.h"

#include "driver/ctl/agent_queues.h"
#include "driver/ctl/endpoints.h"
#include "driver/ctl/images.h"
#include "driver/ctl/images_open.h"
#include "driver/ctl/network_subscriptions.h"
#include "driver/ctl/receive_channels.h"
#include "driver/ctl/report.h"
#include "driver/ctl/respond.h"
#include "driver/ctl/send_channels.h"

/* Spec: 04 §15.3. */
static void on_publication_error(asi_conductor *conductor, const asi_command_publication_error *command)
{
    if (!asi_peer_budget_takes(&conductor->peer_publication_errors, conductor->now_ns))
    {
        return; /* counted as a frame */
    }
    const asi_ctl_publication_error error = {
        .registration_id = command->registration_id,
        .destination_id = command->destination_id,
        .session_id = command->session_id,
        .stream_id = command->stream_id,
        .receiver_id = command->receiver_id,
        .group_tag = command->group_tag,
        .source = command->source,
        .error_code = command->error_code,
        .text = command->text,
        .text_length = command->text_length
    };
    asi_respond_publication_error(conductor, &error);
}

/* Spec: 04 §14 step 8 - the request's image no longer needs to announce the response. */
static void on_response_connected(asi_conductor *conductor, const asi_command_response *command)
{
    asi_network_image *image = asi_network_image_find(conductor, command->response_correlation_id);
    if (NULL != image)
    {
        asi_store_release_i64(&image->image.response_session_id, ASI_NO_RESPONSE_SESSION);
    }
}

/* -- re-resolution, Spec: 04 §16 ------------------------------------------------------------------------------------------ */

/* True when `name` now has a different address from `current`. */
static bool resolve(
    asi_conductor *conductor, const char *name, const char *param, const asi_address *current, asi_address *address)
{
    const as_result result = asi_address_resolve(&conductor->network.resolver, name, param, true, address);
    if (AS_OK != result)
    {
        asi_conductor_log_failure(conductor, result);
        return false;
    }
    if (asi_address_equal(current, address))
    {
        return false;
    }
    asi_conductor_count(conductor, ASI_SYSTEM_RESOLUTION_CHANGES, 1);
    return true;
}

static void on_resolve_send_endpoint(asi_conductor *conductor, const asi_command_resolve *command)
{
    asi_send_channel *channel = asi_send_channel_by_id(conductor, command->endpoint_id);
    asi_sender_command moved = { .kind = ASI_SENDER_ENDPOINT_MOVED };
    const char *endpoint = NULL == channel ? NULL : asi_uri_get(&channel->channel->uri, "endpoint");
    if (NULL != endpoint && resolve(conductor, endpoint, "endpoint", &command->current, &moved.address))
    {
        moved.endpoint = &channel->sender;
        asi_network_to_sender(conductor, &moved);
    }
}

static void on_resolve_send_destination(asi_conductor *conductor, const asi_command_resolve *command)
{
    asi_send_channel *channel = asi_send_channel_by_id(conductor, command->endpoint_id);
    for (int32_t i = 0; NULL != channel && i < channel->destinations.count; i++)
    {
        asi_send_destination *destination = channel->destinations.items[i];
        asi_sender_command moved = { .kind = ASI_SENDER_DESTINATION_MOVED, .endpoint = &channel->sender,
            .destination_id = destination->registration_id };
        if (command->destination_id == destination->registration_id &&
            resolve(conductor, destination->endpoint, "endpoint", &command->current, &moved.address))
        {
            destination->address = moved.address;
            asi_network_to_sender(conductor, &moved);
        }
    }
}

static void on_resolve_control(asi_conductor *conductor, const asi_command_resolve *command)
{
    asi_receive_channel *channel = asi_receive_channel_by_id(conductor, command->endpoint_id);
    asi_receive_transport *transport =
        NULL == channel ? NULL : asi_receive_transport_by_id(channel, command->destination_id);
    asi_receiver_command moved = { .kind = ASI_RECEIVER_CONTROL_MOVED };
    const char *control = NULL == transport ? NULL : asi_uri_get(&transport->channel->uri, "control");
    if (NULL != control && resolve(conductor, control, "control", &command->current, &moved.address))
    {
        moved.endpoint = &channel->endpoint;
        moved.destination = &transport->destination;
        asi_network_to_receiver(conductor, &moved);
    }
}

void asi_on_agent_command(asi_conductor *conductor, const asi_conductor_command *command)
{
    switch (command->kind)
    {
        case ASI_CONDUCTOR_CREATE_IMAGE: asi_network_image_create(conductor, &command->create_image); break;
        case ASI_CONDUCTOR_PUBLICATION_ERROR: on_publication_error(conductor, &command->publication_error); break;
        case ASI_CONDUCTOR_ERROR:
            asi_conductor_log_peer_failure(conductor, asi_fail_again((as_result)command->error.result, command->error.code,
                command->error.is_errno, command->error.text));
            break;
        case ASI_CONDUCTOR_RESPONSE_SETUP: asi_network_subscription_on_response(conductor, &command->response); break;
        case ASI_CONDUCTOR_RESPONSE_CONNECTED: on_response_connected(conductor, &command->response); break;
        case ASI_CONDUCTOR_RESOLVE_SEND_ENDPOINT: on_resolve_send_endpoint(conductor, &command->resolve); break;
        case ASI_CONDUCTOR_RESOLVE_SEND_DESTINATION: on_resolve_send_destination(conductor, &command->resolve); break;
        case ASI_CONDUCTOR_RESOLVE_CONTROL: on_resolve_control(conductor, &command->resolve); break;
    }
}

/* PersistentSubscription: from a request to a replay, for the three kinds of replay channels. See persistent_state.h.
 * Spec: 08 §16.2, 07 §11. */
#include "client/persistent_replay.h"

void asi_persistent_set_up_replay(as_persistent_subscription *self)
{
    self->replay_session_id = AS_NULL_VALUE;
    self->replay_token = AS_NULL_VALUE;
    self->next_query_position = AS_NULL_VALUE;
    asi_persistent_enter(self, ASI_REPLAY_SESSION_SPECIFIC == self->replay_kind ? AS_PERSISTENT_SEND_REPLAY_REQUEST :
        AS_PERSISTENT_ADD_REPLAY_SUBSCRIPTION);
    self->deadline_ns = asi_persistent_now(self) + self->timeout_ns;
}

/* Returns to a state that can retry. */
static void start_over(as_persistent_subscription *self)
{
    asi_persistent_drop_replay(self);
    if (asi_persistent_is_linked(self))
    {
        asi_persistent_set_up_replay(self);
    }
    else
    {
        asi_persistent_enter(self, AS_PERSISTENT_AWAIT_ARCHIVE_CONNECTION);
    }
}

/* -- the replay request --------------------------------------------------------------------------------------------------------------- */

/* Sends on the publication whose correlation id identifies the replay's target. AS_AGAIN: not connected, or back-pressured. */
static as_result start_by_token(as_persistent_subscription *self, asi_codec_request *request)
{
    if (!as_publication_is_connected(self->requests))
    {
        return AS_AGAIN;
    }
    request->replay_token = self->replay_token;
    const as_result result = asi_call_start_on(&self->call, &self->session, self->requests, request, NULL);
    return AS_E_CLOSED == result ? AS_AGAIN : result;
}

int64_t asi_persistent_send_replay(as_persistent_subscription *self)
{
    if (!asi_persistent_is_linked(self))
    {
        start_over(self);
        return 0;
    }
    asi_uri_builder resolved;
    const char *channel = self->options.replay_channel;
    as_result result = AS_OK;
    if (ASI_REPLAY_DYNAMIC_PORT == self->replay_kind)
    {
        result = asi_connect_resolved_channel(self->replay, &resolved);
        channel = resolved.text;
    }
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_REPLAY);
    request.recording_id = self->options.recording_id;
    request.position = self->position;
    request.length = AS_NULL_VALUE;
    request.stream_id = self->options.replay_stream_id;
    request.channel = asi_codec_text(channel);
    if (AS_OK == result)
    {
        result = ASI_REPLAY_RESPONSE_CHANNEL == self->replay_kind ? start_by_token(self, &request) :
            asi_call_start(&self->call, &self->session, &request, NULL);
    }
    if (AS_OK == result)
    {
        asi_persistent_enter(self, AS_PERSISTENT_AWAIT_REPLAY_RESPONSE);
    }
    else if (result < 0 && asi_persistent_is_linked(self) && !self->session.is_lost)
    {
        asi_persistent_fail(self, AS_PERSISTENT_GENERIC, result);
    }
    else if (asi_persistent_now(self) >= self->deadline_ns)
    {
        start_over(self);
    }
    return 0;
}

static void fail_replay(as_persistent_subscription *self)
{
    const asi_call_answer *answer = &self->call.answer;
    const as_persistent_failure reason = ASI_CODEC_E_INVALID_POSITION == answer->relevant_id ?
        AS_PERSISTENT_INVALID_START_POSITION : ASI_CODEC_E_UNKNOWN_RECORDING == answer->relevant_id ?
        AS_PERSISTENT_RECORDING_NOT_FOUND : AS_PERSISTENT_GENERIC;
    asi_persistent_fail(self, reason,
        asi_fail(AS_E_PEER, (int32_t)answer->relevant_id, "replay request failed: %s", answer->text));
}

int64_t asi_persistent_await_replay_response(as_persistent_subscription *self)
{
    const as_result result = asi_call_check(&self->call);
    if (AS_AGAIN == result)
    {
        return 0;
    }
    if (AS_OK != result)
    {
        start_over(self);
        return 0;
    }
    if (ASI_CODEC_OK != self->call.answer.code)
    {
        fail_replay(self);
        return 0;
    }
    self->replay_session_id = self->call.answer.relevant_id;
    self->deadline_ns = asi_persistent_now(self) + self->timeout_ns;
    asi_persistent_enter(self, ASI_REPLAY_SESSION_SPECIFIC == self->replay_kind ? AS_PERSISTENT_ADD_REPLAY_SUBSCRIPTION :
        AS_PERSISTENT_REPLAY);
    return 0;
}

/* -- the replay subscription ------------------------------------------------------------------------------------------------------------ */

int64_t asi_persistent_add_replay(as_persistent_subscription *self)
{
    asi_uri_builder builder;
    const char *channel = self->options.replay_channel;
    as_result result = AS_OK;
    if (ASI_REPLAY_SESSION_SPECIFIC == self->replay_kind)
    {
        result = asi_connect_put_session(channel, (int32_t)(uint32_t)(uint64_t)self->replay_session_id, &builder);
        channel = builder.text;
    }
    if (AS_OK == result)
    {
        result = as_client_async_add_subscription(
            self->aeron, channel, self->options.replay_stream_id, NULL, NULL, NULL, &self->driver_request);
    }
    if (AS_OK == result)
    {
        asi_persistent_enter(self, AS_PERSISTENT_AWAIT_REPLAY_SUBSCRIPTION);
    }
    else if (AS_E_TIMEOUT != result) /* the driver's ring is full: retried at the next poll */
    {
        asi_persistent_fail(self, AS_PERSISTENT_GENERIC, result);
    }
    return 0;
}

/* Handles a request that the driver refused. */
static void on_refused(as_persistent_subscription *self, as_result result)
{
    if (asi_persistent_is_temporary(result))
    {
        asi_persistent_report(self, result);
        start_over(self);
    }
    else
    {
        asi_persistent_fail(self, AS_PERSISTENT_GENERIC, result);
    }
}

int64_t asi_persistent_await_replay_subscription(as_persistent_subscription *self)
{
    const as_result result = as_client_poll_subscription(self->aeron, self->driver_request, &self->replay);
    if (AS_AGAIN == result)
    {
        return 0;
    }
    self->driver_request = AS_NULL_VALUE;
    if (AS_OK != result)
    {
        on_refused(self, asi_fail_in(result, "replay channel %s", self->options.replay_channel));
        return 0;
    }
    self->deadline_ns = asi_persistent_now(self) + self->timeout_ns;
    switch (self->replay_kind)
    {
        case ASI_REPLAY_SESSION_SPECIFIC:
            asi_persistent_enter(self, AS_PERSISTENT_REPLAY);
            break;
        case ASI_REPLAY_DYNAMIC_PORT:
            asi_persistent_enter(self, AS_PERSISTENT_AWAIT_REPLAY_CHANNEL_ENDPOINT);
            break;
        case ASI_REPLAY_RESPONSE_CHANNEL:
            asi_persistent_enter(self, AS_PERSISTENT_ADD_REQUEST_PUBLICATION);
            break;
    }
    return 0;
}

int64_t asi_persistent_await_endpoint(as_persistent_subscription *self)
{
    asi_uri_builder resolved;
    /* A response channel needs no resolved port: it is enough that the socket is bound. */
    const as_result result = ASI_REPLAY_DYNAMIC_PORT == self->replay_kind ?
        asi_connect_resolved_channel(self->replay, &resolved) :
        1 == as_subscription_channel_status(self->replay) ? AS_OK : AS_AGAIN;
    if (AS_OK == result)
    {
        asi_persistent_enter(self, AS_PERSISTENT_SEND_REPLAY_REQUEST);
        self->deadline_ns = asi_persistent_now(self) + self->timeout_ns;
    }
    else if (result < 0)
    {
        asi_persistent_fail(self, AS_PERSISTENT_GENERIC, result);
    }
    return 0;
}

/* -- response channels -------------------------------------------------------------------------------------------------------------------- */

int64_t asi_persistent_add_requests(as_persistent_subscription *self)
{
    if (!asi_persistent_is_linked(self))
    {
        start_over(self);
        return 0;
    }
    as_subscription_constants constants;
    as_subscription_get_constants(self->replay, &constants);
    asi_uri_builder channel;
    as_result result = asi_connect_replay_requests(&self->session, constants.registration_id, &channel);
    if (AS_OK == result)
    {
        result = as_client_async_add_exclusive_publication(
            self->aeron, channel.text, self->options.archive.control_stream_id, &self->driver_request);
    }
    if (AS_OK == result)
    {
        asi_persistent_enter(self, AS_PERSISTENT_AWAIT_REQUEST_PUBLICATION);
    }
    else if (AS_E_TIMEOUT != result)
    {
        asi_persistent_fail(self, AS_PERSISTENT_GENERIC, result);
    }
    return 0;
}

int64_t asi_persistent_await_requests(as_persistent_subscription *self)
{
    const as_result result = as_client_poll_publication(self->aeron, self->driver_request, &self->requests);
    if (AS_AGAIN == result)
    {
        return 0;
    }
    self->driver_request = AS_NULL_VALUE;
    if (AS_OK != result)
    {
        on_refused(self, asi_fail_in(result, "request publication of the replay"));
        return 0;
    }
    asi_persistent_enter(self, AS_PERSISTENT_SEND_REPLAY_TOKEN_REQUEST);
    return 0;
}

int64_t asi_persistent_send_token(as_persistent_subscription *self)
{
    if (!asi_persistent_is_linked(self))
    {
        start_over(self);
        return 0;
    }
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_REPLAY_TOKEN);
    request.recording_id = self->options.recording_id;
    /* A token is valid only for the archive's connect timeout, so it is requested once it can be used. */
    if (as_publication_is_connected(self->requests) &&
        AS_OK == asi_call_start(&self->call, &self->session, &request, NULL))
    {
        asi_persistent_enter(self, AS_PERSISTENT_AWAIT_REPLAY_TOKEN);
    }
    else if (asi_persistent_now(self) >= self->deadline_ns)
    {
        start_over(self);
    }
    return 0;
}

int64_t asi_persistent_await_token(as_persistent_subscription *self)
{
    as_result result = asi_call_check(&self->call);
    if (AS_AGAIN == result)
    {
        return 0;
    }
    if (AS_OK != result)
    {
        start_over(self);
        return 0;
    }
    result = asi_call_value(&self->call, &self->replay_token);
    if (AS_OK != result)
    {
        asi_persistent_fail(self, AS_PERSISTENT_GENERIC, result);
        return 0;
    }
    as_subscription_constants constants;
    as_subscription_get_constants(self->replay, &constants);
    const bool is_ipc = AS_NULL_VALUE == constants.channel_status_counter_id;
    asi_persistent_enter(
        self, is_ipc ? AS_PERSISTENT_SEND_REPLAY_REQUEST : AS_PERSISTENT_AWAIT_REPLAY_CHANNEL_ENDPOINT);
    self->deadline_ns = asi_persistent_now(self) + self->timeout_ns;
    return 0;
}

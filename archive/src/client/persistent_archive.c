/* PersistentSubscription: its archive session and the recording's descriptor. See persistent_state.h.
 * Spec: 08 §16.2-16.3, §16.8. */
#include "client/persistent_archive.h"

#include <inttypes.h>

#include "client/persistent_replay.h"

/* -- the session ------------------------------------------------------------------------------------------------------------------ */

/* Drops requests in flight and the archive's earlier answers, which are invalid without the session; the live stream continues.
 * Spec: 08 §16.8. */
static void on_disconnected(as_persistent_subscription *self)
{
    asi_call_end(&self->call);
    switch (self->state)
    {
        case AS_PERSISTENT_AWAIT_ARCHIVE_CONNECTION:
        case AS_PERSISTENT_ATTEMPT_SWITCH:
        case AS_PERSISTENT_LIVE:
        case AS_PERSISTENT_FAILED:
            return;
        default:
            break;
    }
    if (NULL != self->replay_image)
    {
        self->position = as_image_position(self->replay_image);
    }
    self->replay_session_id = AS_NULL_VALUE; /* no session is left to stop it */
    asi_persistent_drop_replay(self);
    asi_persistent_drop_live(self);
    asi_persistent_enter(self, AS_PERSISTENT_AWAIT_ARCHIVE_CONNECTION);
}

static void start_link(as_persistent_subscription *self)
{
    const as_result result =
        asi_archive_client_prepare(&self->session, &self->options.archive, self->aeron, &self->clock);
    if (AS_OK != result)
    {
        asi_persistent_fail(self, AS_PERSISTENT_GENERIC, result);
        return;
    }
    asi_connect_start(&self->connect, &self->session, &self->options.archive);
    self->link = ASI_LINK_CONNECTING;
}

static void step_connecting(as_persistent_subscription *self)
{
    const as_result result = asi_connect_step(&self->connect);
    if (AS_OK == result)
    {
        self->link = ASI_LINK_CONNECTED;
    }
    else if (AS_AGAIN != result)
    {
        asi_persistent_report(self, result);
        self->link = ASI_LINK_SETTLING;
    }
}

static void step_settling(as_persistent_subscription *self)
{
    if (asi_connect_is_settled(&self->connect))
    {
        asi_connect_close(&self->session);
        self->link = ASI_LINK_IDLE;
    }
}

static void step_connected(as_persistent_subscription *self)
{
    as_result result = asi_client_session_poll(&self->session);
    if (AS_OK == result && 0 == self->session.handled)
    {
        result = asi_client_session_check_connected(&self->session);
    }
    if (AS_E_DATA == result)
    {
        asi_persistent_report(self, result);
    }
    if (AS_OK != result)
    {
        /* Ends the session's objects first, so that the listener finds none of them when it is notified of the loss. */
        asi_connect_close(&self->session);
        self->link = ASI_LINK_IDLE;
        on_disconnected(self);
    }
}

void asi_persistent_link_work(as_persistent_subscription *self)
{
    if (as_client_is_closed(self->aeron))
    {
        asi_persistent_fail(self, AS_PERSISTENT_GENERIC, asi_fail(AS_E_CLOSED, 0, "the Aeron client in %s is closed, its driver "
            "may be gone: open a new one, then a new persistent subscription from position %" PRId64,
            as_client_aeron_dir(self->aeron), as_persistent_subscription_position(self)));
        return;
    }
    switch (self->link)
    {
        case ASI_LINK_IDLE:
            start_link(self);
            break;
        case ASI_LINK_CONNECTING:
            step_connecting(self);
            break;
        case ASI_LINK_CONNECTED:
            step_connected(self);
            break;
        case ASI_LINK_SETTLING:
            step_settling(self);
            break;
    }
}

/* -- the descriptor ----------------------------------------------------------------------------------------------------------------- */

int64_t asi_persistent_await_archive(as_persistent_subscription *self)
{
    if (asi_persistent_is_linked(self))
    {
        asi_persistent_enter(self, AS_PERSISTENT_SEND_LIST_RECORDING_REQUEST);
    }
    return 0;
}

static bool on_recording(void *context, const as_recording *recording)
{
    as_persistent_subscription *self = context;
    self->recording = (asi_persistent_recording){
        .start_position = recording->start_position,
        .stop_position = recording->stop_position,
        .term_length = recording->term_buffer_length,
        .stream_id = recording->stream_id,
        .session_id = recording->session_id,
    };
    return true;
}

int64_t asi_persistent_send_list(as_persistent_subscription *self)
{
    if (!asi_persistent_is_linked(self))
    {
        asi_persistent_enter(self, AS_PERSISTENT_AWAIT_ARCHIVE_CONNECTION);
        return 0;
    }
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_LIST_RECORDING);
    request.recording_id = self->options.recording_id;
    const asi_call_listing listing = { .on_recording = on_recording, .context = self, .wanted = 1 };
    if (AS_OK == asi_call_start(&self->call, &self->session, &request, &listing))
    {
        asi_persistent_enter(self, AS_PERSISTENT_AWAIT_LIST_RECORDING_RESPONSE);
    }
    return 0;
}

/* Spec: 08 §16.3. *reason is set with a failure. */
static as_result check_recording(const as_persistent_subscription *self, as_persistent_failure *reason)
{
    const asi_persistent_recording *recording = &self->recording;
    const int64_t id = self->options.recording_id;
    const bool is_stopped = AS_NULL_VALUE != recording->stop_position;
    *reason = AS_PERSISTENT_STREAM_ID_MISMATCH;
    if (recording->stream_id != self->options.live_stream_id)
    {
        return asi_fail(AS_E_USAGE, 0, "recording %" PRId64 " is of stream %d, not of live_stream_id %d: they must be equal", id,
            recording->stream_id, self->options.live_stream_id);
    }
    *reason = AS_PERSISTENT_INVALID_START_POSITION;
    if (is_stopped && self->last_live_position > recording->stop_position)
    {
        return asi_fail(AS_E_DATA, 0, "recording %" PRId64 " stopped at %" PRId64 ", live was taken up to %" PRId64
            ": what came after that was not recorded", id, recording->stop_position, self->last_live_position);
    }
    if (self->position >= 0 && self->position < recording->start_position)
    {
        return asi_fail(AS_E_DATA, 0, "requested replay start position=%" PRId64 " is less than recording start position=%" PRId64
            " for recording %" PRId64, self->position, recording->start_position, id);
    }
    if (self->position >= 0 && is_stopped && self->position > recording->stop_position)
    {
        return asi_fail(AS_E_DATA, 0, "requested replay start position=%" PRId64 " must be less than the limit position=%" PRId64
            " for recording %" PRId64, self->position, recording->stop_position, id);
    }
    return AS_OK;
}

static void on_descriptor(as_persistent_subscription *self)
{
    as_persistent_failure reason;
    const as_result result = check_recording(self, &reason);
    if (AS_OK != result)
    {
        asi_persistent_fail(self, reason, result);
        return;
    }
    if (AS_PERSISTENT_FROM_START == self->position)
    {
        self->position = self->recording.start_position;
        self->message_position = self->position;
    }
    if (AS_PERSISTENT_FROM_LIVE == self->position || self->position == self->recording.stop_position)
    {
        asi_persistent_enter(self, AS_PERSISTENT_ADD_LIVE_SUBSCRIPTION);
    }
    else
    {
        asi_persistent_set_up_replay(self);
    }
}

int64_t asi_persistent_await_list(as_persistent_subscription *self)
{
    const as_result result = asi_call_check(&self->call);
    if (AS_AGAIN == result)
    {
        return 0;
    }
    const asi_call_answer *answer = &self->call.answer;
    if (AS_OK != result)
    {
        asi_persistent_enter(self, asi_persistent_is_linked(self) ? AS_PERSISTENT_SEND_LIST_RECORDING_REQUEST :
            AS_PERSISTENT_AWAIT_ARCHIVE_CONNECTION);
    }
    else if (ASI_CODEC_RECORDING_DESCRIPTOR == answer->template_id)
    {
        on_descriptor(self);
    }
    else if (ASI_CODEC_ERROR != answer->code)
    {
        asi_persistent_fail(self, AS_PERSISTENT_RECORDING_NOT_FOUND, asi_fail(AS_E_PEER, ASI_CODEC_E_UNKNOWN_RECORDING,
            "unknown recording id: %" PRId64, self->options.recording_id));
    }
    else
    {
        int64_t value;
        asi_persistent_fail(self, AS_PERSISTENT_GENERIC, asi_call_value(&self->call, &value));
    }
    return 0;
}

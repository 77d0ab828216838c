/* PersistentSubscription: its state, its failure, and the release of its resources. See persistent_state.h; Spec: 08 §16. */
#include "client/persistent_state.h"

#include <stdio.h>

#include "wire/command.h"

/* -- resources ------------------------------------------------------------------------------------------------------------------ */

void asi_persistent_drop_replay(as_persistent_subscription *self)
{
    asi_call_end(&self->call);
    if (AS_NULL_VALUE != self->replay_session_id && asi_persistent_is_linked(self))
    {
        asi_codec_request request;
        asi_codec_request_init(&request, ASI_CODEC_STOP_REPLAY);
        request.replay_session_id = self->replay_session_id;
        /* If this fails, the replay ends once it detects that its subscriber is gone. */
        (void)!asi_client_session_offer(&self->session, &request);
    }
    if (AS_NULL_VALUE != self->driver_request)
    {
        as_client_forget(self->aeron, self->driver_request);
    }
    as_image_release(self->replay_image);
    as_subscription_close(self->replay);
    as_publication_close(self->requests);
    self->replay_session_id = AS_NULL_VALUE;
    self->driver_request = AS_NULL_VALUE;
    self->replay_image = NULL;
    self->replay = NULL;
    self->requests = NULL;
}

void asi_persistent_drop_live(as_persistent_subscription *self)
{
    if (AS_NULL_VALUE != self->live_request)
    {
        as_client_forget(self->aeron, self->live_request);
    }
    as_image_release(self->live_image);
    as_subscription_close(self->live);
    self->live_request = AS_NULL_VALUE;
    self->live_image = NULL;
    self->live = NULL;
    self->is_live_wanted = false;
    as_counter_set(self->difference_counter, ASI_PERSISTENT_NO_DIFFERENCE);
}

static void close_link(as_persistent_subscription *self)
{
    if (ASI_LINK_IDLE == self->link)
    {
        return;
    }
    if (ASI_LINK_CONNECTED != self->link && AS_NULL_VALUE != self->connect.driver_request)
    {
        as_client_forget(self->aeron, self->connect.driver_request);
    }
    asi_connect_close(&self->session);
    self->link = ASI_LINK_IDLE;
}

void asi_persistent_release(as_persistent_subscription *self)
{
    if (NULL == self->aeron)
    {
        return;
    }
    asi_persistent_drop_live(self);
    asi_persistent_drop_replay(self);
    close_link(self);
}

/* -- state and failure ---------------------------------------------------------------------------------------------------------- */

void asi_persistent_enter(as_persistent_subscription *self, as_persistent_state state)
{
    self->state = state;
    as_counter_set(self->state_counter, state);
}

void asi_persistent_report(as_persistent_subscription *self, as_result failure)
{
    if (NULL != self->options.listener.on_error)
    {
        char text[ASI_PERSISTENT_TEXT_CAPACITY];
        const int32_t code = as_error_code();
        snprintf(text, sizeof(text), "%s", as_error_text());
        self->options.listener.on_error(self->options.listener.context, failure, code, text);
    }
}

void asi_persistent_fail(as_persistent_subscription *self, as_persistent_failure reason, as_result failure)
{
    self->failure = reason;
    self->failure_class = failure;
    self->failure_code = as_error_code();
    snprintf(self->failure_text, sizeof(self->failure_text), "%s", as_error_text());
    asi_persistent_enter(self, AS_PERSISTENT_FAILED);
    asi_persistent_release(self);
    asi_persistent_report(
        self, asi_fail(self->failure_class, self->failure_code, "%s", self->failure_text));
}

bool asi_persistent_is_temporary(as_result result)
{
    return AS_E_PEER == result && ASI_ERR_RESOURCE_TEMPORARILY_UNAVAILABLE == as_error_code();
}

int64_t as_persistent_subscription_position(const as_persistent_subscription *subscription)
{
    return AS_NULL_VALUE != subscription->message_position ? subscription->message_position : subscription->position;
}

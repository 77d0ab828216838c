/* PersistentSubscription: replay, the switch to live, live. See persistent_state.h; Spec: 08 §16.4-16.7.
 *
 * The switch in detail. Replay and live image are positions in one stream, cut into the same fragments. Live fragments are
 * inspected without being consumed: a fragment that ends at or before the replay's position is skipped, because the replay
 * delivered it. The first fragment beyond stays unconsumed, and its end is recorded. The replay is consumed up to but not
 * including the fragment with that end. Both images are then positioned before the same fragment, and live continues with it.
 * If live has no fragment yet, the replay continues; it may overtake live, which then skips. */
#include "client/persistent_stream.h"

#include <inttypes.h>

#include "client/persistent_replay.h"

/* -- live ------------------------------------------------------------------------------------------------------------------------------ */

static as_result request_live(as_persistent_subscription *self)
{
    const as_result result = as_client_async_add_subscription(self->aeron, self->options.live_channel,
        self->options.live_stream_id, NULL, NULL, NULL, &self->live_request);
    if (AS_OK == result)
    {
        self->is_live_wanted = true;
        self->is_live_missed = false;
    }
    return result;
}

/* AS_AGAIN: no live image yet. Only temporary failures are retried; any other is permanent. */
static as_result find_live_image(as_persistent_subscription *self)
{
    if (AS_NULL_VALUE != self->live_request)
    {
        as_result result = as_client_poll_subscription(self->aeron, self->live_request, &self->live);
        if (AS_AGAIN == result)
        {
            return result;
        }
        self->live_request = AS_NULL_VALUE;
        if (AS_OK != result)
        {
            result = asi_fail_in(result, "live channel %s", self->options.live_channel);
            self->is_live_wanted = false;
            if (asi_persistent_is_temporary(result))
            {
                asi_persistent_report(self, result);
                return AS_AGAIN;
            }
            return result;
        }
        self->live_deadline_ns = asi_persistent_now(self) + self->timeout_ns;
    }
    if (NULL == self->live)
    {
        return AS_AGAIN;
    }
    self->live_image = as_subscription_image_at(self->live, 0);
    if (NULL != self->live_image)
    {
        return AS_OK;
    }
    if (!self->is_live_missed && asi_persistent_now(self) >= self->live_deadline_ns)
    {
        char timeout[32];
        asi_format_duration(timeout, sizeof(timeout), self->timeout_ns);
        self->is_live_missed = true;
        asi_persistent_report(self, asi_fail(AS_E_TIMEOUT, 0, "no image became available on the live subscription within %s: "
            "channel=%s streamId=%d; is its publisher up?", timeout, self->options.live_channel, self->options.live_stream_id));
    }
    return AS_AGAIN;
}

static void become_live(as_persistent_subscription *self)
{
    self->position = as_image_position(self->live_image);
    if (AS_NULL_VALUE == self->message_position)
    {
        self->message_position = self->position;
    }
    asi_persistent_drop_replay(self);
    asi_persistent_enter(self, AS_PERSISTENT_LIVE);
    as_counter_add(self->joined_counter, 1);
    if (NULL != self->options.listener.on_live_joined)
    {
        self->options.listener.on_live_joined(self->options.listener.context);
    }
}

/* Resumes according to the recording's current state. */
static void refresh(as_persistent_subscription *self)
{
    asi_persistent_drop_replay(self);
    asi_persistent_drop_live(self);
    asi_persistent_enter(self, AS_PERSISTENT_SEND_LIST_RECORDING_REQUEST);
}

/* Poll handler: passes the fragment to the assembler under the recording's session id, without its image: the message may have
 * begun in another one. */
static as_action take(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    as_persistent_subscription *self = context;
    as_header of_recording = *header;
    of_recording.session_id = self->recording.session_id;
    of_recording.image = NULL;
    self->polled_image = header->image;
    return as_controlled_assembler_on_fragment(self->assembler, data, length, &of_recording);
}

/* Returns the number of fragments consumed; a broken log fails the subscription permanently. */
static int64_t poll_image(as_persistent_subscription *self, as_image *image, as_controlled_handler handler)
{
    const int64_t fragments = as_image_controlled_poll(image, handler, self, self->limit);
    if (fragments < 0)
    {
        asi_persistent_fail(self, AS_PERSISTENT_GENERIC, (as_result)fragments);
        return 0;
    }
    return fragments;
}

/* -- replay ------------------------------------------------------------------------------------------------------------------------------ */

static bool find_replay_image(as_persistent_subscription *self)
{
    if (NULL == self->replay_image)
    {
        self->replay_image = as_subscription_image_by_session(
            self->replay, (int32_t)(uint32_t)(uint64_t)self->replay_session_id);
    }
    if (NULL == self->replay_image && asi_persistent_now(self) >= self->deadline_ns)
    {
        asi_persistent_drop_replay(self);
        asi_persistent_set_up_replay(self);
    }
    return NULL != self->replay_image;
}

static void query_recorded_position(as_persistent_subscription *self)
{
    asi_codec_request request;
    asi_codec_request_init(&request, ASI_CODEC_MAX_RECORDED_POSITION);
    request.recording_id = self->options.recording_id;
    /* On back pressure or a session that is ending, the next poll retries or detects the loss. */
    (void)!asi_call_start(&self->call, &self->session, &request, NULL);
}

/* Adds the live subscription once the replay is near the recorded position. Spec: 08 §16.4. */
static void check_caught_up(as_persistent_subscription *self)
{
    if (!self->call.is_in_flight)
    {
        if (asi_persistent_is_linked(self) &&
            (AS_NULL_VALUE == self->next_query_position || self->position >= self->next_query_position))
        {
            query_recorded_position(self);
        }
        return;
    }
    as_result result = asi_call_check(&self->call);
    int64_t recorded = 0;
    if (AS_OK == result)
    {
        result = asi_call_value(&self->call, &recorded);
        if (AS_OK != result)
        {
            asi_persistent_fail(self, AS_PERSISTENT_GENERIC, result);
            return;
        }
        const bool is_near = self->position >= recorded - self->recording.term_length / 4;
        self->next_query_position = is_near ? AS_NULL_VALUE : recorded;
        result = is_near ? request_live(self) : AS_OK;
        if (AS_OK != result && AS_E_TIMEOUT != result)
        {
            asi_persistent_fail(self, AS_PERSISTENT_GENERIC, result);
        }
    }
}

int64_t asi_persistent_replay(as_persistent_subscription *self)
{
    if (!find_replay_image(self))
    {
        return 0;
    }
    if (as_image_is_closed(self->replay_image))
    {
        self->position = as_image_position(self->replay_image);
        self->replay_session_id = AS_NULL_VALUE; /* the replay has ended */
        refresh(self);
        return 0;
    }
    if (self->is_live_wanted)
    {
        const as_result result = find_live_image(self);
        if (result < 0)
        {
            asi_persistent_fail(self, AS_PERSISTENT_GENERIC, result);
            return 0;
        }
        if (AS_OK == result)
        {
            as_counter_set(self->difference_counter,
                as_image_position(self->live_image) - as_image_position(self->replay_image));
            asi_persistent_enter(self, AS_PERSISTENT_ATTEMPT_SWITCH);
            return 0;
        }
    }
    const int64_t fragments = poll_image(self, self->replay_image, take);
    if (AS_PERSISTENT_REPLAY == self->state)
    {
        self->position = as_image_position(self->replay_image);
        if (!self->is_live_wanted)
        {
            check_caught_up(self);
        }
    }
    return fragments;
}

/* -- the switch ---------------------------------------------------------------------------------------------------------------------------- */

static as_action skip_live(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    as_persistent_subscription *self = context;
    (void)data;
    (void)length;
    if (header->position <= self->position)
    {
        return AS_ACTION_CONTINUE;
    }
    self->next_live_position = header->position;
    return AS_ACTION_ABORT;
}

static as_action take_until_live(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    as_persistent_subscription *self = context;
    if (header->position == self->next_live_position)
    {
        return AS_ACTION_ABORT;
    }
    return take(context, data, length, header);
}

int64_t asi_persistent_switch(as_persistent_subscription *self)
{
    self->position = as_image_position(self->replay_image);
    const int64_t live_position = as_image_position(self->live_image);
    if (self->position == live_position)
    {
        become_live(self);
        return 0;
    }
    if (as_image_is_closed(self->replay_image))
    {
        self->last_live_position = live_position;
        self->replay_session_id = AS_NULL_VALUE;
        refresh(self);
        return 0;
    }
    if (as_image_is_closed(self->live_image))
    {
        asi_persistent_drop_live(self);
        asi_persistent_enter(self, AS_PERSISTENT_REPLAY);
        return 0;
    }
    self->next_live_position = AS_NULL_VALUE;
    if (poll_image(self, self->live_image, skip_live) < 0 || AS_PERSISTENT_ATTEMPT_SWITCH != self->state)
    {
        return 0;
    }
    const int64_t fragments = poll_image(self, self->replay_image, take_until_live);
    if (AS_PERSISTENT_ATTEMPT_SWITCH == self->state)
    {
        self->position = as_image_position(self->replay_image);
    }
    return fragments;
}

/* -- live ------------------------------------------------------------------------------------------------------------------------------------ */

int64_t asi_persistent_add_live(as_persistent_subscription *self)
{
    const as_result result = request_live(self);
    if (AS_OK == result)
    {
        asi_persistent_enter(self, AS_PERSISTENT_AWAIT_LIVE);
    }
    else if (AS_E_TIMEOUT != result)
    {
        asi_persistent_fail(self, AS_PERSISTENT_GENERIC, result);
    }
    return 0;
}

int64_t asi_persistent_await_live(as_persistent_subscription *self)
{
    const as_result result = find_live_image(self);
    if (result < 0)
    {
        asi_persistent_fail(self, AS_PERSISTENT_GENERIC, result);
        return 0;
    }
    if (AS_AGAIN == result)
    {
        if (!self->is_live_wanted)
        {
            asi_persistent_enter(self, AS_PERSISTENT_ADD_LIVE_SUBSCRIPTION);
        }
        return 0;
    }
    const int64_t live_position = as_image_position(self->live_image);
    if (self->position >= 0 && live_position < self->position)
    {
        asi_persistent_fail(self, AS_PERSISTENT_GENERIC, asi_fail(AS_E_DATA, 0, "the live stream is at %" PRId64
            ", before %" PRId64 ", up to which it was consumed: another publisher has taken its place", live_position,
            self->position));
    }
    else if (self->position >= 0 && live_position > self->position)
    {
        refresh(self);
    }
    else
    {
        as_counter_set(self->difference_counter, 0);
        become_live(self);
    }
    return 0;
}

int64_t asi_persistent_live(as_persistent_subscription *self)
{
    const int64_t fragments = poll_image(self, self->live_image, take);
    if (AS_PERSISTENT_LIVE != self->state)
    {
        return fragments;
    }
    self->position = as_image_position(self->live_image);
    if (0 == fragments && as_image_is_closed(self->live_image))
    {
        self->last_live_position = self->position;
        refresh(self);
        as_counter_add(self->left_counter, 1);
        if (NULL != self->options.listener.on_live_left)
        {
            self->options.listener.on_live_left(self->options.listener.context);
        }
    }
    return fragments;
}

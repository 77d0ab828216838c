/* PersistentSubscription: open, close, polls. See persistent_state.h; Spec: 08 §16. */
#include "client/persistent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "client/persistent_archive.h"
#include "client/persistent_replay.h"
#include "client/persistent_stream.h"
#include "shm/counters.h"

#define COUNTER_TYPE_STATE 114
#define COUNTER_TYPE_DIFFERENCE 115
#define COUNTER_TYPE_LEFT 116
#define COUNTER_TYPE_JOINED 117
/* Per step; a poll into columns runs steps until one returns no fragments. */
#define COLUMNS_FRAGMENT_LIMIT 65536

/* -- options ---------------------------------------------------------------------------------------------------------------------------- */

void as_persistent_options_init(as_persistent_options *options)
{
    *options = (as_persistent_options){
        .recording_id = AS_NULL_VALUE,
        .start_position = AS_PERSISTENT_FROM_LIVE,
        .live_stream_id = AS_NULL_VALUE,
        .replay_stream_id = AS_NULL_VALUE,
    };
    as_archive_client_options_init(&options->archive);
}

static as_result check_options(const as_persistent_options *options)
{
    if (options->recording_id < 0)
    {
        return asi_fail(AS_E_USAGE, 0, "recording_id is %" PRId64 ": a persistent subscription needs one", options->recording_id);
    }
    if (options->start_position < AS_PERSISTENT_FROM_LIVE)
    {
        return asi_fail(AS_E_USAGE, 0, "start_position is %" PRId64 ": give a position, FROM_START (-1) or FROM_LIVE (-2)",
            options->start_position);
    }
    if (NULL == options->live_channel || NULL == options->replay_channel || AS_NULL_VALUE == options->live_stream_id ||
        AS_NULL_VALUE == options->replay_stream_id)
    {
        return asi_fail(AS_E_USAGE, 0, "a persistent subscription needs live_channel, live_stream_id, replay_channel and "
            "replay_stream_id");
    }
    return AS_OK;
}

/* Copies `text`, NUL-terminated, to the next free place of the block; NULL stays NULL. */
static const char *keep(char **next, const char *text)
{
    if (NULL == text)
    {
        return NULL;
    }
    const size_t size = strlen(text) + 1;
    char *copy = *next;
    memcpy(copy, text, size);
    *next += size;
    return copy;
}

static size_t size_of(const char *text) { return NULL == text ? 0 : strlen(text) + 1; }

/* Copies everything the options point to into one block. The block holds credentials, so it is wiped on close. */
static as_result keep_options(as_persistent_subscription *self, const as_persistent_options *options, const char *replay_channel)
{
    const as_archive_client_options *archive = &options->archive;
    const char *control_channel = NULL == archive->control_channel ? "aeron:ipc" : archive->control_channel;
    const int64_t credentials_length = NULL == archive->credentials ? 0 : archive->credentials_length;
    if (credentials_length < 0)
    {
        return asi_fail(AS_E_USAGE, 0, "credentials_length is negative");
    }
    const size_t size = size_of(control_channel) + size_of(archive->response_channel) + size_of(archive->client_info) +
        size_of(options->live_channel) + size_of(replay_channel) + (size_t)credentials_length;
    self->strings = malloc(size);
    if (NULL == self->strings)
    {
        return asi_fail(AS_E_INTERNAL, 0, "no memory for a persistent subscription");
    }
    self->strings_length = (int64_t)size;
    char *next = self->strings;
    self->options = *options;
    self->options.live_channel = keep(&next, options->live_channel);
    self->options.replay_channel = keep(&next, replay_channel);
    self->options.archive.control_channel = keep(&next, control_channel);
    self->options.archive.response_channel = keep(&next, archive->response_channel);
    self->options.archive.client_info = keep(&next, archive->client_info);
    self->options.archive.aeron_dir = NULL;
    self->options.archive.on_signal = NULL;
    if (credentials_length > 0)
    {
        memcpy(next, archive->credentials, (size_t)credentials_length);
        self->options.archive.credentials = (const uint8_t *)next;
    }
    self->options.archive.credentials_length = credentials_length;
    return AS_OK;
}

static bool has_value(const asi_uri *uri, const char *key, const char *value)
{
    const char *found = asi_uri_get(uri, key);
    return NULL != found && 0 == strcmp(found, value);
}

static asi_replay_kind kind_of(const asi_uri *replay)
{
    if (has_value(replay, "control-mode", "response"))
    {
        return ASI_REPLAY_RESPONSE_CHANNEL;
    }
    const char *endpoint = ASI_MEDIA_UDP == replay->media ? asi_uri_get(replay, "endpoint") : NULL;
    const size_t length = NULL == endpoint ? 0 : strlen(endpoint);
    return length >= 2 && 0 == strcmp(endpoint + length - 2, ":0") ? ASI_REPLAY_DYNAMIC_PORT : ASI_REPLAY_SESSION_SPECIFIC;
}

/* rejoin=false: an abandoned replay must not return as another image. */
static as_result take_channels(as_persistent_subscription *self, const as_persistent_options *options)
{
    asi_uri uri;
    asi_uri_builder replay;
    as_result result =
        asi_uri_parse_untrusted(&uri, options->live_channel, (int64_t)strlen(options->live_channel));
    if (AS_OK != result)
    {
        return asi_fail_in(result, "live_channel %s", options->live_channel);
    }
    result = asi_uri_parse_untrusted(&uri, options->replay_channel, (int64_t)strlen(options->replay_channel));
    if (AS_OK != result)
    {
        return asi_fail_in(result, "replay_channel %s", options->replay_channel);
    }
    self->replay_kind = kind_of(&uri);
    const asi_uri_media replay_media = uri.media;
    asi_uri_build_start(&replay, uri.media, false);
    asi_uri_build_put(&replay, "rejoin", "false");
    for (int32_t i = 0; i < uri.param_count; i++)
    {
        if (0 != strcmp(uri.params[i].key, "rejoin"))
        {
            asi_uri_build_put(&replay, uri.params[i].key, NULL == uri.params[i].value ? "" : uri.params[i].value);
        }
    }
    result = asi_uri_build_end(&replay);
    if (AS_OK == result)
    {
        result = keep_options(self, options, replay.text);
    }
    if (AS_OK != result || ASI_REPLAY_RESPONSE_CHANNEL != self->replay_kind)
    {
        return result;
    }
    const char *control = self->options.archive.control_channel;
    result = asi_uri_parse_untrusted(&uri, control, (int64_t)strlen(control));
    if (AS_OK == result && uri.media != replay_media)
    {
        result = asi_fail(AS_E_USAGE, 0, "with control-mode=response the replay channel needs the media of the archive's control "
            "channel: %s and %s", self->options.replay_channel, control);
    }
    return result;
}

/* -- opening ------------------------------------------------------------------------------------------------------------------------------ */

static as_result add_counter(as_persistent_subscription *self, int32_t type_id, const char *name, as_counter **counter)
{
    char label[ASI_COUNTER_LABEL_CAPACITY + 1];
    snprintf(label, sizeof(label), "Persistent Subscription %s: %d %s %d %s", name, self->options.replay_stream_id,
        self->options.replay_channel, self->options.live_stream_id, self->options.live_channel);
    return as_client_add_counter(self->aeron, type_id, NULL, 0, label, counter);
}

static as_result add_counters(as_persistent_subscription *self)
{
    as_result result = add_counter(self, COUNTER_TYPE_STATE, "State", &self->state_counter);
    result = AS_OK == result ? add_counter(self, COUNTER_TYPE_DIFFERENCE, "Join Difference", &self->difference_counter) : result;
    result = AS_OK == result ? add_counter(self, COUNTER_TYPE_LEFT, "Live Left Count", &self->left_counter) : result;
    return AS_OK == result ? add_counter(self, COUNTER_TYPE_JOINED, "Live Joined Count", &self->joined_counter) : result;
}

static as_result take_aeron(as_persistent_subscription *self, const as_archive_client_options *archive)
{
    self->aeron = archive->client;
    if (NULL == archive->client)
    {
        as_client_options options;
        as_client_options_init(&options);
        options.aeron_dir = archive->aeron_dir;
        options.client_name = "persistent-subscription";
        options.use_invoker = true;
        options.driver_invoker = archive->invoker;
        options.driver_invoker_context = archive->invoker_context;
        const as_result result = as_client_open(&options, &self->own_aeron);
        if (AS_OK != result)
        {
            return result;
        }
        self->aeron = self->own_aeron;
    }
    self->is_aeron_invoked = as_client_invoke(self->aeron) >= 0;
    return AS_OK;
}

static as_action on_message(void *context, const uint8_t *data, int64_t length, const as_header *header);

as_result asi_persistent_open_with(
    const as_persistent_options *options, const asi_clock *clock, as_persistent_subscription **subscription)
{
    as_result result = check_options(options);
    if (AS_OK != result)
    {
        return result;
    }
    as_persistent_subscription *opened = calloc(1, sizeof(*opened));
    if (NULL == opened)
    {
        return asi_fail(AS_E_INTERNAL, 0, "no memory for a persistent subscription");
    }
    opened->clock = *clock;
    opened->timeout_ns = options->archive.message_timeout_ns;
    opened->position = options->start_position;
    opened->message_position = options->start_position >= 0 ? options->start_position : AS_NULL_VALUE;
    opened->last_live_position = AS_NULL_VALUE;
    opened->driver_request = AS_NULL_VALUE;
    opened->live_request = AS_NULL_VALUE;
    opened->replay_session_id = AS_NULL_VALUE;
    result = asi_idle_parse(&opened->idle, "backoff", NULL);
    result = AS_OK == result ? take_channels(opened, options) : result;
    result = AS_OK == result ? take_aeron(opened, &options->archive) : result;
    result = AS_OK == result ? as_controlled_assembler_open(on_message, opened, &opened->assembler) : result;
    result = AS_OK == result ? add_counters(opened) : result;
    if (AS_OK != result)
    {
        as_persistent_subscription_close(opened);
        return result;
    }
    as_counter_set(opened->difference_counter, ASI_PERSISTENT_NO_DIFFERENCE);
    *subscription = opened;
    return AS_OK;
}

as_result as_persistent_subscription_open(const as_persistent_options *options, as_persistent_subscription **subscription)
{
    const asi_clock clock = asi_clock_system();
    return asi_persistent_open_with(options, &clock, subscription);
}

void as_persistent_subscription_close(as_persistent_subscription *subscription)
{
    if (NULL == subscription || subscription->in_poll)
    {
        return;
    }
    asi_persistent_release(subscription);
    as_counter_close(subscription->state_counter);
    as_counter_close(subscription->difference_counter);
    as_counter_close(subscription->left_counter);
    as_counter_close(subscription->joined_counter);
    as_controlled_assembler_close(subscription->assembler);
    as_client_close(subscription->own_aeron);
    if (NULL != subscription->strings)
    {
        explicit_bzero(subscription->strings, (size_t)subscription->strings_length);
    }
    free(subscription->strings);
    free(subscription);
}

/* -- states ---------------------------------------------------------------------------------------------------------------------------------- */

static int64_t nothing(as_persistent_subscription *self)
{
    (void)self;
    return 0;
}

static int64_t work(as_persistent_subscription *self)
{
    static int64_t (*const STEPS[])(as_persistent_subscription *) = {
        [AS_PERSISTENT_AWAIT_ARCHIVE_CONNECTION] = asi_persistent_await_archive,
        [AS_PERSISTENT_SEND_LIST_RECORDING_REQUEST] = asi_persistent_send_list,
        [AS_PERSISTENT_AWAIT_LIST_RECORDING_RESPONSE] = asi_persistent_await_list,
        [AS_PERSISTENT_SEND_REPLAY_REQUEST] = asi_persistent_send_replay,
        [AS_PERSISTENT_AWAIT_REPLAY_RESPONSE] = asi_persistent_await_replay_response,
        [AS_PERSISTENT_ADD_REPLAY_SUBSCRIPTION] = asi_persistent_add_replay,
        [AS_PERSISTENT_AWAIT_REPLAY_SUBSCRIPTION] = asi_persistent_await_replay_subscription,
        [AS_PERSISTENT_AWAIT_REPLAY_CHANNEL_ENDPOINT] = asi_persistent_await_endpoint,
        [AS_PERSISTENT_ADD_REQUEST_PUBLICATION] = asi_persistent_add_requests,
        [AS_PERSISTENT_AWAIT_REQUEST_PUBLICATION] = asi_persistent_await_requests,
        [AS_PERSISTENT_SEND_REPLAY_TOKEN_REQUEST] = asi_persistent_send_token,
        [AS_PERSISTENT_AWAIT_REPLAY_TOKEN] = asi_persistent_await_token,
        [AS_PERSISTENT_REPLAY] = asi_persistent_replay,
        [AS_PERSISTENT_ATTEMPT_SWITCH] = asi_persistent_switch,
        [AS_PERSISTENT_ADD_LIVE_SUBSCRIPTION] = asi_persistent_add_live,
        [AS_PERSISTENT_AWAIT_LIVE] = asi_persistent_await_live,
        [AS_PERSISTENT_LIVE] = asi_persistent_live,
        [AS_PERSISTENT_FAILED] = nothing,
    };
    int64_t fragments = 0;
    self->in_poll = true;
    if (self->is_aeron_invoked)
    {
        as_client_invoke(self->aeron);
    }
    if (AS_PERSISTENT_FAILED != self->state)
    {
        asi_persistent_link_work(self);
        fragments = STEPS[self->state](self);
    }
    self->in_poll = false;
    return fragments;
}

/* -- polls ------------------------------------------------------------------------------------------------------------------------------------ */

/* False: no room. */
static bool append_row(as_persistent_subscription *self, const uint8_t *data, int64_t length, const as_header *header)
{
    as_columns *columns = self->columns;
    const int64_t row = columns->row_count;
    if (row == columns->row_capacity)
    {
        return false;
    }
    if (NULL != columns->value)
    {
        if (length > columns->byte_capacity - columns->byte_count)
        {
            if (0 == row)
            {
                self->column_failure = asi_fail(AS_E_USAGE, 0, "the message that ends at position %" PRId64 " needs %" PRId64
                    " bytes of columns, raise byte_capacity", header->position, length);
            }
            return false;
        }
        memcpy(columns->value + columns->byte_count, data, (size_t)length);
        columns->byte_count += length;
        columns->value_offset[row + 1] = (int32_t)columns->byte_count;
    }
#define PUT(column, taken)                                                                                 \
    if (NULL != columns->column)                                                                           \
    {                                                                                                      \
        columns->column[row] = (taken);                                                                    \
    }
    PUT(position, (int64_t)asi_wrap_sub(header->term_id, header->initial_term_id) * self->recording.term_length +
        header->term_offset)
    PUT(next_position, header->position)
    PUT(reserved_value, header->reserved_value)
    PUT(session_id, header->session_id)
    PUT(stream_id, header->stream_id)
    PUT(term_id, header->term_id)
    PUT(term_offset, header->term_offset)
    PUT(flags, header->flags)
#undef PUT
    columns->row_count++;
    return true;
}

static as_action on_message(void *context, const uint8_t *data, int64_t length, const as_header *header)
{
    as_persistent_subscription *self = context;
    as_action action = AS_ACTION_CONTINUE;
    if (NULL == self->columns)
    {
        as_header of_image = *header;
        of_image.image = self->polled_image;
        action = self->handler(self->handler_context, data, length, &of_image);
    }
    else if (!append_row(self, data, length, header))
    {
        action = AS_ACTION_ABORT;
    }
    if (AS_ACTION_ABORT != action)
    {
        self->message_position = header->position;
    }
    return action;
}

static as_result fail_again(const as_persistent_subscription *self)
{
    return asi_fail(self->failure_class, self->failure_code, "%s", self->failure_text);
}

static as_result check_poll(const as_persistent_subscription *self)
{
    return self->in_poll ? asi_fail(AS_E_USAGE, 0, "reentrant calls not permitted during callbacks of a persistent subscription") :
        AS_OK;
}

int64_t as_persistent_subscription_poll(
    as_persistent_subscription *subscription, as_controlled_handler handler, void *context, int64_t limit)
{
    as_result result = check_poll(subscription);
    if (AS_OK == result && (NULL == handler || limit <= 0))
    {
        result = asi_fail(AS_E_USAGE, 0, "a poll needs a handler and a positive limit");
    }
    if (AS_OK != result)
    {
        return result;
    }
    subscription->handler = handler;
    subscription->handler_context = context;
    subscription->limit = limit;
    const int64_t fragments = work(subscription);
    return 0 == fragments && AS_PERSISTENT_FAILED == subscription->state ? (int64_t)fail_again(subscription) : fragments;
}

static as_result check_columns(as_columns *columns)
{
    columns->row_count = 0;
    columns->byte_count = 0;
    if (columns->row_capacity <= 0 || columns->byte_capacity < 0 || columns->byte_capacity > INT32_MAX ||
        (NULL == columns->value) != (NULL == columns->value_offset))
    {
        return asi_fail(AS_E_USAGE, 0,
            "columns need a row_capacity, a byte_capacity up to 2^31 - 1, and value with value_offset or neither");
    }
    if (NULL != columns->value_offset)
    {
        columns->value_offset[0] = 0;
    }
    return AS_OK;
}

/* Runs steps until one returns no fragments. */
static as_result fill_columns(as_persistent_subscription *self, as_columns *columns)
{
    self->columns = columns;
    self->column_failure = AS_OK;
    self->limit = COLUMNS_FRAGMENT_LIMIT;
    while (work(self) > 0 && columns->row_count < columns->row_capacity)
    {
    }
    self->columns = NULL;
    if (columns->row_count > 0)
    {
        return AS_OK; /* the next call reports an error found after these rows */
    }
    return AS_PERSISTENT_FAILED == self->state ? fail_again(self) : self->column_failure;
}

as_result as_persistent_subscription_poll_columns(
    as_persistent_subscription *subscription, as_columns *columns, int64_t timeout_ns)
{
    as_result result = check_poll(subscription);
    result = AS_OK == result ? check_columns(columns) : result;
    const int64_t start_ns = asi_persistent_now(subscription);
    subscription->idle.idle_count = 0;
    subscription->idle.park_ns = subscription->idle.min_park_ns;
    while (AS_OK == result)
    {
        result = fill_columns(subscription, columns);
        if (AS_OK != result || columns->row_count > 0 || asi_persistent_now(subscription) - start_ns >= timeout_ns)
        {
            break;
        }
        if (NULL != subscription->options.archive.invoker)
        {
            subscription->options.archive.invoker(subscription->options.archive.invoker_context);
        }
        asi_idle_cycle(&subscription->idle, 0);
    }
    return result;
}

/* -- state ------------------------------------------------------------------------------------------------------------------------------------ */

as_persistent_state as_persistent_subscription_get_state(const as_persistent_subscription *subscription)
{
    return subscription->state;
}

bool as_persistent_subscription_is_live(const as_persistent_subscription *subscription)
{
    return AS_PERSISTENT_LIVE == subscription->state;
}

bool as_persistent_subscription_is_replaying(const as_persistent_subscription *subscription)
{
    return AS_PERSISTENT_REPLAY == subscription->state || AS_PERSISTENT_ATTEMPT_SWITCH == subscription->state;
}

bool as_persistent_subscription_has_failed(const as_persistent_subscription *subscription)
{
    return AS_PERSISTENT_FAILED == subscription->state;
}

as_persistent_failure as_persistent_subscription_failure(const as_persistent_subscription *subscription)
{
    return subscription->failure;
}

/* The client's conductor: applies driver events to the client's objects, sends keepalives, checks timeouts and terminates the
 * client. See client.h. Spec: 01 §2.4, 03 §3, §15.2-15.5.
 *
 * Events come from another process, so they are checked: a malformed event is reported and skipped. Everything here runs
 * under the client's lock, on whichever thread drives the conductor. */
#include "client/conductor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/counter.h"
#include "client/lock.h"
#include "client/publication.h"
#include "client/request.h"
#include "client/subscription.h"
#include "client/waiting_images.h"

/* Limit of events per cycle: enough to drain a burst, few enough that timeouts are checked in between. */
#define EVENT_LIMIT 256

static void report(as_client *client, as_result failure, int32_t code, const char *text)
{
    if (NULL != client->options.on_error)
    {
        client->options.on_error(client->options.context, failure, code, text);
    }
}

static void report_last_failure(as_client *client, as_result failure)
{
    char text[ASI_CLIENT_TEXT_CAPACITY];
    snprintf(text, sizeof(text), "%s", as_error_text());
    report(client, failure, as_error_code(), text);
}

/* -- reading events ----------------------------------------------------------------------------------------------------- */

typedef struct event_reader
{
    const uint8_t *at;
    int64_t left;
} event_reader;

static bool read_fixed(event_reader *reader, void *to, int64_t length)
{
    if (reader->left < length)
    {
        return false;
    }
    memcpy(to, reader->at, (size_t)length);
    reader->at += length;
    reader->left -= length;
    return true;
}

/* Copies a text of `length` bytes into a buffer and terminates it. */
static bool read_text(event_reader *reader, int32_t length, char *to, int64_t capacity)
{
    if (length < 0 || length > reader->left || length >= capacity)
    {
        return false;
    }
    memcpy(to, reader->at, (size_t)length);
    to[length] = '\0';
    reader->at += length;
    reader->left -= length;
    return true;
}

/* -- events ------------------------------------------------------------------------------------------------------------- */

/* The client could not create the resource. The request fails with the recorded error, and the driver's part is removed. */
static void refuse_resource(as_client *client, asi_request *request, as_result failure)
{
    const char *text = as_error_text();
    asi_request_fail(request, failure, as_error_code(), text, (int64_t)strlen(text));
    asi_request_undo(client, request);
}

static bool on_error(as_client *client, event_reader *reader)
{
    asi_rsp_error error;
    if (!read_fixed(reader, &error, sizeof(error)) || error.message_length < 0 || error.message_length > reader->left)
    {
        return false;
    }
    asi_request *request = asi_request_find(client, error.offending_correlation_id);
    if (NULL == request)
    {
        return true;
    }
    request->is_answered = true;
    if (ASI_REQUEST_AWAITING == request->state)
    {
        asi_request_fail(request, AS_E_PEER, error.error_code, (const char *)reader->at, error.message_length);
    }
    else if (ASI_REQUEST_ABANDONED == request->state)
    {
        asi_request_unlink(client, request);
        asi_request_free(request);
    }
    return true;
}

static bool is_of_kind(const asi_request *request, asi_request_kind kind, asi_request_kind other)
{
    return request->kind == kind || request->kind == other;
}

static bool on_publication_ready(as_client *client, event_reader *reader)
{
    asi_rsp_publication_ready ready;
    char path[AS_PATH_MAX];
    if (!read_fixed(reader, &ready, sizeof(ready)) || !read_text(reader, ready.log_file_name_length, path, sizeof(path)))
    {
        return false;
    }
    asi_request *request = asi_request_find(client, ready.correlation_id);
    if (NULL == request || !is_of_kind(request, ASI_REQUEST_PUBLICATION, ASI_REQUEST_EXCLUSIVE_PUBLICATION))
    {
        return true;
    }
    if (ASI_REQUEST_AWAITING != request->state)
    {
        asi_request_undo(client, request);
        return true;
    }
    const as_result result = asi_client_publication_create(client, request, &ready, path);
    if (AS_OK != result)
    {
        refuse_resource(client, request, result);
    }
    return true;
}

static as_result create_from_value(as_client *client, asi_request *request, int32_t value)
{
    switch (request->kind)
    {
        case ASI_REQUEST_SUBSCRIPTION:
            return asi_client_subscription_create(client, request, value);
        case ASI_REQUEST_COUNTER:
        case ASI_REQUEST_STATIC_COUNTER:
            return asi_counter_create(client, request, value);
        default:
            asi_request_done(request, NULL, value);
            return AS_OK;
    }
}

/* SUBSCRIPTION_READY, COUNTER_READY, STATIC_COUNTER, NEXT_AVAILABLE_SESSION_ID: a correlation id and one value. */
static bool on_value(as_client *client, event_reader *reader, asi_request_kind kind)
{
    asi_rsp_correlated_i32 ready;
    if (!read_fixed(reader, &ready, sizeof(ready)))
    {
        return false;
    }
    asi_request *request = asi_request_find(client, ready.correlation_id);
    if (NULL != request && request->kind == kind)
    {
        if (ASI_REQUEST_AWAITING != request->state)
        {
            asi_request_undo(client, request);
        }
        else
        {
            const as_result result = create_from_value(client, request, ready.value);
            if (AS_OK != result)
            {
                refuse_resource(client, request, result);
            }
        }
    }
    /* Spec: 03 §15.5 - the counter handlers run for every counter of every client. */
    if (ASI_REQUEST_COUNTER == kind && NULL != client->options.on_available_counter)
    {
        client->options.on_available_counter(client->options.context, ready.correlation_id, ready.value);
    }
    return true;
}

static bool on_operation_success(as_client *client, event_reader *reader)
{
    asi_rsp_operation_success success;
    if (!read_fixed(reader, &success, sizeof(success)))
    {
        return false;
    }
    asi_request *request = asi_request_find(client, success.correlation_id);
    if (NULL == request || ASI_REQUEST_OPERATION != request->kind)
    {
        return true;
    }
    if (ASI_REQUEST_AWAITING != request->state)
    {
        asi_request_undo(client, request);
        return true;
    }
    asi_request_done(request, NULL, 0);
    return true;
}

static as_subscription *find_subscription(as_client *client, int64_t registration_id)
{
    as_subscription *subscription = client->subscriptions;
    while (NULL != subscription && subscription->registration_id != registration_id)
    {
        subscription = subscription->next;
    }
    return subscription;
}

/* An announcement that can't be right stays wrong; everything else may come right. */
static bool may_map_later(as_result result) { return AS_OK != result && AS_E_DATA != result; }

/* Reports once that the image comes later; the later tries are silent. */
static void map_later(as_subscription *subscription, as_result failure, const asi_rsp_available_image *available,
    const char *path, const char *source_identity)
{
    char text[ASI_CLIENT_TEXT_CAPACITY];
    const int32_t code = as_error_code();
    snprintf(text, sizeof(text), "%s: the image of session-id=%d stream-id=%d, for which its publisher waits, is tried again every "
        "%d ms", as_error_text(), available->session_id, available->stream_id, (int)(ASI_MAPPING_INTERVAL_NS / 1000000));
    report(subscription->client, failure, code, text);
    const as_result result = asi_waiting_images_add(subscription, available, path, source_identity);
    if (AS_OK != result)
    {
        report_last_failure(subscription->client, result);
    }
}

static bool on_available_image(as_client *client, event_reader *reader)
{
    asi_rsp_available_image available;
    char path[AS_PATH_MAX];
    char source_identity[AS_PATH_MAX];
    int32_t source_identity_length;
    static const int32_t ALIGNMENT = 4;
    if (!read_fixed(reader, &available, sizeof(available)) ||
        !read_text(reader, available.log_file_name_length, path, sizeof(path)))
    {
        return false;
    }
    uint8_t padding[4];
    const int32_t padding_length =
        asi_align_i32(available.log_file_name_length, ALIGNMENT) - available.log_file_name_length;
    if (!read_fixed(reader, padding, padding_length) ||
        !read_fixed(reader, &source_identity_length, sizeof(source_identity_length)) ||
        !read_text(reader, source_identity_length, source_identity, sizeof(source_identity)))
    {
        return false;
    }
    as_subscription *subscription = find_subscription(client, available.subscription_registration_id);
    if (NULL != subscription)
    {
        asi_waiting_images_drop(subscription, available.image_correlation_id); /* announced again */
        const as_result result = asi_client_subscription_add_image(subscription, &available, path, source_identity);
        if (may_map_later(result))
        {
            map_later(subscription, result, &available, path, source_identity);
        }
        else if (AS_OK != result)
        {
            report_last_failure(client, result);
        }
    }
    return true;
}

static bool on_unavailable_image(as_client *client, event_reader *reader)
{
    asi_rsp_unavailable_image unavailable;
    if (!read_fixed(reader, &unavailable, sizeof(unavailable)))
    {
        return false;
    }
    as_subscription *subscription = find_subscription(client, unavailable.subscription_registration_id);
    if (NULL != subscription)
    {
        asi_waiting_images_drop(subscription, unavailable.image_correlation_id);
        asi_client_subscription_remove_image(subscription, unavailable.image_correlation_id);
    }
    return true;
}

static bool on_unavailable_counter(as_client *client, event_reader *reader)
{
    asi_rsp_correlated_i32 unavailable;
    if (!read_fixed(reader, &unavailable, sizeof(unavailable)))
    {
        return false;
    }
    for (as_counter *counter = client->owned_counters; NULL != counter; counter = counter->next)
    {
        if (counter->registration_id == unavailable.correlation_id && counter->counter_id == unavailable.value)
        {
            asi_store_release_bool(&counter->is_closed, true);
        }
    }
    if (NULL != client->options.on_unavailable_counter)
    {
        client->options.on_unavailable_counter(client->options.context, unavailable.correlation_id, unavailable.value);
    }
    return true;
}

static bool on_publication_error(as_client *client, event_reader *reader)
{
    asi_rsp_publication_error error;
    char text[ASI_CLIENT_TEXT_CAPACITY];
    if (!read_fixed(reader, &error, sizeof(error)) || error.message_length < 0 || error.message_length > reader->left)
    {
        return false;
    }
    snprintf(text, sizeof(text), "%.*s", (int)error.message_length, (const char *)reader->at);
    for (const as_publication *at = client->publications; NULL != at; at = at->next)
    {
        if (at->original_registration_id == error.registration_id && NULL != client->options.on_publication_error)
        {
            client->options.on_publication_error(client->options.context, at->registration_id, error.session_id, error.stream_id,
                error.error_code, text);
        }
    }
    return true;
}

static bool on_client_timeout(as_client *client, event_reader *reader)
{
    asi_rsp_client_timeout timeout;
    if (!read_fixed(reader, &timeout, sizeof(timeout)))
    {
        return false;
    }
    if (timeout.client_id == client->client_id)
    {
        asi_conductor_terminate(client, AS_E_TIMEOUT, ASI_CLIENT_TIMEOUT,
            "the driver saw no keep-alive of this client within its client liveness timeout, "
            "was the process paused or the client not invoked?");
    }
    return true;
}

static bool dispatch(as_client *client, int32_t type_id, event_reader *reader)
{
    switch (type_id)
    {
        case ASI_RSP_ERROR:
            return on_error(client, reader);
        case ASI_RSP_PUBLICATION_READY:
        case ASI_RSP_EXCLUSIVE_PUBLICATION_READY:
            return on_publication_ready(client, reader);
        case ASI_RSP_SUBSCRIPTION_READY:
            return on_value(client, reader, ASI_REQUEST_SUBSCRIPTION);
        case ASI_RSP_COUNTER_READY:
            return on_value(client, reader, ASI_REQUEST_COUNTER);
        case ASI_RSP_STATIC_COUNTER:
            return on_value(client, reader, ASI_REQUEST_STATIC_COUNTER);
        case ASI_RSP_NEXT_AVAILABLE_SESSION_ID:
            return on_value(client, reader, ASI_REQUEST_SESSION_ID);
        case ASI_RSP_OPERATION_SUCCESS:
            return on_operation_success(client, reader);
        case ASI_RSP_AVAILABLE_IMAGE:
            return on_available_image(client, reader);
        case ASI_RSP_UNAVAILABLE_IMAGE:
            return on_unavailable_image(client, reader);
        case ASI_RSP_UNAVAILABLE_COUNTER:
            return on_unavailable_counter(client, reader);
        case ASI_RSP_CLIENT_TIMEOUT:
            return on_client_timeout(client, reader);
        case ASI_RSP_PUBLICATION_ERROR:
            return on_publication_error(client, reader);
        default:
            return true; /* an event of a newer driver */
    }
}

static void on_event(int32_t type_id, const uint8_t *message, int64_t length, void *context)
{
    as_client *client = context;
    event_reader reader = { .at = message, .left = length };
    if (!client->is_closed && !dispatch(client, type_id, &reader))
    {
        char text[ASI_CLIENT_TEXT_CAPACITY];
        snprintf(text, sizeof(text), "the driver's event 0x%04x has a broken length (%" PRId64 " bytes), it was ignored",
            (unsigned)type_id, length);
        report(client, AS_E_DATA, 0, text);
    }
}

/* -- keep-alive --------------------------------------------------------------------------------------------------------- */

static bool is_own_heartbeat(const asi_counters *counters, int32_t counter_id, void *context)
{
    return asi_get_i64(counters->metadata[counter_id].key) == *(const int64_t *)context;
}

static void keep_alive(as_client *client)
{
    const int64_t now_ms = asi_clock_ms(&client->clock);
    const int64_t allowed_ms = asi_client_heartbeat_age_ms(client);
    const int64_t driver_ms = asi_ring_mpsc_consumer_heartbeat(&client->ring);
    if (AS_NULL_VALUE == driver_ms)
    {
        asi_conductor_terminate(client, AS_E_TIMEOUT, ASI_CLIENT_DRIVER_TIMEOUT, "the media driver has been shut down");
        return;
    }
    if (now_ms - allowed_ms > driver_ms) /* in this form no value from the driver overflows */
    {
        char text[ASI_CLIENT_TEXT_CAPACITY];
        snprintf(text, sizeof(text), "the media driver's last heartbeat is %" PRId64 " ms old, more than the %" PRId64
            " ms of the driver timeout (at least %d)", asi_wrap_sub_i64(now_ms, driver_ms), allowed_ms, ASI_CLIENT_HEARTBEAT_AGE_MIN_MS);
        asi_conductor_terminate(client, AS_E_TIMEOUT, ASI_CLIENT_DRIVER_TIMEOUT, text);
        return;
    }
    if (AS_NULL_VALUE == client->heartbeat_counter_id)
    {
        /* The driver creates the counter with the client's first resource. A missing counter means nothing before. Spec: 03
           §16 T15. */
        const int32_t id =
            asi_counters_find(&client->counters, ASI_COUNTER_TYPE_CLIENT_HEARTBEAT, is_own_heartbeat, &client->client_id);
        if (AS_NULL_VALUE == id)
        {
            return;
        }
        char suffix[ASI_COUNTER_LABEL_CAPACITY];
        snprintf(suffix, sizeof(suffix), " name=%s version=%s commit=%s", client->client_name, as_version_text(),
            as_commit_text());
        asi_counter_append_label(&client->counters, id, suffix);
        client->heartbeat_counter_id = id;
    }
    const int32_t id = client->heartbeat_counter_id;
    if (ASI_COUNTER_ALLOCATED != asi_counter_state(&client->counters, id) ||
        ASI_COUNTER_TYPE_CLIENT_HEARTBEAT != client->counters.metadata[id].type_id ||
        !is_own_heartbeat(&client->counters, id, &client->client_id))
    {
        char text[ASI_CLIENT_TEXT_CAPACITY];
        snprintf(text, sizeof(text), "unexpected close of heartbeat timestamp counter: %d, the driver has given this client up",
            id);
        asi_conductor_terminate(client, AS_E_TIMEOUT, ASI_CLIENT_DRIVER_TIMEOUT, text);
        return;
    }
    asi_store_release_i64(asi_counter_addr(&client->counters, id), now_ms);
}

static int check_timers(as_client *client, int64_t now_ns)
{
    const int64_t gap_ns = now_ns - client->last_service_ns;
    client->last_service_ns = now_ns;
    if (gap_ns > client->cnc.client_liveness_timeout_ns)
    {
        /* The driver may have reassigned our resources, so no part of the old state is valid. */
        char text[ASI_CLIENT_TEXT_CAPACITY];
        snprintf(text, sizeof(text), "service interval exceeded: %" PRId64 " ms passed since the conductor last ran, the driver "
            "allows %" PRId64 " ms, was the process paused or the client not invoked?", gap_ns / 1000000,
            client->cnc.client_liveness_timeout_ns / 1000000);
        asi_conductor_terminate(client, AS_E_TIMEOUT, ASI_CLIENT_SERVICE_TIMEOUT, text);
        return 1;
    }
    if (now_ns < client->next_keepalive_ns)
    {
        return 0;
    }
    client->next_keepalive_ns = now_ns + client->options.keepalive_interval_ns;
    keep_alive(client);
    return 1;
}

/* -- duty cycle --------------------------------------------------------------------------------------------------------- */

static int receive_events(as_client *client)
{
    int count = 0;
    while (count < EVENT_LIMIT && !client->is_closed)
    {
        const as_result result = asi_broadcast_receive(&client->receiver, on_event, client);
        if (AS_AGAIN == result)
        {
            break;
        }
        if (AS_OK != result)
        {
            /* The lost events may include images or answers, so the view of the driver cannot be repaired. */
            char text[ASI_CLIENT_TEXT_CAPACITY];
            snprintf(text, sizeof(text), "unable to keep up with the driver's events: %s", as_error_text());
            asi_conductor_terminate(client, AS_E_DATA, 0, text);
        }
        count++;
    }
    return count;
}

/* Tries the waiting images in turn, up to the first that still can't be mapped. */
static int map_waiting_images(as_client *client, int64_t now_ns)
{
    int tried = 0;
    asi_waiting_image *image;
    if (NULL == client->waiting_images || now_ns < client->next_mapping_ns)
    {
        return 0;
    }
    client->next_mapping_ns = now_ns + ASI_MAPPING_INTERVAL_NS;
    while (NULL != (image = asi_waiting_images_take(client)))
    {
        const as_result result =
            asi_client_subscription_add_image(image->subscription, &image->available, image->path, image->source_identity);
        tried++;
        if (may_map_later(result))
        {
            asi_waiting_images_put_back(client, image);
            break;
        }
        if (AS_OK != result)
        {
            report_last_failure(client, result);
        }
        asi_waiting_image_free(image);
    }
    return tried;
}

int asi_conductor_service(as_client *client)
{
    const int64_t now_ns = asi_clock_ns(&client->clock);
    int work_count = asi_client_subscription_sweep(client, now_ns);
    work_count += asi_log_cache_sweep(&client->logs, now_ns);
    if (!client->is_closed)
    {
        work_count += check_timers(client, now_ns);
        work_count += receive_events(client);
        work_count += map_waiting_images(client, now_ns);
        work_count += asi_client_retry_unsent(client);
        work_count += asi_request_check_deadlines(client, now_ns);
    }
    return work_count;
}

/* -- termination -------------------------------------------------------------------------------------------------------- */

static void fail_requests(as_client *client)
{
    for (asi_request *request = client->requests; NULL != request; request = request->next)
    {
        request->is_answered = true;
        if (ASI_REQUEST_AWAITING == request->state)
        {
            asi_client_fail_closed(client);
            const char *text = as_error_text();
            asi_request_fail(request, AS_E_CLOSED, client->close_code, text, (int64_t)strlen(text));
        }
    }
}

void asi_conductor_terminate(as_client *client, as_result failure, int32_t code, const char *text)
{
    if (client->is_closed)
    {
        return;
    }
    snprintf(client->close_reason, sizeof(client->close_reason), "%s", text);
    client->close_code = code;
    asi_store_release_bool(&client->is_closed, true);
    for (as_publication *at = client->publications; NULL != at; at = at->next)
    {
        asi_store_release_bool(&at->is_closed, true);
    }
    for (as_subscription *at = client->subscriptions; NULL != at; at = at->next)
    {
        asi_client_subscription_terminate(at);
    }
    for (as_counter *at = client->owned_counters; NULL != at; at = at->next)
    {
        asi_store_release_bool(&at->is_closed, true);
    }
    fail_requests(client);
    /* Best effort: a live driver frees our resources at once, instead of after the liveness timeout. */
    const asi_cmd_correlated close = { .client_id = client->client_id, .correlation_id = AS_NULL_VALUE };
    const as_result sent = asi_ring_mpsc_write(&client->ring, ASI_CMD_CLIENT_CLOSE, &close, sizeof(close));
    (void)sent;
    if (AS_OK != failure)
    {
        asi_client_fail_closed(client);
        report(client, failure, code, as_error_text());
    }
    if (NULL != client->options.on_close)
    {
        client->options.on_close(client->options.context);
    }
}

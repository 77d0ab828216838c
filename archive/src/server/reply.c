/* See reply.h. */
#include "server/reply.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/report.h"

#define SEND_ATTEMPTS 3
#define QUEUE_BYTES_MAX (1024 * 1024)

as_result asi_control_offer(asi_control_session *session, const as_iovec *parts, int64_t part_count)
{
    if (NULL == session->publication || ASI_CONTROL_DONE == session->state)
    {
        return asi_fail(AS_E_CLOSED, 0, "the control session has no response publication");
    }
    int64_t position = AS_BACK_PRESSURED;
    for (int i = 0; i < SEND_ATTEMPTS && (AS_BACK_PRESSURED == position || AS_ADMIN_ACTION == position); i++)
    {
        position = as_publication_offerv(session->publication, parts, part_count, NULL, NULL);
    }
    switch (position)
    {
        case AS_BACK_PRESSURED:
        case AS_ADMIN_ACTION:
            if (AS_NULL_VALUE == session->deadline_ns)
            {
                session->deadline_ns = asi_clock_ns(&session->archive->clock) + session->archive->config.connect_timeout_ns;
            }
            return AS_AGAIN;
        case AS_NOT_CONNECTED:
            asi_control_finish(session, "control response publication is not connected", false);
            return asi_fail(AS_E_CLOSED, 0, "control response publication is not connected");
        case AS_PUBLICATION_CLOSED:
            asi_control_finish(session, "control response publication is closed", true);
            return asi_fail(AS_E_CLOSED, 0, "control response publication is closed");
        case AS_MAX_POSITION_EXCEEDED:
            asi_control_finish(session, "control response publication is at max position", true);
            return asi_fail(AS_E_CLOSED, 0, "control response publication is at max position");
        default:
            return position > 0 ? AS_OK : AS_E_USAGE; /* the failure text is the publication's */
    }
}

static as_result send_now(asi_control_session *session, const as_iovec *parts, int64_t part_count)
{
    const as_result sent = asi_control_offer(session, parts, part_count);
    if (AS_OK == sent)
    {
        session->deadline_ns = AS_NULL_VALUE;
    }
    return sent;
}

as_result asi_control_try_send(asi_control_session *session, const as_iovec *parts, int64_t part_count)
{
    return NULL != session->queue ? AS_AGAIN : send_now(session, parts, part_count);
}

/* The queue is bounded: a client that requests faster than it reads, or does not read, uses only this much memory. */
static void enqueue(asi_control_session *session, const uint8_t *bytes, int64_t length)
{
    if (session->queued_bytes + length > QUEUE_BYTES_MAX)
    {
        asi_control_finish(session, "too many responses are not read", true);
        return;
    }
    asi_queued_message *message = malloc(sizeof(*message) + (size_t)length);
    if (NULL == message)
    {
        asi_control_finish(session, "no memory for a response", true);
        return;
    }
    message->next = NULL;
    message->length = length;
    memcpy(message->bytes, bytes, (size_t)length);
    if (NULL == session->queue)
    {
        session->queue = message;
    }
    else
    {
        session->last_queued->next = message;
    }
    session->last_queued = message;
    session->queued_bytes += length;
}

/* Sends or queues the event and preserves the order. */
static void send_event(asi_control_session *session, const asi_codec_event *event)
{
    uint8_t bytes[ASI_CONTROL_RESPONSE_CAPACITY];
    int64_t length;
    if (AS_OK != asi_codec_event_encode(event, bytes, sizeof(bytes), &length))
    {
        asi_archive_log(session->archive, 0, NULL);
        return;
    }
    const as_iovec part = { .data = bytes, .length = length };
    const as_result sent = asi_control_try_send(session, &part, 1);
    if (AS_AGAIN == sent)
    {
        enqueue(session, bytes, length);
    }
    else if (AS_E_USAGE == sent)
    {
        asi_archive_log(session->archive, 0, NULL);
    }
}

int asi_control_drain_queue(asi_control_session *session)
{
    int work_count = 0;
    while (NULL != session->queue)
    {
        asi_queued_message *message = session->queue;
        const as_iovec part = { .data = message->bytes, .length = message->length };
        if (AS_AGAIN == send_now(session, &part, 1) || ASI_CONTROL_DONE == session->state)
        {
            break;
        }
        session->queue = message->next;
        session->queued_bytes -= message->length;
        free(message);
        work_count++;
    }
    return work_count;
}

void asi_control_free_queue(asi_control_session *session)
{
    while (NULL != session->queue)
    {
        asi_queued_message *message = session->queue;
        session->queue = message->next;
        free(message);
    }
}

asi_codec_event asi_control_response(
    const asi_control_session *session, int64_t correlation_id, int32_t code, int64_t relevant_id, const char *text)
{
    asi_codec_event event;
    asi_codec_event_init(&event, ASI_CODEC_CONTROL_RESPONSE);
    event.control_session_id = session->id;
    event.correlation_id = correlation_id;
    event.relevant_id = relevant_id;
    event.code = code;
    event.protocol_version = ASI_CODEC_PROTOCOL_VERSION;
    event.error_message = asi_codec_text(text);
    if (event.error_message.length > ASI_CONTROL_TEXT_CAPACITY)
    {
        event.error_message.length = ASI_CONTROL_TEXT_CAPACITY;
    }
    return event;
}

static void respond(
    asi_control_session *session, int64_t correlation_id, int32_t code, int64_t relevant_id, const char *text)
{
    const asi_codec_event event = asi_control_response(session, correlation_id, code, relevant_id, text);
    send_event(session, &event);
}

void asi_control_ok(asi_control_session *session, int64_t correlation_id, int64_t relevant_id)
{
    respond(session, correlation_id, ASI_CODEC_OK, relevant_id, NULL);
}

void asi_control_error(asi_control_session *session, int64_t correlation_id, int32_t code, const char *format, ...)
{
    char text[ASI_CONTROL_TEXT_CAPACITY];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    respond(session, correlation_id, ASI_CODEC_ERROR, code, text);
}

void asi_control_unknown_recording(asi_control_session *session, int64_t correlation_id, int64_t recording_id)
{
    asi_control_error(session, correlation_id, ASI_CODEC_E_UNKNOWN_RECORDING, "unknown recording id: %lld",
        (long long)recording_id);
}

int32_t asi_control_storage_code(int32_t code)
{
    return ENOSPC == code || EDQUOT == code ? ASI_CODEC_E_STORAGE_SPACE : ASI_CODEC_E_GENERIC;
}

void asi_control_storage_error(asi_control_session *session, int64_t correlation_id)
{
    char text[1024];
    const int32_t code = as_error_code();
    snprintf(text, sizeof(text), "%s", as_error_text());
    asi_archive_log_of_peer(session->archive, "ERROR", code, text, "requests that files or the catalog refused");
    asi_control_error(session, correlation_id, asi_control_storage_code(code), "%s", text);
}

void asi_control_failure(asi_control_session *session, int64_t correlation_id, as_result result)
{
    if (AS_E_USAGE == result)
    {
        asi_control_error(session, correlation_id, ASI_CODEC_E_GENERIC, "%s", as_error_text());
        return;
    }
    asi_control_storage_error(session, correlation_id);
}

void asi_control_respond(as_archive *archive, int64_t control_session_id, int64_t correlation_id, int32_t code,
    int64_t relevant_id, const char *text)
{
    asi_control_session *session = asi_control_find(archive, control_session_id);
    if (NULL != session)
    {
        respond(session, correlation_id, code, relevant_id, text);
    }
}

void asi_control_signal(as_archive *archive, int64_t control_session_id, int64_t correlation_id, int64_t recording_id,
    int64_t subscription_id, int64_t position, as_recording_signal signal)
{
    asi_control_session *session = asi_control_find(archive, control_session_id);
    if (NULL != session)
    {
        asi_codec_event event;
        asi_codec_event_init(&event, ASI_CODEC_RECORDING_SIGNAL);
        event.control_session_id = control_session_id;
        event.correlation_id = correlation_id;
        event.recording_id = recording_id;
        event.subscription_id = subscription_id;
        event.position = position;
        event.signal = signal;
        send_event(session, &event);
    }
}

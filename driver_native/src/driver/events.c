/* See events.h. A record in the ring is a head, then the recorded bytes. */
#include "driver/events.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/thread.h"
#include "base/trust.h"
#include "shm/ring_mpsc.h"
#include "wire/command.h"
#include "wire/frame.h"

#define RING_CAPACITY (4 * 1024 * 1024)
#define KEPT_OF_MESSAGE 4096
#define KEPT_OF_FRAME 128
#define LINE_CAPACITY 8192
#define LINES_PER_CYCLE 4096

typedef struct event_head
{
    int64_t time_ns;   /* since the epoch */
    int32_t length;    /* original length; the recorded bytes may be fewer */
    int32_t has_text;  /* the bytes are the text */
} event_head;

typedef struct frame_tap /* between a thread and its sockets */
{
    asi_events *events;
    asi_udp_ops inner;
} frame_tap;

struct asi_events
{
    uint64_t mask;
    asi_clock clock;
    asi_ring_mpsc ring;
    uint8_t *section;           /* owned: the ring's */
    int64_t lost_count;         /* any thread, atomically */
    frame_tap taps[ASI_EVENTS_THREADS];

    /* Private to the writer thread. */
    asi_agent writer;
    FILE *file;                 /* owned unless it is stdout */
    char path[AS_PATH_MAX];     /* "": stdout */
    int64_t max_file_length;    /* 0: no limit */
    int64_t written_length;
    int32_t roll_count;
    int64_t reported_lost_count;
    int64_t last_time_ns;       /* of the last written record */
    char text[LINE_CAPACITY];
};

bool asi_events_has(const asi_events *events, asi_event event)
{
    return NULL != events && 0 != (events->mask >> event & 1);
}

/* --- recording --------------------------------------------------------------------------------------------------------- */

static void record(asi_events *events, asi_event event, const void *bytes, int64_t kept, int64_t length, bool is_text)
{
    uint8_t *to = NULL;
    if (AS_OK != asi_ring_mpsc_try_claim(&events->ring, event, (int64_t)sizeof(event_head) + kept, &to))
    {
        asi_fetch_add_i64(&events->lost_count, 1);
        return;
    }
    const event_head head = { .time_ns = asi_clock_epoch_ns(&events->clock), .length = (int32_t)length, .has_text = is_text };
    memcpy(to, &head, sizeof(head));
    memcpy(to + sizeof(head), bytes, (size_t)kept);
    asi_ring_mpsc_commit(&events->ring, to);
}

static int64_t at_most(int64_t length, int64_t most) { return length < most ? length : most; }

static void on_message(asi_events *events, const uint8_t *table, int32_t index, int32_t count, const void *message, int64_t length)
{
    const asi_event event = index >= 0 && index < count ? (asi_event)table[index] : (asi_event)0;
    if (0 != event && asi_events_has(events, event))
    {
        record(events, event, message, at_most(length, KEPT_OF_MESSAGE), length, false);
    }
}

void asi_events_on_command_untrusted(asi_events *events, int32_t type_id, const void *message, int64_t length)
{
    static const uint8_t EVENTS[] = {
        [ASI_CMD_ADD_PUBLICATION] = ASI_EVENT_CMD_IN_ADD_PUBLICATION,
        [ASI_CMD_REMOVE_PUBLICATION] = ASI_EVENT_CMD_IN_REMOVE_PUBLICATION,
        [ASI_CMD_ADD_EXCLUSIVE_PUBLICATION] = ASI_EVENT_CMD_IN_ADD_EXCLUSIVE_PUBLICATION,
        [ASI_CMD_ADD_SUBSCRIPTION] = ASI_EVENT_CMD_IN_ADD_SUBSCRIPTION,
        [ASI_CMD_REMOVE_SUBSCRIPTION] = ASI_EVENT_CMD_IN_REMOVE_SUBSCRIPTION,
        [ASI_CMD_CLIENT_KEEPALIVE] = ASI_EVENT_CMD_IN_KEEPALIVE_CLIENT,
        [ASI_CMD_ADD_DESTINATION] = ASI_EVENT_CMD_IN_ADD_DESTINATION,
        [ASI_CMD_REMOVE_DESTINATION] = ASI_EVENT_CMD_IN_REMOVE_DESTINATION,
        [ASI_CMD_ADD_COUNTER] = ASI_EVENT_CMD_IN_ADD_COUNTER,
        [ASI_CMD_REMOVE_COUNTER] = ASI_EVENT_CMD_IN_REMOVE_COUNTER,
        [ASI_CMD_CLIENT_CLOSE] = ASI_EVENT_CMD_IN_CLIENT_CLOSE,
        [ASI_CMD_ADD_RCV_DESTINATION] = ASI_EVENT_CMD_IN_ADD_RCV_DESTINATION,
        [ASI_CMD_REMOVE_RCV_DESTINATION] = ASI_EVENT_CMD_IN_REMOVE_RCV_DESTINATION,
        [ASI_CMD_TERMINATE_DRIVER] = ASI_EVENT_CMD_IN_TERMINATE_DRIVER,
        [ASI_CMD_REJECT_IMAGE] = ASI_EVENT_CMD_IN_REJECT_IMAGE,
        [ASI_CMD_REMOVE_DESTINATION_BY_ID] = ASI_EVENT_CMD_IN_REMOVE_DESTINATION_BY_ID,
    };
    if (NULL != events)
    {
        on_message(events, EVENTS, type_id, (int32_t)sizeof(EVENTS), message, length);
    }
}

void asi_events_on_response(asi_events *events, int32_t type_id, const void *message, int64_t length)
{
    static const uint8_t EVENTS[] = {
        [0] = ASI_EVENT_CMD_OUT_ERROR,
        [ASI_RSP_AVAILABLE_IMAGE - ASI_RSP_ERROR] = ASI_EVENT_CMD_OUT_AVAILABLE_IMAGE,
        [ASI_RSP_PUBLICATION_READY - ASI_RSP_ERROR] = ASI_EVENT_CMD_OUT_PUBLICATION_READY,
        [ASI_RSP_OPERATION_SUCCESS - ASI_RSP_ERROR] = ASI_EVENT_CMD_OUT_ON_OPERATION_SUCCESS,
        [ASI_RSP_UNAVAILABLE_IMAGE - ASI_RSP_ERROR] = ASI_EVENT_CMD_OUT_ON_UNAVAILABLE_IMAGE,
        [ASI_RSP_EXCLUSIVE_PUBLICATION_READY - ASI_RSP_ERROR] = ASI_EVENT_CMD_OUT_EXCLUSIVE_PUBLICATION_READY,
        [ASI_RSP_SUBSCRIPTION_READY - ASI_RSP_ERROR] = ASI_EVENT_CMD_OUT_SUBSCRIPTION_READY,
        [ASI_RSP_COUNTER_READY - ASI_RSP_ERROR] = ASI_EVENT_CMD_OUT_COUNTER_READY,
        [ASI_RSP_UNAVAILABLE_COUNTER - ASI_RSP_ERROR] = ASI_EVENT_CMD_OUT_ON_UNAVAILABLE_COUNTER,
        [ASI_RSP_CLIENT_TIMEOUT - ASI_RSP_ERROR] = ASI_EVENT_CMD_OUT_ON_CLIENT_TIMEOUT,
    };
    if (NULL != events)
    {
        on_message(events, EVENTS, type_id - ASI_RSP_ERROR, (int32_t)sizeof(EVENTS), message, length);
    }
}

void asi_events_log(asi_events *events, asi_event event, const char *format, ...)
{
    if (!asi_events_has(events, event))
    {
        return;
    }
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    record(events, event, text, at_most(length, (int64_t)sizeof(text) - 1), length, true);
}

/* --- datagrams: a tap between a thread and its sockets ---------------------------------------------------------------------- */

typedef struct tapped_frame /* the recorded part of a datagram */
{
    asi_address peer; /* none: the connected peer of the socket */
    uint8_t bytes[KEPT_OF_FRAME];
} tapped_frame;

static void record_frame(
    asi_events *events, asi_event event, asi_event nak_event, const void *bytes, int64_t length, const asi_address *peer)
{
    tapped_frame frame = { 0 };
    const int64_t kept = at_most(length, KEPT_OF_FRAME);
    memcpy(frame.bytes, bytes, (size_t)kept);
    if (NULL != peer)
    {
        frame.peer = *peer;
    }
    const int64_t recorded = (int64_t)offsetof(tapped_frame, bytes) + kept;
    const asi_nak_frame *nak = (const asi_nak_frame *)(const void *)frame.bytes;
    if (asi_events_has(events, event))
    {
        record(events, event, &frame, recorded, length, false);
    }
    if (asi_events_has(events, nak_event) && kept >= (int64_t)sizeof(*nak) && ASI_FRAME_NAK == nak->prefix.type)
    {
        record(events, nak_event, &frame, recorded, length, false);
    }
}

static as_result tap_send(
    void *context, asi_udp_socket *socket, const asi_outgoing *datagrams, int32_t count, int32_t *sent)
{
    const frame_tap *tap = context;
    const as_result result = tap->inner.send(tap->inner.context, socket, datagrams, count, sent);
    for (int32_t i = 0; i < *sent; i++)
    {
        record_frame(tap->events, ASI_EVENT_FRAME_OUT, ASI_EVENT_NAK_SENT, datagrams[i].bytes, datagrams[i].length,
            datagrams[i].to);
    }
    return result;
}

static as_result tap_receive(
    void *context, asi_udp_socket *socket, asi_incoming *datagrams, int32_t count, int32_t *received)
{
    const frame_tap *tap = context;
    const as_result result = tap->inner.receive(tap->inner.context, socket, datagrams, count, received);
    for (int32_t i = 0; i < *received; i++)
    {
        record_frame(tap->events, ASI_EVENT_FRAME_IN, ASI_EVENT_NAK_RECEIVED, datagrams[i].buffer, datagrams[i].length,
            &datagrams[i].source);
    }
    return result;
}

static as_result tap_open(void *context, const asi_udp_params *params, asi_udp_socket **socket)
{
    const asi_udp_ops *inner = &((const frame_tap *)context)->inner;
    return inner->open(inner->context, params, socket);
}

static void tap_close(void *context, asi_udp_socket *socket)
{
    const asi_udp_ops *inner = &((const frame_tap *)context)->inner;
    inner->close(inner->context, socket);
}

static as_result tap_reconnect(void *context, asi_udp_socket *socket, const asi_address *peer)
{
    const asi_udp_ops *inner = &((const frame_tap *)context)->inner;
    return inner->reconnect(inner->context, socket, peer);
}

static as_result tap_bound_address(void *context, asi_udp_socket *socket, asi_address *address)
{
    const asi_udp_ops *inner = &((const frame_tap *)context)->inner;
    return inner->bound_address(inner->context, socket, address);
}

static as_result tap_interfaces(void *context, asi_interface *to, int32_t capacity, int32_t *count)
{
    const asi_udp_ops *inner = &((const frame_tap *)context)->inner;
    return inner->interfaces(inner->context, to, capacity, count);
}

asi_udp_ops asi_events_ops(asi_events *events, int32_t thread, const asi_udp_ops *inner)
{
    if (!asi_events_has(events, ASI_EVENT_FRAME_IN) && !asi_events_has(events, ASI_EVENT_FRAME_OUT) &&
        !asi_events_has(events, ASI_EVENT_NAK_SENT) && !asi_events_has(events, ASI_EVENT_NAK_RECEIVED))
    {
        return *inner;
    }
    frame_tap *tap = &events->taps[thread];
    *tap = (frame_tap){ .events = events, .inner = *inner };
    return (asi_udp_ops){
        .open = tap_open,
        .close = tap_close,
        .send = tap_send,
        .receive = tap_receive,
        .reconnect = tap_reconnect,
        .bound_address = tap_bound_address,
        .interfaces = tap_interfaces,
        .context = tap
    };
}

/* --- writing ----------------------------------------------------------------------------------------------------------- */

static as_result open_file(asi_events *events)
{
    char path[AS_PATH_MAX + 16];
    snprintf(path, sizeof(path), 0 == events->roll_count ? "%s" : "%s.%" PRId32, events->path, events->roll_count);
    const int fd = asi_open_no_strange_link(path, O_WRONLY | O_APPEND | O_CREAT, 0666);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "a");
    if (NULL == file)
    {
        const int error = errno;
        if (fd >= 0)
        {
            close(fd);
        }
        errno = error;
        return asi_fail_errno(AS_E_STORAGE, errno, "cannot write the event log %s: set aeron.event.log.filename to a file that "
            "can be written", path);
    }
    if (NULL != events->file)
    {
        fclose(events->file);
    }
    events->file = file;
    fseek(file, 0, SEEK_END);
    events->written_length = ftell(file);
    return AS_OK;
}

static void write_line(asi_events *events, int64_t time_ns, int32_t event, int64_t kept, int64_t length)
{
    const char *name = asi_event_name(event);
    for (char *c = events->text; '\0' != *c; c++)
    {
        *c = isprint((unsigned char)*c) ? *c : '?'; /* keeps it on one line, whatever bytes a channel contains */
    }
    const int written = fprintf(events->file, "[%" PRId64 ".%09" PRId64 "] DRIVER: %s [%" PRId64 "/%" PRId64 "]: %s\n",
        time_ns / 1000000000, time_ns % 1000000000, NULL == name ? "UNKNOWN" : name, kept, length, events->text);
    events->written_length += written > 0 ? written : 0;
    if (0 != events->max_file_length && events->written_length >= events->max_file_length && '\0' != events->path[0])
    {
        events->roll_count++;
        if (AS_OK != open_file(events))
        {
            events->max_file_length = 0; /* keep writing to the current file */
        }
    }
}

static asi_ring_action on_record(int32_t event, const uint8_t *message, int64_t length, void *context)
{
    asi_events *events = context;
    event_head head;
    memcpy(&head, message, sizeof(head));
    events->last_time_ns = head.time_ns;
    const uint8_t *bytes = message + sizeof(head);
    int64_t kept = length - (int64_t)sizeof(head);
    if (head.has_text)
    {
        snprintf(events->text, sizeof(events->text), "%.*s", (int)kept, (const char *)bytes);
    }
    else
    {
        asi_event_format_untrusted(event, bytes, kept, events->text, sizeof(events->text));
        kept = kept > head.length ? head.length : kept; /* a datagram's address does not count as one of its bytes */
    }
    write_line(events, head.time_ns, event, kept, head.length);
    return ASI_RING_CONTINUE;
}

static int write_some(void *context)
{
    asi_events *events = context;
    const int64_t lines = asi_ring_mpsc_read(&events->ring, on_record, events, LINES_PER_CYCLE);
    const int64_t lost = asi_load_acquire_i64(&events->lost_count);
    if (lost != events->reported_lost_count)
    {
        snprintf(events->text, sizeof(events->text), "%" PRId64 " events lost, this log could not keep up",
            lost - events->reported_lost_count);
        events->reported_lost_count = lost;
        write_line(events, events->last_time_ns, ASI_EVENT_GENERIC_MESSAGE, 0, 0);
    }
    if (0 != lines)
    {
        fflush(events->file);
    }
    return (int)lines;
}

static as_result open_ring(asi_events *events)
{
    const size_t length = RING_CAPACITY + ASI_RING_TRAILER_LENGTH;
    events->section = aligned_alloc(64, length);
    if (NULL == events->section)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for the event log");
    }
    memset(events->section, 0, length);
    return asi_ring_mpsc_init(&events->ring, events->section, (int64_t)length);
}

as_result asi_events_open(const asi_driver_settings *settings, asi_clock clock, asi_events **events)
{
    const uint64_t mask = asi_events_parse("AERON_EVENT_LOG", settings->event_log) &
        ~asi_events_parse("AERON_EVENT_LOG_DISABLE", settings->event_log_disable);
    *events = NULL;
    if (0 == mask)
    {
        return AS_OK;
    }
    asi_events *opened = calloc(1, sizeof(*opened));
    if (NULL == opened)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for the event log");
    }
    opened->mask = mask;
    opened->clock = clock;
    opened->max_file_length = settings->event_log_file_max_length;
    memcpy(opened->path, settings->event_log_filename, sizeof(opened->path));
    asi_idle idle;
    as_result result = open_ring(opened);
    if (AS_OK == result && '\0' != opened->path[0])
    {
        result = open_file(opened);
    }
    else
    {
        opened->file = stdout;
    }
    result = AS_OK == result ? asi_idle_parse(&idle, "sleep-ns", "1ms") : result;
    result = AS_OK == result ? asi_agent_start(&opened->writer, "event-log", write_some, opened, &idle, -1) : result;
    if (AS_OK != result)
    {
        asi_events_close(opened);
        return result;
    }
    *events = opened;
    return AS_OK;
}

void asi_events_close(asi_events *events)
{
    if (NULL == events)
    {
        return;
    }
    asi_agent_stop(&events->writer);
    while (NULL != events->file && NULL != events->ring.buffer && write_some(events) > 0)
    {
    }
    if (NULL != events->file && stdout != events->file)
    {
        fclose(events->file);
    }
    free(events->section);
    free(events);
}

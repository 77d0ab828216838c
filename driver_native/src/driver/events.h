/* The event log: what the driver did, as lines of text, for who looks for a fault. Spec: 05 §11.
 *
 * Off (NULL) unless aeron.event.log names events, and then a hook costs one branch. On, any thread of the driver puts a record
 * into a ring and goes on; a thread of the log's own makes text of it and writes it to standard output or a file. A full ring
 * loses records, never time; how many is told by a line of its own.
 *
 * A line: [<seconds since the epoch>.<nanoseconds>] DRIVER: <event> [<bytes kept>/<bytes there were>]: <fields>
 *
 * Opened and closed by driver.c; recorded to by conductor, sender and receiver; events_text.c makes the text. */
#ifndef ASI_DRIVER_EVENTS_H
#define ASI_DRIVER_EVENTS_H

#include "base/clock.h"
#include "driver/config.h"
#include "driver/net/udp_ops.h"

typedef enum asi_event
{
    ASI_EVENT_FRAME_IN = 1,
    ASI_EVENT_FRAME_OUT = 2,
    ASI_EVENT_CMD_IN_ADD_PUBLICATION = 3,
    ASI_EVENT_CMD_IN_REMOVE_PUBLICATION = 4,
    ASI_EVENT_CMD_IN_ADD_SUBSCRIPTION = 5,
    ASI_EVENT_CMD_IN_REMOVE_SUBSCRIPTION = 6,
    ASI_EVENT_CMD_OUT_PUBLICATION_READY = 7,
    ASI_EVENT_CMD_OUT_AVAILABLE_IMAGE = 8,
    ASI_EVENT_CMD_OUT_ON_OPERATION_SUCCESS = 12,
    ASI_EVENT_CMD_IN_KEEPALIVE_CLIENT = 13,
    ASI_EVENT_REMOVE_PUBLICATION_CLEANUP = 14,
    ASI_EVENT_REMOVE_SUBSCRIPTION_CLEANUP = 15,
    ASI_EVENT_REMOVE_IMAGE_CLEANUP = 16,
    ASI_EVENT_CMD_OUT_ON_UNAVAILABLE_IMAGE = 17,
    ASI_EVENT_SEND_CHANNEL_CREATION = 23,
    ASI_EVENT_RECEIVE_CHANNEL_CREATION = 24,
    ASI_EVENT_SEND_CHANNEL_CLOSE = 25,
    ASI_EVENT_RECEIVE_CHANNEL_CLOSE = 26,
    ASI_EVENT_CMD_IN_ADD_DESTINATION = 30,
    ASI_EVENT_CMD_IN_REMOVE_DESTINATION = 31,
    ASI_EVENT_CMD_IN_ADD_EXCLUSIVE_PUBLICATION = 32,
    ASI_EVENT_CMD_OUT_EXCLUSIVE_PUBLICATION_READY = 33,
    ASI_EVENT_CMD_OUT_ERROR = 34,
    ASI_EVENT_CMD_IN_ADD_COUNTER = 35,
    ASI_EVENT_CMD_IN_REMOVE_COUNTER = 36,
    ASI_EVENT_CMD_OUT_SUBSCRIPTION_READY = 37,
    ASI_EVENT_CMD_OUT_COUNTER_READY = 38,
    ASI_EVENT_CMD_OUT_ON_UNAVAILABLE_COUNTER = 39,
    ASI_EVENT_CMD_IN_CLIENT_CLOSE = 40,
    ASI_EVENT_CMD_IN_ADD_RCV_DESTINATION = 41,
    ASI_EVENT_CMD_IN_REMOVE_RCV_DESTINATION = 42,
    ASI_EVENT_CMD_OUT_ON_CLIENT_TIMEOUT = 43,
    ASI_EVENT_CMD_IN_TERMINATE_DRIVER = 44,
    ASI_EVENT_UNTETHERED_SUBSCRIPTION_STATE_CHANGE = 45,
    ASI_EVENT_NAME_RESOLUTION_NEIGHBOR_ADDED = 46,
    ASI_EVENT_NAME_RESOLUTION_NEIGHBOR_REMOVED = 47,
    ASI_EVENT_FLOW_CONTROL_RECEIVER_ADDED = 48,
    ASI_EVENT_FLOW_CONTROL_RECEIVER_REMOVED = 49,
    ASI_EVENT_NAME_RESOLUTION_RESOLVE = 50,
    ASI_EVENT_GENERIC_MESSAGE = 51,
    ASI_EVENT_NAME_RESOLUTION_LOOKUP = 52,
    ASI_EVENT_NAME_RESOLUTION_HOST_NAME = 53,
    ASI_EVENT_NAK_SENT = 54,
    ASI_EVENT_RESEND = 55,
    ASI_EVENT_CMD_IN_REMOVE_DESTINATION_BY_ID = 56,
    ASI_EVENT_CMD_IN_REJECT_IMAGE = 57,
    ASI_EVENT_NAK_RECEIVED = 58,
    ASI_EVENT_PUBLICATION_REVOKE = 59,
    ASI_EVENT_PUBLICATION_IMAGE_REVOKE = 60
} asi_event;

typedef struct asi_events asi_events;

/* *events stays NULL when the settings ask for none. AS_E_STORAGE: the file can't be written. */
as_result asi_events_open(const asi_driver_settings *settings, asi_clock clock, asi_events **events) AS_MUST_USE;
/* Writes what is left. The driver's threads must have stopped. Harmless on NULL. */
void asi_events_close(asi_events *events);
bool asi_events_has(const asi_events *events, asi_event event); /* events may be NULL, as in all that follow */

/* Commands and responses as they lie in the rings, unchecked. Those that have no event are left out. */
void asi_events_on_command_untrusted(asi_events *events, int32_t type_id, const void *message, int64_t length);
void asi_events_on_response(asi_events *events, int32_t type_id, const void *message, int64_t length);
/* Anything else, as its text. */
void asi_events_say(asi_events *events, asi_event event, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Sockets whose datagrams are logged: `inner` itself unless the settings name an event of frames. The result is valid until
 * asi_events_close; each thread that uses sockets asks for its own. */
asi_udp_ops asi_events_ops(asi_events *events, int32_t thread, const asi_udp_ops *inner);
#define ASI_EVENTS_THREADS 2

/* Text of one record, without the line's head; `to` is always terminated. */
void asi_event_format_untrusted(int32_t event, const void *message, int64_t length, char *to, size_t capacity);
const char *asi_event_name(int32_t event); /* NULL: there is no such event */
/* Bit n: event n. Names, numbers, all, admin, or a legacy mask in hex, with commas between; what can't be is warned of. */
uint64_t asi_events_parse(const char *setting, const char *text);

#endif

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
#include "driver/events_text.h"
#include "driver/net/udp_ops.h"

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

#endif

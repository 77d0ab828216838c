/* The event log: writes the driver's actions as lines of text, for diagnosis. Spec: 05 §11.
 *
 * Off (NULL) unless aeron.event.log names events; a hook then costs one branch. When on, a driver thread puts a record into a
 * ring and continues; the log's own thread formats it and writes it to standard output or a file. When the ring is full, records
 * are dropped and no thread waits; a separate line reports their number.
 *
 * A line: [<seconds since the epoch>.<nanoseconds>] DRIVER: <event> [<bytes recorded>/<original bytes>]: <fields>
 *
 * driver.c opens and closes it; conductor, sender and receiver record; events_text.c formats the text. */
#ifndef ASI_DRIVER_EVENTS_H
#define ASI_DRIVER_EVENTS_H

#include "base/clock.h"
#include "driver/config.h"
#include "driver/events_text.h"
#include "driver/net/udp_ops.h"

typedef struct asi_events asi_events;

/* *events stays NULL when the settings name no events. AS_E_STORAGE: the file can't be written. */
as_result asi_events_open(const asi_driver_settings *settings, asi_clock clock, asi_events **events) AS_MUST_USE;
/* Writes the remaining records. The driver's threads must have stopped. No effect on NULL. */
void asi_events_close(asi_events *events);
bool asi_events_has(const asi_events *events, asi_event event); /* events may be NULL, as in all functions below */

/* Records commands and responses as they are in the rings, unchecked. Types without an event are skipped. */
void asi_events_on_command_untrusted(asi_events *events, int32_t type_id, const void *message, int64_t length);
void asi_events_on_response(asi_events *events, int32_t type_id, const void *message, int64_t length);
/* Records any other event, as text. */
void asi_events_log(asi_events *events, asi_event event, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Returns operations for sockets whose datagrams are logged: `inner` itself unless the settings name a frame event. The result is
 * valid until asi_events_close. Each thread that uses sockets needs its own. */
asi_udp_ops asi_events_ops(asi_events *events, int32_t thread, const asi_udp_ops *inner);
#define ASI_EVENTS_THREADS 2

#endif

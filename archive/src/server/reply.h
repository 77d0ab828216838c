/* Sends answers and signals of control sessions: at once, or queued in order behind others. Answering code calls this and never
 * the session's steps. A session that can't be answered is finished here, and control.c frees it later. Spec: 07 §10. Thread
 * rule: conductor only. */
#ifndef ASI_SERVER_REPLY_H
#define ASI_SERVER_REPLY_H

#include "server/session.h"

/* Size of the longest message on a response channel with the smallest terms. An error text is truncated to fit, because no
 * answer would be worse. */
#define ASI_CONTROL_RESPONSE_CAPACITY 8192
#define ASI_CONTROL_TEXT_CAPACITY (ASI_CONTROL_RESPONSE_CAPACITY - 256)

void asi_control_ok(asi_control_session *session, int64_t correlation_id, int64_t relevant_id);
void asi_control_error(asi_control_session *session, int64_t correlation_id, int32_t code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void asi_control_unknown_recording(asi_control_session *session, int64_t correlation_id, int64_t recording_id);
/* Responds by session id, for operations that outlive sessions. The response is dropped when the session is gone. */
void asi_control_respond(as_archive *archive, int64_t control_session_id, int64_t correlation_id, int32_t code,
    int64_t relevant_id, const char *text);
void asi_control_signal(as_archive *archive, int64_t control_session_id, int64_t correlation_id, int64_t recording_id,
    int64_t subscription_id, int64_t position, as_recording_signal signal);
/* For listings, which are not queued. AS_OK: sent; AS_AGAIN: back-pressured, or other messages wait; AS_E_CLOSED: the session
 * ends; AS_E_USAGE: too long for the response stream. */
as_result asi_control_try_send(asi_control_session *session, const as_iovec *parts, int64_t part_count) AS_MUST_USE;
/* Reports the error of a failed catalog or file operation with as_error_text(), to the client and in the error log, where such
 * texts may fill a quarter. The code is STORAGE_SPACE when the disk is full. */
void asi_control_storage_error(asi_control_session *session, int64_t correlation_id);
/* The same if `result` is a failure of the archive; AS_E_USAGE, the client's mistake, is only answered. */
void asi_control_failure(asi_control_session *session, int64_t correlation_id, as_result result);
/* Maps the system error `code` to the code sent to clients. */
int32_t asi_control_storage_code(int32_t code);

/* The next four are for the session's own steps. */
asi_codec_event asi_control_response(
    const asi_control_session *session, int64_t correlation_id, int32_t code, int64_t relevant_id, const char *text);
/* AS_OK, AS_AGAIN, or AS_E_*: the session is over (CLOSED), or the message can't be sent (USAGE). Does not change an existing
 * deadline, but may arm one. */
as_result asi_control_offer(asi_control_session *session, const as_iovec *parts, int64_t part_count) AS_MUST_USE;
int asi_control_drain_queue(asi_control_session *session);
void asi_control_free_queue(asi_control_session *session);

#endif

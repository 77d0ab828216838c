/* What the files of the control sessions share: control.c has connect, duty cycle and end, control_send.c what is sent.
 * Spec: 07 §6, §10. Thread rule: the conductor's. */
#ifndef ASI_SERVER_CONTROL_H
#define ASI_SERVER_CONTROL_H

#include "server/archive.h"

/* The longest message of a response channel with the smallest terms; an error text is cut to what fits, as no answer would be worse. */
#define ASI_CONTROL_RESPONSE_CAPACITY 8192
#define ASI_CONTROL_TEXT_CAPACITY (ASI_CONTROL_RESPONSE_CAPACITY - 256)

/* The session does no more; it is freed by a later step. An unexpected end is logged and told to the client's publication. */
void asi_control_finish(asi_control_session *session, const char *reason, bool is_unexpected);
/* NULL: unknown, or over. */
asi_control_session *asi_control_find(as_archive *archive, int64_t control_session_id);

asi_codec_event asi_control_response(
    const asi_control_session *session, int64_t correlation_id, int32_t code, int64_t relevant_id, const char *text);
/* AS_OK, AS_AGAIN, or AS_E_*: the session is over (CLOSED), or the message can't be sent (USAGE). Leaves a deadline alone, but
 * for one that it arms. */
as_result asi_control_offer(asi_control_session *session, const as_iovec *parts, int64_t part_count) AS_MUST_USE;
int asi_control_drain_queue(asi_control_session *session);
void asi_control_free_queue(asi_control_session *session);

#endif

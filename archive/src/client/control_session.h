/* A control session with an archive: sends requests, polls the response stream, passes each message to the call that awaits it.
 * Spec: 07 §6.3, §8, §13, 08 §13.
 *
 * connect.c establishes the session; call.h sends requests and reads their answers. Owns the request publication, the response
 * subscription and its assembler; borrows the Aeron client.
 * Invariants: any number of calls is in flight. An answer counts only if its control session id and correlation id match, so
 * late copies of old answers are dropped. Any other ERROR is passed to on_error or kept for the next
 * asi_client_session_take_error.
 * asi_client_session_poll runs the application's handlers with `in_handler` set; calls made from a handler are refused.
 * Thread rule: one thread at a time. */
#ifndef ASI_CLIENT_CONTROL_SESSION_H
#define ASI_CLIENT_CONTROL_SESSION_H

#include "aeron_spark/as_archive.h"
#include "base/clock.h"
#include "base/idle.h"
#include "codec/event.h"
#include "codec/request.h"

#define ASI_CLIENT_REQUEST_CAPACITY (16 * 1024)
#define ASI_CLIENT_TEXT_CAPACITY 4096

/* Receiver of a listing's descriptors. */
typedef struct asi_call_listing
{
    as_on_recording on_recording;                 /* exactly one of the two is set; neither: the request is not a listing */
    as_on_recording_subscription on_subscription;
    void *context;
    int32_t wanted;    /* descriptors requested: the listing ends at this count, or with an UNKNOWN response */
    int32_t received;
    int32_t given;     /* passed to the handler, which may stop early */
    bool enough;
} asi_call_listing;

typedef struct asi_call_answer
{
    int32_t template_id;        /* ControlResponse, Challenge, or the descriptor that completed a listing */
    int32_t code;               /* of a ControlResponse */
    int32_t protocol_version;
    int64_t control_session_id;
    int64_t relevant_id;
    char text[ASI_CLIENT_TEXT_CAPACITY]; /* of an ERROR, or the bytes of a Challenge */
    int64_t text_length;
} asi_call_answer;

/* A request in flight; see call.h. */
typedef struct asi_call
{
    struct asi_client_session *session; /* borrowed; NULL once the call ended or the session was closed */
    int32_t template_id;
    int64_t correlation_id;
    int64_t deadline_ns;        /* each descriptor of a listing extends it */
    bool is_in_flight;
    bool is_answered;
    bool is_in_handler;         /* of its listing, which goes on with the call afterwards */
    asi_call_listing listing;
    asi_call_answer answer;
    struct asi_call *next;
} asi_call;

/* An ERROR that no call awaited: its request timed out earlier, or a replay or recording failed after its OK. */
typedef struct asi_unawaited_error
{
    int64_t count;              /* since the last take; only the first error's text is kept */
    int64_t correlation_id;
    int32_t code;
    char text[ASI_CLIENT_TEXT_CAPACITY];
} asi_unawaited_error;

typedef struct asi_client_session
{
    as_client *aeron;                /* not owned */
    bool is_aeron_invoked;           /* the client has no conductor thread */
    as_on_event invoker;             /* the application's; may be NULL */
    void *invoker_context;
    as_publication *requests;        /* owned */
    as_subscription *responses;      /* owned */
    as_controlled_assembler *assembler; /* owned */
    asi_clock clock;
    asi_idle idle;
    int64_t message_timeout_ns;
    int64_t control_session_id;      /* AS_NULL_VALUE until connected */
    as_on_recording_signal on_signal;
    void *on_signal_context;
    as_on_archive_error on_error;
    void *on_error_context;
    int64_t error_count;             /* total of errors that no call awaited */
    asi_call *calls;                 /* not owned: in flight */
    bool in_handler;
    bool is_lost;                    /* the archive's side of the session is gone: requests are refused */
    as_result failure;               /* of the last poll */
    as_action action;                /* of the last message: an answer or a failure ends a poll */
    int32_t handled;                 /* signals, errors, descriptors and answers in the last poll */
    asi_unawaited_error unawaited;
    char *strings;                   /* owned: NUL-terminated copies for a descriptor's handler */
    int64_t strings_capacity;
    uint8_t request[ASI_CLIENT_REQUEST_CAPACITY];
} asi_client_session;

/* Tries once to send the request under a new correlation id and this session's id. AS_AGAIN: back-pressured, call again. */
as_result asi_client_session_offer(asi_client_session *session, asi_codec_request *request) AS_MUST_USE;
/* The same on another publication to the archive; for replays whose response uses that publication. */
as_result asi_client_session_offer_on(
    asi_client_session *session, as_publication *publication, asi_codec_request *request) AS_MUST_USE;
/* As asi_client_session_offer_on; polls and retries under back pressure until `deadline_ns`. */
as_result asi_client_session_send(asi_client_session *session, as_publication *publication, asi_codec_request *request,
    int64_t deadline_ns) AS_MUST_USE;
/* Polls once, behind the pings that have come: processes signals, descriptors, errors that no call awaits, and at most one answer,
 * so that what follows an answer finds its effects. Sets `handled`. AS_E_DATA: a message can't be decoded. */
as_result asi_client_session_poll(asi_client_session *session) AS_MUST_USE;
/* Runs the Aeron client's conductor if it has no thread and no handler is running; returns its work count. */
int asi_client_session_invoke(asi_client_session *session);
/* Runs between two polls of a wait loop: drives the agents that have no thread, and idles if `work_count` is 0. */
void asi_client_session_idle(asi_client_session *session, int work_count);
/* AS_E_USAGE inside a handler, AS_E_CLOSED once the session was lost. */
as_result asi_client_session_check_usable(const asi_client_session *session) AS_MUST_USE;
/* AS_E_CLOSED when the archive or the Aeron client is gone; marks the session as lost. */
as_result asi_client_session_check_connected(asi_client_session *session) AS_MUST_USE;
/* AS_E_PEER with the first unawaited error, which is then removed. */
as_result asi_client_session_take_error(asi_client_session *session) AS_MUST_USE;

#endif

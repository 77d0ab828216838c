/* One control session with an archive: sends a request, polls the response stream, matches the answer.
 * Spec: 07 §6.3, §8, §13, 08 §13.
 *
 * Callers: connect.c, which establishes the session, and archive_client.c, whose blocking calls are asi_async_call with different
 * requests. Owns the request publication, the response subscription and its assembler; borrows the Aeron client.
 * Invariants: a blocking call awaits at most one request; asi_calls (call.h) may await any number. An answer counts only if its
 * control session id and correlation id match, so late copies of old answers are dropped. Any other ERROR is passed to on_error
 * or kept for the next asi_async_take_forgotten.
 * asi_async_poll runs the application's handlers with `in_handler` set; calls made from a handler are refused.
 * Thread rule: one thread at a time. */
#ifndef ASI_CLIENT_ASYNC_H
#define ASI_CLIENT_ASYNC_H

#include "aeron_spark/as_archive.h"
#include "base/clock.h"
#include "base/idle.h"
#include "codec/event.h"
#include "codec/request.h"

#define ASI_ASYNC_REQUEST_CAPACITY (16 * 1024)
#define ASI_ASYNC_TEXT_CAPACITY 4096

/* Receiver of a listing's descriptors. */
typedef struct asi_async_listing
{
    as_on_recording on_recording;                 /* exactly one of the two is set */
    as_on_recording_subscription on_subscription;
    void *context;
    int32_t wanted;    /* descriptors requested: the listing ends at this count, or with an UNKNOWN response */
    int32_t received;
    int32_t given;     /* passed to the handler, which may stop early */
    bool enough;
} asi_async_listing;

typedef struct asi_async_answer
{
    int32_t template_id;        /* ControlResponse, Challenge, or the descriptor that completed a listing */
    int32_t code;               /* of a ControlResponse */
    int32_t protocol_version;
    int64_t control_session_id;
    int64_t relevant_id;
    char text[ASI_ASYNC_TEXT_CAPACITY]; /* of an ERROR, or the bytes of a Challenge */
    int64_t text_length;
} asi_async_answer;

/* A request in flight that no caller blocks on; see call.h. */
typedef struct asi_call
{
    struct asi_async *async;    /* borrowed; NULL once the session was closed */
    int64_t correlation_id;
    int64_t deadline_ns;        /* each descriptor of a listing extends it */
    int32_t template_id;
    bool is_answered;
    asi_async_listing *listing; /* NULL: the request is not a listing */
    asi_async_answer answer;
    struct asi_call *next;
} asi_call;

/* An ERROR that no caller awaited: its request timed out earlier, or a replay or recording failed after its OK. */
typedef struct asi_async_forgotten
{
    int64_t count;              /* since the last take; only the first error's text is kept */
    int64_t correlation_id;
    int32_t code;
    char text[ASI_ASYNC_TEXT_CAPACITY];
} asi_async_forgotten;

typedef struct asi_async
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
    int64_t error_count;             /* total of errors that no caller awaited */
    asi_call *calls;                 /* not owned: in flight */
    int64_t awaited_correlation_id;  /* AS_NULL_VALUE: none */
    bool is_answered;
    bool in_handler;
    bool is_lost;                    /* the archive's side of the session is gone: requests are refused */
    as_result failure;               /* of a handler in the current poll */
    int32_t handled;                 /* signals and errors in the current poll */
    asi_async_listing *listing;      /* of the awaited request; NULL: not a listing */
    asi_async_answer answer;
    asi_async_forgotten forgotten;
    char *strings;                   /* owned: NUL-terminated copies for a descriptor's handler */
    int64_t strings_capacity;
    uint8_t request[ASI_ASYNC_REQUEST_CAPACITY];
} asi_async;

/* Tries once to send the request under a new correlation id and this session's id. AS_AGAIN: back-pressured, call again. */
as_result asi_async_offer(asi_async *async, asi_codec_request *request) AS_MUST_USE;
/* As asi_async_begin, on another publication to the archive; for replays whose response uses that publication. */
as_result asi_async_begin_on(asi_async *async, as_publication *publication, asi_codec_request *request,
    asi_async_listing *listing) AS_MUST_USE;
/* As asi_async_offer, and awaits the answer: asi_async_poll_answer reports its arrival. `listing` may be NULL and is borrowed
 * until then. */
as_result asi_async_begin(asi_async *async, asi_codec_request *request, asi_async_listing *listing) AS_MUST_USE;
/* Polls once. AS_AGAIN: no answer yet; AS_OK: any answer, errors included. Never blocks and checks no deadline. */
as_result asi_async_poll_answer(asi_async *async) AS_MUST_USE;
/* Builds AS_E_TIMEOUT for a request that was not answered in time. */
as_result asi_async_fail_by_timeout(const asi_async *async, const asi_codec_request *request) AS_MUST_USE;
/* Sends the request under a new correlation id and this session's id. Retries under back pressure until `deadline_ns`. */
as_result asi_async_send(asi_async *async, asi_codec_request *request, int64_t deadline_ns) AS_MUST_USE;
/* Polls once and processes signals, descriptors, the awaited answer and unawaited errors. *handled: signals and errors seen.
 * AS_E_DATA: a message can't be decoded. */
as_result asi_async_poll(asi_async *async, int32_t *handled) AS_MUST_USE;
/* Runs between two polls of a wait loop: drives the agents that have no thread, and idles if `work_count` is 0. */
void asi_async_idle(asi_async *async, int work_count);
/* Waits for the answer to `request`, the last one sent, until `deadline_ns`; each descriptor of a listing extends the deadline.
 * AS_OK: any answer, errors included. */
as_result asi_async_await(
    asi_async *async, const asi_codec_request *request, asi_async_listing *listing, int64_t deadline_ns) AS_MUST_USE;
/* Sends and awaits. AS_E_PEER when the answer is an ERROR; otherwise answer->code distinguishes the answers. */
as_result asi_async_call(asi_async *async, asi_codec_request *request, asi_async_listing *listing) AS_MUST_USE;
/* AS_E_PEER with the answer's code and text. */
as_result asi_async_fail_as_answered(const asi_async *async, const char *request_name) AS_MUST_USE;
/* AS_E_USAGE inside a handler, AS_E_CLOSED once the session was lost. */
as_result asi_async_check_usable(const asi_async *async) AS_MUST_USE;
/* AS_E_CLOSED when the archive or the Aeron client is gone; marks the session as lost. */
as_result asi_async_check_connected(asi_async *async) AS_MUST_USE;
/* AS_E_PEER with the first unawaited error, which is then removed. */
as_result asi_async_take_forgotten(asi_async *async) AS_MUST_USE;

#endif

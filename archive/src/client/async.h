/* One control session with an archive: send a request, poll the response stream, match the answer. Spec: 07 §6.3, §8, §13, 08 §13.
 *
 * Called by connect.c, which makes the session, and archive_client.c, whose blocking calls are asi_async_call with different
 * requests. Owns the request publication, the response subscription and the assembler on it; borrows the Aeron client.
 * Invariants: at most one request is awaited by a blocking call, and any number by asi_calls (call.h); an answer counts only if
 * control session id and correlation id match (late copies of old answers are dropped); an ERROR to anything else goes to
 * on_error or is kept for the next asi_async_take_forgotten.
 * Handlers of the application run inside of asi_async_poll, with `in_handler` set: calls made from there are refused.
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

/* Where the descriptors of a listing go. */
typedef struct asi_async_listing
{
    as_on_recording on_recording;                 /* one of the two */
    as_on_recording_subscription on_subscription;
    void *context;
    int32_t wanted;    /* descriptors asked for: the listing ends there, or with an UNKNOWN response */
    int32_t received;
    int32_t given;     /* to the handler, which may have had enough */
    bool enough;
} asi_async_listing;

typedef struct asi_async_answer
{
    int32_t template_id;        /* ControlResponse, Challenge, or the descriptor that completed a listing */
    int32_t code;               /* of a ControlResponse */
    int32_t protocol_version;
    int64_t control_session_id;
    int64_t relevant_id;
    char text[ASI_ASYNC_TEXT_CAPACITY]; /* of an ERROR; the bytes of a Challenge */
    int64_t text_length;
} asi_async_answer;

/* A request in flight that nobody blocks for; see call.h. */
typedef struct asi_call
{
    struct asi_async *async;    /* borrowed; NULL once it was closed */
    int64_t correlation_id;
    int64_t deadline_ns;        /* a listing renews it with each descriptor */
    int32_t template_id;
    bool is_answered;
    asi_async_listing *listing; /* NULL: the request is none */
    asi_async_answer answer;
    struct asi_call *next;
} asi_call;

/* An ERROR nobody waited for: a request that timed out before, or a replay or recording that failed after its OK. */
typedef struct asi_async_forgotten
{
    int64_t count;              /* since the last take; the first one's text is kept */
    int64_t correlation_id;
    int32_t code;
    char text[ASI_ASYNC_TEXT_CAPACITY];
} asi_async_forgotten;

typedef struct asi_async
{
    as_client *aeron;                /* not owned */
    bool is_aeron_invoked;           /* it has no thread */
    as_on_event invoker;             /* of the application; may be NULL */
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
    int64_t error_count;             /* errors nobody waited for, ever */
    asi_call *calls;                 /* not owned: in flight */
    int64_t awaited_correlation_id;  /* AS_NULL_VALUE: none */
    bool is_answered;
    bool in_handler;
    bool is_lost;                    /* the archive's end of the session is gone: no more requests */
    as_result failure;               /* of a handler in the poll in flight */
    int32_t handled;                 /* signals and errors of the poll in flight */
    asi_async_listing *listing;      /* of the awaited request; NULL: it is none */
    asi_async_answer answer;
    asi_async_forgotten forgotten;
    char *strings;                   /* owned: terminated copies for a descriptor's handler */
    int64_t strings_capacity;
    uint8_t request[ASI_ASYNC_REQUEST_CAPACITY];
} asi_async;

/* One try to send the request under a new correlation id and this session's id. AS_AGAIN: back-pressured, call again. */
as_result asi_async_offer(asi_async *async, asi_codec_request *request) AS_MUST_USE;
/* The same on another publication to the archive, for replays that answer to it. */
as_result asi_async_begin_on(asi_async *async, as_publication *publication, asi_codec_request *request,
    asi_async_listing *listing) AS_MUST_USE;
/* As asi_async_offer, and the answer is awaited: asi_async_poll_answer tells when it is there. `listing` may be NULL and is
 * borrowed until then. */
as_result asi_async_begin(asi_async *async, asi_codec_request *request, asi_async_listing *listing) AS_MUST_USE;
/* Polls once. AS_AGAIN: no answer yet; AS_OK: any answer, errors included. Never waits, and looks at no deadline. */
as_result asi_async_poll_answer(asi_async *async) AS_MUST_USE;
/* AS_E_TIMEOUT for a request that was not answered in time. */
as_result asi_async_fail_by_timeout(const asi_async *async, const asi_codec_request *request) AS_MUST_USE;
/* Sends the request under a new correlation id and this session's id. Waits out back pressure until `deadline_ns`. */
as_result asi_async_send(asi_async *async, asi_codec_request *request, int64_t deadline_ns) AS_MUST_USE;
/* Polls once: signals, descriptors, the awaited answer, forgotten errors. *handled: signals and errors seen.
 * AS_E_DATA: a message that can't be read. */
as_result asi_async_poll(asi_async *async, int32_t *handled) AS_MUST_USE;
/* Between two cycles of waiting: runs whatever has no thread of its own, and gives the CPU away if there was no work. */
void asi_async_idle(asi_async *async, int work_count);
/* Waits for the answer to `request`, which was sent last, until `deadline_ns`; a listing renews it with each descriptor.
 * AS_OK: any answer, errors included. */
as_result asi_async_await(
    asi_async *async, const asi_codec_request *request, asi_async_listing *listing, int64_t deadline_ns) AS_MUST_USE;
/* Send and await. AS_E_PEER when the answer is an ERROR; answer->code otherwise says which of the others it is. */
as_result asi_async_call(asi_async *async, asi_codec_request *request, asi_async_listing *listing) AS_MUST_USE;
/* AS_E_PEER with the answer's code and text. */
as_result asi_async_fail_as_answered(const asi_async *async, const char *request_name) AS_MUST_USE;
/* AS_E_USAGE inside of a handler, AS_E_CLOSED once the session was lost. */
as_result asi_async_check_usable(const asi_async *async) AS_MUST_USE;
/* AS_E_CLOSED, and the session is lost, when the archive or the Aeron client is gone. */
as_result asi_async_check_connected(asi_async *async) AS_MUST_USE;
/* AS_E_PEER with the first forgotten error, and forgets it. */
as_result asi_async_take_forgotten(asi_async *async) AS_MUST_USE;

#endif

/* Control sessions: their state, lookup and end. reply.c sends a session's answers, control.c steps it from connect to close,
 * logins.c and tokens.c read it. Spec: 07 §6. Thread rule: conductor only. */
#ifndef ASI_SERVER_SESSION_H
#define ASI_SERVER_SESSION_H

#include "server/archive.h"

#define ASI_CONTROL_REASON_CAPACITY 512

typedef enum asi_control_state
{
    ASI_CONTROL_INIT,           /* response publication and session counter are pending */
    ASI_CONTROL_CONNECTING,     /* the responses have no subscriber yet */
    ASI_CONTROL_CONNECTED,      /* the authenticator's decision is pending, or is to be sent */
    ASI_CONTROL_CHALLENGED,     /* waits for the client's answer */
    ASI_CONTROL_AUTHENTICATED,  /* repeats OK until the first request */
    ASI_CONTROL_ACTIVE,
    ASI_CONTROL_REJECTED,       /* repeats the rejection until the deadline */
    ASI_CONTROL_DONE
} asi_control_state;

/* Groups of password checks that share a round-robin; see logins.h. */
typedef enum asi_login_class
{
    ASI_LOGIN_NONE,                      /* not in the queue */
    ASI_LOGIN_PROVEN,                    /* its client receives responses, so the address is proven */
    ASI_LOGIN_FAILED,                    /* proven too, but the address had a wrong password recently */
    ASI_LOGIN_UNPROVEN,
    ASI_LOGIN_CLASSES
} asi_login_class;

typedef struct asi_queued_message
{
    struct asi_queued_message *next;
    int64_t length;
    uint8_t bytes[];
} asi_queued_message;

struct asi_control_session
{
    asi_control_session *next;
    as_archive *archive;
    int64_t id;
    int64_t correlation_id;       /* of the connect request, or of the answer to a challenge */
    int64_t image_correlation_id;
    as_image *image;              /* retained: the requests arrive on it */
    char *client_info;            /* owned */
    char *requested_channel;      /* owned: the response channel that the client requested */
    bool is_checked;              /* the channel was checked: answers may be sent to it */
    asi_channel response_channel; /* "" before it is requested */
    int32_t response_stream_id;
    int32_t client_version;
    asi_control_state state;
    bool is_asked;                /* the authenticator was called */
    as_auth_decision decision;
    int32_t source;               /* hash of the source address; see logins.h */
    bool is_provable;             /* its password is checked once its client receives responses; see logins.h */
    asi_login_class login_class;
    int64_t turn;                 /* round-robin slot of the password check, within its source; see logins.h */
    int64_t image_turn;           /* the same within its image */
    as_auth_bytes auth;           /* the challenge while challenged, the principal once accepted */
    int64_t publication_request;  /* AS_NULL_VALUE when answered */
    int64_t counter_request;
    as_publication *publication;
    as_counter *counter;
    int64_t deadline_ns;          /* AS_NULL_VALUE: none */
    int64_t resend_ns;            /* time of the next repetition of the connect answer */
    int64_t ping_ns;
    asi_queued_message *queue;    /* oldest first */
    asi_queued_message *last_queued;
    int64_t queued_bytes;
    struct asi_listing *listing;  /* one block, owned; NULL: none. See listing.h */
    int (*step_listing)(asi_control_session *session); /* work count; set with `listing` */
    bool is_image_gone;           /* set by the unavailable-image handler */
};

typedef struct asi_sessions
{
    asi_control_session *first;
    int64_t next_id;
    int64_t count;
} asi_sessions;

/* All changes of the state go through this function. */
void asi_control_enter(asi_control_session *session, asi_control_state state);
/* Finishes the session; a later step frees it. An unexpected end is logged and reported on the client's publication. */
void asi_control_finish(asi_control_session *session, const char *reason, bool is_unexpected);
/* NULL: unknown, or finished. */
asi_control_session *asi_control_find(as_archive *archive, int64_t control_session_id);

#endif

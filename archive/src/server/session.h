/* Control sessions: what is known of each, how one is found, and its end. reply.c sends what a session answers, control.c leads it from
 * connect to end, logins.c and tokens.c look at it. Spec: 07 §6. Thread rule: the conductor's. */
#ifndef ASI_SERVER_SESSION_H
#define ASI_SERVER_SESSION_H

#include "server/archive.h"

#define ASI_CONTROL_REASON_CAPACITY 512

typedef enum asi_control_state
{
    ASI_CONTROL_INIT,           /* response publication and session counter are on their way */
    ASI_CONTROL_CONNECTING,     /* nobody listens to the responses yet */
    ASI_CONTROL_CONNECTED,      /* tell what the authenticator decided, once it has */
    ASI_CONTROL_CHALLENGED,     /* the client's answer is awaited */
    ASI_CONTROL_AUTHENTICATED,  /* repeat OK until the first request */
    ASI_CONTROL_ACTIVE,
    ASI_CONTROL_REJECTED,       /* repeat the rejection until the deadline */
    ASI_CONTROL_DONE
} asi_control_state;

/* Which passwords take turns with each other; see logins.h. */
typedef enum asi_login_class
{
    ASI_LOGIN_NONE,                      /* not in the queue */
    ASI_LOGIN_PROVEN,                    /* its client hears the answers, so the address is its own */
    ASI_LOGIN_FAILED,                    /* so does it, and the address had a wrong password lately */
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
    as_image *image;              /* retained: the requests come on it */
    char *client_info;            /* owned */
    char *requested_channel;      /* owned: where the client wants its answers */
    bool is_checked;              /* the channel is one that answers may go to */
    asi_channel response_channel; /* "" before it is asked for */
    int32_t response_stream_id;
    int32_t client_version;
    asi_control_state state;
    bool is_asked;                /* the authenticator knows of it */
    as_auth_decision decision;
    int32_t source;               /* hash of the address that it came from; see logins.h */
    bool is_provable;             /* its password is looked at once its client hears the answers; see logins.h */
    asi_login_class login_class;
    int64_t turn;                 /* of its source in which its password is looked at; see logins.h */
    int64_t image_turn;           /* and of its image */
    as_auth_bytes auth;           /* the challenge while challenged, the principal once accepted */
    int64_t publication_request;  /* AS_NULL_VALUE when answered */
    int64_t counter_request;
    as_publication *publication;
    as_counter *counter;
    int64_t deadline_ns;          /* AS_NULL_VALUE: none */
    int64_t resend_ns;            /* next repetition of the connect answer */
    int64_t ping_ns;
    asi_queued_message *queue;    /* oldest first */
    asi_queued_message *last_queued;
    int64_t queued_bytes;
    struct asi_listing *listing;  /* one block, owned; NULL: none. See listing.h */
    int (*step_listing)(asi_control_session *session); /* work count; set with `listing` */
    bool is_image_gone;           /* noted by the unavailable-image handler */
};

typedef struct asi_sessions
{
    asi_control_session *first;
    int64_t next_id;
    int64_t count;
} asi_sessions;

/* The session does no more; it is freed by a later step. An unexpected end is logged and told to the client's publication. */
void asi_control_finish(asi_control_session *session, const char *reason, bool is_unexpected);
/* NULL: unknown, or over. */
asi_control_session *asi_control_find(as_archive *archive, int64_t control_session_id);

#endif

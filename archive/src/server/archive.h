/* The archive's conductor: what all files of the server share, and the list of its parts. Each part owns its struct in its own header, and
 * a file includes those of the parts that it uses. From the bottom; files call only what stands before them:
 *
 *      report, uses . reply, control sessions . descriptors, leftovers, compaction
 *      > recordings, recordings_images | replays | listing | deletions > truncate, segments, migrate, update_channel, retention
 *      > replication_* > replications . control, logins, tokens > on_request > server
 *
 * The conductor owns everything here: it is the only agent that touches the catalog, the control sessions and the Aeron client.
 * Recorder and replayer get whole sessions through queues and give them back (spec 08 §1):
 *
 *      control streams > requests > on_request > recordings | replays | listing > control session > response stream
 *      recordings > recorder.incoming ..... recorder ..... > recordings.closed > recordings
 *      replays    > replayer.incoming ..... replayer ..... > replays.closed, replays.answers > replays, control
 *      truncate, segments, migrate > deletions > deleter ..... > deletions.returned > deletions
 *
 * Handlers of the Aeron client run inside as_client_invoke with the client locked: they only note what happened; the next
 * step of the conductor acts on it. For the same reason requests are copied out of the control streams' poll and routed after it.
 * Thread rule: everything in this header is the conductor's, but the queues. */
#ifndef ASI_SERVER_ARCHIVE_H
#define ASI_SERVER_ARCHIVE_H

#include "base/rand.h"
#include "codec/event.h"
#include "codec/request.h"
#include "server/auth.h"
#include "server/channel.h"
#include "server/counters.h"
#include "shm/error_log.h"
#include "store/catalog.h"
#include "store/mark.h"

typedef struct asi_control_session asi_control_session;

#define ASI_LOGIN_SOURCES 1024 /* that are told apart, see logins.h */

struct as_archive
{
    as_archive_config config;
    asi_clock clock;
    asi_rand rand;
    const asi_file_ops *files;
    asi_mark *mark;                      /* NULL before it is claimed */
    asi_error_log error_log;
    asi_catalog *catalog;
    as_client *client;
    as_inspector *inspector;             /* counters that bound replays */
    int64_t archive_id;
    asi_auth auth;
    asi_archive_counters counters;
    int64_t tick_ms;                     /* last clock tick that was acted on */
    bool is_aborting;                    /* closing after a fatal failure: what is active stays active in the catalog */

    /* The parts; each has the header of its name. */
    struct asi_uses *uses;
    struct asi_requests *requests;
    struct asi_recordings *recordings;
    struct asi_replays *replays;
    struct asi_deletions *deletions;
    struct asi_compaction *compaction;
    struct asi_descriptors *descriptors;
    struct asi_low_storage *low_storage;
    struct asi_retention *retention;
    struct asi_server *server;           /* server.c */
    struct asi_replication *replications; /* replication.h; newest first */
    struct asi_replay_token *tokens;     /* tokens.c; newest first */

    asi_control_session *sessions;
    int64_t next_control_session_id;
    int64_t session_count;
    int64_t deciding_session_id;         /* whose password is looked at; AS_NULL_VALUE: none */
    int64_t deciding_turn;               /* its turns, see logins.h */
    int64_t deciding_image_turn;
    int64_t source_turns[ASI_LOGIN_SOURCES]; /* the last ones given */
    int64_t image_turns[ASI_LOGIN_SOURCES];
    uint64_t source_seed;                /* of the hash by which sources are told apart */
};

/* -- control.c: sessions and their responses. Spec: 07 §6, §8, §10 ----------------------------------------------------------- */

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

typedef enum asi_listing_kind
{
    ASI_LISTING_NONE,
    ASI_LISTING_RECORDINGS,
    ASI_LISTING_SUBSCRIPTIONS
} asi_listing_kind;

typedef struct asi_listing
{
    asi_listing_kind kind;
    bool has_filter;          /* recordings: stream id and fragment; subscriptions: fragment alone */
    bool has_stream_id;
    int32_t stream_id;
    int64_t correlation_id;
    int64_t cursor;           /* next recording id, or the last subscription id sent */
    int64_t to_skip;          /* subscriptions before the pseudo index */
    int64_t left;             /* descriptors still wanted */
    char *fragment;           /* owned */
    int64_t fragment_length;
} asi_listing;

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
    asi_channel response_channel; /* "" before it is asked for */
    int32_t response_stream_id;
    int32_t client_version;
    asi_control_state state;
    bool is_asked;                /* the authenticator knows of it */
    as_auth_decision decision;
    int32_t source;               /* hash of the address that it came from; see logins.h */
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
    asi_listing listing;
    bool is_image_gone;           /* noted by the unavailable-image handler */
};

/* `request` is a connect request that came on `image`. Failures are logged: there is no session to answer on. */
void asi_control_connect(as_archive *archive, const asi_codec_request *request, as_image *image);
void asi_control_on_challenge_response(as_archive *archive, const asi_codec_request *request, const as_image *image);
/* The session that may make this request, activated by it. NULL: it is unknown, which is logged; it is not authenticated and
 * does not ask to be closed; or the request is not authorised, which it was told. */
asi_control_session *asi_control_session_for(as_archive *archive, const asi_codec_request *request, const as_image *image);
void asi_control_close(asi_control_session *session);
int asi_control_step(as_archive *archive);
void asi_control_close_all(as_archive *archive);
/* For as_client: notes the session whose requests can't come any more. */
void asi_control_on_unavailable_image(void *context, as_subscription *subscription, as_image *image);

void asi_control_ok(asi_control_session *session, int64_t correlation_id, int64_t relevant_id);
void asi_control_error(asi_control_session *session, int64_t correlation_id, int32_t code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void asi_control_unknown_recording(asi_control_session *session, int64_t correlation_id, int64_t recording_id);
/* By id, for what outlives sessions: dropped when the session is gone. */
void asi_control_respond(as_archive *archive, int64_t control_session_id, int64_t correlation_id, int32_t code,
    int64_t relevant_id, const char *text);
void asi_control_signal(as_archive *archive, int64_t control_session_id, int64_t correlation_id, int64_t recording_id,
    int64_t subscription_id, int64_t position, as_recording_signal signal);
/* For listings, which are not queued. AS_OK sent; AS_AGAIN back-pressured or others wait; AS_E_CLOSED the session ends;
 * AS_E_USAGE too long for the response stream. */
as_result asi_control_try_send(asi_control_session *session, const as_iovec *parts, int64_t part_count) AS_MUST_USE;

#endif

/* Structures of the archive's conductor and what the files of the server room offer each other.
 *
 * The conductor owns everything here: it is the only agent that touches the catalog, the control sessions and the Aeron client.
 * Recorder and replayer get whole sessions through queues and give them back (spec 08 §1):
 *
 *      control streams > requests > on_request > recordings | replays | listing > control session > response stream
 *      recordings > recorder.incoming ..... recorder ..... > closed_recordings > recordings
 *      replays    > replayer.incoming ..... replayer ..... > closed_replays, answers > replays, control
 *      truncate, segments, migrate > deletions > deleter ..... > returned_deletions > deletions
 *
 * Handlers of the Aeron client run inside as_client_invoke with the client locked: they only note what happened; the next
 * step of the conductor acts on it. For the same reason requests are copied out of the control streams' poll and routed after it.
 * Thread rule: everything in this header is the conductor's, but the queues. */
#ifndef ASI_SERVER_ARCHIVE_H
#define ASI_SERVER_ARCHIVE_H

#include "base/rand.h"
#include "base/thread.h"
#include "codec/event.h"
#include "codec/request.h"
#include "record/recorder.h"
#include "replay/replayer.h"
#include "server/auth.h"
#include "server/channel.h"
#include "server/counters.h"
#include "server/deleter.h"
#include "server/report.h"
#include "server/uses.h"
#include "shm/error_log.h"
#include "store/catalog.h"
#include "store/mark.h"
#include "store/retention_scan.h"

typedef struct asi_control_session asi_control_session;
typedef struct asi_recording_subscription asi_recording_subscription;
typedef struct asi_active_recording asi_active_recording;
typedef struct asi_deletion asi_deletion;
typedef struct asi_replay asi_replay;
typedef struct asi_replay_token asi_replay_token;
typedef struct asi_replication asi_replication;
typedef struct asi_request asi_request;

typedef struct asi_compaction
{
    bool is_possible;                    /* no record is needed for files that could not be deleted */
    int64_t reclaimable_bytes;           /* of records of purged recordings whose files are gone */
    int64_t retry_ms;                    /* after a failure: when to try again */
} asi_compaction;

typedef struct asi_retention
{
    as_retention_policy policy;
    bool has_policy;
    bool is_scanning;                    /* on a thread, which owns what follows until has_scanned */
    bool has_thread;
    pthread_t thread;
    bool has_scanned;                    /* released by the thread; a stale read costs one more cycle */
    asi_retention_scan scan;
    as_result result;
    int32_t failure_code;
    char failure[1024];
    int64_t next_ms;                     /* of the next round */
    int64_t at;                          /* recording of the scan that is applied next; its count: the round is done */
} asi_retention;

typedef struct asi_descriptors
{
    int64_t limit;
    int64_t open;                        /* as counted, and what has begun since; -1: it can't be told */
    int64_t counted_ms;                  /* 0: never */
} asi_descriptors;

typedef struct asi_low_storage
{
    int64_t next_ms;                     /* of the next look */
    bool warns;                          /* below the warning's bound, and told */
    bool refuses;                        /* below the threshold, and told */
} asi_low_storage;

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
    asi_cycle_counters conductor_cycle;
    asi_cycle_counters recorder_cycle;   /* DEDICATED only, as the replayer's */
    asi_cycle_counters replayer_cycle;
    int64_t tick_ms;                     /* last clock tick that was acted on */
    int64_t heartbeat_ms;                /* last one written to the mark file */
    int64_t busy_ms;                     /* when there last was a control session, a recording or a replay */
    bool is_idle_expired;                /* written by the conductor, read by the owner's thread */

    as_subscription *control;            /* NULL: network control is off */
    as_subscription *local_control;
    as_fragment_assembler *assembler;
    asi_request *requests;               /* polled, not routed yet; oldest first */
    asi_request *last_request;
    asi_control_session *sessions;
    int64_t next_control_session_id;
    int64_t session_count;
    int64_t deciding_session_id;         /* whose password is looked at; AS_NULL_VALUE: none */
    int64_t deciding_turn;               /* its turns, see logins.h */
    int64_t deciding_image_turn;
    int64_t source_turns[ASI_LOGIN_SOURCES]; /* the last ones given */
    int64_t image_turns[ASI_LOGIN_SOURCES];
    uint64_t source_seed;                /* of the hash by which sources are told apart */

    asi_uses uses;
    asi_recording_subscription *subscriptions; /* listed and lingering ones, oldest first */
    asi_active_recording *recordings;
    int64_t recording_count;
    int64_t images_ms;                   /* tick at which images that wait to be recorded were looked at */
    as_publication *events;
    asi_recorder recorder;
    asi_hand_over closed_recordings;

    asi_replay *replays;                 /* being created and running */
    int64_t replay_count;
    int64_t next_replay_number;
    asi_replayer replayer;
    asi_hand_over closed_replays;
    asi_hand_over replay_answers;
    asi_replay_token *tokens;
    asi_replication *replications;

    asi_compaction compaction;
    asi_descriptors descriptors;
    asi_low_storage low_storage;
    asi_retention retention;
    asi_deletion *deletions;             /* outstanding ones; at most one per recording */
    asi_deleter deleter;
    asi_hand_over returned_deletions;

    asi_agent agents[3];
    uint32_t boot;                       /* of the machine; 0: it can't be told */
    bool is_open;                        /* the start has succeeded */
    bool is_recovered;                   /* what the last archive left is settled, and the folder says who writes it now */
    bool is_aborting;                    /* closing after a fatal failure: what is active stays active in the catalog */
    /* Written by the conductor, read by the owner's thread: text first, then the flag with release. */
    bool has_failed;
    char failure[AS_PATH_MAX + 256];
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

/* -- on_request.c --------------------------------------------------------------------------------------------------------------- */

struct asi_request
{
    asi_request *next;
    as_image *image;  /* retained */
    int64_t length;
    uint8_t bytes[];
};

/* Polls both control streams and routes what came. */
int asi_requests_step(as_archive *archive);
void asi_requests_close(as_archive *archive);

/* -- listing.c: descriptors and queries. Spec: 08 §6 ------------------------------------------------------------------------------ */

/* Begins the listing that the request asks for; one at a time per session. */
void asi_listing_begin(asi_control_session *session, const asi_codec_request *request);
int asi_listing_step(asi_control_session *session);
void asi_listing_close(asi_listing *listing);
void asi_query_list_recording(asi_control_session *session, const asi_codec_request *request);
void asi_query_find_last(asi_control_session *session, const asi_codec_request *request);
void asi_query_position(asi_control_session *session, const asi_codec_request *request);

/* -- recordings.c: subscriptions that record, and what they record. Spec: 08 §4 ----------------------------------------------------- */

struct asi_recording_subscription
{
    asi_recording_subscription *next;
    as_archive *archive;
    as_subscription *subscription;   /* NULL once closed */
    int64_t id;                      /* registration id */
    int64_t control_session_id;
    int64_t correlation_id;
    int64_t extend_recording_id;     /* AS_NULL_VALUE: each image starts a new recording */
    int32_t stream_id;
    /* Whoever needs the end of its recordings sets it; called before STOP is told. NULL: nobody. */
    void (*on_recording_end)(as_archive *archive, int64_t subscription_id, int64_t stop_position);
    bool auto_stop;
    bool is_listed;                  /* can be found and stopped */
    bool ends_with_last;             /* one of its recordings was stopped by id: it goes when the others have ended */
    bool is_network;                 /* its images come from sockets */
    bool had_session;                /* a recording of it has begun: before, it holds a slot for its first one */
    bool is_limit_told;              /* a stream with data waits for a slot, and the requester knows */
    int64_t empty_count;             /* recordings to which no data came, one forgotten a minute; see recordings_images.c */
    int64_t empty_ms;                /* when the last one was forgotten */
    int64_t recording_count;         /* active recordings fed by it */
    char *channel;                   /* owned: as requested */
    asi_channel stripped;
    asi_channel subscribed;          /* stripped, with the spy prefix if it has one */
    asi_channel key;
    as_image **images;               /* owned, retained: not recorded yet, oldest first; noted by the handler */
    int32_t image_count;
    int32_t image_capacity;
    bool has_new_image;
};

struct asi_active_recording
{
    asi_record_session session;      /* first: the recorder hands this back */
    asi_use use;
    asi_active_recording *next;
    asi_recording_subscription *subscription;
    bool is_further_of_network;      /* not the first of its subscription, and of an image that came from a socket */
};

void asi_recordings_start(asi_control_session *session, const asi_codec_request *request);
void asi_recordings_extend(asi_control_session *session, const asi_codec_request *request);
void asi_recordings_stop_channel(asi_control_session *session, const asi_codec_request *request);
void asi_recordings_stop_subscription(asi_control_session *session, const asi_codec_request *request);
void asi_recordings_stop_identity(asi_control_session *session, const asi_codec_request *request);
/* An extension that the archive itself wants: answered and refused as one that came by a session, which may be gone. The
 * request names the session. NULL: refused, and told. */
asi_recording_subscription *asi_recordings_extend_for(as_archive *archive, const asi_codec_request *request);
/* NULL: it was stopped, or its recording has ended. */
asi_recording_subscription *asi_recordings_subscription(const as_archive *archive, int64_t subscription_id);
/* It can't be found any more; its recordings end. */
void asi_recordings_stop(as_archive *archive, asi_recording_subscription *subscription);
/* New images, and recordings that ended. */
int asi_recordings_step(as_archive *archive);
/* The recorder must have been closed. Stores stop positions unless the archive is aborting. */
void asi_recordings_close(as_archive *archive);

/* -- replays.c: replays as requested. Spec: 08 §7 ----------------------------------------------------------------------------------- */

struct asi_replay
{
    asi_replay_session session;      /* first: the replayer hands this back */
    asi_use use;
    asi_replay *next;
    as_auth_bytes owner;             /* principal of the session that asked for it */
    int64_t publication_request;     /* AS_NULL_VALUE once it runs */
};

void asi_replays_start(asi_control_session *session, const asi_codec_request *request);
void asi_replays_stop(asi_control_session *session, const asi_codec_request *request);
void asi_replays_stop_all(asi_control_session *session, const asi_codec_request *request);
int asi_replays_step(as_archive *archive);
/* The replayer must have been closed. */
void asi_replays_close(as_archive *archive);

/* -- deletions.c: files that go, and how their requesters hear of it. Spec: 08 §9 ---------------------------------------------------- */

struct asi_deletion
{
    asi_delete_work work;        /* first: the deleter hands this back */
    asi_use use;                 /* end_position; and of a truncation awaits_replays: nothing has changed yet */
    asi_deletion *next;
    int64_t control_session_id;
    int64_t correlation_id;
    int64_t catalog_bytes;       /* of a purge: of the recording's record; else 0 */
    int64_t answer;              /* relevant id of the OK; AS_NULL_VALUE: the number of files */
    bool is_answered;
    /* A truncation: */
    int64_t start_position;      /* when it was asked for */
    int64_t old_stop_position;
    int64_t new_stop_position;   /* AS_NULL_VALUE: this is no truncation */
};

/* NULL: no memory, the requester is told. To be filled in and begun. */
asi_deletion *asi_deletions_make(asi_control_session *session, const asi_codec_request *request,
    const asi_catalog_record *record);
/* One that the archive itself wants: nobody is answered. NULL: no memory. */
asi_deletion *asi_deletions_make_own(const as_archive *archive, const asi_catalog_record *record);
/* Instead of beginning it. */
void asi_deletions_discard(asi_deletion *deletion);
/* The archive's from here on: answers OK and, when all files are gone, signals DELETE. */
void asi_deletions_begin(as_archive *archive, asi_deletion *deletion);
/* Whether the request was refused because one is outstanding. */
bool asi_deletions_refuse_second(asi_control_session *session, const asi_codec_request *request, int64_t recording_id);
int asi_deletions_step(as_archive *archive);
/* Recordings and replays must have been closed. Finishes what is outstanding, within some seconds. */
void asi_deletions_close(as_archive *archive);

/* -- retention.c: old segments and recordings go by a policy of the archive's own --------------------------------------------------- */

void asi_retention_init(as_archive *archive);
int asi_retention_step(as_archive *archive);
void asi_retention_close(as_archive *archive);

/* -- low_storage.c: a disk that fills is told before it is full -------------------------------------------------------------------- */

void asi_low_storage_step(as_archive *archive, int64_t now_ms);

/* -- compaction.c: the catalog without purged recordings --------------------------------------------------------------------------- */

/* The files of a purged recording are gone, or could not be deleted. */
void asi_compaction_on_purged(as_archive *archive, const asi_deletion *deletion);
int asi_compaction_step(as_archive *archive);

/* -- truncate.c, segments.c, migrate.c, update_channel.c: maintenance requests. Spec: 08 §9, §11 ----------------------------------- */

void asi_truncate_recording(asi_control_session *session, const asi_codec_request *request);
void asi_purge_recording(asi_control_session *session, const asi_codec_request *request);
void asi_segments_detach(asi_control_session *session, const asi_codec_request *request);
void asi_segments_delete_detached(asi_control_session *session, const asi_codec_request *request);
void asi_segments_purge(asi_control_session *session, const asi_codec_request *request);
/* The segment that a recording ends in, or is being written. */
int64_t asi_segments_last_base(const as_archive *archive, const asi_catalog_record *record);
/* Makes the recording start with the segment `new_start`, which was checked, and deletes what lies before. The deletion is begun, or
 * discarded with AS_E_STORAGE. */
as_result asi_segments_purge_to(as_archive *archive, asi_deletion *deletion, const asi_catalog_record *record,
    int64_t new_start) AS_MUST_USE;
/* Deletes a stopped recording that nothing replays; as asi_segments_purge_to. */
as_result asi_purge_whole(as_archive *archive, asi_deletion *deletion, const asi_catalog_record *record) AS_MUST_USE;
void asi_segments_attach(asi_control_session *session, const asi_codec_request *request);
void asi_migrate_segments(asi_control_session *session, const asi_codec_request *request);
void asi_update_channel(asi_control_session *session, const asi_codec_request *request);
/* The error of a failed catalog or file operation, from as_error_text(): STORAGE_SPACE where space is what is missing. */
void asi_control_storage_error(asi_control_session *session, int64_t correlation_id);

#endif

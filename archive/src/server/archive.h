/* State that all files of the archive server share, and the list of the conductor's parts. Each part defines its struct in its
 * own header; a file includes the headers of the parts that it uses. Layers, from the bottom; a file calls only into earlier
 * layers:
 *
 *      report, uses . reply, control sessions . descriptors, leftovers, compaction
 *      > recordings, recordings_images | replays | listing | deletions > truncate, segments, migrate, update_channel, retention
 *      > replication_* > replications . control, logins, tokens > on_request > server
 *
 * The conductor owns everything here: it is the only agent that accesses the catalog, the control sessions and the Aeron client.
 * The recorder and the replayer receive whole sessions through queues and return them through queues (Spec: 08 §1):
 *
 *      control streams > requests > on_request > recordings | replays | listing > control session > response stream
 *      recordings > recorder.incoming ..... recorder ..... > recordings.closed > recordings
 *      replays    > replayer.incoming ..... replayer ..... > replays.closed, replays.answers > replays, control
 *      truncate, segments, migrate > deletions > deleter ..... > deletions.returned > deletions
 *
 * Handlers of the Aeron client run inside as_client_invoke while the client is locked. They only record the event; the next step
 * of the conductor handles it. For the same reason, requests are copied during the poll of the control streams and routed after
 * it. Thread rule: the conductor owns everything in this header except the queues. */
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
    as_inspector *inspector;             /* reads the counters that bound replays */
    int64_t archive_id;
    asi_auth auth;
    asi_archive_counters counters;
    int64_t tick_ms;                     /* last tick that was processed; elapsed time, no time of day */
    bool is_aborting;                    /* closing after a fatal failure: active recordings stay active in the catalog */

    /* The parts. Each is defined in the header of its name. */
    struct asi_uses *uses;
    struct asi_sessions *sessions;
    struct asi_logins *logins;
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
    struct asi_replay_token *tokens;     /* tokens.h; newest first */
};

#endif

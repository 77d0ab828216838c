/* One run: a real driver, a real archive and a client, in one thread, over simulated time and a simulated disk. The archive is
 * killed inside any call on its files, loses power, meets a full disk and calls that fail. After each fault the auditor
 * compares what it finds with what the client was told.
 *
 *      seed > settings > world_run: request, publish, break, restart, audit ... > calm: restart, replay everything, close, audit
 *
 * world.c has machine, time and archive; control.c the control session; streams.c publishers, recordings and replays; upkeep.c
 * truncations, migrations and the like; copies.c a second archive and copies of its recordings; adversary.c the adversary,
 * siege.c the checks against it; auditor.c the auditor; main.c the command. All state is process-wide, because each seed runs
 * in a process of its own. */
#ifndef AS_SIM_ARCHIVE_WORLD_H
#define AS_SIM_ARCHIVE_WORLD_H

#include <setjmp.h>

#include "adversary.h"
#include "auditor.h"
#include "driver/driver.h"
#include "server/control.h"
#include "server/deletions.h"
#include "server/logins.h"
#include "server/on_request.h"
#include "server/recordings.h"
#include "server/replays.h"
#include "server/server.h"
#include "sim_disk.h"
#include "sim_net.h"

#define WORLD_MAX_STREAMS 96
#define WORLD_MAX_EVENTS 64
#define WORLD_EVENT_CAPACITY 2048
#define WORLD_ORIGINALS 6
#define WORLD_MAX_COPIES 4

typedef struct world_stream
{
    int32_t stream_id;
    char channel[256];
    as_publication *publication; /* NULL: closed */
    audited *recording;
    int64_t correlation_id;      /* of the start or extend request */
    int32_t max_length;
    bool is_zero;                /* payloads of zeros: only the header marks a frame */
} world_stream;

/* The control session, and what it heard. */
typedef struct world_session
{
    as_publication *requests;
    as_subscription *responses;
    as_fragment_assembler *assembler;
    int64_t id;
    asi_codec_event events[WORLD_MAX_EVENTS]; /* answers not taken yet; texts are not kept */
    char texts[WORLD_MAX_EVENTS][256];
    int32_t event_count;
    bool is_open;
    bool is_stopping;          /* it asked for the end of a recording: one may stop */
} world_session;

/* Another archive on the same driver, and its recordings, which never change. */
typedef struct world_source
{
    char dir[AS_PATH_MAX];
    sim_disk disk;
    asi_file_ops files;
    as_archive_config *config;
    as_archive *archive;       /* NULL while it is dead */
    int64_t died_ns;           /* -1: it was closed in order */
    audited originals[WORLD_ORIGINALS];
} world_source;

/* A replication in flight. */
typedef struct world_copying
{
    audited *recording;        /* NULL: free */
    int32_t original;
    int64_t correlation_id;
    int64_t replication_id;
    int64_t stop;              /* where the copy ended before */
    bool is_extended;          /* as reported; as the next */
    bool has_stopped;
    bool has_ended;
} world_copying;

/* What the adversary may cost at most, and what there was before it; see siege.c. */
typedef struct world_limits
{
    int64_t log_bytes;         /* of the driver's publications before, as the next two */
    int64_t descriptors;
    int64_t sockets;
    int64_t most_sessions;     /* seen, as the next three */
    int64_t most_log_bytes;
    int64_t most_answer_ns;
    int64_t most_login_ns;
} world_limits;

struct sim_world
{
    uint64_t seed;
    int64_t now_ns;
    asi_rand rand;
    char dir[AS_PATH_MAX];
    char driver_dir[AS_PATH_MAX];
    char archive_dir[AS_PATH_MAX];
    int32_t driver_number;
    asi_clock clock;
    sim_net net;
    sim_disk disk;
    asi_file_ops files;
    as_driver *driver;
    as_client *client;
    as_archive_config *config;
    as_archive *archive;       /* NULL while it is dead */
    int64_t died_ns;
    bool was_power_cut;        /* since the last start */
    jmp_buf *on_operator;      /* where a run ends that would need an operator */
    world_session session;
    world_adversary adversary;
    world_limits limits;
    world_stream streams[WORLD_MAX_STREAMS];
    int32_t stream_count;
    bool is_publishing;
    bool is_visiting;          /* the session is a visitor's; see siege.c */
    bool dies_at_start;          /* of this storm: killed while the record of a new recording is added */
    uint32_t boot;           /* of the machine */
    auditor audit;
    int64_t rounds;
    int64_t starts;
    int64_t replayed_bytes;
    world_source source;
    world_copying copies[WORLD_MAX_COPIES];
    int64_t migrations;        /* done, as the next */
    int64_t copies_done;
    as_archive *zombies[64];   /* killed archives: their memory is still there */
    int32_t zombie_count;
};

/* -- world.c -- */
/* `share`: seeds of a hundred that have an adversary. */
void world_run(sim_world *world, uint64_t seed, const char *dir, int32_t share);
void world_round(sim_world *world);
int64_t world_below(sim_world *world, int64_t bound);
bool world_percent(sim_world *world, int64_t chance);
as_result world_open_client(sim_world *world, as_client **client) AS_MUST_USE;
as_result world_open_archive(
    sim_world *world, as_archive_config *config, const asi_file_ops *files, as_archive **archive) AS_MUST_USE;

/* -- control.c -- */
/* False when the archive died or does not answer: there is no session then. */
bool world_connect(sim_world *world);
void world_disconnect(sim_world *world);
/* Polls the responses: signals go to the auditor, answers wait to be taken. */
void world_listen(sim_world *world);
/* The answer to a request; NULL when the archive died meanwhile or took too long. Valid until the next call. */
const asi_codec_event *world_ask(sim_world *world, asi_codec_request *request);
const char *world_answer_text(const sim_world *world, const asi_codec_event *event);

/* -- streams.c -- */
void world_publish(sim_world *world);
/* One thing of those that a client may ask for. */
void world_act(sim_world *world);
void world_close_streams(sim_world *world);
asi_codec_request world_request(int32_t template_id, int64_t recording_id);
audited world_new_recording(const sim_world *world, int32_t stream_id, int32_t initial_term_id, int32_t mtu, int64_t start);
/* One in that state, by chance; NULL: there is none. */
audited *world_pick(sim_world *world, audit_life life);
/* NULL: nobody publishes on the recording's stream. */
world_stream *world_stream_of(sim_world *world, const audited *recording);
/* Ends every recording in order, and replays every byte. */
void world_stop_all(sim_world *world);
void world_replay_all(sim_world *world);

/* -- upkeep.c -- */
/* One request that keeps recordings in order; `kind` in [0, 30). */
void world_keep_up(sim_world *world, int64_t kind);

/* -- siege.c -- */
#define SIEGE_UNDECIDED 32
#define SIEGE_RESPONSE_TERM (128 * 1024)
/* The archive has started. */
void siege_begin(sim_world *world);
/* In every cycle: what no request of the adversary's may bring about. */
void siege_check(sim_world *world);
/* Nothing is asked for and nothing fails, and the adversary does its best: nothing changes, and the honest client is served. */
void siege_run(sim_world *world);

/* -- copies.c -- */
void world_make_source(sim_world *world);
void world_open_source(sim_world *world);
void world_close_source(sim_world *world);
void world_kill_source(sim_world *world);
int world_source_round(sim_world *world);
/* Starts a copy of one of the source's recordings, or continues one. */
void world_copy(sim_world *world);
/* The original whose start such a recording takes once its copying begins, if it is purged up to `start`; else NULL. */
const audited *world_begins_again_like(sim_world *world, const audited *recording, int64_t start);
void world_on_copy_answer(sim_world *world, const asi_codec_event *event);
void world_on_copy_signal(sim_world *world, const asi_codec_event *event);
bool world_is_copying(const sim_world *world);

#endif

/* The checks against the adversary; see adversary.h. By the name that a failure prints:
 *   logins      nothing that it requests is granted, except to its login what that may do; before a session is decided the
 *               archive opens nothing for it but a log of the smallest terms to where the request came from, and checks no
 *               password before somebody listens there
 *   changed     nobody without login starts, stops or changes a recording: catalog, names and sizes of files, recordings,
 *               replays and tokens stay the same; nothing is written
 *   bounds      control sessions, unaccepted sessions of one address, log bytes of publications, sockets, descriptors
 *   log         texts of peers leave half of the error log to the archive's own; a real error is recorded afterwards
 *   session     the honest client gets its login and its answers within a bounded time
 * Every cycle of a run checks the first and the sessions. A siege checks the others: nothing is requested, nothing fails,
 * and the adversary sends as much as it can. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "server/report.h"
#include "sim_seeds.h"
#include "sim_trace.h"
#include "world.h"

#define MS INT64_C(1000000)
#define SIEGE_ROUNDS 400
#define SETTLE_ROUNDS 1500
#define CHECK_INTERVAL 8
#define QUESTION_INTERVAL 80
#define ERROR_LOG_LENGTH (64 * 1024)
#define OWN_TEXTS (2 * 1024) /* of the archive's own that a peer can cause: a few, which never change */
#define STORM_WEIGHT 6
#define SIEGE_WEIGHT 30
#define ACCEPTED_MAX 8
#define ENDING_MAX 64
#define LOG_BYTES_MAX INT64_C(33554432) /* logs of 64 KiB terms that live for some tens of cycles */
#define SOCKETS_MAX 64
#define DESCRIPTORS_MAX 32
#define ANSWER_NS_MAX (20 * MS)
#define LOGIN_NS_MAX (100 * MS)              /* connecting, and two turns of passwords before it: one seed in 1,500 takes 91 to 93 ms */
#define LOGIN_OF_ADDRESS_NS_MAX (400 * MS)   /* all that wait of one address */

void siege_begin(sim_world *world)
{
    if (world->adversary.is_there)
    {
        world->archive->error_log.length = ERROR_LOG_LENGTH;
        world->adversary.weight = STORM_WEIGHT;
        world->adversary.is_quiet = false;
    }
}

/* -- every cycle ------------------------------------------------------------------------------------------------------------------- */

static bool is_accepted(const asi_control_session *session)
{
    return ASI_CONTROL_AUTHENTICATED == session->state || ASI_CONTROL_ACTIVE == session->state;
}

static void check_session(const asi_control_session *session)
{
    const bool is_open = NULL != session->publication || AS_NULL_VALUE != session->publication_request || NULL != session->counter ||
        AS_NULL_VALUE != session->counter_request;
    const bool is_current =
        ASI_CODEC_VERSION_MAJOR(session->client_version) == ASI_CODEC_VERSION_MAJOR(ASI_CODEC_PROTOCOL_VERSION);
    const bool is_small = session->is_provable && NULL != strstr(session->response_channel.text, "|term-length=64k|");
    const bool is_waiting = is_current && session->is_asked && AS_AUTH_WAIT == session->decision && ASI_CONTROL_DONE != session->state;
    if (is_waiting && is_open && !is_small)
    {
        sim_fail("logins", "session %" PRId64 " is not decided, and has a publication on %.200s", session->id,
            session->response_channel.text);
    }
    if (is_waiting && session->is_provable && session->state < ASI_CONTROL_CONNECTED &&
        session->id == session->archive->logins->deciding_session_id)
    {
        sim_fail("logins", "the password of session %" PRId64 " is looked at, and nobody listens on %.200s", session->id,
            session->response_channel.text);
    }
    if (is_accepted(session) && AS_AUTH_ACCEPT != session->decision)
    {
        sim_fail("logins", "session %" PRId64 " goes on without a login", session->id);
    }
}

static bool is_of_address(const asi_control_session *session, const char *address)
{
    as_image_constants constants;
    as_image_get_constants(session->image, &constants);
    return 0 == strncmp(constants.source_identity, address, strlen(address));
}

static void check_sessions(sim_world *world)
{
    static const char *const ADDRESSES[] = { "aeron:ipc", "10.0.0.1:", "127.0.0.1:" };
    int64_t undecided[3] = { 0 };
    int64_t accepted = 0;
    for (const asi_control_session *at = world->archive->sessions->first; NULL != at; at = at->next)
    {
        check_session(at);
        accepted += is_accepted(at) ? 1 : 0;
        for (int i = 0; i < 3 && !is_accepted(at) && ASI_CONTROL_DONE != at->state; i++)
        {
            undecided[i] += is_of_address(at, ADDRESSES[i]) ? 1 : 0;
        }
    }
    for (int i = 0; i < 3; i++)
    {
        if (world->adversary.has_logins && undecided[i] > SIEGE_UNDECIDED)
        {
            sim_fail("bounds", "%" PRId64 " sessions of %s are not accepted yet", undecided[i], ADDRESSES[i]);
        }
    }
    const int64_t count = world->archive->sessions->count;
    world->limits.most_sessions = count > world->limits.most_sessions ? count : world->limits.most_sessions;
    if (accepted > ACCEPTED_MAX || count > accepted + 2 * SIEGE_UNDECIDED + ENDING_MAX)
    {
        sim_fail("bounds", "%" PRId64 " control sessions, %" PRId64 " of them accepted", count, accepted);
    }
}

void siege_check(sim_world *world)
{
    if (world->adversary.is_there && NULL != world->archive)
    {
        check_sessions(world);
    }
}

/* -- what there is ----------------------------------------------------------------------------------------------------------------- */

typedef struct state
{
    uint64_t catalog;      /* hash of its bytes */
    uint64_t files;        /* of names and sizes, in any order */
    uint64_t recordings;   /* of active recordings */
    int64_t subscriptions;
    int64_t replays;
    int64_t tokens;
    int64_t replications;
    int64_t written_bytes;
} state;

static uint64_t mix(uint64_t hash, const void *bytes, int64_t length)
{
    for (int64_t i = 0; i < length; i++)
    {
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3ULL;
    }
    return hash;
}

static uint64_t hash_catalog(const sim_disk *disk)
{
    uint8_t page[SIM_DISK_PAGE];
    uint64_t hash = 0;
    const int64_t size = sim_disk_size_of(disk, "archive.catalog");
    for (int64_t at = 0; at < size; at += SIM_DISK_PAGE)
    {
        sim_disk_read(disk, "archive.catalog", page, SIM_DISK_PAGE, at);
        hash = mix(hash, page, SIM_DISK_PAGE);
    }
    return mix(hash, &size, sizeof(size));
}

static state look(const sim_world *world)
{
    const as_archive *archive = world->archive;
    state seen = { .catalog = hash_catalog(&world->disk), .replays = archive->uses->count[ASI_USE_REPLAYS],
        .tokens = NULL != archive->tokens ? 1 : 0, .replications = NULL != archive->replications ? 1 : 0,
        .written_bytes = world->disk.written_bytes };
    for (int32_t i = 0; i < world->disk.now.count; i++)
    {
        const sim_entry *entry = &world->disk.now.entries[i];
        seen.files += mix(mix(0, entry->name, (int64_t)strlen(entry->name)), &entry->file->size, sizeof(entry->file->size));
    }
    for (const asi_recording_subscription *at = archive->recordings->subscriptions; NULL != at; at = at->next)
    {
        seen.subscriptions++;
    }
    for (const asi_active_recording *at = archive->recordings->active; NULL != at; at = at->next)
    {
        seen.recordings = mix(seen.recordings, &at->session.writer_params.recording_id, sizeof(int64_t));
    }
    return seen;
}

static void check_unchanged(const sim_world *world, const state *before)
{
    const state now = look(world);
    const struct
    {
        const char *what;
        int64_t before;
        int64_t now;
    } rows[] = {
        { "the catalog's bytes", (int64_t)before->catalog, (int64_t)now.catalog },
        { "files", (int64_t)before->files, (int64_t)now.files },
        { "active recordings", (int64_t)before->recordings, (int64_t)now.recordings },
        { "subscriptions that record", before->subscriptions, now.subscriptions },
        { "replays", before->replays, now.replays },
        { "replay tokens", before->tokens, now.tokens },
        { "replications", before->replications, now.replications },
        { "bytes written", before->written_bytes, now.written_bytes },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        if (rows[i].before != rows[i].now)
        {
            sim_fail("changed", "%s: %" PRId64 ", and was %" PRId64, rows[i].what, rows[i].now, rows[i].before);
        }
    }
}

/* -- what it costs ----------------------------------------------------------------------------------------------------------------- */

/* Promised by the logs of all publications; 4096 for each page that has storage if `is_taken`. */
static int64_t log_bytes(const sim_world *world)
{
    char path[AS_PATH_MAX + 300];
    int64_t sum = 0;
    snprintf(path, sizeof(path), "%s/publications", world->driver_dir);
    DIR *folder = opendir(path);
    for (const struct dirent *entry = NULL == folder ? NULL : readdir(folder); NULL != entry; entry = readdir(folder))
    {
        struct stat file;
        snprintf(path, sizeof(path), "%.3900s/publications/%s", world->driver_dir, entry->d_name);
        sum += '.' != entry->d_name[0] && 0 == stat(path, &file) ? (int64_t)file.st_size : 0;
    }
    if (NULL != folder)
    {
        closedir(folder);
    }
    return sum;
}

static int64_t sockets(const sim_world *world)
{
    return sim_net_open_sockets(&world->net, &world->net.hosts[world->net.host_count - 1]);
}

static void note(int64_t *most, int64_t value) { *most = value > *most ? value : *most; }

static void check_bound(const char *what, int64_t value, int64_t bound)
{
    if (value > bound)
    {
        sim_fail("bounds", "%s: %" PRId64 " more than before", what, value);
    }
}

static void check_costs(sim_world *world)
{
    world_limits *limits = &world->limits;
    const int64_t more = log_bytes(world) - limits->log_bytes;
    note(&limits->most_log_bytes, more);
    check_bound("bytes of logs", more, LOG_BYTES_MAX);
    check_bound("sockets", sockets(world) - limits->sockets, SOCKETS_MAX);
    check_bound("descriptors", sim_open_descriptors() - limits->descriptors, DESCRIPTORS_MAX);
}

static void check_error_log(sim_world *world, int64_t offset_before)
{
    asi_error_log *log = &world->archive->error_log;
    const int64_t room = log->length / 2 > offset_before ? log->length / 2 : offset_before;
    if (log->next_offset > room + OWN_TEXTS)
    {
        sim_fail("log", "texts of peers take %" PRId64 " bytes of the error log's %" PRId64, log->next_offset, log->length);
    }
    const int64_t entries = log->observation_count;
    asi_archive_log(world->archive, 0, "the simulation's own error, after a siege");
    if (log->observation_count == entries)
    {
        sim_fail("log", "a real error is not recorded after a siege");
    }
}

/* -- the siege --------------------------------------------------------------------------------------------------------------------- */

static void ask(sim_world *world)
{
    const int64_t begin_ns = world->now_ns;
    asi_codec_request request = world_request(ASI_CODEC_ARCHIVE_ID, AS_NULL_VALUE);
    const asi_codec_event *event = world_ask(world, &request);
    const int64_t took_ns = world->now_ns - begin_ns;
    note(&world->limits.most_answer_ns, took_ns);
    if (NULL == event || ASI_CODEC_OK != event->code || took_ns > ANSWER_NS_MAX)
    {
        sim_fail("session", "the honest client is answered after %" PRId64 " ms", took_ns / MS);
    }
}

/* Another honest client comes, and goes. */
static void visit(sim_world *world)
{
    const world_session own = world->session;
    const int64_t begin_ns = world->now_ns;
    world->is_visiting = true;
    const bool is_in = world_connect(world);
    world->is_visiting = false;
    const int64_t took_ns = world->now_ns - begin_ns;
    note(&world->limits.most_login_ns, took_ns);
    if (!is_in || took_ns > (world->adversary.shares_source ? LOGIN_OF_ADDRESS_NS_MAX : LOGIN_NS_MAX))
    {
        sim_fail("session", "the honest client is let in after %" PRId64 " ms", took_ns / MS);
    }
    ask(world);
    world_disconnect(world);
    world->session = own;
}

static void rounds(sim_world *world, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
    {
        world_round(world);
    }
}

/* Until the archive has done what it was asked to. */
static void settle(sim_world *world)
{
    world->adversary.is_quiet = true;
    world->is_publishing = false;
    for (int32_t i = 0; i < SETTLE_ROUNDS && world_is_copying(world); i++)
    {
        world_round(world);
    }
    rounds(world, 100);
}

void siege_run(sim_world *world)
{
    if (!world->adversary.is_there)
    {
        return;
    }
    settle(world);
    const state before = look(world);
    const int64_t offset = world->archive->error_log.next_offset;
    world->limits.log_bytes = log_bytes(world);
    world->limits.descriptors = sim_open_descriptors();
    world->limits.sockets = sockets(world);
    world->adversary.weight = SIEGE_WEIGHT;
    world->adversary.is_quiet = false;
    sim_trace("siege");
    for (int32_t i = 0; i < SIEGE_ROUNDS; i++)
    {
        world_round(world);
        if (0 == i % CHECK_INTERVAL)
        {
            check_costs(world);
        }
        if (0 == i % QUESTION_INTERVAL)
        {
            world->adversary.is_guessing = world->adversary.has_logins && !world->adversary.is_guessing;
        }
        if (QUESTION_INTERVAL / 2 == i % QUESTION_INTERVAL)
        {
            ask(world);
            visit(world);
        }
    }
    world->adversary.weight = STORM_WEIGHT;
    world->adversary.is_guessing = false;
    world->adversary.is_quiet = true;
    rounds(world, 100);
    check_unchanged(world, &before);
    check_error_log(world, offset);
    sim_trace("siege over: %" PRId64 " sessions, %" PRId64 " bytes of logs, answers within %" PRId64 " ms, logins within %" PRId64 " ms",
        world->limits.most_sessions, world->limits.most_log_bytes, world->limits.most_answer_ns / MS, world->limits.most_login_ns / MS);
    world->is_publishing = true;
    world->adversary.is_quiet = false;
}

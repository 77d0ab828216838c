/* The archive as a whole: claims the folder, opens the parts in order, runs the duty cycle, closes. See server.h, archive.h.
 * Spec: 08 §1, §12, 06 §6, §10.
 *
 * Order of opening: mark file (the guard), Aeron client, counters, catalog and its recovery, mark file ready, control streams. A
 * client that finds the control streams therefore finds a recovered archive. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/server.h"

#include "base/map.h"
#include "base/thread.h"
#include "server/archive.h"
#include "server/compaction.h"
#include "server/control.h"
#include "server/deletions.h"
#include "server/descriptors.h"
#include "server/logins.h"
#include "server/low_storage.h"
#include "server/migrate.h"
#include "server/on_request.h"
#include "server/recordings_images.h"
#include "server/replays.h"
#include "server/replications.h"
#include "server/report.h"
#include "server/retention.h"
#include "server/tokens.h"
#include "shm/cnc.h"
#include "store/checksum.h"
#include "store/clear.h"
#include "store/recover.h"
#include "wire/command.h"

#define DEFAULT_PAGE_SIZE 4096

/* All state in one block. The fields before the parts are private to this file. */
typedef struct asi_server
{
    as_archive archive;                  /* first; points to the parts */
    asi_cycle_counters conductor_cycle;
    asi_cycle_counters recorder_cycle;   /* DEDICATED only; also the next field */
    asi_cycle_counters replayer_cycle;
    int64_t heartbeat_ms;                /* tick of the last heartbeat written to the mark file */
    int64_t busy_ms;                     /* last tick with a control session, a recording or a replay */
    bool is_idle_expired;                /* written by the conductor, read by the owner's thread */
    as_publication *events;
    asi_agent agents[3];
    uint32_t boot;                       /* boot number of the machine; 0: unknown */
    bool is_open;                        /* the start has succeeded */
    bool is_recovered;                   /* the last archive's state is recovered, and the folder names the current writer */
    /* Written by the conductor, read by the owner's thread: text first, then the flag with release. */
    bool has_failed;
    char failure[AS_PATH_MAX + 256];
    asi_uses uses;
    asi_sessions sessions;
    asi_logins logins;
    asi_requests requests;
    asi_recordings recordings;
    asi_replays replays;
    asi_deletions deletions;
    asi_compaction compaction;
    asi_descriptors descriptors;
    asi_low_storage low_storage;
    asi_retention retention;
} asi_server;

/* -- failures ---------------------------------------------------------------------------------------------------------------- */

static void on_client_error(void *context, as_result result, int32_t code, const char *text)
{
    (void)result;
    as_archive *archive = context;
    snprintf(archive->server->failure, sizeof(archive->server->failure), "%s", text);
    asi_archive_log(archive, code, text);
}

/* Spec: 08 §12 - without its driver an archive can only close; its recordings stay active, and the next start recovers them. */
static bool check_client(as_archive *archive)
{
    if (!as_client_is_closed(archive->client))
    {
        return true;
    }
    if ('\0' == archive->server->failure[0])
    {
        snprintf(archive->server->failure, sizeof(archive->server->failure),
            "the archive's client of the media driver in %s was closed", archive->config.aeron_dir);
    }
    asi_store_release_bool(&archive->server->has_failed, true);
    return false;
}

bool as_archive_has_failed(const as_archive *archive) { return asi_load_acquire_bool(&archive->server->has_failed); }
const char *as_archive_failure(const as_archive *archive) { return as_archive_has_failed(archive) ? archive->server->failure : ""; }
bool as_archive_is_idle_expired(const as_archive *archive) { return asi_load_acquire_bool(&archive->server->is_idle_expired); }
int64_t as_archive_id(const as_archive *archive) { return archive->archive_id; }

/* -- duty cycles ------------------------------------------------------------------------------------------------------------- */

/* A subscription that waits for a publisher does not keep the archive running: a client that needs it holds a session or
 * publishes. */
static void watch_idleness(as_archive *archive, int64_t now_ms)
{
    const int64_t allowed_ms = archive->config.exit_when_idle_ns / 1000000;
    const int64_t *uses = archive->uses->count;
    asi_server *server = archive->server;
    if (0 == server->busy_ms || archive->sessions->count > 0 || uses[ASI_USE_RECORDS] > 0 || uses[ASI_USE_REPLAYS] > 0 ||
        NULL != archive->replications)
    {
        server->busy_ms = now_ms;
    }
    else if (archive->config.exit_when_idle_ns > 0 && now_ms - server->busy_ms >= allowed_ms)
    {
        asi_store_release_bool(&server->is_idle_expired, true);
    }
}

/* Of the clock of elapsed time: intervals survive a time of day that is set. */
static int tick(as_archive *archive)
{
    const int64_t now_ms = asi_clock_ns(&archive->clock) / 1000000;
    if (now_ms == archive->tick_ms)
    {
        return 0;
    }
    archive->tick_ms = now_ms;
    watch_idleness(archive, now_ms);
    if (now_ms - archive->server->heartbeat_ms >= ASI_MARK_UPDATE_INTERVAL_MS)
    {
        archive->server->heartbeat_ms = now_ms;
        asi_mark_heartbeat(archive->mark, asi_clock_ms(&archive->clock));
    }
    asi_low_storage_step(archive, now_ms);
    return as_client_invoke(archive->client);
}

static int conductor_cycle(void *context)
{
    as_archive *archive = context;
    if (archive->server->has_failed)
    {
        return 0;
    }
    asi_cycle_counters_update(&archive->server->conductor_cycle, asi_clock_ns(&archive->clock));
    int work_count = tick(archive);
    if (!check_client(archive))
    {
        return 0;
    }
    /* Results of the other threads come before requests: a client that was notified of a stopped recording or replay sends its
     * next request, and by then the recording or replay must be over. */
    work_count += asi_recordings_step(archive);
    work_count += asi_replays_step(archive);
    work_count += asi_deletions_step(archive);
    work_count += asi_requests_step(archive);
    work_count += asi_tokens_expire(archive);
    work_count += asi_retention_step(archive);
    work_count += asi_compaction_step(archive);
    work_count += asi_replications_step(archive);
    work_count += asi_control_step(archive);
    return work_count;
}

static int recorder_cycle(void *context)
{
    as_archive *archive = context;
    asi_cycle_counters_update(&archive->server->recorder_cycle, asi_clock_ns(&archive->clock));
    return asi_recorder_do_work(&archive->recordings->recorder);
}

static int replayer_cycle(void *context)
{
    as_archive *archive = context;
    asi_cycle_counters_update(&archive->server->replayer_cycle, asi_clock_ns(&archive->clock));
    return asi_replayer_do_work(&archive->replays->replayer);
}

static int shared_cycle(void *context)
{
    as_archive *archive = context;
    int work_count = conductor_cycle(archive);
    work_count += asi_replayer_do_work(&archive->replays->replayer);
    work_count += asi_recorder_do_work(&archive->recordings->recorder);
    return work_count;
}

int as_archive_do_work(as_archive *archive) { return shared_cycle(archive); }

/* Spec: 11 T3 */
static const char *name_of(const as_archive *archive, const char *classic, const char *other)
{
    return archive->config.has_new_thread_names ? other : classic;
}

as_result as_archive_start(as_archive *archive)
{
    const as_archive_config *config = &archive->config;
    if (ASI_ARCHIVE_INVOKER == config->threading)
    {
        return AS_OK;
    }
    if (ASI_ARCHIVE_SHARED == config->threading)
    {
        return asi_agent_start(&archive->server->agents[0], name_of(archive, "archive", "aeron-ar-shd"), shared_cycle, archive,
            &config->conductor_idle, -1);
    }
    as_result result = asi_agent_start(&archive->server->agents[0], name_of(archive, "archive-cond", "aeron-ar-cnd"),
        conductor_cycle, archive, &config->conductor_idle, -1);
    if (AS_OK == result)
    {
        result = asi_agent_start(&archive->server->agents[1], name_of(archive, "archive-rec", "aeron-ar-rec"), recorder_cycle,
            archive, &config->recorder_idle, -1);
    }
    if (AS_OK == result)
    {
        result = asi_agent_start(&archive->server->agents[2], name_of(archive, "archive-rep", "aeron-ar-rep"), replayer_cycle,
            archive, &config->replayer_idle, -1);
    }
    return result;
}

/* -- opening ----------------------------------------------------------------------------------------------------------------- */

/* Spec: 06 §1 - the mark file's link and error texts contain the folder's canonical path. The folder itself may be reached by a
 * symbolic link of the same user. */
static as_result prepare_folder(char *path)
{
    const as_result created = asi_dir_create_with(path, ASI_ARCHIVE_DIR_MODE);
    if (AS_OK != created)
    {
        return created;
    }
    const int fd = asi_open_no_strange_link(path, O_PATH | O_DIRECTORY, 0);
    if (fd < 0)
    {
        return asi_fail_errno(AS_E_STORAGE, errno, "cannot open the folder %s", path);
    }
    close(fd);
    char *canonical = realpath(path, NULL);
    if (NULL == canonical || strlen(canonical) >= AS_PATH_MAX)
    {
        free(canonical);
        return asi_fail_errno(AS_E_STORAGE, errno, "can't resolve the folder %s", path);
    }
    memcpy(path, canonical, strlen(canonical) + 1);
    free(canonical);
    return AS_OK;
}

/* Empties a folder only when no running archive owns it. */
static as_result clear_folder(const as_archive *archive, int folder)
{
    asi_mark_info info;
    if (AS_OK == asi_mark_read_untrusted(archive->config.archive_dir, &info) &&
        asi_mark_is_live(&info, asi_clock_ms(&archive->clock)))
    {
        return asi_fail(AS_E_USAGE, 0, "active mark file detected: %s (pid %lld); %s is not deleted while its archive runs",
            info.path, (long long)info.pid, archive->config.archive_dir);
    }
    return asi_archive_clear(folder, archive->config.archive_dir);
}

/* Refuses a folder that belongs to another user, or that other users can modify. */
static as_result enter_folder(const as_archive *archive, char *path, bool is_cleared)
{
    asi_trust trust;
    int folder = -1;
    as_result result = asi_trust_parse(&trust, archive->config.dir_owner, archive->config.dir_writers);
    result = AS_OK == result ? prepare_folder(path) : result;
    result = AS_OK == result ? asi_trust_open_dir(&trust, path, O_PATH, &folder) : result;
    if (AS_OK == result)
    {
        result = is_cleared ? clear_folder(archive, folder) : AS_OK;
        close(folder);
    }
    return AS_AGAIN == result ? AS_E_STORAGE : result;
}

static int32_t driver_page_size(const as_archive_config *config)
{
    asi_cnc cnc;
    if (AS_OK != asi_cnc_open_read_only_untrusted(&cnc, config->aeron_dir))
    {
        return DEFAULT_PAGE_SIZE; /* no driver yet; opening the client waits for it or reports the error */
    }
    const int32_t page_size = cnc.file_page_size;
    asi_cnc_close(&cnc);
    return asi_is_power_of_two(page_size) ? page_size : DEFAULT_PAGE_SIZE;
}

static as_result claim_folder(as_archive *archive)
{
    as_archive_config *config = &archive->config;
    as_result result = enter_folder(archive, config->archive_dir, config->delete_dir_on_start);
    if (AS_OK == result && '\0' != config->mark_dir[0])
    {
        result = enter_folder(archive, config->mark_dir, false);
    }
    if (AS_OK != result)
    {
        return result;
    }
    const bool has_network = config->control_channel_enabled && '\0' != config->control_channel[0];
    const asi_mark_params params = {
        .archive_dir = config->archive_dir,
        .mark_dir = '\0' == config->mark_dir[0] ? NULL : config->mark_dir,
        .control_stream_id = (int32_t)config->control_stream_id,
        .local_control_stream_id = (int32_t)config->local_control_stream_id,
        .events_stream_id = (int32_t)config->events_stream_id,
        .error_buffer_length = (int32_t)config->error_buffer_length,
        .file_page_size = driver_page_size(config),
        .start_timestamp_ms = asi_clock_ms(&archive->clock),
        .pid = getpid(),
        .control_channel = has_network ? config->control_channel : NULL,
        .local_control_channel = config->local_control_channel,
        .events_channel = '\0' == config->events_channel[0] ? NULL : config->events_channel,
        .aeron_dir = config->aeron_dir,
    };
    result = asi_mark_open(&params, &archive->clock, &archive->mark);
    if (AS_OK == result)
    {
        int64_t length;
        uint8_t *section = asi_mark_error_buffer(archive->mark, &length);
        asi_error_log_init(&archive->error_log, section, length, NULL);
        archive->error_log.sink = config->error_sink;
    }
    return result;
}

static as_result connect_to_driver(as_archive *archive, const asi_archive_dependencies *dependencies)
{
    as_client_options options;
    char name[64];
    snprintf(name, sizeof(name), "archive archiveId=%lld", (long long)archive->config.archive_id);
    as_client_options_init(&options);
    options.aeron_dir = archive->config.aeron_dir;
    options.dir_owner = archive->config.dir_owner;
    options.dir_writers = archive->config.dir_writers;
    options.client_name = AS_NULL_VALUE == archive->config.archive_id ? "archive" : name;
    options.driver_timeout_ns = archive->config.driver_timeout_ms * 1000000;
    options.use_invoker = true;
    options.on_error = on_client_error;
    options.context = archive;
    as_result result = NULL == dependencies->open_client ? as_client_open(&options, &archive->client) :
        dependencies->open_client(dependencies->open_client_context, &options, &archive->client);
    result = AS_OK == result ? as_inspector_open(archive->config.aeron_dir, &archive->inspector) : result;
    if (AS_OK != result)
    {
        return asi_fail_in(result, "no media driver to work with");
    }
    archive->archive_id =
        AS_NULL_VALUE == archive->config.archive_id ? as_client_id(archive->client) : archive->config.archive_id;
    return AS_OK;
}

static as_result open_counters(as_archive *archive)
{
    const as_archive_config *config = &archive->config;
    const asi_archive_threading threading = (asi_archive_threading)config->threading;
    as_client *client = archive->client;
    as_result result = asi_counters_open_errors(
        client, archive->inspector, &archive->clock, archive->archive_id, &archive->counters.errors);
    if (AS_OK != result)
    {
        return result;
    }
    archive->error_log.error_counter = as_counter_address(archive->counters.errors);
    result = asi_cycle_counters_open(client, archive->archive_id, "archive-conductor", threading,
        config->conductor_threshold_ns, &archive->server->conductor_cycle);
    if (AS_OK == result && ASI_ARCHIVE_DEDICATED == threading)
    {
        result = asi_cycle_counters_open(client, archive->archive_id, "archive-recorder", threading,
            config->recorder_threshold_ns, &archive->server->recorder_cycle);
        result = AS_OK != result ? result : asi_cycle_counters_open(client, archive->archive_id, "archive-replayer", threading,
            config->replayer_threshold_ns, &archive->server->replayer_cycle);
    }
    result = AS_OK == result ? asi_counters_open(client, archive->archive_id, &archive->counters) : result;
    archive->recordings->recorder.max_write_ns = archive->counters.max_write_ns;
    archive->recordings->recorder.total_write_ns = archive->counters.write_ns;
    archive->recordings->recorder.total_write_bytes = archive->counters.write_bytes;
    archive->replays->replayer.max_read_ns = archive->counters.max_read_ns;
    archive->replays->replayer.total_read_ns = archive->counters.read_ns;
    archive->replays->replayer.total_read_bytes = archive->counters.read_bytes;
    archive->replays->replayer.inspector = archive->inspector;
    return result;
}

/* Decides whether the last frame of a recording that a crash ended can be trusted. This implementation's writer makes a block
 * visible after it is completely written. The block is therefore whole, unless the machine lost power with sync level 0; in that
 * case recovery cuts off what the page test does not prove. For recordings of another implementation (whose start is in the mark
 * file) the test and the operator decide. */
static void judge_last_writer(const as_archive *archive, asi_recover_options *options)
{
    const asi_catalog_writer writer = asi_catalog_get_writer(archive->catalog);
    const int64_t last_start_ms = asi_mark_last_start_ms(archive->mark);
    const bool is_ours = writer.is_known &&
        (AS_NULL_VALUE == last_start_ms || writer.start == ((uint32_t)(uint64_t)last_start_ms & 0xFFFFFF));
    const uint32_t boot = archive->server->boot;
    options->is_last_frame_whole = is_ours && (writer.file_sync_level > 0 || (0 != boot && writer.boot == boot));
    options->cuts_unproven = is_ours;
}

static void on_damaged_record(void *context, const char *text)
{
    asi_archive_log(context, 0, text);
}

static as_result open_catalog(as_archive *archive)
{
    const as_archive_config *config = &archive->config;
    const as_record_checksum checksum = (as_record_checksum)config->record_checksum;
    const bool is_after_crash = asi_mark_is_after_crash(archive->mark);
    archive->compaction->is_possible = true;
    const asi_catalog_params params = {
        .files = archive->files,
        .archive_dir = config->archive_dir,
        .capacity = config->catalog_capacity,
        .sync_level = (int32_t)config->catalog_file_sync_level,
        .checksum = checksum,
        .is_after_crash = is_after_crash,
        .on_damage = on_damaged_record,
        .damage_context = archive,
    };
    asi_recover_options options = {
        .checksum = checksum,
        .file_sync_level = (int32_t)config->file_sync_level,
        .now_ms = asi_clock_ms(&archive->clock),
    };
    as_result result = asi_catalog_open(&params, &archive->catalog);
    if (AS_OK != result)
    {
        return result;
    }
    const asi_catalog_writer writer = { .is_known = true, .file_sync_level = (int32_t)config->file_sync_level,
        .start = (uint32_t)(uint64_t)asi_mark_start_ms(archive->mark) & 0xFFFFFF, .boot = archive->server->boot };
    judge_last_writer(archive, &options);
    result = asi_recover_catalog(archive->catalog, archive->files, config->archive_dir, &options, NULL);
    /* Also makes the catalog durable, which must come before files go: a purge that only the page cache knows would be undone by a
     * power failure, and its files would be missing. */
    result = AS_OK == result ? asi_catalog_set_writer(archive->catalog, &writer) : result;
    /* After an orderly end, too: a catalog that was lost or is an older copy gives ids again whose segments are there. */
    if (AS_OK == result)
    {
        result = asi_recover_leftovers(archive->catalog, archive->files, config->archive_dir, &archive->compaction->is_possible);
        archive->compaction->reclaimable_bytes = asi_catalog_deleted_bytes(archive->catalog);
    }
    result = AS_OK == result ? asi_migrate_settle(archive) : result;
    archive->server->is_recovered = AS_OK == result;
    return result;
}

/* Spec: 07 §5 - the control channel with the sparse setting, unless it sets its own. */
static void network_control_channel(const as_archive_config *config, char *to, size_t capacity)
{
    const char *question = strchr(config->control_channel, '?');
    if (NULL == question || NULL != strstr(config->control_channel, "sparse="))
    {
        snprintf(to, capacity, "%s", config->control_channel);
        return;
    }
    snprintf(to, capacity, "%.*ssparse=%s|%s", (int)(question + 1 - config->control_channel), config->control_channel,
        config->control_term_sparse ? "true" : "false", question + 1);
}

static as_result add_network_control(as_archive *archive)
{
    const as_archive_config *config = &archive->config;
    char channel[ASI_ARCHIVE_CHANNEL_CAPACITY + 16];
    network_control_channel(config, channel, sizeof(channel));
    const as_result result = as_client_add_subscription_with(archive->client, channel, (int32_t)config->control_stream_id, NULL,
        asi_control_on_unavailable_image, archive, &archive->requests->network);
    return AS_OK == result ? AS_OK : asi_fail_in(result, "cannot listen on aeron.archive.control.channel=%s (correct it, or set "
        "aeron.archive.control.channel.enabled=false and use %s)", config->control_channel, config->local_control_channel);
}

static as_result open_streams(as_archive *archive)
{
    const as_archive_config *config = &archive->config;
    as_result result = AS_OK;
    if (config->events_enabled)
    {
        result = as_client_add_exclusive_publication(
            archive->client, config->events_channel, (int32_t)config->events_stream_id, &archive->server->events);
        archive->recordings->recorder.events.publication = archive->server->events;
    }
    if (AS_OK == result && config->control_channel_enabled && '\0' != config->control_channel[0])
    {
        result = add_network_control(archive);
    }
    if (AS_OK == result)
    {
        result = as_client_add_subscription_with(archive->client, config->local_control_channel,
            (int32_t)config->local_control_stream_id, NULL, asi_control_on_unavailable_image, archive, &archive->requests->local);
    }
    return result;
}

/* A number that changes with each boot of the machine; 0 if unknown. */
static uint32_t boot_number(void)
{
    char text[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    const size_t length = NULL == file ? 0 : fread(text, 1, sizeof(text) - 1, file);
    if (NULL != file)
    {
        fclose(file);
    }
    return 0 == length ? 0 : asi_crc32c((const uint8_t *)text, (int64_t)length);
}

static void join_parts(asi_server *server)
{
    as_archive *archive = &server->archive;
    archive->server = server;
    archive->uses = &server->uses;
    archive->sessions = &server->sessions;
    archive->logins = &server->logins;
    archive->requests = &server->requests;
    archive->recordings = &server->recordings;
    archive->replays = &server->replays;
    archive->deletions = &server->deletions;
    archive->compaction = &server->compaction;
    archive->descriptors = &server->descriptors;
    archive->low_storage = &server->low_storage;
    archive->retention = &server->retention;
}

static void init_archive(as_archive *archive, const asi_archive_dependencies *dependencies)
{
    archive->clock = NULL == dependencies->clock ? asi_clock_system() : *dependencies->clock;
    archive->files = NULL == dependencies->files ? asi_file_ops_posix() : dependencies->files;
    archive->replays->next_number = 1;
    if (NULL == dependencies->rand)
    {
        asi_rand_seed_system(&archive->rand);
    }
    else
    {
        archive->rand = *dependencies->rand;
    }
    archive->server->boot = 0 != dependencies->boot ? dependencies->boot : boot_number();
    archive->logins->deciding_session_id = AS_NULL_VALUE;
    archive->logins->source_seed = asi_rand_u64(&archive->rand);
    archive->sessions->next_id = (int64_t)(asi_rand_u64(&archive->rand) & INT32_MAX);
    asi_intrusive_queue_init(&archive->recordings->closed);
    asi_intrusive_queue_init(&archive->replays->closed);
    asi_intrusive_queue_init(&archive->replays->answers);
    asi_recorder_init(&archive->recordings->recorder, &archive->recordings->closed, &archive->clock);
    asi_replayer_init(&archive->replays->replayer, &archive->replays->closed, &archive->replays->answers, &archive->clock);
    asi_intrusive_queue_init(&archive->deletions->returned);
    asi_deleter_init(
        &archive->deletions->deleter, &archive->deletions->returned, ASI_ARCHIVE_INVOKER != archive->config.threading);
}

static as_result open_parts(as_archive *archive, const asi_archive_dependencies *dependencies)
{
    as_result result = asi_archive_config_check(&archive->config);
    result = AS_OK == result ? asi_auth_open(&archive->auth, &archive->config) : result;
    result = AS_OK == result ? claim_folder(archive) : result;
    result = AS_OK == result ? connect_to_driver(archive, dependencies) : result;
    result = AS_OK == result ? open_counters(archive) : result;
    result = AS_OK == result ? open_catalog(archive) : result;
    if (AS_OK == result)
    {
        asi_retention_init(archive);
        asi_mark_ready(archive->mark, archive->archive_id, asi_clock_ms(&archive->clock));
        result = open_streams(archive);
    }
    return result;
}

as_result asi_archive_open_on(
    const as_archive_config *config, const asi_archive_dependencies *dependencies, as_archive **archive)
{
    asi_server *server = calloc(1, sizeof(*server));
    if (NULL == server)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for an archive");
    }
    as_archive *opened = &server->archive;
    join_parts(server);
    opened->config = *config;
    init_archive(opened, dependencies);
    const as_result result = open_parts(opened, dependencies);
    if (AS_OK == result)
    {
        server->is_open = true;
        *archive = opened;
        return AS_OK;
    }
    /* Closing may cause further errors; the reported one is the reason why the archive did not open. */
    char reason[2048];
    const int32_t code = as_error_code();
    snprintf(reason, sizeof(reason), "%s", as_error_text());
    as_archive_close(opened);
    return asi_fail(result, code, "%s", reason);
}

as_result asi_archive_open_with(
    const as_archive_config *config, const asi_file_ops *files, const asi_clock *clock, as_archive **archive)
{
    const asi_archive_dependencies dependencies = { .files = files, .clock = clock };
    return asi_archive_open_on(config, &dependencies, archive);
}

as_result as_archive_open(const as_archive_config *config, as_archive **archive)
{
    return asi_archive_open_with(config, NULL, NULL, archive);
}

/* -- closing ----------------------------------------------------------------------------------------------------------------- */

void as_archive_close(as_archive *archive)
{
    if (NULL == archive)
    {
        return;
    }
    for (size_t i = 0; i < sizeof(archive->server->agents) / sizeof(archive->server->agents[0]); i++)
    {
        asi_agent_stop(&archive->server->agents[i]);
    }
    archive->is_aborting = archive->server->has_failed;
    asi_recorder_close(&archive->recordings->recorder);
    asi_replayer_close(&archive->replays->replayer);
    asi_replays_close(archive);
    asi_replications_close(archive);
    asi_retention_close(archive);
    asi_recordings_close(archive);
    asi_deletions_close(archive);
    asi_requests_close(archive);
    asi_control_close_all(archive);
    asi_tokens_close(archive);
    asi_auth_close(&archive->auth);
    archive->error_log.error_counter = NULL; /* it is in the client's memory */
    asi_counters_close(&archive->counters);
    asi_cycle_counters_close(&archive->server->conductor_cycle);
    asi_cycle_counters_close(&archive->server->recorder_cycle);
    asi_cycle_counters_close(&archive->server->replayer_cycle);
    as_client_close(archive->client);
    as_inspector_close(archive->inspector);
    const bool is_in_order = archive->server->is_recovered && !archive->is_aborting;
    if (is_in_order)
    {
        static const asi_catalog_writer nobody = { .is_known = false };
        (void)!asi_catalog_set_writer(archive->catalog, &nobody); /* on failure (broken disk) the next start assumes a crash */
    }
    asi_catalog_close(archive->catalog);
    if (NULL != archive->mark)
    {
        asi_error_log_close(&archive->error_log);
        (!archive->server->is_open ? asi_mark_withdraw : is_in_order ? asi_mark_close : asi_mark_abandon)(archive->mark);
    }
    asi_intrusive_queue_close(&archive->recordings->closed);
    asi_intrusive_queue_close(&archive->replays->closed);
    asi_intrusive_queue_close(&archive->replays->answers);
    asi_intrusive_queue_close(&archive->deletions->returned);
    free(archive->server);
}

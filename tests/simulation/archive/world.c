/* Machine, time, starts and deaths of the archive; see world.h. */
#include "world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clients.h"
#include "logins.h"
#include "shm/broadcast.h"
#include "shm/ring_mpsc.h"
#include "sim_machine.h"
#include "sim_trace.h"
#include "wire/command.h"

#define MS 1000000LL
#define STEP_NS (1 * MS)
#define IDLE_STEP_NS (20 * MS)
#define MARK_TIMEOUT_NS (10001 * MS)
#define START_ATTEMPTS 60
#define HARD_STARTS 3
#define MIN_DEATHS 2
#define MAX_DEATHS 5

int64_t world_below(sim_world *world, int64_t bound) { return sim_random_below(&world->rand, bound); }
bool world_percent(sim_world *world, int64_t chance) { return sim_random_percent(&world->rand, chance); }

/* -- machine ---------------------------------------------------------------------------------------------------------------- */

static int64_t nano_time(void *context) { return ((const sim_world *)context)->now_ns; }
static int64_t epoch_ns(void *context) { return ((const sim_world *)context)->now_ns + SIM_EPOCH_NS; }
static int64_t epoch_ms(void *context) { return epoch_ns(context) / MS; }

/* Runs the driver while a client waits for it. */
static void spin(void *context)
{
    sim_world *world = context;
    world->now_ns += 20000;
    as_driver_do_work(world->driver);
}

static as_result open_client(void *context, const as_client_options *wanted, as_client **client)
{
    sim_world *world = context;
    as_client_options options = *wanted;
    options.driver_invoker = spin;
    options.driver_invoker_context = world;
    return clients_open(&options, &world->clock, client);
}

as_result world_open_client(sim_world *world, as_client **client)
{
    as_client_options options;
    as_client_options_init(&options);
    options.aeron_dir = world->driver_dir;
    options.use_invoker = true;
    options.resource_linger_ns = 50 * MS;
    return open_client(world, &options, client);
}

static void start_driver(sim_world *world)
{
    asi_driver_settings settings;
    asi_driver_settings_init(&settings);
    snprintf(world->driver_dir, sizeof(world->driver_dir), "%.3900s/driver%d", world->dir, world->driver_number++);
    snprintf(settings.aeron_dir, sizeof(settings.aeron_dir), "%s", world->driver_dir);
    settings.threading_mode = ASI_THREADING_INVOKER;
    settings.perform_storage_checks = false;
    /* Files that are made again with each boot of the machine. */
    settings.counters_values_buffer_length = 1 << 18;
    settings.to_driver_buffer_length = (1 << 17) + ASI_RING_TRAILER_LENGTH;
    settings.to_clients_buffer_length = (1 << 17) + ASI_BROADCAST_TRAILER_LENGTH;
    settings.error_buffer_length = 128 * 1024;
    settings.loss_report_length = 64 * 1024;
    settings.ipc_term_buffer_length = AS_TERM_MIN_LENGTH;
    settings.client_liveness_timeout_ns = 2000 * MS;
    settings.publication_linger_timeout_ns = 100 * MS;
    settings.publication_unblock_timeout_ns = 3000 * MS;
    settings.driver_timeout_ms = 5000;
    asi_driver_dependencies dependencies = { .clock = world->clock,
        .ops = sim_net_ops(sim_net_add_host(&world->net, 0)), .resolver = { .resolve = sim_resolve } };
    asi_rand_seed(&dependencies.rand, asi_rand_u64(&world->rand));
    if (AS_OK != asi_driver_open_with(&settings, &dependencies, NULL, NULL, &world->driver))
    {
        sim_fail("setup", "driver: %s", as_error_text());
    }
    if (AS_OK != world_open_client(world, &world->client))
    {
        sim_fail("setup", "client: %s", as_error_text());
    }
}

static void stop_driver(sim_world *world)
{
    as_client_close(world->client);
    as_driver_close(world->driver);
    sim_net_kill_host(&world->net.hosts[world->net.host_count - 1]);
    world->client = NULL;
    world->driver = NULL;
}

/* -- settings --------------------------------------------------------------------------------------------------------------- */

static void set(sim_world *world, const char *name, const char *value)
{
    if (AS_OK != as_archive_config_set(world->config, name, value))
    {
        sim_fail("setup", "%s=%s: %s", name, value, as_error_text());
    }
}

static void set_number(sim_world *world, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    set(world, name, text);
}

/* An archive that others can reach requires logins, with small limits that are reached soon. */
static void configure_logins(sim_world *world)
{
    char path[AS_PATH_MAX];
    char channel[64];
    snprintf(channel, sizeof(channel), "aeron:udp?endpoint=0.0.0.0:%d|term-length=64k", ADVERSARY_CONTROL_PORT);
    set(world, "aeron.archive.control.channel", channel);
    set(world, "aeron.archive.control.channel.enabled", "true");
    set(world, "aeron.archive.connect.timeout", "2s");
    set_number(world, "aeron.spark.archive.undecided.sessions.max", SIEGE_UNDECIDED);
    set_number(world, "aeron.spark.archive.control.response.term.length.max", SIEGE_RESPONSE_TERM);
    if (world->adversary.has_logins)
    {
        snprintf(path, sizeof(path), "%.4000s/users", world->dir);
        logins_write(path);
        set(world, "aeron.spark.archive.credentials.file", path);
    }
    sim_trace("adversary: logins %d, local %d, visitor local %d, of one address %d", world->adversary.has_logins,
        world->adversary.is_local, world->adversary.is_visitor_local, world->adversary.shares_source);
}

static void configure(sim_world *world)
{
    static const char *const checksums[] = { "", "CRC-32", "io.aeron.archive.checksum.Crc32c" };
    static const int32_t capacities[] = { 32, 4096, 16384, 1048576 };
    auditor *audit = &world->audit;
    audit->file_sync_level = (int32_t)world_below(world, 3);
    audit->catalog_sync_level = audit->file_sync_level + (int32_t)world_below(world, 3 - audit->file_sync_level);
    const int64_t checksum = world_below(world, 3);
    audit->checksum = 0 == checksum ? AS_CHECKSUM_NONE : 1 == checksum ? AS_CHECKSUM_CRC32 : AS_CHECKSUM_CRC32C;
    if (AS_OK != as_archive_config_open(&world->config))
    {
        sim_fail("setup", "settings: %s", as_error_text());
    }
    set(world, "aeron.archive.dir", world->archive_dir);
    set(world, "aeron.archive.threading.mode", "INVOKER");
    set(world, "aeron.archive.control.channel.enabled", "false");
    set(world, "aeron.archive.segment.file.length", world_percent(world, 60) ? "64k" : "128k");
    set(world, "aeron.archive.low.storage.space.threshold", "0");
    set(world, "aeron.archive.max.concurrent.recordings", "50");
    set(world, "aeron.spark.archive.catalog.compaction.threshold", "1");
    set(world, "aeron.archive.id", "42");
    set(world, "aeron.archive.record.checksum", checksums[checksum]);
    set_number(world, "aeron.archive.file.sync.level", audit->file_sync_level);
    set_number(world, "aeron.archive.catalog.file.sync.level", audit->catalog_sync_level);
    set_number(world, "aeron.archive.catalog.capacity", capacities[world_below(world, 4)]);
    if (world->adversary.is_there)
    {
        configure_logins(world);
    }
    sim_trace("sync levels: files %d, catalog %d; checksum %s; disk of %" PRId64 " KiB", audit->file_sync_level,
        audit->catalog_sync_level, asi_checksum_name(audit->checksum), world->disk.capacity_pages * 4);
}

/* -- the archive's life ------------------------------------------------------------------------------------------------------ */

as_result world_open_archive(
    sim_world *world, as_archive_config *config, const asi_file_ops *files, as_archive **archive)
{
    asi_rand rand;
    asi_rand_seed(&rand, asi_rand_u64(&world->rand));
    const asi_archive_dependencies dependencies = { .files = files, .clock = &world->clock, .rand = &rand,
        .open_client = open_client, .open_client_context = world,
        .boot = world->boot };
    const as_result result = as_archive_config_set(config, "aeron.dir", world->driver_dir);
    return AS_OK == result ? asi_archive_open_on(config, &dependencies, archive) : result;
}

/* The mark file is not on the simulated disk: what a crash makes of it is made here. */
static void damage_mark(sim_world *world)
{
    char path[AS_PATH_MAX];
    snprintf(path, sizeof(path), "%.4000s/archive-mark.dat", world->archive_dir);
    const int64_t kind = world_below(world, 10);
    if (kind < 6)
    {
        return;
    }
    static const char *const kinds[] = { "missing", "empty", "cut", "half written" };
    sim_trace("mark file: %s", kinds[kind - 6]);
    const int fd = open(path, O_RDWR);
    if (fd < 0)
    {
        return;
    }
    bool is_done = true;
    switch (kind)
    {
        case 6:
            is_done = 0 == unlink(path);
            break;
        case 7:
            is_done = 0 == ftruncate(fd, 0);
            break;
        case 8:
            is_done = 0 == ftruncate(fd, 1 + world_below(world, 4096));
            break;
        default:
        {
            /* Claimed by a start that got no further. */
            const int64_t claimed = INT64_MAX;
            const int32_t version = 0;
            is_done = 8 == pwrite(fd, &claimed, 8, 16) && 4 == pwrite(fd, &version, 4, 8);
            break;
        }
    }
    close(fd);
    if (!is_done)
    {
        sim_fail("setup", "cannot damage %s", path);
    }
}

/* The process is gone; with `is_power_cut` the machine as well. */
static void die(sim_world *world, bool is_power_cut)
{
    if (NULL != world->archive)
    {
        for (asi_active_recording *at = world->archive->recordings->active; NULL != at; at = at->next)
        {
            auditor_on_recorded(&world->audit, at->session.writer_params.recording_id, as_counter_get(at->session.counter));
        }
        world->zombies[world->zombie_count++ % 64] = world->archive;
        world->archive = NULL;
    }
    world->died_ns = world->now_ns;
    world->audit.catalog = NULL;
    memset(world->copies, 0, sizeof(world->copies));
    sim_disk_killed(&world->disk);
    world_disconnect(world);
    adversary_close(world);
    if (is_power_cut)
    {
        world_close_streams(world);
        world_close_source(world);
        sim_disk_cut_power(&world->disk);
        world->was_power_cut = true;
        world->boot++;
        auditor_on_power_cut(&world->audit);
        stop_driver(world);
        start_driver(world);
    }
    if (world->starts > 0)
    {
        damage_mark(world);
    }
}

static void calm_disk(sim_world *world)
{
    world->disk.chances = (sim_disk_chances){ 0 };
    world->disk.calls_to_kill = -1;
    world->disk.only_catalog_kills = false;
}

static void trouble_disk(sim_world *world)
{
    sim_disk_chances *chances = &world->disk.chances;
    *chances = (sim_disk_chances){ .is_short = world_percent(world, 40) ? 300 : 0 };
    if (world_percent(world, 25))
    {
        chances->io_error = 20 + (int32_t)world_below(world, 100);
        chances->failed_sync = 20 + (int32_t)world_below(world, 100);
    }
}

typedef enum start_outcome
{
    STARTED,
    START_REFUSED, /* by a disk that fails */
    START_KILLED
} start_outcome;

static start_outcome try_to_start(sim_world *world)
{
    jmp_buf on_kill;
    world->disk.on_kill = &on_kill;
    world->disk.catalog_errors = 0;
    world->starts++;
    world->audit.errors_before_start = world->disk.errors;
    if (0 != setjmp(on_kill))
    {
        return START_KILLED;
    }
    const as_result result = world_open_archive(world, world->config, &world->files, &world->archive);
    world->disk.on_kill = NULL;
    world->disk.calls_to_kill = -1;
    if (AS_OK == result)
    {
        return STARTED;
    }
    sim_trace("archive does not start: %.200s", as_error_text());
    /* Nothing that such an archive wrote of itself is synced, so lost power may leave what an earlier start wrote, and the folder counts
     * as another's, of which a last frame that nothing proves is refused, as stock does, until somebody repairs it. */
    if (0 == world->audit.catalog_sync_level && world->was_power_cut &&
        NULL != strstr(as_error_text(), "potentially incomplete last fragment"))
    {
        longjmp(*world->on_operator, 1);
    }
    if (world->audit.errors_before_start == world->disk.errors)
    {
        sim_fail("starts", "%s", as_error_text());
    }
    return START_REFUSED;
}

/* Until no mark file is taken for a living archive's, and the source is back. */
static void await_marks(sim_world *world)
{
    const world_source *source = &world->source;
    const bool is_source_dead = NULL == source->archive && source->died_ns >= 0;
    const int64_t until = is_source_dead && source->died_ns > world->died_ns ? source->died_ns : world->died_ns;
    while (world->now_ns < until + MARK_TIMEOUT_NS && world->starts > 0)
    {
        world->now_ns += IDLE_STEP_NS * 10;
        as_driver_do_work(world->driver);
        as_client_invoke(world->client);
        world_source_round(world);
    }
    world_open_source(world);
}

/* Starts it, through deaths in the middle of starting and disks that refuse. */
static void start_archive(sim_world *world)
{
    for (int32_t attempt = 0; attempt < START_ATTEMPTS; attempt++)
    {
        await_marks(world);
        const bool is_hard = attempt < HARD_STARTS && world->starts > 0;
        world->disk.calls_to_kill = is_hard && world_percent(world, 30) ? 1 + world_below(world, 12) : -1;
        const start_outcome outcome = try_to_start(world);
        if (STARTED == outcome)
        {
            sim_trace("archive started");
            world->was_power_cut = false;
            siege_begin(world);
            auditor_on_started(&world->audit, world->archive->catalog);
            return;
        }
        world->archive = NULL;
        world->died_ns = world->now_ns;
        if (START_KILLED == outcome)
        {
            die(world, world_percent(world, 30));
        }
        if (attempt >= HARD_STARTS)
        {
            calm_disk(world);
        }
    }
    sim_fail("starts", "not after %d attempts", START_ATTEMPTS);
}

static void watch_positions(sim_world *world)
{
    for (asi_active_recording *at = world->archive->recordings->active; NULL != at; at = at->next)
    {
        auditor_on_recorded(&world->audit, at->session.writer_params.recording_id, as_counter_get(at->session.counter));
    }
}

/* False when it was killed meanwhile. */
static bool run_archive(sim_world *world, int *work_count)
{
    jmp_buf on_kill;
    world->disk.on_kill = &on_kill;
    world->audit.round_ns = world->now_ns;
    if (0 != setjmp(on_kill))
    {
        return false;
    }
    *work_count += as_archive_do_work(world->archive);
    world->disk.on_kill = NULL;
    watch_positions(world);
    if (as_archive_has_failed(world->archive))
    {
        sim_fail("failed", "%s", as_archive_failure(world->archive));
    }
    return true;
}

void world_round(sim_world *world)
{
    int work_count = as_driver_do_work(world->driver);
    if (NULL != world->archive && !run_archive(world, &work_count))
    {
        die(world, world_percent(world, 40));
    }
    work_count += world_source_round(world);
    work_count += as_client_invoke(world->client);
    world_listen(world);
    world_publish(world);
    adversary_round(world);
    siege_check(world);
    if (world_percent(world, 3))
    {
        sim_disk_write_back(&world->disk);
    }
    world->rounds++;
    world->now_ns += work_count > 0 ? STEP_NS : IDLE_STEP_NS;
}

/* -- a run -------------------------------------------------------------------------------------------------------------------- */

static void open_world(sim_world *world, uint64_t seed, const char *dir, int32_t share)
{
    memset(world, 0, sizeof(*world));
    world->boot = 1;
    world->seed = seed;
    world->now_ns = 1000 * MS;
    asi_rand_seed(&world->rand, seed);
    adversary_choose(world, share);
    world->clock = (asi_clock){ .nano_time = nano_time, .epoch_ms = epoch_ms, .epoch_ns = epoch_ns, .context = world };
    snprintf(world->dir, sizeof(world->dir), "%s", dir);
    snprintf(world->archive_dir, sizeof(world->archive_dir), "%.4000s/archive", dir);
    sim_net_init(&world->net, &world->now_ns, asi_rand_u64(&world->rand));
    const int64_t capacity = world_percent(world, 35) ? 256 * 1024 + world_below(world, 1024 * 1024) : 64 * 1024 * 1024;
    sim_disk_init(&world->disk, world->archive_dir, asi_rand_u64(&world->rand), capacity);
    world->files = sim_disk_ops(&world->disk);
    world->audit.disk = &world->disk;
    world->audit.highest_id = -1;
    world->audit.oldest_id = -1;
    world->audit.now_ns = &world->now_ns;
    world->audit.epoch_ns = SIM_EPOCH_NS;
    configure(world);
    start_driver(world);
    world_make_source(world);
}

/* Asks and publishes until the archive dies, or nothing killed it for long. */
static void storm(sim_world *world)
{
    trouble_disk(world);
    world->disk.calls_to_kill = 1 + world_below(world, world_percent(world, 50) ? 60 : 600);
    world->is_publishing = true;
    world->dies_at_start = world_percent(world, 25);
    if (!world_connect(world))
    {
        return;
    }
    for (int32_t i = 0; i < 60 && NULL != world->archive; i++)
    {
        world_act(world);
        if (NULL != world->source.archive && world_below(world, 150) == 0)
        {
            world_kill_source(world);
        }
        for (int64_t k = world_below(world, 12); k > 0 && NULL != world->archive; k--)
        {
            world_round(world);
        }
    }
    if (NULL != world->archive)
    {
        die(world, world_percent(world, 50));
    }
}

static void close_archive(sim_world *world)
{
    world_disconnect(world);
    adversary_close(world);
    as_archive_close(world->archive);
    world->archive = NULL;
    world->audit.catalog = NULL;
    world->died_ns = world->now_ns; /* time for the driver to see that its client is gone */
    auditor_check_catalog(&world->audit);
}

static void run(sim_world *world)
{
    for (int64_t deaths = MIN_DEATHS + world_below(world, MAX_DEATHS - MIN_DEATHS + 1); deaths > 0; deaths--)
    {
        start_archive(world);
        storm(world);
        world_close_streams(world);
    }
    /* Calm: space is freed, nothing fails; every recording can be read and extended. */
    calm_disk(world);
    start_archive(world);
    world->disk.capacity_pages = 64 * 1024;
    calm_disk(world);
    world->is_publishing = true;
    world->dies_at_start = world_percent(world, 25);
    if (!world_connect(world))
    {
        sim_fail("session", "the archive does not answer when all is calm");
    }
    for (int32_t i = 0; i < 20; i++)
    {
        world_act(world);
        world_round(world);
    }
    siege_run(world);
    world_stop_all(world);
    world_replay_all(world);
    close_archive(world);
    calm_disk(world);
    start_archive(world);
    close_archive(world);
    world_close_source(world);
    stop_driver(world);
    sim_net_close(&world->net);
}

void world_run(sim_world *world, uint64_t seed, const char *dir, int32_t share)
{
    jmp_buf on_operator;
    open_world(world, seed, dir, share);
    world->on_operator = &on_operator;
    if (0 == setjmp(on_operator))
    {
        run(world);
    }
}

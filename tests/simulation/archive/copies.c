/* The source archive, and copies of its recordings; see world.h. The source has a disk of its own without faults. It is killed
 * at times and restarts with its data. The simulation writes its recordings as an archive would. */
#include <stdio.h>
#include <string.h>

#include "sim_trace.h"
#include "wire/frame.h"
#include "world.h"

#define SOURCE_STREAM 900
#define SOURCE_CONTROL_STREAM 110
#define TERM_LENGTH (64 * 1024)
#define MTU 1408

static void write_at(sim_world *world, int fd, const void *from, int64_t length, int64_t offset)
{
    const asi_file_ops *files = &world->source.files;
    if (length != files->pwrite(files->context, fd, from, length, offset))
    {
        sim_fail("setup", "the source's disk does not take %" PRId64 " bytes", length);
    }
}

static asi_frame_header header_of(const audited *recording, int64_t position, int32_t length, bool is_padding)
{
    return (asi_frame_header){ .frame_length = length, .flags = ASI_FLAG_UNFRAGMENTED,
        .type = is_padding ? ASI_FRAME_PAD : ASI_FRAME_DATA, .term_offset = (int32_t)(position % TERM_LENGTH),
        .session_id = recording->stream_id, .stream_id = recording->stream_id,
        .term_id = (int32_t)((uint32_t)recording->initial_term_id + (uint32_t)(position / TERM_LENGTH)) };
}

/* Messages from `start` on, as many as the seed says, in one segment file after the other. */
static void write_frames(sim_world *world, audited *recording, int64_t id)
{
    const asi_file_ops *files = &world->source.files;
    static uint8_t bytes[MTU];
    const int64_t wanted = 1 + world_below(world, 300);
    int fd = -1;
    int64_t opened = -1;
    int64_t position = recording->start;
    for (int64_t i = 0; i < wanted;)
    {
        const int32_t length = 64 + (int32_t)world_below(world, MTU - 64 - AS_FRAME_HEADER_LENGTH);
        const int32_t frame = length + AS_FRAME_HEADER_LENGTH;
        const int64_t left = TERM_LENGTH - position % TERM_LENGTH;
        const bool is_padding = left < (frame + 31) / 32 * 32;
        const int64_t base = audit_base_of(recording, position);
        if (base != opened)
        {
            char path[AS_PATH_MAX + 64];
            snprintf(path, sizeof(path), "%s/%" PRId64 "-%" PRId64 ".rec", world->source.dir, id, base);
            if (fd >= 0)
            {
                files->close(files->context, fd);
            }
            fd = files->open(files->context, path, ASI_FILE_CREATE_NEW);
            if (fd < 0 || 0 != files->ftruncate(files->context, fd, recording->segment_length))
            {
                sim_fail("setup", "the source's disk does not take %s", path);
            }
            opened = base;
        }
        const asi_frame_header header = header_of(recording, position, is_padding ? (int32_t)left : frame, is_padding);
        write_at(world, fd, &header, sizeof(header), position - base);
        if (is_padding)
        {
            position += left;
            continue;
        }
        const uint64_t message = asi_rand_u64(&world->rand) | 1;
        audit_fill(message, bytes, length, 0);
        write_at(world, fd, bytes, length, position - base + AS_FRAME_HEADER_LENGTH);
        position += (frame + 31) / 32 * 32;
        auditor_on_published(&world->audit, recording, position, length, MTU, message);
        i++;
    }
    files->close(files->context, fd);
    recording->stop = position;
}

static void set(as_archive_config *config, const char *name, const char *value)
{
    if (AS_OK != as_archive_config_set(config, name, value))
    {
        sim_fail("setup", "source %s=%s: %s", name, value, as_error_text());
    }
}

static void fill(sim_world *world)
{
    const asi_catalog_params params = { .files = &world->source.files, .archive_dir = world->source.dir, .capacity = 4096 };
    asi_catalog *catalog = NULL;
    as_result result = asi_catalog_open(&params, &catalog);
    for (int32_t i = 0; AS_OK == result && i < WORLD_ORIGINALS; i++)
    {
        audited *recording = &world->source.originals[i];
        const int64_t start = world_percent(world, 50) ? 0 : world_below(world, 2 * TERM_LENGTH / 32) * 32;
        *recording = world_new_recording(world, SOURCE_STREAM + i, (int32_t)asi_rand_u64(&world->rand), MTU, start);
        write_frames(world, recording, i);
        const asi_recording_params made = { .start_timestamp_ms = 1, .stop_timestamp_ms = 2, .start_position = recording->start,
            .stop_position = recording->stop, .initial_term_id = recording->initial_term_id,
            .segment_file_length = recording->segment_length, .term_buffer_length = TERM_LENGTH, .mtu_length = MTU,
            .session_id = recording->stream_id, .stream_id = recording->stream_id, .stripped_channel = asi_text_of("aeron:ipc"),
            .original_channel = asi_text_of("aeron:ipc"), .source_identity = asi_text_of("aeron:ipc") };
        result = asi_catalog_add(catalog, &made, &recording->id);
    }
    asi_catalog_close(catalog);
    if (AS_OK != result)
    {
        sim_fail("setup", "source: %s", as_error_text());
    }
}

void world_make_source(sim_world *world)
{
    world_source *source = &world->source;
    snprintf(source->dir, sizeof(source->dir), "%.4000s/source", world->dir);
    sim_disk_init(&source->disk, source->dir, asi_rand_u64(&world->rand), 64 * 1024 * 1024);
    source->files = sim_disk_ops(&source->disk);
    if (AS_OK != as_archive_config_open(&source->config))
    {
        sim_fail("setup", "source: %s", as_error_text());
    }
    set(source->config, "aeron.archive.dir", source->dir);
    set(source->config, "aeron.archive.threading.mode", "INVOKER");
    set(source->config, "aeron.archive.control.channel.enabled", "false");
    set(source->config, "aeron.archive.local.control.stream.id", "110");
    set(source->config, "aeron.archive.segment.file.length", "64k");
    set(source->config, "aeron.archive.low.storage.space.threshold", "0");
    set(source->config, "aeron.archive.id", "43");
    source->died_ns = -1;
    fill(world);
}

void world_open_source(sim_world *world)
{
    world_source *source = &world->source;
    if (NULL == source->archive && AS_OK != world_open_archive(world, source->config, &source->files, &source->archive))
    {
        sim_fail("starts", "source: %s", as_error_text());
    }
}

void world_close_source(sim_world *world)
{
    as_archive_close(world->source.archive);
    world->source.archive = NULL;
}

void world_kill_source(sim_world *world)
{
    world_source *source = &world->source;
    sim_trace("the source is killed");
    world->zombies[world->zombie_count++ % 64] = source->archive;
    source->archive = NULL;
    source->died_ns = world->now_ns;
    sim_disk_killed(&source->disk);
}

int world_source_round(sim_world *world)
{
    world_source *source = &world->source;
    if (NULL == source->archive)
    {
        return 0;
    }
    const int work_count = as_archive_do_work(source->archive);
    if (as_archive_has_failed(source->archive))
    {
        sim_fail("failed", "source: %s", as_archive_failure(source->archive));
    }
    return work_count;
}

/* -- copies ----------------------------------------------------------------------------------------------------------------- */

/* A copy that is in progress, or NULL. */
static audited *pick_copy(sim_world *world)
{
    for (int32_t i = 0; i < world->audit.count; i++)
    {
        audited *recording = &world->audit.recordings[i];
        const audited *original = recording->original < 0 ? NULL : &world->source.originals[recording->original];
        const bool is_like = NULL != original && recording->stop < original->stop &&
            (recording->start < recording->stop || recording->start == original->start);
        if (is_like && AUDIT_STOPPED == recording->life && !recording->is_moving && !recording->is_stop_doubtful)
        {
            return recording;
        }
    }
    return NULL;
}

static bool is_copying(const sim_world *world, int32_t original)
{
    for (int32_t i = 0; i < WORLD_MAX_COPIES; i++)
    {
        if (NULL != world->copies[i].recording && world->copies[i].original == original)
        {
            return true;
        }
    }
    return false;
}

static world_copying *free_copying(sim_world *world)
{
    for (int32_t i = 0; i < WORLD_MAX_COPIES; i++)
    {
        if (NULL == world->copies[i].recording)
        {
            return &world->copies[i];
        }
    }
    return NULL;
}

void world_copy(sim_world *world)
{
    audited *copy = world_percent(world, 50) ? pick_copy(world) : NULL;
    const int32_t number = NULL == copy ? (int32_t)world_below(world, WORLD_ORIGINALS) : copy->original;
    const audited *original = &world->source.originals[number];
    world_copying *copying = free_copying(world);
    if (NULL == copying || is_copying(world, number) || AUDIT_MAX_RECORDINGS == world->audit.count)
    {
        return;
    }
    *copying = (world_copying){ .original = number, .replication_id = AS_NULL_VALUE,
        .correlation_id = as_client_next_correlation_id(world->client), .stop = original->start };
    if (NULL == copy)
    {
        const audited asked =
            world_new_recording(world, original->stream_id, original->initial_term_id, MTU, original->start);
        copy = auditor_add(&world->audit, &asked);
        copy->original = number;
        copy->stop = copy->start;
    }
    else
    {
        copying->stop = copy->stop;
        copy->life = AUDIT_ACTIVE;
        if (copy->start == copy->stop)
        {
            copy->channel = copy->asked_channel = 0; /* an empty one gets the source's descriptor */
        }
    }
    copying->recording = copy;
    copy->starts_asked = -1; /* its times may have a gap */
    auditor_on_copying(&world->audit, copy, original);
    asi_codec_request request = world_request(ASI_CODEC_REPLICATE_2, original->id);
    request.correlation_id = copying->correlation_id;
    request.dst_recording_id = copy->id;
    request.stream_id = SOURCE_CONTROL_STREAM;
    request.channel = asi_codec_text("aeron:ipc?term-length=64k");
    request.replication_channel = asi_codec_text("aeron:ipc?term-length=64k");
    sim_trace("copy recording %" PRId64 " of the source to %" PRId64 " from %" PRId64 " to %" PRId64, original->id, copy->id,
        copying->stop, original->stop);
    const asi_codec_event *event = world_ask(world, &request);
    if (NULL != event && ASI_CODEC_OK != event->code)
    {
        sim_fail("session", "a replication is refused: %s", world_answer_text(world, event));
    }
}

void world_on_copy_answer(sim_world *world, const asi_codec_event *event)
{
    for (int32_t i = 0; i < WORLD_MAX_COPIES; i++)
    {
        if (NULL != world->copies[i].recording && world->copies[i].correlation_id == event->correlation_id)
        {
            world->copies[i].replication_id = event->relevant_id;
        }
    }
}

static void on_made(sim_world *world, audited *copy, int64_t id, int64_t position)
{
    if (id <= world->audit.highest_id || position != copy->start)
    {
        sim_fail("unknown", "a copy is made with the id %" PRId64 " at %" PRId64, id, position);
    }
    world->audit.highest_id = id;
    copy->id = id;
    copy->recorded = position;
    copy->life = AUDIT_ACTIVE;
}

static void on_synced(sim_world *world, const world_copying *copying, int64_t position)
{
    const audited *original = &world->source.originals[copying->original];
    if (position != original->stop)
    {
        sim_fail("position", "recording %" PRId64 " is told to be a whole copy at %" PRId64 ", the source has %" PRId64,
            copying->recording->id, position, original->stop);
    }
    auditor_on_recorded(&world->audit, copying->recording->id, position);
    world->copies_done++;
}

const audited *world_begins_again_like(sim_world *world, const audited *recording, int64_t start)
{
    for (int32_t i = 0; i < WORLD_MAX_COPIES; i++)
    {
        if (recording == world->copies[i].recording && !world->copies[i].is_extended && start == world->copies[i].stop)
        {
            return &world->source.originals[world->copies[i].original];
        }
    }
    return NULL;
}

/* What was purged up to its stop position while the session with the source was made is empty: it begins where the source does, and
 * gets its descriptor. */
static void on_extended(sim_world *world, world_copying *copying, int64_t position)
{
    audited *copy = copying->recording;
    const audited *original = &world->source.originals[copying->original];
    copying->is_extended = true;
    if (position != copying->stop && position == original->start &&
        (copy->start == copying->stop || copy->asked_start == copying->stop))
    {
        copy->start = copy->asked_start = copy->stop = position;
        copy->asked_stop = -1;
        copy->channel = copy->asked_channel = 0;
        auditor_on_copying(&world->audit, copy, original);
    }
    else if (position != copying->stop)
    {
        sim_fail("position", "recording %" PRId64 " is extended at %" PRId64 " as a copy, it stopped at %" PRId64, copy->id, position,
            copying->stop);
    }
}

void world_on_copy_signal(sim_world *world, const asi_codec_event *event)
{
    world_copying *copying = world->copies;
    while (copying < world->copies + WORLD_MAX_COPIES &&
        (NULL == copying->recording || copying->replication_id != event->correlation_id))
    {
        copying++;
    }
    if (copying == world->copies + WORLD_MAX_COPIES)
    {
        return;
    }
    audited *copy = copying->recording;
    switch (event->signal)
    {
        case AS_SIGNAL_REPLICATE:
            on_made(world, copy, event->recording_id, event->position);
            break;
        case AS_SIGNAL_EXTEND:
            on_extended(world, copying, event->position);
            break;
        case AS_SIGNAL_SYNC:
            on_synced(world, copying, event->position);
            break;
        case AS_SIGNAL_REPLICATE_END:
            copying->has_ended = true;
            break;
        case AS_SIGNAL_STOP:
            copying->has_stopped = true;
            break;
        default:
            break;
    }
    if (copying->has_ended && !copying->is_extended && AUDIT_ACTIVE == copy->life)
    {
        auditor_cut(copy, copying->stop); /* nothing has changed */
        copy->life = AUDIT_STOPPED;
    }
    if (copying->has_ended && copying->has_stopped == copying->is_extended)
    {
        copying->recording = NULL;
    }
}

bool world_is_copying(const sim_world *world)
{
    for (int32_t i = 0; i < WORLD_MAX_COPIES; i++)
    {
        if (NULL != world->copies[i].recording)
        {
            return true;
        }
    }
    return false;
}

/* Goal: a time is found never late, whatever happened to recording and index; and at most one interval early where nothing was
 * lost. Method: recordings are written under a clock that jumps both ways, truncated, extended, torn, copied, by seed; each
 * of a thousand random times is compared with the list of write times. */
#include <fcntl.h>
#include <sys/stat.h>

#include "failing_files.h"
#include "store/time_index_edit.h"
#include "time_world.h"

static as_time_position find(as_folder *folder, int64_t time_ns)
{
    as_time_position found;
    CHECK_I64(as_folder_position_at_time(folder, 0, time_ns, &found), AS_OK);
    return found;
}

static bool is_boundary(const time_world *world, int64_t position)
{
    int64_t low = 0;
    int64_t high = world->count;
    while (low < high)
    {
        const int64_t middle = low + (high - low) / 2;
        if (world->messages[middle].begin < position)
        {
            low = middle + 1;
        }
        else
        {
            high = middle;
        }
    }
    return (low < world->count && world->messages[low].begin == position) || position == world->start_position ||
        0 == position % WORLD_TERM_LENGTH || (low > 0 && world->messages[low - 1].end == position);
}

/* Never late, for each of many times; with `interval_ns` also early by no more than that. */
static void check_lookups(const time_world *world, int count, int64_t interval_ns)
{
    as_folder *folder = folder_open(world->dir, AS_CHECKSUM_NONE);
    as_recording_extent extent;
    CHECK_I64(as_folder_extent(folder, 0, &extent), AS_OK);
    for (int i = 0; i < count; i++)
    {
        const int64_t time_ns = world_time(world);
        const int64_t first = world_first(world, time_ns);
        const int64_t right = first < world->count && world->messages[first].begin < extent.limit_position ?
            world->messages[first].begin : extent.limit_position;
        const as_time_position found = find(folder, time_ns);
        CHECK(found.position <= right);
        CHECK(found.position >= world->start_position && is_boundary(world, found.position));
        if (interval_ns > 0)
        {
            CHECK(!found.is_rebuilt);
            CHECK(right - found.position <= world->interval_bytes + 2 * WORLD_LONGEST);
            for (int64_t early = first - 1; early >= 0 && world->messages[early].begin >= found.position; early--)
            {
                CHECK(time_ns - world->messages[early].time_ns < interval_ns);
            }
        }
    }
    as_folder_close(folder);
}

/* Times of positions are those of the list, at most an interval before them; looking such a time up again is never late. */
static void check_times(const time_world *world)
{
    as_folder *folder = folder_open(world->dir, AS_CHECKSUM_NONE);
    int64_t *last_bytes = calloc((size_t)world->count, sizeof(int64_t));
    int64_t *times = calloc((size_t)world->count, sizeof(int64_t));
    uint8_t *sources = calloc((size_t)world->count, 1);
    CHECK(NULL != last_bytes && NULL != times && NULL != sources);
    for (int64_t i = 0; i < world->count; i++)
    {
        last_bytes[i] = world->messages[i].end - 1;
    }
    CHECK_I64(as_folder_times_at(folder, 0, last_bytes, world->count, times, sources), AS_OK);
    for (int64_t i = 0; i < world->count; i++)
    {
        CHECK_I64(sources[i], AS_TIME_FROM_INDEX);
        CHECK(times[i] <= world->messages[i].time_ns && times[i] > world->messages[i].time_ns - WORLD_INTERVAL_NS);
        CHECK(0 == i || times[i] >= times[i - 1]);
    }
    for (int i = 0; i < 50; i++)
    {
        const int64_t k = test_rand_below(world->rand, world->count);
        int64_t alone_ns;
        CHECK_I64(as_folder_times_at(folder, 0, &last_bytes[k], 1, &alone_ns, sources), AS_OK);
        CHECK_I64(alone_ns, times[k]);
        CHECK(find(folder, times[k]).position <= world->messages[k].begin);
    }
    free(last_bytes);
    free(times);
    free(sources);
    as_folder_close(folder);
}

/* Ascending positions with gaps of any width between them: never late, and `is_whole`: as if each was asked alone. */
static void check_strides(const time_world *world, asi_rand *rand, bool is_whole)
{
    as_folder *folder = folder_open(world->dir, AS_CHECKSUM_NONE);
    for (int64_t widest = 1; widest < world->count; widest *= 4)
    {
        int64_t messages[64];
        int64_t positions[64];
        int64_t times[64];
        uint8_t sources[64];
        int64_t count = 0;
        for (int64_t at = test_rand_below(rand, widest); at < world->count && count < 64; at += 1 + test_rand_below(rand, widest))
        {
            messages[count] = at;
            positions[count++] = world->messages[at].end - 1;
        }
        CHECK_I64(as_folder_times_at(folder, 0, positions, count, times, sources), AS_OK);
        for (int64_t i = 0; i < count; i++)
        {
            int64_t alone_ns;
            uint8_t alone_source;
            CHECK_I64(as_folder_times_at(folder, 0, &positions[i], 1, &alone_ns, &alone_source), AS_OK);
            CHECK(AS_TIME_FROM_INDEX != sources[i] || times[i] <= world->messages[messages[i]].time_ns);
            CHECK(!is_whole || (alone_ns == times[i] && alone_source == sources[i]));
        }
    }
    as_folder_close(folder);
}

static as_time_index_info info_of(const time_world *world)
{
    as_folder *folder = folder_open(world->dir, AS_CHECKSUM_NONE);
    as_time_index_info info;
    CHECK_I64(as_folder_time_index_info(folder, 0, &info), AS_OK);
    as_folder_close(folder);
    return info;
}

static void never_late_early_by_an_interval(void)
{
    asi_rand rand = test_rand();
    for (int round = 0; round < 3; round++)
    {
        time_world world;
        world_open(&world, &rand);
        for (int part = 0; part < 4; part++)
        {
            world_begin(&world, false);
            world_write(&world, 600);
            CHECK_I64(world_end(&world), 0);
            check_lookups(&world, 1000, WORLD_INTERVAL_NS);
            if (part < 3)
            {
                world_truncate(&world, 0 == part % 2); /* else only the extension after it cuts the index */
            }
        }
        check_times(&world);
        check_strides(&world, &rand, true);
        const as_time_index_info info = info_of(&world);
        CHECK(info.exists && info.is_believed);
        CHECK_I64(info.indexed_bytes, info.recording_bytes);
        CHECK_I64(info.broken_count, 0);
        world_close(&world);
    }
}

/* A crash takes the newest entries; a power cut any pages of 512 bytes, and leaves rubbish in others. */
static void torn_and_lost_entries_only_make_it_earlier(void)
{
    asi_rand rand = test_rand();
    for (int round = 0; round < 20; round++)
    {
        time_world world;
        world_open(&world, &rand);
        world_begin(&world, false);
        world_write(&world, 500);
        CHECK_I64(world_end(&world), 0);
        int64_t length;
        uint8_t *bytes = file_load(world.dir, "0" ASI_TIME_INDEX_SUFFIX, &length);
        if (0 == round % 2)
        {
            length = test_rand_below(&rand, length);
        }
        for (int64_t damage = test_rand_below(&rand, 6); damage > 0 && length > 0; damage--)
        {
            const int64_t at = test_rand_below(&rand, length) & ~511LL;
            for (int64_t i = at; i < at + 512 && i < length; i++)
            {
                bytes[i] = 0 == damage % 2 ? 0 : (uint8_t)asi_rand_u64(&rand);
            }
        }
        file_store(world.dir, "0" ASI_TIME_INDEX_SUFFIX, bytes, length);
        free(bytes);
        check_lookups(&world, 200, 0);
        check_strides(&world, &rand, false);
        /* And goes on behind it. */
        world_begin(&world, false);
        world_write(&world, 200);
        CHECK_I64(world_end(&world), 0);
        check_lookups(&world, 200, 0);
        world_close(&world);
    }
}

/* The recorder is killed: catalog says active, entries that were not written are gone, the data is there. */
static void a_killed_recorder_loses_two_intervals(void)
{
    asi_rand rand = test_rand();
    time_world world;
    world_open(&world, &rand);
    world_begin(&world, false);
    world_write(&world, 1000);
    check_lookups(&world, 200, 0);
    const as_time_index_info info = info_of(&world);
    int64_t behind = 0;
    for (int64_t i = world.count - 1; i >= 0 && world.messages[i].time_ns > info.last_ns; i--)
    {
        behind = world.last_ns - world.messages[i].time_ns;
    }
    CHECK(behind <= 2 * WORLD_INTERVAL_NS + 5000000000); /* the longest step of the clock may lie between */
    asi_time_writer_idle(world.times, world.last_ns + WORLD_INTERVAL_NS);
    CHECK_I64(info_of(&world).indexed_bytes, world.position - world.start_position);
    CHECK_I64(world_end(&world), 0);
    world_close(&world);
}

/* Another archive truncates and extends without knowing the index: it must not be believed, and is begun anew. */
static void an_index_that_others_ignored_is_not_believed(void)
{
    asi_rand rand = test_rand();
    time_world world;
    world_open(&world, &rand);
    world_begin(&world, false);
    world_write(&world, 500);
    CHECK_I64(world_end(&world), 0);
    world_truncate(&world, false);
    int64_t length;
    uint8_t *bytes = file_load(world.dir, "0" ASI_TIME_INDEX_SUFFIX, &length);
    world_begin(&world, false);
    world_write(&world, 500);
    CHECK_I64(world_end(&world), 0);
    file_store(world.dir, "0" ASI_TIME_INDEX_SUFFIX, bytes, length); /* as it was before */
    free(bytes);
    as_time_index_info info = info_of(&world);
    CHECK(info.exists && !info.is_believed);
    /* The segments were written today, and the list's times lie in the past: only the first position is safe. */
    check_lookups(&world, 200, 0);
    world_begin(&world, false);
    const int64_t joined = world.position;
    world_write(&world, 300);
    CHECK_I64(world_end(&world), 0);
    info = info_of(&world);
    CHECK(info.is_believed);
    CHECK_I64(info.indexed_bytes, world.position - joined);
    check_lookups(&world, 200, 0);
    world_close(&world);
}

/* Switched off for a session: the entries of before stay, what comes is a gap. */
static void switched_off_it_stays_true(void)
{
    asi_rand rand = test_rand();
    time_world world;
    world_open(&world, &rand);
    world_begin(&world, false);
    world_write(&world, 300);
    CHECK_I64(world_end(&world), 0);
    world_truncate(&world, false);
    const int64_t kept = world.position;
    world_begin(&world, true);
    world_write(&world, 300);
    CHECK_I64(world_end(&world), 0);
    const as_time_index_info info = info_of(&world);
    CHECK(info.is_believed);
    CHECK_I64(info.indexed_bytes, kept - world.start_position);
    check_lookups(&world, 200, 0);
    check_strides(&world, &rand, true);
    world_close(&world);
}

static asi_time_file index_of(const time_world *world)
{
    asi_time_file file;
    CHECK_I64(asi_time_file_open_untrusted(&file, asi_file_ops_posix(), world->dir, 0, ASI_FILE_READ), AS_OK);
    asi_time_file_close(&file);
    return file;
}

/* Who reads the first bytes knows by the header for how long to wait for their entry, and that none comes where it is off. */
static void the_header_is_there_before_the_first_entry(void)
{
    asi_rand rand = test_rand();
    time_world world;
    world_open(&world, &rand);
    world_begin(&world, false);
    asi_time_writer_add(world.times, world.position, 64, world.clock_ns);
    asi_time_file file = index_of(&world);
    CHECK_I64(file.slot_count, 0);
    CHECK_I64(file.header.interval_ms, WORLD_INTERVAL_NS / 1000000);
    CHECK_I64(world_end(&world), 0);
    world_begin(&world, true);
    CHECK_I64(index_of(&world).header.interval_ms, 0);
    CHECK_I64(world_end(&world), 0);
    world_close(&world);
}

/* Any one call fails: the recording's list and the index never disagree. */
static void a_disk_that_refuses_any_call(void)
{
    asi_rand rand = test_rand();
    for (int64_t fail_at = 1; fail_at <= 20; fail_at++)
    {
        time_world world;
        failing_files files;
        failing_files_init(&files, fail_at, ENOSPC, 0 == fail_at % 2);
        world_open(&world, &rand);
        world.files = &files.ops;
        for (int part = 0; part < 2; part++)
        {
            world_begin(&world, false);
            world_write(&world, 200);
            const int failure = world_end(&world);
            CHECK(0 == failure || ENOSPC == failure);
            check_lookups(&world, 200, 0);
            files.fail_at = 0; /* there is space again */
            world_truncate(&world, false);
        }
        CHECK_I64(files.open_count, 0);
        world_close(&world);
    }
}

/* Segments are purged while it is recorded: entries of them are given back, those of detached ones kept. */
static void entries_of_purged_segments_are_given_back(void)
{
    enum { RUNS = 10000, RUN_LENGTH = 96 };
    for (int is_detached = 0; is_detached < 2; is_detached++)
    {
        asi_rand rand = test_rand();
        time_world world;
        world_open(&world, &rand);
        world.interval_bytes = 32;
        world_begin(&world, false);
        const int64_t start = asi_segment_base(
            world.start_position, world.position + RUNS / 2 * RUN_LENGTH, WORLD_TERM_LENGTH, WORLD_SEGMENT_LENGTH);
        for (int i = 0; i < RUNS; i++)
        {
            if (RUNS / 2 == i)
            {
                char before[64];
                snprintf(before, sizeof(before), "0-%" PRId64 ".rec", start - WORLD_SEGMENT_LENGTH);
                CHECK_I64(asi_catalog_set_start_position(world.catalog, 0, start), AS_OK);
                if (is_detached)
                {
                    file_store(world.dir, before, "", 0);
                }
            }
            asi_time_writer_add(world.times, world.position + (int64_t)i * RUN_LENGTH, RUN_LENGTH, world.clock_ns + i);
        }
        CHECK_I64(world_end(&world), 0);
        asi_time_file file;
        CHECK_I64(asi_time_file_open_untrusted(&file, asi_file_ops_posix(), world.dir, 0, ASI_FILE_READ), AS_OK);
        const int64_t dead = (start - world.start_position) / RUN_LENGTH;
        CHECK_I64(file.header.first_slot, is_detached ? 0 : dead);
        CHECK_I64(file.slot_count, RUNS);
        asi_time_run run;
        CHECK(asi_time_file_run(&file, file.header.first_slot, &run));
        CHECK_I64(run.position, is_detached ? world.start_position : world.start_position + dead * RUN_LENGTH);
        asi_time_file_close(&file);
        char path[AS_PATH_MAX];
        struct stat st;
        CHECK_I64(asi_time_index_path(path, sizeof(path), world.dir, 0), AS_OK);
        CHECK_I64(stat(path, &st), 0);
        CHECK(is_detached == (st.st_blocks * 512 >= st.st_size));
        world_close(&world);
    }
}

/* Rebuilt of the segments' modification times: marked, never late, and what the index knew stays. */
static void rebuilt_from_the_segments(void)
{
    asi_rand rand = test_rand();
    time_world world;
    world_open(&world, &rand);
    world_begin(&world, false);
    world_write(&world, 1500);
    CHECK_I64(world_end(&world), 0);
    /* The files get the times that their last messages were written at. */
    int64_t before_ns = 0;
    int32_t files = 0;
    int32_t later = 0; /* files whose time tells them from the one before: a clock that was set back stands still for many */
    for (int64_t base = asi_segment_base(world.start_position, world.start_position, WORLD_TERM_LENGTH, WORLD_SEGMENT_LENGTH);
         base < world.position; base += WORLD_SEGMENT_LENGTH)
    {
        int64_t last_ns = 0;
        for (int64_t i = 0; i < world.count && world.messages[i].begin < base + WORLD_SEGMENT_LENGTH; i++)
        {
            last_ns = world.messages[i].time_ns;
        }
        files++;
        later += last_ns > before_ns;
        before_ns = last_ns;
        char path[AS_PATH_MAX];
        CHECK_I64(asi_segment_path(path, sizeof(path), world.dir, 0, base), AS_OK);
        const struct timespec times[2] = { { .tv_sec = last_ns / 1000000000, .tv_nsec = last_ns % 1000000000 },
            { .tv_sec = last_ns / 1000000000, .tv_nsec = last_ns % 1000000000 } };
        CHECK_I64(utimensat(AT_FDCWD, path, times, 0), 0);
    }
    as_folder *folder = folder_open(world.dir, AS_CHECKSUM_NONE);
    CHECK_I64(as_folder_rebuild_time_index(folder, 0), AS_OK);
    as_time_index_info info = info_of(&world);
    CHECK_I64(info.rebuilt_count, 0); /* nothing was missing */
    check_lookups(&world, 1000, WORLD_INTERVAL_NS);
    CHECK_I64(asi_time_index_remove(asi_file_ops_posix(), world.dir, 0), AS_OK);
    check_lookups(&world, 200, 0);
    CHECK_I64(as_folder_rebuild_time_index(folder, 0), AS_OK);
    info = info_of(&world);
    CHECK(info.is_believed && info.run_count > 2);
    CHECK_I64(info.rebuilt_count, info.run_count);
    CHECK_I64(info.indexed_bytes, info.recording_bytes);
    check_lookups(&world, 200, 0);
    int64_t last = 0;
    int64_t early = 0;
    for (int i = 0; i < 200; i++)
    {
        const int64_t time_ns = world_time(&world);
        const int64_t first = world_first(&world, time_ns);
        const int64_t right = first < world.count ? world.messages[first].begin : world.position;
        const as_time_position found = find(folder, time_ns);
        CHECK(found.is_rebuilt);
        early += right - found.position;
        last = found.position > last ? found.position : last;
    }
    CHECK(later <= files / 2 || (last > world.start_position && early / 200 <= 3 * WORLD_SEGMENT_LENGTH));
    as_folder_close(folder);
    world_close(&world);
}

static void exact_by_the_reserved_value(void)
{
    asi_rand rand = test_rand();
    time_world world;
    world_open(&world, &rand);
    world_begin(&world, false);
    stream made = stream_make(&rand, world.position, WORLD_TERM_LENGTH, 800, WORLD_LONGEST);
    world_adopt(&world, &made);
    int64_t next = 0;
    for (int64_t i = 0; i < made.block_count; i++)
    {
        const stream_block *block = &made.blocks[i];
        /* Every message of the block gets a stamp of its own, at most the clock's at the write. */
        for (int64_t at = block->position; at < block->position + block->length;)
        {
            asi_frame_header *frame = (asi_frame_header *)(void *)stream_at(&made, at);
            at += asi_frame_occupancy(frame->frame_length);
            if (!asi_frame_is_padding(frame) && 0 != (frame->flags & ASI_FLAG_BEGIN))
            {
                world.clock_ns += 1000 * (1 + test_rand_below(&rand, 3000));
                world.messages[next++] = (timed_message){ .begin = at - asi_frame_occupancy(frame->frame_length),
                    .time_ns = world.clock_ns };
            }
            frame->reserved_value = world.clock_ns / 1000;
        }
        CHECK_I64(asi_segment_writer_append(world.segments, stream_at(&made, block->position), block->length), AS_OK);
        asi_time_writer_add(world.times, block->position, block->length, world.clock_ns);
    }
    world.count = next;
    world.position = made.end_position;
    stream_free(&made);
    CHECK_I64(world_end(&world), 0);
    as_folder *folder = folder_open(world.dir, AS_CHECKSUM_NONE);
    for (int i = 0; i < 300; i++)
    {
        const int64_t time_ns = world_time(&world);
        const int64_t first = world_first(&world, time_ns);
        int64_t position;
        CHECK_I64(as_folder_position_at_reserved_time(folder, 0, time_ns, 1000, 0, &position), AS_OK);
        CHECK_I64(position, first < world.count ? world.messages[first].begin : world.position);
        CHECK_I64(as_folder_position_at_reserved_time(folder, 0, time_ns, 1000, 3000000000, &position), AS_OK);
        CHECK_I64(position, first < world.count ? world.messages[first].begin : world.position);
    }
    int64_t position;
    CHECK_I64(as_folder_position_at_reserved_time(folder, 0, 1, 0, 0, &position), AS_E_USAGE);
    as_folder_close(folder);
    world_close(&world);
}

/* As migrating does: `from` goes before or behind `to`; one clock for all, and nothing of an index that is not believed. */
static void move_joins_two(void)
{
    static const struct
    {
        int64_t from_start;
        int64_t from_correlation_id; /* in the index; 5 in the catalog */
        int64_t from_stop_ms;
        int32_t run_count;
        asi_time_run runs[4];
    } cases[] = {
        { 0, 5, AS_NULL_VALUE, 4, { { 0, 64, 1000, 2000, false }, { 64, 32, 3000, 3000, true }, { 131072, 32, 3000, 3000, false },
            { 131136, 64, 4000, 5000, false } } },
        { 262144, 5, AS_NULL_VALUE, 4, { { 131072, 32, 100, 200, false }, { 131136, 64, 4000, 5000, false }, { 262144, 64, 5000, 5000, false },
            { 262208, 32, 5000, 5000, true } } },
        { 0, 6, AS_NULL_VALUE, 2, { { 131072, 32, 100, 200, false }, { 131136, 64, 4000, 5000, false } } },
        /* The last entries before the seam are lost: those bytes may be younger than the entries behind it. */
        { 0, 6, 7, 2, { { 131072, 32, 8000000, 8000000, false }, { 131136, 64, 8000000, 8000000, false } } },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    {
        const asi_file_ops *files = asi_file_ops_posix();
        const char *dir = scratch_folder();
        const asi_catalog_record from = { .recording_id = 1, .correlation_id = 5, .start_position = cases[i].from_start,
            .stop_position = cases[i].from_start + 131072, .stop_timestamp_ms = cases[i].from_stop_ms };
        const asi_catalog_record to = { .recording_id = 2, .correlation_id = 8, .start_position = 131072, .stop_position = 262144,
            .stop_timestamp_ms = AS_NULL_VALUE };
        const int64_t at = cases[i].from_start;
        asi_time_run of_from[] = { { at, 64, 1000, 2000, false }, { at + 64, 32, 3000, 3000, true },
            { at + 131072, 32, 9000, 9000, false } /* behind its end: truncated */ };
        asi_time_run of_to[] = { { 131072, 32, 100, 200, false }, { 131136, 64, 4000, 5000, false } };
        const asi_time_header from_header = { .recording_id = 1, .era = { .correlation_id = cases[i].from_correlation_id } };
        const asi_time_header to_header = { .recording_id = 2, .era = { .correlation_id = 8 } };
        CHECK_I64(asi_time_runs_write(files, dir, &from_header, &(asi_time_runs){ .runs = of_from, .count = 3 }), AS_OK);
        CHECK_I64(asi_time_runs_write(files, dir, &to_header, &(asi_time_runs){ .runs = of_to, .count = 2 }), AS_OK);
        CHECK_I64(asi_time_index_move(files, dir, &from, &to), AS_OK);
        asi_time_file file;
        CHECK_I64(asi_time_file_open_untrusted(&file, files, dir, 1, ASI_FILE_READ), AS_AGAIN);
        CHECK_I64(asi_time_file_open_untrusted(&file, files, dir, 2, ASI_FILE_READ), AS_OK);
        CHECK_I64(file.header.era.correlation_id, 8);
        CHECK_I64(file.slot_count, cases[i].run_count);
        for (int32_t slot = 0; slot < cases[i].run_count; slot++)
        {
            const asi_time_run *expected = &cases[i].runs[slot];
            asi_time_run run;
            CHECK(asi_time_file_run(&file, slot, &run));
            CHECK_I64(run.position, expected->position);
            CHECK_I64(run.length, expected->length);
            CHECK_I64(run.first_ns, expected->first_ns);
            CHECK_I64(run.last_ns, expected->last_ns);
            CHECK(run.is_rebuilt == expected->is_rebuilt);
        }
        asi_time_file_close(&file);
        CHECK_I64(asi_time_index_move(files, dir, &from, &to), AS_OK); /* nothing left to move */
    }
}

static void names_of_indexes(void)
{
    int64_t id = -1;
    int64_t base;
    CHECK(asi_time_index_name_parse("17" ASI_TIME_INDEX_SUFFIX, &id));
    CHECK_I64(id, 17);
    CHECK(!asi_time_index_name_parse("17.rec", &id));
    CHECK(!asi_time_index_name_parse(ASI_TIME_INDEX_SUFFIX, &id));
    CHECK(!asi_time_index_name_parse("17" ASI_TIME_INDEX_SUFFIX "-new", &id));
    CHECK_I64(asi_segment_name_parse("17" ASI_TIME_INDEX_SUFFIX, &id, &base), ASI_SEGMENT_NAME_OTHER);
}

int main(void)
{
    RUN(names_of_indexes);
    RUN(move_joins_two);
    RUN(never_late_early_by_an_interval);
    RUN(torn_and_lost_entries_only_make_it_earlier);
    RUN(a_killed_recorder_loses_two_intervals);
    RUN(an_index_that_others_ignored_is_not_believed);
    RUN(switched_off_it_stays_true);
    RUN(the_header_is_there_before_the_first_entry);
    RUN(a_disk_that_refuses_any_call);
    RUN(entries_of_purged_segments_are_given_back);
    RUN(rebuilt_from_the_segments);
    RUN(exact_by_the_reserved_value);
    return 0;
}

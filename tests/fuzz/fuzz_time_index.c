/* Time indexes: whatever bytes stand in the file, each look into it ends soon, with a position inside of the recording or an error;
 * and a recorder that takes the file up leaves one that it would write itself. The golden folder's recording is the subject. */
#include "fuzz.h"
#include "store/archive_support.h"
#include "store/time_index_write.h"

#define MAX_RUNS 64

typedef struct time_folder
{
    char scratch[SCRATCH_CAPACITY];
    char path[AS_PATH_MAX];
    asi_catalog_record record;
    as_recording_extent extent;
} time_folder;

static time_folder world;

static void remove_scratch(void) { (void)!asi_dir_delete(world.scratch); }

static void unpack(void)
{
    scratch_create(world.scratch);
    atexit(remove_scratch);
    golden_folder(world.scratch, "archive-crashed", world.path);
    const asi_catalog_params params = { .files = asi_file_ops_posix(), .archive_dir = world.path, .capacity = 4096 };
    asi_catalog *catalog = NULL;
    CHECK_I64(asi_catalog_open(&params, &catalog), AS_OK);
    CHECK(asi_catalog_find(catalog, 0, &world.record));
    asi_catalog_close(catalog);
    as_folder *folder = folder_open(world.path, AS_CHECKSUM_NONE);
    CHECK_I64(as_folder_extent(folder, 0, &world.extent), AS_OK);
    as_folder_close(folder);
}

static int64_t number(fuzz_input *input, uint8_t how)
{
    return 0 != (how & 1) ? (int64_t)fuzz_number(input, 8) : (int64_t)fuzz_u16(input) * 32;
}

/* Either the input's own bytes, or entries with right checksums and the input's values: order and overlap are its choice. */
static void write_index(fuzz_input *input)
{
    uint8_t bytes[ASI_TIME_INDEX_HEADER_LENGTH + MAX_RUNS * ASI_TIME_INDEX_ENTRY_LENGTH];
    const uint8_t how = fuzz_u8(input);
    asi_time_header header = { .recording_id = 0, .era = asi_time_era_of(&world.record),
        .first_slot = 0 != (how & 2) ? (int64_t)fuzz_number(input, 8) : fuzz_u8(input) };
    asi_time_header_encode(&header, bytes);
    int64_t length = ASI_TIME_INDEX_HEADER_LENGTH;
    for (int64_t slot = 0; slot < MAX_RUNS && input->left > 0; slot++, length += ASI_TIME_INDEX_ENTRY_LENGTH)
    {
        const uint8_t kind = fuzz_u8(input);
        asi_time_run run = { .position = number(input, kind), .length = 32 * (1 + (int64_t)fuzz_u16(input)),
            .first_ns = number(input, kind >> 1), .is_rebuilt = 0 != (kind & 4) };
        run.last_ns = (int64_t)((uint64_t)run.first_ns + fuzz_u16(input));
        asi_time_run_encode(&run, 0, slot, bytes + length);
        if (0 != (kind & 8))
        {
            bytes[length + kind % ASI_TIME_INDEX_ENTRY_LENGTH] ^= kind;
        }
    }
    if (0 != (how & 4))
    {
        length -= how % 61;
    }
    if (0 != (how & 8))
    {
        int64_t taken;
        uint8_t *raw = fuzz_take(input, sizeof(bytes), &taken);
        memcpy(bytes, raw, (size_t)taken);
        free(raw);
    }
    file_store(world.path, "0" ASI_TIME_INDEX_SUFFIX, bytes, length);
}

static void look(fuzz_input *input)
{
    as_folder *folder = folder_open(world.path, AS_CHECKSUM_NONE);
    as_time_run runs[MAX_RUNS];
    as_time_index_info info;
    int64_t count = 0;
    CHECK_I64(as_folder_time_index_info(folder, 0, &info), AS_OK);
    CHECK_I64(as_folder_time_runs(folder, 0, 0, runs, MAX_RUNS, &count), AS_OK);
    for (int64_t i = 0; i < count; i++)
    {
        CHECK(runs[i].position >= world.extent.start_position);
        CHECK(runs[i].position + runs[i].length <= world.extent.limit_position);
    }
    for (int i = 0; i < 4; i++)
    {
        const int64_t time_ns = i < count ? runs[i].first_ns : (int64_t)fuzz_number(input, 8);
        as_time_position found;
        CHECK_I64(as_folder_position_at_time(folder, 0, time_ns, &found), AS_OK);
        CHECK(found.position >= world.extent.start_position && found.position <= world.extent.limit_position);
        const int64_t positions[2] = { (int64_t)fuzz_u16(input), time_ns };
        int64_t times[2];
        uint8_t sources[2];
        CHECK_I64(as_folder_times_at(folder, 0, positions, 2, times, sources), AS_OK);
    }
    as_folder_close(folder);
}

static void take_up(fuzz_input *input)
{
    const asi_time_era era = asi_time_era_of(&world.record);
    const int64_t join = (int64_t)fuzz_u16(input) * 32;
    const asi_time_writer_params params = { .files = asi_file_ops_posix(), .archive_dir = world.path, .recording_id = 0,
        .join_position = join, .interval_ns = 1000, .interval_bytes = 1024, .known_era = era, .era = era,
        .term_length = world.record.term_buffer_length, .segment_length = world.record.segment_file_length };
    asi_time_writer *writer = NULL;
    CHECK_I64(asi_time_writer_open(&params, &writer), AS_OK);
    asi_time_writer_add(writer, join, 32, 5);
    CHECK_I64(asi_time_writer_close(writer), 0);
    asi_time_file file;
    CHECK_I64(asi_time_file_open_untrusted(&file, asi_file_ops_posix(), world.path, 0, ASI_FILE_READ), AS_OK);
    asi_time_run run;
    CHECK(asi_time_file_run(&file, file.slot_count - 1, &run));
    CHECK_I64(run.position, join);
    asi_time_file_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = { .at = data, .left = (int64_t)size };
    if ('\0' == world.path[0])
    {
        unpack();
    }
    write_index(&input);
    look(&input);
    take_up(&input);
    return 0;
}

/* Archive folders: catalog, segments and mark file of a recording that was cut short, with stretches overwritten and files cut.
 * Read in every way, also as bytes in memory, recovered as a server does, and verified, dumped, repaired and packed as the tools do. The golden folder is unpacked once; files are put back after each input. */
#include "fuzz.h"
#include "store/archive_support.h"
#include "store/catalog.h"
#include "store/recover.h"

#define FILES 5
#define PATCHED_FILES 3 /* the first ones */
#define CATALOG_LENGTH 4096 /* its records, and zeros */
#define MAX_PATCHES 16

static const char *const NAMES[FILES] = { ASI_CATALOG_FILE, "archive-mark.dat", "0-262144.rec", "0-0.rec", "0-131072.rec" };

typedef struct folder_files
{
    char scratch[SCRATCH_CAPACITY];
    char path[AS_PATH_MAX];
    uint8_t *good[FILES];
    int64_t length[FILES];
    as_columns columns;
} folder_files;

static folder_files files;

static void remove_scratch(void) { (void)!asi_dir_delete(files.scratch); }

static void unpack(void)
{
    scratch_create(files.scratch);
    atexit(remove_scratch);
    golden_folder(files.scratch, "archive-crashed", files.path);
    for (int i = 0; i < FILES; i++)
    {
        files.good[i] = file_load(files.path, NAMES[i], &files.length[i]);
    }
    files.length[0] = files.length[0] < CATALOG_LENGTH ? files.length[0] : CATALOG_LENGTH;
    files.columns = columns_create(64, 1 << 20);
}

static void patch(fuzz_input *input)
{
    uint8_t *bad[FILES];
    int64_t length[FILES];
    for (int i = 0; i < FILES; i++)
    {
        bad[i] = malloc((size_t)files.length[i]);
        length[i] = files.length[i];
        memcpy(bad[i], files.good[i], (size_t)length[i]);
    }
    for (int k = 0; k < MAX_PATCHES && input->left > 0; k++)
    {
        const uint8_t what = fuzz_u8(input);
        const int i = what % PATCHED_FILES;
        const int64_t at = fuzz_u16(input) % files.length[i];
        int64_t taken;
        uint8_t *bytes = fuzz_take(input, fuzz_u8(input), &taken);
        if (what >= 0xF0)
        {
            length[i] = at;
        }
        memcpy(bad[i] + at, bytes, (size_t)(taken < files.length[i] - at ? taken : files.length[i] - at));
        free(bytes);
    }
    for (int i = 0; i < FILES; i++)
    {
        file_store(files.path, NAMES[i], bad[i], length[i]);
        free(bad[i]);
    }
}

/* What a repair made besides. */
static bool remove_new(void *context, const char *name)
{
    (void)context;
    bool is_known = 0 == strcmp(name, "messages");
    for (int i = 0; i < FILES; i++)
    {
        is_known = is_known || 0 == strcmp(name, NAMES[i]);
    }
    char path[2 * AS_PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", files.path, name);
    CHECK(is_known || 0 == unlink(path));
    return true;
}

static void read_recording(as_folder *folder, int64_t recording_id)
{
    as_recording_extent extent;
    as_segment_reader *reader = NULL;
    int64_t ignored = 0;
    int64_t starts[16];
    if (AS_OK != as_folder_extent(folder, recording_id, &extent) || extent.limit_position - extent.start_position > 1 << 22)
    {
        return;
    }
    (void)!as_folder_align(folder, recording_id, extent.start_position + 96, extent.limit_position, true, &ignored);
    (void)!as_folder_split(folder, recording_id, extent.start_position, extent.limit_position, 5000, starts, 16, &ignored);
    if (AS_OK == as_segment_reader_open(
            folder, recording_id, extent.start_position, extent.limit_position, extent.limit_position, &reader))
    {
        int64_t last = -1;
        while (AS_OK == as_segment_reader_next(reader, &files.columns) && files.columns.row_count > 0)
        {
            CHECK(files.columns.position[0] > last);
            last = files.columns.position[files.columns.row_count - 1];
            CHECK(files.columns.next_position[files.columns.row_count - 1] <= extent.limit_position);
        }
        as_segment_reader_close(reader);
    }
}

static bool read_listed(void *context, const as_recording *recording)
{
    int64_t length;
    uint8_t *bytes = file_load(context, NAMES[3], &length);
    as_recording shown = *recording;
    const as_segment_bytes given = { .folder = context, .bytes = bytes, .length = length };
    as_segment_reader *reader = NULL;
    shown.stop_position = shown.stop_position < 0 || shown.stop_position > length ? length : shown.stop_position;
    if (AS_OK == as_segment_reader_open_bytes(
            &shown, &given, shown.start_position, shown.stop_position, shown.stop_position, &reader))
    {
        while (AS_OK == as_segment_reader_next(reader, &files.columns) && files.columns.row_count > 0)
        {
            CHECK(files.columns.next_position[files.columns.row_count - 1] <= shown.stop_position);
        }
        as_segment_reader_close(reader);
    }
    free(bytes);
    return true;
}

/* As a store's catalog, and its first segment as the bytes of each recording in it. */
static void read_store(void)
{
    int64_t length;
    uint8_t *bytes = file_load(files.path, NAMES[0], &length);
    (void)!as_catalog_list(files.path, bytes, length, (int64_t[]){ 0, 1 }, 2, read_listed, files.path);
    free(bytes);
}

static void read_folder(void)
{
    as_folder *folder = NULL;
    as_folder_options options;
    as_folder_options_init(&options);
    options.aeron_dir = "/dev/shm/as-fuzz-no-such-directory";
    if (AS_OK != as_folder_open(files.path, &options, &folder))
    {
        CHECK('\0' != as_error_text()[0]);
        return;
    }
    for (int64_t i = 0; i < as_folder_recording_count(folder); i++)
    {
        as_recording recording;
        CHECK_I64(as_folder_recording_at(folder, i, &recording), AS_OK);
        read_recording(folder, recording.recording_id);
    }
    as_folder_close(folder);
}

static void recover(void)
{
    const asi_catalog_params params = { .files = asi_file_ops_posix(), .archive_dir = files.path, .capacity = CATALOG_LENGTH,
        .checksum = AS_CHECKSUM_NONE };
    asi_catalog *catalog = NULL;
    if (AS_OK == asi_catalog_open(&params, &catalog))
    {
        (void)!asi_recover_catalog(catalog, asi_file_ops_posix(), files.path, &(asi_recover_options){ .now_ms = 1 }, NULL);
        asi_catalog_close(catalog);
    }
}

/* Each tool on each record; what writes works on files that are put back before the next input. */
static void run_tools(bool is_writing)
{
    as_catalog *catalog = NULL;
    as_mark_view mark;
    int32_t steps = 0;
    int64_t ignored = 0;
    (void)!as_archive_migrate(files.path, true, NULL, NULL, &steps);
    if (AS_OK != as_catalog_open(files.path, is_writing, &catalog))
    {
        CHECK('\0' != as_error_text()[0]);
        return;
    }
    (void)!as_catalog_mark(catalog, &mark);
    for (int64_t i = 0; i < as_catalog_count(catalog); i++)
    {
        as_catalog_entry entry;
        as_verify_options options;
        as_verify_report report;
        as_checksum_report checksums;
        as_dump *dump = NULL;
        as_dump_frame frame;
        as_verify_options_init(&options);
        options.all_segments = true;
        options.repair = is_writing;
        CHECK_I64(as_catalog_at(catalog, i, &entry), AS_OK);
        CHECK('\0' == entry.recording.source_identity[strlen(entry.recording.source_identity)]);
        if (AS_OK == as_catalog_verify(catalog, i, &options, &report))
        {
            CHECK(AS_VERIFY_BAD != report.outcome || '\0' != report.text[0]);
        }
        (void)!as_catalog_checksum(catalog, i, AS_CHECKSUM_CRC32, true, !is_writing, NULL, NULL, &checksums);
        if (AS_OK == as_dump_open(catalog, i, entry.recording.start_position, INT64_MAX / 4, INT64_MAX / 2, &dump))
        {
            while (AS_OK == as_dump_next(dump, &frame))
            {
                ignored += 0 == frame.payload_length ? 0 : frame.payload[frame.payload_length - 1];
            }
            as_dump_close(dump);
        }
    }
    if (is_writing)
    {
        (void)!as_catalog_compact(catalog, &ignored, &ignored);
    }
    as_catalog_close(catalog);
    CHECK_I64(asi_file_ops_posix()->readdir(NULL, files.path, remove_new, NULL), 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = { .at = data, .left = (int64_t)size };
    if (NULL == files.good[0])
    {
        unpack();
    }
    const uint8_t how = fuzz_u8(&input);
    const bool is_recovering = 0 != (how & 1);
    patch(&input);
    read_folder();
    read_store();
    run_tools(0 != (how & 2));
    if (is_recovering)
    {
        recover();
    }
    return 0;
}

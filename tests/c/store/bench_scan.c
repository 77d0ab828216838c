/* Measures how fast the segment reader turns a recording into columns, beside a plain copy of the same bytes. Makes a
 * recording of 1 GiB (or argv[2] bytes) of argv[1]-byte messages in memory, then reads it three times; one line each. Not a
 * test: run by hand. */
#include <time.h>

#include "archive_support.h"
#include "base/idle.h"
#include "store/catalog.h"
#include "store/segment_write.h"
#include "wire/frame.h"

#define TERM_LENGTH (64 * 1024 * 1024)
#define SEGMENT_LENGTH (128 * 1024 * 1024)
#define BLOCK_LENGTH (1024 * 1024)

/* Processor time of this thread: others may be using the machine. */
static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void report(const char *what, int64_t bytes, int64_t rows, int64_t elapsed_ns)
{
    printf("%-22s %7.3f GB/s of recording", what, (double)bytes / (double)elapsed_ns);
    if (rows > 0)
    {
        printf(", %7.2f M messages/s", (double)rows * 1e3 / (double)elapsed_ns);
    }
    printf("\n");
}

static void record(const char *dir, int64_t message_length, int64_t total, as_record_checksum checksum)
{
    const asi_catalog_params catalog_params = { .files = asi_file_ops_posix(), .archive_dir = dir, .capacity = 4096 };
    asi_catalog *catalog = NULL;
    const asi_recording_params params = { .stop_position = total, .segment_file_length = SEGMENT_LENGTH,
        .term_buffer_length = TERM_LENGTH, .mtu_length = 8192, .stream_id = 1, .session_id = 3,
        .stripped_channel = asi_text_of("aeron:ipc"), .original_channel = asi_text_of("aeron:ipc"),
        .source_identity = asi_text_of("aeron:ipc") };
    int64_t id;
    CHECK_I64(asi_catalog_open(&catalog_params, &catalog), AS_OK);
    CHECK_I64(asi_catalog_add(catalog, &params, &id), AS_OK);
    asi_catalog_close(catalog);
    const asi_segment_writer_params writer_params = { .files = asi_file_ops_posix(), .archive_dir = dir, .recording_id = id,
        .term_length = TERM_LENGTH, .segment_length = SEGMENT_LENGTH, .checksum = checksum };
    asi_segment_writer *writer = NULL;
    CHECK_I64(asi_segment_writer_open(&writer_params, &writer), AS_OK);
    uint8_t *block = aligned_alloc(64, BLOCK_LENGTH);
    memset(block, 'x', BLOCK_LENGTH);
    const int64_t frame_length = message_length + AS_FRAME_HEADER_LENGTH;
    const int64_t occupancy = asi_align_i64(frame_length, AS_FRAME_ALIGNMENT);
    int64_t position = 0;
    int64_t elapsed = 0;
    while (position < total)
    {
        int64_t length = 0;
        const int64_t term_left = TERM_LENGTH - position % TERM_LENGTH;
        uint16_t type = ASI_FRAME_DATA;
        for (; length + occupancy <= BLOCK_LENGTH && length + occupancy <= term_left; length += occupancy)
        {
            *(asi_frame_header *)(void *)(block + length) = (asi_frame_header){ .frame_length = (int32_t)frame_length,
                .flags = ASI_FLAG_UNFRAGMENTED, .type = type, .term_offset = (int32_t)((position + length) % TERM_LENGTH),
                .session_id = 3, .stream_id = 1, .term_id = (int32_t)(position / TERM_LENGTH) };
        }
        if (0 == length)
        {
            *(asi_frame_header *)(void *)block = (asi_frame_header){ .frame_length = (int32_t)term_left,
                .flags = ASI_FLAG_UNFRAGMENTED, .type = ASI_FRAME_PAD, .term_offset = (int32_t)(position % TERM_LENGTH),
                .session_id = 3, .stream_id = 1, .term_id = (int32_t)(position / TERM_LENGTH) };
            length = term_left;
        }
        const int64_t begin = now_ns();
        CHECK_I64(asi_segment_writer_append(writer, block, length), AS_OK);
        elapsed += now_ns() - begin;
        position += length;
    }
    report("write", total, 0, elapsed);
    asi_segment_writer_close(writer);
    free(block);
}

static void plain_copy(int64_t total)
{
    uint8_t *from = malloc(16 << 20);
    uint8_t *to = malloc(16 << 20);
    memset(from, 1, 16 << 20);
    memset(to, 1, 16 << 20);
    const int64_t begin = now_ns();
    for (int64_t done = 0; done < total; done += 16 << 20)
    {
        memcpy(to, from, 16 << 20);
        __asm__ volatile("" ::: "memory");
    }
    report("memcpy of 16 MiB", total, 0, now_ns() - begin);
    free(from);
    free(to);
}

static void scan(as_folder *folder, int64_t total)
{
    as_columns columns = columns_create(65536, 16 << 20);
    for (int round = 0; round < 3; round++)
    {
        as_segment_reader *reader = NULL;
        int64_t rows = 0;
        const int64_t begin = now_ns();
        CHECK_I64(as_segment_reader_open(folder, 0, 0, total, total, &reader), AS_OK);
        do
        {
            CHECK_I64(as_segment_reader_next(reader, &columns), AS_OK);
            rows += columns.row_count;
        } while (columns.row_count > 0);
        report("segment reader", total, rows, now_ns() - begin);
        as_segment_reader_close(reader);
    }
    columns_free(&columns);
}

int main(int argc, char **argv)
{
    int64_t message_length;
    int64_t wanted;
    CHECK_I64(asi_parse_size(argc > 1 ? argv[1] : "1k", &message_length), AS_OK);
    CHECK_I64(asi_parse_size(argc > 2 ? argv[2] : "1g", &wanted), AS_OK);
    as_record_checksum checksum = AS_CHECKSUM_NONE;
    CHECK_I64(asi_checksum_from_name(argc > 3 ? argv[3] : "none", &checksum), AS_OK);
    const int64_t total = (wanted + TERM_LENGTH - 1) / TERM_LENGTH * TERM_LENGTH;
    char scratch[SCRATCH_CAPACITY];
    scratch_create(scratch);
    record(scratch, message_length, total, checksum);
    as_folder *folder = folder_open(scratch, AS_CHECKSUM_AUTO);
    plain_copy(total);
    scan(folder, total);
    int64_t to = 0;
    int64_t begin = now_ns();
    CHECK_I64(as_folder_advance(folder, 0, 0, total, -1, total, &to), AS_OK);
    report("advance by messages", to, 0, now_ns() - begin);
    begin = now_ns();
    CHECK_I64(as_folder_advance(folder, 0, 0, total, total / 2 + 1000, -1, &to), AS_OK);
    printf("advance by bytes       %.3f ms\n", (double)(now_ns() - begin) / 1e6);
    as_folder_close(folder);
    scratch_delete(scratch);
    return 0;
}

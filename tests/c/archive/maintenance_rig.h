/* An archive on files that fail at call N, recordings of it that end at segment boundaries, and requests that are awaited to their
 * end. */
#ifndef AS_TESTS_ARCHIVE_MAINTENANCE_RIG_H
#define AS_TESTS_ARCHIVE_MAINTENANCE_RIG_H

#include "../store/failing_files.h"
#include "server_rig.h"
#include "store/segment_layout.h"

#define CHANNEL "aeron:ipc?term-length=64k|mtu=16k"
#define MESSAGE 8160                         /* a frame of 8,192 bytes: 16 to a segment, no padding */
#define FRAME INT64_C(8192)
#define PER_SEGMENT (RIG_SEGMENT_LENGTH / FRAME)

static test_rig rig;
static failing_files disk;

/* An archive on `disk`, which refuses nothing yet. */
static inline void open_on_failing_disk(int error, bool stays_broken)
{
    rig_open(&rig);
    failing_files_init(&disk, 0, error, stays_broken);
    rig.files = disk.ops;
    rig_set(&rig, "aeron.archive.record.checksum", "CRC-32C");
    rig_set(&rig, "aeron.archive.file.sync.level", "1");
    rig_set(&rig, "aeron.archive.catalog.file.sync.level", "1");
    rig_open_archive(&rig);
}

static inline asi_codec_request at(int32_t template_id, int64_t recording_id, int64_t position)
{
    asi_codec_request request = request_of(template_id, recording_id);
    request.position = position;
    return request;
}

static inline asi_codec_request migration_of(int64_t src, int64_t dst)
{
    asi_codec_request request = request_of(ASI_CODEC_MIGRATE_SEGMENTS, src);
    request.dst_recording_id = dst;
    return request;
}

/* Messages that the folder gives of a recording, every one of them; -1: it is not in the catalog. */
static inline int64_t read_messages(int64_t recording_id, as_recording *recording)
{
    static uint8_t bytes[256 * 1024];
    static int32_t offsets[257];
    as_folder *folder = NULL;
    as_segment_reader *reader = NULL;
    as_columns columns = { .row_capacity = 256, .byte_capacity = sizeof(bytes), .value_offset = offsets, .value = bytes };
    CHECK_I64(as_folder_open(rig.archive_dir, NULL, &folder), AS_OK);
    if (AS_OK != as_folder_recording(folder, recording_id, recording))
    {
        as_folder_close(folder);
        return -1;
    }
    const int64_t stop = recording->stop_position;
    int64_t count = 0;
    CHECK_I64(as_segment_reader_open(folder, recording_id, recording->start_position, stop, stop, &reader), AS_OK);
    do
    {
        if (AS_OK != as_segment_reader_next(reader, &columns))
        {
            fprintf(stderr, "recording %" PRId64 ": %s\n", recording_id, as_error_text());
            exit(1);
        }
        count += columns.row_count;
    } while (columns.row_count > 0);
    as_segment_reader_close(reader);
    as_folder_close(folder);
    CHECK_I64(count, (stop - recording->start_position) / FRAME);
    return count;
}

/* A recording by a request that starts or extends; ended by its publication's end. */
static inline int64_t record(raw_session *session, asi_codec_request *request, const char *channel, int32_t stream_id, int64_t count)
{
    as_publication *publication = NULL;
    raw_ask_ok(session, request);
    CHECK_I64(as_client_add_exclusive_publication(rig.client, channel, stream_id, &publication), AS_OK);
    const int64_t end = publish(&rig, publication, MESSAGE, count);
    as_publication_close(publication);
    const asi_codec_event *stop = raw_await_signal(session, AS_SIGNAL_STOP, request->correlation_id);
    CHECK_I64(stop->position, end);
    return stop->recording_id;
}

static inline int64_t make_recording_of(raw_session *session, int32_t stream_id, int64_t count)
{
    asi_codec_request request = start_of(CHANNEL, stream_id, true);
    return record(session, &request, CHANNEL, stream_id, count);
}

/* Three segments and ten messages. */
static inline int64_t make_recording(raw_session *session, int32_t stream_id)
{
    return make_recording_of(session, stream_id, 3 * PER_SEGMENT + 10);
}

/* From now on the disk refuses call `n` that changes something. */
static inline void break_disk(int64_t n)
{
    disk.calls = 0;
    disk.fail_at = n;
}

static inline bool has_failed(void) { return disk.calls >= disk.fail_at; }

/* The answer's code; when it was OK, everything is gone that was to go, but for files that were refused. */
static inline int32_t run_to_end(raw_session *session, asi_codec_request *request)
{
    raw_forget(session);
    const int32_t code = raw_ask(session, request)->code;
    if (ASI_CODEC_OK == code)
    {
        raw_await_signal(session, AS_SIGNAL_DELETE, request->correlation_id);
    }
    CHECK(NULL == rig.archive->deletions->outstanding);
    return code;
}

/* Of a publication that goes on where a recording stops. */
static inline void channel_behind(int64_t recording_id, char *channel, size_t capacity)
{
    asi_catalog_record found;
    CHECK(asi_catalog_find(rig.archive->catalog, recording_id, &found));
    snprintf(channel, capacity, CHANNEL "|init-term-id=%d|term-id=%d|term-offset=%d", found.initial_term_id,
        found.initial_term_id + (int32_t)(found.stop_position / RIG_TERM_LENGTH), (int32_t)(found.stop_position % RIG_TERM_LENGTH));
}

/* Two recordings that meet at a segment boundary. */
static inline void make_pair(raw_session *session, int32_t stream_id, int64_t *head, int64_t *tail)
{
    char channel[256];
    *head = make_recording_of(session, stream_id, 2 * PER_SEGMENT);
    channel_behind(*head, channel, sizeof(channel));
    asi_codec_request request = start_of(channel, stream_id, true);
    *tail = record(session, &request, channel, stream_id, PER_SEGMENT + 3);
}

static inline void go_on(raw_session *session, int64_t recording_id, int32_t stream_id, int64_t count)
{
    char channel[256];
    channel_behind(recording_id, channel, sizeof(channel));
    asi_codec_request request = extend_of(recording_id, channel, stream_id, true);
    CHECK_I64(record(session, &request, channel, stream_id, count), recording_id);
}

#endif

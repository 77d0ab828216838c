/* Goal: an archive killed at any moment starts again, with every recording ending after its last whole frame: nothing that was
 * reported as recorded is missing, nothing torn is kept, and the recording can be replayed and extended. Method: a child
 * process runs driver, archive and publishers at full speed and tells through a pipe what was recorded; it is killed with -9
 * at a random moment, again and again. The seed is printed; TEST_SEED repeats it as far as two processes repeat. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server_rig.h"
#include "store/mark.h"
#include "store/segment_layout.h"

#define ROUNDS 12
#define STREAM_COUNT 2
#define MESSAGE_LENGTH 1300 /* frames of 1344: most cross a page somewhere */

static test_rig rig;

typedef struct report
{
    int64_t recording_id;
    int64_t recorded;
} report;

/* Never returns: runs until it is killed. */
static void run_until_killed(int pipe_end)
{
    rig_open_driver(&rig);
    rig.has_threads = true;
    rig_set(&rig, "aeron.archive.threading.mode", "DEDICATED");
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    raw_recording recordings[STREAM_COUNT];
    for (int i = 0; i < STREAM_COUNT; i++)
    {
        recordings[i] = raw_start(session, 5000 + i, false);
    }
    uint8_t message[MESSAGE_LENGTH];
    for (int64_t index = 1;; index++)
    {
        fill_message(message, sizeof(message), index);
        for (int i = 0; i < STREAM_COUNT; i++)
        {
            const int64_t offered = as_publication_offer(recordings[i].publication, message, sizeof(message));
            CHECK(offered > 0 || AS_BACK_PRESSURED == offered || AS_ADMIN_ACTION == offered);
        }
        as_client_invoke(rig.client);
        if (0 == index % 64)
        {
            const int which = (int)(index / 64 % STREAM_COUNT);
            const report told = { .recording_id = recordings[which].id,
                .recorded = raw_position(session, ASI_CODEC_RECORDING_POSITION, recordings[which].id) };
            raw_forget(session);
            if (sizeof(told) != write(pipe_end, &told, sizeof(told)))
            {
                _exit(1);
            }
        }
    }
}

/* Every byte before `stop` belongs to whole frames of the right place. */
static void check_frames(const asi_catalog_record *record, int64_t stop)
{
    const asi_frame_checksum checksum = asi_checksum_function((as_record_checksum)rig.config->record_checksum);
    int64_t length = 0;
    uint8_t *segment = NULL;
    int64_t base = -1;
    for (int64_t position = record->start_position; position < stop;)
    {
        const int64_t wanted = asi_segment_base(
            record->start_position, position, record->term_buffer_length, record->segment_file_length);
        if (wanted != base)
        {
            free(segment);
            base = wanted;
            segment = read_segment(&rig, record->recording_id, base, &length);
            CHECK(NULL != segment);
            CHECK_I64(length, record->segment_file_length);
        }
        const asi_frame_header *frame = (const asi_frame_header *)(const void *)(segment + (position - base));
        CHECK(frame->frame_length >= AS_FRAME_HEADER_LENGTH);
        CHECK_I64(frame->term_offset, position & (record->term_buffer_length - 1));
        if (ASI_FRAME_DATA == frame->type)
        {
            CHECK_I64(frame->frame_length, MESSAGE_LENGTH + 32);
            const uint8_t *payload = (const uint8_t *)frame + 32;
            for (int j = 1; j < MESSAGE_LENGTH; j++)
            {
                CHECK_I64(payload[j], (uint8_t)(payload[0] + j)); /* whole to the last byte */
            }
            const int64_t covered = asi_frame_occupancy(frame->frame_length) - AS_FRAME_HEADER_LENGTH;
            CHECK(NULL == checksum || checksum(payload, covered) == (uint32_t)frame->session_id);
        }
        position += asi_frame_occupancy(frame->frame_length);
        CHECK(position <= stop);
    }
    free(segment);
}

static void close_driver(void)
{
    as_client_close(rig.client);
    rig.client = NULL;
    as_driver_close(rig.driver);
    rig.driver = NULL;
}

/* In the parent: a new driver, the same folder. */
static void check_recovered(const report *last, int told_count, asi_rand *rand)
{
    rig.clock_ahead_ns += 20 * RIG_SECOND; /* the mark file of the dead archive looks old */
    rig_open_driver(&rig);
    rig_set(&rig, "aeron.archive.threading.mode", "INVOKER");
    rig.has_threads = false;
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    asi_catalog *catalog = rig.archive->catalog;
    for (int64_t i = 0; i < asi_catalog_count(catalog); i++)
    {
        asi_catalog_record record;
        asi_catalog_at(catalog, i, &record);
        CHECK(record.stop_position >= record.start_position);
        CHECK(record.stop_timestamp_ms > 0);
        for (int j = 0; j < told_count; j++)
        {
            CHECK(last[j].recording_id != record.recording_id || record.stop_position >= last[j].recorded);
        }
    }
    /* One of the newest goes on where it ended, after a look at all of its bytes. */
    asi_catalog_record record;
    asi_catalog_at(catalog, asi_catalog_count(catalog) - 1 - test_rand_below(rand, STREAM_COUNT), &record);
    const int64_t stop = record.stop_position;
    const int64_t id = record.recording_id;
    check_frames(&record, stop);
    char channel[256];
    const int32_t term_id = record.initial_term_id + (int32_t)(stop / RIG_TERM_LENGTH);
    snprintf(channel, sizeof(channel), RIG_CHANNEL "|init-term-id=%d|term-id=%d|term-offset=%d", record.initial_term_id, term_id,
        (int32_t)(stop % RIG_TERM_LENGTH));
    asi_codec_request request = extend_of(id, channel, record.stream_id, true);
    raw_ask_ok(session, &request);
    as_publication *publication = NULL;
    CHECK_I64(as_client_add_exclusive_publication(rig.client, channel, request.stream_id, &publication), AS_OK);
    raw_await_signal(session, AS_SIGNAL_EXTEND, request.correlation_id);
    const int64_t end = publish(&rig, publication, MESSAGE_LENGTH, 100);
    as_publication_close(publication);
    CHECK_I64(raw_await_signal(session, AS_SIGNAL_STOP, request.correlation_id)->position, end);
    asi_catalog_find(catalog, id, &record);
    CHECK_I64(record.stop_position, end);
    check_frames(&record, end);
    raw_close(session);
    rig_close_archive(&rig);
    close_driver();
}

static void round_of_death(asi_rand *rand)
{
    int ends[2];
    CHECK(0 == pipe(ends));
    const pid_t child = fork();
    CHECK(child >= 0);
    if (0 == child)
    {
        close(ends[0]);
        run_until_killed(ends[1]);
    }
    close(ends[1]);
    report last[STREAM_COUNT] = { { AS_NULL_VALUE, 0 } };
    const int64_t reports = 2 + test_rand_below(rand, 60);
    for (int64_t i = 0; i < reports; i++)
    {
        report told;
        CHECK_I64(read(ends[0], &told, sizeof(told)), sizeof(told));
        last[told.recording_id % STREAM_COUNT] = told;
    }
    /* A moment that no report is tied to. */
    const int64_t kill_at_ns = rig_system_ns() + test_rand_below(rand, 3000000);
    while (rig_system_ns() < kill_at_ns)
    {
        sched_yield();
    }
    CHECK(0 == kill(child, SIGKILL));
    int status;
    CHECK(child == waitpid(child, &status, 0));
    CHECK(WIFSIGNALED(status));
    report told;
    while (sizeof(told) == read(ends[0], &told, sizeof(told)))
    {
        last[told.recording_id % STREAM_COUNT] = told;
    }
    close(ends[0]);
    check_recovered(last, STREAM_COUNT, rand);
}

static void s75_killed_at_any_moment(void)
{
    static const char *const CHECKSUMS[] = { "", "CRC-32", "CRC-32C" };
    asi_rand rand = test_rand();
    memset(&rig, 0, sizeof(rig));
    rig_init_files(&rig);
    scratch_create(rig.scratch);
    snprintf(rig.aeron_dir, sizeof(rig.aeron_dir), "%s/aeron", rig.scratch);
    snprintf(rig.archive_dir, sizeof(rig.archive_dir), "%s/archive", rig.scratch);
    CHECK_I64(as_archive_config_open(&rig.config), AS_OK);
    rig_set(&rig, "aeron.dir", rig.aeron_dir);
    rig_set(&rig, "aeron.archive.dir", rig.archive_dir);
    rig_set(&rig, "aeron.archive.segment.file.length", "128k");
    for (int i = 0; i < ROUNDS; i++)
    {
        rig_set(&rig, "aeron.archive.record.checksum", CHECKSUMS[i % 3]);
        round_of_death(&rand);
    }
    as_archive_config_close(rig.config);
    scratch_delete(rig.scratch);
}

/* The archive ends by itself, without its driver. Returns the recording, and where it ended. */
static int64_t record_until_the_driver_goes(int32_t stream_id, int64_t *end)
{
    raw_session *session = raw_connect(&rig);
    const raw_recording recording = raw_start(session, stream_id, false);
    *end = publish(&rig, recording.publication, 1000, 50);
    UNTIL(&rig, raw_position(session, ASI_CODEC_RECORDING_POSITION, recording.id) == *end);
    raw_close(session);
    close_driver();
    UNTIL(&rig, as_archive_has_failed(rig.archive));
    rig_close_archive(&rig);
    return recording.id;
}

/* The same folder, but the archive was not told to end: what it recorded is there, and its mark file says it died. */
static void an_archive_without_its_driver_recovers_later(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.driver.timeout", "1000");
    rig_open_archive(&rig);
    int64_t end;
    const int64_t id = record_until_the_driver_goes(5100, &end);
    rig_open_driver(&rig);
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, id), end);
    raw_close(session);
    rig_close(&rig);
}

/* What the next start on the folder will find. */
static void check_left(int32_t version, int64_t start_ms, bool is_in_order)
{
    asi_mark_info info;
    CHECK_I64(asi_mark_read_untrusted(rig.archive_dir, &info), AS_OK);
    CHECK_I64(info.version, version);
    CHECK_I64(info.start_timestamp_ms, start_ms);
    CHECK_I64(AS_NULL_VALUE == info.activity_timestamp_ms, is_in_order);
    CHECK(!asi_mark_is_live(&info, rig_epoch_ms(&rig)));
    char path[AS_PATH_MAX];
    uint8_t writer[8];
    CHECK(snprintf(path, sizeof(path), "%s/archive.catalog", rig.archive_dir) < (int)sizeof(path));
    const int fd = open(path, O_RDONLY);
    CHECK_I64(pread(fd, writer, sizeof(writer), 20), sizeof(writer));
    close(fd);
    CHECK_I64(0 == writer[0], is_in_order);
}

/* A start that fails on a disk that refuses leaves everything as it found it: the next start must see the crash, and whose it was. */
static void a_start_that_fails_hides_no_crash(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.driver.timeout", "1000");
    rig_set(&rig, "aeron.archive.file.sync.level", "1");
    rig_set(&rig, "aeron.archive.catalog.file.sync.level", "1");
    rig_open_archive(&rig);
    const int64_t start_ms = asi_mark_start_ms(rig.archive->mark);
    int64_t end;
    const int64_t id = record_until_the_driver_goes(5200, &end);
    check_left(ASI_ARCHIVE_STORAGE_VERSION, start_ms, false);
    CHECK(AS_OK != rig_try_open_archive(&rig)); /* no driver */
    check_left(ASI_ARCHIVE_STORAGE_VERSION, start_ms, false);
    rig_open_driver(&rig);
    rig.fail_with = EIO;
    rig.fail_at = 1;
    CHECK_I64(rig_try_open_archive(&rig), AS_E_STORAGE);
    check_left(ASI_ARCHIVE_STORAGE_VERSION, start_ms, false);
    rig.fail_at = 0;
    rig_open_archive(&rig);
    const int64_t next_ms = asi_mark_start_ms(rig.archive->mark);
    raw_session *session = raw_connect(&rig);
    CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, id), end);
    raw_close(session);
    rig_close_archive(&rig);
    check_left(ASI_ARCHIVE_STORAGE_VERSION, next_ms, true);
    rig_close(&rig);
}

static void check_no_mark(void)
{
    char path[AS_PATH_MAX];
    snprintf(path, sizeof(path), "%s/archive-mark.dat", rig.archive_dir);
    CHECK(0 != access(path, F_OK));
}

/* Whatever step it fails at; and the folder is still good for an archive. */
static void a_start_that_fails_leaves_no_mark_in_a_new_folder(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.control.channel.enabled", "true");
    rig_set(&rig, "aeron.archive.control.channel", "aeron:udp?endpoint=no.such.host.invalid:8010");
    rig_set(&rig, "aeron.archive.replication.channel", "aeron:udp?endpoint=127.0.0.1:0");
    CHECK(AS_OK != rig_try_open_archive(&rig));
    CHECK(NULL != strstr(as_error_text(), "no.such.host.invalid"));
    CHECK(NULL != strstr(as_error_text(), "correct it"));
    CHECK(NULL == strstr(as_error_text(), "needs a media driver"));
    check_no_mark();
    rig_set(&rig, "aeron.archive.control.channel.enabled", "false");
    close_driver();
    rig_set(&rig, "aeron.driver.timeout", "1000");
    CHECK(AS_OK != rig_try_open_archive(&rig));
    check_no_mark();
    rig_open_driver(&rig);
    rig_open_archive(&rig);
    rig_close(&rig);
}

int main(void)
{
    RUN(s75_killed_at_any_moment);
    RUN(an_archive_without_its_driver_recovers_later);
    RUN(a_start_that_fails_hides_no_crash);
    RUN(a_start_that_fails_leaves_no_mark_in_a_new_folder);
    return 0;
}

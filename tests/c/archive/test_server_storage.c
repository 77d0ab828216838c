/* Goal: a running archive compacts its catalog when purged recordings fill it, never before their files are deleted; warns
 * before the disk is full; and deletes by its retention policy, naming the replay that holds a segment back. Method: a bare
 * session (server_rig.h) against an invoked archive, and for retention one with threads; files and free space are the test's. */
#include "server_rig.h"

#include "server/descriptors.h"
#include "server/retention.h"
#include "store/segment_layout.h"

#define MESSAGE 992 /* a frame of 1,024 bytes */
#define PER_SEGMENT (RIG_SEGMENT_LENGTH / 1024)

static test_rig rig;
static bool refuses_unlink;
static bool refuses_listing;

/* -- what the archive tells ---------------------------------------------------------------------------------------------------- */

typedef struct told
{
    const char *part;
    int64_t count; /* of entries with that part */
} told;

static void on_entry(const asi_error_entry *entry, void *context)
{
    told *looked_for = context;
    char text[2048];
    snprintf(text, sizeof(text), "%.*s", (int)entry->text_length, entry->text);
    looked_for->count += NULL != strstr(text, looked_for->part) ? 1 : 0;
}

static int64_t told_times(const char *part)
{
    told looked_for = { .part = part };
    const asi_error_log *log = &rig.archive->error_log;
    asi_error_log_read_untrusted(log->buffer, log->length, 0, on_entry, &looked_for);
    return looked_for.count;
}

/* -- low storage --------------------------------------------------------------------------------------------------------------- */

static void set_space(int64_t usable)
{
    rig.usable_space = usable;
    asi_fetch_add_i64(&rig.clock_ahead_ns, RIG_SECOND);
    rig_turn_times(&rig, 3);
}

static void a_disk_that_fills_is_told_before_it_is_full(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.low.storage.space.threshold", "1000");
    rig_set(&rig, "aeron.spark.archive.low.storage.warning", "8000");
    rig.usable_space = 9001;
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    raw_recording live = raw_start(session, 7100, true);
    set_space(9000);
    CHECK_I64(told_times("low storage"), 0);
    set_space(8000);
    CHECK_I64(told_times("low storage: usableSpace=8000 of "), 1);
    CHECK_I64(told_times("aeron.spark.archive.low.storage.warning=8000; recordings will be refused"), 1);
    set_space(8500); /* above the bound, but not by an eighth */
    set_space(7000);
    CHECK_I64(told_times("low storage"), 1);
    set_space(1000);
    CHECK_I64(told_times("usableSpace=1000 of "), 1);
    CHECK_I64(told_times("aeron.archive.low.storage.space.threshold=1000; recordings are refused"), 1);
    asi_codec_request request = start_of(RIG_CHANNEL, 7101, true);
    check_error(raw_ask(session, &request), ASI_CODEC_E_STORAGE_SPACE, "low storage threshold=1000 <= usableSpace=1000");
    CHECK_I64(told_times("low storage"), 2);
    /* The one that runs goes on. */
    raw_finish(session, &live, publish(&rig, live.publication, MESSAGE, 10));
    /* Space is free again: recordings begin at once, and the next shortage is reported again. */
    set_space(20000);
    raw_ask_ok(session, &request);
    set_space(6000);
    CHECK_I64(told_times("low storage"), 3);
    raw_close(session);
    rig_close(&rig);
}

/* -- compaction ---------------------------------------------------------------------------------------------------------------- */

static void purge(raw_session *session, int64_t recording_id)
{
    asi_codec_request request = request_of(ASI_CODEC_PURGE_RECORDING, recording_id);
    raw_ask_ok(session, &request);
    raw_await_signal(session, AS_SIGNAL_DELETE, request.correlation_id);
}

static int64_t files_of(int64_t recording_id)
{
    int64_t count = 0;
    for (int64_t base = 0; base < 4 * RIG_SEGMENT_LENGTH; base += RIG_SEGMENT_LENGTH)
    {
        char path[AS_PATH_MAX];
        CHECK_I64(asi_segment_path(path, sizeof(path), rig.archive_dir, recording_id, base), AS_OK);
        count += 0 == access(path, F_OK) ? 1 : 0;
    }
    return count;
}

static int64_t deleted_bytes(void) { return asi_catalog_deleted_bytes(rig.archive->catalog); }

/* What the folder's readers see: ids of `expected` and no others. */
static void check_folder(as_folder *folder, const int64_t *expected, int64_t count)
{
    CHECK_I64(as_folder_refresh(folder), AS_OK);
    CHECK_I64(as_folder_recording_count(folder), count);
    for (int64_t i = 0; i < count; i++)
    {
        as_recording recording;
        CHECK_I64(as_folder_recording_at(folder, i, &recording), AS_OK);
        CHECK_I64(recording.recording_id, expected[i]);
    }
}

static void a_running_archive_compacts_its_catalog(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.catalog.capacity", "1k");
    rig_set(&rig, "aeron.spark.archive.catalog.compaction.threshold", "1");
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    for (int64_t i = 0; i < 12; i++)
    {
        CHECK_I64(raw_record(session, 7200, MESSAGE, 3).id, i);
    }
    raw_recording live = raw_start(session, 7201, true);
    CHECK_I64(live.id, 12);
    as_folder *folder = NULL;
    CHECK_I64(as_folder_open(rig.archive_dir, NULL, &folder), AS_OK);
    const int64_t used = asi_catalog_used_bytes(rig.archive->catalog);
    const int64_t each = (used - ASI_CATALOG_HEADER_LENGTH) / 13;
    for (int64_t i = 0; i < 6; i++)
    {
        purge(session, i);
    }
    CHECK_I64(asi_catalog_used_bytes(rig.archive->catalog), used); /* less than half: not worth it */
    CHECK_I64(deleted_bytes(), 6 * each);
    purge(session, 6);
    UNTIL(&rig, 0 == deleted_bytes());
    static const int64_t LEFT[] = { 7, 8, 9, 10, 11, 12 };
    check_folder(folder, LEFT, 6);
    CHECK_I64(asi_catalog_used_bytes(rig.archive->catalog), used - 7 * each);
    /* Recordings continue, requests are answered, ids continue. */
    CHECK(raw_position(session, ASI_CODEC_STOP_POSITION, 9) > 0);
    raw_finish(session, &live, publish(&rig, live.publication, MESSAGE, 2 * PER_SEGMENT + 1));
    CHECK_I64(raw_record(session, 7202, MESSAGE, 3).id, 13);
    as_recording recording;
    CHECK_I64(as_folder_refresh(folder), AS_OK);
    CHECK_I64(as_folder_recording(folder, 12, &recording), AS_OK);
    CHECK_I64(recording.stop_position, (2 * PER_SEGMENT + 1) * 1024);
    as_folder_close(folder);
    raw_close(session);
    rig_close(&rig);
}

static int rig_unlink(void *context, const char *path)
{
    (void)context;
    const asi_file_ops *posix = asi_file_ops_posix();
    return refuses_unlink && NULL != strstr(path, ".rec") ? -EACCES : posix->unlink(posix->context, path);
}

/* A record tells the next start which files remain: it stays until they are deleted, over a restart as well. */
static void a_record_stays_as_long_as_its_files(void)
{
    rig_open(&rig);
    rig.files.unlink = rig_unlink;
    rig_set(&rig, "aeron.spark.archive.catalog.compaction.threshold", "1");
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    for (int64_t i = 0; i < 3; i++)
    {
        raw_record(session, 7210, MESSAGE, 3);
    }
    refuses_unlink = true;
    purge(session, 0);
    refuses_unlink = false;
    purge(session, 1);
    rig_turn_times(&rig, 100);
    CHECK(deleted_bytes() > 0);
    CHECK_I64(files_of(0), 1);
    CHECK_I64(files_of(1), 0);
    raw_close(session);
    rig_close_archive(&rig);

    rig_open_archive(&rig);
    CHECK_I64(files_of(0), 0);
    UNTIL(&rig, 0 == deleted_bytes());
    CHECK_I64(asi_catalog_count(rig.archive->catalog), 1);
    CHECK_I64(asi_catalog_next_recording_id(rig.archive->catalog), 3);
    rig_close(&rig);
}

static int rig_readdir(
    void *context, const char *path, bool (*on_name)(void *name_context, const char *name), void *name_context)
{
    (void)context;
    const asi_file_ops *posix = asi_file_ops_posix();
    return refuses_listing ? -EMFILE : posix->readdir(posix->context, path, on_name, name_context);
}

/* A purge that could not list the folder has deleted no file: the next start finds them by the record, which stays until then. */
static void a_record_stays_when_its_files_were_not_found(void)
{
    rig_open(&rig);
    rig.files.readdir = rig_readdir;
    rig_set(&rig, "aeron.spark.archive.catalog.compaction.threshold", "1");
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    for (int64_t i = 0; i < 5; i++)
    {
        raw_record(session, 7211, MESSAGE, 3);
    }
    asi_codec_request request = request_of(ASI_CODEC_PURGE_RECORDING, 0);
    refuses_listing = true;
    CHECK_I64(raw_ask(session, &request)->code, ASI_CODEC_ERROR);
    refuses_listing = false;
    for (int64_t i = 1; i < 4; i++)
    {
        purge(session, i);
    }
    rig_turn_times(&rig, 100);
    CHECK_I64(files_of(0), 1);
    CHECK(deleted_bytes() > 0);
    raw_close(session);
    rig_close_archive(&rig);

    rig_open_archive(&rig);
    CHECK_I64(files_of(0), 0);
    UNTIL(&rig, 0 == deleted_bytes());
    rig_close(&rig);
}

static void a_threshold_of_0_keeps_the_catalog_as_it_is(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.spark.archive.catalog.compaction.threshold", "0");
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    raw_record(session, 7220, MESSAGE, 3);
    purge(session, 0);
    rig_turn_times(&rig, 100);
    CHECK(deleted_bytes() > 0);
    raw_close(session);
    rig_close(&rig);
}

/* -- retention ----------------------------------------------------------------------------------------------------------------- */

static bool is_valid(raw_session *session, int64_t recording_id)
{
    asi_codec_request request = request_of(ASI_CODEC_START_POSITION, recording_id);
    const bool is_ok = ASI_CODEC_OK == raw_ask(session, &request)->code;
    raw_forget_answer(session);
    return is_ok;
}

/* Four recordings of one stream may stay; the oldest is replayed from its second segment on, by a reader
 * that does not read. */
static void retention_deletes_and_names_what_holds_back(void)
{
    static const char *const MODES[] = { "INVOKER", "DEDICATED" };
    for (size_t i = 0; i < sizeof(MODES) / sizeof(MODES[0]); i++)
    {
        rig_open(&rig);
        rig_set(&rig, "aeron.archive.threading.mode", MODES[i]);
        rig_set(&rig, "aeron.spark.archive.retain.keep.recordings", "4");
        rig_set(&rig, "aeron.spark.archive.retain.interval", "1ms");
        rig.has_threads = 0 != i;
        rig_open_archive(&rig);
        raw_session *session = raw_connect(&rig);
        for (int64_t n = 0; n < 4; n++)
        {
            CHECK_I64(raw_record(session, 7300, MESSAGE, 2 * PER_SEGMENT + 1).id, n);
        }
        as_subscription *reader = NULL;
        CHECK_I64(as_client_add_subscription(rig.client, RIG_CHANNEL, 7301, &reader), AS_OK);
        asi_codec_request replay = replay_of(0, RIG_SEGMENT_LENGTH, AS_NULL_VALUE, RIG_CHANNEL, 7301);
        const int64_t replay_session_id = raw_ask_ok(session, &replay);
        UNTIL(&rig, 1 == as_subscription_image_count(reader));
        rig_turn_times(&rig, 100);
        for (int64_t n = 0; n < 4; n++)
        {
            CHECK(is_valid(session, n));
        }
        /* A fifth: the first is deleted, except its replayed part. */
        CHECK_I64(raw_record(session, 7300, MESSAGE, 3).id, 4);
        UNTIL(&rig, RIG_SEGMENT_LENGTH == raw_position(session, ASI_CODEC_START_POSITION, 0));
        UNTIL(&rig, 2 == files_of(0));
        char held[256];
        snprintf(held, sizeof(held), "retention: segments of recording 0 are held back by a replay: sessionId=%d streamId=7301 channel=",
            (int32_t)replay_session_id);
        UNTIL(&rig, 1 == told_times(held));
        as_subscription_close(reader);
        asi_codec_request stop = request_of(ASI_CODEC_STOP_ALL_REPLAYS, 0);
        raw_ask_ok(session, &stop);
        UNTIL(&rig, !is_valid(session, 0));
        UNTIL(&rig, 0 == files_of(0));
        for (int64_t n = 1; n < 5; n++)
        {
            CHECK(is_valid(session, n));
        }
        CHECK_I64(files_of(1), 3);
        raw_close(session);
        rig_close(&rig);
    }
}

/* An active recording gives up all but the segment that is written. */
static void retention_never_takes_what_is_written(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.spark.archive.retain.max.bytes", "1");
    rig_set(&rig, "aeron.spark.archive.retain.interval", "1ms");
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    raw_recording live = raw_start(session, 7310, true);
    const int64_t end = publish(&rig, live.publication, MESSAGE, 3 * PER_SEGMENT + 5);
    UNTIL(&rig, raw_position(session, ASI_CODEC_RECORDING_POSITION, live.id) == end);
    UNTIL(&rig, 3 * RIG_SEGMENT_LENGTH == raw_position(session, ASI_CODEC_START_POSITION, live.id));
    UNTIL(&rig, 1 == files_of(live.id));
    raw_finish(session, &live, end);
    UNTIL(&rig, !is_valid(session, live.id)); /* stopped: all of it may go */
    CHECK_I64(told_times("retention"), 0);
    raw_close(session);
    rig_close(&rig);
}

/* Goes on with a stopped recording for `count` messages; gives its new stop position. */
static int64_t extend(raw_session *session, int64_t recording_id, int32_t stream_id, int64_t count)
{
    char channel[160];
    asi_catalog_record record;
    as_publication *publication = NULL;
    asi_codec_request request = extend_of(recording_id, RIG_CHANNEL, stream_id, true);
    raw_ask_ok(session, &request);
    CHECK(asi_catalog_find(rig.archive->catalog, recording_id, &record));
    snprintf(channel, sizeof(channel), RIG_CHANNEL "|init-term-id=%d|term-id=%d|term-offset=%d", record.initial_term_id,
        record.initial_term_id, (int32_t)record.stop_position);
    CHECK_I64(as_client_add_exclusive_publication(rig.client, channel, stream_id, &publication), AS_OK);
    const int64_t end = publish(&rig, publication, MESSAGE, count);
    as_publication_close(publication);
    CHECK_I64(raw_await_signal(session, AS_SIGNAL_STOP, request.correlation_id)->position, end);
    return end;
}

/* Recordings that were old when the plan was made; one of them is extended and stops before its turn. It has new data, which the
 * policy keeps: only the other is deleted. The next round but one finds it old again. */
static void retention_keeps_what_was_extended_since_it_planned(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.spark.archive.retain.older.than", "1h");
    rig_set(&rig, "aeron.spark.archive.retain.interval", "10s");
    rig_open_archive(&rig);
    raw_session *session = raw_connect(&rig);
    asi_retention *retention = rig.archive->retention;
    const int64_t other = raw_record(session, 7320, MESSAGE, 3).id;
    const int64_t extended = raw_record(session, 7321, MESSAGE, 3).id;
    rig.clock_ahead_ns += 7200 * RIG_SECOND;
    UNTIL(&rig, retention->is_scanning);
    CHECK_I64(retention->scan.count, 2);
    retention->has_scanned = false; /* it scans for as long as the extension takes */
    const int64_t end = extend(session, extended, 7321, 4);
    CHECK(is_valid(session, other));
    retention->has_scanned = true;
    UNTIL(&rig, !is_valid(session, other));
    UNTIL(&rig, !retention->is_scanning);
    CHECK_I64(raw_position(session, ASI_CODEC_STOP_POSITION, extended), end);
    rig.clock_ahead_ns += 20 * RIG_SECOND;
    UNTIL(&rig, retention->is_scanning);
    UNTIL(&rig, !retention->is_scanning);
    CHECK_I64(raw_position(session, ASI_CODEC_START_POSITION, extended), 0);
    rig.clock_ahead_ns += 7200 * RIG_SECOND;
    UNTIL(&rig, !is_valid(session, extended));
    raw_close(session);
    rig_close(&rig);
}

/* -- a time of day that is set ------------------------------------------------------------------------------------------------- */

#define DAY_MS INT64_C(86400000)

static int64_t heartbeat_ms(void)
{
    asi_mark_info info;
    CHECK_I64(asi_mark_read_untrusted(rig.archive_dir, &info), AS_OK);
    return info.activity_timestamp_ms;
}

/* A machine may start with a wrong time of day and correct it: intervals are of elapsed time. */
static void a_time_of_day_that_is_set_changes_no_interval(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.spark.archive.retain.older.than", "4w");
    rig_set(&rig, "aeron.spark.archive.retain.interval", "10s");
    rig_set(&rig, "aeron.spark.archive.exit.when.idle", "43200s");
    rig_open_archive(&rig);
    const asi_retention *retention = rig.archive->retention;
    UNTIL(&rig, retention->next_ms > 0);
    rig.clock_set_ms = DAY_MS;
    rig.clock_ahead_ns += RIG_SECOND;
    rig_turn_times(&rig, 10);
    CHECK(!as_archive_is_idle_expired(rig.archive));
    raw_session *session = raw_connect(&rig);
    raw_record(session, 7400, MESSAGE, 3);

    rig.clock_set_ms = 0;
    rig.clock_ahead_ns += 20 * RIG_SECOND;
    UNTIL(&rig, heartbeat_ms() <= rig_epoch_ms(&rig));
    UNTIL(&rig, retention->is_scanning);
    asi_descriptors *descriptors = rig.archive->descriptors;
    descriptors->open = descriptors->limit; /* of recordings that have ended since */
    raw_record(session, 7400, MESSAGE, 3);
    CHECK(descriptors->open < descriptors->limit);
    raw_close(session);
    rig_close(&rig);
}

static void retention_settings(void)
{
    static const struct { const char *text; int64_t seconds; } AGES[] = { { "30s", 30 }, { "90m", 5400 }, { "12h", 43200 },
        { "7d", 604800 }, { "4w", 2419200 }, { "1000ms", 1 }, { "0", 0 },
        { "99999999w", INT64_MAX / 2 / RIG_SECOND } };
    as_archive_config *config = NULL;
    CHECK_I64(as_archive_config_open(&config), AS_OK);
    for (size_t i = 0; i < sizeof(AGES) / sizeof(AGES[0]); i++)
    {
        const as_result result = as_archive_config_set(config, "aeron.spark.archive.retain.older.than", AGES[i].text);
        if (i + 1 == sizeof(AGES) / sizeof(AGES[0]))
        {
            CHECK_I64(result, AS_E_USAGE); /* longer than time is */
        }
        else
        {
            CHECK_I64(result, AS_OK);
            CHECK_I64(config->retain_older_than_ns / RIG_SECOND, AGES[i].seconds);
        }
    }
    static const char *const BAD[] = { "d", "-1d", "7 d", "7days", "1.5h", "7", "7000000000", "+7", "7ns", "7us", "999ms" };
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
    {
        CHECK_I64(as_archive_config_set(config, "aeron.spark.archive.retain.older.than", BAD[i]), AS_E_USAGE);
    }
    CHECK_I64(as_archive_config_set(config, "aeron.spark.archive.retain.older.than", "7"), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "'7' is a time without a unit: write 30s, 90m, 12h, 7d or 4w"));
    CHECK_I64(as_archive_config_set(config, "aeron.spark.archive.retain.older.than", "7ns"), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "'7ns' is less than a second, so all that has stopped would be deleted"));
    CHECK_I64(as_archive_config_set(config, "aeron.spark.archive.retain.interval", "100ms"), AS_OK);
    as_archive_config_close(config);
}

int main(void)
{
    RUN(a_disk_that_fills_is_told_before_it_is_full);
    RUN(a_running_archive_compacts_its_catalog);
    RUN(a_record_stays_as_long_as_its_files);
    RUN(a_record_stays_when_its_files_were_not_found);
    RUN(a_threshold_of_0_keeps_the_catalog_as_it_is);
    RUN(retention_deletes_and_names_what_holds_back);
    RUN(retention_never_takes_what_is_written);
    RUN(retention_keeps_what_was_extended_since_it_planned);
    RUN(a_time_of_day_that_is_set_changes_no_interval);
    RUN(retention_settings);
    return 0;
}

/* Goal: an archive starts where it may and says why where it may not; its counters exist; it ends with its driver. Method: an
 * invoked archive over a rig (server_rig.h). Names carry the scenario of Spec: 08 §19. */
#define DRIVER_PAGE_SIZE 16384
#define RIG_SET_DRIVER(config) CHECK_I64(as_driver_config_set(config, "aeron.file.page.size", "16k"), AS_OK)
#include "server_rig.h"
#include "wire/command.h"

static test_rig rig;

static void a_dead_driver_ends_the_archive(void)
{
    rig_open(&rig);
    rig_set(&rig, "aeron.driver.timeout", "1000");
    rig_open_archive(&rig);
    as_client_close(rig.client);
    rig.client = NULL;
    as_driver_close(rig.driver);
    rig.driver = NULL;
    UNTIL(&rig, as_archive_has_failed(rig.archive));
    CHECK('\0' != as_archive_failure(rig.archive)[0]);
    CHECK_I64(as_archive_do_work(rig.archive), 0);
    rig_close(&rig);
}

/* Spec: 06 §11. */
static void settings_that_can_not_be_are_named(void)
{
    static const char *const ROWS[][3] = {
        { "aeron.archive.segment.file.length", "100000", "power of two" },
        { "aeron.archive.segment.file.length", "32k", "65536" },
        { "AERON_ARCHIVE_FILE_IO_MAX_LENGTH", "1000", "power of two" },
        { "aeron.archive.threading.mode", "MANY", "DEDICATED" },
        { "aeron.archive.record.checksum", "md5", "CRC-32" },
        { "aeron.archive.file.sync.level", "3", "0 to 2" },
        { "aeron.archive.connect.timeout", "soon", "soon" },
        { "aeron.archive.authenticator.supplier", "com.example.Mine", "DefaultAuthenticatorSupplier" },
        { "aeron.archive.idle.strategy", "lazy", "lazy" },
    };
    as_archive_config *config = NULL;
    CHECK_I64(as_archive_config_open(&config), AS_OK);
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        CHECK_I64(as_archive_config_set(config, ROWS[i][0], ROWS[i][1]), AS_E_USAGE);
        CHECK(NULL != strstr(as_error_text(), ROWS[i][0]));
        CHECK(NULL != strstr(as_error_text(), ROWS[i][2]));
    }
    CHECK_I64(as_archive_config_set(config, "aeron.archive.unheard.of", "1"), AS_OK);
    CHECK_I64(as_archive_config_set(config, "AERON_ARCHIVE_DIR", "/somewhere"), AS_OK);
    CHECK_TEXT(as_archive_config_archive_dir(config), "/somewhere");
    CHECK_I64(as_archive_config_set(config, "aeron.archive.dir", ""), AS_OK);
    CHECK_TEXT(as_archive_config_archive_dir(config), "aeron-archive");
    as_archive_config_close(config);
}

static void archives_that_can_not_open_say_why(void)
{
    static const char *const ROWS[][3] = {
        { "aeron.archive.recording.events.enabled", "true", "aeron.archive.recording.events.channel" },
        { "aeron.archive.control.channel", "aeron:ipc", "must be UDP media" },
        { "aeron.archive.local.control.channel", "aeron:udp?endpoint=localhost:1", "must be IPC media" },
        { "aeron.archive.file.sync.level", "2", "catalogFileSyncLevel 0 < fileSyncLevel 2" },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        rig_open(&rig);
        rig_set(&rig, "aeron.archive.catalog.file.sync.level", "0");
        rig_set(&rig, ROWS[i][0], ROWS[i][1]);
        CHECK_I64(rig_try_open_archive(&rig), AS_E_USAGE);
        CHECK(NULL != strstr(as_error_text(), ROWS[i][2]));
        rig_close(&rig);
    }
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.control.channel", "aeron:udp?endpoint=10.99.99.99:8010");
    CHECK_I64(rig_try_open_archive(&rig), AS_E_PEER);
    CHECK(NULL != strstr(as_error_text(), "aeron.archive.control.channel.enabled=false"));
    rig_close(&rig);
    rig_open(&rig);
    rig_set(&rig, "aeron.dir", "/dev/shm/aeron-spark-test-no-driver-here");
    rig_set(&rig, "aeron.driver.timeout", "100");
    CHECK(rig_try_open_archive(&rig) < 0);
    CHECK(NULL != strstr(as_error_text(), "no media driver to work with"));
    rig_close(&rig);
}

static void s80_a_folder_has_one_archive(void)
{
    rig_open(&rig);
    rig_open_archive(&rig);
    as_archive *second = NULL;
    CHECK_I64(as_archive_open(rig.config, &second), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "active mark file detected"));
    rig_set(&rig, "aeron.archive.dir.delete.on.start", "true");
    CHECK_I64(as_archive_open(rig.config, &second), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "active mark file detected"));
    raw_session *session = raw_connect(&rig); /* the first one is unharmed */
    raw_record(session, 1001, 100, 10);
    raw_close(session);
    rig_close_archive(&rig);
    rig_open_archive(&rig); /* and deletes its folder only when it is alone */
    session = raw_connect(&rig);
    asi_codec_request request = request_of(ASI_CODEC_START_POSITION, 0);
    check_error(raw_ask(session, &request), ASI_CODEC_E_UNKNOWN_RECORDING, "unknown recording id: 0");
    raw_close(session);
    rig_close(&rig);
}

static void leave_in_folder(const char *name)
{
    char path[AS_PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/%s", rig.archive_dir, name);
    FILE *file = fopen(path, "w");
    CHECK(NULL != file && 0 == fclose(file));
}

static bool is_in_folder(const char *name)
{
    char path[AS_PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/%s", rig.archive_dir, name);
    return asi_file_exists(path);
}

/* A folder that is named by mistake loses nothing, one of a stranger's is not used. */
static void folders_of_others(void)
{
    rig_open(&rig);
    CHECK_I64(asi_dir_create(rig.archive_dir), AS_OK);
    static const char *const MADE[] = { "0-0.rec", "0-0.rec.del", "12-128.rec", "0.time-index", "0.time-index.new",
        "archive.catalog.new", "archive-mark.lnk", "archive-2026-01-01-00-00-00-000+0000-error.log", "migration-1-to-2.dat" };
    for (size_t i = 0; i < sizeof(MADE) / sizeof(MADE[0]); i++)
    {
        leave_in_folder(MADE[i]);
    }
    leave_in_folder("thesis.tex");
    rig_set(&rig, "aeron.archive.dir.delete.on.start", "true");
    CHECK_I64(rig_try_open_archive(&rig), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "/thesis.tex is nothing that an archive makes"));
    CHECK(is_in_folder("0-0.rec") && is_in_folder("thesis.tex"));
    char path[AS_PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/thesis.tex", rig.archive_dir);
    CHECK_I64(unlink(path), 0);
    rig_open_archive(&rig);
    for (size_t i = 0; i < sizeof(MADE) / sizeof(MADE[0]); i++)
    {
        CHECK(!is_in_folder(MADE[i]));
    }
    rig_close_archive(&rig);

    CHECK_I64(chmod(rig.archive_dir, 0777), 0);
    CHECK_I64(rig_try_open_archive(&rig), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "every user") && is_in_folder("archive.catalog"));
    CHECK_I64(chmod(rig.archive_dir, 0770), 0);
    if (0 == geteuid())
    {
        CHECK_I64(chown(rig.archive_dir, 65534, 65534), 0);
        CHECK_I64(rig_try_open_archive(&rig), AS_E_USAGE);
        CHECK(NULL != strstr(as_error_text(), "aeron.spark.dir.owner") && is_in_folder("archive.catalog"));
        rig_set(&rig, "aeron.spark.dir.owner", "65534");
    }
    rig_open_archive(&rig);
    rig_close(&rig);
}

/* 8192 bytes and a megabyte of errors are whole pages of 4096 bytes, and no whole ones of the driver's. */
static void the_mark_file_has_whole_pages_of_the_driver(void)
{
    rig_open(&rig);
    rig_open_archive(&rig);
    asi_mark_info info;
    struct stat status;
    CHECK_I64(asi_mark_read_untrusted(rig.archive_dir, &info), AS_OK);
    CHECK_I64(stat(info.path, &status), 0);
    CHECK_I64(status.st_size, asi_align_i64(8192 + 1048576, DRIVER_PAGE_SIZE));
    rig_close(&rig);
}

/* What AeronStat shows of a stock archive, in its order; errors are counted by the driver there. */
static void counters_are_those_of_a_stock_archive(void)
{
    static const char *const LABELS[] = {
        "client-heartbeat: id=%lld name=archive archiveId=42 version=",
        "Archive Errors - archiveId=42 version=",
        "archive-conductor max cycle time in ns: DEDICATED - archiveId=42",
        "archive-conductor work cycle time exceeded count: threshold=100ms DEDICATED - archiveId=42",
        "archive-recorder max cycle time in ns: DEDICATED - archiveId=42",
        "archive-recorder work cycle time exceeded count: threshold=100ms DEDICATED - archiveId=42",
        "archive-replayer max cycle time in ns: DEDICATED - archiveId=42",
        "archive-replayer work cycle time exceeded count: threshold=100ms DEDICATED - archiveId=42",
        "Archive Control Sessions - archiveId=42",
        "Archive Recording Sessions - archiveId=42",
        "Archive Replay Sessions - archiveId=42",
        "archive-recorder max write time in ns - archiveId=42",
        "archive-recorder total write bytes - archiveId=42",
        "archive-recorder total write time in ns - archiveId=42",
        "archive-replayer max read time in ns - archiveId=42",
        "archive-replayer total read bytes - archiveId=42",
        "archive-replayer total read time in ns - archiveId=42",
    };
    rig_open(&rig);
    rig_set(&rig, "aeron.archive.threading.mode", "DEDICATED");
    rig_open_archive(&rig);
    rig.has_threads = true;
    as_inspector *inspector = NULL;
    CHECK_I64(as_inspector_open(rig.aeron_dir, &inspector), AS_OK);
    char expected[256];
    snprintf(expected, sizeof(expected), LABELS[0], (long long)as_client_id(rig.archive->client));
    int32_t id = 0;
    as_counter_row row;
    UNTIL(&rig, AS_OK == as_inspector_counter(inspector, id, &row) && 0 == strncmp(row.label, expected, strlen(expected)) ?
        true : (id = id < as_inspector_max_counter_id(inspector) ? id + 1 : 0, false));
    for (size_t i = 1; i < sizeof(LABELS) / sizeof(LABELS[0]); i++)
    {
        do
        {
            CHECK(++id <= as_inspector_max_counter_id(inspector));
        } while (AS_OK != as_inspector_counter(inspector, id, &row));
        char label[400];
        snprintf(label, sizeof(label), "%.*s", (int)(1 == i ? strlen(LABELS[i]) : sizeof(label) - 1), row.label);
        CHECK_TEXT(label, LABELS[i]);
    }
    as_inspector_close(inspector);
    rig_close(&rig);
}

int main(void)
{
    RUN(a_dead_driver_ends_the_archive);
    RUN(settings_that_can_not_be_are_named);
    RUN(archives_that_can_not_open_say_why);
    RUN(s80_a_folder_has_one_archive);
    RUN(folders_of_others);
    RUN(the_mark_file_has_whole_pages_of_the_driver);
    RUN(counters_are_those_of_a_stock_archive);
    return 0;
}

/* Goal: the mark file guards a folder as stock's does: same bytes, a live owner refuses a second, a dead one is replaced and
 * its errors are kept. Method: golden mark file; a clock of our own.
 * Spec: 06 §10, 01 §10. */
#include "store/mark.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive_support.h"
#include "shm/error_log.h"
#include "store/catalog.h"
#include "store/file_ops.h"

static int64_t now_ms = 1795190215494;

static int64_t clock_ms(void *context)
{
    (void)context;
    return now_ms;
}

static const asi_clock test_clock = { .nano_time = clock_ms, .epoch_ms = clock_ms };

static asi_mark_params params_for(const char *dir)
{
    return (asi_mark_params){ .archive_dir = dir, .control_stream_id = 10, .local_control_stream_id = 10, .events_stream_id = 30,
        .error_buffer_length = 1048576, .file_page_size = 4096, .start_timestamp_ms = 1795190215494, .pid = 9325,
        .control_channel = "aeron:udp?endpoint=localhost:8010", .local_control_channel = "aeron:ipc?term-length=64k",
        .events_channel = "aeron:ipc", .aeron_dir = "/dev/shm/lab-arch" };
}

static asi_mark *mark_open(const asi_mark_params *params)
{
    asi_mark *mark = NULL;
    return AS_OK == asi_mark_open(params, &test_clock, &mark) ? mark : NULL;
}

static void same_bytes_as_stock(void)
{
    char path[AS_PATH_MAX];
    char dir[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    golden_folder(scratch, "archive", path);
    snprintf(dir, sizeof(dir), "%s/ours", scratch);
    CHECK_I64(asi_dir_create(dir), AS_OK);
    const asi_mark_params params = params_for(dir);
    asi_mark *mark = mark_open(&params);
    CHECK(NULL != mark);
    asi_mark_ready(mark, 42, now_ms);
    asi_mark_close(mark);
    int64_t stock_length;
    int64_t length;
    uint8_t *stock = file_load(path, ASI_MARK_FILE, &stock_length);
    uint8_t *ours = file_load(dir, ASI_MARK_FILE, &length);
    CHECK_I64(length, stock_length);
    CHECK(0 == memcmp(ours, stock, ASI_MARK_HEADER_LENGTH));
    free(stock);
    free(ours);
}

static void one_owner(void)
{
    const char *scratch = scratch_folder();
    const asi_mark_params params = params_for(scratch);
    asi_mark_info info;
    CHECK_I64(asi_mark_read_untrusted(scratch, &info), AS_AGAIN);
    asi_mark *mark = mark_open(&params);
    CHECK(NULL != mark);
    CHECK_I64(asi_mark_read_untrusted(scratch, &info), AS_OK);
    CHECK_I64(info.version, 0); /* not ready */
    CHECK(NULL == mark_open(&params)); /* while it is starting */
    CHECK(NULL != strstr(as_error_text(), "active mark file detected"));
    asi_mark_ready(mark, -1, now_ms);
    CHECK_I64(asi_mark_read_untrusted(scratch, &info), AS_OK);
    CHECK_I64(info.version, ASI_ARCHIVE_STORAGE_VERSION);
    CHECK_I64(info.archive_id, -1);
    CHECK_I64(info.pid, 9325);
    CHECK_TEXT(info.aeron_dir, "/dev/shm/lab-arch");
    CHECK(asi_mark_is_live(&info, now_ms + 9999));
    CHECK(!asi_mark_is_live(&info, now_ms + 10000));
    now_ms += 9000;
    CHECK(NULL == mark_open(&params));
    asi_mark_heartbeat(mark, now_ms);
    now_ms += 9000;
    CHECK(NULL == mark_open(&params));
    now_ms += 1000; /* it died */
    asi_mark *second = mark_open(&params);
    CHECK(NULL != second);
    asi_mark_ready(second, 7, now_ms);
    asi_mark_close(second);
    CHECK_I64(asi_mark_read_untrusted(scratch, &info), AS_OK);
    CHECK_I64(info.activity_timestamp_ms, -1);
    CHECK(!asi_mark_is_live(&info, now_ms));
    second = mark_open(&params); /* at once after an orderly end */
    CHECK(NULL != second);
    asi_mark_close(second);
    asi_mark_close(mark);
}

/* An archive with an activity time in the future, because the clock was set back, counts as alive while its process lives. */
static void clock_set_back(void)
{
    const char *scratch = scratch_folder();
    asi_mark_params params = params_for(scratch);
    asi_mark_info info;
    params.pid = getppid();
    asi_mark *first = mark_open(&params);
    CHECK(NULL != first);
    asi_mark_ready(first, 7, now_ms + 100000);
    CHECK_I64(asi_mark_read_untrusted(scratch, &info), AS_OK);
    CHECK(asi_mark_is_live(&info, now_ms));
    CHECK(NULL == mark_open(&params));
    CHECK(NULL != strstr(as_error_text(), "active mark file detected"));
    asi_mark_close(first);
    params.pid = 0;
    first = mark_open(&params);
    CHECK(NULL != first);
    asi_mark_ready(first, 7, now_ms + 100000);
    CHECK_I64(asi_mark_read_untrusted(scratch, &info), AS_OK);
    CHECK(!asi_mark_is_live(&info, now_ms));
    asi_mark *second = mark_open(&params);
    CHECK(NULL != second);
    asi_mark_close(first);
    asi_mark_close(second);
}

/* Whatever a damaged file that ends within its fields would say: it is no archive's. */
static void cut_short(void)
{
    char path[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    snprintf(path, sizeof(path), "%s/" ASI_MARK_FILE, scratch);
    asi_mark_params params = params_for(scratch);
    params.pid = getppid();
    for (int64_t length = 0; length < 136; length++)
    {
        asi_mark *mark = mark_open(&params); /* which leaves INT64_MAX there */
        CHECK(NULL != mark);
        CHECK_I64(truncate(path, length), 0);
        asi_mark *next = mark_open(&params);
        CHECK(NULL != next);
        CHECK(asi_mark_is_after_crash(next));
        asi_mark_close(next);
        asi_mark_close(mark);
    }
}

static bool find_error_log(void *context, const char *name)
{
    if (NULL != strstr(name, "-error.log"))
    {
        snprintf(context, NAME_MAX + 1, "%s", name);
    }
    return true;
}

static void errors_are_kept(void)
{
    char name[NAME_MAX + 1] = "";
    const char *scratch = scratch_folder();
    const asi_mark_params params = params_for(scratch);
    asi_mark *mark = mark_open(&params);
    CHECK(NULL != mark);
    int64_t length;
    uint8_t *section = asi_mark_error_buffer(mark, &length);
    CHECK_I64(length, 1048576);
    asi_error_log log;
    asi_error_log_init(&log, section, length, NULL);
    asi_error_log_record(&log, 11, "disk was full", now_ms);
    asi_error_log_close(&log);
    asi_mark_close(mark);
    mark = mark_open(&params);
    CHECK(NULL != mark);
    CHECK(0 == asi_get_i32(asi_mark_error_buffer(mark, &length)));
    asi_mark_close(mark);
    CHECK_I64(asi_file_ops_posix()->readdir(NULL, scratch, find_error_log, name), 0);
    CHECK(0 == strncmp(name, "archive-2026-11-20-", 19));
    char *text = (char *)file_load(scratch, name, &length);
    CHECK(NULL != strstr(text, "disk was full"));
    free(text);
}

static void other_directory(void)
{
    char dir[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    snprintf(dir, sizeof(dir), "%s/marks", scratch);
    CHECK_I64(asi_dir_create(dir), AS_OK);
    asi_mark_params params = params_for(scratch);
    params.mark_dir = dir;
    asi_mark *mark = mark_open(&params);
    CHECK(NULL != mark);
    asi_mark_ready(mark, 5, now_ms);
    int64_t length;
    char *text = (char *)file_load(scratch, ASI_MARK_LINK_FILE, &length);
    CHECK_TEXT(text, dir);
    free(text);
    asi_mark_info info;
    CHECK_I64(asi_mark_read_untrusted(scratch, &info), AS_OK);
    CHECK_I64(info.archive_id, 5);
    asi_mark_close(mark);
    params.mark_dir = NULL;
    mark = mark_open(&params);
    CHECK(NULL != mark);
    asi_mark_close(mark);
    snprintf(dir, sizeof(dir), "%s/" ASI_MARK_LINK_FILE, scratch);
    CHECK(!asi_file_exists(dir));
}

static void refused(void)
{
    char path[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    golden_folder(scratch, "archive", path);
    int64_t length;
    uint8_t *bytes = file_load(path, ASI_MARK_FILE, &length);
    asi_mark_info info;
    const asi_mark_params params = params_for(path);
    asi_put_i32(bytes + 8, 0x00020100);
    file_store(path, ASI_MARK_FILE, bytes, length);
    CHECK_I64(asi_mark_read_untrusted(path, &info), AS_E_DATA);
    CHECK(NULL != strstr(as_error_text(), "major version 2 does not match software: 3"));
    CHECK(NULL == mark_open(&params));
    asi_put_i32(bytes + 8, ASI_ARCHIVE_STORAGE_VERSION);
    asi_put_i32(bytes + 136, INT32_MAX);
    file_store(path, ASI_MARK_FILE, bytes, length);
    CHECK_I64(asi_mark_read_untrusted(path, &info), AS_E_DATA);
    file_store(path, ASI_MARK_FILE, bytes, 100);
    CHECK_I64(asi_mark_read_untrusted(path, &info), AS_E_DATA);
    free(bytes);
    char long_channel[9000];
    memset(long_channel, 'x', sizeof(long_channel) - 1);
    long_channel[sizeof(long_channel) - 1] = '\0';
    asi_mark_params too_long = params_for(scratch);
    too_long.control_channel = long_channel;
    CHECK(NULL == mark_open(&too_long));
    CHECK(NULL != strstr(as_error_text(), "> headerLengthCapacity=8192"));
}

/* The form of before the message header: the block begins the file. */
static void old_form(void)
{
    const char *scratch = scratch_folder();
    uint8_t old[8192] = { 0 };
    asi_put_i32(old, 0x00030000);
    asi_put_i64(old + 8, now_ms - 20000);
    asi_put_i64(old + 24, 55);
    file_store(scratch, ASI_MARK_FILE, old, sizeof(old));
    asi_mark_info info;
    CHECK_I64(asi_mark_read_untrusted(scratch, &info), AS_OK);
    CHECK_I64(info.pid, 55);
    CHECK_I64(info.archive_id, -1);
    const asi_mark_params params = params_for(scratch);
    asi_mark *mark = mark_open(&params);
    CHECK(NULL != mark);
    asi_mark_ready(mark, 3, now_ms);
    CHECK_I64(asi_mark_read_untrusted(scratch, &info), AS_OK);
    CHECK_I64(info.archive_id, 3);
    asi_mark_close(mark);
}

/* Another user's file must neither be cut nor written nor given a new content, whichever of an archive's names leads to it. */
static void links_lead_nowhere(void)
{
    static const char *const NAMES[] = { ASI_MARK_FILE, ASI_MARK_LINK_FILE, ASI_CATALOG_FILE, "0-0.rec" };
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
    {
        char dir[AS_PATH_MAX];
        char victim[AS_PATH_MAX];
        char link[2 * AS_PATH_MAX];
        char text[16] = "";
        const char *scratch = scratch_folder();
        snprintf(dir, sizeof(dir), "%s/archive", scratch);
        snprintf(victim, sizeof(victim), "%s/victim", scratch);
        snprintf(link, sizeof(link), "%s/%s", dir, NAMES[i]);
        CHECK_I64(asi_dir_create(dir), AS_OK);
        FILE *file = fopen(victim, "w");
        CHECK(NULL != file && fputs("precious", file) >= 0 && 0 == fclose(file));
        CHECK_I64(symlink(victim, link), 0);
        const asi_file_ops *files = asi_file_ops_posix();
        CHECK_I64(files->open(files->context, link, ASI_FILE_WRITE), -ELOOP);
        CHECK_I64(files->open(files->context, link, ASI_FILE_CREATE), -ELOOP);
        asi_mark_params params = params_for(dir);
        params.mark_dir = 1 == i ? scratch : NULL; /* apart, so that the link file is written */
        asi_mark *mark = mark_open(&params);
        CHECK(0 == i ? NULL == mark : NULL != mark);
        CHECK(0 != i || NULL != strstr(as_error_text(), "symbolic link: delete it"));
        asi_mark_close(mark);
        file = fopen(victim, "r");
        CHECK(NULL != file && NULL != fgets(text, sizeof(text), file) && 0 == fclose(file));
        CHECK(0 == strcmp(text, "precious"));
    }
}

/* What is read under an archive's name is a file at once, or an error. */
static void a_fifo_holds_nobody_up(void)
{
    char path[AS_PATH_MAX];
    const char *scratch = scratch_folder();
    snprintf(path, sizeof(path), "%s/%s", scratch, ASI_MARK_FILE);
    CHECK_I64(mkfifo(path, 0600), 0);
    const asi_file_ops *files = asi_file_ops_posix();
    for (int mode = ASI_FILE_READ; mode <= ASI_FILE_CREATE; mode++)
    {
        CHECK_I64(files->open(files->context, path, (asi_file_mode)mode), -EINVAL);
    }
    asi_map map;
    CHECK_I64(asi_map_open(&map, path, 1, false), AS_E_STORAGE);
    const asi_mark_params params = params_for(scratch);
    CHECK(NULL == mark_open(&params));
}

int main(void)
{
    RUN(same_bytes_as_stock);
    RUN(one_owner);
    RUN(clock_set_back);
    RUN(cut_short);
    RUN(errors_are_kept);
    RUN(other_directory);
    RUN(refused);
    RUN(old_form);
    RUN(links_lead_nowhere);
    RUN(a_fifo_holds_nobody_up);
    return 0;
}

/* Goal: the file that a tool puts in place of another survives a power cut, or the other does. Method: a disk that refuses call
 * 1, 2, ... and one that says what is durable. Spec: 06 §7.2. */
#include <errno.h>

#include "store/archive_support.h"
#include "store/failing_files.h"
#include "tools/compact.h"

#define LENGTH 100

static char path[AS_PATH_MAX];
static char temporary[AS_PATH_MAX];
static uint8_t bytes[LENGTH];

static void begin(const char *dir)
{
    snprintf(path, sizeof(path), "%s/file", dir);
    snprintf(temporary, sizeof(temporary), "%s/file.new", dir);
    memset(bytes, 1, LENGTH);
    file_store(dir, "file", bytes, LENGTH);
    memset(bytes, 2, LENGTH);
}

static uint8_t content_of(const char *dir)
{
    int64_t length;
    uint8_t *found = file_load(dir, "file", &length);
    const uint8_t first = found[0];
    CHECK_I64(length, LENGTH);
    for (int i = 0; i < LENGTH; i++)
    {
        CHECK_I64(found[i], first);
    }
    free(found);
    return first;
}

static void one_file_or_the_other_is_there(void)
{
    int refused = 0;
    for (bool failed = true; failed;)
    {
        const char *scratch = scratch_folder();
        failing_files files;
        begin(scratch);
        failing_files_init(&files, ++refused, EIO, false);
        failed = AS_OK != asi_tool_replace_file(&files.ops, scratch, temporary, path, bytes, LENGTH);
        const uint8_t found = content_of(scratch);
        CHECK(2 == found || (failed && 1 == found));
        CHECK(!asi_file_exists(temporary));
    }
    CHECK(refused > 5);
}

static bool is_durable;
static bool is_name_durable;

static int noted_fsync(void *context, int fd)
{
    is_durable = true;
    return asi_file_ops_posix()->fsync(context, fd);
}

static int noted_rename(void *context, const char *from, const char *to)
{
    CHECK(is_durable);
    return asi_file_ops_posix()->rename(context, from, to);
}

static int noted_sync_directory(void *context, const char *dir)
{
    CHECK(!asi_file_exists(temporary));
    is_name_durable = true;
    return asi_file_ops_posix()->sync_directory(context, dir);
}

static void bytes_then_name_are_durable(void)
{
    const char *scratch = scratch_folder();
    asi_file_ops files = *asi_file_ops_posix();
    files.fsync = noted_fsync;
    files.rename = noted_rename;
    files.sync_directory = noted_sync_directory;
    begin(scratch);
    CHECK_I64(asi_tool_replace_file(&files, scratch, temporary, path, bytes, LENGTH), AS_OK);
    CHECK(is_name_durable);
}

int main(void)
{
    RUN(one_file_or_the_other_is_there);
    RUN(bytes_then_name_are_durable);
    return 0;
}

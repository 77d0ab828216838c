/* Goal: a disk that takes or gives less than was asked for loses nothing. Method: files whose calls end early. Spec: 06 §7.2. */
#include <errno.h>

#include "store/archive_support.h"
#include "store/file_ops.h"

#define LENGTH 1000
#define AT_ONCE 7

static int calls;

static int64_t short_pwrite(void *context, int fd, const void *from, int64_t length, int64_t offset)
{
    const asi_file_ops *posix = asi_file_ops_posix();
    (void)context;
    calls++;
    return posix->pwrite(posix->context, fd, from, length < AT_ONCE ? length : AT_ONCE, offset);
}

static int64_t short_pread(void *context, int fd, void *to, int64_t length, int64_t offset)
{
    const asi_file_ops *posix = asi_file_ops_posix();
    (void)context;
    calls++;
    return posix->pread(posix->context, fd, to, length < AT_ONCE ? length : AT_ONCE, offset);
}

static void short_calls_go_on_where_they_ended(void)
{
    char path[AS_PATH_MAX];
    uint8_t written[LENGTH];
    uint8_t read[LENGTH];
    asi_file_ops files = *asi_file_ops_posix();
    files.pwrite = short_pwrite;
    files.pread = short_pread;
    for (int i = 0; i < LENGTH; i++)
    {
        written[i] = (uint8_t)(i * 31 + i / 256);
    }
    snprintf(path, sizeof(path), "%s/short", scratch_folder());
    const int fd = files.open(files.context, path, ASI_FILE_CREATE);
    CHECK(fd >= 0);
    CHECK_I64(asi_file_write_all(&files, fd, written, LENGTH, 100), 0);
    CHECK_I64(calls, (LENGTH + AT_ONCE - 1) / AT_ONCE);
    CHECK_I64(files.size(files.context, fd), 100 + LENGTH);
    CHECK_I64(asi_file_read_full(&files, fd, read, LENGTH, 100), LENGTH);
    CHECK(0 == memcmp(read, written, LENGTH));
    CHECK_I64(asi_file_read_full(&files, fd, read, LENGTH, 110), LENGTH - 10); /* the file ends before */
    CHECK(0 == memcmp(read, written + 10, LENGTH - 10));
    files.close(files.context, fd);
}

static int64_t no_pwrite(void *context, int fd, const void *from, int64_t length, int64_t offset)
{
    (void)context;
    (void)fd;
    (void)from;
    (void)length;
    (void)offset;
    return 0;
}

static void a_disk_that_takes_nothing_is_full(void)
{
    asi_file_ops files = *asi_file_ops_posix();
    files.pwrite = no_pwrite;
    CHECK_I64(asi_file_write_all(&files, -1, "byte", 4, 0), -ENOSPC);
}

int main(void)
{
    RUN(short_calls_go_on_where_they_ended);
    RUN(a_disk_that_takes_nothing_is_full);
    return 0;
}

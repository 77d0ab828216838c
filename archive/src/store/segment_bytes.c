/* See segment_bytes.h. */
#include "store/segment_bytes.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "store/segment_layout.h"

static int open_bytes(void *context, const char *path, asi_file_mode mode)
{
    const asi_segment_bytes *disk = context;
    return ASI_FILE_READ != mode ? -EROFS : 0 == strcmp(path, disk->path) ? 0 : -ENOENT;
}

static int close_bytes(void *context, int fd)
{
    (void)context;
    return fd;
}

/* What was not fetched reads as zeros, up to the segment's end. */
static int64_t read_bytes(void *context, int fd, void *to, int64_t length, int64_t offset)
{
    (void)fd;
    const asi_segment_bytes *disk = context;
    const int64_t at = disk->given.position - disk->base;
    const int64_t end = length < disk->length - offset ? offset + length : disk->length;
    const int64_t first = offset > at ? offset : at;
    const int64_t last = end < at + disk->given.length ? end : at + disk->given.length;
    if (end <= offset)
    {
        return 0;
    }
    if (first > offset || last < end)
    {
        memset(to, 0, (size_t)(end - offset));
    }
    if (first < last)
    {
        memcpy((uint8_t *)to + (first - offset), disk->given.bytes + (first - at), (size_t)(last - first));
    }
    return end - offset;
}

as_result asi_segment_bytes_init(asi_segment_bytes *disk, const as_segment_bytes *given, const asi_catalog_record *record)
{
    const int64_t start = record->start_position;
    disk->base = asi_segment_base(start, start, record->term_buffer_length, record->segment_file_length);
    disk->length = record->segment_file_length;
    disk->given = *given;
    const int64_t end = disk->base + disk->length;
    if (record->stop_position < start || record->stop_position > end || given->position < disk->base ||
        given->position > end || given->length < 0 || given->length > end - given->position ||
        (int)given->checksum < AS_CHECKSUM_AUTO || given->checksum > AS_CHECKSUM_CRC32C)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "recording %" PRId64 " of %s, from %" PRId64 " to %" PRId64 ": %" PRId64
            " bytes at position %" PRId64 " must be of the segment in which it begins and ends, [%" PRId64 ", %" PRId64
            "), and checksum option %d be 0 to 3", record->recording_id, given->folder, start, record->stop_position, given->length,
            given->position, disk->base, end, (int)given->checksum);
    }
    disk->files = (asi_file_ops){ .open = open_bytes, .close = close_bytes, .pread = read_bytes, .context = disk };
    return asi_segment_path(disk->path, sizeof(disk->path), given->folder, record->recording_id, disk->base);
}

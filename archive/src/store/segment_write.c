/* Appends frames to segment files; see segment_write.h. */
#include "store/segment_write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "store/checksum.h"
#include "store/segment_layout.h"
#include "term/frame_walk.h"

/* Buffer in which frames get their checksum. Longer than any frame, because an MTU is at most 65504. */
#define CHECKSUM_BUFFER_LENGTH (256 * 1024)
#define SECTOR_LENGTH 512 /* the unit that a disk writes atomically */
#define COPY_LENGTH (1024 * 1024)
#define PAGE_LENGTH 4096 /* the unit that the kernel copies, and recovery's page (Spec: 06 §6) */

struct asi_segment_writer
{
    const asi_file_ops *files; /* borrowed */
    char *archive_dir;         /* owned */
    int64_t recording_id;
    int32_t initial_term_id;
    int32_t term_length;
    int32_t segment_length;
    int32_t file_sync_level;
    asi_frame_checksum checksum;
    uint8_t *checksum_buffer;  /* owned; NULL without a checksum */
    int fd;                    /* -1 after a failure */
    int64_t segment_base;
    int64_t segment_offset;    /* of the next write; < segment_length */
    int64_t bytes_written;
    bool is_out_of_space;
    char path[AS_PATH_MAX];    /* of the open segment */
};

static as_result fail_storage(asi_segment_writer *writer, int error, int64_t length, const char *doing)
{
    const asi_file_ops *files = writer->files;
    writer->is_out_of_space = ENOSPC == error || EDQUOT == error || EFBIG == error ||
        files->usable_space(files->context, writer->archive_dir) < length;
    return asi_fail_errno(AS_E_STORAGE, error, "recording %" PRId64 " at position %" PRId64 ": cannot %s %s%s",
        writer->recording_id, asi_segment_writer_position(writer), doing, writer->path,
        writer->is_out_of_space ? " (free space on the file system)" : "");
}

static void close_file(asi_segment_writer *writer)
{
    if (writer->fd >= 0)
    {
        writer->files->close(writer->files->context, writer->fd);
        writer->fd = -1;
    }
}

/* Opens a new file that will replace a segment. Returns the descriptor or -errno. */
static int open_fresh(const asi_file_ops *files, const char *path, char *fresh, size_t capacity)
{
    if (snprintf(fresh, capacity, "%s" ASI_SEGMENT_DELETED_SUFFIX, path) >= (int)capacity)
    {
        return -ENAMETOOLONG;
    }
    return files->open(files->context, fresh, ASI_FILE_CREATE);
}

/* Closes the new file and renames it over the segment. Deletes it if there was an error. */
static int close_fresh(const asi_file_ops *files, int fd, int error, const char *fresh, const char *path)
{
    files->close(files->context, fd);
    error = 0 == error ? files->rename(files->context, fresh, path) : error;
    if (0 != error)
    {
        (void)files->unlink(files->context, fresh);
    }
    return error;
}

int asi_segment_replace_by_empty(const asi_file_ops *files, const char *path, int32_t segment_length, int32_t sync_level)
{
    char fresh[AS_PATH_MAX];
    const int fd = open_fresh(files, path, fresh, sizeof(fresh));
    if (fd < 0)
    {
        return fd;
    }
    int error = files->ftruncate(files->context, fd, 0);
    error = 0 == error ? files->ftruncate(files->context, fd, segment_length) : error;
    error = 0 == error ? asi_file_sync(files, fd, sync_level) : error;
    return close_fresh(files, fd, error, fresh, path);
}

/* Copies a file's bytes. Holes stay holes. */
static int copy_bytes(const asi_file_ops *files, int from, int to, int64_t size)
{
    uint8_t *bytes = malloc(COPY_LENGTH);
    int error = NULL == bytes ? -ENOMEM : files->ftruncate(files->context, to, 0);
    error = 0 == error ? files->ftruncate(files->context, to, size) : error;
    for (int64_t offset = 0; 0 == error && offset < size; offset += COPY_LENGTH)
    {
        const int64_t count =
            asi_file_read_full(files, from, bytes, size - offset < COPY_LENGTH ? size - offset : COPY_LENGTH, offset);
        if (count > 0 && !asi_bytes_are_zero(bytes, count))
        {
            error = asi_file_write_all(files, to, bytes, count, offset);
        }
        error = count < 0 ? (int)count : error;
    }
    free(bytes);
    return error;
}

int asi_segment_open_own(const asi_file_ops *files, const char *path)
{
    const int shared = files->open(files->context, path, ASI_FILE_WRITE);
    const int64_t names = shared < 0 || NULL == files->names ? 1 : files->names(files->context, shared);
    if (shared < 0 || 1 == names)
    {
        return shared;
    }
    char fresh[AS_PATH_MAX];
    const int64_t size = names < 0 ? names : files->size(files->context, shared);
    const int fd = size < 0 ? (int)size : open_fresh(files, path, fresh, sizeof(fresh));
    int error = fd;
    if (fd >= 0)
    {
        error = copy_bytes(files, shared, fd, size);
        error = 0 == error ? files->fdatasync(files->context, fd) : error;
        error = close_fresh(files, fd, error, fresh, path);
    }
    files->close(files->context, shared);
    return 0 == error ? files->open(files->context, path, ASI_FILE_WRITE) : error;
}

static as_result sync_folder(asi_segment_writer *writer)
{
    const asi_file_ops *files = writer->files;
    const int error = writer->file_sync_level > 0 ? files->sync_directory(files->context, writer->archive_dir) : 0;
    return 0 == error ? AS_OK : fail_storage(writer, -error, 0, "make durable the name of");
}

/* Creates the writer's file, empty and of full length. After a crash the name refers to the whole file or does not exist. */
static as_result open_empty_file(asi_segment_writer *writer)
{
    const asi_file_ops *files = writer->files;
    const int error = asi_segment_replace_by_empty(files, writer->path, writer->segment_length, writer->file_sync_level);
    close_file(writer);
    writer->fd = 0 == error ? files->open(files->context, writer->path, ASI_FILE_WRITE) : error;
    return writer->fd >= 0 ? sync_folder(writer) : fail_storage(writer, -writer->fd, 0, "create");
}

/* Sets an existing file to full length and clears it from segment_offset on. */
static as_result settle_file(asi_segment_writer *writer, int64_t size)
{
    const asi_file_ops *files = writer->files;
    int error = size > writer->segment_offset ? files->ftruncate(files->context, writer->fd, writer->segment_offset) : 0;
    error = 0 == error ? files->ftruncate(files->context, writer->fd, writer->segment_length) : error;
    error = 0 == error ? asi_file_sync(files, writer->fd, writer->file_sync_level) : error;
    return 0 == error ? sync_folder(writer) : fail_storage(writer, -error, 0, "set the length of");
}

static as_result open_first_file(asi_segment_writer *writer, bool must_hold_data)
{
    const asi_file_ops *files = writer->files;
    as_result result = asi_segment_path(
        writer->path, sizeof(writer->path), writer->archive_dir, writer->recording_id, writer->segment_base);
    if (AS_OK != result)
    {
        return result;
    }
    writer->fd = asi_segment_open_own(files, writer->path);
    if (-ENOENT == writer->fd && must_hold_data)
    {
        return asi_fail(AS_E_DATA, ENOENT,
            "recording %" PRId64 " cannot be extended at position %" PRId64 ": segment %s with the "
            "bytes before it is missing; restore it or truncate the recording to a position before it",
            writer->recording_id, asi_segment_writer_position(writer), writer->path);
    }
    if (writer->fd < 0 && -ENOENT != writer->fd)
    {
        return fail_storage(writer, -writer->fd, 0, "open");
    }
    if (-ENOENT == writer->fd || 0 == writer->segment_offset)
    {
        return open_empty_file(writer);
    }
    const int64_t size = files->size(files->context, writer->fd);
    if (size < 0)
    {
        return fail_storage(writer, (int)-size, 0, "find the length of");
    }
    if (must_hold_data && size < writer->segment_offset)
    {
        return asi_fail(AS_E_DATA, 0, "recording %" PRId64 " cannot be extended at position %" PRId64 ": segment %s ends after %"
            PRId64 " bytes; restore it or truncate the recording", writer->recording_id, asi_segment_writer_position(writer),
            writer->path, size);
    }
    return settle_file(writer, size);
}

as_result asi_segment_writer_open(const asi_segment_writer_params *params, asi_segment_writer **writer_out)
{
    asi_segment_writer *writer = calloc(1, sizeof(*writer));
    char *archive_dir = strdup(params->archive_dir);
    asi_frame_checksum checksum = asi_checksum_function(params->checksum);
    uint8_t *buffer = NULL != checksum ? malloc(CHECKSUM_BUFFER_LENGTH) : NULL;
    if (NULL == writer || NULL == archive_dir || (NULL != checksum && NULL == buffer))
    {
        free(writer);
        free(archive_dir);
        free(buffer);
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for the writer of recording %" PRId64, params->recording_id);
    }
    const int64_t base = asi_segment_base(
        params->start_position, params->join_position, params->term_length, params->segment_length);
    *writer = (asi_segment_writer){ .files = params->files, .archive_dir = archive_dir, .recording_id = params->recording_id,
        .initial_term_id = params->initial_term_id, .term_length = params->term_length,
        .segment_length = params->segment_length, .file_sync_level = params->file_sync_level,
        .checksum = checksum, .checksum_buffer = buffer, .fd = -1, .segment_base = base,
        .segment_offset = params->join_position - base };
    const bool must_hold_data = params->join_position > params->start_position && params->join_position > base;
    const as_result result = open_first_file(writer, must_hold_data);
    if (AS_OK != result)
    {
        asi_segment_writer_close(writer);
        return result;
    }
    *writer_out = writer;
    return AS_OK;
}

void asi_segment_writer_close(asi_segment_writer *writer)
{
    if (NULL != writer)
    {
        close_file(writer);
        free(writer->checksum_buffer);
        free(writer->archive_dir);
        free(writer);
    }
}

int64_t asi_segment_writer_position(const asi_segment_writer *writer) { return writer->segment_base + writer->segment_offset; }

int64_t asi_segment_writer_bytes_written(const asi_segment_writer *writer) { return writer->bytes_written; }

bool asi_segment_writer_is_out_of_space(const asi_segment_writer *writer) { return writer->is_out_of_space; }

static as_result fail_block(const asi_segment_writer *writer, int64_t offset, const char *what)
{
    return asi_fail(AS_E_DATA, 0, "recording %" PRId64 " at position %" PRId64 ": block to be recorded %s", writer->recording_id,
        asi_segment_writer_position(writer) + offset, what);
}

/* True while the log has the frame of this position. Publishers go on without an archive that was paused for longer than the
 * liveness timeout. A log is cleaned and written in order, so what was read behind this frame before is the recording's, too. */
static bool has_frame(const asi_segment_writer *writer, const uint8_t *log, int64_t position)
{
    asi_fence_acquire(); /* after the bytes were read */
    const asi_frame_header *frame = (const asi_frame_header *)(const void *)log;
    return asi_load_relaxed_i32(&frame->frame_length) > 0 &&
        asi_load_relaxed_i32(&frame->term_offset) == (position & ((int64_t)writer->term_length - 1)) &&
        asi_load_relaxed_i32(&frame->term_id) == asi_segment_term_id(position, writer->term_length, writer->initial_term_id);
}

/* Writes frames so that recovery never finds a torn one. A process killed during a write leaves the pages copied so far. A power
 * failure leaves any sectors of unsynced data. A write that crosses a page (with a sync level: a sector) therefore first omits
 * the length of the first frame, which alone makes the bytes visible. It adds the length once the rest is written (with a sync
 * level: durable). 4 bytes inside one sector are written atomically, so recovery ends before or after the whole block. Without a
 * sync level there is no guarantee for power failures; recovery's page test covers them.
 * What makes the bytes visible is copied first, and written only if the log, where the first frame is at `log`, was not
 * overwritten meanwhile. */
static as_result write_frames(
    asi_segment_writer *writer, const uint8_t *log, const uint8_t *frames, int64_t length, int64_t offset)
{
    const asi_file_ops *files = writer->files;
    uint8_t visible[PAGE_LENGTH];
    const int64_t whole = writer->file_sync_level > 0 ? SECTOR_LENGTH : PAGE_LENGTH;
    const int64_t first = offset / whole == (offset + length - 1) / whole ? length : (int64_t)sizeof(int32_t);
    memcpy(visible, frames, (size_t)first);
    int error = 0;
    if (first < length)
    {
        error = asi_file_write_all(files, writer->fd, frames + first, length - first, offset + first);
        error = 0 == error ? asi_file_sync(files, writer->fd, writer->file_sync_level) : error;
    }
    if (!has_frame(writer, log, writer->segment_base + offset))
    {
        return fail_block(writer, offset - writer->segment_offset, "was overwritten in the log: the archive was paused for longer "
            "than its driver's liveness timeouts; extend the recording with a new publication, or start another one");
    }
    error = 0 == error ? asi_file_write_all(files, writer->fd, visible, first, offset) : error;
    return 0 == error ? AS_OK : fail_storage(writer, -error, length, "write");
}

/* Writes the block in pieces of whole frames. Each frame has its checksum in the session id field. */
static as_result write_with_checksums(asi_segment_writer *writer, const uint8_t *block, int64_t length)
{
    asi_frame_walk walk = asi_frame_walk_start(block, 0, length, length);
    int64_t piece_begin = 0;
    while (piece_begin < length)
    {
        int64_t piece_length = 0;
        for (;;)
        {
            const asi_frame_walk before = walk;
            if (walk.offset < length && ASI_WALK_FRAME != asi_frame_walk_next(&walk))
            {
                return fail_block(writer, before.offset, "holds a broken frame");
            }
            if (walk.offset - piece_begin > CHECKSUM_BUFFER_LENGTH)
            {
                walk = before;
                break;
            }
            if (before.offset == walk.offset)
            {
                break;
            }
            uint8_t *frame = writer->checksum_buffer + piece_length;
            const int64_t occupancy = walk.offset - before.offset;
            memcpy(frame, block + before.offset, (size_t)occupancy);
            const uint32_t checksum = writer->checksum(frame + AS_FRAME_HEADER_LENGTH, occupancy - AS_FRAME_HEADER_LENGTH);
            asi_put_i32(frame + offsetof(asi_frame_header, session_id), (int32_t)checksum);
            piece_length += occupancy;
        }
        if (0 == piece_length)
        {
            return fail_block(writer, piece_begin, "holds a frame that is longer than any transport sends");
        }
        const as_result result = write_frames(
            writer, block + piece_begin, writer->checksum_buffer, piece_length, writer->segment_offset + piece_begin);
        if (AS_OK != result)
        {
            return result;
        }
        piece_begin += piece_length;
    }
    return AS_OK;
}

static as_result write_block(asi_segment_writer *writer, const uint8_t *block, int64_t length, bool is_padding)
{
    if (NULL != writer->checksum && !is_padding) /* Spec: 06 §8 - padding keeps its session id */
    {
        return write_with_checksums(writer, block, length);
    }
    return write_frames(writer, block, block, is_padding ? AS_FRAME_HEADER_LENGTH : length, writer->segment_offset);
}

/* Opens the file after the full one. The writer's base and offset move only once it exists. The full file is written and synced,
 * so it is closed first: the next file then gets its descriptor, even if the process has no other left. */
static as_result roll(asi_segment_writer *writer)
{
    const asi_file_ops *files = writer->files;
    close_file(writer);
    const int64_t next_base = writer->segment_base + writer->segment_length;
    as_result result = asi_segment_path(writer->path, sizeof(writer->path), writer->archive_dir, writer->recording_id, next_base);
    if (AS_OK != result)
    {
        return result;
    }
    const int there = files->open(files->context, writer->path, ASI_FILE_READ);
    if (there >= 0)
    {
        files->close(files->context, there);
        return asi_fail(AS_E_STORAGE, EEXIST, "recording %" PRId64 " at position %" PRId64 ": segment file already exists: %s",
            writer->recording_id, next_base, writer->path);
    }
    if (-ENOENT != there)
    {
        return fail_storage(writer, -there, 0, "look for");
    }
    result = open_empty_file(writer);
    if (AS_OK == result)
    {
        writer->segment_base = next_base;
        writer->segment_offset = 0;
    }
    else
    {
        /* Otherwise the file would obstruct an extension of the recording from its stop position. */
        files->unlink(files->context, writer->path);
    }
    return result;
}

as_result asi_segment_writer_append(asi_segment_writer *writer, const uint8_t *block, int64_t length)
{
    if (writer->fd < 0)
    {
        return asi_fail(AS_E_CLOSED, 0, "recording %" PRId64 " ended at position %" PRId64 " with an earlier failure",
            writer->recording_id, asi_segment_writer_position(writer));
    }
    const asi_frame_header *first = (const asi_frame_header *)(const void *)block;
    if (length < AS_FRAME_HEADER_LENGTH || 0 != length % AS_FRAME_ALIGNMENT || first->frame_length < AS_FRAME_HEADER_LENGTH)
    {
        return fail_block(writer, 0, "is not made of frames");
    }
    if (length > writer->segment_length - writer->segment_offset)
    {
        return fail_block(writer, 0, "passes the end of the segment");
    }
    const bool is_padding = asi_frame_is_padding(first);
    if (is_padding && asi_frame_occupancy(first->frame_length) != length)
    {
        return fail_block(writer, 0, "holds a padding frame and more");
    }
    as_result result = write_block(writer, block, length, is_padding);
    if (AS_OK == result)
    {
        const int error = asi_file_sync(writer->files, writer->fd, writer->file_sync_level);
        result = 0 == error ? AS_OK : fail_storage(writer, -error, 0, "sync");
    }
    if (AS_OK == result && writer->segment_offset + length == writer->segment_length)
    {
        /* Roll now, not with the next frame: Spec: 06 §7.2, and verify rejects a full last segment (Spec: 06 §12.1). */
        result = roll(writer);
    }
    else if (AS_OK == result)
    {
        writer->segment_offset += length;
    }
    if (AS_OK != result)
    {
        close_file(writer);
        return result;
    }
    writer->bytes_written += is_padding ? AS_FRAME_HEADER_LENGTH : length;
    AS_ASSERT(writer->segment_offset < writer->segment_length && 0 == writer->segment_offset % AS_FRAME_ALIGNMENT);
    return AS_OK;
}

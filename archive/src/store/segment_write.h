/* Appends a recording's frames to its segment files. Spec: 06 §7.2, §8. The recorder's session calls it; each recording has one
 * writer.
 *
 * A block is what the image's block poll delivers: whole DATA frames inside one term, or a single padding frame. Only the 32-byte
 * header of a padding frame is written; the rest stays a hole. The position moves only after the write, the sync and, at a
 * segment's end, the creation of the next file have succeeded. A published position therefore never covers a failed write.
 * After a failure the writer stays closed and its position does not change.
 * Thread rule: one thread (the recorder's) after open. */
#ifndef ASI_STORE_SEGMENT_WRITE_H
#define ASI_STORE_SEGMENT_WRITE_H

#include "aeron_spark/as_archive.h"
#include "store/file_ops.h"

/* Creates an empty segment of full length, or replaces a segment that holds no bytes of its recording any more, in one step. The
 * step is atomic because tools expect a whole segment after a full one, also after a crash during this call. A file left by a
 * crash has the name of a deleted segment. The caller syncs the folder. Returns 0 or -errno. */
int asi_segment_replace_by_empty(const asi_file_ops *files, const char *path, int32_t segment_length, int32_t sync_level);

/* Opens a segment for writing. A migration that died between its writes to the catalog leaves two recordings that share files,
 * each file with two names. Such a file is copied first, so that changes to one recording do not change the other. Returns the
 * descriptor or -errno. */
int asi_segment_open_own(const asi_file_ops *files, const char *path);

typedef struct asi_segment_writer asi_segment_writer;

typedef struct asi_segment_writer_params
{
    const asi_file_ops *files;   /* borrowed until close */
    const char *archive_dir;
    int64_t recording_id;
    int64_t start_position;      /* the recording's start position in the catalog */
    int64_t join_position;       /* first byte to write: start of a new recording, stop of an extended one */
    int32_t initial_term_id;
    int32_t term_length;
    int32_t segment_length;
    int32_t file_sync_level;     /* aeron.archive.file.sync.level; > 0: files and their names are made durable */
    as_record_checksum checksum; /* aeron.archive.record.checksum; NONE or an algorithm */
} asi_segment_writer_params;

/* Opens (to extend) or creates the file of join_position and sets it to full length. Clears the bytes after join_position,
 * because a later recovery must not take remains of a crash for frames. */
as_result asi_segment_writer_open(const asi_segment_writer_params *params, asi_segment_writer **writer) AS_MUST_USE;
/* Appends one block. AS_E_STORAGE: a write failed; see asi_segment_writer_is_out_of_space for the archive's error code.
 * AS_E_DATA: the block does not consist of whole frames, passes the end of the segment, or is not of this position (any more):
 * the log was overwritten before or while it was read. Nothing of such a block becomes visible in the file. */
as_result asi_segment_writer_append(asi_segment_writer *writer, const uint8_t *block, int64_t length) AS_MUST_USE;
/* Recorded position: all bytes before it are written to the operating system (and synced, if configured). */
int64_t asi_segment_writer_position(const asi_segment_writer *writer);
/* Bytes written to the operating system so far. A padding frame counts 32. */
int64_t asi_segment_writer_bytes_written(const asi_segment_writer *writer);
/* True if the last failure was a full disk (archive error STORAGE_SPACE 11, else GENERIC 0). Spec: 06 §7.2. */
bool asi_segment_writer_is_out_of_space(const asi_segment_writer *writer);
void asi_segment_writer_close(asi_segment_writer *writer);

#endif

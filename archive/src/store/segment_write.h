/* Appending a recording's frames to its segment files. Spec: 06 §7.2, §8. Called by the recorder's session, one per recording.
 *
 * A block is what the image's block poll delivers: whole DATA frames inside one term, or one padding frame alone (of which only
 * the 32-byte header is written; the rest stays a hole). The position moves only after write, sync and, at a segment's end,
 * creation of the next file all succeeded, so a position that was seen never covers a failed write.
 * After a failure the writer is closed for good; its position stays what it was.
 * Thread rule: one thread (the recorder's) after open. */
#ifndef ASI_STORE_SEGMENT_WRITE_H
#define ASI_STORE_SEGMENT_WRITE_H

#include "aeron_spark/as_archive.h"
#include "store/file_ops.h"

/* Puts an empty segment of full length where none is, or in the place of one that holds nothing of its recording any more, in one
 * step: behind a full segment tools look for a whole one, also after a crash in the middle of this. What a crash leaves has the
 * name of a deleted segment. The caller syncs the folder. 0 or -errno. */
int asi_segment_replace_by_empty(const asi_file_ops *files, const char *path, int32_t segment_length, int32_t sync_level);

/* Opens a segment to write to it. A migration that died between its writes to the catalog leaves two recordings with the same files
 * under two names each: such a file is copied first, so that what is cut from or added to one recording is not from or to the
 * other. Descriptor or -errno. */
int asi_segment_open_own(const asi_file_ops *files, const char *path);

typedef struct asi_segment_writer asi_segment_writer;

typedef struct asi_segment_writer_params
{
    const asi_file_ops *files;   /* borrowed until close */
    const char *archive_dir;
    int64_t recording_id;
    int64_t start_position;      /* the recording's, of the catalog */
    int64_t join_position;       /* first byte to be written: start of a new recording, stop of an extended one */
    int32_t term_length;
    int32_t segment_length;
    int32_t file_sync_level;     /* aeron.archive.file.sync.level */
    bool sync_directory;         /* sync the folder after a file is created: both sync levels > 0 */
    as_record_checksum checksum; /* aeron.archive.record.checksum; NONE or an algorithm */
} asi_segment_writer_params;

/* Opens (extend) or creates the file of join_position and sets it to full length; bytes after join_position are cleared, as
 * rests of a crash must not be taken for frames by a later recovery. */
as_result asi_segment_writer_open(const asi_segment_writer_params *params, asi_segment_writer **writer) AS_MUST_USE;
/* Appends one block. AS_E_STORAGE: the disk refused, see asi_segment_writer_is_out_of_space for the archive's error code;
 * AS_E_DATA: the block holds no whole frames, or passes the end of the segment. */
as_result asi_segment_writer_append(asi_segment_writer *writer, const uint8_t *block, int64_t length) AS_MUST_USE;
/* Recorded position: everything before it was handed to the operating system (and synced, if so configured). */
int64_t asi_segment_writer_position(const asi_segment_writer *writer);
/* Bytes handed to the operating system so far; a padding frame counts 32. */
int64_t asi_segment_writer_bytes_written(const asi_segment_writer *writer);
/* Whether the last failure was for want of space (archive error STORAGE_SPACE 11, else GENERIC 0). Spec: 06 §7.2. */
bool asi_segment_writer_is_out_of_space(const asi_segment_writer *writer);
void asi_segment_writer_close(asi_segment_writer *writer);

#endif

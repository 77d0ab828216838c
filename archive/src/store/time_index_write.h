/* Writes a recording's time index during recording. Format and guarantees are in time_index.h. The record session calls it.
 *
 * It costs one clock read for each block and 32 bytes for each run. An entry is written when the run's interval has ended;
 * entries of a fast stream are written in groups. Entries are not synced. The first bytes create the file. A failure never stops
 * the recording: entries that could not be written are a gap.
 * Thread rule: one thread (the recorder's) after open. */
#ifndef ASI_STORE_TIME_INDEX_WRITE_H
#define ASI_STORE_TIME_INDEX_WRITE_H

#include "store/time_index.h"

typedef struct asi_time_writer asi_time_writer;

typedef struct asi_time_writer_params
{
    const asi_file_ops *files;   /* borrowed until close */
    const char *archive_dir;     /* copied */
    int64_t recording_id;
    int64_t join_position;       /* first byte to write */
    int64_t not_before_ns;       /* minimum time: the stop time of an extended recording, as its last entries may be lost */
    int64_t interval_ns;         /* maximum duration of a run */
    int64_t interval_bytes;      /* maximum bytes of a run, unless a single write has more */
    bool is_off;                 /* keeps an existing index correct, but adds nothing to it */
    asi_time_era known_era;      /* the catalog's before this session: an index with another one is invalid */
    asi_time_era era;            /* the catalog's now */
    int32_t term_length;
    int32_t segment_length;
    const asi_recording_positions *positions; /* borrowed, for the start; NULL: no blocks are freed */
} asi_time_writer_params;

/* Cuts an existing index at join_position and syncs the cut before it returns. AS_E_STORAGE: a possibly existing index could not
 * be opened, or could neither be cut nor deleted; it has old ids of the catalog and is invalid. AS_E_INTERNAL: out of memory. */
as_result asi_time_writer_open(const asi_time_writer_params *params, asi_time_writer **writer) AS_MUST_USE;
/* Adds the recorded bytes [position, position + length). now_ns is the clock, read after the bytes were available for
 * recording. */
void asi_time_writer_add(asi_time_writer *writer, int64_t position, int64_t length, int64_t now_ns);
/* True if entries wait for their interval to end. When nothing is recorded, call asi_time_writer_idle then. */
bool asi_time_writer_is_waiting(const asi_time_writer *writer);
void asi_time_writer_idle(asi_time_writer *writer, int64_t now_ns);
/* Writes the remaining entries. Returns the errno of the first write that has ever failed, 0 if none has. */
int asi_time_writer_close(asi_time_writer *writer);

#endif

/* Writing a recording's time index while it is recorded; format and promises in time_index.h. Called by the record session.
 *
 * Costs one look at the clock for each block and 32 bytes for each run. Entries are written when the run's time is over, those
 * of a fast stream in groups, and without sync; the file is created with the first of them. No failure of it ever stops the
 * recording: what could not be written is a gap.
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
    int64_t join_position;       /* first byte to be written */
    int64_t not_before_ns;       /* the clamp's begin: when an extended recording was stopped, as its last entries may be lost */
    int64_t interval_ns;         /* a run lasts no longer; */
    int64_t interval_bytes;      /* nor has it more bytes, unless a single write has */
    bool is_off;                 /* keep an index that exists true, but add nothing to it */
    asi_time_era known_era;      /* the catalog's before this session: an index of another one is not believed */
    asi_time_era era;            /* the catalog's now */
    int32_t term_length;
    int32_t segment_length;
    const asi_recording_positions *positions; /* borrowed, for the start; NULL: nothing is given back */
} asi_time_writer_params;

/* Cuts an existing index at join_position, with the cut synced before this returns. AS_E_STORAGE: an index that may be there could
 * not be opened, or neither cut nor deleted: it has old names of the catalog and is not believed. AS_E_INTERNAL: no memory. */
as_result asi_time_writer_open(const asi_time_writer_params *params, asi_time_writer **writer) AS_MUST_USE;
/* What was recorded: [position, position + length), at clock time now_ns, read after the bytes were there to be recorded. */
void asi_time_writer_add(asi_time_writer *writer, int64_t position, int64_t length, int64_t now_ns);
/* Nothing was recorded: whether there is anything that time may make it write; then call asi_time_writer_idle. */
bool asi_time_writer_is_waiting(const asi_time_writer *writer);
void asi_time_writer_idle(asi_time_writer *writer, int64_t now_ns);
/* Writes what is left. The errno of the first write that failed in all the time, 0 if there was none. */
int asi_time_writer_close(asi_time_writer *writer);

#endif

/* The auditor's own reader of time indexes; see auditor.h. An entry promises: all bytes before its end were written no later
 * than its last time. Format: store/time_index.h. */
#include "auditor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "sim_trace.h"
#include "store/time_index.h"

#define INTERVAL_NS 10000000LL
#define INTERVAL_BYTES (64 * 1024)

typedef struct index_file
{
    uint8_t *bytes;
    int64_t slots;
    asi_time_header header;
} index_file;

/* False: there is none, or it is another's than the catalog says. */
static bool read_index(const auditor *audit, const asi_catalog_record *record, index_file *file)
{
    char name[SIM_DISK_NAME];
    snprintf(name, sizeof(name), "%" PRId64 ASI_TIME_INDEX_SUFFIX, record->recording_id);
    const int64_t length = sim_disk_size_of(audit->disk, name);
    if (length < ASI_TIME_INDEX_HEADER_LENGTH)
    {
        return false;
    }
    file->bytes = malloc((size_t)length);
    sim_disk_read(audit->disk, name, file->bytes, length, 0);
    file->slots = (length - ASI_TIME_INDEX_HEADER_LENGTH) / ASI_TIME_INDEX_ENTRY_LENGTH;
    const asi_time_era era = asi_time_era_of(record);
    if (!asi_time_header_decode_untrusted(file->bytes, &file->header) || file->header.recording_id != record->recording_id ||
        !asi_time_era_equals(&file->header.era, &era))
    {
        free(file->bytes);
        return false;
    }
    return true;
}

static bool run_at(const index_file *file, int64_t slot, asi_time_run *run)
{
    return asi_time_run_decode_untrusted(
        file->bytes + asi_time_slot_offset(slot), file->header.recording_id, slot, run);
}

/* For data recorded without a fault: no gap, and no frame outside its run's interval. */
static void check_whole(const audited *recording, const index_file *file)
{
    int64_t position = recording->start;
    int64_t next = 0;
    asi_time_run run;
    for (int64_t slot = file->header.first_slot; slot < file->slots && run_at(file, slot, &run); slot++)
    {
        if (run.position != position || run.last_ns - run.first_ns > INTERVAL_NS)
        {
            sim_fail("time", "recording %" PRId64 ": an entry at %" PRId64 ", where %" PRId64 " comes next, lasts %" PRId64 " ns",
                recording->id, run.position, position, run.last_ns - run.first_ns);
        }
        position = asi_time_run_end(&run);
        for (; next < recording->frame_count && recording->frames[next].end <= position; next++)
        {
            const audit_frame *frame = &recording->frames[next];
            if (0 != frame->seen && frame->seen < run.first_ns)
            {
                sim_fail("time", "recording %" PRId64 " at %" PRId64 ": written at %" PRId64 ", its entry begins at %" PRId64,
                    recording->id, frame->begin, frame->seen, run.first_ns);
            }
        }
    }
    if (position != recording->stop)
    {
        sim_fail("time", "recording %" PRId64 " stops at %" PRId64 " and has entries up to %" PRId64, recording->id,
            recording->stop, position);
    }
}

void auditor_check_times(auditor *audit, const audited *recording, const asi_catalog_record *record, bool is_whole)
{
    index_file file;
    if (!read_index(audit, record, &file))
    {
        if (is_whole && recording->stop > recording->start)
        {
            sim_fail("time", "recording %" PRId64 " has no times", recording->id);
        }
        return;
    }
    int64_t latest = 0;
    int64_t next = 0;
    asi_time_run before = { 0 };
    asi_time_run run;
    for (int64_t slot = file.header.first_slot; slot < file.slots; slot++)
    {
        if (!run_at(&file, slot, &run) || asi_time_run_end(&run) > recording->stop)
        {
            continue;
        }
        if (run.position < asi_time_run_end(&before) || run.first_ns < before.last_ns || run.last_ns < run.first_ns)
        {
            sim_fail("time", "recording %" PRId64 ": the entry at %" PRId64 " goes back", recording->id, run.position);
        }
        for (; next < recording->frame_count && recording->frames[next].end <= asi_time_run_end(&run); next++)
        {
            latest = recording->frames[next].not_before > latest ? recording->frames[next].not_before : latest;
        }
        if (run.last_ns < latest)
        {
            sim_fail("time", "recording %" PRId64 ": the entry of [%" PRId64 ", %" PRId64 ") ends at %" PRId64
                ", and something up to there was written at %" PRId64 " or later", recording->id, run.position,
                asi_time_run_end(&run), run.last_ns, latest);
        }
        before = run;
        audit->checked_times++;
    }
    if (is_whole)
    {
        check_whole(recording, &file);
    }
    free(file.bytes);
}

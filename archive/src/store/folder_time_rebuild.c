/* Rebuilds a recording's time index from the modification times of its segments. See folder_time_source.h and
 * aeron_spark/as_archive.h. */
#include <inttypes.h>
#include <stdlib.h>

#include "store/folder_time_source.h"
#include "store/time_index_edit.h"

/* Collects the index's runs if it is valid, and fills the gaps with runs of the segments. */
static as_result collect(const as_folder *folder, asi_time_source *source, asi_time_runs *runs)
{
    const as_recording_extent *extent = &source->extent;
    int64_t position = extent->start_position;
    int64_t last_ns = asi_time_of_ms(source->record.start_timestamp_ms);
    as_result result = AS_OK;
    const int64_t slots = source->is_believed ? source->runs.slot_count : 0;
    for (int64_t slot = source->runs.header.first_slot; AS_OK == result && slot < slots; slot++)
    {
        asi_time_run run;
        if (!asi_time_file_run(&source->runs, slot, &run) || run.is_rebuilt || asi_time_run_end(&run) <= position ||
            run.position >= extent->limit_position)
        {
            continue;
        }
        const int64_t run_end = asi_time_run_end(&run) < extent->limit_position ? asi_time_run_end(&run) : extent->limit_position;
        if (run.position > position)
        {
            result = asi_time_of_segments(folder, &source->record, position, run.position, last_ns, run.first_ns, runs);
        }
        run.position = run.position > position ? run.position : position;
        run.length = run_end - run.position;
        result = AS_OK == result ? asi_time_runs_add(runs, &run) : result;
        position = run_end;
        last_ns = run.last_ns;
    }
    return AS_OK != result ? result :
        asi_time_of_segments(folder, &source->record, position, extent->limit_position, last_ns, INT64_MAX, runs);
}

as_result as_folder_rebuild_time_index(as_folder *folder, int64_t recording_id)
{
    asi_time_source source;
    as_result result = asi_time_source_open(folder, recording_id, &source);
    if (AS_OK != result)
    {
        return result;
    }
    asi_time_runs runs = { 0 };
    if (source.extent.is_active)
    {
        result = asi_fail(AS_E_USAGE, 0, "recording %" PRId64 " of %s is being recorded: its archive writes the time index; stop the "
            "recording first", recording_id, folder->path);
    }
    result = AS_OK == result ? collect(folder, &source, &runs) : result;
    const asi_time_header header = { .recording_id = recording_id, .era = asi_time_era_of(&source.record) };
    result = AS_OK == result ? asi_time_runs_write(folder->files, folder->path, &header, &runs) : result;
    free(runs.runs);
    asi_time_source_close(&source);
    return result;
}

/* Verifies a recording against its segment files and repairs what can be repaired. Spec: 06 §12.1.
 *
 * The verdicts are those of the stock ArchiveTool, except where stock behaves accidentally:
 *   - a stopped recording must reach its stop position: frames that end before it are reported (stock silently moves the stop
 *     back), and bytes after it are left alone (stock moves the stop onto them, so a truncated recording grows again);
 *   - only the last fragment of a recording whose archive died can be incomplete; that of a stopped recording is whole, even if
 *     its payload is zeros (stock asks to truncate it);
 *   - the catalog's checksum is updated with every change (stock leaves it stale and later reports it as wrong);
 *   - frames of any length are read in pieces (stock aborts the whole run at a frame above 1 MiB);
 *   - a segment missing in the middle is an error.
 * Nothing is written without `repair`. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "store/catalog_format.h"
#include "store/catalog_scan.h"
#include "store/recover.h"
#include "store/segment_judge.h"
#include "store/segment_layout.h"
#include "tools/catalog_open.h"

/* State of the frame walk inside a message. */
typedef struct message_walk
{
    asi_chain_before before; /* class of the frame before the next one, while no message is open */
    bool is_open;
    bool is_short;           /* one of its fragments is shorter than the MTU */
    int64_t begin;
    int32_t session_id;      /* of its first fragment */
} message_walk;

typedef struct verification
{
    as_catalog *catalog;
    asi_catalog_record *record;
    const as_verify_options *options;
    as_verify_report *report;
    as_record_checksum checksum;
    int64_t highest_base; /* of the segment files, -1: none */
    int64_t lowest_base;
    int64_t limit;        /* required end of the frames */
    bool is_stop_new;     /* `limit` must be stored as the stop position */
    int64_t truncate_at;  /* position of an incomplete last fragment, -1: none */
    bool is_empty_segment_wanted;
    message_walk message;
    int64_t last_session_id; /* of the data frames; -1 << 32 and less: no data frame yet */
    int64_t doubt_position[ASI_RECORDING_DOUBTS]; /* -1: none */
} verification;

void as_verify_options_init(as_verify_options *options)
{
    *options = (as_verify_options){ .checksum = AS_CHECKSUM_AUTO, .live_limit = AS_NULL_VALUE };
}

__attribute__((format(printf, 2, 3))) static void note(as_verify_report *report, const char *format, ...)
{
    const size_t length = strlen(report->text);
    const size_t space = sizeof(report->text) - length;
    va_list arguments;
    va_start(arguments, format);
    const int separator = length > 0 ? snprintf(report->text + length, space, "; ") : 0;
    if ((size_t)separator < space)
    {
        vsnprintf(report->text + length + separator, space - (size_t)separator, format, arguments);
    }
    va_end(arguments);
}

static bool find_bad(verification *check, const char *what)
{
    check->report->outcome = AS_VERIFY_BAD;
    note(check->report, "%s", what);
    return false;
}

/* -- positions ------------------------------------------------------------------------------------------------------------ */

static bool are_positions_right(verification *check)
{
    const int64_t start = check->record->start_position;
    const int64_t stop = check->record->stop_position;
    char what[160] = "";
    if (start < 0)
    {
        snprintf(what, sizeof(what), "Negative startPosition=%" PRId64, start);
    }
    else if (0 != start % AS_FRAME_ALIGNMENT)
    {
        snprintf(what, sizeof(what), "Non-aligned startPosition=%" PRId64, start);
    }
    else if (AS_NULL_VALUE != stop && stop < start)
    {
        snprintf(what, sizeof(what), "Invariant violation stopPosition=%" PRId64 " is before startPosition=%" PRId64, stop, start);
    }
    else if (AS_NULL_VALUE != stop && 0 != stop % AS_FRAME_ALIGNMENT)
    {
        snprintf(what, sizeof(what), "Non-aligned stopPosition=%" PRId64, stop);
    }
    if ('\0' != what[0])
    {
        return find_bad(check, what);
    }
    return AS_OK == asi_recording_check_untrusted(check->record) || find_bad(check, as_error_text());
}

/* Steps 2 and 3 of the specification. */
static as_result check_files(verification *check, bool *is_right)
{
    const asi_catalog_record *record = check->record;
    asi_recover_files found;
    char what[400] = "";
    const as_result result = asi_recover_find_files(check->catalog->files, check->catalog->dir, record->recording_id, &found);
    if (AS_OK != result)
    {
        return result;
    }
    check->highest_base = found.highest_base;
    check->lowest_base = found.lowest_base;
    const int64_t stop = record->stop_position;
    const int64_t file_end = found.highest_base + record->segment_file_length;
    if ('\0' != found.bad_name[0])
    {
        snprintf(what, sizeof(what), "no position encoded in the file name: %s; move the file away", found.bad_name);
    }
    else if (stop > record->start_position && stop > file_end)
    {
        snprintf(what, sizeof(what), "Invariant violation: startPosition=%" PRId64 " and/or stopPosition=%" PRId64
            " exceed max segment file position=%" PRId64 "; restore the segments behind it", record->start_position, stop,
            found.highest_base < 0 ? 0 : file_end - 1);
    }
    /* The stock archive and its tool expect the empty file that follows an exactly full segment. */
    check->is_empty_segment_wanted = '\0' == what[0] && found.highest_base >= 0 && stop == file_end;
    *is_right = '\0' == what[0] || find_bad(check, what);
    return AS_OK;
}

/* -- where it ends -------------------------------------------------------------------------------------------------------- */

static bool find_end(verification *check)
{
    asi_catalog_record *record = check->record;
    check->limit = record->stop_position;
    check->truncate_at = AS_NULL_VALUE;
    if (AS_NULL_VALUE != record->stop_position)
    {
        return true;
    }
    if (AS_NULL_VALUE != check->options->live_limit)
    {
        check->limit = check->options->live_limit;
        return check->limit >= record->start_position || find_bad(check, "the recorded position is before the start position");
    }
    as_record_checksum checksum = check->options->checksum;
    if (AS_CHECKSUM_AUTO == checksum)
    {
        const int64_t first_end = asi_segment_base(record->start_position, record->start_position, record->term_buffer_length,
            record->segment_file_length) + record->segment_file_length;
        checksum = asi_tool_frame_checksum(check->catalog, record, first_end);
    }
    asi_recovered_end end;
    if (AS_OK != asi_recover_end(check->catalog->files, check->catalog->dir, record, checksum, &end))
    {
        return find_bad(check, as_error_text());
    }
    check->limit = end.is_proven ? end.stop_position : end.last_fragment_position;
    check->is_stop_new = true;
    if (!end.is_proven)
    {
        check->truncate_at = end.last_fragment_position;
        check->report->outcome = AS_VERIFY_REPAIRABLE;
        note(check->report, "Found potentially incomplete last fragment straddling page boundary in file: %s; an "
            "archive refuses to start with it, a repair truncates the recording at position %" PRId64, end.path,
            end.last_fragment_position);
    }
    else
    {
        note(check->report, "was active when its archive died: ends at position %" PRId64 ", which the archive's next "
            "start stores", end.stop_position);
    }
    return true;
}

/* -- frames --------------------------------------------------------------------------------------------------------------- */

static void doubt(verification *check, int kind, int64_t position)
{
    check->doubt_position[kind] = check->doubt_position[kind] < 0 ? position : check->doubt_position[kind];
}

static bool is_frame_right(verification *check, const asi_segment_window *window, const asi_segment_walk *walk)
{
    const int64_t occupancy = walk->position - walk->frame_position;
    const uint8_t *frame = window->buffer + (walk->frame_position - window->position);
    const uint32_t recorded = (uint32_t)((const asi_frame_header *)(const void *)frame)->session_id;
    const uint32_t computed =
        asi_checksum_function(check->checksum)(frame + AS_FRAME_HEADER_LENGTH, occupancy - AS_FRAME_HEADER_LENGTH);
    if (recorded == computed)
    {
        if (!asi_bytes_are_zero(frame + walk->frames.frame_length, occupancy - walk->frames.frame_length))
        {
            doubt(check, ASI_DOUBT_TAIL, walk->frame_position);
        }
        return true;
    }
    char what[160];
    snprintf(what, sizeof(what), "checksum failed recorded=%d (expected=%d); the frame is damaged, restore the segment",
        (int32_t)recorded, (int32_t)computed);
    const as_result ignored = asi_segment_fail(&window->source, walk->frame_position, what);
    (void)ignored; /* the text is what counts */
    return find_bad(check, as_error_text());
}

/* Without checksums only this shows that a frame's length has grown by exactly the frames that followed it. */
static bool holds_frames(const asi_segment_window *window, const asi_segment_walk *walk)
{
    for (int64_t at = walk->frame_position + AS_FRAME_HEADER_LENGTH; at < walk->position; at += AS_FRAME_ALIGNMENT)
    {
        const uint8_t *bytes = window->buffer + (at - window->position);
        if (asi_segment_is_frame(&window->source, (const asi_frame_header *)(const void *)bytes, at))
        {
            return true;
        }
    }
    return false;
}

/* The frame is in memory. */
static bool is_payload_right(verification *check, const asi_segment_window *window, const asi_segment_walk *walk)
{
    if (AS_CHECKSUM_NONE != check->checksum)
    {
        return is_frame_right(check, window, walk);
    }
    if (holds_frames(window, walk))
    {
        doubt(check, ASI_DOUBT_HOLDS_FRAMES, walk->frame_position);
    }
    return true;
}

static bool find_torn(verification *check, const asi_segment_window *window, int64_t position)
{
    const as_result ignored = asi_segment_fail(&window->source, position, ASI_SEGMENT_TORN);
    (void)ignored; /* the text is what counts */
    return find_bad(check, as_error_text());
}

static bool close_message(verification *check, const asi_segment_window *window, asi_chain_cut cut)
{
    message_walk *message = &check->message;
    const asi_chain_verdict verdict = message->is_open ? asi_chain_judge_cut(cut, message->is_short) : ASI_CHAIN_RIGHT;
    message->is_open = false;
    if (ASI_CHAIN_DOUBTFUL == verdict)
    {
        doubt(check, ASI_CUT_BY_MESSAGE == cut ? ASI_DOUBT_CUT : ASI_DOUBT_SHORT, message->begin);
    }
    return ASI_CHAIN_WRONG != verdict || find_torn(check, window, message->begin);
}

static bool is_padding_right(verification *check, asi_segment_window *window, const asi_frame_header *frame, int64_t position)
{
    asi_padding_verdict verdict;
    if (AS_OK != asi_segment_judge_padding(window, frame, position, check->limit, asi_checksum_function(check->checksum),
            check->record->session_id, &verdict))
    {
        return find_bad(check, as_error_text());
    }
    if (ASI_PADDING_WAS_DATA == verdict)
    {
        const as_result ignored = asi_segment_fail(&window->source, position, ASI_SEGMENT_LOST_TYPE);
        (void)ignored; /* the text is what counts */
        return find_bad(check, as_error_text());
    }
    if (ASI_PADDING_FILLED == verdict)
    {
        doubt(check, ASI_DOUBT_PADDING, position);
    }
    return true;
}

static bool is_fragment_right(verification *check, const asi_segment_window *window, const asi_segment_walk *walk)
{
    message_walk *message = &check->message;
    const asi_frame_header *frame = walk->frames.frame;
    const bool is_last = 0 != (frame->flags & ASI_FLAG_END);
    const bool is_short = !is_last && walk->frames.frame_length != check->record->mtu_length;
    check->last_session_id = frame->session_id;
    if (0 != (frame->flags & ASI_FLAG_BEGIN))
    {
        const bool is_other = AS_CHECKSUM_NONE == check->checksum && frame->session_id != message->session_id;
        if (!close_message(check, window, is_other ? ASI_CUT_BY_OTHER_SESSION : ASI_CUT_BY_MESSAGE))
        {
            return false;
        }
        *message = (message_walk){ .before = ASI_BEFORE_MESSAGE, .is_open = !is_last, .is_short = is_short,
            .begin = walk->frame_position, .session_id = frame->session_id };
        return true;
    }
    if (message->is_open)
    {
        message->is_open = !is_last;
        message->is_short = message->is_short || is_short;
        return true;
    }
    const asi_chain_verdict verdict = asi_chain_judge_orphan(message->before, walk->frames.frame_offset, is_short);
    message->before = asi_chain_after_orphan(message->before, frame->flags);
    if (ASI_CHAIN_DOUBTFUL == verdict)
    {
        doubt(check, ASI_DOUBT_SHORT, walk->frame_position);
    }
    return ASI_CHAIN_WRONG != verdict || find_torn(check, window, walk->frame_position);
}

/* Checks the frame's header against its neighbours. */
static bool is_place_right(verification *check, asi_segment_window *window, const asi_segment_walk *walk)
{
    const asi_frame_header *frame = walk->frames.frame;
    if (!asi_frame_is_of_log(frame))
    {
        doubt(check, ASI_DOUBT_KIND, walk->frame_position);
    }
    if (0 == walk->frames.frame_offset && !close_message(check, window, ASI_CUT_BY_TERM_END))
    {
        return false;
    }
    if (!asi_frame_is_padding(frame))
    {
        return is_fragment_right(check, window, walk);
    }
    const bool is_right = close_message(check, window, ASI_CUT_BY_PADDING);
    check->message.before = ASI_BEFORE_PADDING;
    return is_right && is_padding_right(check, window, frame, walk->frame_position);
}

/* Checks the entry's positions against the neighbouring bytes, and writes all doubts as text. */
static void report_doubts(verification *check, asi_segment_window *window)
{
    const asi_catalog_record *record = check->record;
    as_verify_report *report = check->report;
    if (asi_segment_has_bytes_below(window, record->start_position))
    {
        doubt(check, ASI_DOUBT_BELOW_START, record->start_position);
    }
    if (check->limit == record->stop_position && asi_segment_has_frame_at(window, record->stop_position))
    {
        doubt(check, ASI_DOUBT_BEHIND_STOP, record->stop_position);
    }
    if (check->lowest_base >= 0 && check->lowest_base < asi_term_base(record->start_position, record->term_buffer_length))
    {
        note(report, "segments stand before startPosition=%" PRId64 ": they were detached, or the catalog's entry has changed",
            record->start_position);
    }
    if (check->message.is_open)
    {
        note(report, "ends inside the message that begins at position %" PRId64, check->message.begin);
        check->message.is_short ? doubt(check, ASI_DOUBT_SHORT, check->message.begin) : (void)0;
    }
    if (AS_CHECKSUM_NONE == check->checksum && check->last_session_id >= INT32_MIN &&
        check->last_session_id != record->session_id)
    {
        note(report, "the last frames are of session %" PRId64 ", the catalog's entry is of session %d", check->last_session_id,
            record->session_id);
    }
    for (int kind = 0; kind < ASI_RECORDING_DOUBTS; kind++)
    {
        if (check->doubt_position[kind] >= 0)
        {
            note(report, "at position %" PRId64 ": %s", check->doubt_position[kind], asi_doubt_text(kind));
        }
    }
}

/* Handles frames that end before the required end. */
static bool find_short(verification *check, int64_t position)
{
    check->report->stop_position = position;
    if (AS_NULL_VALUE == check->record->stop_position)
    {
        return find_bad(check, "a frame passes the recorded position");
    }
    check->limit = position;
    check->is_stop_new = true;
    check->report->outcome = AS_VERIFY_REPAIRABLE;
    note(check->report, "the frames end at position %" PRId64 ", before stopPosition=%" PRId64 ": bytes are missing; "
        "a repair makes %" PRId64 " the stop position", position, check->record->stop_position, position);
    return true;
}

/* Walks the frames. AS_AGAIN: stopped by the caller. */
static as_result walk_frames(verification *check, int64_t from, asi_segment_window *window, bool *is_right)
{
    as_verify_report *report = check->report;
    asi_tool_progress progress = { .lock = &check->catalog->lock, .on_progress = check->options->on_progress,
        .context = check->options->context };
    asi_segment_walk walk = asi_segment_walk_start(window, from, check->limit, true);
    for (;;)
    {
        const asi_segment_step step = asi_segment_walk_next(&walk);
        if (ASI_SEGMENT_FAILED == step)
        {
            report->stop_position = walk.position;
            *is_right = find_bad(check, as_error_text());
            return AS_OK;
        }
        if (ASI_SEGMENT_FRAME != step)
        {
            report->stop_position = walk.position;
            *is_right = walk.position == check->limit || find_short(check, walk.position);
            return AS_OK;
        }
        const int64_t occupancy = walk.position - walk.frame_position;
        if (!asi_frame_is_padding(walk.frames.frame))
        {
            if (occupancy > ASI_DATA_FRAME_MAX_LENGTH)
            {
                const as_result ignored = asi_segment_fail(&window->source, walk.frame_position, "a data frame of this length can't be");
                (void)ignored;
                *is_right = find_bad(check, as_error_text());
                return AS_OK;
            }
            if (walk.position > asi_segment_window_end(window))
            {
                /* Load again from this frame on, so that its payload is in memory. */
                if (AS_OK != asi_segment_window_load(window, walk.frame_position, ASI_WINDOW_LENGTH, check->limit))
                {
                    *is_right = find_bad(check, as_error_text());
                    return AS_OK;
                }
                walk = asi_segment_walk_start(window, walk.frame_position, check->limit, true);
                continue;
            }
            if (!is_payload_right(check, window, &walk))
            {
                *is_right = false;
                return AS_OK;
            }
        }
        if (!is_place_right(check, window, &walk))
        {
            *is_right = false;
            return AS_OK;
        }
        report->frames++;
        report->bytes += occupancy;
        if (!asi_tool_progress_add(&progress, occupancy))
        {
            return AS_AGAIN;
        }
    }
}

/* Walks the frames from the begin of the last segment, or of them all, and closes the last message. */
static as_result check_walk(verification *check, asi_segment_window *window, bool *is_right)
{
    const asi_catalog_record *record = check->record;
    const int64_t last_base =
        asi_segment_base(record->start_position, check->limit - 1, record->term_buffer_length, record->segment_file_length);
    const int64_t from =
        check->options->all_segments || last_base < record->start_position ? record->start_position : last_base;
    check->checksum = AS_CHECKSUM_AUTO == check->options->checksum ?
        asi_tool_frame_checksum(check->catalog, record, check->limit) : check->options->checksum;
    check->report->checksum = check->checksum;
    const as_result result = walk_frames(check, from, window, is_right);
    const bool is_cut_by_term = 0 == (check->limit & (record->term_buffer_length - 1));
    *is_right = *is_right && (!is_cut_by_term || close_message(check, window, ASI_CUT_BY_TERM_END));
    return result;
}

/* A recording without frames has neighbours, too: a changed start or stop position can empty it. */
static as_result check_frames(verification *check, bool *is_right)
{
    const asi_segment_source source = asi_tool_source(check->catalog, check->record);
    asi_segment_window window;
    asi_segment_window_init(&window, &source);
    check->report->stop_position = check->limit;
    const as_result result = check->limit > check->record->start_position ? check_walk(check, &window, is_right) : AS_OK;
    if (AS_OK == result && *is_right)
    {
        report_doubts(check, &window);
    }
    asi_segment_window_close(&window);
    return result;
}

/* -- the catalog's own checksum ------------------------------------------------------------------------------------------- */

static bool is_catalog_checksum_right(verification *check)
{
    const asi_catalog_record *record = check->record;
    const as_record_checksum wanted = check->options->checksum;
    if (AS_CHECKSUM_AUTO == wanted)
    {
        check->report->is_catalog_checksum_stale = 0 != record->checksum &&
            AS_CHECKSUM_NONE == asi_tool_catalog_checksum_kind(check->catalog, record);
        if (check->report->is_catalog_checksum_stale)
        {
            note(check->report, "the catalog's checksum of this recording is stale, as stock archives leave it after a crash: "
                "`checksum` refreshes it");
        }
        return true;
    }
    if (AS_CHECKSUM_NONE == wanted)
    {
        return true;
    }
    const int32_t computed = (int32_t)asi_tool_catalog_checksum(check->catalog, record, wanted);
    char what[160];
    snprintf(what, sizeof(what), "invalid Catalog checksum: expected=%d, actual=%d; `checksum` refreshes it", computed,
        record->checksum);
    return computed == record->checksum || find_bad(check, what);
}

/* -- repairing ------------------------------------------------------------------------------------------------------------ */

/* Truncates the last segment at `at` and extends it to its length with zeros. */
static as_result truncate_segment(verification *check, int64_t at)
{
    const asi_file_ops *files = check->catalog->files;
    const asi_catalog_record *record = check->record;
    const int64_t base = asi_segment_base(record->start_position, at, record->term_buffer_length, record->segment_file_length);
    char path[AS_PATH_MAX];
    as_result result = asi_segment_path(path, sizeof(path), check->catalog->dir, record->recording_id, base);
    const int fd = AS_OK == result ? files->open(files->context, path, ASI_FILE_CREATE) : -1;
    if (AS_OK != result || fd < 0)
    {
        return AS_OK != result ? result : asi_fail_errno(AS_E_STORAGE, -fd, "cannot open segment %s", path);
    }
    int error = files->ftruncate(files->context, fd, at - base);
    error = 0 == error ? files->ftruncate(files->context, fd, record->segment_file_length) : error;
    error = 0 == error ? files->fsync(files->context, fd) : error;
    files->close(files->context, fd);
    return 0 == error ? AS_OK : asi_fail_errno(AS_E_STORAGE, -error, "cannot truncate segment %s", path);
}

static as_result repair(verification *check)
{
    as_catalog *catalog = check->catalog;
    asi_catalog_record *record = check->record;
    const as_record_checksum kind = asi_tool_catalog_checksum_kind(catalog, record);
    as_result result = AS_OK;
    if (AS_NULL_VALUE != check->truncate_at || check->is_empty_segment_wanted)
    {
        result = truncate_segment(check, check->is_empty_segment_wanted ? record->stop_position : check->truncate_at);
    }
    if (AS_OK == result && check->is_stop_new)
    {
        const int64_t now_ms = asi_clock_ms(&catalog->lock.clock);
        result = asi_tool_put(catalog, record->offset + RECORD_STOP_TIMESTAMP, &now_ms, sizeof(now_ms));
        result = AS_OK == result ? asi_tool_put(catalog, record->offset + RECORD_STOP_POSITION, &check->limit, sizeof(check->limit)) :
            result;
        record->stop_position = AS_OK == result ? check->limit : record->stop_position;
        record->stop_timestamp_ms = AS_OK == result ? now_ms : record->stop_timestamp_ms;
    }
    if (AS_OK == result && AS_RECORDING_INVALID == record->state)
    {
        const int32_t valid = AS_RECORDING_VALID;
        result = asi_tool_put(catalog, record->offset + RECORD_STATE, &valid, sizeof(valid));
        record->state = AS_OK == result ? valid : record->state;
    }
    const bool has_checksum = 0 != record->checksum;
    const as_record_checksum refreshed = AS_CHECKSUM_NONE != kind ? kind : has_checksum ? check->report->checksum : AS_CHECKSUM_NONE;
    result = AS_OK == result ? asi_tool_refresh_checksum(catalog, record, refreshed) : result;
    if (AS_OK == result)
    {
        check->report->outcome = AS_VERIFY_REPAIRED;
        check->report->is_catalog_checksum_stale = check->report->is_catalog_checksum_stale && AS_CHECKSUM_NONE == refreshed;
    }
    return result;
}

/* -- all of it ------------------------------------------------------------------------------------------------------------ */

static void report_repairable(verification *check)
{
    as_verify_report *report = check->report;
    if (check->is_empty_segment_wanted)
    {
        report->outcome = AS_VERIFY_REPAIRABLE;
        note(report, "the empty segment at stopPosition=%" PRId64 " is missing; a repair creates it",
            check->record->stop_position);
    }
    if (AS_RECORDING_INVALID == check->record->state)
    {
        report->outcome = AS_VERIFY_REPAIRABLE;
        note(report, "marked INVALID although all is well; a repair marks it VALID");
    }
}

/* Reports leftover files: a corrupted state looks like a deletion, except that the files still exist. */
static as_result report_leftovers(const as_catalog *catalog, const asi_catalog_record *record, as_verify_report *report)
{
    asi_recover_files found;
    const as_result result = asi_recover_find_files(catalog->files, catalog->dir, record->recording_id, &found);
    if (AS_OK != result)
    {
        return result;
    }
    if (found.highest_base >= 0)
    {
        note(report, "there are segments of it: its archive was stopped while it deleted them, or the catalog's entry "
            "has changed");
    }
    return AS_OK;
}

as_result as_catalog_verify(as_catalog *catalog, int64_t index, const as_verify_options *options, as_verify_report *report)
{
    asi_catalog_record *record = NULL;
    as_result result = asi_tool_record(catalog, index, options->repair, &record);
    if (AS_OK != result || (int)options->checksum < AS_CHECKSUM_AUTO || options->checksum > AS_CHECKSUM_CRC32C)
    {
        return AS_OK != result ? result : asi_fail(AS_E_USAGE, EINVAL, "checksum option is %d, 0 to 3 are possible",
            (int)options->checksum);
    }
    *report = (as_verify_report){ .outcome = AS_VERIFY_OK, .checksum = AS_CHECKSUM_NONE, .stop_position = record->stop_position };
    if (AS_RECORDING_VALID != record->state && AS_RECORDING_INVALID != record->state)
    {
        report->outcome = AS_VERIFY_SKIPPED;
        return report_leftovers(catalog, record, report);
    }
    verification check = { .catalog = catalog, .record = record, .options = options, .report = report,
        .checksum = AS_CHECKSUM_NONE, .truncate_at = AS_NULL_VALUE, .last_session_id = INT64_MIN };
    memset(check.doubt_position, -1, sizeof(check.doubt_position));
    bool is_right = are_positions_right(&check);
    result = is_right ? check_files(&check, &is_right) : AS_OK;
    is_right = is_right && AS_OK == result && find_end(&check) && is_catalog_checksum_right(&check);
    result = is_right ? check_frames(&check, &is_right) : result;
    if (AS_OK == result && is_right)
    {
        report_repairable(&check);
        const bool is_wanted = AS_VERIFY_REPAIRABLE == report->outcome || check.is_stop_new || report->is_catalog_checksum_stale;
        result = options->repair && is_wanted ? repair(&check) : result;
    }
    return result;
}

/* as_segment_reader: reads a range of a recording from its segment files as rows; see aeron_spark/as_archive.h.
 *
 * Frames are read directly into the value buffer, after the existing values, and checked there. Then payloads move down over the
 * headers, in the processor's cache; they stay where they are if the columns have `value_end`. A separate window is used only if
 * the value buffer has little space left, if a message is longer than a piece, or if no values are requested.
 *
 * The reader keeps nothing of the folder it was opened from. After each batch it reads the catalog's entry again. If the
 * recording was purged or truncated meanwhile, the batch may hold bytes that are no longer the recording's, so it is an error. If
 * a batch fails because the archive removed the bytes, the error names the removal instead of the broken bytes. The archive moves
 * a recording's start and stop before it changes a file, so one read of the catalog after the bytes is enough.
 *
 * A reader of bytes (segment_bytes.h) has neither catalog nor files, and nobody changes its bytes.
 *
 * Certain damage is an error. Possible damage (segment_judge.h) is a doubt: the rows are returned, and the caller polls for
 * doubts afterwards, each kind once. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/checksum.h"
#include "store/folder.h"
#include "store/folder_extent.h"
#include "store/folder_plan.h"
#include "store/segment_bytes.h"
#include "store/segment_judge.h"
#include "store/segment_layout.h"

#define PIECE_LENGTH ASI_WINDOW_LENGTH
#define MIN_PIECE_LENGTH (4 * 1024)
/* With less space for values, frames are read through the window. */
#define MIN_ROOM (64 * 1024)
#define LARGE_COLUMNS (4 * MIN_ROOM)

/* Bytes of one term of the recording in memory. */
typedef struct read_piece
{
    const uint8_t *bytes;
    int64_t position; /* of the first byte */
    int64_t length;
} read_piece;

struct as_segment_reader
{
    char archive_dir[AS_PATH_MAX]; /* window.source.archive_dir points to it */
    asi_catalog_record record;     /* as last read */
    asi_segment_window window;     /* owned */
    asi_segment_bytes *bytes;      /* owned; NULL: files */
    int64_t position;              /* start of the next batch */
    int64_t end;                   /* messages that begin here or later are outside the range */
    int64_t limit;                 /* no byte at or after it is read */
    int64_t window_length;         /* to load; grows while the message at `position` does not fit */
    bool is_window_due;            /* the message at `position` was longer than a piece */
    bool is_window_done;           /* the window holds no whole message from `position` on */
    int64_t row_length;            /* bytes of the recording in a recent row; 0: unknown */
    bool is_finished;
    bool was_end_judged;
    as_record_checksum checksum;
    int64_t doubt_position[ASI_RECORDING_DOUBTS]; /* first position of each kind, except those in `range`; -1: none */
    bool was_doubt_reported[ASI_RECORDING_DOUBTS];
    asi_columns_range range;       /* constant parts filled in at open */
};

static as_result check_inside(const asi_catalog_record *record, const char *archive_dir, const as_recording_extent *extent,
    int64_t start, int64_t end, int64_t limit)
{
    const bool is_inside =
        extent->start_position <= start && start <= end && end <= limit && limit <= extent->limit_position;
    return is_inside ? AS_OK : asi_fail(AS_E_USAGE, 0, "recording %" PRId64 " of %s: range [%" PRId64 ", %" PRId64
        ") read up to %" PRId64 " is not inside [%" PRId64 ", %" PRId64 "], what there is of it now", record->recording_id,
        archive_dir, start, end, limit, extent->start_position, extent->limit_position);
}

static as_result check_range(as_folder *folder, const asi_catalog_record *record, int64_t start, int64_t end, int64_t limit,
    int64_t *recorded_limit)
{
    as_recording_extent extent;
    as_result result = as_folder_extent(folder, record->recording_id, &extent);
    if (AS_E_PEER == result)
    {
        /* The range was planned with access to the counters and is read without: trust the plan for a live recording. */
        extent = (as_recording_extent){ .start_position = record->start_position, .limit_position = INT64_MAX };
        result = AS_OK;
    }
    result = AS_OK == result ? check_inside(record, folder->path, &extent, start, end, limit) : result;
    *recorded_limit = INT64_MAX == extent.limit_position ? limit : extent.limit_position;
    return result;
}

static void add_doubt(as_segment_reader *reader, asi_recording_doubt kind, int64_t position)
{
    reader->doubt_position[kind] = position;
}

/* Detects the checksum. Uses frames after the range if those inside do not decide: the only frame there may be the damaged
 * one. */
static as_result find_checksum(as_segment_reader *reader, int64_t recorded_limit)
{
    const asi_catalog_record *record = &reader->record;
    bool is_unlike;
    as_result result = asi_folder_detect_checksum(
        &reader->window, reader->position, reader->limit, record->session_id, &reader->checksum, &is_unlike);
    if (is_unlike && AS_CHECKSUM_NONE == reader->checksum && recorded_limit > reader->limit)
    {
        result = asi_folder_detect_checksum(
            &reader->window, reader->position, recorded_limit, record->session_id, &reader->checksum, &is_unlike);
    }
    if (is_unlike && AS_CHECKSUM_NONE == reader->checksum && NULL == reader->bytes &&
        asi_catalog_entry_is_checked(reader->window.source.files, reader->archive_dir, record))
    {
        add_doubt(reader, ASI_DOUBT_UNCHECKED, reader->position);
    }
    /* Broken data is reported when it is read, so that the data before it can be returned. */
    return AS_E_DATA == result ? AS_OK : result;
}

/* Classifies the frame before the first one, which decides what the first frame may be. Not needed if a message begins there. */
static asi_chain_before find_before(as_segment_reader *reader)
{
    asi_frame_header frame;
    const int64_t position = reader->position;
    const bool is_orphan = position > reader->record.start_position && position < reader->limit &&
        AS_OK == asi_segment_window_read(&reader->window, position, sizeof(frame), (uint8_t *)&frame) &&
        !asi_frame_is_padding(&frame) && 0 == (frame.flags & ASI_FLAG_BEGIN);
    return is_orphan ? asi_segment_before(&reader->window, position) : ASI_BEFORE_UNKNOWN;
}

static as_result prepare(
    as_segment_reader *reader, as_record_checksum checksum, int64_t start, int64_t recorded_limit)
{
    const asi_catalog_record *record = &reader->record;
    as_result result = asi_folder_frame_at(&reader->window, start, reader->limit, &reader->position);
    reader->checksum = checksum;
    if (AS_OK == result && AS_CHECKSUM_AUTO == reader->checksum)
    {
        result = find_checksum(reader, recorded_limit);
    }
    reader->range = (asi_columns_range){ .term_length = record->term_buffer_length, .check_headers = true,
        .stream_id = record->stream_id, .mtu_length = record->mtu_length, .checksum = asi_checksum_function(reader->checksum),
        .override_session_id = AS_CHECKSUM_NONE != reader->checksum, .session_id = record->session_id,
        .before = AS_OK == result ? find_before(reader) : ASI_BEFORE_UNKNOWN };
    memset(reader->range.doubt_position, -1, sizeof(reader->range.doubt_position));
    if (start == record->start_position && asi_segment_has_bytes_below(&reader->window, start))
    {
        add_doubt(reader, ASI_DOUBT_BELOW_START, start);
    }
    return result;
}

/* NULL and an error text: out of memory. */
static as_segment_reader *reader_create(
    const asi_catalog_record *record, const char *archive_dir, int64_t start, int64_t end, int64_t limit)
{
    as_segment_reader *reader = calloc(1, sizeof(*reader));
    if (NULL == reader)
    {
        (void)!asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for a reader of recording %" PRId64, record->recording_id);
        return NULL;
    }
    snprintf(reader->archive_dir, sizeof(reader->archive_dir), "%s", archive_dir);
    reader->record = *record;
    /* A header of which a part lies before the limit is no frame. */
    reader->limit = limit - limit % AS_FRAME_ALIGNMENT;
    reader->end = end < reader->limit ? end : reader->limit;
    reader->window_length = ASI_WINDOW_LENGTH;
    reader->position = start;
    memset(reader->doubt_position, -1, sizeof(reader->doubt_position));
    memset(reader->range.doubt_position, -1, sizeof(reader->range.doubt_position));
    return reader;
}

/* Closes the reader after a failure. */
static as_result reader_begin(as_segment_reader *reader, const asi_file_ops *files, as_record_checksum checksum,
    int64_t recorded_limit, as_segment_reader **reader_out)
{
    const asi_segment_source source = asi_segment_source_of(files, reader->archive_dir, &reader->record);
    asi_segment_window_init(&reader->window, &source);
    const as_result result =
        reader->position < reader->end ? prepare(reader, checksum, reader->position, recorded_limit) : AS_OK;
    if (AS_OK != result)
    {
        as_segment_reader_close(reader);
        return result;
    }
    *reader_out = reader;
    return AS_OK;
}

as_result as_segment_reader_open(as_folder *folder, int64_t recording_id, int64_t start, int64_t end, int64_t limit,
    as_segment_reader **reader_out)
{
    const asi_folder_recording *recording;
    int64_t recorded_limit = limit;
    as_result result = asi_folder_find(folder, recording_id, &recording);
    if (AS_OK != result)
    {
        return result;
    }
    asi_catalog_record record = recording->record;
    result = asi_catalog_reread(folder->files, folder->path, &record);
    result = AS_OK == result ? check_range(folder, &record, start, end, limit, &recorded_limit) : result;
    if (AS_OK != result)
    {
        return result;
    }
    as_segment_reader *reader = reader_create(&record, folder->path, start, end, limit);
    return NULL == reader ? AS_E_INTERNAL : reader_begin(reader, folder->files, folder->checksum, recorded_limit, reader_out);
}

as_result as_segment_reader_open_bytes(const as_recording *recording, const as_segment_bytes *bytes, int64_t start, int64_t end,
    int64_t limit, as_segment_reader **reader_out)
{
    const asi_catalog_record record = { .state = ASI_RECORDING_VALID, .recording_id = recording->recording_id,
        .start_position = recording->start_position, .stop_position = recording->stop_position,
        .initial_term_id = recording->initial_term_id, .segment_file_length = recording->segment_file_length,
        .term_buffer_length = recording->term_buffer_length, .mtu_length = recording->mtu_length,
        .session_id = recording->session_id, .stream_id = recording->stream_id };
    as_result result = asi_recording_check_untrusted(&record);
    if (AS_OK != result)
    {
        return asi_fail_in(result, "%s", bytes->folder);
    }
    asi_segment_bytes *disk = malloc(sizeof(*disk));
    if (NULL == disk)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for a reader of recording %" PRId64, record.recording_id);
    }
    const as_recording_extent extent = { .start_position = record.start_position, .limit_position = record.stop_position };
    result = asi_segment_bytes_init(disk, bytes, &record);
    result = AS_OK == result ? check_inside(&record, bytes->folder, &extent, start, end, limit) : result;
    as_segment_reader *reader = AS_OK == result ? reader_create(&record, bytes->folder, start, end, limit) : NULL;
    if (NULL == reader)
    {
        free(disk);
        return AS_OK == result ? AS_E_INTERNAL : result;
    }
    reader->bytes = disk;
    return reader_begin(reader, &disk->files, bytes->checksum, record.stop_position, reader_out);
}

void as_segment_reader_close(as_segment_reader *reader)
{
    if (NULL != reader)
    {
        asi_segment_window_close(&reader->window);
        free(reader->bytes);
        free(reader);
    }
}

int64_t as_segment_reader_position(const as_segment_reader *reader) { return reader->position; }

as_record_checksum as_segment_reader_checksum(const as_segment_reader *reader) { return reader->checksum; }

static as_result fail_broken(const as_segment_reader *reader, int64_t position, asi_columns_fault fault)
{
    const asi_segment_source *source = &reader->window.source;
    switch (fault)
    {
        case ASI_FAULT_CHECKSUM:
            return asi_segment_fail(source, position, AS_CHECKSUM_CRC32 == reader->checksum ?
                "the frame does not match its CRC-32 checksum; restore the segment, or read without (recordChecksum=none) if it was "
                "recorded without" :
                "the frame does not match its CRC-32C checksum; restore the segment, or read without (recordChecksum=none) if it was "
                "recorded without");
        case ASI_FAULT_HEADER:
            return asi_segment_fail(
                source, position, "broken frame: its header is of another stream or position; restore the segment");
        case ASI_FAULT_MTU:
            return asi_segment_fail(source, position, ASI_SEGMENT_TOO_LONG);
        case ASI_FAULT_FRAGMENT:
            return asi_segment_fail(source, position, ASI_SEGMENT_TORN);
        case ASI_FAULT_PADDING:
            return asi_segment_fail(source, position, ASI_SEGMENT_LOST_TYPE);
        default:
            return asi_segment_fail(source, position, "broken frame: its length can't be; restore the segment");
    }
}

/* Skips padding that is not wholly in memory. */
static as_result pass_padding(as_segment_reader *reader, const uint8_t *frame)
{
    asi_frame_header header;
    asi_padding_verdict verdict = ASI_PADDING_EMPTY;
    memcpy(&header, frame, sizeof(header));
    const as_result result = asi_segment_judge_padding(&reader->window, &header, reader->position, reader->limit,
        reader->range.checksum, reader->record.session_id, &verdict);
    if (AS_OK != result)
    {
        return result;
    }
    if (ASI_PADDING_WAS_DATA == verdict)
    {
        return fail_broken(reader, reader->position, ASI_FAULT_PADDING);
    }
    if (ASI_PADDING_FILLED == verdict && reader->range.doubt_position[ASI_DOUBT_PADDING] < 0)
    {
        reader->range.doubt_position[ASI_DOUBT_PADDING] = reader->position;
    }
    reader->position += asi_frame_occupancy(header.frame_length);
    reader->range.before = ASI_BEFORE_PADDING;
    return AS_OK;
}

/* True if reading ends at the catalog's stop position. */
static bool is_end_of_recording(const as_segment_reader *reader)
{
    return reader->limit == reader->record.stop_position;
}

/* Nothing more can be loaded, and no whole message begins at the position. Either the message continues after the limit, or it
 * was never completed although its term was, or bytes are missing. */
static as_result judge_rest(as_segment_reader *reader, int64_t limit)
{
    asi_segment_walk walk = asi_segment_walk_start(&reader->window, reader->position, limit, true);
    asi_segment_step step;
    bool is_short = false;
    while (ASI_SEGMENT_FRAME == (step = asi_segment_walk_next(&walk)))
    {
        is_short = is_short || walk.frames.frame_length != reader->record.mtu_length;
    }
    if (ASI_SEGMENT_FAILED == step)
    {
        return walk.failure;
    }
    if (ASI_SEGMENT_GAP == step)
    {
        return asi_segment_fail(
            &reader->window.source, walk.position, "gap: no frame was recorded here; restore the segment, or read up to this position");
    }
    if (is_end_of_recording(reader) && walk.position < limit)
    {
        return asi_segment_fail(&reader->window.source, walk.position, "the recording's stopPosition lies inside this frame: "
            "restore the catalog, or the segment");
    }
    if (is_end_of_recording(reader) && is_short && reader->range.doubt_position[ASI_DOUBT_SHORT] < 0)
    {
        reader->range.doubt_position[ASI_DOUBT_SHORT] = reader->position;
    }
    reader->is_finished = true;
    return AS_OK;
}

/* Finds the position to continue at, after the columns took what they could from the piece. */
static as_result find_next(as_segment_reader *reader, const read_piece *piece, asi_columns_stop stop, bool has_moved,
    int64_t term_end)
{
    const int64_t end = piece->position + piece->length;
    const int64_t limit = reader->limit < term_end ? reader->limit : term_end;
    reader->window_length = has_moved ? ASI_WINDOW_LENGTH : reader->window_length;
    reader->is_window_due = false;
    if (reader->position >= reader->end || reader->position >= term_end || reader->position >= end)
    {
        return AS_OK;
    }
    const uint8_t *frame = piece->bytes + (reader->position - piece->position);
    const bool is_gap = ASI_COLUMNS_END == stop && asi_get_i32(frame) <= 0;
    if (is_gap || end >= limit)
    {
        return judge_rest(reader, limit);
    }
    /* The message continues after the piece. The next piece begins with it and is larger than the length that was too little. */
    const int64_t too_little = end - reader->position;
    reader->is_window_done = true;
    reader->is_window_due = !has_moved;
    reader->window_length = 2 * too_little > reader->window_length ? 2 * too_little : reader->window_length;
    return AS_OK;
}

/* Reads the next bytes after the existing values: no more than the buffer holds and than the rows are likely to need. Address and
 * length are multiples of the frame alignment, so that headers are whole. */
static as_result read_in_place(as_segment_reader *reader, const as_columns *columns, int64_t term_end, read_piece *piece)
{
    uint8_t *to = columns->value + columns->byte_count;
    const int64_t before = (int64_t)(-(uintptr_t)to & (AS_FRAME_ALIGNMENT - 1));
    const int64_t room = columns->byte_capacity - columns->byte_count - before;
    const int64_t likely = (columns->row_capacity - columns->row_count) * reader->row_length;
    int64_t length = room < PIECE_LENGTH ? room : PIECE_LENGTH;
    if (0 != reader->row_length && likely < length)
    {
        length = likely > MIN_PIECE_LENGTH ? likely : MIN_PIECE_LENGTH;
    }
    int64_t end = reader->position + length / AS_FRAME_ALIGNMENT * AS_FRAME_ALIGNMENT;
    end = end < term_end ? end : term_end;
    end = end < reader->limit ? end : reader->limit;
    *piece = (read_piece){ .bytes = to + before, .position = reader->position, .length = end - reader->position };
    return asi_segment_window_read(&reader->window, reader->position, piece->length, to + before);
}

static as_result next_piece(as_segment_reader *reader, const as_columns *columns, int64_t term_end, read_piece *piece)
{
    asi_segment_window *window = &reader->window;
    const bool is_in_window = !reader->is_window_done && reader->position >= window->position &&
        reader->position < asi_segment_window_end(window);
    const bool has_room = NULL != columns->value && columns->byte_capacity - columns->byte_count >= MIN_ROOM;
    if (!is_in_window && has_room && !reader->is_window_due)
    {
        return read_in_place(reader, columns, term_end, piece);
    }
    as_result result = AS_OK;
    if (!is_in_window)
    {
        result = asi_segment_window_load(window, reader->position, reader->window_length, reader->limit);
        reader->is_window_done = false;
    }
    *piece = (read_piece){ .bytes = window->buffer, .position = window->position, .length = window->length };
    return result;
}

/* Takes the rows of one piece. */
static as_result take_rows(as_segment_reader *reader, as_columns *columns, asi_columns_stop *stop)
{
    const int32_t term_length = (int32_t)reader->range.term_length;
    const int64_t begin = reader->position;
    const int64_t term_base = asi_term_base(begin, term_length);
    const int64_t row_count = columns->row_count;
    read_piece piece;
    const as_result result = next_piece(reader, columns, term_base + term_length, &piece);
    if (AS_OK != result)
    {
        return result;
    }
    asi_columns_range *range = &reader->range;
    const int64_t begin_limit = reader->end - term_base;
    /* Only the piece's part of the term may be accessed through it, hence no pointer arithmetic. */
    range->term = (const uint8_t *)((uintptr_t)piece.bytes - (uintptr_t)(piece.position - term_base));
    range->term_position = term_base;
    range->begin_limit = begin_limit < term_length ? begin_limit : term_length;
    range->data_limit = piece.position + piece.length - term_base;
    range->term_id = asi_segment_term_id(term_base, term_length, reader->record.initial_term_id);
    range->offset = begin - term_base;
    *stop = asi_columns_append(range, columns);
    reader->position = term_base + range->offset;
    if (columns->row_count > row_count)
    {
        reader->row_length = (reader->position - begin) / (columns->row_count - row_count);
    }
    switch (*stop)
    {
        case ASI_COLUMNS_BROKEN:
            return fail_broken(reader, term_base + range->fault_offset, range->fault);
        case ASI_COLUMNS_FULL:
            return AS_OK;
        case ASI_COLUMNS_TOO_LARGE:
            return asi_fail(AS_E_USAGE, 0,
                "recording %" PRId64 " at position %" PRId64 ": the message has %" PRId64 " bytes, the columns "
                "hold %" PRId64, reader->record.recording_id, reader->position, range->needed_bytes, columns->byte_capacity);
        case ASI_COLUMNS_PADDING:
            return pass_padding(reader, piece.bytes + (reader->position - piece.position));
        case ASI_COLUMNS_PARTIAL:
        case ASI_COLUMNS_END:
            break;
    }
    return find_next(reader, &piece, *stop, reader->position > begin, term_base + term_length);
}

/* Fails unless the recording still exists, `begin` is at or after its start, and it reaches `position`. */
static as_result check_still_there(as_segment_reader *reader, int64_t begin, int64_t position)
{
    asi_catalog_record *record = &reader->record;
    const as_result result =
        NULL != reader->bytes ? AS_OK : asi_catalog_reread(reader->window.source.files, reader->archive_dir, record);
    const int64_t stop = record->stop_position;
    if (AS_OK == result && AS_NULL_VALUE != stop && position > stop)
    {
        return asi_fail(AS_E_DATA, 0,
            "recording %" PRId64 " of %s was truncated to position %" PRId64 " while it was read up to position %"
            PRId64 "; read it again", record->recording_id, reader->archive_dir, stop, position);
    }
    if (AS_OK == result && begin < record->start_position)
    {
        return asi_fail(AS_E_DATA, 0,
            "recording %" PRId64 " of %s starts at position %" PRId64 " since segments were purged or detached while it was read "
            "from position %" PRId64 "; read it from there", record->recording_id, reader->archive_dir, record->start_position,
            begin);
    }
    return result;
}

/* Checks a recording that stops where reading ends: no frame may follow. */
static void judge_end(as_segment_reader *reader)
{
    const int64_t stop = reader->limit;
    if (reader->was_end_judged || reader->end != stop || !is_end_of_recording(reader))
    {
        return;
    }
    reader->was_end_judged = true;
    /* Test before the entry is read again: an extension removes the stop position first. */
    if (asi_segment_has_frame_at(&reader->window, stop) && AS_OK == check_still_there(reader, INT64_MAX, stop) &&
        is_end_of_recording(reader))
    {
        add_doubt(reader, ASI_DOUBT_BEHIND_STOP, stop);
    }
}

bool as_segment_reader_doubt(as_segment_reader *reader, as_doubt *doubt)
{
    for (int kind = 0; kind < ASI_RECORDING_DOUBTS; kind++)
    {
        const int64_t position =
            kind < ASI_DOUBTS ? reader->range.doubt_position[kind] : reader->doubt_position[kind];
        if (position >= 0 && !reader->was_doubt_reported[kind])
        {
            reader->was_doubt_reported[kind] = true;
            *doubt = (as_doubt){ .position = position };
            snprintf(doubt->text, sizeof(doubt->text), "recording %" PRId64 " at position %" PRId64 ": %s",
                reader->record.recording_id, position, asi_doubt_text(kind));
            return true;
        }
    }
    return false;
}

/* Reason why the rest can't be read: the removal of bytes meanwhile, else the failure itself. */
static as_result explain(as_segment_reader *reader, as_result failure)
{
    char text[1024];
    const int32_t code = as_error_code();
    snprintf(text, sizeof(text), "%s", as_error_text());
    const as_result changed = AS_E_DATA == failure ? check_still_there(reader, reader->position, reader->limit) : AS_OK;
    return AS_E_DATA == changed ? changed : asi_fail(failure, code, "%s", text);
}

/* Columns with much space end before it is used up, unless the range ends in it: the rest would be read through the window, and the
 * next columns' first values, too, which is a copy of each. */
static bool is_nearly_full(const as_segment_reader *reader, const as_columns *columns)
{
    const int64_t room = columns->byte_capacity - columns->byte_count;
    return NULL != columns->value && columns->byte_capacity >= LARGE_COLUMNS && columns->row_count > 0 && room < MIN_ROOM &&
        reader->end - reader->position > room;
}

as_result as_segment_reader_next(as_segment_reader *reader, as_columns *columns)
{
    if (columns->row_capacity <= 0 || columns->byte_capacity < 0 || columns->byte_capacity > INT32_MAX)
    {
        return asi_fail(AS_E_USAGE, 0,
            "columns for %" PRId64 " rows and %" PRId64 " bytes: at least one row and at most %d bytes are "
            "possible", columns->row_capacity, columns->byte_capacity, INT32_MAX);
    }
    columns->row_count = 0;
    columns->byte_count = 0;
    if (NULL != columns->value_offset)
    {
        columns->value_offset[0] = 0;
    }
    if (reader->position >= reader->end || reader->is_finished)
    {
        judge_end(reader);
        return AS_OK;
    }
    asi_columns_stop stop = ASI_COLUMNS_END;
    while (ASI_COLUMNS_FULL != stop && reader->position < reader->end && !reader->is_finished && !is_nearly_full(reader, columns))
    {
        const as_result result = take_rows(reader, columns, &stop);
        if (AS_OK != result)
        {
            return explain(reader, result);
        }
    }
    /* Bytes purged after they were read are complete: only the end must be checked. */
    return check_still_there(reader, INT64_MAX, reader->position);
}

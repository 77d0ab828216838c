/* Reads the bytes of a catalog, which are untrusted input; see catalog.h. */
#include "store/catalog_scan.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "store/catalog_format.h"
#include "store/segment_layout.h"

#define MAX_ALIGNMENT 4096

asi_text asi_text_of(const char *terminated)
{
    return (asi_text){ .at = terminated, .length = (int32_t)strlen(terminated) };
}

static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return NULL == slash ? 0 : (int)(slash - path);
}

as_result asi_catalog_scan_start_untrusted(asi_catalog_scan *scan, const uint8_t *bytes, int64_t length, const char *path)
{
    if (length < ASI_CATALOG_HEADER_LENGTH)
    {
        return asi_fail(AS_E_DATA, 0, "%s has %" PRId64 " bytes, too few for a catalog: it is truncated, restore it from a copy",
            path, length);
    }
    const int32_t version = asi_get_i32(bytes + CATALOG_VERSION);
    if (ASI_ARCHIVE_STORAGE_MAJOR(version) != ASI_ARCHIVE_STORAGE_MAJOR(ASI_ARCHIVE_STORAGE_VERSION))
    {
        return asi_fail(AS_E_DATA, 0,
            "%s: incompatible catalog file version %d.%d.%d, archive software is %d.%d.%d; if it is the "
            "catalog of an older archive, on a copy: aeron-spark archive migrate %.*s --yes", path, version >> 16,
            (version >> 8) & 0xFF, version & 0xFF, ASI_ARCHIVE_STORAGE_MAJOR(ASI_ARCHIVE_STORAGE_VERSION),
            (ASI_ARCHIVE_STORAGE_VERSION >> 8) & 0xFF, ASI_ARCHIVE_STORAGE_VERSION & 0xFF, folder_length(path), path);
    }
    const int32_t header_length = asi_get_i32(bytes + CATALOG_LENGTH);
    const int32_t alignment = asi_get_i32(bytes + CATALOG_RECORD_ALIGNMENT);
    const int64_t next_recording_id = asi_get_i64(bytes + CATALOG_NEXT_RECORDING_ID);
    if (ASI_CATALOG_HEADER_LENGTH != header_length || !asi_is_power_of_two(alignment) || alignment < 32 || alignment > MAX_ALIGNMENT ||
        next_recording_id < 0 || INT64_MAX == next_recording_id)
    {
        return asi_fail(AS_E_DATA, 0,
            "%s is no catalog or its header is damaged: length=%d alignment=%d nextRecordingId=%" PRId64,
            path, header_length, alignment, next_recording_id);
    }
    *scan = (asi_catalog_scan){ .bytes = bytes, .length = length, .path = path, .version = version, .alignment = alignment,
        .next_recording_id = next_recording_id, .offset = ASI_CATALOG_HEADER_LENGTH, .last_recording_id = -1 };
    return AS_OK;
}

/* Decodes a text at *at and moves *at past it; false if it passes `end`. */
static bool take_text(const uint8_t **at, const uint8_t *end, asi_text *text)
{
    if (end - *at < 4)
    {
        return false;
    }
    const int32_t length = asi_get_i32(*at);
    if (length < 0 || length > end - *at - 4)
    {
        return false;
    }
    *text = (asi_text){ .at = (const char *)*at + 4, .length = length };
    *at += 4 + length;
    return true;
}

bool asi_catalog_parse_untrusted(const uint8_t *frame, int64_t frame_length, asi_catalog_record *record)
{
    if (frame_length < RECORD_TEXTS + 12)
    {
        return false;
    }
    const uint8_t *at = frame + RECORD_TEXTS;
    const uint8_t *end = frame + frame_length;
    asi_catalog_record parsed = {
        .control_session_id = asi_get_i64(frame + RECORD_CONTROL_SESSION_ID),
        .correlation_id = asi_get_i64(frame + RECORD_CORRELATION_ID),
        .recording_id = asi_get_i64(frame + RECORD_RECORDING_ID),
        .start_timestamp_ms = asi_get_i64(frame + RECORD_START_TIMESTAMP),
        .stop_timestamp_ms = asi_get_i64(frame + RECORD_STOP_TIMESTAMP),
        .start_position = asi_get_i64(frame + RECORD_START_POSITION),
        .stop_position = asi_get_i64(frame + RECORD_STOP_POSITION),
        .initial_term_id = asi_get_i32(frame + RECORD_INITIAL_TERM_ID),
        .segment_file_length = asi_get_i32(frame + RECORD_SEGMENT_FILE_LENGTH),
        .term_buffer_length = asi_get_i32(frame + RECORD_TERM_BUFFER_LENGTH),
        .mtu_length = asi_get_i32(frame + RECORD_MTU_LENGTH),
        .session_id = asi_get_i32(frame + RECORD_SESSION_ID),
        .stream_id = asi_get_i32(frame + RECORD_STREAM_ID),
        .state = asi_get_i32(frame + RECORD_STATE),
        .checksum = asi_get_i32(frame + RECORD_CHECKSUM),
        .descriptor = frame + RECORD_RECORDING_ID,
        .descriptor_length = (int32_t)(frame_length - RECORD_RECORDING_ID),
        .frame_length = frame_length,
    };
    if (!take_text(&at, end, &parsed.stripped_channel) || !take_text(&at, end, &parsed.original_channel) ||
        !take_text(&at, end, &parsed.source_identity))
    {
        return false;
    }
    *record = parsed;
    return true;
}

/* True if bytes outside the known records look like a record with an id in (after, below). Other bytes at a multiple of the
 * alignment do not look like one, because a record's header has 20 reserved zero bytes. */
static bool is_record_like(const uint8_t *at, int64_t left, int64_t after, int64_t below)
{
    static const uint8_t reserved[RECORD_BODY - RECORD_CHECKSUM - 4] = { 0 };
    asi_catalog_record record;
    const int32_t length = asi_get_i32(at + RECORD_LENGTH);
    const int32_t state = asi_get_i32(at + RECORD_STATE);
    return (length > 0 || ASI_RECORDING_VALID == state) && state >= ASI_RECORDING_INVALID && state <= ASI_RECORDING_DELETED &&
        0 == memcmp(at + RECORD_CHECKSUM + 4, reserved, sizeof(reserved)) && asi_catalog_parse_untrusted(at, left, &record) &&
        record.recording_id > after && record.recording_id < below && asi_is_power_of_two(record.term_buffer_length);
}

int64_t asi_catalog_find_record_like(const asi_catalog_scan *scan, int64_t from, int64_t to, int64_t after)
{
    for (int64_t at = from; at < to && scan->length - at >= RECORD_TEXTS + 12; at += ASI_CATALOG_RECORD_HEADER_LENGTH)
    {
        if (is_record_like(scan->bytes + at, scan->length - at, after, scan->next_recording_id))
        {
            return at;
        }
    }
    return -1;
}

as_result asi_catalog_scan_check_end_untrusted(const asi_catalog_scan *scan)
{
    /* Usually every id has been found: then no record can follow. */
    const bool may_lack = scan->last_recording_id + 1 < scan->next_recording_id;
    const int64_t found = may_lack ? asi_catalog_find_record_like(scan, scan->offset, scan->length, scan->last_recording_id) : -1;
    return found < 0 ? AS_OK : asi_fail(AS_E_DATA, 0, "%s is damaged: it ends at offset %" PRId64 " (after recording %" PRId64
        "), but there is a record behind that, at offset %" PRId64 "; restore it from a copy", scan->path, scan->offset,
        scan->last_recording_id, found);
}

int64_t asi_catalog_padding_of(const asi_catalog_scan *scan, const asi_catalog_record *record)
{
    const char *texts_end = record->source_identity.at + record->source_identity.length;
    return scan->offset +
        asi_align_i64((const uint8_t *)texts_end - scan->bytes - scan->offset, ASI_CATALOG_RECORD_HEADER_LENGTH);
}

/* A record with a corrupted, larger length covers the records after it as padding. A replaced record may have padding too. */
static as_result check_padding(const asi_catalog_scan *scan, const asi_catalog_record *record)
{
    const int64_t end = scan->offset + record->frame_length;
    const int64_t found =
        asi_catalog_find_record_like(scan, asi_catalog_padding_of(scan, record), end, record->recording_id);
    return found < 0 ? AS_OK : asi_fail(AS_E_DATA, 0, "%s is damaged: the record of recording %" PRId64 " at offset %" PRId64
        " has %" PRId64 " bytes and takes in another one, at offset %" PRId64 "; restore it from a copy", scan->path,
        record->recording_id, scan->offset, record->frame_length, found);
}

as_result asi_catalog_scan_next_untrusted(asi_catalog_scan *scan, asi_catalog_record *record)
{
    const int64_t left = scan->length - scan->offset;
    const int32_t length = left >= (int64_t)sizeof(length) ? asi_get_i32(scan->bytes + scan->offset + RECORD_LENGTH) : 0;
    if (length <= 0)
    {
        return AS_AGAIN;
    }
    const int64_t frame_length = asi_align_i64((int64_t)length + ASI_CATALOG_RECORD_HEADER_LENGTH, scan->alignment);
    if (frame_length > RECORD_MAX_LENGTH)
    {
        return asi_fail(AS_E_DATA, 0, "%s is damaged: the record at offset %" PRId64 " (after recording %" PRId64 ") has %" PRId64
            " bytes, none has more than %d; restore it from a copy", scan->path, scan->offset, scan->last_recording_id,
            frame_length, RECORD_MAX_LENGTH);
    }
    if (frame_length > left)
    {
        return asi_fail(AS_E_DATA, 0,
            "%s is truncated: the record at offset %" PRId64 " (after recording %" PRId64 ") has %" PRId64
            " bytes, the file %" PRId64 " more; restore it from a copy", scan->path, scan->offset, scan->last_recording_id,
            frame_length, left);
    }
    asi_catalog_record parsed;
    if (!asi_catalog_parse_untrusted(scan->bytes + scan->offset, frame_length, &parsed))
    {
        return asi_fail(AS_E_DATA, 0,
            "%s is damaged: the record at offset %" PRId64 " (after recording %" PRId64 ") is no recording "
            "descriptor; restore it from a copy", scan->path, scan->offset, scan->last_recording_id);
    }
    if (ASI_RECORDING_VALID == parsed.state && parsed.recording_id <= scan->last_recording_id)
    {
        return asi_fail(AS_E_DATA, 0, "%s is damaged: recording %" PRId64 " at offset %" PRId64 " comes after recording %" PRId64
            ", ids must increase; restore it from a copy", scan->path, parsed.recording_id, scan->offset, scan->last_recording_id);
    }
    if (INT64_MAX == parsed.recording_id) /* no next one would follow */
    {
        return asi_fail(AS_E_DATA, 0, "%s is damaged: the record at offset %" PRId64 " (after recording %" PRId64 ") has the id %"
            PRId64 ", which no archive gives; restore it from a copy", scan->path, scan->offset, scan->last_recording_id,
            parsed.recording_id);
    }
    const as_result checked = check_padding(scan, &parsed);
    if (AS_OK != checked)
    {
        return checked;
    }
    parsed.offset = scan->offset;
    scan->offset += frame_length;
    scan->last_recording_id = parsed.recording_id > scan->last_recording_id ? parsed.recording_id : scan->last_recording_id;
    *record = parsed;
    return AS_OK;
}

static as_result fail_field(const asi_catalog_record *record, const char *field, int64_t value, const char *rule)
{
    return asi_fail(AS_E_DATA, 0, "catalog entry of recording %" PRId64 " is damaged: %s=%" PRId64 " must be %s; restore the catalog, "
        "or hide it: aeron-spark archive mark-invalid FOLDER %" PRId64, record->recording_id, field, value, rule,
        record->recording_id);
}

as_result asi_recording_check_untrusted(const asi_catalog_record *record)
{
    const int32_t term = record->term_buffer_length;
    const int32_t segment = record->segment_file_length;
    if (!asi_is_power_of_two(term) || term < AS_TERM_MIN_LENGTH || term > AS_TERM_MAX_LENGTH)
    {
        return fail_field(record, "termBufferLength", term, "a power of two from 65536 to 1073741824");
    }
    if (!asi_is_power_of_two(segment) || segment < term || segment > ASI_SEGMENT_MAX_LENGTH)
    {
        return fail_field(record, "segmentFileLength", segment, "a power of two from the term length to 1073741824");
    }
    const int32_t mtu = record->mtu_length;
    if (mtu < AS_FRAME_HEADER_LENGTH || mtu > AS_MAX_UDP_PAYLOAD_LENGTH || 0 != mtu % AS_FRAME_ALIGNMENT)
    {
        return fail_field(record, "mtuLength", mtu, "a multiple of 32 from 32 to 65504");
    }
    if (record->state < ASI_RECORDING_INVALID || record->state > ASI_RECORDING_DELETED)
    {
        return fail_field(record, "state", record->state, "0 (INVALID), 1 (VALID) or 2 (DELETED)");
    }
    const int64_t max_position = (int64_t)term << 31;
    const int64_t start = record->start_position;
    const int64_t stop = record->stop_position;
    if (start < 0 || start > max_position || 0 != start % AS_FRAME_ALIGNMENT)
    {
        return fail_field(record, "startPosition", start, "a multiple of 32 from 0 to the maximum position");
    }
    if (AS_NULL_VALUE != stop && (stop < start || stop > max_position || 0 != stop % AS_FRAME_ALIGNMENT))
    {
        return fail_field(record, "stopPosition", stop, "-1 or a multiple of 32 from startPosition to the maximum position");
    }
    return AS_OK;
}

typedef struct records_walk
{
    int64_t offset;  /* of the next record, or the end of the records */
    int64_t last_id; /* the highest so far; -1 before the first */
} records_walk;

/* Walks the record lengths that are loaded; true where they end. */
static bool have_records_ended(records_walk *walk, const uint8_t *bytes, int64_t length)
{
    const int32_t alignment = length >= ASI_CATALOG_HEADER_LENGTH ? asi_get_i32(bytes + CATALOG_RECORD_ALIGNMENT) : 0;
    const bool is_known = asi_is_power_of_two(alignment) && alignment <= MAX_ALIGNMENT; /* not a power of two before version 3 */
    while (is_known && walk->offset + RECORD_RECORDING_ID + (int64_t)sizeof(int64_t) <= length)
    {
        const int32_t record_length = asi_get_i32(bytes + walk->offset);
        if (record_length <= 0 || record_length > RECORD_MAX_LENGTH)
        {
            return true;
        }
        const int64_t id = asi_get_i64(bytes + walk->offset + RECORD_RECORDING_ID);
        walk->last_id = id > walk->last_id ? id : walk->last_id;
        walk->offset += asi_align_i64((int64_t)record_length + ASI_CATALOG_RECORD_HEADER_LENGTH, alignment);
    }
    return false;
}

/* Whether nothing that a reader looks at follows: every id has been found (see asi_catalog_scan_check_end_untrusted), or the records
 * ended long ago. */
static bool is_enough(records_walk *walk, const uint8_t *bytes, int64_t length)
{
    if (!have_records_ended(walk, bytes, length))
    {
        return false;
    }
    const int64_t next_id = asi_get_i64(bytes + CATALOG_NEXT_RECORDING_ID);
    return next_id <= 0 || walk->last_id >= next_id - 1 || length - walk->offset > READ_CHUNK;
}

as_result asi_catalog_fail_open(const char *archive_dir, const char *path, int error)
{
    if (-ENOENT != error && -ENOTDIR != error)
    {
        return asi_fail_errno(AS_E_STORAGE, -error, "cannot open %s", path);
    }
    return asi_fail(AS_E_DATA, -error,
        "%s is no archive folder: %s; give the directory that the archive was started with (aeron.archive.dir)", archive_dir,
        -ENOTDIR == error ? "it, or a part of that path, is a file" : "there is no " ASI_CATALOG_FILE " in it");
}

as_result asi_catalog_read(const asi_file_ops *files, int fd, const char *path, uint8_t **bytes_out, int64_t *length_out)
{
    uint8_t *bytes = NULL;
    int64_t length = 0;
    records_walk walk = { .offset = ASI_CATALOG_HEADER_LENGTH, .last_id = -1 };
    for (int64_t chunk = FIRST_CHUNK;; chunk = READ_CHUNK)
    {
        uint8_t *grown = realloc(bytes, (size_t)(length + chunk));
        if (NULL == grown)
        {
            free(bytes);
            return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for %s", path);
        }
        bytes = grown;
        const int64_t count = asi_file_read_full(files, fd, bytes + length, chunk, length);
        if (count < 0)
        {
            free(bytes);
            return asi_fail_errno(AS_E_STORAGE, (int)-count, "cannot read %s", path);
        }
        const bool is_zero = count > 0 && asi_bytes_are_zero(bytes + length, count);
        length += count;
        /* Drop the rest of a sparse file, because a zero length ends the scan. */
        if (count < chunk || is_zero || is_enough(&walk, bytes, length) || length > ASI_CATALOG_MAX_CAPACITY)
        {
            *bytes_out = bytes;
            *length_out = length;
            return AS_OK;
        }
    }
}

void asi_catalog_report_damage(const asi_catalog_params *params)
{
    if (NULL != params->on_damage)
    {
        params->on_damage(params->damage_context, as_error_text());
    }
}

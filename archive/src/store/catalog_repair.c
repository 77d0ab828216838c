/* Repairs a catalog after a crash; see catalog.h.
 *
 * With a sync level above 0, only checksums can need repair, because a record's header is written after its body is durable.
 * Without sync, a power failure may keep a header but lose the body or the next id. A killed process leaves at most a field that
 * is newer than its checksum. A record without body (no term length, an id out of order) is removed if it is the last one.
 * Otherwise it is hidden (INVALID), because ids and later records must not move. A record with a body stays even if its values
 * are impossible, because it may have segments.
 *
 * A power failure may also bring back a longer version of a record, whose padding holds records that were written there since. What
 * looks like a record of this catalog ends that padding. Other bytes in it, or behind the end, are cleared: their ids are not
 * assigned as far as this catalog knows, and once they are, the bytes would look like a record. */
#include "store/catalog_repair.h"

#include <inttypes.h>
#include <string.h>

#include "store/catalog_format.h"
#include "store/catalog_scan.h"
#include "store/checksum.h"

#define CLEAR_STEP 4096

typedef struct repair
{
    const asi_catalog_params *params;
    const asi_file_ops *files;
    int fd;
    const char *path;
    uint8_t *bytes;
    int64_t length;
} repair;

static as_result put(const repair *at, int64_t offset, const void *from, int64_t length)
{
    const int error = asi_file_write_all(at->files, at->fd, from, length, offset);
    if (0 != error)
    {
        return asi_fail_errno(AS_E_STORAGE, -error, "cannot repair %s", at->path);
    }
    memcpy(at->bytes + offset, from, (size_t)length);
    return AS_OK;
}

static bool is_last(const repair *at, int64_t next)
{
    return next + (int64_t)sizeof(int32_t) > at->length || asi_get_i32(at->bytes + next) <= 0;
}

/* Hides the record at `offset` from readers. */
static as_result hide(const repair *at, int64_t offset, int64_t frame_length, int64_t last_id)
{
    uint8_t header[ASI_CATALOG_RECORD_HEADER_LENGTH] = { 0 };
    const as_result damage = asi_fail(AS_E_DATA, 0, "%s: the record at offset %" PRId64 " (after recording %" PRId64 ") is none, a "
        "crash has left it half written; it is not listed any more", at->path, offset, last_id);
    (void)damage; /* the text is what counts */
    asi_catalog_report_damage(at->params);
    if (frame_length > at->length - offset || is_last(at, offset + frame_length))
    {
        return put(at, offset, header, sizeof(header));
    }
    /* Tools scan all records, so the hidden one gets the previous record's id and terminated texts. */
    static const uint8_t no_texts[12] = { 0 };
    const int64_t id = last_id < 0 ? 0 : last_id;
    const int32_t state = ASI_RECORDING_INVALID;
    as_result result = put(at, offset + RECORD_STATE, &state, sizeof(state));
    result = AS_OK == result ? put(at, offset + RECORD_RECORDING_ID, &id, sizeof(id)) : result;
    return AS_OK == result ? put(at, offset + RECORD_TEXTS, no_texts, sizeof(no_texts)) : result;
}

/* Clears [from, to), which belongs to no record. */
static as_result clear(const repair *at, int64_t from, int64_t to)
{
    static const uint8_t zeros[CLEAR_STEP] = { 0 };
    as_result result = AS_OK;
    for (int64_t offset = from; AS_OK == result && offset < to; offset += CLEAR_STEP)
    {
        const int64_t count = to - offset < CLEAR_STEP ? to - offset : CLEAR_STEP;
        result = asi_bytes_are_zero(at->bytes + offset, count) ? AS_OK : put(at, offset, zeros, count);
    }
    return result;
}

/* Clears the padding of the record at scan->offset and returns in *frame_length where it ends: before the next record. */
static as_result settle_padding(
    const repair *at, const asi_catalog_scan *scan, const asi_catalog_record *record, int64_t *frame_length)
{
    const int64_t padding = asi_catalog_padding_of(scan, record);
    const int64_t found =
        asi_catalog_find_record_like(scan, padding, scan->offset + record->frame_length, record->recording_id);
    *frame_length = record->frame_length;
    if (found >= 0 && 0 == (found - scan->offset) % scan->alignment)
    {
        const as_result damage = asi_fail(AS_E_DATA, 0, "%s: the record of recording %" PRId64 " at offset %" PRId64 " had %" PRId64
            " bytes and took in another one, at offset %" PRId64 "; a crash has left an old length, it ends before that now", at->path,
            record->recording_id, scan->offset, record->frame_length, found);
        (void)damage; /* the text is what counts */
        asi_catalog_report_damage(at->params);
        *frame_length = found - scan->offset;
        const int32_t length = (int32_t)(*frame_length - ASI_CATALOG_RECORD_HEADER_LENGTH);
        const as_result result = put(at, scan->offset + RECORD_LENGTH, &length, sizeof(length));
        return AS_OK == result ? clear(at, padding, found) : result;
    }
    return found >= 0 ? AS_OK : clear(at, padding, scan->offset + record->frame_length);
}

static as_result refresh_checksum(const repair *at, int64_t offset, asi_frame_checksum checksum)
{
    const uint8_t *frame = at->bytes + offset;
    if (NULL == checksum)
    {
        return AS_OK;
    }
    const uint32_t value = checksum(frame + RECORD_BODY, asi_get_i32(frame + RECORD_LENGTH));
    return value == (uint32_t)asi_get_i32(frame + RECORD_CHECKSUM) ? AS_OK :
        put(at, offset + RECORD_CHECKSUM, &value, sizeof(value));
}

as_result asi_catalog_repair(const asi_catalog_params *params, int fd, const char *path, uint8_t *bytes, int64_t length,
    int32_t alignment)
{
    const repair at =
        { .params = params, .files = params->files, .fd = fd, .path = path, .bytes = bytes, .length = length };
    const asi_frame_checksum checksum = asi_checksum_function(params->checksum);
    /* With the next id as it was found. */
    asi_catalog_scan scan;
    as_result result = asi_catalog_scan_start_untrusted(&scan, bytes, length, path);
    int64_t last_id = -1;
    int64_t offset = ASI_CATALOG_HEADER_LENGTH;
    while (AS_OK == result && !is_last(&at, offset))
    {
        int64_t frame_length =
            asi_align_i64((int64_t)asi_get_i32(bytes + offset) + ASI_CATALOG_RECORD_HEADER_LENGTH, alignment);
        asi_catalog_record record;
        const bool is_parsed = frame_length <= length - offset && frame_length >= RECORD_TEXTS + 12 &&
            asi_catalog_parse_untrusted(bytes + offset, frame_length, &record);
        const bool is_valid = is_parsed && ASI_RECORDING_VALID == record.state;
        if (!is_parsed || (is_valid && (record.recording_id <= last_id || 0 == record.term_buffer_length)))
        {
            result = hide(&at, offset, frame_length, last_id);
        }
        else
        {
            last_id = record.recording_id > last_id ? record.recording_id : last_id;
            scan.offset = offset;
            result = is_valid ? settle_padding(&at, &scan, &record, &frame_length) : AS_OK;
            result = is_valid && AS_OK == result ? refresh_checksum(&at, offset, checksum) : result;
        }
        offset += asi_get_i32(bytes + offset) > 0 ? frame_length : 0; /* the last one is hidden by an end */
    }
    if (AS_OK == result && asi_catalog_find_record_like(&scan, offset, length, last_id) < 0)
    {
        result = clear(&at, offset, length);
    }
    if (AS_OK != result)
    {
        return result;
    }
    /* A negative length ends a catalog as zero does, but remains of a replaced record must not stay there. */
    static const uint8_t end[ASI_CATALOG_RECORD_HEADER_LENGTH] = { 0 };
    const int64_t left = length - offset;
    if (left >= (int64_t)sizeof(int32_t) && asi_get_i32(bytes + offset) < 0)
    {
        result = put(&at, offset, end, left < (int64_t)sizeof(end) ? left : (int64_t)sizeof(end));
        if (AS_OK != result)
        {
            return result;
        }
    }
    const int64_t next_id = last_id + 1;
    return asi_get_i64(bytes + CATALOG_NEXT_RECORDING_ID) >= next_id ? AS_OK :
        put(&at, CATALOG_NEXT_RECORDING_ID, &next_id, sizeof(next_id));
}

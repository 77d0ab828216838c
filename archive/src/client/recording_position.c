/* Finds and reads the counters of active recordings. Spec: 08 §3, §15 (type 100).
 *
 *   key: 0 i64 recordingId | 8 i32 sessionId | 12 i32 L | 16 L bytes source identity | 16+L i64 archiveId (unaligned)
 *
 * Checks every counter id; the stock finders end at the first unused record, or before the last one. Thread rule: any thread. */
#include <errno.h>
#include <string.h>

#include "aeron_spark/as_archive.h"
#include "base/bits.h"
#include "base/result.h"
#include "shm/counters.h"

#define KEY_SESSION_ID 8
#define KEY_SOURCE_LENGTH 12
#define KEY_SOURCE 16
#define SOURCE_MAX_LENGTH (ASI_COUNTER_KEY_CAPACITY - KEY_SOURCE - (int32_t)sizeof(int64_t))

static bool read_recording(const as_client *client, int32_t counter_id, as_counter_row *row)
{
    return counter_id >= 0 && AS_OK == as_client_counter(client, counter_id, row) &&
        ASI_COUNTER_TYPE_RECORDING_POSITION == row->type_id;
}

/* -1: the key is not that of a recording position counter. */
static int32_t source_length(const as_counter_row *row)
{
    const int32_t length = asi_get_i32(row->key + KEY_SOURCE_LENGTH);
    return length >= 0 && length <= SOURCE_MAX_LENGTH ? length : -1;
}

static bool is_of_archive(const as_counter_row *row, int64_t archive_id)
{
    if (AS_NULL_VALUE == archive_id)
    {
        return true;
    }
    const int32_t length = source_length(row);
    return length >= 0 && asi_get_i64(row->key + KEY_SOURCE + length) == archive_id;
}

int32_t as_recording_position_find(const as_client *client, int64_t recording_id, int64_t archive_id)
{
    as_counter_row row;
    for (int32_t id = 0; id <= as_client_max_counter_id(client); id++)
    {
        if (read_recording(client, id, &row) && asi_get_i64(row.key) == recording_id && is_of_archive(&row, archive_id))
        {
            return id;
        }
    }
    return AS_NULL_VALUE;
}

int32_t as_recording_position_find_by_session(const as_client *client, int32_t session_id, int64_t archive_id)
{
    as_counter_row row;
    for (int32_t id = 0; id <= as_client_max_counter_id(client); id++)
    {
        if (read_recording(client, id, &row) && asi_get_i32(row.key + KEY_SESSION_ID) == session_id &&
            is_of_archive(&row, archive_id))
        {
            return id;
        }
    }
    return AS_NULL_VALUE;
}

bool as_recording_position_is_active(const as_client *client, int32_t counter_id, int64_t recording_id)
{
    as_counter_row row;
    return read_recording(client, counter_id, &row) && asi_get_i64(row.key) == recording_id;
}

int64_t as_recording_position_recording_id(const as_client *client, int32_t counter_id)
{
    as_counter_row row;
    return read_recording(client, counter_id, &row) ? asi_get_i64(row.key) : AS_NULL_VALUE;
}

as_result as_recording_position_source_identity(
    const as_client *client, int32_t counter_id, char *source_identity, int64_t capacity)
{
    as_counter_row row;
    const int32_t length = read_recording(client, counter_id, &row) ? source_length(&row) : -1;
    if (length < 0)
    {
        return AS_AGAIN;
    }
    if (length >= capacity)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "a source identity of %d bytes does not fit into %d, give 113", length, (int)capacity);
    }
    memcpy(source_identity, row.key + KEY_SOURCE, (size_t)length);
    source_identity[length] = '\0';
    return AS_OK;
}

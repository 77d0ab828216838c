/* Encodes and decodes a time index and searches its slots; see time_index.h. */
#include "store/time_index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "store/checksum.h"

#define MAGIC INT64_C(0x31584449454D4954) /* "TIMEIDX1" */
#define IS_REBUILT 1u
#define LENGTH_MASK 0xFFFFFFE0u
#define HEADER_ATTEMPTS 5
#define MAX_SLOTS (INT64_MAX / (2 * ASI_TIME_INDEX_ENTRY_LENGTH))
#define MAX_GAP_SLOTS (1 << 16)

as_result asi_time_index_path(char *to, size_t capacity, const char *dir, int64_t recording_id)
{
    const int length = snprintf(to, capacity, "%s/%" PRId64 ASI_TIME_INDEX_SUFFIX, dir, recording_id);
    return length > 0 && (size_t)length < capacity ? AS_OK :
        asi_fail(AS_E_USAGE, ENAMETOOLONG, "archive folder name is too long: %s", dir);
}

bool asi_time_index_name_parse(const char *name, int64_t *recording_id)
{
    int64_t value = 0;
    const char *at = name;
    for (; *at >= '0' && *at <= '9' && value <= (INT64_MAX - 9) / 10; at++)
    {
        value = value * 10 + (*at - '0');
    }
    if (at == name || 0 != strcmp(at, ASI_TIME_INDEX_SUFFIX))
    {
        return false;
    }
    *recording_id = value;
    return true;
}

/* -- bytes ---------------------------------------------------------------------------------------------------------------- */

void asi_time_header_encode(const asi_time_header *header, uint8_t *to)
{
    memset(to, 0, ASI_TIME_INDEX_HEADER_LENGTH);
    asi_put_i64(to, MAGIC);
    asi_put_i32(to + 8, ASI_TIME_INDEX_VERSION);
    asi_put_i32(to + 12, ASI_TIME_INDEX_ENTRY_LENGTH);
    asi_put_i64(to + 16, header->recording_id);
    asi_put_i64(to + 24, header->era.control_session_id);
    asi_put_i64(to + 32, header->era.correlation_id);
    asi_put_i32(to + 40, header->era.session_id);
    asi_put_i64(to + 48, header->first_slot);
    asi_put_i32(to + 56, (int32_t)header->interval_ms);
    asi_put_i32(to + 60, (int32_t)asi_crc32c(to, 60));
}

bool asi_time_header_decode_untrusted(const uint8_t *from, asi_time_header *header)
{
    const int64_t first_slot = asi_get_i64(from + 48);
    if (MAGIC != asi_get_i64(from) || first_slot < 0 || first_slot > MAX_SLOTS || ASI_TIME_INDEX_VERSION != asi_get_i32(from + 8) ||
        ASI_TIME_INDEX_ENTRY_LENGTH != asi_get_i32(from + 12) || (int32_t)asi_crc32c(from, 60) != asi_get_i32(from + 60))
    {
        return false;
    }
    *header = (asi_time_header){ .recording_id = asi_get_i64(from + 16),
        .era = { .control_session_id = asi_get_i64(from + 24), .correlation_id = asi_get_i64(from + 32),
            .session_id = asi_get_i32(from + 40) },
        .first_slot = first_slot, .interval_ms = (uint32_t)asi_get_i32(from + 56) };
    return true;
}

/* Covers recording id and slot too, so that an entry copied to another file or slot is invalid. */
static uint32_t checksum_of(const uint8_t *entry, int64_t recording_id, int64_t slot)
{
    uint8_t covered[28 + 16];
    memcpy(covered, entry, 28);
    asi_put_i64(covered + 28, recording_id);
    asi_put_i64(covered + 36, slot);
    return asi_crc32c(covered, sizeof(covered));
}

void asi_time_run_encode(const asi_time_run *run, int64_t recording_id, int64_t slot, uint8_t *to)
{
    asi_put_i64(to, run->position);
    asi_put_i64(to + 8, run->first_ns);
    asi_put_i64(to + 16, run->last_ns);
    asi_put_i32(to + 24, (int32_t)((uint32_t)run->length | (run->is_rebuilt ? IS_REBUILT : 0)));
    asi_put_i32(to + 28, (int32_t)checksum_of(to, recording_id, slot));
}

bool asi_time_run_decode_untrusted(const uint8_t *from, int64_t recording_id, int64_t slot, asi_time_run *run)
{
    const uint32_t length = (uint32_t)asi_get_i32(from + 24);
    *run = (asi_time_run){ .position = asi_get_i64(from), .first_ns = asi_get_i64(from + 8), .last_ns = asi_get_i64(from + 16),
        .length = length & LENGTH_MASK, .is_rebuilt = 0 != (length & IS_REBUILT) };
    return checksum_of(from, recording_id, slot) == (uint32_t)asi_get_i32(from + 28) && run->length > 0 && run->position >= 0 &&
        run->position <= INT64_MAX - run->length && run->first_ns >= 0 && run->first_ns <= run->last_ns;
}

/* -- an open file ----------------------------------------------------------------------------------------------------------- */

static as_result fail_read(int error, const char *path)
{
    return asi_fail_errno(AS_E_STORAGE, error, "cannot read the time index %s", path);
}

/* The header may be written right now. It lies in one sector, so the next read sees it whole. */
static as_result read_header(asi_time_file *file, const char *path, int64_t recording_id)
{
    uint8_t bytes[ASI_TIME_INDEX_HEADER_LENGTH];
    for (int attempt = 0; attempt < HEADER_ATTEMPTS; attempt++)
    {
        const int64_t count = asi_file_read_full(file->files, file->fd, bytes, sizeof(bytes), 0);
        if (count < 0)
        {
            return fail_read((int)-count, path);
        }
        if (count < (int64_t)sizeof(bytes))
        {
            return AS_AGAIN;
        }
        if (asi_time_header_decode_untrusted(bytes, &file->header))
        {
            return recording_id == file->header.recording_id ? AS_OK : AS_AGAIN;
        }
    }
    return AS_AGAIN;
}

as_result asi_time_file_open_untrusted(
    asi_time_file *file, const asi_file_ops *files, const char *dir, int64_t recording_id, asi_file_mode mode)
{
    char path[AS_PATH_MAX];
    file->files = files;
    file->fd = -1;
    file->runs = NULL;
    file->window_slot = file->window_count = file->slot_count = 0;
    file->header = (asi_time_header){ 0 };
    as_result result = asi_time_index_path(path, sizeof(path), dir, recording_id);
    if (AS_OK != result)
    {
        return result;
    }
    file->fd = files->open(files->context, path, mode);
    if (file->fd < 0)
    {
        return -ENOENT == file->fd ? AS_AGAIN : fail_read(-file->fd, path);
    }
    result = read_header(file, path, recording_id);
    const int64_t size = AS_OK == result ? files->size(files->context, file->fd) : 0;
    if (size < 0)
    {
        result = fail_read((int)-size, path);
    }
    file->slot_count = size < ASI_TIME_INDEX_HEADER_LENGTH ? 0 : (size - ASI_TIME_INDEX_HEADER_LENGTH) / ASI_TIME_INDEX_ENTRY_LENGTH;
    if (AS_OK == result && file->header.first_slot > file->slot_count)
    {
        result = AS_AGAIN;
    }
    if (AS_OK != result)
    {
        asi_time_file_close(file);
        file->header = (asi_time_header){ 0 };
        file->slot_count = 0;
    }
    return result;
}

void asi_time_file_close(asi_time_file *file)
{
    if (file->fd >= 0)
    {
        file->files->close(file->files->context, file->fd);
        file->fd = -1;
    }
    free(file->runs);
    file->runs = NULL;
}

bool asi_time_file_run(asi_time_file *file, int64_t slot, asi_time_run *run)
{
    if (slot < file->header.first_slot || slot >= file->slot_count)
    {
        return false;
    }
    if (NULL != file->runs)
    {
        *run = file->runs[slot];
        return true;
    }
    if (slot < file->window_slot || slot >= file->window_slot + file->window_count)
    {
        file->window_slot = slot - slot % ASI_TIME_WINDOW_SLOTS;
        const int64_t count = asi_file_read_full(
            file->files, file->fd, file->window, sizeof(file->window), asi_time_slot_offset(file->window_slot));
        file->window_count = count < 0 ? 0 : count / ASI_TIME_INDEX_ENTRY_LENGTH;
        if (slot >= file->window_slot + file->window_count)
        {
            return false;
        }
    }
    const uint8_t *entry = file->window + (slot - file->window_slot) * ASI_TIME_INDEX_ENTRY_LENGTH;
    return asi_time_run_decode_untrusted(entry, file->header.recording_id, slot, run);
}

/* Every valid slot below `low` fails the predicate, the last of them is *before; the first valid one from `high` on is `high`, or
 * there is none. */
static int64_t search_between(
    asi_time_file *file, int64_t low, int64_t high, asi_time_predicate holds, void *context, int64_t *before)
{
    int64_t found = high;
    while (low < high)
    {
        const int64_t middle = low + (high - low) / 2;
        asi_time_run run;
        int64_t at = middle;
        bool is_found = false;
        while (at >= low && middle - at < MAX_GAP_SLOTS && !(is_found = asi_time_file_run(file, at, &run)))
        {
            at--;
        }
        if (!is_found)
        {
            low = middle + 1; /* only gaps; do not search a file of zeros further */
        }
        else if (holds(context, &run))
        {
            high = found = at;
        }
        else
        {
            *before = at;
            low = middle + 1;
        }
    }
    return found;
}

int64_t asi_time_file_search(asi_time_file *file, asi_time_predicate holds, void *context, int64_t *before)
{
    *before = -1;
    return search_between(file, file->header.first_slot, file->slot_count, holds, context, before);
}

int64_t asi_time_file_search_behind(
    asi_time_file *file, int64_t slot, asi_time_predicate holds, void *context, int64_t *before)
{
    *before = slot;
    for (int64_t step = 1; slot + step < file->slot_count; step *= 2)
    {
        asi_time_run run;
        if (asi_time_file_run(file, slot + step, &run))
        {
            if (holds(context, &run))
            {
                return search_between(file, *before + 1, slot + step, holds, context, before);
            }
            *before = slot + step;
        }
    }
    return search_between(file, *before + 1, file->slot_count, holds, context, before);
}

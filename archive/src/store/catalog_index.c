/* Finds recordings of a catalog by id; see catalog_index.h. */
#include "store/catalog_index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

as_result asi_catalog_index_append(asi_catalog_index *index, const asi_catalog_record *record)
{
    if (index->count == index->capacity)
    {
        const int64_t capacity = 0 == index->capacity ? 64 : index->capacity * 2;
        asi_catalog_entry **grown = realloc(index->entries, (size_t)capacity * sizeof(*grown));
        if (NULL == grown)
        {
            return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for %" PRId64 " recordings", capacity);
        }
        index->entries = grown;
        index->capacity = capacity;
    }
    asi_catalog_entry *entry = calloc(1, sizeof(*entry));
    if (NULL == entry)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "out of memory for recording %" PRId64, record->recording_id);
    }
    *entry = (asi_catalog_entry){ .positions = { .start_position = record->start_position, .stop_position = record->stop_position },
        .recording_id = record->recording_id, .offset = record->offset, .session_id = record->session_id,
        .stream_id = record->stream_id, .next = index->all };
    index->all = entry;
    index->entries[index->count++] = entry;
    return AS_OK;
}

int64_t asi_catalog_index_search(const asi_catalog_index *index, int64_t recording_id)
{
    int64_t low = 0;
    int64_t high = index->count;
    while (low < high)
    {
        const int64_t middle = low + (high - low) / 2;
        if (index->entries[middle]->recording_id < recording_id)
        {
            low = middle + 1;
        }
        else
        {
            high = middle;
        }
    }
    return low;
}

asi_catalog_entry *asi_catalog_index_find(const asi_catalog_index *index, int64_t recording_id)
{
    const int64_t place = asi_catalog_index_search(index, recording_id);
    const bool is_found = place < index->count && index->entries[place]->recording_id == recording_id;
    return is_found ? index->entries[place] : NULL;
}

void asi_catalog_index_remove(asi_catalog_index *index, int64_t recording_id)
{
    const int64_t place = asi_catalog_index_search(index, recording_id);
    if (place < index->count && index->entries[place]->recording_id == recording_id)
    {
        index->count--;
        memmove(&index->entries[place], &index->entries[place + 1], (size_t)(index->count - place) * sizeof(index->entries[0]));
    }
}

void asi_catalog_index_shift(asi_catalog_index *index, int64_t offset, int64_t by)
{
    for (int64_t i = 0; i < index->count; i++)
    {
        if (index->entries[i]->offset > offset)
        {
            index->entries[i]->offset += by;
        }
    }
}

void asi_catalog_index_close(asi_catalog_index *index)
{
    for (asi_catalog_entry *entry = index->all; NULL != entry;)
    {
        asi_catalog_entry *next = entry->next;
        free(entry);
        entry = next;
    }
    free(index->entries);
    *index = (asi_catalog_index){ 0 };
}

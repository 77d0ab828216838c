/* Index of a catalog's VALID recordings by ascending id. Holds the file offset of each recording and its positions for other
 * threads. Private to catalog.c. Entries never move and exist until the index is closed, because other threads hold pointers to
 * them. */
#ifndef ASI_STORE_CATALOG_INDEX_H
#define ASI_STORE_CATALOG_INDEX_H

#include "store/catalog_record.h"

typedef struct asi_catalog_entry
{
    asi_recording_positions positions; /* written by the catalog's owner with release, read by any thread with acquire */
    int64_t recording_id;
    int64_t offset;
    int32_t session_id;                /* as in the record: a search reads no record that is of another stream */
    int32_t stream_id;
    struct asi_catalog_entry *next;    /* list of all entries ever made, for close */
} asi_catalog_entry;

typedef struct asi_catalog_index /* zeroed: empty */
{
    asi_catalog_entry **entries; /* owned */
    int64_t count;
    int64_t capacity;
    asi_catalog_entry *all;      /* owned list */
} asi_catalog_index;

/* The record's id must be above all others. */
as_result asi_catalog_index_append(asi_catalog_index *index, const asi_catalog_record *record) AS_MUST_USE;
void asi_catalog_index_remove(asi_catalog_index *index, int64_t recording_id);
/* Index of the first entry with an id >= recording_id; the count if there is none. */
int64_t asi_catalog_index_search(const asi_catalog_index *index, int64_t recording_id);
/* NULL for an unknown id. */
asi_catalog_entry *asi_catalog_index_find(const asi_catalog_index *index, int64_t recording_id);
/* Adds `by` to the offsets after `offset`: those records were moved. */
void asi_catalog_index_shift(asi_catalog_index *index, int64_t offset, int64_t by);
void asi_catalog_index_close(asi_catalog_index *index);

#endif

/* Results of the walk, used to build the columns. See as_sbe.h. */
#ifndef ASI_SBE_BATCH_H
#define ASI_SBE_BATCH_H

#include <string.h>

#include "aeron_spark/as_sbe.h"

/* Instances of a level; lists are indexed by instances of the parent. */
typedef struct asi_sbe_instances
{
    int64_t count;
    int64_t capacity;
    int64_t *starts;     /* of the block */
    bool is_mixed;       /* lengths and versions differ and are stored per instance; else all equal `length` and `version` */
    int32_t length;      /* of the block; -1: absent */
    int64_t version;
    int32_t *lengths;
    int64_t *versions;
    int32_t shortest;    /* smallest length and smallest version of all instances */
    int64_t oldest;
    int64_t list_count;
    int64_t list_capacity;
    int32_t *list_offsets;
    uint8_t *list_validity;
} asi_sbe_instances;

/* Data of the instances of its level. */
typedef struct asi_sbe_content
{
    int64_t count;
    int64_t capacity;
    int64_t *starts;
    int32_t *lengths;    /* -1: absent */
    int64_t bytes;
} asi_sbe_content;

/* Counts before a message, used to roll back the additions of a message that fails. */
typedef struct asi_sbe_mark
{
    int64_t count;
    int64_t list_count;
} asi_sbe_mark;

struct as_sbe_batch
{
    const as_sbe_plan *plan;
    int32_t level_count; /* copied from the plan, which may be freed before the batch is closed */
    int32_t data_count;
    const uint8_t *bytes;
    int64_t limit;       /* upper bound of all message ends */
    int64_t count;
    int64_t capacity;    /* of errors and ends */
    uint8_t *errors;
    int64_t *ends;
    int64_t error_count;
    int64_t unread;      /* bytes after messages without error */
    asi_sbe_mark *marks;
    asi_sbe_instances *levels;
    asi_sbe_content *data;
};

/* The tasks' values of the instances of their level from `first`, a multiple of 64, up to `end`; their counts are added to. */
void asi_sbe_gather_some(const as_sbe_batch *batch, as_sbe_task *tasks, int64_t task_count, int64_t first, int64_t end);
void asi_sbe_clear_counts(as_sbe_task *tasks, int64_t task_count);

static inline uint64_t asi_sbe_load(const uint8_t *at, int32_t size, bool is_big_endian)
{
    switch (size)
    {
        case 1:
            return *at;
        case 2:
        {
            uint16_t value;
            memcpy(&value, at, sizeof(value));
            return is_big_endian ? __builtin_bswap16(value) : value;
        }
        case 4:
        {
            uint32_t value;
            memcpy(&value, at, sizeof(value));
            return is_big_endian ? __builtin_bswap32(value) : value;
        }
        default:
        {
            uint64_t value;
            memcpy(&value, at, sizeof(value));
            return is_big_endian ? __builtin_bswap64(value) : value;
        }
    }
}

static inline int64_t asi_sbe_extend(uint64_t value, int32_t size)
{
    const int shift = 64 - 8 * size;
    return (int64_t)(value << shift) >> shift;
}

#endif

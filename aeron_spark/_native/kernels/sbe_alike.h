/* Fast path of the walk, for alike messages. See sbe_alike.c. */
#ifndef ASI_SBE_ALIKE_H
#define ASI_SBE_ALIKE_H

#include "sbe_batch.h"

/* The last message that the full walk processed: its header of 8 bytes, and the decoded values. */
typedef struct asi_sbe_known
{
    uint64_t header;
    int64_t version;
    int64_t length;
} asi_sbe_known;

/* Continues from message `first` up to `count` while messages match the known one. Returns the first that does not; the full walk
 * processes it. */
int64_t asi_sbe_walk_alike(
    as_sbe_batch *batch, const asi_sbe_known *known, const int64_t *starts, const int64_t *ends, int64_t first, int64_t count);

#endif

/* The walk over messages that are alike. See sbe_alike.c. */
#ifndef ASI_SBE_ALIKE_H
#define ASI_SBE_ALIKE_H

#include "sbe_batch.h"

/* What the last message was that the full walk took: its header of 8 bytes, and what that says. */
typedef struct asi_sbe_known
{
    uint64_t header;
    int64_t version;
    int64_t length;
} asi_sbe_known;

/* Goes on from message `first` while messages are like the known one, and returns the first that is not: it is for the full walk. */
int64_t asi_sbe_walk_alike(
    as_sbe_batch *batch, const asi_sbe_known *known, const int64_t *starts, const int64_t *ends, int64_t first);

#endif

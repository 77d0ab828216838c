/* Budget of file descriptors, so that new operations do not take descriptors that running ones need.
 *
 * A recording holds a segment and its time index. While it is active one more descriptor is reserved for it, because the index is
 * opened with the first data. One in eight of all descriptors, at most 256, is reserved for temporary use: clients' files, the
 * catalog, sockets of a driver in the process. An operation that would use reserved descriptors is refused or waits. (Moving a
 * recording to its next segment needs no more descriptors, see segment_write.c.) Open descriptors are counted at most once a
 * second, when an operation starts. Thread rule: the conductor's. */
#ifndef ASI_SERVER_DESCRIPTORS_H
#define ASI_SERVER_DESCRIPTORS_H

#include "server/archive.h"

#define ASI_DESCRIPTORS_OF_RECORDING 2
#define ASI_DESCRIPTORS_OF_REPLAY 1

typedef struct asi_descriptors
{
    int64_t limit;
    int64_t open;                        /* the last count plus descriptors taken since; -1: unknown */
    int64_t counted_ms;                  /* 0: never */
} asi_descriptors;

/* True if `count` more can be opened. If not, `text` names the limit and how to raise it. */
bool asi_descriptors_has_room(as_archive *archive, int64_t count, char *text, size_t capacity);
/* Takes `count` descriptors from the budget. */
void asi_descriptors_take(as_archive *archive, int64_t count);

#endif

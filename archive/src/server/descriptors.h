/* File descriptors, so that who begins something takes none from what is there already.
 *
 * A recording holds a segment and its time index. While it lives one more is kept for it, as an index is opened with the first data; and
 * one in eight of all is kept for what comes and goes: clients' files, the catalog, sockets of a driver in the process. What would
 * take from these is refused or waits. (That a recording goes on to its next segment takes none more, see segment_write.c.)
 * What is open is counted once a second at most, when something begins. Thread rule: the conductor's. */
#ifndef ASI_SERVER_DESCRIPTORS_H
#define ASI_SERVER_DESCRIPTORS_H

#include "server/archive.h"

#define ASI_DESCRIPTORS_OF_RECORDING 2
#define ASI_DESCRIPTORS_OF_REPLAY 1

typedef struct asi_descriptors
{
    int64_t limit;
    int64_t open;                        /* as counted, and what has begun since; -1: it can't be told */
    int64_t counted_ms;                  /* 0: never */
} asi_descriptors;

/* Whether so many more can be opened; if not, `text` says what the limit is and how to raise it. */
bool asi_descriptors_has_room(as_archive *archive, int64_t count, char *text, size_t capacity);
/* They will be. */
void asi_descriptors_take(as_archive *archive, int64_t count);

#endif

/* See descriptors.h. */
#include "server/descriptors.h"

#include <stdio.h>

#include "base/open_files.h"
#include "server/uses.h"

#define COUNTED_EVERY_MS 1000
#define KEPT_MAX 256

bool asi_descriptors_has_room(as_archive *archive, int64_t count, char *text, size_t capacity)
{
    asi_descriptors *descriptors = archive->descriptors;
    if (0 == descriptors->counted_ms || archive->tick_ms - descriptors->counted_ms >= COUNTED_EVERY_MS)
    {
        descriptors->counted_ms = archive->tick_ms;
        descriptors->limit = asi_open_files_limit();
        descriptors->open = asi_open_files_count();
    }
    const int64_t eighth = descriptors->limit / 8;
    const int64_t kept = archive->uses->count[ASI_USE_RECORDS] + (eighth < KEPT_MAX ? eighth : KEPT_MAX);
    if (descriptors->open < 0 || descriptors->open + count <= descriptors->limit - kept)
    {
        return true;
    }
    snprintf(text, capacity, "no file descriptor is left for it: %lld files may be open, and what is recorded already keeps some in "
        "reserve; raise the limit (ulimit -n, LimitNOFILE=), or end other recordings and replays", (long long)descriptors->limit);
    return false;
}

void asi_descriptors_take(as_archive *archive, int64_t count)
{
    archive->descriptors->open += archive->descriptors->open < 0 ? 0 : count;
}

/* Logs warnings while the disk fills, before it is full. See low_storage.h. Spec: 08 §4.1 - stock checks the space only when a
 * recording is requested.
 *
 * One warning is logged below the warning's bound, and one more below the threshold, from where on no recording begins. A
 * warning is repeated only after the free space has exceeded its bound by an eighth. Nothing is ended: a recording continues
 * until a write fails. */
#include "server/low_storage.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/report.h"

#define INTERVAL_MS 250

static bool is_below(int64_t usable, int64_t bound, bool was_below)
{
    return usable <= bound || (was_below && usable - bound <= bound / 8);
}

static void tell(as_archive *archive, int64_t usable, bool refuses)
{
    const as_archive_config *config = &archive->config;
    char text[AS_PATH_MAX + 512];
    snprintf(text, sizeof(text), "low storage: usableSpace=%" PRId64 " of %s, %s=%" PRId64 "; %s, and recordings that run end with "
        "an error when it is full: free space, purge segments, or have them retained for less "
        "(aeron.spark.archive.retain.max.bytes)", usable, config->archive_dir,
        refuses ? "aeron.archive.low.storage.space.threshold" : "aeron.spark.archive.low.storage.warning",
        refuses ? config->low_storage_threshold : config->low_storage_warning,
        refuses ? "recordings are refused" : "recordings will be refused");
    asi_archive_warn(archive, ASI_CODEC_E_STORAGE_SPACE, text);
}

void asi_low_storage_step(as_archive *archive, int64_t now_ms)
{
    asi_low_storage *state = archive->low_storage;
    if (now_ms < state->next_ms)
    {
        return;
    }
    state->next_ms = now_ms + INTERVAL_MS;
    const as_archive_config *config = &archive->config;
    const int64_t usable = archive->files->usable_space(archive->files->context, config->archive_dir);
    const bool refuses = is_below(usable, config->low_storage_threshold, state->refuses);
    const bool warns = refuses || is_below(usable, config->low_storage_warning, state->warns);
    if ((refuses && !state->refuses) || (warns && !state->warns))
    {
        tell(archive, usable, refuses);
    }
    state->refuses = refuses;
    state->warns = warns;
}

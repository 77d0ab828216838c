/* Locks a folder for a tool that writes while no archive runs on it. Spec: 06 §10.
 *
 * The mark file is the lock of archives, ours and stock ones, and a tool holds it as they do: it claims the activity timestamp by
 * compare-and-set and keeps refreshing it. An archive that starts meanwhile refuses. A killed tool blocks the folder for 10 s. On
 * release the tool restores the timestamp, so a crashed archive's folder still shows the crash. Thread rule: one thread. */
#ifndef ASI_TOOLS_LOCK_H
#define ASI_TOOLS_LOCK_H

#include "base/clock.h"
#include "base/map.h"

typedef struct asi_tool_lock
{
    asi_map map;        /* unmapped if there is no mark file: then nothing is locked */
    int64_t *activity;
    int64_t before;
    int64_t beat_ms;
    asi_clock clock;
} asi_tool_lock;

/* AS_E_USAGE: a live archive, or another tool, owns the folder; the text names the process and the remedy. */
as_result asi_tool_lock_take(asi_tool_lock *lock, const char *archive_dir) AS_MUST_USE;
/* Call at least every 10 s, better every second. */
void asi_tool_lock_beat(asi_tool_lock *lock);
/* Harmless on a zeroed lock. */
void asi_tool_lock_release(asi_tool_lock *lock);

#endif

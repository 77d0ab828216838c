/* The right to write a folder that no archive runs on. Spec: 06 §10.
 *
 * The mark file is the lock of archives, ours and stock ones, so a tool holds it as they do: its activity timestamp is claimed by
 * compare-and-set and kept young. An archive that starts meanwhile refuses, a tool that was killed blocks for 10 s. When the
 * tool is done the timestamp is what it was: the folder of a crashed archive stays one. Thread rule: one thread. */
#ifndef ASI_TOOLS_LOCK_H
#define ASI_TOOLS_LOCK_H

#include "base/clock.h"
#include "base/map.h"

typedef struct asi_tool_lock
{
    asi_map map;        /* unmapped where there is no mark file: nothing is locked then */
    int64_t *activity;
    int64_t before;
    int64_t told_ms;
    asi_clock clock;
} asi_tool_lock;

/* AS_E_USAGE: a live archive, or another tool, owns the folder; the text names process and remedy. */
as_result asi_tool_lock_take(asi_tool_lock *lock, const char *archive_dir) AS_MUST_USE;
/* At least each 10 s, better each second. */
void asi_tool_lock_beat(asi_tool_lock *lock);
/* Harmless on a zeroed lock. */
void asi_tool_lock_release(asi_tool_lock *lock);

#endif

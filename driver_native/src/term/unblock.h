/* Unblocks a log whose publisher died between claim and commit. Driver's conductor only. Spec: 02 §7.6. */
#ifndef ASI_TERM_UNBLOCK_H
#define ASI_TERM_UNBLOCK_H

#include "shm/log_layout.h"

/* Turns what blocks `blocked_position` into padding, or completes the rotation of a dead publisher; true if it did. A claim
 * without a single store, and with nothing written behind it, may belong to a publisher that is about to write. It is padded
 * only without `has_publisher`, when no publisher is left that could write. */
bool asi_log_unblock(asi_log *log, int64_t blocked_position, bool has_publisher);

#endif

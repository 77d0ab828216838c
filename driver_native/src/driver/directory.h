/* The Aeron directory at start and end: who may have it, what is saved from the driver before, what is cleared.
 * Spec: 01 §1.3-1.6.
 *
 * Stock drivers delete whatever aeron.dir leads to. Here the directory is opened without following a link, must belong to whom the
 * driver relies on (base/trust.h), and is emptied by names relative to what was opened: only of what a driver makes, and only if
 * there is nothing else. So a name that was planted, or written by mistake, costs nobody his files.
 *
 * While a driver claims or deletes a directory it holds flock(2) on a file in it that others can't open, so that of two drivers
 * starting at once one finds the other alive, and no stranger can hold one up. The file goes with the lock. A stock driver neither
 * needs nor minds it. For that reason a directory in use is emptied, not replaced. Called by driver.c. Thread rule: any. */
#ifndef ASI_DRIVER_DIRECTORY_H
#define ASI_DRIVER_DIRECTORY_H

#include "base/clock.h"
#include "driver/config.h"

#define ASI_DIRECTORY_LOCK_FILE "driver.lock"

typedef struct asi_directory /* a locked one */
{
    int fd;   /* of the directory; -1: none */
    int lock; /* of the file in it */
} asi_directory;

#define ASI_DIRECTORY_NONE ((asi_directory){ .fd = -1, .lock = -1 })

/* Locks the directory, refuses it to a second driver (AS_E_USAGE with path and pid), saves the errors of a dead one, and leaves
 * it empty but for publications/ and images/. The caller makes the CnC file and then unlocks. AS_E_USAGE also for a link, a stranger's
 * directory, and one with something in it that no driver makes, which the text names: then nothing was deleted. */
as_result asi_directory_claim(const asi_driver_settings *settings, const asi_clock *clock, asi_directory *directory) AS_MUST_USE;
/* Waits for the lock up to the driver timeout. */
as_result asi_directory_lock(const asi_driver_settings *settings, asi_directory *directory) AS_MUST_USE;
/* Deletes what a driver makes, and the directory if nothing else is in it. A mount point stays. */
as_result asi_directory_delete(const asi_directory *directory, const char *path) AS_MUST_USE;
/* Harmless on none. */
void asi_directory_unlock(asi_directory *directory);

#endif

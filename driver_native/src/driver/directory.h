/* Claims the Aeron directory at start and clears it at the end: checks its owner, saves the errors of the previous driver,
 * deletes files. Spec: 01 §1.3-1.6.
 *
 * Stock drivers delete whatever aeron.dir refers to. This driver opens the directory without following a link, and the directory
 * must belong to a trusted user (base/trust.h). It is emptied by names relative to the open directory: only files that a driver
 * creates are deleted, and only if there is nothing else. A name that was planted or mistyped therefore never deletes a user's
 * files.
 *
 * While a driver claims or deletes a directory it holds flock(2) on a file in it that other users can't open. When two drivers
 * start at once, one of them finds the other alive, and no other user can block a driver. The lock file is deleted with the lock.
 * Stock drivers neither need nor notice it. For the same reason a directory in use is emptied, not replaced. Called by driver.c.
 * Thread rule: any. */
#ifndef ASI_DRIVER_DIRECTORY_H
#define ASI_DRIVER_DIRECTORY_H

#include "base/clock.h"
#include "driver/config.h"

#define ASI_DIRECTORY_LOCK_FILE "driver.lock"

typedef struct asi_directory /* a locked directory */
{
    int fd;   /* of the directory; -1: none */
    int lock; /* of the lock file in it */
} asi_directory;

#define ASI_DIRECTORY_NONE ((asi_directory){ .fd = -1, .lock = -1 })

/* Locks the directory, refuses it to a second driver (AS_E_USAGE with path and pid), saves the errors of a dead one, and leaves
 * it empty except for publications/ and images/. The caller creates the CnC file and then unlocks. AS_E_USAGE also for a link, a
 * directory of another user, and one that contains a file which no driver creates. The text then names the file, and nothing was
 * deleted. */
as_result asi_directory_claim(const asi_driver_settings *settings, const asi_clock *clock, asi_directory *directory) AS_MUST_USE;
/* Waits for the lock up to the driver timeout. */
as_result asi_directory_lock(const asi_driver_settings *settings, asi_directory *directory) AS_MUST_USE;
/* Deletes the files that a driver creates, and the directory if nothing else is in it. A mount point stays. */
as_result asi_directory_delete(const asi_directory *directory, const char *path) AS_MUST_USE;
/* No effect on none. */
void asi_directory_unlock(asi_directory *directory);

#endif

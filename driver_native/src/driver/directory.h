/* The Aeron directory at start and end: who may have it, what is saved from the driver before, what is cleared.
 * Spec: 01 §1.3-1.6.
 *
 * While a driver claims or deletes a directory it holds flock(2) on the directory itself, so that of two drivers starting at once
 * one finds the other alive. The lock leaves nothing behind and is none of the stock driver's business: it neither needs nor
 * minds it. For that reason a directory in use is emptied, not replaced. Called by driver.c. Thread rule: any. */
#ifndef ASI_DRIVER_DIRECTORY_H
#define ASI_DRIVER_DIRECTORY_H

#include "base/clock.h"
#include "driver/config.h"

/* Locks the directory, refuses it to a second driver (AS_E_USAGE with path and pid), saves the errors of a dead one, and leaves
 * it empty but for publications/ and images/. The caller makes the CnC file and then unlocks. */
as_result asi_directory_claim(const asi_driver_settings *settings, const asi_clock *clock, int *lock) AS_MUST_USE;
/* Waits for the lock up to `timeout_ms`. */
as_result asi_directory_lock(const char *path, int64_t timeout_ms, int *lock) AS_MUST_USE;
/* Harmless on a negative lock. */
void asi_directory_unlock(int lock);

#endif

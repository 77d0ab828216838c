/* The auditor of fuzz targets that run whole drivers: after each step it compares a driver's state with what must hold, so that a
 * bound that lets something pass is found at once, also where what it breaks stays inside mapped memory.
 *
 * It holds of each
 *   image         its positions are in order, never go back, and do not pass the end of the term in which its window ends; what was
 *                 rebuilt is frames back to back, of its stream, each inside its term; its counters say the same
 *   image's log   nothing was written outside of the window: from the position that was acknowledged, or the end of the gap that
 *                 was filled, when the step began, to where the window ends. From there to the end of that term and the slot behind it
 *                 bytes may have become zeros. The constants of its metadata are what they were
 *   publication   sender position and limit are in order: the limit is a term ahead of the position at most, what is sent is not
 *                 beyond it; the publisher's limit is a window ahead; resends lie inside a term, and are no longer than allowed
 *   destinations  their counts are those of their slots, and within the limits of the settings
 *   settings      images that wait for their first data, images of one stream, the terms of images
 *   sent data     each frame is of a publication of that driver, not beyond what may be sent, nor older than what may be resent
 *
 * A position that does not hold ends the run by CHECK. Owned by the target; one thread, between the driver's duty cycles. */
#ifndef AS_TESTS_FUZZ_DRIVER_AUDITOR_H
#define AS_TESTS_FUZZ_DRIVER_AUDITOR_H

#include "driver/driver.h"

typedef struct audited_image audited_image;
typedef struct audited_publication audited_publication;

typedef struct driver_auditor
{
    const asi_conductor *conductor; /* borrowed: of a driver in this thread */
    audited_image *images;          /* owned list, as the next */
    audited_publication *publications;
} driver_auditor;

void driver_auditor_open(driver_auditor *auditor, const as_driver *driver);
void driver_auditor_close(driver_auditor *auditor);
/* After each step. */
void driver_auditor_look(driver_auditor *auditor);
/* A datagram that the driver sends, before its duty cycle goes on. */
void driver_auditor_on_sent(const driver_auditor *auditor, const uint8_t *bytes, int32_t length);

#endif

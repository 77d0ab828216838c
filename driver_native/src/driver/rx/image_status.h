/* How much a publisher may send: receiver window, congestion control, and when the next status message is due.
 * Spec: 04 §8.7, §10. Time is given. Thread rule: the conductor's, but for the two functions of the receiver. */
#ifndef ASI_DRIVER_RX_IMAGE_STATUS_H
#define ASI_DRIVER_RX_IMAGE_STATUS_H

#include "driver/rx/image.h"

/* Schedules an SM for the receiver when one is due and cleans the log behind the slowest subscriber. Returns the work count. */
int asi_image_update_status(asi_image *image, int64_t min_subscriber_position, bool found_loss, int64_t now_ns);
/* The same position and window again, at once: EOS, revoke. */
void asi_image_schedule_sm_now(asi_image *image);

/* The receiver's: whether to ask for the round trip time now, and the answer. */
bool asi_image_is_rttm_due(const asi_image *image, int64_t now_ns);
void asi_image_on_rtt(asi_image *image, int64_t rtt_ns);

#endif

/* Computes how much a publisher may send: receiver window, congestion control, and the schedule of status messages.
 * Spec: 04 §8.7, §10. The caller passes the time. Thread rule: the conductor's, except for the receiver's two functions. */
#ifndef ASI_DRIVER_RX_IMAGE_STATUS_H
#define ASI_DRIVER_RX_IMAGE_STATUS_H

#include "driver/rx/image.h"

/* Schedules an SM for the receiver when one is due and cleans the log behind the slowest subscriber. Returns the work count. */
int asi_rx_image_update_status(asi_rx_image *image, int64_t min_subscriber_position, bool found_loss, int64_t now_ns);
/* Schedules the same position and window again, at once: for EOS and revoke. */
void asi_rx_image_schedule_sm_now(asi_rx_image *image);

/* For the receiver: checks whether an RTT request is due, and handles the reply. */
bool asi_rx_image_is_rttm_due(const asi_rx_image *image, int64_t now_ns);
void asi_rx_image_on_rtt(asi_rx_image *image, int64_t rtt_ns);

#endif

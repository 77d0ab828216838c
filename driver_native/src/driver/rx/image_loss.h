/* Rebuilding a stream from what arrived: how far it is contiguous, the first gap, when to ask for it. Spec: 04 §9.
 *
 * Called by the conductor for each image in each duty cycle. Only the first gap after the rebuild position, within one term, is
 * active at a time (Spec: 04 §24 T15). Pure but for the log it reads; time and chance are given. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_RX_IMAGE_LOSS_H
#define ASI_DRIVER_RX_IMAGE_LOSS_H

#include "driver/rx/image.h"

/* First gap in [offset, limit) of a term of the log: returns the offset up to which frames are contiguous; *gap_length is 0 when that is
 * the limit, and max_gap at most: a frame far ahead costs no look at all that is missing. Frames whose length leads past the term
 * end it. Pages without storage are not touched. */
int32_t asi_gap_scan_untrusted(
    const asi_log *log, const uint8_t *term, int32_t offset, int32_t limit, int32_t max_gap, int32_t *gap_length);
int64_t asi_nak_first_delay_ns(asi_loss_detector *detector);
int64_t asi_nak_retry_delay_ns(asi_loss_detector *detector);
/* Wait of a group member before it asks; u in [0, 1). Spec: 04 §9.3. */
int64_t asi_nak_multicast_delay_ns(const asi_nak_delay *delay, double u);

/* Scans from max(rcv-pos, max_subscriber_position), moves rcv-pos, publishes the gap when its time has come. *found_loss: a gap
 * that was not active before. *published: the gap handed to the receiver now, length 0 if none (for the loss report). Call
 * only for images with an active subscriber and not revoked; returns the work count. */
int asi_image_rebuild(
    asi_image *image, int64_t max_subscriber_position, int64_t now_ns, bool *found_loss, asi_gap *published);

#endif

/* Rebuilds a stream from received data: finds the contiguous position and the gaps behind it, and schedules NAKs. Spec: 04 §9.
 *
 * The conductor calls it for each image in each duty cycle. The first gap after the rebuild position, within one term, is active:
 * it is requested until it is filled. With aeron.spark.driver.nak.ahead the gaps behind it are requested, too, once each.
 * Pure except for reads of the log; the caller passes time and randomness.
 * Thread rule: the conductor's. */
#ifndef ASI_DRIVER_RX_IMAGE_LOSS_H
#define ASI_DRIVER_RX_IMAGE_LOSS_H

#include "driver/rx/image.h"

/* Finds the first gap in [offset, limit) of a term. Returns the offset up to which frames are contiguous. *gap_length is 0 when
 * that is the limit, and at most max_gap, so that a frame far ahead does not make the scan read all missing slots. A frame whose
 * length leads past the term ends the scan. Pages without storage are not touched. */
int32_t asi_gap_scan_untrusted(
    const asi_log *log, const uint8_t *term, int32_t offset, int32_t limit, int32_t max_gap, int32_t *gap_length);
int64_t asi_nak_first_delay_ns(asi_loss_detector *detector);
int64_t asi_nak_retry_delay_ns(asi_loss_detector *detector);
/* Backoff of a group member before its NAK; u in [0, 1). Spec: 04 §9.3. */
int64_t asi_nak_multicast_delay_ns(const asi_nak_delay *delay, double u);

/* Scans from max(rcv-pos, max_subscriber_position), moves rcv-pos, and publishes the gap when it is due. *found_loss: the gap was
 * not active before. *published: the gap passed to the receiver now, length 0 if none (for the loss report). Call only for images
 * that have an active subscriber and are not revoked. Returns the work count. */
int asi_rx_image_rebuild(
    asi_rx_image *image, int64_t max_subscriber_position, int64_t now_ns, bool *found_loss, asi_gap *published);

#endif

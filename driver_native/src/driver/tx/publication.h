/* Sends a network publication: SETUP, data, heartbeats and retransmits; handles its control frames. Spec: 04 §5-7.
 * Thread rule: the sender's. */
#ifndef ASI_DRIVER_TX_PUBLICATION_H
#define ASI_DRIVER_TX_PUBLICATION_H

#include "driver/tx/sender_state.h"

#define ASI_SETUP_INTERVAL_NS 100000000LL
#define ASI_HEARTBEAT_INTERVAL_NS 100000000LL
#define ASI_INTRODUCTION_LENGTH 40
#define ASI_PUBLICATION_QUIET_NS 10000000LL /* maximum delay until an idle publication detects a receiver's timeout */

/* Returns the bytes sent. */
int64_t asi_sender_publication_send(asi_sender *sender, asi_sender_publication *publication);

/* Writes the frame that introduces this stream to a new destination; `to` has ASI_INTRODUCTION_LENGTH bytes, aligned to 8.
 * Returns the frame's length, 0 when the stream has ended. */
int32_t asi_sender_publication_introduction(const asi_sender_publication *publication, void *to);

/* Control frames that asi_check_control_datagram_untrusted has accepted. Positions are checked here. False: the status message's
 * position is out of bounds. */
bool asi_sender_publication_is_status_in_bounds(const asi_sender_publication *publication, const asi_status_frame *frame);
void asi_sender_publication_on_status(
    asi_sender *sender, asi_sender_publication *publication, const asi_status_frame *frame, const asi_address *source);
void asi_sender_publication_on_nak(asi_sender *sender, asi_sender_publication *publication, const asi_nak_frame *frame);
void asi_sender_publication_on_error(asi_sender *sender, asi_sender_publication *publication,
    const asi_error_frame *frame, const asi_address *source);
void asi_sender_publication_on_rttm(asi_sender *sender, asi_sender_publication *publication, const asi_rttm_frame *frame,
    const asi_address *source);
void asi_sender_publication_on_response_setup(
    asi_sender *sender, asi_sender_publication *publication, const asi_response_setup_frame *frame);

#endif

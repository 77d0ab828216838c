/* Handles the control frames of a network publication: status messages, NAKs, errors, RTT requests, response SETUPs.
 * Spec: 04 §5-7, §10.5, §14, §15. Thread rule: the sender's. */
#ifndef ASI_DRIVER_TX_PUBLICATION_CONTROL_H
#define ASI_DRIVER_TX_PUBLICATION_CONTROL_H

#include "driver/tx/sender_state.h"

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

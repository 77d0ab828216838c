/* Sends to publishers: requests for SETUPs, status messages, errors, NAKs, RTTMs. Spec: 04 §8. Thread rule: the receiver's. */
#ifndef ASI_DRIVER_RX_RECEIVER_SEND_H
#define ASI_DRIVER_RX_RECEIVER_SEND_H

#include "driver/rx/receiver_state.h"

/* Adds a one-shot or periodic request for a SETUP and sends the first. False when the table is full. */
bool asi_receiver_add_pending(asi_receiver *receiver, const asi_pending_setup *pending, const asi_address *to);
void asi_receiver_send_setup_request(asi_receiver *receiver, const asi_receive_endpoint *endpoint,
    const asi_receive_destination *destination, int32_t stream_id, int32_t session_id, const asi_address *to);
/* Requests a proof, see proofs.h. */
void asi_receiver_challenge(asi_receiver *receiver, const asi_receive_endpoint *endpoint,
    const asi_receive_destination *destination, const asi_proof_subject *subject);
/* Sends what is due: SM or ERR, RSP_SETUP, NAK or gap fill, RTTM. Returns the work count. */
int asi_receiver_send_pending(asi_receiver *receiver, asi_rx_image *image);
void asi_receiver_reply_rttm(asi_receiver *receiver, const asi_receive_endpoint *endpoint,
    const asi_receive_destination *destination, const asi_rttm_frame *request, const asi_address *source);

#endif

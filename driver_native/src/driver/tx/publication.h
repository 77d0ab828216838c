/* Sends a network publication: SETUP, data, heartbeats and retransmits. Spec: 04 §5, §7.
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

/* For publication_control.c. */
void asi_sender_publication_set_limit(asi_sender_publication *publication, int64_t limit);
/* Publishes the receivers' state to the conductor. True when the first receiver has joined. */
bool asi_sender_publication_show_receivers(asi_sender_publication *publication);
/* Whether a range begins with a frame that was sent, and that may still be asked for. Spec: 04 §7.5-7.6. */
bool asi_sender_publication_can_resend(const asi_sender_publication *publication, const asi_resend *range);
/* Sends a range again, if it can be. */
void asi_sender_publication_resend(asi_sender *sender, asi_sender_publication *publication, const asi_resend *range);
/* Sends one frame to the destinations of the publication's data. False: not sent. *bytes counts all copies. */
bool asi_sender_publication_send_frame(
    asi_sender *sender, asi_sender_publication *publication, const void *frame, int32_t length, int64_t *bytes);

#endif

/* Images: the conductor's half of the streams that UDP subscriptions receive. Covers creation on SETUP, rebuild, windows,
 * subscribers, and the states from ACTIVE over DRAINING and LINGER to DONE. Spec: 03 §9, 04 §8.4-8.9, §9, §19.
 *
 * The receiver's half is the first member (rx/image.h). Clients can write any value to a subscriber position, so positions are
 * clamped to the valid range. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_IMAGES_H
#define ASI_DRIVER_CTL_IMAGES_H

#include "driver/ctl/endpoints.h"
#include "driver/ctl/params.h"
#include "driver/ctl/state.h"
#include "driver/ctl/subscribers.h"
#include "driver/ctl/subscription.h"
#include "driver/rx/image.h"

typedef enum asi_ctl_image_state
{
    ASI_IMAGE_ACTIVE,
    ASI_IMAGE_DRAINING, /* ended; subscribers may be behind */
    ASI_IMAGE_LINGER,   /* withdrawn; the receiver drops it; subscribers may still have it mapped */
    ASI_IMAGE_DONE      /* waits until the receiver returns it */
} asi_ctl_image_state;

enum
{
    ASI_IMAGE_RTT_COUNTER, /* these two with cubic congestion control only */
    ASI_IMAGE_WINDOW_COUNTER,
    ASI_IMAGE_HWM_COUNTER,
    ASI_IMAGE_POSITION_COUNTER,
    ASI_IMAGE_NAKS_COUNTER,
    ASI_IMAGE_COUNTER_COUNT
};

typedef struct asi_network_image
{
    asi_rx_image image;           /* first */
    asi_receive_channel *channel; /* borrowed; counts in its image_count until LINGER; do not use after that */
    int64_t registration_id;
    bool wants_response;          /* its SETUP asked for a response channel */
    bool is_proven;               /* its source was, see rx/proofs.h */
    asi_address source;           /* source address of that SETUP */
    bool is_rejoin;               /* of the last linked subscription */
    asi_ctl_image_state state;
    int64_t populated;            /* bytes of the log file populated ahead of the data; the whole length for a sparse log */
    int64_t quiet_until_ns;       /* all received data is rebuilt and read: no work before this time unless more data arrives */
    int64_t state_since_ns;
    char *log_path;               /* owned */
    char source_identity[ASI_ADDRESS_TEXT_CAPACITY];
    int32_t counter_ids[ASI_IMAGE_COUNTER_COUNT]; /* -1: not allocated */
    asi_untethered_timeouts untethered;
    asi_subscribers subscribers;
    bool is_loss_report_off;      /* set when the loss report is full */
    int64_t loss_entry;           /* -1 before the first loss */
    char *loss_channel;           /* owned: the endpoint's channel */
    int32_t loss_term_id;         /* end of the last reported gap */
    int32_t loss_end_offset;
} asi_network_image;

/* NULL when unknown or closing. */
asi_network_image *asi_network_image_find(const asi_conductor *conductor, int64_t registration_id);
/* Links the subscription if it matches and the image accepts subscribers; logs a failure. */
void asi_network_image_link(asi_conductor *conductor, asi_network_image *image, asi_ctl_subscription *subscription);
/* Returns false when it was not linked. */
bool asi_network_image_unlink(asi_conductor *conductor, asi_network_image *image, const asi_ctl_subscription *subscription);
bool asi_network_image_is_wanted(const asi_network_image *image, const asi_ctl_subscription *subscription);
void asi_network_image_reject(asi_conductor *conductor, asi_network_image *image, const char *reason, int64_t reason_length);
/* Each duty cycle: rebuild, loss, status messages. Returns the work count. */
int asi_network_image_update(asi_conductor *conductor, asi_network_image *image);
void asi_network_image_on_timer(asi_conductor *conductor, asi_network_image *image);

#endif

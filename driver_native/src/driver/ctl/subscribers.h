/* The subscribers of a log: the subscriptions linked to a publication (IPC, or spies on a network one) or to an image. Tracks
 * their positions, and removes untethered subscribers that lag. Spec: 03 §10-11, 02 §7.2.
 *
 * Embedded in ipc, network_publications and images, through which subscriptions.c links subscriptions. Clients write the position
 * counters and may store any value, so positions are clamped to the owner's range. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_SUBSCRIBERS_H
#define ASI_DRIVER_CTL_SUBSCRIBERS_H

#include "driver/ctl/params.h"
#include "driver/ctl/state.h"
#include "driver/ctl/subscription.h"

typedef enum asi_tether_state
{
    ASI_TETHER_ACTIVE,
    ASI_TETHER_LINGER,  /* image withdrawn; the position still counts */
    ASI_TETHER_RESTING, /* the position does not count; the subscriber rejoins later */
    ASI_TETHER_CLOSED   /* as RESTING, but permanent; its counter is freed */
} asi_tether_state;

typedef struct asi_subscriber_position
{
    asi_ctl_subscription *subscription; /* borrowed */
    int64_t *position;              /* borrowed; written by the subscriber */
    int32_t counter_id;
    asi_tether_state state;
    int64_t state_since_ns;         /* in ACTIVE: last time its position was above the window's limit */
} asi_subscriber_position;

typedef struct asi_subscribers
{
    int64_t image_id;            /* AVAILABLE_IMAGE carries these five */
    int32_t session_id;
    int32_t stream_id;
    const char *log_path;        /* borrowed */
    const char *source_identity; /* borrowed */
    asi_subscriber_position *items; /* owned */
    int32_t count;
    int32_t capacity;
} asi_subscribers;

/* Minimum and maximum of the positions that count, each clamped to [floor, ceiling]. */
typedef struct asi_position_span
{
    bool has_working;
    int64_t min; /* INT64_MAX when there are none */
    int64_t max; /* INT64_MIN when there are none */
} asi_position_span;

asi_position_span asi_subscribers_span(const asi_subscribers *subscribers, int64_t floor, int64_t ceiling);
bool asi_subscribers_has_working(const asi_subscribers *subscribers);
/* True when every subscriber that has the image has reached `position`. Subscribers whose image was withdrawn (lingering,
 * resting) are ignored: they no longer read, and a draining stream would wait for them forever. */
bool asi_subscribers_have_read(const asi_subscribers *subscribers, int64_t position);
/* By registration id: local destinations of a subscription share it, and its client has one image for all that match. */
bool asi_subscribers_is_linked(const asi_subscribers *subscribers, const asi_ctl_subscription *subscription);
/* Allocates its position and announces the image to the client. */
as_result asi_subscribers_link(asi_conductor *conductor, asi_subscribers *subscribers, asi_ctl_subscription *subscription,
    int64_t join_position) AS_MUST_USE;
/* Returns false when it was not linked. Sends nothing, as the next. */
bool asi_subscribers_unlink(asi_conductor *conductor, asi_subscribers *subscribers, const asi_ctl_subscription *subscription);
void asi_subscribers_unlink_all(asi_conductor *conductor, asi_subscribers *subscribers);
/* Sends UNAVAILABLE_IMAGE to every subscriber that has the image; resting ones have already received it. */
void asi_subscribers_withdraw(asi_conductor *conductor, const asi_subscribers *subscribers);
void asi_subscribers_withdraw_one(
    asi_conductor *conductor, const asi_subscribers *subscribers, const asi_ctl_subscription *subscription);

typedef struct asi_tether_rules
{
    int64_t limit;         /* an untethered subscriber at or below it is too slow */
    int64_t floor;         /* valid range of positions */
    int64_t ceiling;
    int64_t join_position; /* where a resting subscriber rejoins */
    asi_untethered_timeouts timeouts;
} asi_tether_rules;

/* Timer. Spec: 03 §11. */
void asi_subscribers_check_tethers(asi_conductor *conductor, asi_subscribers *subscribers, const asi_tether_rules *rules);

#endif

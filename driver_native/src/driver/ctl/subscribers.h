/* Who reads a log: the subscriptions linked to a publication (IPC, or spies on a network one) or to an image, their positions,
 * and how those that lag and are not tethered are let go. Spec: 03 §10-11, 02 §7.2.
 *
 * Embedded in ipc, network_publications and images; subscriptions are linked by subscriptions.c through them. Positions are
 * counters that clients write and may hold anything: they are brought into the range that the owner gives. Thread rule: the
 * conductor's. */
#ifndef ASI_DRIVER_CTL_SUBSCRIBERS_H
#define ASI_DRIVER_CTL_SUBSCRIBERS_H

#include "driver/ctl/params.h"
#include "driver/ctl/state.h"
#include "driver/ctl/subscription.h"

typedef enum asi_tether_state
{
    ASI_TETHER_ACTIVE,
    ASI_TETHER_LINGER,  /* image withdrawn, position still counts */
    ASI_TETHER_RESTING, /* position does not count; comes back */
    ASI_TETHER_CLOSED   /* as resting, for ever; its counter is freed */
} asi_tether_state;

typedef struct asi_subscriber_position
{
    asi_subscription *subscription; /* borrowed */
    int64_t *position;              /* borrowed; written by the subscriber */
    int32_t counter_id;
    asi_tether_state state;
    int64_t state_since_ns;         /* in ACTIVE: last time it was not at the window's limit */
} asi_subscriber_position;

typedef struct asi_subscribers
{
    int64_t image_id;            /* these five are what subscribers are told of the stream */
    int32_t session_id;
    int32_t stream_id;
    const char *log_path;        /* borrowed */
    const char *source_identity; /* borrowed */
    asi_subscriber_position *items; /* owned */
    int32_t count;
    int32_t capacity;
} asi_subscribers;

/* Of the positions that count, each brought into [floor, ceiling]. */
typedef struct asi_position_span
{
    bool has_working;
    int64_t min; /* INT64_MAX without any */
    int64_t max; /* INT64_MIN without any */
} asi_position_span;

asi_position_span asi_subscribers_span(const asi_subscribers *subscribers, int64_t floor, int64_t ceiling);
bool asi_subscribers_has_working(const asi_subscribers *subscribers);
/* Every subscriber that has the image has got there. One whose image was withdrawn (lingering, resting) reads no more, and while
 * a stream drains it would be waited for without end. */
bool asi_subscribers_have_read(const asi_subscribers *subscribers, int64_t position);
bool asi_subscribers_is_linked(const asi_subscribers *subscribers, const asi_subscription *subscription);
/* Allocates its position and announces the image. */
as_result asi_subscribers_link(asi_conductor *conductor, asi_subscribers *subscribers, asi_subscription *subscription,
    int64_t join_position) AS_MUST_USE;
/* False when it was not linked. Tells nobody, as the next. */
bool asi_subscribers_unlink(asi_conductor *conductor, asi_subscribers *subscribers, const asi_subscription *subscription);
void asi_subscribers_unlink_all(asi_conductor *conductor, asi_subscribers *subscribers);
/* UNAVAILABLE_IMAGE to every subscriber that has the image; those at rest were told before. */
void asi_subscribers_withdraw(asi_conductor *conductor, const asi_subscribers *subscribers);
void asi_subscribers_withdraw_one(
    asi_conductor *conductor, const asi_subscribers *subscribers, const asi_subscription *subscription);

typedef struct asi_tether_rules
{
    int64_t limit;         /* at or below it an untethered subscriber is too slow */
    int64_t floor;         /* range of positions */
    int64_t ceiling;
    int64_t join_position; /* where one comes back */
    asi_untethered_timeouts timeouts;
} asi_tether_rules;

/* Timer. Spec: 03 §11. */
void asi_subscribers_check_tethers(asi_conductor *conductor, asi_subscribers *subscribers, const asi_tether_rules *rules);

#endif

/* One IPC publication: its log buffer, its subscribers' positions, its publisher limit, and its states from ACTIVE over DRAINING
 * to LINGER. Spec: 02 §7.2, §7.4-7.6, §8, 03 §7, §11.
 *
 * publications.c creates and finds it; subscriptions.c links subscriptions to it. Positions and tails are shared with other
 * processes and may hold any value. The conductor clamps each value to [clean position, producer position] before it uses it, so
 * a broken client can harm only its own streams. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_IPC_H
#define ASI_DRIVER_CTL_IPC_H

#include "base/assert.h"
#include "driver/ctl/params.h"
#include "driver/ctl/state.h"
#include "driver/ctl/subscribers.h"
#include "driver/ctl/subscription.h"
#include "shm/log_layout.h"

typedef enum asi_ctl_publication_state
{
    ASI_PUBLICATION_ACTIVE,
    ASI_PUBLICATION_DRAINING, /* no publisher left; subscribers may be behind */
    ASI_PUBLICATION_LINGER,   /* ended; the log is freed with the last reference */
    ASI_PUBLICATION_DONE      /* network only: waits until the sender returns it */
} asi_ctl_publication_state;

/* A publication never goes back, and DONE follows LINGER only. */
static inline void asi_ctl_publication_enter(asi_ctl_publication_state *state, asi_ctl_publication_state next)
{
    AS_ASSERT(next > *state && (ASI_PUBLICATION_DONE != next || ASI_PUBLICATION_LINGER == *state));
    *state = next;
}

typedef struct asi_ipc_publication
{
    int64_t registration_id;
    int64_t client_id;      /* of the client that added it first */
    int32_t session_id;
    int32_t stream_id;
    bool is_exclusive;
    asi_ctl_publication_params params; /* position fields hold the initial values */
    char *channel;          /* owned */
    char *log_path;         /* owned */
    asi_log log;            /* owned */
    asi_ctl_publication_state state;
    int32_t reference_count;

    int32_t position_counter_id;
    int32_t limit_counter_id;
    int64_t *position_counter; /* borrowed; pub-pos and pub-lmt, release stores by the conductor */
    int64_t *limit_counter;

    int64_t starting_position;
    int64_t producer_position;  /* highest seen */
    int64_t consumer_position;  /* of the fastest subscriber; never decreases */
    int64_t clean_position;     /* the log below it is zeroed for the next wrap */
    int64_t limit;              /* value of pub-lmt */
    int64_t trip_limit;         /* pub-lmt is stored when the new value exceeds this */
    int64_t blocked_position;   /* consumer position at the last check for a blocked publisher */
    int64_t blocked_since_ns;
    bool in_cool_down;          /* after a rejection */
    int64_t cool_down_since_ns; /* time of the latest rejection */

    asi_subscribers subscribers;
} asi_ipc_publication;

typedef struct asi_ipc_request
{
    int64_t client_id;
    int64_t registration_id;
    int32_t session_id;
    int32_t stream_id;
    bool is_exclusive;
    const char *channel; /* need not be terminated */
    int64_t channel_length;
} asi_ipc_request;

/* Drops one publisher's reference. The last one starts draining, or revokes the publication when any caller set `revoke`. */
void asi_ipc_release(void *released, bool revoke);
/* Links every matching subscription that is not linked yet, each with AVAILABLE_IMAGE. Logs a failure. */
void asi_ipc_link_all(asi_conductor *conductor, asi_ipc_publication *publication);
/* Links `subscription` if it matches and the publication accepts subscribers. Logs a failure. */
void asi_ipc_link(asi_conductor *conductor, asi_ipc_publication *publication, asi_ctl_subscription *subscription);
/* Returns false when it was not linked. */
bool asi_ipc_unlink(asi_conductor *conductor, asi_ipc_publication *publication, const asi_ctl_subscription *subscription);
/* A reader rejected the stream: unlinks all subscribers until the image liveness timeout has passed. */
void asi_ipc_reject(asi_conductor *conductor, asi_ipc_publication *publication, const char *reason, int64_t reason_length);
/* Call each duty cycle: updates positions and limit. Returns the work count. */
int asi_ipc_update(asi_ipc_publication *publication);
/* Call each timer tick; true when the publication has ended and can be closed. */
bool asi_ipc_on_timer(asi_conductor *conductor, asi_ipc_publication *publication);

#endif

/* Network publications: the conductor's half. Covers creation with the channel's checks, limits and cleaning, spies, and the
 * states from ACTIVE over DRAINING and LINGER to DONE. Spec: 03 §6.1-6.4, §8, 04 §5.7-5.8, §13, 02 §7.3.
 *
 * The sender's half is the first member (tx/publication.h). Values from shared memory are clamped to the valid range before use.
 * The sender position is read from the sender's own memory, not from the counter, which clients could overwrite.
 * Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_NETWORK_PUBLICATIONS_H
#define ASI_DRIVER_CTL_NETWORK_PUBLICATIONS_H

#include "driver/ctl/endpoints.h"
#include "driver/ctl/ipc.h"
#include "driver/ctl/params.h"
#include "driver/ctl/state.h"
#include "driver/ctl/subscribers.h"
#include "driver/ctl/subscription.h"
#include "driver/tx/publication.h"

enum
{
    ASI_NETWORK_PUBLISHER_POSITION,
    ASI_NETWORK_PUBLISHER_LIMIT,
    ASI_NETWORK_SENDER_POSITION,
    ASI_NETWORK_SENDER_LIMIT,
    ASI_NETWORK_SENDER_BACK_PRESSURE,
    ASI_NETWORK_SENDER_NAKS,
    ASI_NETWORK_FLOW_RECEIVERS, /* min and tagged flow control only */
    ASI_NETWORK_COUNTER_COUNT
};

typedef struct asi_network_publication
{
    asi_sender_publication sender; /* first */
    asi_send_channel *channel;     /* holds one of its references */
    int64_t client_id;             /* of the client that added it first */
    bool is_exclusive;
    asi_ctl_publication_params params;
    char *uri;                     /* owned: as that client gave it */
    char *log_path;                /* owned */
    asi_ctl_publication_state state;
    int64_t quiet_until_ns;        /* no work before this, unless the sender position or the set of receivers changes */
    int64_t quiet_position;        /* of the sender */
    int64_t state_since_ns;
    int32_t reference_count;
    int32_t counter_ids[ASI_NETWORK_COUNTER_COUNT]; /* -1: not allocated */
    int64_t *position_counter;     /* borrowed; pub-pos and pub-lmt, release stores by the conductor */
    int64_t *limit_counter;

    int64_t starting_position;
    int64_t producer_position;     /* highest seen */
    int64_t clean_position;
    int64_t limit;                 /* value of pub-lmt */
    int64_t blocked_position;      /* sender position at the last check for a blocked publisher */
    int64_t blocked_since_ns;
    bool is_connected;             /* same as in the log metadata */
    asi_subscribers spies;
} asi_network_publication;

void asi_network_publication_release(void *released, bool revoke);

/* NULL when unknown. */
asi_network_publication *asi_network_publication_find(const asi_conductor *conductor, int64_t registration_id);
bool asi_network_is_session_used(const asi_conductor *conductor, int32_t stream_id, int32_t session_id);

/* Links a spy if it matches and the publication accepts spies; logs a failure. */
void asi_network_publication_link(
    asi_conductor *conductor, asi_network_publication *publication, asi_ctl_subscription *subscription);
/* Returns false when it was not linked. */
bool asi_network_publication_unlink(
    asi_conductor *conductor, asi_network_publication *publication, const asi_ctl_subscription *subscription);
/* Call each duty cycle: updates positions, limit, and the sender's view of the spies. Returns the work count. */
int asi_network_publication_update(asi_network_publication *publication, int64_t now_ns);
void asi_network_publication_on_timer(asi_conductor *conductor, asi_network_publication *publication);

#endif

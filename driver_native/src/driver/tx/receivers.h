/* Who receives a publication: receiver ids with the time of their last status message. Spec: 04 §5.1, §5.6.
 *
 * Owned by a publication, used by the sender. Full: the newcomer takes the place of the longest silent one, which costs
 * nothing but its entry; whether there is any receiver stays right. Thread rule: the sender's. */
#ifndef ASI_DRIVER_TX_RECEIVERS_H
#define ASI_DRIVER_TX_RECEIVERS_H

#include <stdbool.h>
#include <stdint.h>

#define ASI_RECEIVERS_CAPACITY 64

typedef struct asi_receiver_entry
{
    int64_t receiver_id;
    int64_t last_status_ns;
} asi_receiver_entry;

typedef struct asi_receivers
{
    int32_t count;
    asi_receiver_entry items[ASI_RECEIVERS_CAPACITY];
} asi_receivers;

void asi_receivers_refresh(asi_receivers *receivers, int64_t receiver_id, int64_t now_ns);
/* True if it was there. */
bool asi_receivers_remove(asi_receivers *receivers, int64_t receiver_id);
/* Drops those whose last status message is `timeout_ns` or longer ago. */
void asi_receivers_expire(asi_receivers *receivers, int64_t now_ns, int64_t timeout_ns);

#endif

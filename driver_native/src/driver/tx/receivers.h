/* The receivers of a publication: their ids with the time of the last status message. Spec: 04 §5.1, §5.6.
 *
 * Owned by a publication, used by the sender. When the table is full, a new receiver replaces the one that has been silent
 * longest. That one loses only its entry; "has any receiver" stays correct. Thread rule: the sender's. */
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
/* True when the receiver was in the table. */
bool asi_receivers_remove(asi_receivers *receivers, int64_t receiver_id);
/* Removes receivers whose last status message is at least `timeout_ns` old. */
void asi_receivers_expire(asi_receivers *receivers, int64_t now_ns, int64_t timeout_ns);

#endif

/* Broadcast buffer with one transmitter and any number of receivers: the to-clients queue. Spec: 01 §4.
 *
 * The transmitter is the driver's conductor and never waits. A receiver detects when it was overtaken, and must then treat
 * its view of the driver as lost. Messages are delivered from a private copy that is validated after copying. */
#ifndef ASI_SHM_BROADCAST_H
#define ASI_SHM_BROADCAST_H

#include "base/atomic.h"
#include "base/result.h"

#define ASI_BROADCAST_TRAILER_LENGTH 128
#define ASI_BROADCAST_RECORD_HEADER_LENGTH 8

typedef struct asi_broadcast
{
    uint8_t *buffer;      /* borrowed */
    int64_t capacity;     /* power of two */
    int64_t max_message;  /* capacity / 8 */
    int64_t *tail_intent; /* transmitter, release; receivers, acquire */
    int64_t *tail;
    int64_t *latest;
} asi_broadcast;

as_result asi_broadcast_init(asi_broadcast *broadcast, void *section, int64_t length) AS_MUST_USE;
/* AS_E_USAGE when type or length is out of range. */
as_result asi_broadcast_transmit(asi_broadcast *broadcast, int32_t type_id, const void *message, int64_t length) AS_MUST_USE;

typedef struct asi_broadcast_receiver
{
    asi_broadcast broadcast;
    int64_t cursor;
    int64_t next;
    int64_t lapped_count;
    uint8_t *scratch;     /* owned */
    int64_t scratch_capacity;
} asi_broadcast_receiver;

typedef void (*asi_broadcast_handler)(int32_t type_id, const uint8_t *message, int64_t length, void *context);

/* Starts at the latest message, which is delivered again. */
as_result asi_broadcast_receiver_open(asi_broadcast_receiver *receiver, void *section, int64_t length) AS_MUST_USE;
void asi_broadcast_receiver_close(asi_broadcast_receiver *receiver);
/* Delivers at most one message. AS_OK: delivered; AS_AGAIN: no message; AS_E_DATA: the transmitter overtook the receiver. */
as_result asi_broadcast_receive(asi_broadcast_receiver *receiver, asi_broadcast_handler handler, void *context) AS_MUST_USE;

#endif

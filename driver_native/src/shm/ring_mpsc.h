/* Many-producer, single-consumer ring: the to-driver command queue. Spec: 01 §3.
 *
 * Producers: any client process. Consumer: the driver's conductor. Free space is zero at every 8-byte boundary. The consumer
 * zeroes what it consumed before it publishes the head, because unblocking relies on it. A producer first stores a record's
 * negative length (claimed), then type and payload, then the positive length (committed). */
#ifndef ASI_SHM_RING_MPSC_H
#define ASI_SHM_RING_MPSC_H

#include "base/atomic.h"
#include "base/result.h"

#define ASI_RING_TRAILER_LENGTH 768
#define ASI_RING_RECORD_HEADER_LENGTH 8
#define ASI_RING_PADDING_TYPE (-1)

typedef struct asi_ring_mpsc
{
    uint8_t *buffer;     /* borrowed: capacity data bytes, then the trailer */
    int64_t capacity;    /* power of two */
    int64_t max_message; /* capacity / 8 */
    int64_t *tail_position;
    int64_t *head_cache_position;
    int64_t *head_position;
    int64_t *correlation_counter;
    int64_t *consumer_heartbeat;
    int64_t unwritten_from; /* the unblocking consumer's: head whose area had no store up to its end at the last call; -1 none */
} asi_ring_mpsc;

typedef enum asi_ring_action
{
    ASI_RING_ABORT,   /* leave this record for the next read and stop */
    ASI_RING_CONTINUE
} asi_ring_action;

typedef asi_ring_action (*asi_ring_handler)(int32_t type_id, const uint8_t *message, int64_t length, void *context);

/* `length` is the section length, trailer included. AS_E_DATA if the capacity is not a power of two. */
as_result asi_ring_mpsc_init(asi_ring_mpsc *ring, void *section, int64_t length) AS_MUST_USE;
/* AS_OK, AS_AGAIN if full, AS_E_USAGE if type or length is out of range. Any thread. */
as_result asi_ring_mpsc_write(asi_ring_mpsc *ring, int32_t type_id, const void *message, int64_t length) AS_MUST_USE;
/* Claims space for `length` bytes and returns a pointer to fill. End with commit or abort on every path. */
as_result asi_ring_mpsc_try_claim(asi_ring_mpsc *ring, int32_t type_id, int64_t length, uint8_t **message) AS_MUST_USE;
void asi_ring_mpsc_commit(asi_ring_mpsc *ring, uint8_t *message);
void asi_ring_mpsc_abort(asi_ring_mpsc *ring, uint8_t *message);
/* Consumer: reads at most `limit` messages; returns how many were consumed. A record whose length passes the end of the data
 * area (from a malicious producer) is skipped up to that end. */
int64_t asi_ring_mpsc_read(asi_ring_mpsc *ring, asi_ring_handler handler, void *context, int64_t limit);
int64_t asi_ring_mpsc_next_correlation_id(asi_ring_mpsc *ring);
int64_t asi_ring_mpsc_producer_position(const asi_ring_mpsc *ring);
int64_t asi_ring_mpsc_consumer_position(const asi_ring_mpsc *ring);
int64_t asi_ring_mpsc_consumer_heartbeat(const asi_ring_mpsc *ring); /* epoch ms; -1 closed, 0 not started */
void asi_ring_mpsc_set_consumer_heartbeat(asi_ring_mpsc *ring, int64_t epoch_ms);
/* Consumer: turns a record that a dead producer left at the head into padding; true if it did. Call it again after a while, when
 * nothing has moved: claims that reach the end of the data area without a store take two calls. Spec: 01 §3.4. */
bool asi_ring_mpsc_unblock(asi_ring_mpsc *ring);

#endif

/* A bounded MPSC queue of messages of one size, for commands between the driver's threads. Nothing blocks; when the queue is
 * full, the producer tries again. Called through sender_command, receiver_command and conductor_command.
 *
 * Each slot carries a sequence number. Equal to the ticket: the slot is free for the producer that takes that ticket. Ticket plus
 * one: the slot is full, for the consumer. A producer that is interrupted after taking a ticket delays the consumer, never
 * another producer. For rare commands only; packets do not go through it. */
#ifndef ASI_DRIVER_QUEUES_COMMAND_QUEUE_H
#define ASI_DRIVER_QUEUES_COMMAND_QUEUE_H

#include <stddef.h>

#include "base/bits.h"
#include "base/result.h"

typedef struct asi_command_queue
{
    uint8_t *slots;      /* owned; `capacity` times a sequence number and a message */
    int64_t capacity;    /* a power of two */
    size_t message_size;
    size_t stride;
    uint8_t pad_1[ASI_CACHE_LINE];
    int64_t tail;        /* next ticket; producers, by CAS */
    uint8_t pad_2[ASI_CACHE_LINE];
    int64_t head;        /* only for the consumer */
    bool is_taking;      /* the consumer is inside a take; a second one is a bug */
} asi_command_queue;

as_result asi_command_queue_open(asi_command_queue *queue, int64_t capacity, size_t message_size) AS_MUST_USE;
void asi_command_queue_close(asi_command_queue *queue);
/* Any thread. False: the queue is full, nothing was added. */
bool asi_command_queue_put(asi_command_queue *queue, const void *message) AS_MUST_USE;
/* Consumer only. False: the queue is empty. */
bool asi_command_queue_take(asi_command_queue *queue, void *message);

#endif

/* A bounded queue of messages of one size: how the driver's threads hand commands to each other. Many producers, one consumer;
 * nothing blocks, a full box is the sender's to try again. Called through sender_command, receiver_command and conductor_command.
 *
 * Each slot carries a sequence number that says whose turn it is: equal to the ticket, it is free for the producer that draws
 * the ticket; one more, it is full and the consumer's. A producer that has drawn a ticket and is interrupted holds up the
 * consumer, never another producer. Rare commands only: packets don't travel this way. */
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
    int64_t tail;        /* next ticket: producers, by CAS */
    uint8_t pad_2[ASI_CACHE_LINE];
    int64_t head;        /* the consumer's alone */
} asi_command_queue;

as_result asi_command_queue_open(asi_command_queue *queue, int64_t capacity, size_t message_size) AS_MUST_USE;
void asi_command_queue_close(asi_command_queue *queue);
/* Any thread. False: full, nothing was put. */
bool asi_command_queue_put(asi_command_queue *queue, const void *message) AS_MUST_USE;
/* The consumer. False: nothing there. */
bool asi_command_queue_take(asi_command_queue *queue, void *message);

#endif

/* See command_queue.h. */
#include "driver/queues/command_queue.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/atomic.h"

static int64_t *sequence_of(const asi_command_queue *queue, int64_t ticket)
{
    return (int64_t *)(void *)(queue->slots + (size_t)(ticket & (queue->capacity - 1)) * queue->stride);
}

as_result asi_command_queue_open(asi_command_queue *queue, int64_t capacity, size_t message_size)
{
    AS_ASSERT(capacity > 0 && 0 == (capacity & (capacity - 1)));
    *queue = (asi_command_queue){ .capacity = capacity, .message_size = message_size };
    queue->stride = (size_t)asi_align_i64((int64_t)(sizeof(int64_t) + message_size), (int64_t)sizeof(int64_t));
    queue->slots = calloc((size_t)capacity, queue->stride);
    if (NULL == queue->slots)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a queue of %lld messages", (long long)capacity);
    }
    for (int64_t i = 0; i < capacity; i++)
    {
        *sequence_of(queue, i) = i;
    }
    return AS_OK;
}

void asi_command_queue_close(asi_command_queue *queue)
{
    free(queue->slots);
    queue->slots = NULL;
}

bool asi_command_queue_put(asi_command_queue *queue, const void *message)
{
    for (;;)
    {
        const int64_t ticket = asi_load_relaxed_i64(&queue->tail);
        int64_t *sequence = sequence_of(queue, ticket);
        /* Acquire: pairs with the consumer's release, so that the message is not overwritten while it is copied out. */
        const int64_t turn = asi_load_acquire_i64(sequence);
        if (turn < ticket)
        {
            return false;
        }
        if (turn == ticket && asi_cas_i64(&queue->tail, ticket, ticket + 1))
        {
            memcpy(sequence + 1, message, queue->message_size);
            asi_store_release_i64(sequence, ticket + 1);
            return true;
        }
    }
}

bool asi_command_queue_take(asi_command_queue *queue, void *message)
{
    int64_t *sequence = sequence_of(queue, queue->head);
    if (asi_load_acquire_i64(sequence) != queue->head + 1)
    {
        return false;
    }
    AS_ASSERT(!asi_load_relaxed_bool(&queue->is_taking));
    asi_store_relaxed_bool(&queue->is_taking, true);
    memcpy(message, sequence + 1, queue->message_size);
    AS_ASSERT(asi_load_relaxed_i64(sequence) == queue->head + 1);
    asi_store_release_i64(sequence, queue->head + queue->capacity);
    queue->head++;
    asi_store_relaxed_bool(&queue->is_taking, false);
    return true;
}

/* Intrusive FIFO queue. Passes sessions and answers from one agent of the archive to another. Spec: 08 §1 (hand-over by queues).
 *
 * Used between conductor and recorder, conductor and replayer, and conductor and deleter. Each queue has one consumer (MPSC); the
 * mutex makes several consumers safe too. In SHARED and INVOKER mode producer and consumer are the same thread.
 * An item is in one queue at a time. Once taken, it belongs to the consumer. The order is kept. Taking from an empty queue costs
 * one acquire load and no lock, so idle duty cycles stay lock-free.
 * Thread rule: any number of threads may put and take. */
#ifndef ASI_RECORD_INTRUSIVE_QUEUE_H
#define ASI_RECORD_INTRUSIVE_QUEUE_H

#include <pthread.h>

#include "base/assert.h"
#include "base/atomic.h"

typedef struct asi_intrusive_queue_item
{
    struct asi_intrusive_queue_item *next;
} asi_intrusive_queue_item; /* first member of the struct that is queued */

typedef struct asi_intrusive_queue
{
    pthread_mutex_t mutex;     /* guards head and tail */
    asi_intrusive_queue_item *head;
    asi_intrusive_queue_item *tail;
    int32_t count;             /* released by put; a stale read costs the consumer one more cycle */
} asi_intrusive_queue;

static inline void asi_intrusive_queue_init(asi_intrusive_queue *queue)
{
    pthread_mutex_init(&queue->mutex, NULL);
    queue->head = NULL;
    queue->tail = NULL;
    queue->count = 0;
}

/* The caller has taken all items: it owns them. */
static inline void asi_intrusive_queue_close(asi_intrusive_queue *queue)
{
    AS_ASSERT(0 == queue->count);
    pthread_mutex_destroy(&queue->mutex);
}

static inline void asi_intrusive_queue_put(asi_intrusive_queue *queue, asi_intrusive_queue_item *item)
{
    item->next = NULL;
    pthread_mutex_lock(&queue->mutex);
    AS_ASSERT((NULL == queue->tail) == (0 == queue->count) && item != queue->tail);
    if (NULL == queue->tail)
    {
        queue->head = item;
    }
    else
    {
        queue->tail->next = item;
    }
    queue->tail = item;
    asi_store_release_i32(&queue->count, queue->count + 1);
    pthread_mutex_unlock(&queue->mutex);
}

/* NULL when nothing is queued. */
static inline asi_intrusive_queue_item *asi_intrusive_queue_take(asi_intrusive_queue *queue)
{
    if (0 == asi_load_acquire_i32(&queue->count))
    {
        return NULL;
    }
    pthread_mutex_lock(&queue->mutex);
    asi_intrusive_queue_item *item = queue->head;
    AS_ASSERT((NULL == item) == (0 == queue->count));
    if (NULL != item)
    {
        queue->head = item->next;
        queue->tail = NULL == queue->head ? NULL : queue->tail;
        asi_store_release_i32(&queue->count, queue->count - 1);
    }
    pthread_mutex_unlock(&queue->mutex);
    return item;
}

#endif

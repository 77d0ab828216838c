/* Handing sessions and answers from one agent of the archive to another. Spec: 08 §1 (hand-over by queues).
 *
 * Used between conductor and recorder, and between conductor and replayer; in SHARED and INVOKER mode both ends are one thread.
 * An item belongs to one queue at a time and to the taker once taken; order is kept. An idle taker pays one acquire load and no
 * lock, so duty cycles stay lock-free while nothing is handed over.
 * Thread rule: any number of putting and taking threads. */
#ifndef ASI_RECORD_HAND_OVER_H
#define ASI_RECORD_HAND_OVER_H

#include <pthread.h>

#include "base/atomic.h"

typedef struct asi_hand_over_item
{
    struct asi_hand_over_item *next;
} asi_hand_over_item; /* first member of what is handed over */

typedef struct asi_hand_over
{
    pthread_mutex_t mutex;     /* guards head and tail */
    asi_hand_over_item *head;
    asi_hand_over_item *tail;
    int32_t count;             /* released by put; a stale read costs the taker one more cycle */
} asi_hand_over;

static inline void asi_hand_over_init(asi_hand_over *queue)
{
    pthread_mutex_init(&queue->mutex, NULL);
    queue->head = NULL;
    queue->tail = NULL;
    queue->count = 0;
}

/* What is still queued stays the caller's: take it first. */
static inline void asi_hand_over_close(asi_hand_over *queue)
{
    pthread_mutex_destroy(&queue->mutex);
}

static inline void asi_hand_over_put(asi_hand_over *queue, asi_hand_over_item *item)
{
    item->next = NULL;
    pthread_mutex_lock(&queue->mutex);
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
static inline asi_hand_over_item *asi_hand_over_take(asi_hand_over *queue)
{
    if (0 == asi_load_acquire_i32(&queue->count))
    {
        return NULL;
    }
    pthread_mutex_lock(&queue->mutex);
    asi_hand_over_item *item = queue->head;
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

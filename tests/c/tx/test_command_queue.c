/* Command queues: order, fullness, many producers at once. */
#include "driver/queues/command_queue.h"

#include <pthread.h>
#include <sched.h>

#include "check.h"

#define PRODUCERS 3
#define MESSAGES 20000

typedef struct letter
{
    int32_t producer;
    int32_t number;
    uint8_t filler[100];
} letter;

static void order_and_fullness(void)
{
    asi_command_queue queue;
    letter got;
    CHECK_I64(asi_command_queue_open(&queue, 8, sizeof(letter)), AS_OK);
    CHECK(!asi_command_queue_take(&queue, &got));
    for (int round = 0; round < 5; round++)
    {
        for (int i = 0; i < 8; i++)
        {
            const letter sent = { .number = i };
            CHECK(asi_command_queue_put(&queue, &sent));
        }
        const letter too_many = { .number = 99 };
        CHECK(!asi_command_queue_put(&queue, &too_many));
        for (int i = 0; i < 8; i++)
        {
            CHECK(asi_command_queue_take(&queue, &got));
            CHECK_I64(got.number, i);
        }
        CHECK(!asi_command_queue_take(&queue, &got));
    }
    asi_command_queue_close(&queue);
}

typedef struct producer
{
    asi_command_queue *queue;
    int32_t id;
} producer;

static void *produce(void *context)
{
    const producer *p = context;
    for (int32_t i = 0; i < MESSAGES; i++)
    {
        letter sent = { .producer = p->id, .number = i };
        memset(sent.filler, i, sizeof(sent.filler));
        while (!asi_command_queue_put(p->queue, &sent))
        {
            sched_yield();
        }
    }
    return NULL;
}

static void many_producers(void)
{
    asi_command_queue queue;
    pthread_t threads[PRODUCERS];
    producer producers[PRODUCERS];
    int32_t next[PRODUCERS] = { 0 };
    CHECK_I64(asi_command_queue_open(&queue, 16, sizeof(letter)), AS_OK);
    for (int32_t i = 0; i < PRODUCERS; i++)
    {
        producers[i] = (producer){ .queue = &queue, .id = i };
        CHECK_I64(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
    }
    for (int taken = 0; taken < PRODUCERS * MESSAGES;)
    {
        letter got;
        if (!asi_command_queue_take(&queue, &got))
        {
            sched_yield();
            continue;
        }
        CHECK_I64(got.number, next[got.producer]);
        CHECK_I64(got.filler[99], (uint8_t)got.number);
        next[got.producer]++;
        taken++;
    }
    for (int32_t i = 0; i < PRODUCERS; i++)
    {
        pthread_join(threads[i], NULL);
    }
    asi_command_queue_close(&queue);
}

int main(void)
{
    RUN(order_and_fullness);
    RUN(many_producers);
    return 0;
}

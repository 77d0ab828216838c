/* Goal: a command that fails for want of counters, at whichever of them, leaves no counter, socket or log behind. Method:
 * memory_rig.h; a client takes all counters and gives them back one by one, another client's command is tried with each number of
 * free ones. */
#include "memory_rig.h"

#define STREAM 1001
#define LAST_FILLER 100000

static void few_counters(asi_driver_settings *settings) { settings->counters_values_buffer_length = 1024 * 1024; }

static int32_t counters_in_use(const memory_rig *m)
{
    int32_t count = 0;
    for (int32_t i = 0; i < m->rig.counters.max_count; i++)
    {
        count += ASI_COUNTER_ALLOCATED == asi_counter_state(&m->rig.counters, i) ? 1 : 0;
    }
    return count;
}

static int32_t sockets_in_use(const memory_rig *m)
{
    int32_t count = 0;
    for (int i = 0; i < FAKE_NET_SOCKETS; i++)
    {
        count += NULL != m->net.sockets[i] ? 1 : 0;
    }
    return count;
}

static int32_t next_answer(memory_rig *m)
{
    rig_cycle(&m->rig);
    CHECK(rig_receive(&m->rig));
    return m->rig.last.type_id;
}

static void take_answers(memory_rig *m)
{
    while (rig_receive(&m->rig))
    {
    }
}

/* Longer than a publication lingers and a counter cools down. */
static void pass(memory_rig *m)
{
    for (int i = 0; i < 80; i++)
    {
        m->rig.now_ns += 100 * RIG_MS;
        memory_rig_cycles(m, 1);
    }
    take_answers(m);
}

/* Returns how many counters it took. */
static int64_t take_all_counters(memory_rig *m)
{
    int64_t taken = 0;
    do
    {
        uint8_t message[64] = { 0 };
        const asi_cmd_counter command = { { 1, LAST_FILLER - taken }, 1000, 0 };
        memcpy(message, &command, sizeof(command));
        rig_send(&m->rig, ASI_CMD_ADD_COUNTER, message, sizeof(command) + 4);
        taken++;
    }
    while (ASI_RSP_ERROR != next_answer(m));
    take_answers(m);
    return taken - 1;
}

static void leaves_nothing(int32_t type_id, const char *channel, const char *folder)
{
    memory_rig m;
    char path[SCRATCH_CAPACITY + 32];
    memory_rig_open(&m, few_counters);
    rig_send_add(&m.rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 10, STREAM, "aeron:ipc"); /* makes the first client known */
    memory_rig_cycles(&m, 2);
    take_answers(&m);
    const int64_t fillers = take_all_counters(&m);
    const int32_t sockets = sockets_in_use(&m);
    snprintf(path, sizeof(path), "%s/%s", m.rig.dir, folder);
    int32_t room = 0;
    for (;; room++)
    {
        const int32_t before = counters_in_use(&m);
        CHECK_I64(before, m.rig.counters.max_count - room);
        rig_send_add(&m.rig, type_id, 2, 200000 + room, STREAM, channel);
        if (ASI_RSP_ERROR != next_answer(&m))
        {
            break;
        }
        pass(&m);
        CHECK_I64(counters_in_use(&m), before);
        CHECK_I64(sockets_in_use(&m), sockets);
        CHECK_I64(rmdir(path), 0); /* it is empty */
        CHECK_I64(mkdir(path, 0700), 0);
        rig_send_remove(&m.rig, ASI_CMD_REMOVE_COUNTER, 1, 300000 + room, LAST_FILLER - fillers + 1 + room);
        memory_rig_cycles(&m, 2);
        pass(&m);
    }
    CHECK(room >= 2);
    memory_rig_close(&m);
}

static void publications(void)
{
    leaves_nothing(ASI_CMD_ADD_PUBLICATION, "aeron:ipc?term-length=64k", "publications");
    leaves_nothing(ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, "aeron:udp?endpoint=127.0.0.1:24300|term-length=64k", "publications");
    leaves_nothing(ASI_CMD_ADD_PUBLICATION, "aeron:udp?control=127.0.0.1:24301|control-mode=dynamic|fc=min|term-length=64k",
        "publications");
}

static void subscriptions(void) { leaves_nothing(ASI_CMD_ADD_SUBSCRIPTION, "aeron:udp?endpoint=127.0.0.1:24302", "images"); }

int main(void)
{
    RUN(publications);
    RUN(subscriptions);
    return 0;
}

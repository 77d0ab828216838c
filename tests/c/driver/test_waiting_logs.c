/* Goal: a log whose storage is being reserved goes to the command that asked for it, to no other publication and no image, and no
 * later command of its client takes effect before it. Method: memory_rig.h; correlation ids come from shared memory, so a client can use one twice, or that of the next image. */
#include "memory_rig.h"
#include "wire/frame.h"

#define STREAM 1001
#define WAITING "aeron:ipc?term-length=1m|sparse=false"
#define MIB (1024 * 1024)

static void request_waiting(test_rig *rig, int64_t correlation_id, const char *channel)
{
    rig_send_add(rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, 1, correlation_id, STREAM, channel);
    rig_expect_none(rig);
}

static void await_broadcast(test_rig *rig)
{
    for (int32_t cycles = 0; !rig_receive(rig); cycles++)
    {
        CHECK(cycles < 1000);
        rig_cycle(rig);
    }
}

static void expect_log(const rig_message *ready, int64_t registration_id, int32_t term_length)
{
    asi_rsp_publication_ready message;
    asi_log log;
    CHECK_I64(ready->type_id, ASI_RSP_EXCLUSIVE_PUBLICATION_READY);
    memcpy(&message, ready->bytes, sizeof(message));
    CHECK_I64(message.registration_id, registration_id);
    rig_map_log((const char *)ready->bytes + sizeof(message), message.log_file_name_length, &log);
    CHECK_I64(log.metadata->correlation_id, registration_id);
    CHECK_I64(log.term_length, term_length);
    asi_log_close(&log);
}

static void expect_client(test_rig *rig, int64_t client_id)
{
    await_broadcast(rig);
    CHECK_I64(rig->last.type_id, ASI_RSP_COUNTER_READY);
    CHECK_I64(asi_get_i64(rig->last.bytes), client_id);
    await_broadcast(rig);
}

/* A second command with the id fails like any other for which a log exists. */
static void an_id_that_waits(void)
{
    static const struct { int64_t client_id; const char *channel; } ROWS[] = {
        { 1, WAITING },
        { 1, "aeron:ipc?term-length=64k|sparse=false" },
        { 2, "aeron:ipc?term-length=64k|sparse=true" },
        { 2, "aeron:udp?endpoint=127.0.0.1:24100|term-length=2m|sparse=false" },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        memory_rig m;
        memory_rig_open(&m, NULL);
        request_waiting(&m.rig, 10, WAITING);
        rig_send_add(&m.rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, ROWS[i].client_id, 10, STREAM + 1, ROWS[i].channel);
        if (1 != ROWS[i].client_id)
        {
            rig_expect_error(&m.rig, 10, ASI_ERR_GENERIC);
        }
        expect_client(&m.rig, 1);
        expect_log(&m.rig.last, 10, MIB);
        if (1 == ROWS[i].client_id) /* its commands keep their order */
        {
            rig_cycle(&m.rig);
            rig_expect_error(&m.rig, 10, ASI_ERR_GENERIC);
        }
        memory_rig_close(&m);
    }
}

/* The id of an image is foreseeable: it is the next one. */
static void an_image_with_an_id_that_waits(memory_rig *m)
{
    const int64_t id = asi_ring_mpsc_next_correlation_id(&m->rig.ring) + 1;
    asi_log log;
    rig_image image;
    rig_send_add(&m->rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 20, STREAM, "aeron:udp?endpoint=127.0.0.1:24000");
    rig_expect_i32(&m->rig, ASI_RSP_COUNTER_READY, 1);
    rig_expect_i32(&m->rig, ASI_RSP_SUBSCRIPTION_READY, 20);
    memory_rig_cycles(m, 3);
    request_waiting(&m->rig, id, WAITING);
    const asi_setup_frame setup = { .prefix = { .frame_length = sizeof(setup), .type = ASI_FRAME_SETUP }, .session_id = 4711,
        .stream_id = STREAM, .term_length = AS_TERM_MIN_LENGTH, .mtu_length = 1408 };
    memory_rig_send(m, &setup, sizeof(setup), 24000);
    memory_rig_cycles(m, 5);
    rig_expect_image(&m->rig, 20, &image);
    CHECK_I64(image.available.image_correlation_id, id);
    rig_map_log((const char *)m->rig.last.bytes + sizeof(image.available), image.available.log_file_name_length, &log);
    CHECK_I64(log.metadata->type, ASI_LOG_PUBLICATION_IMAGE);
    CHECK_I64(log.term_length, AS_TERM_MIN_LENGTH);
    asi_log_close(&log);
    await_broadcast(&m->rig);
    expect_log(&m->rig.last, id, MIB);
}

/* The term length of a session's tag is that of the publication which has the tag when the storage is there. */
static void a_term_length_that_changes_meanwhile(memory_rig *m)
{
    test_rig *rig = &m->rig;
    rig_send_add(rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, 2, 10, STREAM, "aeron:ipc?tags=1,77|term-length=1m|sparse=true");
    expect_client(rig, 2);
    rig_send_add(rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, 1, 11, STREAM + 1, "aeron:ipc?session-id=tag:77|sparse=false");
    rig_expect_none(rig);
    rig_send_remove(rig, ASI_CMD_REMOVE_PUBLICATION, 2, 12, 10);
    rig_expect_success(rig, 12);
    rig_send_add(rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, 2, 13, STREAM, "aeron:ipc?tags=1,77|term-length=2m|sparse=true");
    await_broadcast(rig);
    expect_log(&rig->last, 13, 2 * MIB);
    await_broadcast(rig);
    CHECK_I64(rig->last.type_id, ASI_RSP_ERROR);
    CHECK_I64(asi_get_i64(rig->last.bytes), 11);
    CHECK_I64(asi_get_i32(rig->last.bytes + 8), ASI_ERR_RESOURCE_TEMPORARILY_UNAVAILABLE);
    char path[SCRATCH_CAPACITY + 32];
    snprintf(path, sizeof(path), "%s/publications/11.logbuffer", rig->dir);
    CHECK_I64(access(path, F_OK), -1);
}

static int64_t bytes_at(const rig_message *message, size_t offset, bool is_long)
{
    return is_long ? asi_get_i64(message->bytes + offset) : asi_get_i32(message->bytes + offset);
}

/* Names of what was added in the same breath: a session by its tag, a registration id, a channel by its tag, a session id. */
static void commands_of_a_client_keep_their_order(memory_rig *m)
{
    test_rig *rig = &m->rig;
    rig_send_add(rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, 1, 10, STREAM, "aeron:udp?control-mode=manual|tags=5,77|term-length=1m|"
        "sparse=false");
    rig_send_add(rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, 1, 11, STREAM + 1, "aeron:udp?tags=5|session-id=tag:77|sparse=false");
    uint8_t message[128];
    const char *endpoint = "aeron:udp?endpoint=127.0.0.1:24100";
    const asi_cmd_destination destination = { { 1, 12 }, 10, (int32_t)strlen(endpoint) };
    memcpy(message, &destination, sizeof(destination));
    memcpy(message + sizeof(destination), endpoint, strlen(endpoint));
    rig_send(rig, ASI_CMD_ADD_DESTINATION, message, (int64_t)(sizeof(destination) + strlen(endpoint)));
    rig_send_add(rig, ASI_CMD_ADD_SUBSCRIPTION, 1, 13, STREAM, "aeron-spy:aeron:udp?tags=5");
    rig_send_remove(rig, ASI_CMD_REMOVE_PUBLICATION, 1, 14, 10);
    rig_send_add(rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, 1, 15, STREAM, "aeron:ipc?term-length=64k");
    rig_send_ids(rig, ASI_CMD_CLIENT_KEEPALIVE, 1, 16);
    rig_expect_none(rig);
    rig_send_add(rig, ASI_CMD_ADD_SUBSCRIPTION, 2, 20, STREAM, "aeron:ipc"); /* another client's do not wait */
    rig_expect_i32(rig, ASI_RSP_COUNTER_READY, 2);
    rig_expect_i32(rig, ASI_RSP_SUBSCRIPTION_READY, 20);
    expect_client(rig, 1);
    expect_log(&rig->last, 10, MIB);
    const int64_t session_id = bytes_at(&rig->last, offsetof(asi_rsp_publication_ready, session_id), false);
    await_broadcast(rig);
    expect_log(&rig->last, 11, MIB); /* has waited for the first, then for its own log */
    CHECK_I64(bytes_at(&rig->last, offsetof(asi_rsp_publication_ready, session_id), false), session_id);
    await_broadcast(rig);
    CHECK_I64(rig->last.type_id, ASI_RSP_OPERATION_SUCCESS);
    CHECK_I64(bytes_at(&rig->last, 0, true), 12);
    await_broadcast(rig);
    CHECK_I64(rig->last.type_id, ASI_RSP_SUBSCRIPTION_READY);
    CHECK_I64(bytes_at(&rig->last, 0, true), 13);
    do /* the spy's images come between */
    {
        await_broadcast(rig);
    } while (ASI_RSP_AVAILABLE_IMAGE == rig->last.type_id);
    CHECK_I64(rig->last.type_id, ASI_RSP_OPERATION_SUCCESS);
    CHECK_I64(bytes_at(&rig->last, 0, true), 14);
    await_broadcast(rig);
    expect_log(&rig->last, 15, AS_TERM_MIN_LENGTH);
}

/* The last command that waits is taken back at once, another removal waits; one that names itself finds nothing. */
static void removals_while_a_command_waits(memory_rig *m)
{
    test_rig *rig = &m->rig;
    request_waiting(rig, 10, WAITING);
    rig_send_add(rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, 1, 11, STREAM, "aeron:ipc?term-length=64k");
    rig_expect_none(rig);
    rig_send_remove(rig, ASI_CMD_REMOVE_PUBLICATION, 1, 12, 11);
    rig_expect_success(rig, 12);
    rig_send_ids(rig, ASI_CMD_CLIENT_KEEPALIVE, 1, 13);
    rig_send_remove(rig, ASI_CMD_REMOVE_PUBLICATION, 1, 14, 14);
    rig_send_remove(rig, ASI_CMD_REMOVE_PUBLICATION, 1, 15, 10);
    rig_expect_none(rig);
    expect_client(rig, 1);
    expect_log(&rig->last, 10, MIB);
    rig_cycle(rig);
    rig_expect_error(rig, 14, ASI_ERR_UNKNOWN_PUBLICATION);
    rig_cycle(rig);
    rig_expect_success(rig, 15);
    rig_cycle(rig);
    rig_expect_none(rig);
}

/* Of 16 KiB, as its channel is. */
static void send_long_add(test_rig *rig, int64_t correlation_id)
{
    static uint8_t message[16 * 1024];
    const asi_cmd_publication command = { { 1, correlation_id }, STREAM, (int32_t)(sizeof(message) - sizeof(command)) };
    memset(message, 'x', sizeof(message));
    memcpy(message, &command, sizeof(command));
    rig_send(rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, message, sizeof(message));
    rig_cycle(rig); /* a command that does not fit before the end of the ring comes in the second */
}

/* What a client can have the driver keep has a bound. */
static void too_many_commands_that_wait(memory_rig *m)
{
    test_rig *rig = &m->rig;
    request_waiting(rig, 1, "aeron:ipc?term-length=16m|sparse=false");
    int64_t id = 2;
    for (send_long_add(rig, id); !rig_receive(rig); send_long_add(rig, id))
    {
        CHECK(++id < 66);
    }
    CHECK(id > 60);
    CHECK_I64(rig->last.type_id, ASI_RSP_ERROR);
    CHECK_I64(bytes_at(&rig->last, 0, true), id);
    CHECK_I64(bytes_at(&rig->last, 8, false), ASI_ERR_RESOURCE_TEMPORARILY_UNAVAILABLE);
    rig_send_remove(rig, ASI_CMD_REMOVE_PUBLICATION, 1, 1000, id - 1);
    rig_expect_success(rig, 1000);
    send_long_add(rig, id);
    rig_expect_none(rig);
}

int main(void)
{
    RUN(an_id_that_waits);
    RUN_IN_MEMORY_RIG(an_image_with_an_id_that_waits);
    RUN_IN_MEMORY_RIG(a_term_length_that_changes_meanwhile);
    RUN_IN_MEMORY_RIG(commands_of_a_client_keep_their_order);
    RUN_IN_MEMORY_RIG(removals_while_a_command_waits);
    RUN_IN_MEMORY_RIG(too_many_commands_that_wait);
    return 0;
}

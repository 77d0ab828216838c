/* Goal: a log whose storage is being reserved goes to the command that asked for it, to no other publication and no image.
 * Method: memory_rig.h; correlation ids come from shared memory, so a client can use one twice, or that of the next image. */
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
        rig_expect_error(&m.rig, 10, ASI_ERR_GENERIC);
        expect_client(&m.rig, 1);
        expect_log(&m.rig.last, 10, MIB);
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
    rig_send_add(rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, 1, 10, STREAM, "aeron:ipc?tags=1,77|term-length=1m|sparse=true");
    expect_client(rig, 1);
    rig_send_add(rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, 1, 11, STREAM + 1, "aeron:ipc?session-id=tag:77|sparse=false");
    rig_expect_none(rig);
    rig_send_remove(rig, ASI_CMD_REMOVE_PUBLICATION, 1, 12, 10);
    rig_expect_success(rig, 12);
    rig_send_add(rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, 1, 13, STREAM, "aeron:ipc?tags=1,77|term-length=2m|sparse=true");
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

int main(void)
{
    RUN(an_id_that_waits);
    RUN_IN_MEMORY_RIG(an_image_with_an_id_that_waits);
    RUN_IN_MEMORY_RIG(a_term_length_that_changes_meanwhile);
    return 0;
}

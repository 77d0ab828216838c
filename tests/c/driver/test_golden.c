/* Shared memory of a stock C driver and of ours, compared byte for byte where it does not depend on time and random numbers.
 *
 * Method: a driver with the captured driver's settings gets the IPC part of the captured session; header, counters and log
 * metadata are compared with the capture (tests/golden/shm). Spec: 01 §2, §5-7, 02 §2. */
#define _GNU_SOURCE
#include "rig.h"

#define CHANNEL "aeron:ipc?term-length=64k|alias=golden-ipc"

typedef struct golden_cnc
{
    uint8_t *bytes;
    asi_counters counters;
} golden_cnc;

static void dedicated(asi_driver_settings *settings) { settings->threading_mode = ASI_THREADING_DEDICATED; }

static golden_cnc load(void)
{
    golden_cnc golden;
    int64_t length;
    golden.bytes = golden_load_sparse("shm/c-driver-cnc.sparse", &length);
    const int64_t metadata_at =
        ASI_CNC_HEADER_LENGTH + (int64_t)asi_get_i32(golden.bytes + 4) + asi_get_i32(golden.bytes + 8);
    const int32_t metadata_length = asi_get_i32(golden.bytes + 12);
    CHECK_I64(asi_counters_init(&golden.counters, golden.bytes + metadata_at, metadata_length,
        golden.bytes + metadata_at + metadata_length, asi_get_i32(golden.bytes + 16)), AS_OK);
    return golden;
}

static void check_header(const golden_cnc *golden, const test_rig *rig)
{
    const uint8_t *ours = rig->cnc.map.base;
    enum { START_TIMESTAMP = 32, FILE_PAGE_SIZE = 48 };
    CHECK(0 == memcmp(ours, golden->bytes, START_TIMESTAMP));
    CHECK(0 == memcmp(ours + FILE_PAGE_SIZE, golden->bytes + FILE_PAGE_SIZE, ASI_CNC_HEADER_LENGTH - FILE_PAGE_SIZE));
    CHECK_I64(rig->cnc.start_timestamp_ms, RIG_START_MS + 1000);
    CHECK_I64(rig->cnc.pid, getpid());
}

/* Labels up to the build's commit, and up to the session id's text, which chance decides. */
static void check_label(const golden_cnc *golden, const test_rig *rig, int32_t theirs_id, int32_t ours_id)
{
    char theirs[ASI_COUNTER_LABEL_CAPACITY + 1];
    char ours[ASI_COUNTER_LABEL_CAPACITY + 1];
    char expected[2 * ASI_COUNTER_LABEL_CAPACITY];
    asi_counter_label(&golden->counters, theirs_id, theirs);
    asi_counter_label(&rig->counters, ours_id, ours);
    char *commit = strstr(theirs, " commit=");
    if (NULL != commit)
    {
        CHECK(0 == strncmp(ours, theirs, (size_t)(commit - theirs)));
        return;
    }
    char session[16];
    snprintf(session, sizeof(session), "%d", asi_get_i32(golden->counters.metadata[theirs_id].key + 8));
    char *at = strstr(theirs, session);
    if (0 == golden->counters.metadata[theirs_id].type_id || NULL == at)
    {
        snprintf(expected, sizeof(expected), "%s", theirs);
    }
    else
    {
        snprintf(expected, sizeof(expected), "%.*s%d%s", (int)(at - theirs), theirs,
            asi_get_i32(rig->counters.metadata[ours_id].key + 8), at + strlen(session));
    }
    CHECK_TEXT(ours, expected);
}

static void check_counter(const golden_cnc *golden, const test_rig *rig, int32_t theirs_id, int32_t ours_id)
{
    enum { SESSION = 8, AFTER_SESSION = 12 };
    const asi_counter_metadata *theirs = &golden->counters.metadata[theirs_id];
    const asi_counter_metadata *ours = &rig->counters.metadata[ours_id];
    CHECK_I64(ours->state, theirs->state);
    CHECK_I64(ours->type_id, theirs->type_id);
    CHECK_I64(ours->free_for_reuse_deadline_ms, theirs->free_for_reuse_deadline_ms);
    CHECK(0 == memcmp(ours->key, theirs->key, SESSION));
    CHECK(0 == memcmp(ours->key + AFTER_SESSION, theirs->key + AFTER_SESSION, sizeof(ours->key) - AFTER_SESSION));
    CHECK_I64(rig->counters.values[ours_id].registration_id, golden->counters.values[theirs_id].registration_id);
    CHECK_I64(rig->counters.values[ours_id].owner_id, golden->counters.values[theirs_id].owner_id);
    CHECK_I64(rig->counters.values[ours_id].reference_id, golden->counters.values[theirs_id].reference_id);
    check_label(golden, rig, theirs_id, ours_id);
}

static int32_t find(const asi_counters *counters, int32_t type_id, int64_t registration_id)
{
    const int32_t id = asi_counters_find_by_registration(counters, type_id, registration_id);
    CHECK(id >= 0);
    return id;
}

/* Everything but positions, term ids and session id. */
static void check_log(const rig_publication *publication)
{
    int64_t length;
    uint8_t *bytes = golden_load_sparse("shm/c-driver-ipc-publication.sparse", &length);
    CHECK_I64(publication->log.map.length, length);
    asi_log_metadata theirs;
    asi_log_metadata ours;
    memcpy(&theirs, bytes + length - ASI_LOG_METADATA_LENGTH, sizeof(theirs));
    memcpy(&ours, publication->log.metadata, sizeof(ours));
    const int32_t initial_term_id = ours.initial_term_id;
    CHECK_I64(ours.tail_counters[0], asi_log_raw_tail(initial_term_id, 0));
    CHECK_I64(ours.tail_counters[1], asi_log_raw_tail(asi_wrap_sub(initial_term_id, 2), 0));
    CHECK_I64(ours.tail_counters[2], asi_log_raw_tail(asi_wrap_sub(initial_term_id, 1), 0));
    CHECK_I64(ours.active_term_count, 0);
    CHECK_I64(asi_get_i32(ours.default_header + 12), publication->ready.session_id);
    CHECK_I64(asi_get_i32(ours.default_header + 20), initial_term_id);
    memcpy(ours.tail_counters, theirs.tail_counters, sizeof(ours.tail_counters));
    ours.active_term_count = theirs.active_term_count;
    ours.initial_term_id = theirs.initial_term_id;
    memcpy(ours.default_header + 12, theirs.default_header + 12, 4);
    memcpy(ours.default_header + 20, theirs.default_header + 20, 4);
    /* The kernel's defaults are the machine's; over IPC they have no effect. */
    ours.os_default_socket_sndbuf_length = theirs.os_default_socket_sndbuf_length;
    ours.os_default_socket_rcvbuf_length = theirs.os_default_socket_rcvbuf_length;
    CHECK(0 == memcmp(&ours, &theirs, sizeof(ours)));
    free(bytes);
}

static void shared_memory(void)
{
    test_rig rig;
    rig_publication publication;
    rig_image image;
    golden_cnc golden = load();
    rig_open(&rig, dedicated);
    check_header(&golden, &rig);
    for (int32_t id = 0; id < ASI_SYSTEM_COUNTER_COUNT; id++)
    {
        check_counter(&golden, &rig, id, id);
    }
    CHECK_I64(rig_system(&rig, ASI_SYSTEM_AERON_VERSION), 0x013400);
    CHECK_I64(rig_system(&rig, ASI_SYSTEM_CONTROL_PROTOCOL_VERSION), ASI_CONTROL_PROTOCOL_VERSION);
    CHECK_I64(rig_system(&rig, ASI_SYSTEM_BYTES_CURRENTLY_MAPPED), rig.cnc.map.length + 1024 * 1024);
    CHECK_I64(asi_ring_mpsc_next_correlation_id(&rig.ring), 1);

    rig_send_add(&rig, ASI_CMD_ADD_SUBSCRIPTION, 3, 4, 1001, CHANNEL);
    rig_expect_i32(&rig, ASI_RSP_COUNTER_READY, 3);
    rig_expect_i32(&rig, ASI_RSP_SUBSCRIPTION_READY, 4);
    rig_send_add(&rig, ASI_CMD_ADD_EXCLUSIVE_PUBLICATION, 3, 6, 1001, CHANNEL);
    rig_expect_publication(&rig, true, &publication);
    rig_expect_image(&rig, 4, &image);
    static const struct { int32_t type_id; int64_t registration_id; } COUNTERS[] = {
        { ASI_COUNTER_TYPE_PUBLISHER_POSITION, 6 }, { ASI_COUNTER_TYPE_PUBLISHER_LIMIT, 6 },
        { ASI_COUNTER_TYPE_SUBSCRIBER_POSITION, 4 }
    };
    for (size_t i = 0; i < sizeof(COUNTERS) / sizeof(COUNTERS[0]); i++)
    {
        check_counter(&golden, &rig, find(&golden.counters, COUNTERS[i].type_id, COUNTERS[i].registration_id),
            find(&rig.counters, COUNTERS[i].type_id, COUNTERS[i].registration_id));
    }
    check_log(&publication);
    asi_log_close(&publication.log);
    rig_close(&rig);
    free(golden.bytes);
}

static void loss_report(void)
{
    test_rig rig;
    char path[128];
    asi_map map;
    rig_open(&rig, NULL);
    snprintf(path, sizeof(path), "%s/loss-report.dat", rig.dir);
    CHECK_I64(asi_map_open(&map, path, 1, false), AS_OK);
    CHECK_I64(map.length, 1024 * 1024);
    for (int64_t at = 0; at < map.length; at++)
    {
        CHECK_I64(map.base[at], 0);
    }
    asi_map_close(&map);
    rig_close(&rig);
}

int main(void)
{
    RUN(shared_memory);
    RUN(loss_report);
    return 0;
}

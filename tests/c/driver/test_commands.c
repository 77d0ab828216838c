/* Commands and their answers, byte for byte and code for code.
 *
 * Method: the IPC part of a session captured between a stock client, C or Java, and the stock C driver is replayed: the same
 * commands must give the same broadcasts, apart from the directory's name and the session ids' base. Then a table of wrong commands
 * with the answers the stock drivers give. */
#define _GNU_SOURCE
#include "rig.h"

#define CLIENT 1

/* -- captured session --------------------------------------------------------------------------------------------------- */

typedef struct session_replay
{
    test_rig rig;
    int32_t session_shift; /* ours minus the captured */
    bool has_base;
} session_replay;

static int64_t unhex(const char *text, uint8_t *bytes)
{
    int64_t length = 0;
    unsigned byte;
    for (; 1 == sscanf(text + 2 * length, "%2x", &byte); length++)
    {
        CHECK(length < RIG_MESSAGE_CAPACITY);
        bytes[length] = (uint8_t)byte;
    }
    return length;
}

#define CAPTURED_DIR "/dev/shm/v2-cmd"

/* Puts our directory's name, which is as long, and the session id's distance from the base where the capture has its own. */
static void compare(session_replay *replay, int32_t type_id, uint8_t *expected, int64_t length)
{
    const rig_message *last = &replay->rig.last;
    CHECK(rig_receive(&replay->rig));
    CHECK_I64(last->type_id, type_id);
    CHECK_I64(last->length, length);
    uint8_t *name = memmem(expected, (size_t)length, CAPTURED_DIR, strlen(CAPTURED_DIR));
    if (NULL != name)
    {
        memcpy(name, replay->rig.dir, strlen(CAPTURED_DIR));
    }
    const int32_t session_at = ASI_RSP_AVAILABLE_IMAGE == type_id ? 8 :
        ASI_RSP_PUBLICATION_READY == type_id || ASI_RSP_EXCLUSIVE_PUBLICATION_READY == type_id ||
            ASI_RSP_PUBLICATION_ERROR == type_id ? 16 : -1;
    if (session_at >= 0)
    {
        if (!replay->has_base)
        {
            replay->has_base = true;
            replay->session_shift = asi_wrap_sub(asi_get_i32(last->bytes + session_at), asi_get_i32(expected + session_at));
        }
        asi_put_i32(expected + session_at, asi_wrap_add(asi_get_i32(expected + session_at), replay->session_shift));
    }
    if (ASI_RSP_PUBLICATION_ERROR == type_id)
    {
        /* Spec: 03 §16 T9 - the stock C driver sends the address 127.0.0.1 backwards; ours is in network order. */
        const uint8_t loopback[] = { 127, 0, 0, 1 };
        memcpy(expected + 44, loopback, sizeof(loopback));
    }
    CHECK(0 == memcmp(last->bytes, expected, (size_t)length));
}

/* Sections of the captures that speak of IPC, clients and counters only, in its order. */
static const char *const SECTIONS[] = { "# async_add_counter(1001", "# async_add_counter(1002", "# async_add_static_counter",
    "# add_subscription aeron:ipc", "# add_publication aeron:ipc", "# add_publication again",
    "# add_exclusive_publication aeron:ipc", "# image_reject (ipc)", "# exclusive_publication_revoke",
    "# publication_close, second", "# publication_close, first", "# counter_close", "# subscription_close ipc",
    "# client close", "# request_driver_termination",
    "# addCounter(1001", "# addCounter(1002", "# addStaticCounter", "# addSubscription aeron:ipc", "# addPublication aeron:ipc",
    "# addPublication again", "# addExclusivePublication aeron:ipc", "# reject image (ipc)", "# exclusive publication revoke",
    "# close shared publication, second", "# close shared publication, first", "# close counter", "# close subscription ipc",
    "# close client", "# requestDriverTermination" };

static bool is_wanted(const char *line)
{
    for (size_t i = 0; i < sizeof(SECTIONS) / sizeof(SECTIONS[0]); i++)
    {
        if (0 == strncmp(line, SECTIONS[i], strlen(SECTIONS[i])))
        {
            return true;
        }
    }
    return false;
}

/* The receiver was opened before any message, but a broadcast that is due at the timer needs up to a second. */
static void await_broadcast(test_rig *rig, int32_t heartbeat_id)
{
    for (int i = 0; i < 15 && asi_load_acquire_i64(rig->receiver.broadcast.tail) <= rig->receiver.next; i++)
    {
        rig->now_ns += 100 * RIG_MS;
        rig_heartbeat(rig, heartbeat_id);
        rig_cycle(rig);
    }
}

static void captured_session(const char *name, int32_t broadcasts)
{
    session_replay replay = { .has_base = false };
    uint8_t bytes[RIG_MESSAGE_CAPACITY];
    int64_t length;
    uint8_t *text = golden_load(name, &length);
    char dir[] = "/tmp/as-tXXXXXX";
    AS_STATIC_ASSERT(sizeof(dir) == sizeof(CAPTURED_DIR), "paths must be of equal length to compare");
    CHECK(NULL != mkdtemp(dir));
    rig_open_in(&replay.rig, dir, NULL);
    bool wanted = false;
    int32_t compared = 0;
    char *state = NULL;
    for (char *line = strtok_r((char *)text, "\n", &state); NULL != line; line = strtok_r(NULL, "\n", &state))
    {
        unsigned type_id;
        int hex_at = 0;
        char kind[4];
        if ('#' == line[0])
        {
            wanted = is_wanted(line);
        }
        else if (wanted && 2 == sscanf(line, "%*d %3s 0x%x %*d %n", kind, &type_id, &hex_at))
        {
            const int64_t message_length = unhex(line + hex_at, bytes);
            if (0 == strcmp(kind, "CMD"))
            {
                rig_send(&replay.rig, (int32_t)type_id, bytes, message_length);
                continue;
            }
            await_broadcast(&replay.rig, ASI_SYSTEM_COUNTER_COUNT);
            compare(&replay, (int32_t)type_id, bytes, message_length);
            compared++;
        }
    }
    rig_pass(&replay.rig, RIG_SECOND);
    CHECK_I64(rig_expect_i32(&replay.rig, ASI_RSP_UNAVAILABLE_COUNTER, CLIENT), ASI_SYSTEM_COUNTER_COUNT);
    CHECK_I64(rig_expect_i32(&replay.rig, ASI_RSP_UNAVAILABLE_COUNTER, 3), ASI_SYSTEM_COUNTER_COUNT + 2); /* never closed */
    rig_expect_none(&replay.rig);
    CHECK_I64(compared, broadcasts);
    CHECK_I64(replay.rig.terminations, 0);
    CHECK_I64(rig_system(&replay.rig, ASI_SYSTEM_IMAGES_REJECTED), 1);
    CHECK_I64(rig_system(&replay.rig, ASI_SYSTEM_PUBLICATIONS_REVOKED), 1);
    rig_close(&replay.rig);
    free(text);
}

static void session_of_the_c_client(void) { captured_session("shm/commands-c-client.txt", 20); }

/* It closed its subscription before the timer reported the revocation. */
static void session_of_the_java_client(void) { captured_session("shm/commands-java-client.txt", 19); }

/* -- wrong adds --------------------------------------------------------------------------------------------------------- */

#define OK 0
#define PUB ASI_CMD_ADD_PUBLICATION
#define XPUB ASI_CMD_ADD_EXCLUSIVE_PUBLICATION
#define SUB ASI_CMD_ADD_SUBSCRIPTION

typedef struct add_row
{
    int32_t type_id;
    int32_t stream_id;
    const char *channel;
    int32_t code; /* 0: succeeds */
    const char *text; /* what the error says; NULL: anything */
} add_row;

/* From the answers of the stock C driver to the same channels (Spec: 03 §6.1-6.3); rows see the publications of those before. */
static const add_row ADDS[] = {
    { XPUB, 1, "aeron:ipc?term-length=64k", OK, NULL },
    { XPUB, 10, "", 1, NULL },
    { XPUB, 10, "bogus", 1, "bogus" },
    { XPUB, 10, "aeron:", 1, NULL },
    { XPUB, 10, "aeron:nonsense", 1, NULL },
    { XPUB, 10, "aeron:tcp?endpoint=127.0.0.1:1", 1, NULL },
    { XPUB, 10, "AERON:ipc", 1, NULL },
    { XPUB, 10, "aeron-spy:aeron:udp?endpoint=127.0.0.1:24300", 1, "aeron-spy" },
    { XPUB, 12, "aeron:ipc?mtu=65536", 11, "mtuLength=65536" },
    { XPUB, 12, "aeron:ipc?mtu=32", 11, NULL },
    { XPUB, 12, "aeron:ipc?mtu=1409", 11, NULL },
    { XPUB, 12, "aeron:ipc?term-length=abc", 11, "could not parse term-length=abc" },
    { XPUB, 12, "aeron:ipc?term-length=100000", 11, "length=100000" },
    { XPUB, 12, "aeron:ipc?term-length=32k", 11, NULL },
    { XPUB, 12, "aeron:ipc?term-length=2g", 11, NULL },
    { XPUB, 12, "aeron:ipc?init-term-id=1", 11, "must be used as a complete set" },
    { XPUB, 12, "aeron:ipc?init-term-id=5|term-id=4|term-offset=0", 11, "difference greater than 2^31 - 1" },
    { XPUB, 12, "aeron:ipc?term-length=64k|init-term-id=5|term-id=5|term-offset=65568", 11, "term-offset=65568" },
    { XPUB, 12, "aeron:ipc?init-term-id=5|term-id=5|term-offset=33", 11, "multiple of FRAME_ALIGNMENT" },
    { XPUB, 12, "aeron:ipc?term-length=64k|pub-wnd=1k", 11, "cannot be less than the mtu" },
    { XPUB, 12, "aeron:ipc?term-length=64k|pub-wnd=64k", 11, "must not exceed half the term-length" },
    { XPUB, 12, "aeron:ipc?max-resend=0", 11, "invalid max-resend=0" },
    { XPUB, 12, "aeron:ipc?max-resend=257", 11, "invalid max-resend=257" },
    { XPUB, 12, "aeron:ipc?session-id=abc", 11, "session-id=abc" },
    { XPUB, 12, "aeron:ipc?session-id=tag:99", 11, "session-id=tag:99" },
    { XPUB, 12, "aeron:ipc?tags=1,x", 11, "Entity tag invalid" },
    { XPUB, 12, "aeron:ipc?linger=abc", 11, "linger=abc" },
    { XPUB, 12, "aeron:ipc?sparse=maybe", 11, "sparse=maybe" },
    { XPUB, 12, "aeron:ipc?response-correlation-id=-3", 11, NULL },
    { XPUB, 12, "aeron:ipc?response-correlation-id=99999", OK, NULL },
    { XPUB, 12, "aeron:ipc?control-mode=response", OK, NULL },
    { XPUB, 12, "aeron:ipc?mtu=8224|term-length=64k", OK, NULL },
    { PUB, 30, "aeron:ipc?term-length=64k|session-id=200", OK, NULL },
    { PUB, 30, "aeron:ipc", OK, NULL },
    { PUB, 30, "aeron:ipc?term-length=64k|linger=1s", OK, NULL },
    { PUB, 30, "aeron:ipc?term-length=128k", 11,
        "existing publication has different 'term-length': existing=65536 requested=131072" },
    { PUB, 30, "aeron:ipc?session-id=201", 11, "existing publication has different 'session-id': existing=200 requested=201" },
    { PUB, 30, "aeron:ipc?mtu=4096", 11, "existing publication has different 'mtu': existing=1408 requested=4096" },
    { XPUB, 30, "aeron:ipc?session-id=200", 1, "existing publication has clashing sessionId=200 for streamId=30" },
    { XPUB, 31, "aeron:ipc?session-id=200", OK, NULL },
    { XPUB, 32, "aeron:ipc?tags=7,3|session-id=77|mtu=2048|term-length=128k", OK, NULL },
    { XPUB, 33, "aeron:ipc?session-id=tag:3", OK, NULL },
    { SUB, 40, "bogus", 1, NULL },
    { SUB, 40, "aeron-spy:bogus", 1, NULL },
    { SUB, 40, "aeron-spy:aeron:ipc", 1, NULL },
    { SUB, 40, "aeron:ipc?session-id=abc", 11, "session-id=abc" },
    { SUB, 40, "aeron:ipc?rejoin=maybe", 11, "rejoin=maybe" },
    { SUB, 40, "aeron-spy:aeron:udp?endpoint=127.0.0.1:24300", OK, NULL },
    { SUB, 40, "aeron:ipc", OK, NULL },
};

static void adds(test_rig *rig)
{
    int64_t errors = 0;
    bool announced = false;
    for (size_t i = 0; i < sizeof(ADDS) / sizeof(ADDS[0]); i++)
    {
        const add_row *row = &ADDS[i];
        const int64_t correlation_id = 100 + (int64_t)i;
        rig_send_add(rig, row->type_id, CLIENT, correlation_id, row->stream_id, row->channel);
        if (OK != row->code)
        {
            const asi_rsp_error error = rig_expect_error(rig, correlation_id, row->code);
            const char *text = (const char *)rig->last.bytes + sizeof(error);
            if (NULL != row->text && NULL == memmem(text, (size_t)error.message_length, row->text, strlen(row->text)))
            {
                fprintf(stderr, "%s: '%.*s' does not say '%s'\n", row->channel, error.message_length, text, row->text);
                CHECK(false);
            }
            CHECK_I64(rig_system(rig, ASI_SYSTEM_ERRORS), ++errors);
            rig_expect_none(rig);
            continue;
        }
        if (!announced)
        {
            announced = true;
            rig_expect_i32(rig, ASI_RSP_COUNTER_READY, CLIENT);
        }
        rig_expect(rig, SUB == row->type_id ? ASI_RSP_SUBSCRIPTION_READY :
            PUB == row->type_id ? ASI_RSP_PUBLICATION_READY : ASI_RSP_EXCLUSIVE_PUBLICATION_READY);
        rig_expect_none(rig);
    }
}

/* What a tagged publication lends: session id, mtu and term length. */
static void session_of_tag(void)
{
    test_rig rig;
    rig_publication publication;
    rig_open(&rig, NULL);
    rig_send_add(&rig, XPUB, CLIENT, 2, 32, "aeron:ipc?tags=7,3|session-id=77|mtu=2048|term-length=128k");
    /* After the publication's own counters, as captured from the stock driver. */
    CHECK_I64(rig_expect_i32(&rig, ASI_RSP_COUNTER_READY, CLIENT), ASI_SYSTEM_COUNTER_COUNT + 2);
    rig_expect(&rig, ASI_RSP_EXCLUSIVE_PUBLICATION_READY);
    rig_send_add(&rig, XPUB, CLIENT, 3, 33, "aeron:ipc?session-id=tag:3");
    rig_expect_publication(&rig, true, &publication);
    CHECK_I64(publication.ready.session_id, 77);
    CHECK_I64(publication.log.mtu_length, 2048);
    CHECK_I64(publication.log.term_length, 131072);
    asi_log_close(&publication.log);
    rig_close(&rig);
}

/* -- wrong bytes -------------------------------------------------------------------------------------------------------- */

typedef struct raw_row
{
    int32_t type_id;
    int32_t length;       /* of the message: client 1, correlation 9, then 424242s and zeros as `body` says */
    int32_t body;         /* i32 put at offset 16, 20, 24, 28 and 32 */
    int32_t code;         /* 0: no answer */
    int64_t correlation_id;
} raw_row;

/* Spec: 03 §5, §16 - as the stock Java driver where the C one is silent. */
static const raw_row RAWS[] = {
    { 0x55, 24, 0, ASI_ERR_UNKNOWN_COMMAND_TYPE_ID, 0 },
    { 0x01, 8, 0, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x01, 23, 0, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x01, 40, 1000, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x01, 40, -1, ASI_ERR_INVALID_CHANNEL, 9 },
    { 0x03, 40, INT32_MIN, ASI_ERR_INVALID_CHANNEL, 9 },
    { 0x02, 23, 0, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x02, 24, 0, ASI_ERR_UNKNOWN_PUBLICATION, 9 },
    { 0x02, 28, 0, ASI_ERR_UNKNOWN_PUBLICATION, 9 },
    { 0x02, 32, 0, ASI_ERR_UNKNOWN_PUBLICATION, 9 },
    { 0x04, 31, 0, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x04, 40, 9, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x05, 16, 0, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x05, 24, 0, ASI_ERR_UNKNOWN_SUBSCRIPTION, 9 },
    { 0x06, 15, 0, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x06, 16, 0, 0, 0 },
    { 0x07, 27, 0, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x07, 28, 0, ASI_ERR_UNKNOWN_PUBLICATION, 9 },
    { 0x08, 28, 0, ASI_ERR_UNKNOWN_PUBLICATION, 9 },
    { 0x09, 20, 0, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x09, 24, 0, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x09, 40, INT32_MAX, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x09, 40, -1, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x09, 40, 8, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x0a, 16, 0, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x0a, 24, 0, ASI_ERR_UNKNOWN_COUNTER, 9 },
    { 0x0b, 16, 0, 0, 0 },
    { 0x07, 28, -1, ASI_ERR_UNKNOWN_PUBLICATION, 9 },
    { 0x0c, 28, 0, ASI_ERR_INVALID_CHANNEL, 9 }, /* subscriptions check the channel first */
    { 0x0c, 28, -1, ASI_ERR_INVALID_CHANNEL, 9 },
    { 0x0d, 28, 0, ASI_ERR_INVALID_CHANNEL, 9 },
    { 0x0e, 19, 0, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x0e, 20, 6, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x0e, 20, -1, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x0f, 24, 0, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x10, 35, 0, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x10, 36, 0, ASI_ERR_GENERIC, 9 },
    { 0x10, 36, -1, ASI_ERR_GENERIC, 9 },
    { 0x10, 39, 3, ASI_ERR_GENERIC, 9 },
    { 0x10, 1100, 1024, ASI_ERR_GENERIC, 9 },
    { 0x11, 24, 0, ASI_ERR_MALFORMED_COMMAND, 0 },
    { 0x11, 32, 0, ASI_ERR_UNKNOWN_PUBLICATION, 9 },
    { 0x12, 16, 0, ASI_ERR_MALFORMED_COMMAND, 0 },
};

static void raw_commands(test_rig *rig)
{
    for (size_t i = 0; i < sizeof(RAWS) / sizeof(RAWS[0]); i++)
    {
        const raw_row *row = &RAWS[i];
        uint8_t message[2048] = { 0 };
        asi_put_i64(message, CLIENT);
        asi_put_i64(message + 8, 9);
        for (int at = 16; at < 36; at += 4)
        {
            asi_put_i32(message + at, row->body);
        }
        rig_send(rig, row->type_id, message, row->length);
        if (0 != row->code)
        {
            rig_expect_error(rig, row->correlation_id, row->code);
        }
        rig_expect_none(rig);
    }
}

/* Any bytes at all: an answer or none, never worse. The sanitizers are the judges. */
static void random_commands(test_rig *rig)
{
    asi_rand rand = test_rand();
    static const char *const CHANNELS[] = { "aeron:ipc", "aeron:ipc?term-length=64k|", "aeron-spy:aeron:udp?endpoint=127.0.0.1:24301",
        "aeron:ipc?session-id=5|tether=false" };
    for (int i = 0; i < 20000; i++)
    {
        uint8_t message[256];
        for (size_t at = 0; at < sizeof(message); at += 8)
        {
            asi_put_i64(message + at, test_rand_below(&rand, 2) ? (int64_t)asi_rand_u64(&rand) : test_rand_below(&rand, 12));
        }
        if (test_rand_below(&rand, 2))
        {
            const char *channel = CHANNELS[test_rand_below(&rand, 4)];
            const int64_t at = test_rand_below(&rand, 2) ? 24 : 32;
            asi_put_i32(message + at - 4, (int32_t)strlen(channel));
            memcpy(message + at, channel, strlen(channel));
        }
        asi_put_i64(message, test_rand_below(&rand, 3));
        asi_put_i64(message + 8, i);
        rig_send(rig, 1 + (int32_t)test_rand_below(&rand, 0x13), message, test_rand_below(&rand, sizeof(message)));
        if (0 == i % 50)
        {
            rig_pass(rig, 3 * RIG_SECOND);
        }
        while (AS_AGAIN != asi_broadcast_receive(&rig->receiver, rig_on_message, &rig->last))
        {
        }
    }
}

/* -- the rest ----------------------------------------------------------------------------------------------------------- */

static void session_ids(void)
{
    test_rig rig;
    rig_publication first;
    rig_open(&rig, NULL);
    rig_send_add(&rig, XPUB, CLIENT, 2, 20, "aeron:ipc");
    rig_expect_i32(&rig, ASI_RSP_COUNTER_READY, CLIENT);
    rig_expect_publication(&rig, true, &first);
    const asi_cmd_next_session_id command = { { CLIENT, 3 }, 20 };
    rig_send(&rig, ASI_CMD_GET_NEXT_AVAILABLE_SESSION_ID, &command, sizeof(command));
    CHECK_I64(rig_expect_i32(&rig, ASI_RSP_NEXT_AVAILABLE_SESSION_ID, 3), asi_wrap_add(first.ready.session_id, 1));
    asi_log_close(&first.log);
    rig_close(&rig);
}

static int32_t next_session_id(test_rig *rig)
{
    const asi_cmd_next_session_id command = { { CLIENT, 3 }, 20 };
    rig_send(rig, ASI_CMD_GET_NEXT_AVAILABLE_SESSION_ID, &command, sizeof(command));
    return rig_expect_i32(rig, ASI_RSP_NEXT_AVAILABLE_SESSION_ID, 3);
}

static int32_t reserved_low;
static int32_t reserved_high;

static void reserve_sessions(asi_driver_settings *settings)
{
    settings->reserved_session_id_low = reserved_low;
    settings->reserved_session_id_high = reserved_high;
}

/* Both ends of the range are reserved; the rig's driver begins at the same id each time. */
static void reserved_session_ids(void)
{
    static const struct { int32_t low; int32_t high; int32_t expected[3]; } ROWS[] = { /* from where the driver begins */
        { 100, 200, { 0, 1, 2 } },
        { 0, 0, { 1, 2, 3 } },
        { 0, 2, { 3, 4, 5 } },
        { 1, 1, { 0, 2, 3 } },
        { 1, 2, { 0, 3, 4 } },
        { -3, 0, { 1, 2, 3 } },
        { -3, -1, { 0, 1, 2 } },
    };
    test_rig rig;
    rig_open(&rig, NULL);
    const int32_t begin = next_session_id(&rig);
    rig_close(&rig);
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        reserved_low = asi_wrap_add(begin, ROWS[i].low);
        reserved_high = asi_wrap_add(begin, ROWS[i].high);
        rig_open(&rig, reserve_sessions);
        for (int k = 0; k < 3; k++)
        {
            CHECK_I64(next_session_id(&rig), asi_wrap_add(begin, ROWS[i].expected[k]));
        }
        rig_close(&rig);
    }
}

/* A channel may ask for a reserved one: that is what they are reserved for. */
static void reserved_session_ids_can_be_asked_for(void)
{
    test_rig rig;
    rig_publication publication;
    reserved_low = 1000;
    reserved_high = 2000;
    rig_open(&rig, reserve_sessions);
    rig_send_add(&rig, XPUB, CLIENT, 2, 20, "aeron:ipc?session-id=1000");
    rig_expect_i32(&rig, ASI_RSP_COUNTER_READY, CLIENT);
    rig_expect_publication(&rig, true, &publication);
    CHECK_I64(publication.ready.session_id, 1000);
    asi_log_close(&publication.log);
    rig_close(&rig);
}

static void allow(asi_driver_settings *settings) { settings->allow_termination = true; }

static void termination(void)
{
    static const struct { void (*adjust)(asi_driver_settings *); int32_t expected; } ROWS[] = { { NULL, 0 }, { allow, 1 } };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        test_rig rig;
        rig_open(&rig, ROWS[i].adjust);
        uint8_t message[26];
        const asi_cmd_terminate command = { { CLIENT, -1 }, 6 };
        memcpy(message, &command, sizeof(command));
        memcpy(message + sizeof(command), "secret", 6);
        rig_send(&rig, ASI_CMD_TERMINATE_DRIVER, message, sizeof(message));
        rig_expect_none(&rig);
        CHECK_I64(rig.terminations, ROWS[i].expected);
        rig_close(&rig);
    }
}

/* Over UDP the reasons may be short; the stock C client takes no PUBLICATION_ERROR below 72 bytes. */
static void reject_with_short_reason(void)
{
    test_rig rig;
    rig_open(&rig, NULL);
    rig_send_add(&rig, PUB, CLIENT, 2, 20, "aeron:ipc");
    rig_expect_i32(&rig, ASI_RSP_COUNTER_READY, CLIENT);
    rig_expect(&rig, ASI_RSP_PUBLICATION_READY);
    uint8_t message[37];
    const asi_cmd_reject_image command = { { CLIENT, 3 }, 2, 0, 1 };
    memcpy(message, &command, sizeof(command));
    message[36] = 'x';
    rig_send(&rig, ASI_CMD_REJECT_IMAGE, message, sizeof(message));
    asi_rsp_publication_error error;
    memcpy(&error, rig_expect(&rig, ASI_RSP_PUBLICATION_ERROR), sizeof(error));
    CHECK_I64(rig.last.length, 72);
    CHECK_I64(error.message_length, 1);
    CHECK_I64(error.error_code, ASI_ERR_IMAGE_REJECTED);
    rig_expect_success(&rig, 3);
    rig_close(&rig);
}

int main(void)
{
    RUN(session_of_the_c_client);
    RUN(session_of_the_java_client);
    RUN_IN_RIG(adds);
    RUN(session_of_tag);
    RUN_IN_RIG(raw_commands);
    RUN_IN_RIG(random_commands);
    RUN(session_ids);
    RUN(reserved_session_ids);
    RUN(reserved_session_ids_can_be_asked_for);
    RUN(termination);
    RUN(reject_with_short_reason);
    return 0;
}

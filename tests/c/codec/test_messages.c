/* Goal: every message of the archive control protocol is read and written as stock Aeron does, and no bytes from outside can
 * do harm. Method: captured messages decode and re-encode to the same bytes; every template makes the same trip with random
 * content; messages of older and newer schema versions; truncation at every length and seeded mutation, on heap copies of the
 * exact length so that the address sanitizer sees a read past the end.
 * Spec: 07 §1. */
#include "base/bits.h"
#include "base/rand.h"
#include "codec/event.h"
#include "codec/request.h"
#include "support.h"

#define MESSAGE_MAX 4096

typedef struct message
{
    bool is_request;
    int32_t template_id;
    int64_t length;
    uint8_t bytes[MESSAGE_MAX];
} message;

/* Decodes and encodes again; `length` is that of the encoded message, trailing bytes left out. */
static as_result trip(bool is_request, const uint8_t *bytes, int64_t length, uint8_t *to, int64_t *to_length)
{
    as_result result;
    if (is_request)
    {
        asi_codec_request request;
        result = asi_codec_request_decode_untrusted(bytes, length, &request);
        return AS_OK == result ? asi_codec_request_encode(&request, to, MESSAGE_MAX, to_length) : result;
    }
    asi_codec_event event;
    result = asi_codec_event_decode_untrusted(bytes, length, &event);
    return AS_OK == result ? asi_codec_event_encode(&event, to, MESSAGE_MAX, to_length) : result;
}

static bool next_golden(FILE *file, message *next)
{
    static char line[4 * MESSAGE_MAX];
    while (NULL != fgets(line, sizeof(line), file))
    {
        static char hex[2 * MESSAGE_MAX + 1];
        char direction[8];
        int template_id, schema, version, block, length;
        if (7 != sscanf(line, "%7s %d %*s %d %d %d %d %8192s", direction, &template_id, &schema, &version, &block,
                &length, hex))
        {
            CHECK('#' == line[0]);
            continue;
        }
        CHECK_I64(strlen(hex), 2 * length);
        for (int i = 0; i < length; i++)
        {
            unsigned byte;
            CHECK(1 == sscanf(hex + 2 * i, "%2x", &byte));
            next->bytes[i] = (uint8_t)byte;
        }
        next->is_request = 0 == strcmp(direction, "REQ");
        next->template_id = template_id;
        next->length = length;
        return true;
    }
    return false;
}

static FILE *open_golden(void)
{
    FILE *file = fopen(AS_GOLDEN_DIR "/archive-control/messages.txt", "r");
    CHECK(NULL != file);
    return file;
}

static void captured_messages_make_the_round_trip(void)
{
    FILE *file = open_golden();
    message golden;
    int count = 0;
    while (next_golden(file, &golden))
    {
        uint8_t again[MESSAGE_MAX];
        int64_t length = 0;
        CHECK_I64(trip(golden.is_request, golden.bytes, golden.length, again, &length), AS_OK);
        /* Spec: 07 §3 - descriptors come with the catalog's padding behind them. */
        CHECK(ASI_CODEC_RECORDING_DESCRIPTOR == golden.template_id ? length < golden.length : length == golden.length);
        CHECK(0 == memcmp(again, golden.bytes, (size_t)length));
        count++;
    }
    fclose(file);
    CHECK(count > 50);
}

static void captured_values_are_read(void)
{
    FILE *file = open_golden();
    message golden;
    do
    {
        CHECK(next_golden(file, &golden));
    } while (ASI_CODEC_AUTH_CONNECT != golden.template_id);
    asi_codec_request request;
    CHECK_I64(asi_codec_request_decode_untrusted(golden.bytes, golden.length, &request), AS_OK);
    CHECK_I64(request.template_id, ASI_CODEC_AUTH_CONNECT);
    CHECK_I64(request.schema_version, 13);
    CHECK_I64(request.correlation_id, 26);
    CHECK_I64(request.stream_id, 20);
    CHECK_I64(request.client_version, ASI_CODEC_PROTOCOL_VERSION);
    CHECK_I64(request.channel.length, 69);
    CHECK(0 == memcmp(request.channel.data, "aeron:ipc?session-id=388734529|", 31));
    CHECK_I64(request.encoded_credentials.length, 0);
    CHECK(0 == memcmp(request.client_info.data, "name=lab version=1.52.0", 23));
    CHECK_I64(request.control_session_id, AS_NULL_VALUE);
    do
    {
        CHECK(next_golden(file, &golden));
    } while (ASI_CODEC_RECORDING_DESCRIPTOR != golden.template_id);
    fclose(file);
    asi_codec_event event;
    CHECK_I64(asi_codec_event_decode_untrusted(golden.bytes, golden.length, &event), AS_OK);
    CHECK_I64(event.mtu_length, 1408);
    CHECK_I64(event.segment_file_length, 131072);
    CHECK_I64(event.term_buffer_length, 65536);
    CHECK(0 == memcmp(event.stripped_channel.data, "aeron:ipc", 9));
    CHECK_I64(event.source_identity.length, 9);
    CHECK_TEXT(asi_codec_request_name(ASI_CODEC_BOUNDED_REPLAY), "BoundedReplayRequest");
    CHECK(NULL == asi_codec_request_name(999));
}

static void put_header(uint8_t *bytes, int block_length, int template_id, int schema_id, int version)
{
    asi_put_u16(bytes, (uint16_t)block_length);
    asi_put_u16(bytes + 2, (uint16_t)template_id);
    asi_put_u16(bytes + 4, (uint16_t)schema_id);
    asi_put_u16(bytes + 6, (uint16_t)version);
}

/* Template id, block length and number of var data of every message. Spec: 07 §3. */
static const struct
{
    bool is_request;
    int template_id;
    int block_length;
    int var_count;
} templates[] = {
    { true, 58, 16, 3 }, { true, 60, 16, 1 }, { true, 61, 16, 0 }, { true, 3, 8, 0 }, { true, 68, 16, 0 },
    { true, 4, 24, 1 }, { true, 63, 28, 1 }, { true, 11, 32, 1 }, { true, 64, 36, 1 }, { true, 5, 20, 1 }, { true, 14, 24, 0 },
    { true, 65, 24, 0 }, { true, 6, 56, 1 }, { true, 18, 60, 1 }, { true, 7, 24, 0 }, { true, 19, 24, 0 }, { true, 105, 24, 0 },
    { true, 8, 28, 0 }, { true, 9, 32, 1 }, { true, 10, 24, 0 }, { true, 16, 32, 1 }, { true, 17, 32, 1 }, { true, 52, 24, 0 },
    { true, 12, 24, 0 }, { true, 15, 24, 0 }, { true, 67, 24, 0 }, { true, 13, 32, 0 }, { true, 104, 24, 0 }, { true, 53, 32, 0 },
    { true, 54, 24, 0 }, { true, 55, 32, 0 }, { true, 56, 24, 0 }, { true, 57, 32, 0 }, { true, 107, 24, 1 }, { true, 50, 36, 2 },
    { true, 62, 52, 2 }, { true, 66, 68, 5 }, { true, 51, 24, 0 }, { false, 1, 32, 1 }, { false, 59, 20, 1 }, { false, 22, 80, 3 },
    { false, 23, 28, 1 }, { false, 24, 44, 0 }, { false, 106, 8, 0 }, { false, 101, 24, 2 }, { false, 102, 24, 0 },
    { false, 103, 24, 0 },
};

/* Template id, and byte in its block, of every enum of two values. Spec: 07 §2-3. */
static const struct
{
    int template_id;
    int at;
} flags[] = { { 4, 20 }, { 63, 20 }, { 63, 24 }, { 11, 28 }, { 64, 28 }, { 64, 32 }, { 17, 24 } };
#define FLAG_COUNT (sizeof(flags) / sizeof(flags[0]))

static int64_t put_random(int template_index, asi_rand *rand, uint8_t *bytes)
{
    put_header(bytes, templates[template_index].block_length, templates[template_index].template_id, 101, 13);
    int64_t at = 8;
    for (int i = 0; i < templates[template_index].block_length; i++)
    {
        bytes[at++] = (uint8_t)asi_rand_u64(rand);
    }
    for (size_t f = 0; f < FLAG_COUNT; f++)
    {
        if (flags[f].template_id == templates[template_index].template_id)
        {
            asi_put_i32(bytes + 8 + flags[f].at, (int32_t)(asi_rand_u64(rand) % 2));
        }
    }
    for (int v = 0; v < templates[template_index].var_count; v++)
    {
        const int32_t length = (int32_t)(asi_rand_u64(rand) % 300);
        asi_put_i32(bytes + at, length);
        at += 4;
        for (int i = 0; i < length; i++)
        {
            bytes[at++] = (uint8_t)asi_rand_u64(rand);
        }
    }
    return at;
}

static void every_template_makes_the_round_trip(void)
{
    asi_rand rand = test_rand();
    for (size_t i = 0; i < sizeof(templates) / sizeof(templates[0]); i++)
    {
        uint8_t bytes[MESSAGE_MAX], again[MESSAGE_MAX];
        const int64_t length = put_random((int)i, &rand, bytes);
        int64_t again_length = 0;
        CHECK_I64(trip(templates[i].is_request, bytes, length, again, &again_length), AS_OK);
        CHECK_I64(again_length, length);
        CHECK(0 == memcmp(again, bytes, (size_t)length));
        uint8_t small[8];
        asi_codec_request request;
        asi_codec_request_init(&request, templates[i].template_id);
        if (templates[i].is_request)
        {
            CHECK_I64(asi_codec_request_encode(&request, small, sizeof(small), &again_length), AS_E_USAGE);
        }
    }
}

/* Stock's decoder throws for others. Its null value is one. Spec: 07 §1-2. */
static void enums_have_their_own_values_only(void)
{
    static const struct
    {
        int32_t value;
        as_result result;
    } rows[] = { { 0, AS_OK }, { 1, AS_OK }, { INT32_MIN, AS_OK }, { 2, AS_E_DATA }, { -1, AS_E_DATA }, { INT32_MAX, AS_E_DATA } };
    asi_codec_request request;
    for (size_t f = 0; f < FLAG_COUNT; f++)
    {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        {
            uint8_t bytes[64] = { 0 };
            put_header(bytes, 40, flags[f].template_id, 101, 13);
            asi_put_i32(bytes + 8 + flags[f].at, rows[i].value);
            CHECK_I64(asi_codec_request_decode_untrusted(bytes, sizeof(bytes), &request), rows[i].result);
        }
    }
    CHECK_TEXT(as_error_text(), "ListRecordingSubscriptionsRequest has the value 2147483647 at byte 32, where only 0 and 1 are defined");
}

/* Spec: 07 §4, 08 §19 scenario 17. */
static void older_and_newer_versions_are_read(void)
{
    uint8_t bytes[256];
    memset(bytes, 0, sizeof(bytes));
    asi_codec_request request;

    /* ConnectRequest, which clients from before 2019 sent, is gone. Spec: 11 A2 */
    put_header(bytes, 16, 2, 101, 13);
    asi_put_i32(bytes + 24, 3);
    memcpy(bytes + 28, "abc", 3);
    CHECK_I64(asi_codec_request_decode_untrusted(bytes, 31, &request), AS_AGAIN);

    put_header(bytes, 44, ASI_CODEC_REPLAY, 101, 6);
    asi_put_i32(bytes + 8 + 40, 77);
    asi_put_i32(bytes + 52, 2);
    CHECK_I64(asi_codec_request_decode_untrusted(bytes, 58, &request), AS_OK);
    CHECK_I64(request.stream_id, 77);
    CHECK_I64(request.file_io_max_length, AS_NULL_VALUE);
    CHECK_I64(request.replay_token, AS_NULL_VALUE);
    CHECK_I64(request.channel.length, 2);

    memset(bytes, 0, sizeof(bytes));
    put_header(bytes, 60, ASI_CODEC_REPLICATE_2, 101, 6);
    CHECK_I64(asi_codec_request_decode_untrusted(bytes, 68 + 12, &request), AS_OK);
    CHECK_I64(request.file_io_max_length, AS_NULL_VALUE);
    CHECK_I64(request.replication_session_id, AS_NULL_VALUE);
    CHECK_I64(request.encoded_credentials.length, 0);
    CHECK_I64(request.src_response_channel.length, 0);

    /* A field of version 20 at the end of the block, var data of version 20 at the end of the message. */
    memset(bytes, 0, sizeof(bytes));
    put_header(bytes, 40, ASI_CODEC_CONTROL_RESPONSE, 101, 20);
    asi_put_i32(bytes + 8 + 28, ASI_CODEC_PROTOCOL_VERSION);
    asi_put_i32(bytes + 48, 2);
    memcpy(bytes + 52, "no....", 6);
    asi_codec_event event;
    CHECK_I64(asi_codec_event_decode_untrusted(bytes, 58, &event), AS_OK);
    CHECK_I64(event.protocol_version, ASI_CODEC_PROTOCOL_VERSION);
    CHECK_I64(event.error_message.length, 2);
    CHECK(0 == memcmp(event.error_message.data, "no", 2));

    put_header(bytes, 28, ASI_CODEC_CONTROL_RESPONSE, 101, 3);
    asi_put_i32(bytes + 36, 0);
    CHECK_I64(asi_codec_event_decode_untrusted(bytes, 40, &event), AS_OK);
    CHECK_I64(event.protocol_version, 0);
}

static void foreign_messages_are_told_apart(void)
{
    uint8_t bytes[64];
    memset(bytes, 0, sizeof(bytes));
    asi_codec_request request;
    asi_codec_event event;
    put_header(bytes, 8, ASI_CODEC_CLOSE_SESSION, 99, 13);
    CHECK_I64(asi_codec_request_decode_untrusted(bytes, 16, &request), AS_E_DATA);
    CHECK_TEXT(as_error_text(), "expected schemaId=101, actual=99");
    put_header(bytes, 8, 999, 101, 13);
    CHECK_I64(asi_codec_request_decode_untrusted(bytes, 16, &request), AS_AGAIN);
    CHECK_I64(asi_codec_event_decode_untrusted(bytes, 16, &event), AS_AGAIN);
    put_header(bytes, 8, ASI_CODEC_CLOSE_SESSION, 101, 13);
    CHECK_I64(asi_codec_event_decode_untrusted(bytes, 16, &event), AS_AGAIN);
    /* A block that ends before what its version promises. */
    put_header(bytes, 8, ASI_CODEC_KEEP_ALIVE, 101, 13);
    CHECK_I64(asi_codec_request_decode_untrusted(bytes, 64, &request), AS_E_DATA);
    int64_t length;
    asi_codec_request_init(&request, ASI_CODEC_CONTROL_RESPONSE);
    CHECK_I64(asi_codec_request_encode(&request, bytes, sizeof(bytes), &length), AS_E_USAGE);
    asi_codec_event_init(&event, ASI_CODEC_AUTH_CONNECT);
    CHECK_I64(asi_codec_event_encode(&event, bytes, sizeof(bytes), &length), AS_E_USAGE);
}

static as_result decode_copy(bool is_request, const uint8_t *bytes, int64_t length)
{
    uint8_t *copy = malloc(0 == length ? 1 : (size_t)length);
    CHECK(NULL != copy);
    memcpy(copy, bytes, (size_t)length);
    uint8_t again[2 * MESSAGE_MAX];
    int64_t again_length;
    const as_result result = trip(is_request, copy, length, again, &again_length);
    free(copy);
    return result;
}

static void truncated_messages_are_refused(void)
{
    FILE *file = open_golden();
    message golden;
    while (next_golden(file, &golden))
    {
        uint8_t again[MESSAGE_MAX];
        int64_t whole = 0;
        CHECK_I64(trip(golden.is_request, golden.bytes, golden.length, again, &whole), AS_OK);
        for (int64_t length = 0; length < whole; length++)
        {
            CHECK_I64(decode_copy(golden.is_request, golden.bytes, length), AS_E_DATA);
        }
    }
    fclose(file);
}

static void mutated_messages_do_no_harm(void)
{
    asi_rand rand = test_rand();
    for (int round = 0; round < 20000; round++)
    {
        uint8_t bytes[MESSAGE_MAX];
        const int i = (int)(asi_rand_u64(&rand) % (sizeof(templates) / sizeof(templates[0])));
        int64_t length = put_random(i, &rand, bytes);
        for (uint64_t flips = 1 + asi_rand_u64(&rand) % 4; flips > 0; flips--)
        {
            bytes[asi_rand_u64(&rand) % (uint64_t)length] = (uint8_t)(asi_rand_u64(&rand) % 4 ? 0xFF : asi_rand_u64(&rand));
        }
        length -= (int64_t)(asi_rand_u64(&rand) % 2 * (asi_rand_u64(&rand) % (uint64_t)length));
        const as_result result = decode_copy(templates[i].is_request, bytes, length);
        CHECK(AS_OK == result || AS_AGAIN == result || AS_E_DATA == result);
    }
}

int main(void)
{
    RUN(captured_messages_make_the_round_trip);
    RUN(captured_values_are_read);
    RUN(every_template_makes_the_round_trip);
    RUN(enums_have_their_own_values_only);
    RUN(older_and_newer_versions_are_read);
    RUN(foreign_messages_are_told_apart);
    RUN(truncated_messages_are_refused);
    RUN(mutated_messages_do_no_harm);
    return 0;
}

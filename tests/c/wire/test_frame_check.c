/* Checks of unread datagrams: a table of lengths and fields around each rule of Spec: 04 §2, then every header cut and bent at
 * random: no verdict may need a byte beyond the datagram (run under the address sanitizer), and what is accepted must keep the
 * promises of frame_check.h. */
#include "support.h"
#include "wire/frame_check.h"

enum
{
    A = ASI_DATAGRAM_ACCEPTED,
    G = ASI_DATAGRAM_IGNORED,
    X = ASI_DATAGRAM_INVALID
};

/* A heap copy of exactly that length, so that a read beyond it is seen. */
static uint8_t *copy_of(const void *frame, int64_t length)
{
    uint8_t *bytes = aligned_alloc(8, (size_t)asi_align_i64(length + 1, 8));
    CHECK(NULL != bytes);
    memcpy(bytes, frame, (size_t)length);
    return bytes;
}

static void lengths_and_types(void)
{
    static const struct
    {
        int64_t length;
        int32_t frame_length;
        uint8_t version;
        uint16_t type;
        int data;
        int control;
    } rows[] = {
        { 0, 0, 0, ASI_FRAME_DATA, X, X },
        { 7, 0, 0, ASI_FRAME_DATA, X, X },
        { 32, 32, 1, ASI_FRAME_DATA, X, X },
        { 8, 8, 0, 0x0C, X, X },
        { 8, 8, 0, 0x08, X, X },
        { 32, 32, 0, 0x0F, X, X },
        { 8, 8, 0, 0xFFFF, X, X },
        { 31, 31, 0, ASI_FRAME_DATA, X, X },
        { 32, 32, 0, ASI_FRAME_DATA, A, G },
        { 32, 0, 0, ASI_FRAME_DATA, A, G },
        { 32, -1, 0, ASI_FRAME_DATA, X, X },
        { 33, 33, 0, ASI_FRAME_DATA, X, X },
        { 64, 40, 0, ASI_FRAME_DATA, A, G },
        { 32, 4096, 0, ASI_FRAME_PAD, A, G },
        { 39, 39, 0, ASI_FRAME_SETUP, X, X },
        { 40, 400, 0, ASI_FRAME_SETUP, X, X },
        { 40, 40, 0, ASI_FRAME_SETUP, A, G },
        { 36, 36, 0, ASI_FRAME_RTTM, X, X },
        { 40, 40, 0, ASI_FRAME_RTTM, A, A },
        { 40, 44, 0, ASI_FRAME_RTTM, X, X },
        { 27, 27, 0, ASI_FRAME_NAK, X, X },
        { 28, 28, 0, ASI_FRAME_NAK, G, A },
        { 28, -1, 0, ASI_FRAME_NAK, X, X },
        { 35, 35, 0, ASI_FRAME_STATUS, X, X },
        { 36, 36, 0, ASI_FRAME_STATUS, G, A },
        { 36, 44, 0, ASI_FRAME_STATUS, X, X },
        { 44, 44, 0, ASI_FRAME_STATUS, G, A },
        { 39, 39, 0, ASI_FRAME_ERROR, X, X },
        { 40, 40, 0, ASI_FRAME_ERROR, G, A },
        { 51, 51, 0, ASI_FRAME_ERROR, G, A },
        { 16, 16, 0, ASI_FRAME_RESPONSE_SETUP, X, X },
        { 20, 20, 0, ASI_FRAME_RESPONSE_SETUP, G, A },
        { 21, 21, 0, ASI_FRAME_RESOLUTION, X, X },
        { 24, 24, 0, ASI_FRAME_RESOLUTION, G, G },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        uint8_t frame[64] __attribute__((aligned(8))) = { 0 };
        asi_frame_prefix *prefix = (asi_frame_prefix *)(void *)frame;
        if (ASI_FRAME_SETUP == rows[i].type)
        {
            *(asi_setup_frame *)(void *)frame = (asi_setup_frame){ .term_length = AS_TERM_MIN_LENGTH, .mtu_length = 1408 };
        }
        *prefix = (asi_frame_prefix){ .frame_length = rows[i].frame_length, .version = rows[i].version, .type = rows[i].type };
        uint8_t *bytes = copy_of(frame, rows[i].length);
        CHECK_I64(asi_check_data_datagram_untrusted(bytes, rows[i].length), rows[i].data);
        CHECK_I64(asi_check_control_datagram_untrusted(bytes, rows[i].length), rows[i].control);
        free(bytes);
    }
}

static void offsets(void)
{
    static const struct
    {
        int32_t term_offset;
        int data;
    } rows[] = { { 0, A }, { 32, A }, { 31, X }, { -32, X }, { INT32_MIN, X }, { 0x7FFFFFE0, A } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        const asi_frame_header data = { .frame_length = 32, .type = ASI_FRAME_DATA, .term_offset = rows[i].term_offset };
        CHECK_I64(asi_check_data_datagram_untrusted(&data, sizeof(data)), rows[i].data);
    }
}

static void setups(void)
{
    static const struct
    {
        int32_t term_length;
        int32_t term_offset;
        int32_t mtu_length;
        int data;
    } rows[] = { { 65536, 0, 1408, A }, { 65536, 65504, 32, A }, { 1 << 30, 0, 65504, A }, { 65537, 0, 1408, X },
        { 32768, 0, 1408, X }, { INT32_MIN, 0, 1408, X }, { 65536, 65536, 1408, X }, { 65536, 31, 1408, X },
        { 65536, -32, 1408, X }, { 65536, 0, 0, X }, { 65536, 0, 1409, X }, { 65536, 0, 65536, X }, { 65536, 0, -32, X } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        const asi_setup_frame setup = { .prefix = { .frame_length = sizeof(setup), .type = ASI_FRAME_SETUP },
            .term_length = rows[i].term_length, .term_offset = rows[i].term_offset, .mtu_length = rows[i].mtu_length };
        CHECK_I64(asi_check_data_datagram_untrusted(&setup, sizeof(setup)), rows[i].data);
    }
}

static void extents(void)
{
    static const struct
    {
        int32_t lengths[3]; /* of frames; 0: no more */
        bool is_last_padding;
        int64_t datagram_length;
        int64_t extent;
    } rows[] = {
        { { 132 }, false, 160, 160 },
        { { 132, 132 }, false, 320, 320 },
        { { 32, 33, 64 }, false, 160, 160 },
        { { 132 }, false, 192, -1 },       /* a frame of length 0 follows */
        { { 132, 132 }, false, 288, -1 },  /* the last does not fit */
        { { 31 }, false, 32, -1 },
        { { -32 }, false, 32, -1 },
        { { 10000 }, true, 32, 10016 },    /* padding travels as its header */
        { { 132, 10000 }, true, 192, 160 + 10016 },
        { { INT32_MAX }, true, 32, 2147483648LL },
        { { 10000 }, true, 64, 10016 },    /* with some of its body, too */
        { { 64 }, true, 64, 64 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        uint8_t *bytes = aligned_alloc(8, 512);
        CHECK(NULL != bytes);
        memset(bytes, 0, 512);
        int64_t at = 0;
        for (int k = 0; k < 3 && 0 != rows[i].lengths[k]; k++)
        {
            asi_frame_header *frame = (asi_frame_header *)(void *)(bytes + at);
            const bool is_last = 2 == k || 0 == rows[i].lengths[k + 1];
            frame->frame_length = rows[i].lengths[k];
            frame->type = is_last && rows[i].is_last_padding ? ASI_FRAME_PAD : ASI_FRAME_DATA;
            frame->term_offset = (int32_t)(4096 + at);
            at += is_last ? 0 : asi_frame_occupancy(rows[i].lengths[k]);
        }
        CHECK_I64(asi_data_extent_untrusted(bytes, rows[i].datagram_length), rows[i].extent);
        free(bytes);
    }
}

/* Of a datagram that is whole frames in a row, each field that would make it something else. */
static void a_frame_in_the_midst_is_bent(void)
{
    static const struct
    {
        int32_t term_offset;
        uint16_t type;
        int32_t frame_length;
        int64_t extent;
    } rows[] = { { 64, ASI_FRAME_DATA, 64, 192 }, { 96, ASI_FRAME_DATA, 64, -1 }, { 64, ASI_FRAME_NAK, 64, -1 },
        { 64, ASI_FRAME_DATA, 0, -1 }, { 64, ASI_FRAME_DATA, 4096, -1 }, { 64, ASI_FRAME_PAD, 64, 192 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        uint8_t bytes[192] __attribute__((aligned(8))) = { 0 };
        for (int32_t k = 0; k < 3; k++)
        {
            *(asi_frame_header *)(void *)(bytes + 64 * k) =
                (asi_frame_header){ .frame_length = 64, .type = ASI_FRAME_DATA, .term_offset = 64 * k };
        }
        asi_frame_header *middle = (asi_frame_header *)(void *)(bytes + 64);
        middle->term_offset = rows[i].term_offset;
        middle->type = rows[i].type;
        middle->frame_length = rows[i].frame_length;
        CHECK_I64(asi_data_extent_untrusted(bytes, sizeof(bytes)), rows[i].extent);
    }
}

static void texts_of_errors_lie_within_the_frame(void)
{
    static const struct
    {
        int32_t told;
        int32_t frame_length;
        int control;
    } rows[] = { { 11, 51, A }, { 12, 51, X }, { -1, 51, X }, { 1023, 1063, A }, { 1024, 1064, X }, { INT32_MIN, 40, X },
        { 5, 40, X }, { 0, 40, A } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        const asi_error_frame frame = { .prefix = { .frame_length = rows[i].frame_length, .type = ASI_FRAME_ERROR },
            .error_length = rows[i].told };
        CHECK_I64(asi_check_control_datagram_untrusted(&frame, rows[i].frame_length), rows[i].control);
    }
}

static void random_bytes(void)
{
    asi_rand rand = test_rand();
    int64_t accepted = 0;
    for (int round = 0; round < 200000; round++)
    {
        uint8_t frame[128] __attribute__((aligned(8)));
        const int64_t length = test_rand_below(&rand, sizeof(frame) + 1);
        for (size_t i = 0; i < sizeof(frame); i += 8)
        {
            asi_put_i64(frame + i, (int64_t)asi_rand_u64(&rand));
        }
        asi_frame_prefix *prefix = (asi_frame_prefix *)(void *)frame;
        prefix->version = 0 == test_rand_below(&rand, 8) ? 1 : 0;
        prefix->type = (uint16_t)test_rand_below(&rand, 13);
        prefix->frame_length = (int32_t)test_rand_below(&rand, 200) - 20;
        uint8_t *bytes = copy_of(frame, length);
        prefix = (asi_frame_prefix *)(void *)bytes;
        if (ASI_DATAGRAM_ACCEPTED == asi_check_data_datagram_untrusted(bytes, length))
        {
            accepted++;
            if (prefix->type <= ASI_FRAME_DATA)
            {
                CHECK(length >= 32 && 0 == length % 32);
                const int64_t extent = asi_data_extent_untrusted(bytes, length);
                CHECK(-1 == extent || (extent >= length && 0 == extent % 32));
            }
        }
        if (ASI_DATAGRAM_ACCEPTED == asi_check_control_datagram_untrusted(bytes, length))
        {
            accepted++;
            CHECK(prefix->frame_length <= length);
            if (ASI_FRAME_ERROR == prefix->type)
            {
                const int32_t text_length = ((const asi_error_frame *)(const void *)bytes)->error_length;
                CHECK(text_length >= 0 && 40 + text_length <= length);
            }
        }
        free(bytes);
    }
    CHECK(accepted > 0);
}

int main(void)
{
    RUN(lengths_and_types);
    RUN(offsets);
    RUN(setups);
    RUN(extents);
    RUN(a_frame_in_the_midst_is_bent);
    RUN(texts_of_errors_lie_within_the_frame);
    RUN(random_bytes);
    return 0;
}

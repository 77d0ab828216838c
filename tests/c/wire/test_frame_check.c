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
        { 8, 8, 0, 0x0C, G, G },
        { 8, 8, 0, 0x08, G, G },
        { 8, 8, 0, 0xFFFF, G, G },
        { 31, 31, 0, ASI_FRAME_DATA, X, G },
        { 32, 32, 0, ASI_FRAME_DATA, A, G },
        { 32, 0, 0, ASI_FRAME_DATA, A, G },
        { 33, 33, 0, ASI_FRAME_DATA, X, G }, /* OURS: whole 32-byte blocks */
        { 64, 40, 0, ASI_FRAME_DATA, A, G },
        { 32, 4096, 0, ASI_FRAME_PAD, A, G },
        { 39, 40, 0, ASI_FRAME_SETUP, X, G },
        { 40, 40, 0, ASI_FRAME_SETUP, A, G },
        { 39, 39, 0, ASI_FRAME_RTTM, X, X },
        { 40, 40, 0, ASI_FRAME_RTTM, A, A },
        { 27, 27, 0, ASI_FRAME_NAK, G, X },
        { 28, 28, 0, ASI_FRAME_NAK, G, A },
        { 28, -1, 0, ASI_FRAME_NAK, G, X },
        { 35, 35, 0, ASI_FRAME_STATUS, G, X },
        { 36, 36, 0, ASI_FRAME_STATUS, G, A },
        { 36, 44, 0, ASI_FRAME_STATUS, G, X },
        { 44, 44, 0, ASI_FRAME_STATUS, G, A },
        { 39, 39, 0, ASI_FRAME_ERROR, G, X },
        { 40, 40, 0, ASI_FRAME_ERROR, G, A },
        { 51, 51, 0, ASI_FRAME_ERROR, G, A },
        { 19, 19, 0, ASI_FRAME_RESPONSE_SETUP, G, X },
        { 20, 20, 0, ASI_FRAME_RESPONSE_SETUP, G, A },
        { 24, 24, 0, ASI_FRAME_RESOLUTION, G, G },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        uint8_t frame[64] __attribute__((aligned(8))) = { 0 };
        asi_frame_prefix *prefix = (asi_frame_prefix *)(void *)frame;
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
        int32_t length;
        int data;
        int nak;
    } rows[] = { { 0, 0, A, A }, { 32, 1408, A, A }, { 31, 32, X, X }, { -32, 32, X, X }, { 0, -1, A, X },
        { INT32_MIN, 0, X, X }, { 0x7FFFFFE0, INT32_MAX, A, A } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        const asi_frame_header data = { .frame_length = 32, .type = ASI_FRAME_DATA, .term_offset = rows[i].term_offset };
        const asi_nak_frame nak = { .prefix = { .frame_length = sizeof(nak), .type = ASI_FRAME_NAK },
            .term_offset = rows[i].term_offset, .length = rows[i].length };
        CHECK_I64(asi_check_data_datagram_untrusted(&data, sizeof(data)), rows[i].data);
        CHECK_I64(asi_check_control_datagram_untrusted(&nak, sizeof(nak)), rows[i].nak);
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
        { { 10000 }, true, 64, -1 },       /* but only as the last frame */
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
            at += is_last ? 0 : asi_frame_occupancy(rows[i].lengths[k]);
        }
        CHECK_I64(asi_data_extent_untrusted(bytes, rows[i].datagram_length), rows[i].extent);
        free(bytes);
    }
}

static void error_texts_are_clamped(void)
{
    static const struct
    {
        int32_t told;
        int64_t datagram_length;
        int32_t expected;
    } rows[] = { { 11, 51, 11 }, { 12, 51, 11 }, { -1, 51, 0 }, { INT32_MAX, 1400, 1023 }, { INT32_MIN, 40, 0 }, { 0, 51, 0 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        const asi_error_frame frame = { .error_length = rows[i].told };
        CHECK_I64(asi_error_text_length_untrusted(&frame, rows[i].datagram_length), rows[i].expected);
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
                const int32_t text_length = asi_error_text_length_untrusted(bytes, length);
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
    RUN(extents);
    RUN(error_texts_are_clamped);
    RUN(random_bytes);
    return 0;
}

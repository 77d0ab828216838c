/* A recorded stream made in memory: random messages, fragmented by the MTU, padded at term ends, as a publication writes them;
 * cut into the blocks that an image's block poll would deliver. */
#ifndef AS_TESTS_STORE_STREAM_MAKER_H
#define AS_TESTS_STORE_STREAM_MAKER_H

#include "archive_support.h"
#include "wire/frame.h"

#define STREAM_MTU 1408
#define STREAM_STREAM_ID 1001
#define STREAM_SESSION_ID 4242

typedef struct stream_block
{
    int64_t position;
    int64_t length;
} stream_block;

typedef struct stream
{
    int64_t start_position;
    int64_t end_position;
    int32_t term_length;
    int32_t initial_term_id;
    uint8_t *bytes;         /* owned; of position bytes_position on */
    int64_t bytes_position; /* start of the start term */
    message *messages;      /* owned */
    int64_t message_count;
    stream_block *blocks;   /* owned */
    int64_t block_count;
} stream;

static inline uint8_t *stream_at(const stream *made, int64_t position) { return made->bytes + (position - made->bytes_position); }

static inline void stream_frame(stream *made, int64_t length, uint8_t flags, uint16_t type, int64_t reserved_value)
{
    const int64_t term_offset = made->end_position & (made->term_length - 1);
    asi_frame_header *frame = (asi_frame_header *)(void *)stream_at(made, made->end_position);
    *frame = (asi_frame_header){ .frame_length = (int32_t)length, .flags = flags, .type = type, .term_offset = (int32_t)term_offset,
        .session_id = STREAM_SESSION_ID, .stream_id = STREAM_STREAM_ID,
        .term_id = asi_wrap_add(made->initial_term_id, (int32_t)(made->end_position / made->term_length)),
        .reserved_value = reserved_value };
    made->end_position += asi_frame_occupancy((int32_t)length);
}

/* The last block grows by the frame that ends at end_position, or a new one begins. */
static inline void stream_block_add(stream *made, int64_t begin, int64_t max_block, bool is_padding)
{
    stream_block *last = made->block_count > 0 ? &made->blocks[made->block_count - 1] : NULL;
    const bool is_term_begin = 0 == (begin & (made->term_length - 1));
    if (NULL == last || is_padding || is_term_begin || last->length < 0 || last->length + made->end_position - begin > max_block)
    {
        last = &made->blocks[made->block_count++];
        *last = (stream_block){ .position = begin };
    }
    last->length += made->end_position - begin;
    if (is_padding)
    {
        /* A padding frame is delivered alone, so nothing is joined to it: the next frame begins a term anyway. */
        CHECK_I64(made->end_position & (made->term_length - 1), 0);
    }
}

static inline stream stream_make(asi_rand *rand, int64_t start_position, int32_t term_length, int64_t count, int64_t max_length)
{
    stream made = { .start_position = start_position, .end_position = start_position, .term_length = term_length,
        .initial_term_id = asi_rand_i32(rand), .bytes_position = start_position & ~((int64_t)term_length - 1) };
    const int64_t worst = count * (max_length + (max_length / (STREAM_MTU - 32) + 2) * 64) * 2 + 4 * (int64_t)term_length;
    made.bytes = aligned_alloc(64, (size_t)asi_align_i64(worst, 64));
    made.messages = calloc((size_t)count, sizeof(message));
    made.blocks = calloc((size_t)(worst / 32), sizeof(stream_block));
    uint8_t *payload = malloc((size_t)max_length + 1);
    CHECK(NULL != made.bytes && NULL != made.messages && NULL != made.blocks && NULL != payload);
    memset(made.bytes, 0, (size_t)worst);
    while (made.message_count < count)
    {
        const int64_t usual_length = max_length < 200 ? max_length : 200;
        const int64_t length = test_rand_below(rand, (0 == test_rand_below(rand, 4) ? max_length : usual_length) + 1);
        const int64_t max_block = 1 + test_rand_below(rand, 20000);
        const int64_t max_payload = STREAM_MTU - AS_FRAME_HEADER_LENGTH;
        const int64_t rest = length % max_payload;
        const int64_t needed = length / max_payload * STREAM_MTU + (rest > 0 || 0 == length ? asi_align_i64(rest + 32, 32) : 0);
        const int64_t left = term_length - (made.end_position & (term_length - 1));
        int64_t begin = made.end_position;
        if (needed > left)
        {
            stream_frame(&made, left, ASI_FLAG_UNFRAGMENTED, ASI_FRAME_PAD, 0);
            stream_block_add(&made, begin, max_block, true);
            continue;
        }
        for (int64_t i = 0; i < length; i++)
        {
            payload[i] = (uint8_t)asi_rand_u64(rand);
        }
        const int64_t reserved = (int64_t)asi_rand_u64(rand);
        made.messages[made.message_count++] = (message){ .begin_position = begin, .end_position = begin + needed, .length = length,
            .crc32 = asi_crc32(payload, length), .reserved_value = reserved };
        int64_t done = 0;
        do
        {
            const int64_t part = length - done < max_payload ? length - done : max_payload;
            const uint8_t flags =
                (uint8_t)((0 == done ? ASI_FLAG_BEGIN : 0) | (done + part == length ? ASI_FLAG_END : 0));
            begin = made.end_position;
            memcpy(stream_at(&made, begin) + 32, payload + done, (size_t)part);
            stream_frame(&made, part + 32, flags, ASI_FRAME_DATA, reserved);
            stream_block_add(&made, begin, max_block, false);
            done += part;
        } while (done < length);
    }
    free(payload);
    return made;
}

static inline void stream_free(stream *made)
{
    free(made->bytes);
    free(made->messages);
    free(made->blocks);
}

#endif

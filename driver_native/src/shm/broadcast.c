/* The to-clients broadcast buffer; see broadcast.h.
 *
 * The receiver copies a record that the transmitter may be overwriting, and then checks whether that happened. To make this
 * well defined, record bytes are moved as relaxed 8-byte words: records start at multiples of 8 and own their bytes up to the
 * next multiple. The transmitter stores the tail intent before the first byte of a record (release, fence). The receiver
 * loads it after the last byte of a copy (fence, acquire). In another order a torn copy could pass as whole. */
#include "shm/broadcast.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

#define RECORD_ALIGNMENT 8
#define PADDING_TYPE (-1)

typedef struct record_header
{
    int32_t length; /* header included, unaligned */
    int32_t type_id;
} record_header;

as_result asi_broadcast_init(asi_broadcast *broadcast, void *section, int64_t length)
{
    const int64_t capacity = length - ASI_BROADCAST_TRAILER_LENGTH;
    if (!asi_is_power_of_two(capacity) || capacity < 2 * RECORD_ALIGNMENT || capacity > INT32_MAX)
    {
        return asi_fail(AS_E_DATA, 0, "broadcast buffer of %" PRId64 " bytes: without its trailer of 128 that is no power of two",
            length);
    }
    uint8_t *buffer = section;
    int64_t *trailer = (int64_t *)(void *)(buffer + capacity);
    *broadcast = (asi_broadcast){
        .buffer = buffer,
        .capacity = capacity,
        .max_message = capacity / 8,
        .tail_intent = &trailer[0],
        .tail = &trailer[1],
        .latest = &trailer[2],
    };
    return AS_OK;
}

static record_header *record_at(const asi_broadcast *broadcast, int64_t position)
{
    const int64_t index = position & (broadcast->capacity - 1) & ~(int64_t)(RECORD_ALIGNMENT - 1);
    return (record_header *)(void *)(broadcast->buffer + index);
}

static void put_header(record_header *record, int32_t length, int32_t type_id)
{
    asi_store_relaxed_i32(&record->length, length);
    asi_store_relaxed_i32(&record->type_id, type_id);
}

static void put_words(void *to, const uint8_t *from, int64_t length)
{
    int64_t *words = to;
    for (int64_t at = 0; at < length; at += (int64_t)sizeof(int64_t))
    {
        const int64_t left = length - at;
        int64_t word = 0;
        memcpy(&word, from + at, left < (int64_t)sizeof(word) ? (size_t)left : sizeof(word));
        asi_store_relaxed_i64(words++, word);
    }
}

static void get_words(uint8_t *to, const void *from, int64_t length)
{
    const int64_t *words = from;
    for (int64_t at = 0; at < length; at += (int64_t)sizeof(int64_t))
    {
        asi_put_i64(to + at, asi_load_relaxed_i64(words++));
    }
}

as_result asi_broadcast_transmit(asi_broadcast *broadcast, int32_t type_id, const void *message, int64_t length)
{
    if (type_id < 1)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "message type %" PRId32 " is less than 1", type_id);
    }
    if (length < 0 || length > broadcast->max_message)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "message of %" PRId64 " bytes, the broadcast buffer takes 0 to %" PRId64, length,
            broadcast->max_message);
    }
    const int32_t record_length = (int32_t)length + ASI_BROADCAST_RECORD_HEADER_LENGTH;
    const int64_t aligned = asi_align_i64(record_length, RECORD_ALIGNMENT);
    int64_t tail = asi_load_relaxed_i64(broadcast->tail);
    const int64_t to_end = broadcast->capacity - (tail & (broadcast->capacity - 1));
    const int64_t padding = to_end < aligned ? to_end : 0;

    asi_store_release_i64(broadcast->tail_intent, asi_wrap_add_i64(tail, aligned + padding));
    asi_fence_release();
    if (padding > 0)
    {
        put_header(record_at(broadcast, tail), (int32_t)padding, PADDING_TYPE);
        tail = asi_wrap_add_i64(tail, padding);
    }
    record_header *record = record_at(broadcast, tail);
    put_header(record, record_length, type_id);
    put_words(record + 1, message, length);
    asi_store_release_i64(broadcast->latest, tail);
    asi_store_release_i64(broadcast->tail, asi_wrap_add_i64(tail, aligned));
    return AS_OK;
}

as_result asi_broadcast_receiver_open(asi_broadcast_receiver *receiver, void *section, int64_t length)
{
    asi_broadcast broadcast;
    const as_result result = asi_broadcast_init(&broadcast, section, length);
    if (AS_OK != result)
    {
        return result;
    }
    const int64_t scratch_capacity = asi_align_i64(broadcast.max_message, RECORD_ALIGNMENT);
    uint8_t *scratch = malloc((size_t)scratch_capacity);
    if (NULL == scratch)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a broadcast receiver's %" PRId64 " bytes", scratch_capacity);
    }
    const int64_t latest = asi_load_acquire_i64(broadcast.latest);
    *receiver = (asi_broadcast_receiver){
        .broadcast = broadcast,
        .cursor = latest,
        .next = latest,
        .scratch = scratch,
        .scratch_capacity = scratch_capacity,
    };
    return AS_OK;
}

void asi_broadcast_receiver_close(asi_broadcast_receiver *receiver)
{
    free(receiver->scratch);
    *receiver = (asi_broadcast_receiver){ 0 };
}

/* True if the transmitter has not begun to overwrite the bytes at `position`. */
static bool is_intact(const asi_broadcast *broadcast, int64_t position)
{
    const int64_t intent = asi_load_acquire_i64(broadcast->tail_intent);
    return asi_wrap_sub_i64(intent, position) < broadcast->capacity;
}

/* Continues with the newest record; those in between are lost. */
static as_result fail_overtaken(asi_broadcast_receiver *receiver)
{
    receiver->lapped_count++;
    receiver->next = asi_load_acquire_i64(receiver->broadcast.latest);
    return asi_fail(AS_E_DATA, 0, "unable to keep up with broadcast: the driver's transmitter overtook this client");
}

/* An impossible record length: the transmitter overtook the read, or the buffer is broken. The receiver continues at the
   tail. */
static as_result fail_record(asi_broadcast_receiver *receiver, int64_t length, int64_t tail)
{
    if (!is_intact(&receiver->broadcast, receiver->cursor))
    {
        return fail_overtaken(receiver);
    }
    receiver->next = tail;
    return asi_fail(AS_E_DATA, 0, "broadcast buffer is broken: record of %" PRId64 " bytes at position %" PRId64, length,
        receiver->cursor);
}

as_result asi_broadcast_receive(asi_broadcast_receiver *receiver, asi_broadcast_handler handler, void *context)
{
    const asi_broadcast *broadcast = &receiver->broadcast;
    const int64_t tail = asi_load_acquire_i64(broadcast->tail);
    if (asi_wrap_sub_i64(tail, receiver->next) <= 0)
    {
        return AS_AGAIN;
    }
    receiver->cursor = receiver->next;
    if (!is_intact(broadcast, receiver->cursor))
    {
        return fail_overtaken(receiver);
    }
    const record_header *record = record_at(broadcast, receiver->cursor);
    int32_t type_id = asi_load_relaxed_i32(&record->type_id);
    if (PADDING_TYPE == type_id)
    {
        const int64_t to_end = broadcast->capacity - ((const uint8_t *)record - broadcast->buffer);
        receiver->cursor = asi_wrap_add_i64(receiver->cursor, to_end);
        record = record_at(broadcast, 0);
        type_id = asi_load_relaxed_i32(&record->type_id);
    }
    const int64_t length = asi_load_relaxed_i32(&record->length);
    const int64_t message_length = length - ASI_BROADCAST_RECORD_HEADER_LENGTH;
    const int64_t left = broadcast->capacity - ((const uint8_t *)record - broadcast->buffer);
    if (message_length < 0 || message_length > receiver->scratch_capacity || length > left)
    {
        return fail_record(receiver, length, tail);
    }
    get_words(receiver->scratch, record + 1, message_length);
    asi_fence_acquire();
    if (!is_intact(broadcast, receiver->cursor))
    {
        return fail_overtaken(receiver);
    }
    receiver->next = asi_wrap_add_i64(receiver->cursor, asi_align_i64(length, RECORD_ALIGNMENT));
    handler(type_id, receiver->scratch, message_length, context);
    return AS_OK;
}

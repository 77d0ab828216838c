/* The to-driver ring; layout and protocol in ring_mpsc.h.
 *
 * Every client process may write the memory of positions and lengths, so each is masked or bounded before it becomes an
 * address. An index is always a multiple of 8 inside the data area, whatever the counters contain. */
#include "shm/ring_mpsc.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"

#define RECORD_ALIGNMENT 8
#define TAIL_OFFSET 128
#define HEAD_CACHE_OFFSET 256
#define HEAD_OFFSET 384
#define CORRELATION_OFFSET 512
#define HEARTBEAT_OFFSET 640

typedef struct record_header
{
    int32_t length; /* header included, unaligned; 0 free, negative claimed */
    int32_t type_id;
} record_header;

static int64_t *trailer_field(uint8_t *buffer, int64_t capacity, int64_t offset)
{
    return (int64_t *)(void *)(buffer + capacity + offset);
}

as_result asi_ring_mpsc_init(asi_ring_mpsc *ring, void *section, int64_t length)
{
    const int64_t capacity = length - ASI_RING_TRAILER_LENGTH;
    if (!asi_is_power_of_two(capacity) || capacity < RECORD_ALIGNMENT || capacity > INT32_MAX)
    {
        return asi_fail(AS_E_DATA, 0, "ring of %" PRId64 " bytes: without its trailer of 768 that is no power of two", length);
    }
    uint8_t *buffer = section;
    *ring = (asi_ring_mpsc){
        .buffer = buffer,
        .capacity = capacity,
        .max_message = capacity > RECORD_ALIGNMENT ? capacity / 8 : 0,
        .tail_position = trailer_field(buffer, capacity, TAIL_OFFSET),
        .head_cache_position = trailer_field(buffer, capacity, HEAD_CACHE_OFFSET),
        .head_position = trailer_field(buffer, capacity, HEAD_OFFSET),
        .correlation_counter = trailer_field(buffer, capacity, CORRELATION_OFFSET),
        .consumer_heartbeat = trailer_field(buffer, capacity, HEARTBEAT_OFFSET),
        .unwritten_from = -1,
    };
    return AS_OK;
}

static int64_t index_of(const asi_ring_mpsc *ring, int64_t position)
{
    return position & (ring->capacity - 1) & ~(int64_t)(RECORD_ALIGNMENT - 1);
}

static record_header *record_at(const asi_ring_mpsc *ring, int64_t index)
{
    return (record_header *)(void *)(ring->buffer + index);
}

static as_result check_message(const asi_ring_mpsc *ring, int32_t type_id, int64_t length)
{
    if (type_id < 1)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "message type %" PRId32 " is less than 1", type_id);
    }
    if (length < 0 || length > ring->max_message)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "message of %" PRId64 " bytes, the ring takes 0 to %" PRId64, length,
            ring->max_message);
    }
    return AS_OK;
}

/* True if `needed` bytes fit after the tail. If they do not fit by the cached head, loads the real head and refreshes the
   cache. */
static bool has_room(asi_ring_mpsc *ring, int64_t tail, int64_t needed, int64_t *head)
{
    if (needed <= ring->capacity - asi_wrap_sub_i64(tail, *head))
    {
        return true;
    }
    *head = asi_load_acquire_i64(ring->head_position);
    if (needed > ring->capacity - asi_wrap_sub_i64(tail, *head))
    {
        return false;
    }
    asi_store_release_i64(ring->head_cache_position, *head);
    return true;
}

/* True if a record that does not fit before the end of the data area fits at its start. */
static bool has_room_at_start(asi_ring_mpsc *ring, int64_t needed, int64_t *head)
{
    if (needed <= index_of(ring, *head))
    {
        return true;
    }
    *head = asi_load_acquire_i64(ring->head_position);
    if (needed > index_of(ring, *head))
    {
        return false;
    }
    asi_store_release_i64(ring->head_cache_position, *head);
    return true;
}

/* Moves the tail past a record of `record_length` bytes. Its header is left claimed (negative length) without a type. Spec:
 * 01 §3.2; where C and Java differ (no space at the start) this follows C: full, nothing is changed. */
static record_header *claim(asi_ring_mpsc *ring, int32_t record_length)
{
    const int64_t needed = asi_align_i64(record_length, RECORD_ALIGNMENT);
    int64_t head = asi_load_acquire_i64(ring->head_cache_position);
    int64_t tail;
    int64_t index;
    int64_t padding;
    do
    {
        tail = asi_load_acquire_i64(ring->tail_position);
        if (!has_room(ring, tail, needed, &head))
        {
            return NULL;
        }
        index = index_of(ring, tail);
        const int64_t to_end = ring->capacity - index;
        padding = 0;
        if (needed > to_end)
        {
            if (!has_room_at_start(ring, needed, &head))
            {
                return NULL;
            }
            padding = to_end;
        }
    }
    while (!asi_cas_i64(ring->tail_position, tail, asi_wrap_add_i64(tail, needed + padding)));

    if (padding > 0)
    {
        record_header *filler = record_at(ring, index);
        asi_store_release_i32(&filler->length, -(int32_t)padding);
        asi_fence_release();
        asi_store_relaxed_i32(&filler->type_id, ASI_RING_PADDING_TYPE);
        asi_store_release_i32(&filler->length, (int32_t)padding);
        index = 0;
    }
    record_header *record = record_at(ring, index);
    /* Negative length before anything else: if this process dies now, unblock can read the size. Spec: 01 §3.2. */
    asi_store_release_i32(&record->length, -record_length);
    asi_fence_release();
    return record;
}

static as_result fail_full(const asi_ring_mpsc *ring)
{
    asi_fail(AS_E_STORAGE, ENOSPC, "ring of %" PRId64 " bytes is full", ring->capacity);
    return AS_AGAIN;
}

as_result asi_ring_mpsc_write(asi_ring_mpsc *ring, int32_t type_id, const void *message, int64_t length)
{
    const as_result result = check_message(ring, type_id, length);
    if (AS_OK != result)
    {
        return result;
    }
    const int32_t record_length = (int32_t)length + ASI_RING_RECORD_HEADER_LENGTH;
    record_header *record = claim(ring, record_length);
    if (NULL == record)
    {
        return fail_full(ring);
    }
    if (length > 0)
    {
        memcpy(record + 1, message, (size_t)length);
    }
    asi_store_relaxed_i32(&record->type_id, type_id);
    asi_store_release_i32(&record->length, record_length);
    return AS_OK;
}

as_result asi_ring_mpsc_try_claim(asi_ring_mpsc *ring, int32_t type_id, int64_t length, uint8_t **message)
{
    const as_result result = check_message(ring, type_id, length);
    if (AS_OK != result)
    {
        return result;
    }
    record_header *record = claim(ring, (int32_t)length + ASI_RING_RECORD_HEADER_LENGTH);
    if (NULL == record)
    {
        return fail_full(ring);
    }
    asi_store_relaxed_i32(&record->type_id, type_id);
    *message = (uint8_t *)(record + 1);
    return AS_OK;
}

/* A claim that the driver unblocked has a positive length already and stays padding. */
static void end_claim(uint8_t *message, bool keep)
{
    record_header *record = (record_header *)(void *)message - 1;
    const int32_t length = asi_load_relaxed_i32(&record->length);
    if (length < 0)
    {
        if (!keep)
        {
            asi_store_relaxed_i32(&record->type_id, ASI_RING_PADDING_TYPE);
        }
        asi_store_release_i32(&record->length, asi_wrap_sub(0, length));
    }
}

void asi_ring_mpsc_commit(asi_ring_mpsc *ring, uint8_t *message)
{
    (void)ring;
    end_claim(message, true);
}

void asi_ring_mpsc_abort(asi_ring_mpsc *ring, uint8_t *message)
{
    (void)ring;
    end_claim(message, false);
}

/* Only a malicious or broken client writes an impossible record. No record behind it can be found, so everything claimed so
 * far is dropped: up to the tail, or up to the end of the data area if that comes first. */
static int64_t bytes_to_drop(const asi_ring_mpsc *ring, int64_t position, int64_t left_in_area)
{
    const int64_t claimed = asi_wrap_sub_i64(asi_load_acquire_i64(ring->tail_position), position);
    return claimed >= RECORD_ALIGNMENT && claimed < left_in_area ? claimed & ~(int64_t)(RECORD_ALIGNMENT - 1) : left_in_area;
}

int64_t asi_ring_mpsc_read(asi_ring_mpsc *ring, asi_ring_handler handler, void *context, int64_t limit)
{
    const int64_t head = asi_load_relaxed_i64(ring->head_position);
    const int64_t index = index_of(ring, head);
    const int64_t block = ring->capacity - index; /* one call never reads past the end of the data area */
    int64_t bytes = 0;
    int64_t messages = 0;
    while (bytes < block && messages < limit)
    {
        const record_header *record = record_at(ring, index + bytes);
        const int32_t length = asi_load_acquire_i32(&record->length);
        if (length <= 0)
        {
            break;
        }
        if (length < ASI_RING_RECORD_HEADER_LENGTH || length > block - bytes)
        {
            bytes += bytes_to_drop(ring, asi_wrap_add_i64(head, bytes), block - bytes);
            break;
        }
        const int32_t type_id = asi_load_relaxed_i32(&record->type_id);
        if (ASI_RING_PADDING_TYPE != type_id)
        {
            const int64_t message_length = length - ASI_RING_RECORD_HEADER_LENGTH;
            if (ASI_RING_ABORT == handler(type_id, (const uint8_t *)(record + 1), message_length, context))
            {
                break;
            }
            messages++;
        }
        bytes += asi_align_i64(length, RECORD_ALIGNMENT);
    }
    if (bytes > 0)
    {
        /* Zeroes first: producers and unblock rely on free space being zero as soon as the head is published. */
        memset(ring->buffer + index, 0, (size_t)bytes);
        asi_store_release_i64(ring->head_position, asi_wrap_add_i64(head, bytes));
    }
    return messages;
}

int64_t asi_ring_mpsc_next_correlation_id(asi_ring_mpsc *ring) { return asi_fetch_add_i64(ring->correlation_counter, 1); }

int64_t asi_ring_mpsc_producer_position(const asi_ring_mpsc *ring) { return asi_load_acquire_i64(ring->tail_position); }

int64_t asi_ring_mpsc_consumer_position(const asi_ring_mpsc *ring) { return asi_load_acquire_i64(ring->head_position); }

int64_t asi_ring_mpsc_consumer_heartbeat(const asi_ring_mpsc *ring) { return asi_load_acquire_i64(ring->consumer_heartbeat); }

void asi_ring_mpsc_set_consumer_heartbeat(asi_ring_mpsc *ring, int64_t epoch_ms)
{
    asi_store_release_i64(ring->consumer_heartbeat, epoch_ms);
}

static bool is_free(const asi_ring_mpsc *ring, int64_t from, int64_t to)
{
    for (int64_t at = to - RECORD_ALIGNMENT; at >= from; at -= RECORD_ALIGNMENT)
    {
        if (0 != asi_load_acquire_i32(&record_at(ring, at)->length))
        {
            return false;
        }
    }
    return true;
}

static void make_padding(record_header *record, int32_t length)
{
    asi_store_relaxed_i32(&record->type_id, ASI_RING_PADDING_TYPE);
    asi_store_release_i32(&record->length, length);
}

/* A departure: stock leaves this blocked for ever. No record follows before the end of the area, but the tail has got there, so dead
 * claims reach to the end. A live producer may be about to store its first length. It has done so by the next call. */
static bool unblock_to_end(asi_ring_mpsc *ring, int64_t head, int64_t tail, record_header *record)
{
    const int64_t to_end = ring->capacity - index_of(ring, head);
    const bool is_claimed = asi_wrap_sub_i64(tail, head) >= to_end;
    const bool is_dead = is_claimed && head == ring->unwritten_from;
    ring->unwritten_from = is_claimed ? head : -1;
    if (is_dead)
    {
        make_padding(record, (int32_t)to_end);
    }
    return is_dead;
}

bool asi_ring_mpsc_unblock(asi_ring_mpsc *ring)
{
    const int64_t head = asi_load_acquire_i64(ring->head_position);
    const int64_t tail = asi_load_acquire_i64(ring->tail_position);
    if (head == tail)
    {
        return false;
    }
    const int64_t consumer = index_of(ring, head);
    const int64_t producer = index_of(ring, tail);
    record_header *record = record_at(ring, consumer);
    const int32_t length = asi_load_acquire_i32(&record->length);
    if (length < 0)
    {
        /* INT32_MIN has no positive counterpart, and no producer writes it. Reading drops a record that is too long. */
        make_padding(record, INT32_MIN == length ? INT32_MAX : -length);
        return true;
    }
    if (length > 0)
    {
        return false;
    }
    /* The producer died before its first store. Its claim reaches to the next record that has one. */
    const int64_t limit = producer > consumer ? producer : ring->capacity;
    for (int64_t at = consumer + RECORD_ALIGNMENT; at < limit; at += RECORD_ALIGNMENT)
    {
        if (0 != asi_load_acquire_i32(&record_at(ring, at)->length))
        {
            /* Checks again backwards: a live producer may have started in between. Spec: 01 §3.4. */
            if (!is_free(ring, consumer, at))
            {
                return false;
            }
            make_padding(record, (int32_t)(at - consumer));
            return true;
        }
    }
    return unblock_to_end(ring, head, tail, record);
}

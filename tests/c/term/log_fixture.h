/* A log buffer in memory for the tests of the term module, without a file. */
#ifndef AS_TESTS_LOG_FIXTURE_H
#define AS_TESTS_LOG_FIXTURE_H

#include "shm/log_layout.h"
#include "support.h"

#define TERM 65536
#define MTU 1408
#define SESSION 7001
#define STREAM 1001

static inline asi_log log_create(int32_t initial_term_id, int32_t term_id, int32_t term_offset)
{
    asi_log log = { .term_length = TERM, .position_bits = 16, .mtu_length = MTU };
    uint8_t *bytes = aligned_alloc(4096, 3 * TERM + ASI_LOG_METADATA_LENGTH);
    CHECK(NULL != bytes);
    memset(bytes, 0, 3 * TERM + ASI_LOG_METADATA_LENGTH);
    for (int i = 0; i < ASI_LOG_PARTITION_COUNT; i++)
    {
        log.terms[i] = bytes + i * TERM;
    }
    log.metadata = (asi_log_metadata *)(void *)(bytes + 3 * TERM);
    log.metadata->mtu_length = MTU;
    asi_log_init_tails(&log, initial_term_id, term_id, term_offset);
    asi_log_init_default_header(&log, SESSION, STREAM, initial_term_id);
    return log;
}

static inline void log_delete(asi_log *log) { free(log->terms[0]); }

static inline asi_frame_header *frame_at(const asi_log *log, int32_t partition, int64_t offset)
{
    return (asi_frame_header *)(void *)(log->terms[partition] + offset);
}

/* A committed frame whose payload is one repeated byte. */
static inline int64_t put_frame(const asi_log *log, int32_t partition, int64_t offset, int32_t payload, uint8_t flags, uint8_t byte)
{
    asi_frame_header *frame = frame_at(log, partition, offset);
    *frame = (asi_frame_header){
        .frame_length = payload + AS_FRAME_HEADER_LENGTH,
        .flags = flags,
        .type = ASI_FRAME_DATA,
        .term_offset = (int32_t)offset,
        .session_id = SESSION,
        .stream_id = STREAM,
        .term_id = asi_wrap_add(log->initial_term_id, partition),
        .reserved_value = offset * 10,
    };
    memset(frame + 1, byte, (size_t)payload);
    return offset + asi_frame_occupancy(frame->frame_length);
}

#endif

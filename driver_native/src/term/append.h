/* Publisher's side of a log buffer: claim, write frames, commit, end of log and rotation. Spec: 02 §5-6.
 *
 * Two appenders share the code that writes frames: concurrent (many threads and processes, fetch-add on the tail) and
 * exclusive (one writer with private state). The length of every frame becomes negative before any other byte of it is
 * written, and positive last. Results: a stream position (> 0), AS_ADMIN_ACTION after a trip, AS_MAX_POSITION_EXCEEDED.
 * Preconditions of the caller (the client's publication): it has checked the limit, length <= max message length, padding <=
 * a term. Thread rule: concurrent any; exclusive one. */
#ifndef ASI_TERM_APPEND_H
#define ASI_TERM_APPEND_H

#include "shm/log_layout.h"

typedef struct asi_append_source /* message bytes, gathered from parts */
{
    const struct asi_append_part
    {
        const uint8_t *data;
        int64_t length;
    } *parts;
    int64_t part_count;
    int64_t length;         /* sum */
    bool has_reserved_value;
    int64_t reserved_value; /* used when has_reserved_value and no supplier */
    int64_t (*supplier)(void *context, uint8_t *frame, int64_t frame_length); /* may be NULL */
    void *supplier_context;
} asi_append_source;

typedef struct asi_appender
{
    asi_log *log;          /* borrowed */
    int32_t session_id;
    int32_t stream_id;
    int32_t max_payload;   /* mtu - 32 */
    /* Exclusive only: the writer's private view. */
    bool is_exclusive;
    int32_t index;
    int32_t term_id;
    int64_t term_offset;
    int64_t term_begin_position;
} asi_appender;

/* An exclusive appender initialises its state from the log's metadata. */
void asi_appender_init(asi_appender *appender, asi_log *log, int32_t session_id, int32_t stream_id, bool is_exclusive);
int64_t asi_append_message(asi_appender *appender, const asi_append_source *source);
/* As asi_append_message, for the most frequent case: one part of length <= max_payload, no reserved value. */
int64_t asi_append_short(asi_appender *appender, const uint8_t *data, int64_t length);
/* length <= max_payload. *frame is the claimed header; the payload follows it. */
int64_t asi_append_claim(asi_appender *appender, int64_t length, uint8_t **frame);
void asi_append_commit(uint8_t *frame);
void asi_append_abort(uint8_t *frame);
/* Exclusive only. Block: AS_PUBLICATION_ERROR if its first frame is not at the current position, or the block passes the
   term's end. */
int64_t asi_append_padding(asi_appender *appender, int64_t length);
int64_t asi_append_block(asi_appender *appender, const uint8_t *frames, int64_t length);
/* As asi_append_block, in two steps. Claiming returns space for `length` > 0 bytes, less at the term's end. The commit takes
 * the block that was written there, except its first word, which makes the block visible. */
int64_t asi_append_claim_block(asi_appender *appender, int64_t length, uint8_t **room);
int64_t asi_append_commit_block(asi_appender *appender, const uint8_t *first_word, int64_t length);

/* The result for a tail that no valid log has. */
int64_t asi_append_broken_tail(int32_t term_id, int64_t offset);

/* Position before the next append, which is compared with the limit. AS_ADMIN_ACTION during a rotation. */
static inline int64_t asi_append_position(const asi_appender *appender)
{
    if (appender->is_exclusive)
    {
        return appender->term_begin_position + appender->term_offset;
    }
    const asi_log *log = appender->log;
    const int32_t term_count = asi_load_acquire_i32(&log->metadata->active_term_count);
    const int64_t raw_tail = asi_load_acquire_i64(&log->metadata->tail_counters[asi_log_index(term_count)]);
    const int32_t term_id = asi_log_term_id(raw_tail);
    if (__builtin_expect(term_count != asi_wrap_sub(term_id, log->initial_term_id), 0))
    {
        return AS_ADMIN_ACTION;
    }
    const int32_t offset = asi_log_term_offset(raw_tail, log->term_length);
    const int64_t position = asi_log_position_of_count(term_count, offset, log->position_bits);
    return __builtin_expect(position >= 0, 1) ? position : asi_append_broken_tail(term_id, offset);
}

#endif

/* See session.h. */
#include "replay/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/map.h"
#include "codec/header.h"
#include "store/segment_judge.h"
#include "store/segment_layout.h"

void asi_replay_session_end(asi_replay_session *session, bool must_revoke)
{
    if (session->has_window)
    {
        asi_segment_window_close(&session->window);
        session->has_window = false;
    }
    session->must_revoke = must_revoke;
    session->state = ASI_REPLAY_DONE;
}

static int64_t segment_base(const asi_replay_session *session)
{
    return asi_segment_base(
        session->source.start_position, session->position, session->source.term_length, session->source.segment_length);
}

static void answer(asi_replay_session *session, asi_replay_work *work, int32_t code, int64_t relevant_id, const char *text)
{
    asi_replay_answer *put = calloc(1, sizeof(*put));
    if (NULL == put)
    {
        return; /* the requester times out, which it must handle anyway */
    }
    put->control_session_id = session->control_session_id;
    put->correlation_id = session->correlation_id;
    put->relevant_id = relevant_id;
    put->code = code;
    snprintf(put->text, sizeof(put->text), "%s", text);
    asi_intrusive_queue_put(work->answers, &put->item);
}

/* Sends an error to the requester and ends the replay. Spec: 08 §7.3 - all replay errors carry this suffix. */
static int __attribute__((format(printf, 4, 5))) fail(
    asi_replay_session *session, asi_replay_work *work, int32_t error_code, const char *format, ...)
{
    char reason[ASI_REPLAY_TEXT_CAPACITY - 256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    char text[ASI_REPLAY_TEXT_CAPACITY];
    snprintf(text, sizeof(text), "%s, recordingId=%lld, replaySessionId=%lld, segmentFile=%lld-%lld.rec", reason,
        (long long)session->source.recording_id, (long long)session->replay_session_id,
        (long long)session->source.recording_id, (long long)segment_base(session));
    answer(session, work, ASI_CODEC_ERROR, error_code, text);
    asi_replay_session_end(session, true);
    return 1;
}

/* "<pos> (segmentFilePosition=.., segmentOffset=.., termOffset=.., frameOffset=..)" of a frame in the current batch. */
static const char *frame_position(const asi_replay_session *session, int64_t frame_offset, char *to, size_t capacity)
{
    const int64_t base = segment_base(session);
    const int64_t term_offset = session->position & (session->source.term_length - 1);
    snprintf(to, capacity, "%lld (segmentFilePosition=%lld, segmentOffset=%lld, termOffset=%lld, frameOffset=%lld)",
        (long long)(session->position + frame_offset), (long long)base, (long long)(session->position - term_offset - base),
        (long long)term_offset, (long long)frame_offset);
    return to;
}

static bool segment_exists(const asi_replay_session *session)
{
    char path[AS_PATH_MAX];
    return AS_OK == asi_segment_path(
        path, sizeof(path), session->archive_dir, session->source.recording_id, segment_base(session)) &&
        asi_file_is_there(session->source.files, path);
}

static bool is_frame_of_position(const asi_replay_session *session, const asi_frame_header *frame, int64_t position)
{
    return frame->term_offset == (int32_t)(position & (session->source.term_length - 1)) &&
        frame->term_id ==
            asi_segment_term_id(position, session->source.term_length, session->source.initial_term_id);
}

/* Updates the position up to which frames may be sent. If that position is final, it also limits the replay. Spec: 08 §8 step 3.
 * Departure: a limit counter beyond the recorded position does not make the replay read bytes that are not recorded yet. */
static void update_limits(asi_replay_session *session, const asi_replay_work *work)
{
    bool is_final = true;
    int64_t stop = session->recording_end;
    if (NULL != session->recorded)
    {
        is_final = asi_load_acquire_bool(&session->recorded->is_final);
        stop = asi_load_acquire_i64(&session->recorded->position);
    }
    if (AS_NULL_VALUE != session->bound_counter_id)
    {
        int64_t bound = session->bound;
        const as_result state = as_inspector_counter_value(
            work->inspector, session->bound_counter_id, session->bound_registration_id, &bound);
        session->bound = bound;
        if (AS_OK != state && session->replay_limit > bound)
        {
            session->replay_limit = bound > session->position ? bound : session->position; /* the counter releases no more */
        }
        if (bound < stop)
        {
            stop = bound;
            is_final = AS_OK != state;
        }
    }
    session->stop_position = stop;
    session->is_stop_final = is_final;
    if (is_final && session->replay_limit > stop)
    {
        session->replay_limit = stop > session->position ? stop : session->position;
    }
}

/* Checks that the segment file exists and that a frame begins at the position. Then sends the response to the requester. */
static int begin(asi_replay_session *session, asi_replay_work *work)
{
    if (!segment_exists(session))
    {
        return work->now_ns < session->connect_deadline_ns ? 0 :
            fail(session, work, ASI_CODEC_E_GENERIC, "recording segment file not created");
    }
    update_limits(session, work);
    asi_segment_window_init(&session->window, &session->source);
    session->has_window = true;
    if (session->position > session->source.start_position && session->position != session->stop_position)
    {
        char where[256];
        asi_frame_header frame;
        if (AS_OK != asi_segment_window_read(&session->window, session->position, sizeof(frame), (uint8_t *)&frame))
        {
            return fail(session, work, ASI_CODEC_E_GENERIC, "%s", as_error_text());
        }
        if (!is_frame_of_position(session, &frame, session->position) || frame.stream_id != session->source.stream_id)
        {
            return fail(session, work, ASI_CODEC_E_INVALID_POSITION, "replayPosition=%s does not point to a valid frame",
                frame_position(session, 0, where, sizeof(where)));
        }
    }
    answer(session, work, ASI_CODEC_OK, session->replay_session_id, "");
    AS_ASSERT(ASI_REPLAY_INIT == session->state);
    session->state = ASI_REPLAY_CONNECTING;
    return 1;
}

static int connect(asi_replay_session *session, asi_replay_work *work)
{
    if (as_publication_is_connected(session->publication))
    {
        AS_ASSERT(ASI_REPLAY_CONNECTING == session->state && session->has_window);
        session->state = ASI_REPLAY_REPLAY;
        return 1;
    }
    return work->now_ns < session->connect_deadline_ns ? 0 :
        fail(session, work, ASI_CODEC_E_GENERIC, "no connection established for replayChannel=%s, replayStreamId=%d",
            session->channel, session->publication_stream_id);
}

/* A batch is read directly into the block claimed from the publication, except its first header. Subscribers see nothing of the
 * batch until that header is written. */
typedef struct replay_batch
{
    asi_frame_header first;
    uint8_t *room;
    int64_t loaded;  /* bytes read, first header included */
    int64_t length;  /* length of the whole frames in them that may be sent */
} replay_batch;

/* Whether the frame may be sent; fails the replay if it is broken. Session and stream id become the publication's. */
static bool take_frame(asi_replay_session *session, asi_replay_work *work, replay_batch *batch, const asi_frame_walk *walk)
{
    char where[256];
    uint8_t *place = batch->room + walk->frame_offset;
    asi_frame_header *frame = 0 == walk->frame_offset ? &batch->first : (asi_frame_header *)(void *)place;
    if (!is_frame_of_position(session, frame, session->position + walk->frame_offset) ||
        frame->stream_id != session->source.stream_id)
    {
        fail(session, work, ASI_CODEC_E_GENERIC, "unexpected frame header at position=%s: termId=%d, termOffset=%d",
            frame_position(session, walk->frame_offset, where, sizeof(where)), frame->term_id, frame->term_offset);
        return false;
    }
    if (walk->frame_length > session->source.mtu_length)
    {
        /* Departure from Spec: 08 §8 - a publication could never send this frame, nor anything after it. */
        fail(session, work, ASI_CODEC_E_GENERIC, "unexpected frame length at position=%s: frameLength=%d mtuLength=%d",
            frame_position(session, walk->frame_offset, where, sizeof(where)), walk->frame_length, session->source.mtu_length);
        return false;
    }
    if (NULL != session->checksum)
    {
        const int64_t payload = asi_frame_occupancy(walk->frame_length) - AS_FRAME_HEADER_LENGTH;
        const int32_t computed = (int32_t)session->checksum(place + AS_FRAME_HEADER_LENGTH, payload);
        if (frame->session_id != computed)
        {
            fail(session, work, ASI_CODEC_E_GENERIC,
                "CRC checksum mismatch at position=%s: recorded checksum=%d, computed checksum=%d",
                frame_position(session, walk->frame_offset, where, sizeof(where)), frame->session_id, computed);
            return false;
        }
    }
    frame->session_id = session->publication_session_id;
    frame->stream_id = session->publication_stream_id;
    return true;
}

/* Takes a padding frame. For a recording with checksums: if the padding is a message that lost its type, fails the replay and
 * returns false. */
static bool take_padding(asi_replay_session *session, asi_replay_work *work, const asi_frame_walk *walk)
{
    char where[256];
    const int64_t position = session->position + walk->frame_offset;
    asi_padding_verdict verdict = ASI_PADDING_EMPTY;
    session->padding_length = walk->frame_length;
    /* The recording's session id is passed as 0, unknown: an empty message that lost its type is not detected. */
    if (NULL == session->checksum || AS_OK != asi_segment_judge_padding(
            &session->window, walk->frame, position, INT64_MAX, session->checksum, 0, &verdict) || ASI_PADDING_WAS_DATA != verdict)
    {
        return true;
    }
    fail(session, work, ASI_CODEC_E_GENERIC, "padding holds a message at position=%s: recorded checksum=%d",
        frame_position(session, walk->frame_offset, where, sizeof(where)), walk->frame->session_id);
    return false;
}

/* Walks the loaded bytes: whole data frames up to the limit, then a padding frame if one follows. False: the replay failed. */
static bool walk_batch(asi_replay_session *session, asi_replay_work *work, replay_batch *batch)
{
    const int64_t term_left = session->source.term_length - (session->position & (session->source.term_length - 1));
    const int64_t limit = session->replay_limit - session->position;
    /* Only headers inside the loaded bytes are read. The test below checks that the whole frame is loaded. */
    const int64_t last_header = batch->loaded - AS_FRAME_HEADER_LENGTH + 1;
    asi_frame_walk walk = asi_frame_walk_start(
        (const uint8_t *)&batch->first, 0, limit < last_header ? limit : last_header, term_left);
    for (;;)
    {
        const asi_walk_step step = asi_frame_walk_next(&walk);
        walk.term = batch->room; /* frames after the first */
        if (ASI_WALK_FRAME != step)
        {
            if (ASI_WALK_BROKEN == step || walk.offset < walk.limit)
            {
                char where[256];
                fail(session, work, ASI_CODEC_E_GENERIC, "unexpected end of recording at position=%s",
                    frame_position(session, walk.offset, where, sizeof(where)));
                return false;
            }
            return true;
        }
        if (asi_frame_is_padding(walk.frame))
        {
            return take_padding(session, work, &walk);
        }
        if (walk.offset > batch->loaded)
        {
            return true;
        }
        if (!take_frame(session, work, batch, &walk))
        {
            return false;
        }
        batch->length = walk.offset;
    }
}

static as_result read_batch(asi_replay_session *session, asi_replay_work *work, replay_batch *batch, int64_t length)
{
    const int64_t begin_ns = asi_clock_ns(work->clock);
    const int64_t header = AS_FRAME_HEADER_LENGTH;
    as_result result = asi_segment_window_read(&session->window, session->position, header, (uint8_t *)&batch->first);
    if (AS_OK == result)
    {
        batch->loaded = length; /* bytes left by a failed read must be cleared */
        result = asi_segment_window_read(&session->window, session->position + header, length - header, batch->room + header);
    }
    const int64_t elapsed_ns = asi_clock_ns(work->clock) - begin_ns;
    work->ns += elapsed_ns;
    work->max_ns = elapsed_ns > work->max_ns ? elapsed_ns : work->max_ns;
    work->bytes += AS_OK == result ? length : 0;
    return result;
}

/* Reads and checks the next batch in the claimed block. Clears the bytes that are not sent. False: the replay failed. */
static bool prepare(asi_replay_session *session, asi_replay_work *work, replay_batch *batch, int64_t length)
{
    bool is_right = false;
    if (session->window.fd >= 0 && session->window.segment_base != segment_base(session) && !segment_exists(session))
    {
        fail(session, work, ASI_CODEC_E_GENERIC, "recording segment not found");
    }
    else if (AS_OK != read_batch(session, work, batch, length))
    {
        fail(session, work, ASI_CODEC_E_GENERIC, "%s", as_error_text());
    }
    else
    {
        is_right = walk_batch(session, work, batch);
    }
    const int64_t keep = is_right && batch->length > 0 ? batch->length : AS_FRAME_HEADER_LENGTH;
    if (batch->loaded > keep)
    {
        memset(batch->room + keep, 0, (size_t)(batch->loaded - keep));
    }
    return is_right;
}

/* No whole frame ends at or before the stop position. `is_all`: all bytes up to it are loaded. Only a limit counter may be inside
 * a frame: then the rest is released later, or the replay ends before the frame. A recording ends with a frame, so in any other
 * case the incomplete frame is broken. */
static void check_stalled(asi_replay_session *session, asi_replay_work *work, bool is_all)
{
    const bool is_bounded = AS_NULL_VALUE != session->bound_counter_id && session->bound == session->stop_position;
    char where[256];
    if (is_bounded && is_all)
    {
        if (session->is_stop_final)
        {
            asi_replay_session_end(session, false);
        }
        return;
    }
    fail(session, work, ASI_CODEC_E_GENERIC, "unexpected end of recording at position=%s",
        frame_position(session, 0, where, sizeof(where)));
}

/* Result of a send. AS_OK: accepted, or nothing to send; AS_AGAIN: retry in the next cycle; AS_E_CLOSED: the stream has ended. */
static as_result outcome(int64_t position)
{
    if (position >= 0)
    {
        return AS_OK;
    }
    return AS_BACK_PRESSURED == position || AS_ADMIN_ACTION == position ? AS_AGAIN : AS_E_CLOSED;
}

static as_result send_padding(asi_replay_session *session)
{
    const as_result sent =
        outcome(as_publication_append_padding(session->publication, session->padding_length - AS_FRAME_HEADER_LENGTH));
    if (AS_OK == sent)
    {
        session->position += asi_frame_occupancy((int32_t)session->padding_length);
        session->padding_length = 0;
    }
    return sent;
}

/* Sends the next batch and the padding frame after it. AS_AGAIN: nothing can be sent now, or the replay has failed. */
static as_result send_batch(asi_replay_session *session, asi_replay_work *work)
{
    const int64_t ready = session->stop_position - session->position;
    if (ready < AS_FRAME_HEADER_LENGTH)
    {
        check_stalled(session, work, true);
        return AS_AGAIN;
    }
    replay_batch batch = { 0 };
    const int64_t length = as_publication_claim_block(
        session->publication, ready < session->batch_limit ? ready : session->batch_limit, &batch.room);
    if (length < 0)
    {
        return outcome(length);
    }
    if (!prepare(session, work, &batch, length))
    {
        return AS_AGAIN;
    }
    AS_ASSERT(0 == batch.length % AS_FRAME_ALIGNMENT && session->position + batch.length <= session->stop_position);
    if (batch.length > 0)
    {
        const int64_t word = sizeof(int64_t);
        memcpy(batch.room + word, (const uint8_t *)&batch.first + word, sizeof(batch.first) - (size_t)word);
        const as_result sent = outcome(
            as_publication_commit_block(session->publication, (const uint8_t *)&batch.first, batch.length));
        if (AS_OK != sent)
        {
            return sent;
        }
        session->position += batch.length;
    }
    else if (0 == session->padding_length)
    {
        check_stalled(session, work, length == ready);
        return AS_AGAIN;
    }
    return 0 == session->padding_length ? AS_OK : send_padding(session);
}

static int replay(asi_replay_session *session, asi_replay_work *work)
{
    if (!as_publication_is_connected(session->publication))
    {
        asi_replay_session_end(session, true); /* Spec: 08 §8 step 1 - losing the subscriber is not an error */
        return 1;
    }
    if (0 == session->padding_length)
    {
        if (session->stop_position - session->position < session->batch_limit)
        {
            update_limits(session, work);
        }
        if (session->position >= session->replay_limit)
        {
            asi_replay_session_end(session, false);
            return 1;
        }
        if (session->position >= session->stop_position || as_publication_available_window(session->publication) <= 0)
        {
            return 0;
        }
    }
    const as_result sent = session->padding_length > 0 ? send_padding(session) : send_batch(session, work);
    if (AS_OK == sent && session->position >= session->replay_limit)
    {
        asi_replay_session_end(session, false);
    }
    else if (sent < 0)
    {
        asi_replay_session_end(session, true);
    }
    return AS_OK == sent ? 1 : 0;
}

int asi_replay_session_step(asi_replay_session *session, asi_replay_work *work)
{
    if (ASI_REPLAY_DONE != session->state && asi_load_acquire_bool(&session->is_aborted))
    {
        asi_replay_session_end(session, true);
        return 1;
    }
    switch (session->state)
    {
        case ASI_REPLAY_INIT:
            return begin(session, work);
        case ASI_REPLAY_CONNECTING:
            return connect(session, work);
        case ASI_REPLAY_REPLAY:
        {
            const int work_count = replay(session, work);
            asi_store_release_i64(&session->reached_position, session->position);
            return work_count;
        }
        case ASI_REPLAY_DONE:
            break;
    }
    return 0;
}

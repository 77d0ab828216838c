/* Interests and sessions; see dispatch.h. */
#include "driver/rx/dispatch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/bits.h"

as_result asi_dispatch_open(asi_dispatch *dispatch, int32_t stream_capacity, int32_t session_capacity)
{
    /* calloc of this size maps zero pages, which take no memory until they are written. */
    *dispatch = (asi_dispatch){
        .sessions = calloc((size_t)session_capacity, sizeof(asi_session)),
        .streams = calloc((size_t)stream_capacity, sizeof(asi_stream)),
        .session_buckets = calloc((size_t)session_capacity, sizeof(asi_session *)),
        .stream_buckets = calloc((size_t)stream_capacity, sizeof(asi_stream *)),
        .session_capacity = session_capacity,
        .stream_capacity = stream_capacity
    };
    if (NULL == dispatch->sessions || NULL == dispatch->streams || NULL == dispatch->session_buckets ||
        NULL == dispatch->stream_buckets)
    {
        asi_dispatch_close(dispatch);
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for the receiver's tables");
    }
    return AS_OK;
}

void asi_dispatch_close(asi_dispatch *dispatch)
{
    free(dispatch->sessions);
    free(dispatch->streams);
    free(dispatch->session_buckets);
    free(dispatch->stream_buckets);
    *dispatch = (asi_dispatch){ 0 };
}

static uint64_t mix(uint64_t value)
{
    value *= 0x9E3779B97F4A7C15ULL;
    return value ^ (value >> 32);
}

static asi_stream **stream_bucket(const asi_dispatch *dispatch, const asi_receive_endpoint *endpoint, int32_t stream_id)
{
    const uint64_t hash = mix((uint64_t)(uintptr_t)endpoint ^ mix((uint32_t)stream_id));
    return &dispatch->stream_buckets[hash & (uint64_t)(dispatch->stream_capacity - 1)];
}

static asi_session **session_bucket(
    const asi_dispatch *dispatch, const asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id)
{
    const uint64_t hash =
        mix((uint64_t)(uintptr_t)endpoint ^ mix((uint64_t)(uint32_t)stream_id << 32 | (uint32_t)session_id));
    return &dispatch->session_buckets[hash & (uint64_t)(dispatch->session_capacity - 1)];
}

asi_session *asi_dispatch_find(
    const asi_dispatch *dispatch, const asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id)
{
    asi_session *session = *session_bucket(dispatch, endpoint, stream_id, session_id);
    while (NULL != session && (session->session_id != session_id || session->stream->stream_id != stream_id ||
        session->stream->endpoint != endpoint))
    {
        session = session->next_in_bucket;
    }
    return session;
}

asi_stream *asi_dispatch_find_stream(const asi_dispatch *dispatch, const asi_receive_endpoint *endpoint, int32_t stream_id)
{
    asi_stream *stream = *stream_bucket(dispatch, endpoint, stream_id);
    while (NULL != stream && (stream->stream_id != stream_id || stream->endpoint != endpoint))
    {
        stream = stream->next_in_bucket;
    }
    return stream;
}

bool asi_dispatch_is_interested(
    const asi_dispatch *dispatch, const asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id)
{
    const asi_stream *stream = asi_dispatch_find_stream(dispatch, endpoint, stream_id);
    if (NULL == stream || stream->is_all_sessions)
    {
        return NULL != stream;
    }
    const asi_session *session = asi_dispatch_find(dispatch, endpoint, stream_id, session_id);
    return NULL != session && session->is_subscribed;
}

static asi_session *add_entry(asi_dispatch *dispatch, asi_stream *stream, int32_t session_id)
{
    asi_session *session = dispatch->free_sessions;
    if (NULL != session)
    {
        dispatch->free_sessions = session->next_in_bucket;
    }
    else if (dispatch->session_used < dispatch->session_capacity)
    {
        session = &dispatch->sessions[dispatch->session_used++];
    }
    else
    {
        return NULL;
    }
    asi_session **bucket = session_bucket(dispatch, stream->endpoint, stream->stream_id, session_id);
    *session = (asi_session){
        .stream = stream, .session_id = session_id, .next_in_bucket = *bucket, .next_in_stream = stream->sessions
    };
    if (NULL != stream->sessions)
    {
        stream->sessions->previous_in_stream = session;
    }
    stream->sessions = session;
    *bucket = session;
    return session;
}

static void free_entry(asi_dispatch *dispatch, asi_session *session)
{
    asi_stream *stream = session->stream;
    asi_session **link = session_bucket(dispatch, stream->endpoint, stream->stream_id, session->session_id);
    while (*link != session)
    {
        link = &(*link)->next_in_bucket;
    }
    *link = session->next_in_bucket;
    if (NULL != session->next_in_stream)
    {
        session->next_in_stream->previous_in_stream = session->previous_in_stream;
    }
    *(NULL != session->previous_in_stream ? &session->previous_in_stream->next_in_stream : &stream->sessions) =
        session->next_in_stream;
    session->next_in_bucket = dispatch->free_sessions;
    dispatch->free_sessions = session;
}

asi_session *asi_dispatch_get_or_add(
    asi_dispatch *dispatch, asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id)
{
    asi_session *session = asi_dispatch_find(dispatch, endpoint, stream_id, session_id);
    if (NULL != session)
    {
        return session;
    }
    asi_stream *stream = asi_dispatch_find_stream(dispatch, endpoint, stream_id);
    return NULL == stream ? NULL : add_entry(dispatch, stream, session_id);
}

void asi_dispatch_set_state(asi_dispatch *dispatch, asi_session *session, asi_session_state state, asi_rx_image *image)
{
    AS_ASSERT((ASI_SESSION_ACTIVE == state) == (NULL != image));
    AS_ASSERT(NULL == session->image || (ASI_SESSION_PENDING_SETUP != state && ASI_SESSION_INIT_IN_PROGRESS != state));
    session->stream->image_count += (NULL != image ? 1 : 0) - (NULL != session->image ? 1 : 0);
    dispatch->init_count += (ASI_SESSION_INIT_IN_PROGRESS == state ? 1 : 0) -
        (ASI_SESSION_INIT_IN_PROGRESS == session->state ? 1 : 0);
    AS_ASSERT(session->stream->image_count >= 0 && dispatch->init_count >= 0);
    session->state = (uint8_t)state;
    session->image = image;
    if (ASI_SESSION_NONE == state && !session->is_subscribed)
    {
        free_entry(dispatch, session);
    }
}

static asi_stream *get_or_add_stream(asi_dispatch *dispatch, asi_receive_endpoint *endpoint, int32_t stream_id)
{
    asi_stream *stream = asi_dispatch_find_stream(dispatch, endpoint, stream_id);
    if (NULL != stream)
    {
        return stream;
    }
    stream = dispatch->free_streams;
    if (NULL != stream)
    {
        dispatch->free_streams = stream->next_in_bucket;
    }
    else if (dispatch->stream_used < dispatch->stream_capacity)
    {
        stream = &dispatch->streams[dispatch->stream_used++];
    }
    else
    {
        return NULL;
    }
    asi_stream **bucket = stream_bucket(dispatch, endpoint, stream_id);
    *stream = (asi_stream){ .endpoint = endpoint, .stream_id = stream_id, .next_in_bucket = *bucket };
    *bucket = stream;
    endpoint->stream_count++;
    return stream;
}

static as_result fail_full(const char *what, int32_t capacity)
{
    return asi_fail(AS_E_STORAGE, ENOSPC, "the receiver has no room for another %s: it holds %d", what, capacity);
}

as_result asi_dispatch_add_stream(asi_dispatch *dispatch, asi_receive_endpoint *endpoint, int32_t stream_id)
{
    asi_stream *stream = get_or_add_stream(dispatch, endpoint, stream_id);
    if (NULL == stream)
    {
        return fail_full("stream", dispatch->stream_capacity);
    }
    stream->is_all_sessions = true;
    return AS_OK;
}

/* When no interest is left, frees the stream and its sessions. */
static void free_stream_if_unused(asi_dispatch *dispatch, asi_stream *stream)
{
    bool is_wanted = stream->is_all_sessions;
    for (asi_session *session = stream->sessions; NULL != session;)
    {
        asi_session *next = session->next_in_stream;
        if (!stream->is_all_sessions && !session->is_subscribed)
        {
            asi_dispatch_set_state(dispatch, session, ASI_SESSION_NONE, NULL);
        }
        is_wanted = is_wanted || session->is_subscribed;
        session = next;
    }
    if (!is_wanted)
    {
        asi_stream **link = stream_bucket(dispatch, stream->endpoint, stream->stream_id);
        while (*link != stream)
        {
            link = &(*link)->next_in_bucket;
        }
        *link = stream->next_in_bucket;
        stream->endpoint->stream_count--;
        stream->next_in_bucket = dispatch->free_streams;
        dispatch->free_streams = stream;
    }
}

as_result asi_dispatch_add_session(
    asi_dispatch *dispatch, asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id)
{
    asi_stream *stream = get_or_add_stream(dispatch, endpoint, stream_id);
    if (NULL == stream)
    {
        return fail_full("stream", dispatch->stream_capacity);
    }
    asi_session *session = asi_dispatch_get_or_add(dispatch, endpoint, stream_id, session_id);
    if (NULL == session)
    {
        free_stream_if_unused(dispatch, stream);
        return fail_full("session", dispatch->session_capacity);
    }
    session->is_subscribed = true;
    return AS_OK;
}

void asi_dispatch_remove_stream(asi_dispatch *dispatch, asi_receive_endpoint *endpoint, int32_t stream_id)
{
    asi_stream *stream = asi_dispatch_find_stream(dispatch, endpoint, stream_id);
    if (NULL != stream)
    {
        stream->is_all_sessions = false;
        free_stream_if_unused(dispatch, stream);
    }
}

void asi_dispatch_remove_session(
    asi_dispatch *dispatch, asi_receive_endpoint *endpoint, int32_t stream_id, int32_t session_id)
{
    asi_session *session = asi_dispatch_find(dispatch, endpoint, stream_id, session_id);
    if (NULL != session && session->is_subscribed)
    {
        asi_stream *stream = session->stream;
        session->is_subscribed = false;
        if (ASI_SESSION_NONE == session->state)
        {
            free_entry(dispatch, session);
        }
        free_stream_if_unused(dispatch, stream);
    }
}

void asi_dispatch_remove_endpoint(asi_dispatch *dispatch, asi_receive_endpoint *endpoint)
{
    for (int32_t i = 0; i < dispatch->stream_used && endpoint->stream_count > 0; i++)
    {
        asi_stream *stream = asi_dispatch_find_stream(dispatch, endpoint, dispatch->streams[i].stream_id);
        if (stream != &dispatch->streams[i])
        {
            continue; /* freed, or of another endpoint */
        }
        stream->is_all_sessions = false;
        for (asi_session *session = stream->sessions; NULL != session; session = session->next_in_stream)
        {
            session->is_subscribed = false;
        }
        free_stream_if_unused(dispatch, stream);
    }
}

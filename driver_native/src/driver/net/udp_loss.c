/* Drops datagrams to simulate loss; see udp_loss.h. */
#include "driver/net/udp_loss.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "wire/command.h"
#include "wire/frame.h"

#define MAX_STREAMS 1024
#define MAX_GAPS 4096
#define ALL_FRAME_TYPES UINT64_MAX

typedef enum loss_kind
{
    LOSS_RANDOM,
    LOSS_FIXED,
    LOSS_MULTI_GAP
} loss_kind;

/* Loss state of one stream. */
typedef struct lossy_stream
{
    int32_t session_id;
    int32_t stream_id;
    int64_t next; /* fixed: end of the range dropped so far; multi-gap: index of the next gap */
} lossy_stream;

struct asi_udp_loss
{
    asi_udp_ops inner;
    asi_loss_direction direction;
    loss_kind kind;
    double rate;
    uint64_t type_mask; /* bit n: frames of type n may be dropped */
    asi_rand rand;
    int64_t term_id;
    int64_t term_offset;
    int64_t length;
    int64_t gap_radix;
    int64_t gap_length;
    int64_t total_gaps;
    int64_t dropped_count;
    int32_t stream_count;
    lossy_stream streams[MAX_STREAMS];
};

/* --- arguments: key=value|key=value --- */

static as_result fail_argument(const char *key, const char *value)
{
    return asi_fail(AS_E_USAGE, EINVAL, "could not use %s=%s for a loss generator", key, value);
}

static as_result set_argument(asi_udp_loss *loss, const char *key, const char *value)
{
    char *end = NULL;
    uint64_t seed;
    const struct
    {
        const char *key;
        int64_t *to;
    } numbers[] = {
        { "term-id", &loss->term_id },
        { "term-offset", &loss->term_offset },
        { "length", &loss->length },
        { "gap-radix", &loss->gap_radix },
        { "gap-length", &loss->gap_length },
        { "total-gaps", &loss->total_gaps },
    };
    errno = 0;
    if (0 == strcmp(key, "rate"))
    {
        loss->rate = strtod(value, &end);
        return end != value && '\0' == *end && loss->rate >= 0 && loss->rate <= 1 ? AS_OK : fail_argument(key, value);
    }
    if (0 == strcmp(key, "seed"))
    {
        seed = strtoull(value, &end, 10);
        asi_rand_seed(&loss->rand, seed);
        return end != value && '\0' == *end && 0 == errno ? AS_OK : fail_argument(key, value);
    }
    if (0 == strcmp(key, "recv-msg-mask"))
    {
        loss->type_mask = strtoull(value, &end, 16);
        return end != value && '\0' == *end && 0 == errno ? AS_OK : fail_argument(key, value);
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
    {
        if (0 == strcmp(key, numbers[i].key))
        {
            *numbers[i].to = strtoll(value, &end, 10);
            return end != value && '\0' == *end && 0 == errno ? AS_OK : fail_argument(key, value);
        }
    }
    return fail_argument(key, value);
}

static as_result set_arguments(asi_udp_loss *loss, const char *args)
{
    char copy[1024];
    if (strlen(args) >= sizeof(copy))
    {
        return fail_argument("arguments", args);
    }
    memcpy(copy, args, strlen(args) + 1);
    char *rest;
    for (char *at = strtok_r(copy, "|", &rest); NULL != at; at = strtok_r(NULL, "|", &rest))
    {
        char *value = strchr(at, '=');
        if (NULL == value)
        {
            return fail_argument(at, "");
        }
        *value++ = '\0';
        const as_result result = set_argument(loss, at, value);
        if (AS_OK != result)
        {
            return result;
        }
    }
    return LOSS_MULTI_GAP == loss->kind && (loss->gap_radix <= 0 || loss->total_gaps > MAX_GAPS) ?
        asi_fail(AS_E_USAGE, EINVAL, "multi-gap-loss needs gap-radix > 0 and total-gaps <= %d", MAX_GAPS) : AS_OK;
}

/* --- selecting datagrams to drop --- */

/* NULL when there are too many streams; those lose nothing. */
static lossy_stream *stream_of(asi_udp_loss *loss, const asi_frame_header *frame)
{
    for (int32_t i = 0; i < loss->stream_count; i++)
    {
        if (loss->streams[i].session_id == frame->session_id && loss->streams[i].stream_id == frame->stream_id)
        {
            return &loss->streams[i];
        }
    }
    if (MAX_STREAMS == loss->stream_count)
    {
        return NULL;
    }
    lossy_stream *stream = &loss->streams[loss->stream_count++];
    *stream = (lossy_stream){ .session_id = frame->session_id, .stream_id = frame->stream_id };
    return stream;
}

/* The whole range [term_offset, term_offset + length) is dropped once; later transmissions pass. */
static bool is_in_fixed_range(asi_udp_loss *loss, lossy_stream *stream, int64_t begin, int64_t end)
{
    if (begin >= loss->term_offset + loss->length || end <= loss->term_offset || begin < stream->next)
    {
        return false;
    }
    stream->next = end;
    return true;
}

/* Gap i begins at i * radix. The frames that it touches are dropped once, in the order of the gaps. */
static bool is_in_next_gap(asi_udp_loss *loss, lossy_stream *stream, int64_t begin, int64_t end)
{
    const int64_t index = (end - 1) / loss->gap_radix;
    const int64_t gap_begin = index * loss->gap_radix;
    if (index < stream->next || index >= loss->total_gaps || begin >= gap_begin + loss->gap_length || end <= gap_begin)
    {
        return false;
    }
    stream->next = end >= gap_begin + loss->gap_length ? index + 1 : index;
    return true;
}

static bool is_lost(asi_udp_loss *loss, const void *bytes, int32_t length)
{
    const asi_frame_header *frame = bytes;
    if (length < (int32_t)sizeof(asi_frame_prefix))
    {
        return false;
    }
    if (LOSS_RANDOM == loss->kind)
    {
        const bool is_meant = frame->type < 64 && 0 != (loss->type_mask & (1ULL << frame->type));
        return is_meant && (double)(asi_rand_u64(&loss->rand) >> 11) * 0x1.0p-53 < loss->rate;
    }
    if (length <= AS_FRAME_HEADER_LENGTH || ASI_FRAME_DATA != frame->type || frame->term_id != loss->term_id)
    {
        return false;
    }
    lossy_stream *stream = stream_of(loss, frame);
    const int64_t begin = frame->term_offset;
    const int64_t end = begin + length;
    return NULL != stream && (LOSS_FIXED == loss->kind ? is_in_fixed_range(loss, stream, begin, end) :
        is_in_next_gap(loss, stream, begin, end));
}

/* --- udp_ops --- */

/* A dropped datagram frees its buffer for a later one. Buffers are swapped, not copied. */
static as_result receive_some(
    void *context, asi_udp_socket *socket, asi_incoming *datagrams, int32_t count, int32_t *received)
{
    asi_udp_loss *loss = context;
    int32_t taken = 0;
    const as_result result = loss->inner.receive(loss->inner.context, socket, datagrams, count, &taken);
    int32_t kept = 0;
    for (int32_t i = 0; i < taken; i++)
    {
        if (ASI_LOSS_INCOMING == loss->direction && is_lost(loss, datagrams[i].buffer, datagrams[i].length))
        {
            loss->dropped_count++;
            continue;
        }
        const asi_incoming swapped = datagrams[kept];
        datagrams[kept++] = datagrams[i];
        if (kept - 1 != i)
        {
            datagrams[i] = swapped;
        }
    }
    *received = kept;
    return result;
}

static as_result open_socket(void *context, const asi_udp_params *params, asi_udp_socket **socket)
{
    const asi_udp_ops *inner = &((asi_udp_loss *)context)->inner;
    return inner->open(inner->context, params, socket);
}

static void close_socket(void *context, asi_udp_socket *socket)
{
    const asi_udp_ops *inner = &((asi_udp_loss *)context)->inner;
    inner->close(inner->context, socket);
}

/* Sends one at a time when some may be dropped. Dropped ones count as sent. */
static as_result send_all(
    void *context, asi_udp_socket *socket, const asi_outgoing *datagrams, int32_t count, int32_t *sent)
{
    asi_udp_loss *loss = context;
    if (ASI_LOSS_INCOMING == loss->direction)
    {
        return loss->inner.send(loss->inner.context, socket, datagrams, count, sent);
    }
    for (*sent = 0; *sent < count; ++*sent)
    {
        int32_t taken = 1;
        as_result result = AS_OK;
        if (is_lost(loss, datagrams[*sent].bytes, datagrams[*sent].length))
        {
            loss->dropped_count++;
        }
        else
        {
            result = loss->inner.send(loss->inner.context, socket, &datagrams[*sent], 1, &taken);
        }
        if (AS_OK != result || 0 == taken)
        {
            return result;
        }
    }
    return AS_OK;
}

static as_result reconnect(void *context, asi_udp_socket *socket, const asi_address *peer)
{
    const asi_udp_ops *inner = &((asi_udp_loss *)context)->inner;
    return inner->reconnect(inner->context, socket, peer);
}

static as_result bound_address(void *context, asi_udp_socket *socket, asi_address *address)
{
    const asi_udp_ops *inner = &((asi_udp_loss *)context)->inner;
    return inner->bound_address(inner->context, socket, address);
}

static as_result list_interfaces(void *context, asi_interface *to, int32_t capacity, int32_t *count)
{
    const asi_udp_ops *inner = &((asi_udp_loss *)context)->inner;
    return inner->interfaces(inner->context, to, capacity, count);
}

static int pollable_fd(void *context, const asi_udp_socket *socket)
{
    const asi_udp_ops *inner = &((asi_udp_loss *)context)->inner;
    return NULL == inner->pollable_fd ? -1 : inner->pollable_fd(inner->context, socket);
}

asi_udp_ops asi_udp_loss_ops(asi_udp_loss *loss)
{
    return (asi_udp_ops){
        .open = open_socket,
        .close = close_socket,
        .send = send_all,
        .receive = receive_some,
        .reconnect = reconnect,
        .bound_address = bound_address,
        .interfaces = list_interfaces,
        .pollable_fd = pollable_fd,
        .context = loss
    };
}

as_result asi_udp_loss_open(
    const asi_udp_ops *inner, asi_loss_direction direction, const char *kind, const char *args, asi_udp_loss **loss)
{
    static const char *const kinds[] = { "loss", "fixed-loss", "multi-gap-loss" }; /* as loss_kind */
    size_t found = 0;
    while (found < sizeof(kinds) / sizeof(kinds[0]) && 0 != strcmp(kind, kinds[found]))
    {
        found++;
    }
    if (sizeof(kinds) / sizeof(kinds[0]) == found)
    {
        return asi_fail(
            AS_E_USAGE, EINVAL, "interceptor %s is none of loss, fixed-loss, multi-gap-loss", kind);
    }
    asi_udp_loss *opened = calloc(1, sizeof(*opened));
    if (NULL == opened)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a loss generator");
    }
    opened->inner = *inner;
    opened->direction = direction;
    opened->kind = (loss_kind)found;
    opened->type_mask = ALL_FRAME_TYPES;
    asi_rand_seed_system(&opened->rand);
    const as_result result = set_arguments(opened, NULL == args ? "" : args);
    if (AS_OK != result)
    {
        free(opened);
        return result;
    }
    *loss = opened;
    return AS_OK;
}

void asi_udp_loss_close(asi_udp_loss *loss) { free(loss); }

int64_t asi_udp_loss_dropped_count(const asi_udp_loss *loss) { return loss->dropped_count; }

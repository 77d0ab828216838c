/* See udp_batch.h. */
#define _GNU_SOURCE
#include "driver/net/udp_batch.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "base/bits.h"

#define MAX_RUN_DATAGRAMS 64   /* limit of Linux before 6.9 */
#define MAX_RUN_LENGTH 65504   /* maximum bytes of one send: the largest datagram, for IPv4 too */

void asi_udp_batch_probe(struct asi_udp_socket *socket, bool may_coalesce)
{
    int value = 0;
    socklen_t length = sizeof(value);
    const bool has_runs = 0 == getsockopt(socket->send_fd, IPPROTO_UDP, UDP_SEGMENT, &value, &length);
    socket->segment_limit = has_runs ? MAX_RUN_LENGTH : 0;
    length = sizeof(socket->sndbuf_length);
    (void)getsockopt(socket->send_fd, SOL_SOCKET, SO_SNDBUF, &socket->sndbuf_length, &length);
    const int on = 1;
    /* Datagrams of one read share one time stamp, so a socket with receive timestamps reads them one by one. */
    socket->is_coalescing = may_coalesce && !socket->has_receive_timestamps &&
        0 == setsockopt(socket->receive_fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
}

/* Spec: 04 §3.5 - a peer's refusal of an earlier datagram is not an error of this call, and neither is an empty socket. */
static bool is_nothing_now(int errno_value)
{
    return EAGAIN == errno_value || EWOULDBLOCK == errno_value || EINTR == errno_value || ECONNREFUSED == errno_value;
}

/* --- sending --- */

typedef union segment_control
{
    struct cmsghdr align;
    uint8_t bytes[CMSG_SPACE(sizeof(uint16_t))];
} segment_control;

typedef struct outbox
{
    struct mmsghdr messages[ASI_UDP_MAX_BATCH];
    struct iovec vectors[ASI_UDP_MAX_BATCH];
    segment_control controls[ASI_UDP_MAX_BATCH];
    int32_t datagrams[ASI_UDP_MAX_BATCH]; /* in each message */
    int32_t count;
} outbox;

/* Number of datagrams in the next run: equal lengths except for the last, contiguous in memory, to one address. */
static int32_t run_of(const asi_outgoing *datagrams, int32_t count, int32_t segment_limit)
{
    const asi_outgoing *first = datagrams;
    int32_t run = 1;
    int32_t total = first->length;
    if (first->length > segment_limit)
    {
        return run;
    }
    while (run < count && run < MAX_RUN_DATAGRAMS && datagrams[run - 1].length == first->length)
    {
        const asi_outgoing *next = &datagrams[run];
        if (next->length > first->length || next->length > MAX_RUN_LENGTH - total || next->length <= 0 || next->to != first->to ||
            (const uint8_t *)next->bytes != (const uint8_t *)first->bytes + total)
        {
            break;
        }
        total += next->length;
        run++;
    }
    return run;
}

static void add_message(outbox *box, const asi_outgoing *datagrams, int32_t run)
{
    const int32_t at = box->count++;
    const asi_outgoing *last = &datagrams[run - 1];
    struct msghdr *header = &box->messages[at].msg_hdr;
    box->datagrams[at] = run;
    box->vectors[at] = (struct iovec){
        .iov_base = (void *)(uintptr_t)datagrams->bytes,
        .iov_len = (size_t)((const uint8_t *)last->bytes - (const uint8_t *)datagrams->bytes + last->length)
    };
    *header = (struct msghdr){ .msg_iov = &box->vectors[at], .msg_iovlen = 1 };
    if (NULL != datagrams->to)
    {
        header->msg_name = (void *)(uintptr_t)&datagrams->to->any;
        header->msg_namelen = asi_address_length(datagrams->to);
    }
    if (run > 1)
    {
        const uint16_t segment_length = (uint16_t)datagrams->length;
        header->msg_control = &box->controls[at];
        header->msg_controllen = sizeof(box->controls[at]);
        struct cmsghdr *control = CMSG_FIRSTHDR(header);
        control->cmsg_level = IPPROTO_UDP;
        control->cmsg_type = UDP_SEGMENT;
        control->cmsg_len = CMSG_LEN(sizeof(segment_length));
        memcpy(CMSG_DATA(control), &segment_length, sizeof(segment_length));
    }
}

static void pack(outbox *box, const asi_udp_socket *socket, const asi_outgoing *datagrams, int32_t count)
{
    box->count = 0;
    for (int32_t i = 0; i < count;)
    {
        const int32_t run = run_of(datagrams + i, count - i, socket->segment_limit);
        add_message(box, datagrams + i, run);
        i += run;
    }
}

/* Handles a refused run: the route's MTU is too small (a datagram that must be fragmented can't be in a run), or runs are not
 * supported. True: pack again. */
static bool lower_limit(asi_udp_socket *socket, int32_t run, int32_t segment_length, int errno_value)
{
    const bool is_refusal = EINVAL == errno_value || EMSGSIZE == errno_value || EIO == errno_value ||
        ENOPROTOOPT == errno_value || EOPNOTSUPP == errno_value;
    if (run < 2 || !is_refusal)
    {
        return false;
    }
    socket->segment_limit = EMSGSIZE == errno_value || EINVAL == errno_value ? segment_length - 1 : 0;
    return true;
}

static as_result fail_send(int errno_value, const asi_address *to)
{
    if (NULL == to)
    {
        return asi_fail_errno(AS_E_USAGE, errno_value, "cannot send");
    }
    char text[ASI_ADDRESS_TEXT_CAPACITY];
    asi_address_format(to, text);
    return asi_fail_errno(AS_E_USAGE, errno_value, "cannot send to %s", text);
}

static bool has_room_for_strangers(const asi_udp_socket *socket)
{
    int waiting = 0;
    return 0 != ioctl(socket->send_fd, SIOCOUTQ, &waiting) || waiting <= socket->sndbuf_length / 4;
}

/* Sends a single datagram, the usual case where latency matters: the kernel copies no message headers for it. */
static as_result send_one(asi_udp_socket *socket, const asi_outgoing *datagram, int32_t *sent)
{
    const asi_address *to = datagram->to;
    const ssize_t taken = sendto(socket->send_fd, datagram->bytes, (size_t)datagram->length, 0, NULL == to ? NULL : &to->any,
        NULL == to ? 0 : asi_address_length(to));
    *sent = taken >= 0 ? 1 : 0;
    return taken >= 0 || is_nothing_now(errno) ? AS_OK : fail_send(errno, to);
}

as_result asi_udp_batch_send(
    void *context, asi_udp_socket *socket, const asi_outgoing *datagrams, int32_t count, int32_t *sent)
{
    (void)context;
    if (count > 0 && datagrams->is_to_stranger && !has_room_for_strangers(socket))
    {
        *sent = 0;
        return AS_OK;
    }
    if (1 == count)
    {
        return send_one(socket, datagrams, sent);
    }
    outbox box; /* only the used part is initialised */
    count = count > ASI_UDP_MAX_BATCH ? ASI_UDP_MAX_BATCH : count;
    *sent = 0;
    while (*sent < count)
    {
        pack(&box, socket, datagrams + *sent, count - *sent);
        const int taken = sendmmsg(socket->send_fd, box.messages, (unsigned)box.count, 0);
        const int error = errno;
        if (taken < 0 && !lower_limit(socket, box.datagrams[0], datagrams[*sent].length, error))
        {
            return is_nothing_now(error) ? AS_OK : fail_send(error, datagrams[*sent].to);
        }
        for (int i = 0; i < taken; i++) /* the next try reports why it stopped */
        {
            *sent += box.datagrams[i];
        }
    }
    return AS_OK;
}

/* --- receiving --- */

typedef union receive_control
{
    struct cmsghdr align;
    uint8_t bytes[CMSG_SPACE(sizeof(struct timespec)) + CMSG_SPACE(sizeof(int))];
} receive_control;

typedef struct control_values
{
    int64_t time_ns;
    int32_t segment_length; /* 0: a single datagram */
} control_values;

static control_values read_control(struct msghdr *header)
{
    control_values values = { .time_ns = INT64_MIN };
    for (struct cmsghdr *at = CMSG_FIRSTHDR(header); NULL != at; at = CMSG_NXTHDR(header, at))
    {
        if (SOL_SOCKET == at->cmsg_level && SCM_TIMESTAMPNS == at->cmsg_type)
        {
            struct timespec time;
            memcpy(&time, CMSG_DATA(at), sizeof(time));
            values.time_ns = (int64_t)time.tv_sec * 1000000000LL + time.tv_nsec;
        }
        else if (IPPROTO_UDP == at->cmsg_level && UDP_GRO == at->cmsg_type)
        {
            int segment_length;
            memcpy(&segment_length, CMSG_DATA(at), sizeof(segment_length));
            values.segment_length = segment_length;
        }
    }
    return values;
}

/* Splits one buffer into its datagrams; returns how many. Each must begin at a multiple of 8, and the lengths in the buffer may
 * not be multiples of 8. */
static int32_t split(uint8_t *buffer, int32_t length, int32_t segment_length, const asi_address *source, asi_incoming *to)
{
    const int32_t count = segment_length <= 0 || segment_length >= length ? 1 : (length + segment_length - 1) / segment_length;
    const int32_t kept = count > ASI_UDP_MAX_SEGMENTS ? ASI_UDP_MAX_SEGMENTS : count;
    const int32_t stride = (int32_t)asi_align_i64(segment_length, (int64_t)sizeof(int64_t));
    for (int32_t i = kept - 1; i >= 0; i--)
    {
        const int32_t left = length - i * segment_length;
        to[i].buffer = buffer + i * stride;
        to[i].length = 1 == count || left < segment_length ? left : segment_length;
        to[i].source = *source;
        to[i].receive_time_ns = INT64_MIN;
        if (stride != segment_length && i > 0)
        {
            memmove(to[i].buffer, buffer + i * segment_length, (size_t)to[i].length);
        }
    }
    return kept;
}

as_result asi_udp_batch_receive(
    void *context, asi_udp_socket *socket, asi_incoming *datagrams, int32_t count, int32_t *received)
{
    (void)context;
    struct mmsghdr messages[ASI_UDP_MAX_BUFFERS];
    struct iovec vectors[ASI_UDP_MAX_BUFFERS];
    asi_address sources[ASI_UDP_MAX_BUFFERS];
    receive_control controls[ASI_UDP_MAX_BUFFERS];
    const bool has_control = socket->has_receive_timestamps || socket->is_coalescing;
    count = count > ASI_UDP_MAX_BUFFERS ? ASI_UDP_MAX_BUFFERS : count;
    for (int32_t i = 0; i < count; i++)
    {
        const int32_t headroom = socket->is_coalescing ? ASI_UDP_MAX_SEGMENTS * (int32_t)sizeof(int64_t) : 0;
        vectors[i] = (struct iovec){
            .iov_base = datagrams[i].buffer, .iov_len = (size_t)(datagrams[i].capacity - headroom)
        };
        messages[i] = (struct mmsghdr){ .msg_hdr = {
            .msg_name = &sources[i], .msg_namelen = sizeof(sources[i]), .msg_iov = &vectors[i], .msg_iovlen = 1
        } };
        if (has_control)
        {
            messages[i].msg_hdr.msg_control = &controls[i];
            messages[i].msg_hdr.msg_controllen = sizeof(controls[i]);
        }
    }
    *received = 0;
    const int taken = recvmmsg(socket->receive_fd, messages, (unsigned)count, 0, NULL);
    if (taken < 0)
    {
        return is_nothing_now(errno) ? AS_OK : asi_fail_errno(AS_E_USAGE, errno, "cannot receive");
    }
    for (int i = 0; i < taken; i++)
    {
        const control_values values = has_control ? read_control(&messages[i].msg_hdr) :
            (control_values){ .time_ns = INT64_MIN };
        asi_incoming *first = &datagrams[*received];
        *received += split(vectors[i].iov_base, (int32_t)messages[i].msg_len, values.segment_length, &sources[i], first);
        first->receive_time_ns = values.time_ns;
    }
    return AS_OK;
}

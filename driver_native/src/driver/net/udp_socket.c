/* The kernel's UDP sockets; see udp_socket.h. */
#define _GNU_SOURCE
#include "driver/net/udp_socket.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "driver/net/udp_batch.h"

#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29 /* Linux 4.20; headers may be older */
#endif

static as_result fail(int errno_value, const char *what, const asi_address *address)
{
    char text[ASI_ADDRESS_TEXT_CAPACITY];
    asi_address_format(address, text);
    return asi_fail_errno(AS_E_USAGE, errno_value, "%s %s", what, text);
}

static as_result fail_bind(int errno_value, int fd, const asi_address *address)
{
    char text[ASI_ADDRESS_TEXT_CAPACITY];
    asi_address_format(address, text);
    const char *remedy = EADDRINUSE == errno_value ? ", choose another port or end who has it" :
        EADDRNOTAVAIL == errno_value ? ", no interface of this machine has that address" : "";
    return asi_fail_errno(AS_E_USAGE, errno_value, "failed to bind(%d, %s)%s", fd, text, remedy);
}

static as_result set_option(int fd, int level, int name, const void *value, socklen_t length, const char *what)
{
    return 0 == setsockopt(fd, level, name, value, length) ? AS_OK : asi_fail_errno(AS_E_USAGE, errno, "setsockopt %s", what);
}

static as_result set_int(int fd, int level, int name, int value, const char *what)
{
    return set_option(fd, level, name, &value, sizeof(value), what);
}

static as_result make_fd(const asi_udp_params *params, int *fd)
{
    *fd = socket(params->bind.any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0)
    {
        *fd = ASI_UDP_NO_FD;
        return asi_fail_errno(AS_E_USAGE, errno, "cannot open a UDP socket");
    }
    as_result result = AS_OK;
    if (params->sndbuf_length > 0)
    {
        result = set_int(*fd, SOL_SOCKET, SO_SNDBUF, params->sndbuf_length, "SO_SNDBUF");
    }
    if (AS_OK == result && params->rcvbuf_length > 0)
    {
        result = set_int(*fd, SOL_SOCKET, SO_RCVBUF, params->rcvbuf_length, "SO_RCVBUF");
    }
    return result;
}

/* Sets interface and TTL for sending to a group. Spec: 04 §3.6-3.7. */
static as_result set_multicast_sending(int fd, const asi_udp_params *params)
{
    as_result result;
    if (AF_INET6 == params->group.any.sa_family)
    {
        result = set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)params->interface_index, "IPV6_MULTICAST_IF");
        return AS_OK == result && params->ttl > 0 ?
            set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, params->ttl, "IPV6_MULTICAST_HOPS") : result;
    }
    const struct ip_mreqn via = {
        .imr_address = params->interface.v4.sin_addr, .imr_ifindex = (int)params->interface_index
    };
    result = set_option(fd, IPPROTO_IP, IP_MULTICAST_IF, &via, sizeof(via), "IP_MULTICAST_IF");
    return AS_OK == result && params->ttl > 0 ?
        set_int(fd, IPPROTO_IP, IP_MULTICAST_TTL, params->ttl, "IP_MULTICAST_TTL") : result;
}

static as_result join_group(int fd, const asi_udp_params *params)
{
    if (AF_INET6 == params->group.any.sa_family)
    {
        const struct ipv6_mreq member = {
            .ipv6mr_multiaddr = params->group.v6.sin6_addr, .ipv6mr_interface = params->interface_index
        };
        return 0 == setsockopt(fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &member, sizeof(member)) ? AS_OK :
            fail(errno, "cannot join group", &params->group);
    }
    const struct ip_mreqn member = {
        .imr_multiaddr = params->group.v4.sin_addr,
        .imr_address = params->interface.v4.sin_addr,
        .imr_ifindex = (int)params->interface_index
    };
    return 0 == setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof(member)) ? AS_OK :
        fail(errno, "cannot join group", &params->group);
}

static as_result connect_fd(int fd, const asi_address *peer)
{
    return 0 == connect(fd, &peer->any, asi_address_length(peer)) ? AS_OK : fail(errno, "failed to connect to address:", peer);
}

/* Without this option, a socket bound to the wildcard gets the datagrams of every group that any socket of the machine joined on
 * its port: unrelated streams, and status messages of others. There is no workaround on kernels without the option. Spec: 11
 * N8 */
static as_result take_own_group_only(int fd, const asi_udp_params *params)
{
    const bool is_v6 = AF_INET6 == params->group.any.sa_family;
    const as_result result = is_v6 ? set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0, "IPV6_MULTICAST_ALL") :
        set_int(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0, "IP_MULTICAST_ALL");
    return AS_OK == result || ENOPROTOOPT != as_error_code() ? result : AS_OK;
}

static as_result open_receiving(struct asi_udp_socket *socket, const asi_udp_params *params)
{
    const bool is_multicast = !asi_address_is_none(&params->group);
    as_result result = make_fd(params, &socket->receive_fd);
    if (AS_OK == result && is_multicast) /* Spec: 04 §3.5 - several sockets of one machine share a group's port */
    {
        result = set_int(socket->receive_fd, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
        if (AS_OK == result)
        {
            result = set_int(socket->receive_fd, SOL_SOCKET, SO_REUSEPORT, 1, "SO_REUSEPORT");
        }
        result = AS_OK == result ? take_own_group_only(socket->receive_fd, params) : result;
    }
    if (AS_OK == result && 0 != bind(socket->receive_fd, &params->bind.any, asi_address_length(&params->bind)))
    {
        result = fail_bind(errno, socket->receive_fd, &params->bind);
    }
    if (AS_OK == result && is_multicast)
    {
        result = join_group(socket->receive_fd, params);
        if (AS_OK == result)
        {
            result = set_multicast_sending(socket->receive_fd, params);
        }
    }
    if (AS_OK == result && params->has_receive_timestamps)
    {
        result = set_int(socket->receive_fd, SOL_SOCKET, SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS");
        socket->has_receive_timestamps = true;
    }
    return result;
}

static as_result open_sending(struct asi_udp_socket *socket, const asi_udp_params *params)
{
    socket->send_fd = socket->receive_fd;
    if (asi_address_is_none(&params->connect))
    {
        return AS_OK;
    }
    as_result result = AS_OK;
    if (!asi_address_is_none(&params->group)) /* a connected socket would receive only its peer's datagrams */
    {
        result = make_fd(params, &socket->send_fd);
        if (AS_OK == result)
        {
            result = set_multicast_sending(socket->send_fd, params);
        }
    }
    return AS_OK == result ? connect_fd(socket->send_fd, &params->connect) : result;
}

static void close_socket(void *context, asi_udp_socket *socket)
{
    (void)context;
    if (NULL == socket)
    {
        return;
    }
    if (ASI_UDP_NO_FD != socket->send_fd && socket->send_fd != socket->receive_fd)
    {
        close(socket->send_fd);
    }
    if (ASI_UDP_NO_FD != socket->receive_fd)
    {
        close(socket->receive_fd);
    }
    free(socket);
}

static as_result open_socket(void *context, const asi_udp_params *params, asi_udp_socket **socket)
{
    (void)context;
    asi_udp_socket *opened = calloc(1, sizeof(*opened));
    if (NULL == opened)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a socket");
    }
    opened->receive_fd = ASI_UDP_NO_FD;
    opened->send_fd = ASI_UDP_NO_FD;
    as_result result = open_receiving(opened, params);
    if (AS_OK == result)
    {
        result = open_sending(opened, params);
    }
    if (AS_OK != result)
    {
        close_socket(NULL, opened);
        return result;
    }
    asi_udp_batch_probe(opened, params->may_coalesce);
    *socket = opened;
    return AS_OK;
}

static as_result reconnect(void *context, asi_udp_socket *socket, const asi_address *peer)
{
    (void)context;
    return connect_fd(socket->send_fd, peer);
}

static as_result bound_address(void *context, asi_udp_socket *socket, asi_address *address)
{
    (void)context;
    asi_address bound;
    socklen_t length = sizeof(bound);
    memset(&bound, 0, sizeof(bound));
    if (0 != getsockname(socket->receive_fd, &bound.any, &length))
    {
        return asi_fail_errno(AS_E_USAGE, errno, "cannot tell a socket's own address");
    }
    *address = bound;
    return AS_OK;
}

static int pollable_fd(void *context, const asi_udp_socket *socket)
{
    (void)context;
    return socket->receive_fd;
}

static int32_t prefix_length(const struct sockaddr *mask)
{
    int32_t bits = 0;
    if (NULL != mask)
    {
        const bool is_v6 = AF_INET6 == mask->sa_family;
        const uint8_t *bytes = is_v6 ? (const uint8_t *)&((const struct sockaddr_in6 *)(const void *)mask)->sin6_addr :
            (const uint8_t *)&((const struct sockaddr_in *)(const void *)mask)->sin_addr;
        for (int32_t i = 0; i < (is_v6 ? 16 : 4); i++)
        {
            bits += __builtin_popcount(bytes[i]);
        }
    }
    return bits;
}

static as_result list_interfaces(void *context, asi_interface *to, int32_t capacity, int32_t *count)
{
    (void)context;
    struct ifaddrs *list;
    if (0 != getifaddrs(&list))
    {
        return asi_fail_errno(AS_E_USAGE, errno, "cannot list network interfaces");
    }
    *count = 0;
    for (const struct ifaddrs *at = list; NULL != at && *count < capacity; at = at->ifa_next)
    {
        if (NULL == at->ifa_addr || (AF_INET != at->ifa_addr->sa_family && AF_INET6 != at->ifa_addr->sa_family))
        {
            continue;
        }
        asi_interface *interface = &to[(*count)++];
        memset(interface, 0, sizeof(*interface));
        snprintf(interface->name, sizeof(interface->name), "%s", at->ifa_name);
        interface->index = if_nametoindex(at->ifa_name);
        memcpy(&interface->address, at->ifa_addr,
            AF_INET6 == at->ifa_addr->sa_family ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
        interface->prefix_length = prefix_length(at->ifa_netmask);
        interface->is_up = 0 != (at->ifa_flags & IFF_UP);
        interface->is_loopback = 0 != (at->ifa_flags & IFF_LOOPBACK);
        interface->is_multicast = 0 != (at->ifa_flags & IFF_MULTICAST);
    }
    freeifaddrs(list);
    return AS_OK;
}

asi_udp_ops asi_udp_ops_kernel(void)
{
    return (asi_udp_ops){
        .open = open_socket,
        .close = close_socket,
        .send = asi_udp_batch_send,
        .receive = asi_udp_batch_receive,
        .pollable_fd = pollable_fd,
        .reconnect = reconnect,
        .bound_address = bound_address,
        .interfaces = list_interfaces
    };
}

static int32_t read_limit(const char *path, int32_t fallback)
{
    int value = fallback;
    FILE *file = fopen(path, "r");
    if (NULL != file)
    {
        if (1 != fscanf(file, "%d", &value))
        {
            value = fallback;
        }
        fclose(file);
    }
    return value;
}

void asi_udp_socket_limits(asi_socket_limits *limits)
{
    *limits = (asi_socket_limits){ 0 };
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
    {
        return;
    }
    socklen_t length = sizeof(int32_t);
    getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &limits->default_sndbuf_length, &length);
    length = sizeof(int32_t);
    getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &limits->default_rcvbuf_length, &length);
    close(fd);
    limits->max_sndbuf_length = read_limit("/proc/sys/net/core/wmem_max", limits->default_sndbuf_length);
    limits->max_rcvbuf_length = read_limit("/proc/sys/net/core/rmem_max", limits->default_rcvbuf_length);
}

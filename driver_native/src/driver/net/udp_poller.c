/* See udp_poller.h. */
#include "driver/net/udp_poller.h"

#include <sys/epoll.h>
#include <unistd.h>

#define READ_ALL_MAX 4 /* up to that many reads cost less than a poll */

void asi_udp_poller_open(asi_udp_poller *poller)
{
    *poller = (asi_udp_poller){ .epoll_fd = epoll_create1(EPOLL_CLOEXEC) };
    poller->is_open = poller->epoll_fd >= 0;
}

void asi_udp_poller_close(asi_udp_poller *poller)
{
    if (poller->is_open)
    {
        close(poller->epoll_fd);
    }
    *poller = (asi_udp_poller){ .is_open = false };
}

static int fd_of(const asi_udp_poller *poller, const asi_udp_ops *ops, const asi_udp_socket *socket)
{
    return !poller->is_open || NULL == ops->pollable_fd ? -1 : ops->pollable_fd(ops->context, socket);
}

void asi_udp_poller_add(asi_udp_poller *poller, const asi_udp_ops *ops, asi_udp_socket *socket, void *tag)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = tag };
    const int fd = fd_of(poller, ops, socket);
    poller->socket_count++;
    if (fd < 0 || 0 != epoll_ctl(poller->epoll_fd, EPOLL_CTL_ADD, fd, &event))
    {
        poller->unwatched_count++;
    }
}

void asi_udp_poller_remove(asi_udp_poller *poller, const asi_udp_ops *ops, asi_udp_socket *socket)
{
    struct epoll_event none = { 0 };
    const int fd = fd_of(poller, ops, socket);
    poller->socket_count--;
    if (fd < 0 || 0 != epoll_ctl(poller->epoll_fd, EPOLL_CTL_DEL, fd, &none))
    {
        poller->unwatched_count--;
    }
}

bool asi_udp_poller_is_worth_it(const asi_udp_poller *poller)
{
    return poller->socket_count > READ_ALL_MAX && 0 == poller->unwatched_count;
}

int32_t asi_udp_poller_poll(const asi_udp_poller *poller, void **tags)
{
    struct epoll_event events[ASI_UDP_POLLER_BATCH];
    const int count = epoll_wait(poller->epoll_fd, events, ASI_UDP_POLLER_BATCH, 0);
    for (int i = 0; i < count; i++)
    {
        tags[i] = events[i].data.ptr;
    }
    return count < 0 ? 0 : count;
}

/* Socket addresses and names; see address.h. */
#include "driver/net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/command.h"

#define PORT_CAPACITY 8

static as_result resolve_by_system(
    void *context, const char *name, const char *param, bool is_re_resolution, asi_address *address)
{
    (void)context;
    (void)param;
    (void)is_re_resolution;
    static const int families[] = { AF_INET, AF_INET6 };
    int error = 0;
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
    {
        const struct addrinfo hints = { .ai_family = families[i], .ai_socktype = SOCK_DGRAM, .ai_protocol = IPPROTO_UDP };
        struct addrinfo *found = NULL;
        const int status = getaddrinfo(name, NULL, &hints, &found);
        if (0 == status)
        {
            memset(address, 0, sizeof(*address));
            memcpy(address, found->ai_addr, found->ai_addrlen);
            freeaddrinfo(found);
            return AS_OK;
        }
        error = 0 == error ? status : error;
    }
    return asi_fail(AS_E_USAGE, ASI_ERR_UNKNOWN_HOST, "Unable to resolve host=(%s): (%d) %s", name, error, gai_strerror(error));
}

asi_name_resolver asi_name_resolver_system(void) { return (asi_name_resolver){ .resolve = resolve_by_system }; }

as_result asi_address_parse_port(const char *text, uint16_t *port)
{
    char *end;
    const long value = strtol(text, &end, 10);
    if (end == text || text[0] <= ' ' || '+' == text[0] || '\0' != *end || strlen(text) >= PORT_CAPACITY)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "port invalid: '%s'", text);
    }
    if (value < 0 || value > UINT16_MAX)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "port out of range: '%s'", text);
    }
    *port = (uint16_t)value;
    return AS_OK;
}

/* "fe80::1%eth0": the part after % names an interface. */
static bool parse_v6(const char *host, asi_address *address)
{
    char text[ASI_HOST_CAPACITY];
    snprintf(text, sizeof(text), "%s", host);
    char *scope = strchr(text, '%');
    if (NULL != scope)
    {
        *scope++ = '\0';
    }
    *address = asi_address_any(AF_INET6);
    if (1 != inet_pton(AF_INET6, text, &address->v6.sin6_addr))
    {
        return false;
    }
    if (NULL != scope)
    {
        address->v6.sin6_scope_id = if_nametoindex(scope);
    }
    return true;
}

static bool parse_v4(const char *host, asi_address *address)
{
    *address = asi_address_any(AF_INET);
    return 1 == inet_pton(AF_INET, host, &address->v4.sin_addr);
}

bool asi_address_parse_literal(const char *host, asi_address *address) { return parse_v4(host, address) || parse_v6(host, address); }

static as_result resolve_host(const asi_name_resolver *resolver, const char *host, bool is_bracketed, const char *param,
    bool is_re_resolution, asi_address *address)
{
    if (is_bracketed)
    {
        return parse_v6(host, address) ? AS_OK : asi_fail(AS_E_USAGE, ASI_ERR_UNKNOWN_HOST,
            "Unable to resolve host=(%s): (%d) %s", host, EAI_NONAME, gai_strerror(EAI_NONAME));
    }
    return parse_v4(host, address) ? AS_OK : resolver->resolve(resolver->context, host, param, is_re_resolution, address);
}

as_result asi_address_resolve(const asi_name_resolver *resolver, const char *host_and_port, const char *param,
    bool is_re_resolution, asi_address *address)
{
    char host[ASI_HOST_CAPACITY];
    const char *host_end = strrchr(host_and_port, ':');
    const char *bracket = '[' == host_and_port[0] ? strchr(host_and_port, ']') : NULL;
    if (NULL != bracket)
    {
        host_end = ':' == bracket[1] ? bracket + 1 : NULL;
    }
    const char *port_text = NULL == host_end ? "" : host_end + 1;
    const size_t skip = NULL == bracket ? 0 : 1; /* of brackets */
    const size_t host_length = NULL == host_end ? strlen(host_and_port) : (size_t)(host_end - host_and_port) - 2 * skip;
    uint16_t port = 0;
    asi_address found;
    as_result result;
    if (host_length >= sizeof(host))
    {
        result = asi_fail(AS_E_USAGE, ASI_ERR_UNKNOWN_HOST, "host has %zu characters, more than %d", host_length,
            ASI_HOST_CAPACITY - 1);
    }
    else
    {
        memcpy(host, host_and_port + skip, host_length);
        host[host_length] = '\0';
        result = asi_address_parse_port(port_text, &port);
    }
    if (AS_OK == result)
    {
        result = resolve_host(resolver, host, NULL != bracket, param, is_re_resolution, &found);
    }
    if (AS_OK != result)
    {
        return asi_fail_in(result, "Unresolved - %s=%s, name-and-port=%s", param, host_and_port, host_and_port);
    }
    asi_address_set_port(&found, port);
    *address = found;
    return AS_OK;
}

asi_address asi_address_any(int family)
{
    asi_address address;
    memset(&address, 0, sizeof(address));
    address.any.sa_family = (sa_family_t)family;
    return address;
}

void asi_address_format(const asi_address *address, char *to)
{
    char host[INET6_ADDRSTRLEN] = "";
    if (AF_INET6 == address->any.sa_family)
    {
        inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof(host));
        snprintf(to, ASI_ADDRESS_TEXT_CAPACITY, "[%s]:%u", host, asi_address_port(address));
    }
    else if (AF_INET == address->any.sa_family)
    {
        inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof(host));
        snprintf(to, ASI_ADDRESS_TEXT_CAPACITY, "%s:%u", host, asi_address_port(address));
    }
    else
    {
        snprintf(to, ASI_ADDRESS_TEXT_CAPACITY, "unresolved");
    }
}

bool asi_address_equal(const asi_address *a, const asi_address *b)
{
    if (a->any.sa_family != b->any.sa_family)
    {
        return false;
    }
    return AF_INET6 == a->any.sa_family ?
        a->v6.sin6_port == b->v6.sin6_port && 0 == memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof(a->v6.sin6_addr)) :
        AF_INET != a->any.sa_family ||
            (a->v4.sin_port == b->v4.sin_port && a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr);
}

bool asi_address_same_host(const asi_address *a, const asi_address *b)
{
    if (a->any.sa_family != b->any.sa_family)
    {
        return false;
    }
    return AF_INET6 == a->any.sa_family ? 0 == memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof(a->v6.sin6_addr)) :
        AF_INET != a->any.sa_family || a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
}

bool asi_address_is_multicast(const asi_address *address)
{
    return AF_INET6 == address->any.sa_family ? IN6_IS_ADDR_MULTICAST(&address->v6.sin6_addr) :
        AF_INET == address->any.sa_family && IN_MULTICAST(ntohl(address->v4.sin_addr.s_addr));
}

bool asi_address_is_any(const asi_address *address)
{
    return AF_INET6 == address->any.sa_family ? IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr) :
        AF_INET == address->any.sa_family && INADDR_ANY == address->v4.sin_addr.s_addr;
}

uint16_t asi_address_port(const asi_address *address)
{
    return ntohs(AF_INET6 == address->any.sa_family ? address->v6.sin6_port : address->v4.sin_port);
}

void asi_address_set_port(asi_address *address, uint16_t port)
{
    if (AF_INET6 == address->any.sa_family)
    {
        address->v6.sin6_port = htons(port);
    }
    else
    {
        address->v4.sin_port = htons(port);
    }
}

socklen_t asi_address_length(const asi_address *address)
{
    return AF_INET6 == address->any.sa_family ? sizeof(address->v6) : sizeof(address->v4);
}

/* Selects network interfaces; see interfaces.h. */
#include "driver/net/interfaces.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/command.h"

static int32_t full_prefix(int family) { return AF_INET6 == family ? 128 : 32; }

static as_result fail_format(const char *reason)
{
    return asi_fail(AS_E_USAGE, EINVAL,
        "%s, it must be addr[:port][/prefix], [ipv6][:port][/prefix] or {name}[:port]", reason);
}

static as_result parse_prefix_length(const char *text, int32_t max, int32_t *value)
{
    char *end;
    const long parsed = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || '\0' != *end || strlen(text) > 8)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "prefixlen invalid: %s", text);
    }
    *value = (int32_t)parsed;
    return parsed <= max ? AS_OK : asi_fail(AS_E_USAGE, EINVAL, "prefixlen out of range: %ld", parsed);
}

static as_result parse_named(char *text, int family, asi_interface_search *search)
{
    char *close = strchr(text, '}');
    const ptrdiff_t length = NULL == close ? -1 : close - text - 1;
    uint16_t port = 0;
    if (length <= 0 || length >= (ptrdiff_t)sizeof(search->name))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "name length %td out of bounds", length);
    }
    if ('\0' != close[1] && ':' != close[1])
    {
        return fail_format("unexpected character after name closing brace");
    }
    const as_result result = '\0' == close[1] ? AS_OK : asi_address_parse_port(close + 2, &port);
    *close = '\0';
    memcpy(search->name, text + 1, (size_t)(close - text));
    search->address = asi_address_any(family);
    asi_address_set_port(&search->address, port);
    return result;
}

/* The host's address, of the family of `address`: a literal, or the system resolver's answer. */
static as_result find_host(const char *host, asi_address *address)
{
    const int family = address->any.sa_family;
    void *to = AF_INET6 == family ? (void *)&address->v6.sin6_addr : (void *)&address->v4.sin_addr;
    if (1 == inet_pton(family, host, to))
    {
        return AS_OK;
    }
    asi_address found;
    const asi_name_resolver resolver = asi_name_resolver_system();
    const as_result result = resolver.resolve(resolver.context, host, "interface", false, &found);
    if (AS_OK == result && found.any.sa_family == family)
    {
        *address = found;
        return AS_OK;
    }
    return AS_OK != result ? result : asi_fail(AS_E_USAGE, ASI_ERR_UNKNOWN_HOST,
        "Unable to resolve host=(%s): it has no address of the interface's family", host);
}

static as_result parse(char *copy, int family, asi_interface_search *search)
{
    if ('{' == copy[0])
    {
        return parse_named(copy, family, search);
    }
    char *prefix = strchr(copy, '/');
    if (NULL != prefix)
    {
        *prefix++ = '\0';
    }
    char *host = copy;
    char *port = strrchr(copy, ':');
    if ('[' == copy[0])
    {
        char *close = strchr(copy, ']');
        if (NULL == close || ('\0' != close[1] && ':' != close[1]))
        {
            return fail_format("no closing bracket before port or prefix");
        }
        port = '\0' == close[1] ? NULL : close + 1;
        *close = '\0';
        host = copy + 1;
        search->address = asi_address_any(AF_INET6);
    }
    else
    {
        search->address = asi_address_any(AF_INET);
    }
    uint16_t port_number = 0;
    if (NULL != port)
    {
        *port++ = '\0';
    }
    const int own_family = search->address.any.sa_family;
    search->prefix_length = full_prefix(own_family);
    as_result result = NULL == port ? AS_OK : asi_address_parse_port(port, &port_number);
    if (AS_OK == result && NULL != prefix)
    {
        result = parse_prefix_length(prefix, full_prefix(own_family), &search->prefix_length);
    }
    if (AS_OK == result)
    {
        result = find_host(host, &search->address);
    }
    if (AS_OK == result)
    {
        asi_address_set_port(&search->address, port_number);
    }
    return result;
}

as_result asi_interface_search_parse(const char *text, int family, asi_interface_search *search)
{
    char copy[ASI_HOST_CAPACITY];
    memset(search, 0, sizeof(*search));
    as_result result;
    if (strlen(text) >= sizeof(copy))
    {
        result = fail_format("too long");
    }
    else
    {
        memcpy(copy, text, strlen(text) + 1);
        result = parse(copy, family, search);
    }
    return AS_OK == result ? AS_OK : asi_fail_in(result, "could not parse interface='%s'", text);
}

static bool has_prefix(const asi_address *address, const asi_address *wanted, int32_t prefix_length)
{
    const bool is_v6 = AF_INET6 == address->any.sa_family;
    const uint8_t *a = is_v6 ? (const uint8_t *)&address->v6.sin6_addr : (const uint8_t *)&address->v4.sin_addr;
    const uint8_t *b = is_v6 ? (const uint8_t *)&wanted->v6.sin6_addr : (const uint8_t *)&wanted->v4.sin_addr;
    const int32_t whole = prefix_length / 8;
    const int32_t rest = prefix_length % 8;
    const uint8_t mask = (uint8_t)(0xFF00 >> rest);
    return 0 == memcmp(a, b, (size_t)whole) && (0 == rest || 0 == ((a[whole] ^ b[whole]) & mask));
}

static bool matches(const asi_interface_search *search, const asi_interface *interface, bool must_multicast)
{
    if (!interface->is_up || interface->address.any.sa_family != search->address.any.sa_family ||
        (must_multicast && !interface->is_multicast && !interface->is_loopback))
    {
        return false;
    }
    return '\0' != search->name[0] ? 0 == strcmp(search->name, interface->name) :
        has_prefix(&interface->address, &search->address, search->prefix_length);
}

int32_t asi_interface_choose(
    const asi_interface_search *search, const asi_interface *interfaces, int32_t count, bool must_multicast)
{
    int32_t chosen = -1;
    for (int32_t i = 0; i < count; i++)
    {
        const asi_interface *candidate = &interfaces[i];
        if (!matches(search, candidate, must_multicast))
        {
            continue;
        }
        const bool is_better = chosen < 0 || (!candidate->is_loopback &&
            (interfaces[chosen].is_loopback || candidate->prefix_length > interfaces[chosen].prefix_length));
        chosen = is_better ? i : chosen;
    }
    return chosen;
}

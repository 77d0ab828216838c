/* Interface search; see interfaces.h. */
#include "driver/net/interfaces.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/command.h"

static int32_t full_prefix(int family) { return AF_INET6 == family ? 128 : 32; }

static as_result fail_format(const char *text)
{
    return asi_fail(AS_E_USAGE, EINVAL,
        "interface=%s is not addr[:port][/prefix], [ipv6][:port][/prefix] or {name}[:port]", text);
}

/* Decimal in [0, max] up to the end of the text. */
static bool parse_number(const char *text, int32_t max, int32_t *value)
{
    char *end;
    const long parsed = strtol(text, &end, 10);
    *value = (int32_t)parsed;
    return text[0] >= '0' && text[0] <= '9' && '\0' == *end && parsed <= max && strlen(text) < 8;
}

static as_result parse_named(char *text, const char *original, int family, asi_interface_search *search)
{
    char *close = strchr(text, '}');
    int32_t port = 0;
    if (NULL == close || close - text - 1 >= (ptrdiff_t)sizeof(search->name) ||
        ('\0' != close[1] && (':' != close[1] || !parse_number(close + 2, UINT16_MAX, &port))))
    {
        return fail_format(original);
    }
    *close = '\0';
    memcpy(search->name, text + 1, (size_t)(close - text));
    search->address = asi_address_any(family);
    asi_address_set_port(&search->address, (uint16_t)port);
    return AS_OK;
}

/* The host's address, of the family that `address` has: a literal, or the system's answer. */
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

as_result asi_interface_search_parse(const char *text, int family, asi_interface_search *search)
{
    char copy[ASI_HOST_CAPACITY];
    memset(search, 0, sizeof(*search));
    if (strlen(text) >= sizeof(copy))
    {
        return fail_format(text);
    }
    memcpy(copy, text, strlen(text) + 1);
    if ('{' == copy[0])
    {
        return parse_named(copy, text, family, search);
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
            return fail_format(text);
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
    int32_t port_number = 0;
    if (NULL != port)
    {
        *port++ = '\0';
    }
    const int own_family = search->address.any.sa_family;
    search->prefix_length = full_prefix(own_family);
    if ((NULL != port && !parse_number(port, UINT16_MAX, &port_number)) ||
        (NULL != prefix && !parse_number(prefix, full_prefix(own_family), &search->prefix_length)))
    {
        return fail_format(text);
    }
    const as_result result = find_host(host, &search->address);
    if (AS_OK == result)
    {
        asi_address_set_port(&search->address, (uint16_t)port_number);
    }
    return result;
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

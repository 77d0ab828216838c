/* Socket addresses: parsing, formatting, comparison and properties; and name resolution. Spec: 05 §4, 04 §16.3.
 *
 * Used wherever a host, a peer or a socket is named. Family AF_UNSPEC (0) means "none". Resolving a name may block as long as the
 * system's resolver does, so only the conductor resolves. Thread rule: addresses are values; a resolver's rule is its
 * implementation's. */
#ifndef ASI_DRIVER_NET_ADDRESS_H
#define ASI_DRIVER_NET_ADDRESS_H

#include <netinet/in.h>

#include "base/result.h"

#define ASI_ADDRESS_TEXT_CAPACITY 64 /* "[v6]:port" */
#define ASI_HOST_CAPACITY 384

typedef union asi_address
{
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} asi_address;

/* Interface of name resolvers; gossip and table resolvers implement it. The caller sets `port` in host order. */
typedef struct asi_name_resolver
{
    /* `name` is a host name, never a literal. AS_E_USAGE with code ASI_ERR_UNKNOWN_HOST when it has no address. */
    as_result (*resolve)(void *context, const char *name, const char *param, bool is_re_resolution, asi_address *address);
    void *context;
} asi_name_resolver;

/* The system's resolver: prefers IPv4 to IPv6. */
asi_name_resolver asi_name_resolver_system(void);

/* Parses "host:port", "1.2.3.4:port" or "[v6]:port". `param` (endpoint, control) is for the error text. */
as_result asi_address_resolve(const asi_name_resolver *resolver, const char *host_and_port, const char *param,
    bool is_re_resolution, asi_address *address) AS_MUST_USE;
/* Decimal in [0, 65535]. */
as_result asi_address_parse_port(const char *text, uint16_t *port) AS_MUST_USE;
/* Parses a host that is an address literal: IPv4 ("1.2.3.4") or IPv6. False for names. */
bool asi_address_parse_literal(const char *host, asi_address *address);
/* Wildcard of `family`, port 0. */
asi_address asi_address_any(int family);
/* "1.2.3.4:port" or "[v6]:port"; `to` holds ASI_ADDRESS_TEXT_CAPACITY. */
void asi_address_format(const asi_address *address, char *to);
bool asi_address_equal(const asi_address *a, const asi_address *b); /* family, host, port */
bool asi_address_same_host(const asi_address *a, const asi_address *b);
bool asi_address_is_multicast(const asi_address *address);
bool asi_address_is_any(const asi_address *address);                /* wildcard host, any port */
uint16_t asi_address_port(const asi_address *address);
void asi_address_set_port(asi_address *address, uint16_t port);
socklen_t asi_address_length(const asi_address *address);

static inline bool asi_address_is_none(const asi_address *address) { return AF_UNSPEC == address->any.sa_family; }

#endif

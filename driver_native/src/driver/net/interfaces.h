/* Selects the network interface for a channel's `interface` parameter. Spec: 04 §3.6, 05 §4. Pure; any thread. */
#ifndef ASI_DRIVER_NET_INTERFACES_H
#define ASI_DRIVER_NET_INTERFACES_H

#include "driver/net/udp_ops.h"

typedef struct asi_interface_search
{
    char name[64];         /* "{name}": that interface; "" for a search by address */
    asi_address address;   /* matched by prefix; the port is the requested local port */
    int32_t prefix_length;
} asi_interface_search;

/* Parses "addr[:port][/prefix]", "[v6][:port][/prefix]" or "{name}[:port]"; `family` applies to names. */
as_result asi_interface_search_parse(const char *text, int family, asi_interface_search *search) AS_MUST_USE;
/* Returns the index in `interfaces` of the one to use, -1 if none matches. It must be up and of the same family. Loopback only
 * when nothing else matches, otherwise the longest netmask. `must_multicast`: interfaces other than loopback must support
 * multicast. */
int32_t asi_interface_choose(
    const asi_interface_search *search, const asi_interface *interfaces, int32_t count, bool must_multicast);

#endif

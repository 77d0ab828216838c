/* Choosing a network interface by what a channel's `interface` asks for. Spec: 04 §3.6, 05 §4. Pure; any thread. */
#ifndef ASI_DRIVER_NET_INTERFACES_H
#define ASI_DRIVER_NET_INTERFACES_H

#include "driver/net/udp_ops.h"

typedef struct asi_interface_search
{
    char name[64];         /* "{name}": that interface; "" when asked by address */
    asi_address address;   /* by prefix; port is the wanted local port */
    int32_t prefix_length;
} asi_interface_search;

/* "addr[:port][/prefix]", "[v6][:port][/prefix]" or "{name}[:port]"; `family` decides for names. */
as_result asi_interface_search_parse(const char *text, int family, asi_interface_search *search) AS_MUST_USE;
/* Index in `interfaces` of the one to use, -1 if none matches: up, of the same family; loopback only if nothing else matches,
 * otherwise the longest netmask. `must_multicast`: others than loopback must be able to. */
int32_t asi_interface_choose(
    const asi_interface_search *search, const asi_interface *interfaces, int32_t count, bool must_multicast);

#endif

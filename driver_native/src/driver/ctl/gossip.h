/* The driver-to-driver name resolver. Drivers announce their names and addresses to each other over a UDP socket of the
 * conductor, and forward the ones that they have received. Spec: 04 §17, §1.12.
 *
 * A datagram is a frame header (type RES, frame_length = all of it) and entries back to back, each padded to 8 bytes:
 *   0 i8 type (1 IPv4, 2 IPv6) | 1 u8 flags (0x80: of the sender itself) | 2 u16 port | 4 i32 age in ms | 8 address (4 or 16) |
 *   then i16 length and bytes of the name.
 * Each incoming entry is checked against the rest of its datagram. Names and neighbours are bounded: a flood of forged ones fills
 * the tables and nothing else. Called by names.c. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_GOSSIP_H
#define ASI_DRIVER_CTL_GOSSIP_H

#include "driver/net/udp_ops.h"

struct asi_conductor;
typedef struct asi_gossip asi_gossip;

/* Binds to aeron.driver.resolver.interface. */
as_result asi_gossip_open(struct asi_conductor *conductor, asi_gossip **gossip) AS_MUST_USE;
void asi_gossip_close(struct asi_conductor *conductor, asi_gossip *gossip); /* no effect on NULL */
/* False when no driver has announced `name`; otherwise sets *address, without a port. */
bool asi_gossip_find(const asi_gossip *gossip, const char *name, asi_address *address);
int asi_gossip_do_work(struct asi_conductor *conductor, asi_gossip *gossip);

#endif

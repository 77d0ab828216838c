/* udp_ops that drop incoming or outgoing datagrams, configured like the stock driver's interceptors. Spec: 05 §10: the stock
 * driver crashes on outgoing ones, but its test suites name them. Here an outgoing datagram is dropped as if the network had lost
 * it.
 *
 *   loss            rate=0.2|seed=42|recv-msg-mask=0x2   chance of each datagram whose frame type's bit is set in the mask
 *   fixed-loss      term-id=7|term-offset=0|length=4096  each byte range once per stream
 *   multi-gap-loss  term-id=7|gap-radix=4096|gap-length=1408|total-gaps=10   gaps at multiples of the radix, each once
 *
 * Wraps any other udp_ops, which must outlive it. Thread rule: one receiver or sender; opening and closing need no lock. */
#ifndef ASI_DRIVER_NET_UDP_LOSS_H
#define ASI_DRIVER_NET_UDP_LOSS_H

#include "driver/net/udp_ops.h"

typedef struct asi_udp_loss asi_udp_loss;

typedef enum asi_loss_direction
{
    ASI_LOSS_INCOMING,
    ASI_LOSS_OUTGOING
} asi_loss_direction;

/* `kind`: loss, fixed-loss or multi-gap-loss; `args` may be NULL. AS_E_USAGE names an invalid argument. */
as_result asi_udp_loss_open(const asi_udp_ops *inner, asi_loss_direction direction, const char *kind, const char *args,
    asi_udp_loss **loss) AS_MUST_USE;
void asi_udp_loss_close(asi_udp_loss *loss); /* no effect on NULL */
asi_udp_ops asi_udp_loss_ops(asi_udp_loss *loss);
int64_t asi_udp_loss_dropped_count(const asi_udp_loss *loss);

#endif

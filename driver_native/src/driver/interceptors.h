/* Inserts the configured interceptors between a driver's sockets and the network: the stock driver's loss generators.
 * Spec: 05 §10. driver.c opens them once for each thread that uses sockets. Thread rule: that of the sockets' user. */
#ifndef ASI_DRIVER_INTERCEPTORS_H
#define ASI_DRIVER_INTERCEPTORS_H

#include "driver/config.h"
#include "driver/net/udp_loss.h"

#define ASI_INTERCEPTOR_MAX 6 /* incoming and outgoing together */

typedef struct asi_interceptors
{
    asi_udp_ops ops[ASI_INTERCEPTOR_MAX + 1]; /* each wraps the one before; the first is the network's */
    asi_udp_loss *losses[ASI_INTERCEPTOR_MAX];
    int32_t count;
} asi_interceptors;

/* AS_E_USAGE names the setting. Do not move the struct after that. */
as_result asi_interceptors_open(asi_interceptors *interceptors, const asi_driver_settings *settings, const asi_udp_ops *network)
    AS_MUST_USE;
void asi_interceptors_close(asi_interceptors *interceptors); /* no effect on a zeroed one */
asi_udp_ops asi_interceptors_ops(const asi_interceptors *interceptors);

#endif

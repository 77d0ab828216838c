/* Wildcard ports: sockets bound to port 0 get one of a configured range, in turn. Spec: 04 §3.9.
 * Called by send_channels and receive_channels. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_PORTS_H
#define ASI_DRIVER_CTL_PORTS_H

#include "driver/ctl/state.h"

/* As the socket operation `open`, when `params` bind to port 0 and there is a range; else just that. */
as_result asi_ports_open_sender(asi_conductor *conductor, const asi_udp_params *params, asi_udp_socket **socket) AS_MUST_USE;
as_result asi_ports_open_receiver(asi_conductor *conductor, const asi_udp_params *params, asi_udp_socket **socket) AS_MUST_USE;

#endif

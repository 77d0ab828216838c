/* Wildcard ports: a socket bound to port 0 gets the next free port of a configured range. Spec: 04 §3.9. Called by send_channels
 * and receive_channels. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_PORTS_H
#define ASI_DRIVER_CTL_PORTS_H

#include "driver/ctl/state.h"

/* Chooses the port when `params` bind to port 0 and a range is configured; otherwise the same as the socket operation `open`. */
as_result asi_ports_open_sender(asi_conductor *conductor, const asi_udp_params *params, asi_udp_socket **socket) AS_MUST_USE;
as_result asi_ports_open_receiver(asi_conductor *conductor, const asi_udp_params *params, asi_udp_socket **socket) AS_MUST_USE;

#endif

/* Parses the UDP channels of commands. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_UDP_CHANNELS_H
#define ASI_DRIVER_CTL_UDP_CHANNELS_H

#include "driver/ctl/state.h"

/* Parses a UDP channel with the driver's resolver and interfaces. */
as_result asi_network_parse_channel(asi_conductor *conductor, const char *text, int64_t length, bool is_destination,
    asi_udp_channel **channel) AS_MUST_USE;

#endif

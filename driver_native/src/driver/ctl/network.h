/* The network half of the duty cycle: commands to and from sender and receiver, name resolution, and the schedules of network
 * publications and images. The conductor opens and closes it together with the agents. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_NETWORK_H
#define ASI_DRIVER_CTL_NETWORK_H

#include "driver/ctl/state.h"

typedef struct asi_network_params
{
    asi_udp_ops send_ops;        /* for the sockets of the sender */
    asi_udp_ops receive_ops;     /* for the sockets of the receiver */
    asi_udp_ops own_ops;
    asi_name_resolver resolver; /* the system's resolver */
    asi_socket_limits limits;
    asi_command_queue *to_sender;
    asi_command_queue *to_receiver;
    asi_command_queue *from_agents;
    asi_map *loss_report;
} asi_network_params;

as_result asi_network_open(asi_conductor *conductor, const asi_network_params *params) AS_MUST_USE;
/* Frees everything; sender and receiver must have stopped. */
void asi_network_close(asi_conductor *conductor);
/* Call each duty cycle: handles commands in both directions, returned resources and streams. Returns the work count. */
int asi_network_do_work(asi_conductor *conductor);
void asi_network_on_timer(asi_conductor *conductor);

#endif

/* Adds a network publication: checks the channel, shares an existing publication or creates one. Spec: 03 §6.1-6.4.
 * Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_NETWORK_ADD_H
#define ASI_DRIVER_CTL_NETWORK_ADD_H

#include "driver/ctl/ipc.h"
#include "driver/ctl/state.h"

/* `request` as for IPC; this function chooses its session id. Answers READY, then AVAILABLE_IMAGE for each spy that it links. */
as_result asi_network_publication_add(asi_conductor *conductor, const asi_ipc_request *request) AS_MUST_USE;

#endif

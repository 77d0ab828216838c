/* Adding a network publication: the channel's checks, sharing with an existing one, creation. Spec: 03 §6.1-6.4. Thread rule: the
 * conductor's. */
#ifndef ASI_DRIVER_CTL_NETWORK_ADD_H
#define ASI_DRIVER_CTL_NETWORK_ADD_H

#include "driver/ctl/ipc.h"
#include "driver/ctl/state.h"

/* `request` as for IPC; its session id is chosen here. Answers READY, then AVAILABLE_IMAGE for each spy that it links. */
as_result asi_network_publication_add(asi_conductor *conductor, const asi_ipc_request *request) AS_MUST_USE;

#endif

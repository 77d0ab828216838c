/* Making a network publication, and giving it back. Spec: 03 §6.4. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_NETWORK_OPEN_H
#define ASI_DRIVER_CTL_NETWORK_OPEN_H

#include "driver/ctl/endpoints.h"
#include "driver/ctl/ipc.h"
#include "driver/ctl/network_publications.h"
#include "driver/ctl/params.h"
#include "driver/ctl/state.h"

/* Creates log, counters and flow control; no reference yet, in no list, unknown to the sender. */
as_result asi_network_publication_open(asi_conductor *conductor, const asi_ipc_request *request,
    const asi_publication_params *params, asi_send_channel *channel, asi_network_publication **publication) AS_MUST_USE;
/* Frees all of it; the endpoint loses one user. Harmless on NULL. */
void asi_network_publication_close(asi_conductor *conductor, asi_network_publication *publication);

#endif

/* Creates a network publication, and frees it. Spec: 03 §6.4. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_NETWORK_OPEN_H
#define ASI_DRIVER_CTL_NETWORK_OPEN_H

#include "driver/ctl/endpoints.h"
#include "driver/ctl/ipc.h"
#include "driver/ctl/network_publications.h"
#include "driver/ctl/params.h"
#include "driver/ctl/state.h"

/* Creates log, counters and flow control. The new publication has no reference, is in no list, and is unknown to the sender. */
as_result asi_network_publication_open(asi_conductor *conductor, const asi_ipc_request *request,
    const asi_ctl_publication_params *params, asi_send_channel *channel, asi_network_publication **publication) AS_MUST_USE;
/* Frees the publication and releases its endpoint. No effect on NULL. */
void asi_network_publication_close(asi_conductor *conductor, asi_network_publication *publication);

#endif

/* Making an IPC publication, and giving it back. Spec: 03 §6.4. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_IPC_OPEN_H
#define ASI_DRIVER_CTL_IPC_OPEN_H

#include "driver/ctl/ipc.h"
#include "driver/ctl/params.h"
#include "driver/ctl/state.h"

/* Creates log file and counters; the publication has no reference yet and is in no list. */
as_result asi_ipc_open(asi_conductor *conductor, const asi_ipc_request *request, const asi_publication_params *params,
    asi_ipc_publication **publication) AS_MUST_USE;
/* Frees counters and log, file included. Harmless on NULL. */
void asi_ipc_close(asi_conductor *conductor, asi_ipc_publication *publication);

#endif

/* Creates an IPC publication, and frees it. Spec: 03 §6.4. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_IPC_OPEN_H
#define ASI_DRIVER_CTL_IPC_OPEN_H

#include "driver/ctl/ipc.h"
#include "driver/ctl/params.h"
#include "driver/ctl/state.h"

/* Creates log file and counters. The new publication has no reference and is in no list. */
as_result asi_ipc_open(asi_conductor *conductor, const asi_ipc_request *request, const asi_ctl_publication_params *params,
    asi_ipc_publication **publication) AS_MUST_USE;
/* Frees counters and log, and deletes the log file. No effect on NULL. */
void asi_ipc_close(asi_conductor *conductor, asi_ipc_publication *publication);

#endif

/* Log buffer files of publications and images: made with the checks and accounts that go with them, deleted at the end.
 * Spec: 03 §6.4, 02 §2.1. Called by ipc_open, network_open and images_open. Thread rule: the conductor's. */
#ifndef ASI_DRIVER_CTL_LOG_FILES_H
#define ASI_DRIVER_CTL_LOG_FILES_H

#include "driver/ctl/params.h"
#include "shm/log_layout.h"

typedef struct asi_log_file_request
{
    const char *folder; /* publications or images */
    int64_t registration_id;
    int32_t term_length;
    bool is_sparse;
} asi_log_file_request;

/* *path is the caller's to free, also after a failure when it was set. */
as_result asi_log_file_create(
    asi_conductor *conductor, const asi_log_file_request *request, asi_log *log, char **path) AS_MUST_USE;
/* Harmless when the log was never created. */
void asi_log_file_delete(asi_conductor *conductor, asi_log *log, const char *path);

typedef struct asi_publication_identity
{
    int64_t registration_id;
    int32_t session_id;
    int32_t stream_id;
    bool is_exclusive;
} asi_publication_identity;

/* What the metadata of IPC and network publications have in common; end-of-stream position last. */
void asi_log_file_describe(const asi_conductor *conductor, asi_log *log, const asi_publication_identity *identity,
    const asi_publication_params *params);

#endif

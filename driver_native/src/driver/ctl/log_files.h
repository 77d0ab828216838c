/* Log buffer files of publications and images: made with the checks and accounts that go with them, deleted at the end.
 * Spec: 03 §6.4, 02 §2.1. Called by ipc_open, network_open and images_open. Thread rule: the conductor's.
 *
 * Storage for a log that is not sparse is reserved in pieces, one in a duty cycle, because 3 GiB in one call keep every stream waiting
 * for seconds. So a command may have to wait for its log: it is kept here and carried out again when the log is there. */
#ifndef ASI_DRIVER_CTL_LOG_FILES_H
#define ASI_DRIVER_CTL_LOG_FILES_H

#include "driver/ctl/params.h"
#include "driver/ctl/state.h"
#include "shm/log_layout.h"

typedef struct asi_log_file_request
{
    const char *folder; /* publications or images */
    int64_t registration_id;
    int32_t term_length;
    bool is_sparse;
} asi_log_file_request;

/* *path is the caller's to free, also after a failure when it was set. AS_AGAIN: storage is being reserved, the command is to be
 * kept by asi_log_file_keep_command. */
as_result asi_log_file_create(
    asi_conductor *conductor, const asi_log_file_request *request, asi_log *log, char **path) AS_MUST_USE;
/* Harmless when the log was never created. */
void asi_log_file_delete(asi_conductor *conductor, asi_log *log, const char *path);

/* A command that waits for the log of the publication that it adds; the log has the command's correlation id for its own. */
typedef struct asi_waiting_command
{
    int64_t registration_id;
    int64_t client_id;
    asi_log log;
    char *path;          /* owned */
    int64_t populated;   /* bytes of the file that have storage */
    bool is_refused;     /* there is no room for the rest */
    int32_t type_id;
    uint8_t *message;    /* owned */
    int64_t length;
} asi_waiting_command;

/* Of the command for which asi_log_file_create just returned AS_AGAIN. */
as_result asi_log_file_keep_command(
    asi_conductor *conductor, int32_t type_id, const uint8_t *message, int64_t length) AS_MUST_USE;
/* Reserves a piece for the oldest. The command that can go on now, else NULL; *work counts. To be closed when it was carried out. */
asi_waiting_command *asi_log_files_do_work(asi_conductor *conductor, int *work);
void asi_waiting_command_close(asi_conductor *conductor, asi_waiting_command *command);
/* Forgets what waits for a log of that id. False: nothing does. */
bool asi_log_file_cancel(asi_conductor *conductor, int64_t client_id, int64_t registration_id);
/* The same for all of a client that is gone. */
void asi_log_files_cancel_client(asi_conductor *conductor, int64_t client_id);
void asi_log_files_close(asi_conductor *conductor);

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

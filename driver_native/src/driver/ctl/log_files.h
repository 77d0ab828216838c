/* Creates and deletes the log buffer files of publications and images, with their checks and accounting. Spec: 03 §6.4, 02 §2.1.
 * Called by ipc_open, network_open and images_open. Thread rule: the conductor's.
 *
 * Storage for a log that is not sparse is reserved in chunks, one per duty cycle, because reserving 3 GiB in one call blocks
 * every stream for seconds. A command may therefore have to wait for its log. This module keeps it, and the conductor runs it
 * again when the log is ready. */
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

/* The caller frees *path when it is set, also after a failure. AS_AGAIN: storage is being reserved; keep the command with
 * asi_log_file_keep_command, unless it is conductor->resumed_command, which waits on. That command gets the log that it waited for.
 * Nothing else does, whatever its id: clients choose their correlation ids, and can foresee those of images. */
as_result asi_log_file_create(
    asi_conductor *conductor, const asi_log_file_request *request, asi_log *log, char **path) AS_MUST_USE;
/* No effect when the log was never created. */
void asi_log_file_delete(asi_conductor *conductor, asi_log *log, const char *path);

/* A command that waits for the log of the publication that it adds, or for an earlier command of its client that does: commands
 * of one client take effect in their order. The log carries the command's correlation id. */
typedef struct asi_waiting_command
{
    int64_t registration_id;
    int64_t client_id;
    asi_log log;         /* not mapped while the command waits for another one */
    char *path;          /* owned */
    int64_t populated;   /* bytes of the file that have storage */
    bool is_refused;     /* no storage for the rest */
    int32_t type_id;
    uint8_t *message;    /* owned */
    int64_t length;
} asi_waiting_command;

/* Call for the command for which asi_log_file_create has just returned AS_AGAIN. */
as_result asi_log_file_keep_command(
    asi_conductor *conductor, int32_t type_id, const uint8_t *message, int64_t length) AS_MUST_USE;
/* The last waiting command of a client; NULL: none. */
asi_waiting_command *asi_waiting_command_last(const asi_conductor *conductor, int64_t client_id);
/* Keeps a command of a client that has a waiting one. AS_E_USAGE: too many wait. */
as_result asi_waiting_command_add(
    asi_conductor *conductor, int32_t type_id, const uint8_t *message, int64_t length) AS_MUST_USE;
/* Reserves one chunk for the oldest command. Returns a command that is ready to run, else NULL; adds to *work. The caller closes
 * the command after it has run, unless it waits for a log of its own then. */
asi_waiting_command *asi_log_files_do_work(asi_conductor *conductor, int *work);
void asi_waiting_command_close(asi_conductor *conductor, asi_waiting_command *command);
/* Drops the last waiting command of the client if it has that id. Returns false when it has not. */
bool asi_log_file_cancel(asi_conductor *conductor, int64_t client_id, int64_t registration_id);
/* Does the same for all commands of a client that is gone. */
void asi_log_files_cancel_client(asi_conductor *conductor, int64_t client_id);
void asi_log_files_close(asi_conductor *conductor);

typedef struct asi_ctl_publication_identity
{
    int64_t registration_id;
    int32_t session_id;
    int32_t stream_id;
    bool is_exclusive;
} asi_ctl_publication_identity;

/* Fills the metadata that IPC and network publications have in common; end-of-stream position last. */
void asi_log_file_describe(const asi_conductor *conductor, asi_log *log, const asi_ctl_publication_identity *identity,
    const asi_ctl_publication_params *params);

#endif

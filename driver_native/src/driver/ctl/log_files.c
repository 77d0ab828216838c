/* See log_files.h. */
#include "driver/ctl/log_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "driver/ctl/channel.h"
#include "driver/ctl/report.h"
#include "wire/command.h"

#define RESERVED_AT_ONCE (1024 * 1024)  /* takes about a millisecond */
#define RESERVED_IN_CYCLE (128 * 1024)
#define QUICKLY_UNMAPPED_MAX_LENGTH (64 * 1024 * 1024)
#define WAITING_BYTES_OF_CLIENT (1024 * 1024)

/* Bytes that waiting commands have reserved but not received yet. */
static int64_t promised_bytes(const asi_conductor *conductor)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < conductor->waiting_commands.count; i++)
    {
        const asi_waiting_command *command = conductor->waiting_commands.items[i];
        bytes += command->log.map.length - command->populated;
    }
    return bytes;
}

static as_result check_storage(asi_conductor *conductor, int64_t log_length)
{
    const asi_driver_settings *settings = conductor->settings;
    if (!settings->perform_storage_checks)
    {
        return AS_OK;
    }
    const int64_t usable = asi_usable_space(settings->aeron_dir) - promised_bytes(conductor);
    if (usable < log_length)
    {
        return asi_fail(AS_E_USAGE, ASI_ERR_STORAGE_SPACE, "insufficient usable storage for new log of length=%" PRId64
            " usable=%" PRId64 " in %s: free space there or ask for a smaller term-length", log_length, usable,
            settings->aeron_dir);
    }
    if (usable <= settings->low_file_store_warning_threshold)
    {
        asi_conductor_log_peer_failure(conductor, asi_fail(AS_E_STORAGE, ENOSPC, "space is running low: threshold=%" PRId64
            " usable=%" PRId64 " in %s", settings->low_file_store_warning_threshold, usable, settings->aeron_dir));
    }
    return AS_OK;
}

static as_result fail_for_room(const char *path)
{
    return asi_fail(AS_E_STORAGE, ENOSPC, "no room for log %s: free space there, or ask for a smaller term-length", path);
}

static as_result add_waiting(asi_conductor *conductor, asi_waiting_command **added)
{
    asi_waiting_command *command = calloc(1, sizeof(*command));
    const as_result result = NULL == command ? asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a command that waits") :
        asi_list_add(&conductor->waiting_commands, command);
    if (AS_OK != result)
    {
        free(command);
        return result;
    }
    *added = command;
    return AS_OK;
}

/* A command that has waited for another one keeps its place, so that those behind it do not overtake it now. */
static as_result start_waiting(
    asi_conductor *conductor, const asi_log_file_request *request, asi_log *log, char **path, int64_t populated)
{
    asi_waiting_command *command = conductor->resumed_command;
    const as_result result = NULL != command ? AS_OK : add_waiting(conductor, &command);
    if (AS_OK != result)
    {
        asi_log_file_delete(conductor, log, *path);
        return result;
    }
    command->registration_id = request->registration_id;
    command->log = *log;
    command->path = *path;
    command->populated = populated;
    *log = (asi_log){ 0 };
    *path = NULL;
    return AS_AGAIN;
}

/* A small log is populated at once. */
static as_result reserve(asi_conductor *conductor, const asi_log_file_request *request, asi_log *log, char **path)
{
    int64_t populated = 0;
    if (!asi_log_populate(log, &populated, RESERVED_AT_ONCE))
    {
        const as_result result = fail_for_room(*path);
        asi_log_file_delete(conductor, log, *path);
        return result;
    }
    return populated == log->map.length ? AS_OK : start_waiting(conductor, request, log, path, populated);
}

/* Moves the log that the command waited for to its publication. */
static as_result take_log(asi_waiting_command *command, const asi_log_file_request *request, asi_log *log, char **path)
{
    if (command->is_refused)
    {
        return fail_for_room(command->path);
    }
    if (command->log.term_length != request->term_length) /* it is that of a tagged publication, which can be another one now */
    {
        return asi_fail(AS_E_USAGE, ASI_ERR_RESOURCE_TEMPORARILY_UNAVAILABLE,
            "term-length=%d became %d while storage was reserved, please retry", command->log.term_length, request->term_length);
    }
    *log = command->log;
    *path = command->path;
    command->log = (asi_log){ 0 };
    command->path = NULL;
    return AS_OK;
}

as_result asi_log_file_create(asi_conductor *conductor, const asi_log_file_request *request, asi_log *log, char **path)
{
    if (NULL != conductor->resumed_command && NULL != conductor->resumed_command->log.map.base)
    {
        return take_log(conductor->resumed_command, request, log, path);
    }
    const asi_driver_settings *settings = conductor->settings;
    const int32_t page_size = (int32_t)settings->file_page_size;
    char text[AS_PATH_MAX + 64];
    snprintf(text, sizeof(text), "%s/%s/%" PRId64 ".logbuffer", settings->aeron_dir, request->folder,
        request->registration_id);
    *path = asi_channel_copy(text, (int64_t)strlen(text));
    if (NULL == *path)
    {
        return AS_E_INTERNAL;
    }
    as_result result = check_storage(conductor, asi_log_file_length(request->term_length, page_size));
    if (AS_OK == result)
    {
        result = asi_log_create(log, text, request->term_length, page_size);
    }
    if (AS_OK == result)
    {
        asi_conductor_count(conductor, ASI_SYSTEM_BYTES_CURRENTLY_MAPPED, log->map.length);
        result = request->is_sparse ? AS_OK : reserve(conductor, request, log, path);
    }
    return result;
}

/* -- waiting commands ---------------------------------------------------------------------------------------------------- */

static as_result keep(
    asi_conductor *conductor, asi_waiting_command *command, int32_t type_id, const uint8_t *message, int64_t length)
{
    command->client_id = asi_get_i64(message);
    command->type_id = type_id;
    command->length = length;
    command->message = malloc((size_t)length);
    if (NULL == command->message)
    {
        asi_waiting_command_close(conductor, command);
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a command of %" PRId64 " bytes", length);
    }
    memcpy(command->message, message, (size_t)length);
    return AS_OK;
}

as_result asi_log_file_keep_command(asi_conductor *conductor, int32_t type_id, const uint8_t *message, int64_t length)
{
    const asi_list *commands = &conductor->waiting_commands;
    return keep(conductor, commands->items[commands->count - 1], type_id, message, length);
}

asi_waiting_command *asi_waiting_command_last(const asi_conductor *conductor, int64_t client_id)
{
    for (int32_t i = conductor->waiting_commands.count - 1; i >= 0; i--)
    {
        asi_waiting_command *command = conductor->waiting_commands.items[i];
        if (client_id == command->client_id)
        {
            return command;
        }
    }
    return NULL;
}

as_result asi_waiting_command_add(asi_conductor *conductor, int32_t type_id, const uint8_t *message, int64_t length)
{
    const int64_t client_id = asi_get_i64(message);
    asi_waiting_command *command = NULL;
    int64_t bytes = (int64_t)sizeof(*command) + length;
    for (int32_t i = 0; i < conductor->waiting_commands.count; i++)
    {
        const asi_waiting_command *other = conductor->waiting_commands.items[i];
        bytes += client_id == other->client_id ? (int64_t)sizeof(*other) + other->length : 0;
    }
    if (bytes > WAITING_BYTES_OF_CLIENT)
    {
        return asi_fail(AS_E_USAGE, ASI_ERR_RESOURCE_TEMPORARILY_UNAVAILABLE, "client_id=%" PRId64 " has as many commands as can "
            "wait until storage for one of its logs is reserved, please retry", client_id);
    }
    const as_result result = add_waiting(conductor, &command);
    if (AS_OK != result)
    {
        return result;
    }
    command->registration_id = asi_get_i64(message + offsetof(asi_cmd_correlated, correlation_id));
    return keep(conductor, command, type_id, message, length);
}

asi_waiting_command *asi_log_files_do_work(asi_conductor *conductor, int *work)
{
    if (0 == conductor->waiting_commands.count)
    {
        return NULL;
    }
    asi_waiting_command *command = conductor->waiting_commands.items[0];
    (*work)++;
    if (NULL == command->log.map.base)
    {
        return command; /* those before it have run */
    }
    command->is_refused = !asi_log_populate(&command->log, &command->populated, RESERVED_IN_CYCLE);
    return command->is_refused || command->populated == command->log.map.length ? command : NULL;
}

void asi_waiting_command_close(asi_conductor *conductor, asi_waiting_command *command)
{
    asi_list_remove(&conductor->waiting_commands, command);
    asi_log_file_delete(conductor, &command->log, command->path);
    free(command->path);
    free(command->message);
    free(command);
}

bool asi_log_file_cancel(asi_conductor *conductor, int64_t client_id, int64_t registration_id)
{
    /* A removal that has waited itself finds the publication, or comes too early. */
    asi_waiting_command *command =
        NULL != conductor->resumed_command ? NULL : asi_waiting_command_last(conductor, client_id);
    const bool is_found = NULL != command && registration_id == command->registration_id;
    if (is_found)
    {
        asi_waiting_command_close(conductor, command);
    }
    return is_found;
}

void asi_log_files_cancel_client(asi_conductor *conductor, int64_t client_id)
{
    for (int32_t i = conductor->waiting_commands.count - 1; i >= 0; i--)
    {
        asi_waiting_command *command = conductor->waiting_commands.items[i];
        if (client_id == command->client_id)
        {
            asi_waiting_command_close(conductor, command);
        }
    }
}

void asi_log_files_close(asi_conductor *conductor)
{
    while (conductor->waiting_commands.count > 0)
    {
        asi_waiting_command_close(conductor, conductor->waiting_commands.items[0]);
    }
    asi_list_close(&conductor->waiting_commands);
}

/* -- deletion ------------------------------------------------------------------------------------------------------------ */

void asi_log_file_delete(asi_conductor *conductor, asi_log *log, const char *path)
{
    if (NULL == log->map.base)
    {
        return;
    }
    asi_conductor_count(conductor, ASI_SYSTEM_BYTES_CURRENTLY_MAPPED, -log->map.length);
    if (0 != unlink(path) && ENOENT != errno)
    {
        asi_conductor_count(conductor, ASI_SYSTEM_FAILED_LOG_BUFFER_FREES, 1);
        asi_conductor_log_failure(conductor, asi_fail_errno(AS_E_STORAGE, errno, "cannot delete log buffer %s", path));
    }
    /* A driver without threads of its own starts none for this. */
    if (log->map.length > QUICKLY_UNMAPPED_MAX_LENGTH && ASI_THREADING_INVOKER != conductor->settings->threading_mode)
    {
        asi_map_close_by_thread(&log->map);
    }
    asi_log_close(log);
}

/* Spec: 02 §2.1. */
void asi_log_file_describe(const asi_conductor *conductor, asi_log *log, const asi_ctl_publication_identity *identity,
    const asi_ctl_publication_params *params)
{
    asi_log_metadata *metadata = log->metadata;
    metadata->correlation_id = identity->registration_id;
    metadata->initial_term_id = params->initial_term_id;
    metadata->default_header_length = AS_FRAME_HEADER_LENGTH;
    metadata->mtu_length = params->mtu_length;
    metadata->publication_window_length = params->window_length;
    metadata->os_default_socket_sndbuf_length = conductor->network.limits.default_sndbuf_length;
    metadata->os_default_socket_rcvbuf_length = conductor->network.limits.default_rcvbuf_length;
    metadata->max_resend = params->max_resend;
    metadata->entity_tag = params->entity_tag;
    metadata->response_correlation_id = params->response_correlation_id;
    metadata->linger_timeout_ns = params->linger_timeout_ns;
    metadata->untethered_window_limit_timeout_ns = params->untethered.window_limit_ns;
    metadata->untethered_linger_timeout_ns = params->untethered.linger_ns;
    metadata->untethered_resting_timeout_ns = params->untethered.resting_ns;
    metadata->is_response = params->is_response;
    metadata->sparse = params->is_sparse;
    metadata->signal_eos = params->signal_eos;
    metadata->spies_simulate_connection = params->spies_simulate_connection;
    metadata->type = identity->is_exclusive ? ASI_LOG_EXCLUSIVE_PUBLICATION : ASI_LOG_CONCURRENT_PUBLICATION;
    asi_log_init_tails(log, params->initial_term_id, params->term_id, params->term_offset);
    asi_log_init_default_header(log, identity->session_id, identity->stream_id, params->initial_term_id);
    asi_store_release_i64(&metadata->end_of_stream_position, INT64_MAX);
}

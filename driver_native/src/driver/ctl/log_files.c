/* See log_files.h. */
#include "driver/ctl/log_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "driver/ctl/channel.h"
#include "wire/command.h"

static as_result check_storage(asi_conductor *conductor, int64_t log_length)
{
    const asi_driver_settings *settings = conductor->settings;
    if (!settings->perform_storage_checks)
    {
        return AS_OK;
    }
    const int64_t usable = asi_usable_space(settings->aeron_dir);
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

as_result asi_log_file_create(asi_conductor *conductor, const asi_log_file_request *request, asi_log *log, char **path)
{
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
        result = asi_log_create(log, text, request->term_length, page_size, request->is_sparse);
    }
    if (AS_OK == result)
    {
        asi_conductor_count(conductor, ASI_SYSTEM_BYTES_CURRENTLY_MAPPED, log->map.length);
    }
    return result;
}

void asi_log_file_delete(asi_conductor *conductor, asi_log *log, const char *path)
{
    if (NULL == log->map.base)
    {
        return;
    }
    asi_conductor_count(conductor, ASI_SYSTEM_BYTES_CURRENTLY_MAPPED, -log->map.length);
    asi_log_close(log);
    if (0 != unlink(path) && ENOENT != errno)
    {
        asi_conductor_count(conductor, ASI_SYSTEM_FAILED_LOG_BUFFER_FREES, 1);
        asi_conductor_log_failure(conductor, asi_fail_errno(AS_E_STORAGE, errno, "cannot delete log buffer %s", path));
    }
}

/* Spec: 02 §2.1. */
void asi_log_file_describe(const asi_conductor *conductor, asi_log *log, const asi_publication_identity *identity,
    const asi_publication_params *params)
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

/* See params.h. One function per group of parameters. */
#include "driver/ctl/params.h"

#include <inttypes.h>

#include "driver/tx/retransmit.h"

static bool parse_tag(const char *text, int64_t *tag)
{
    char *end = NULL;
    errno = 0;
    *tag = strtoll(text, &end, 10);
    return end != text && '\0' == *end && 0 == errno;
}

static as_result read_entity_tag(const asi_uri *uri, asi_ctl_publication_params *params)
{
    const char *tags = asi_uri_get(uri, "tags");
    const char *comma = NULL == tags ? NULL : strchr(tags, ',');
    params->entity_tag = AS_NULL_VALUE;
    return NULL == comma || '\0' == comma[1] || parse_tag(comma + 1, &params->entity_tag) ? AS_OK :
        asi_fail(AS_E_USAGE, EINVAL, "Entity tag invalid: %s", comma + 1);
}

static as_result read_session_id(const asi_conductor *conductor, const asi_uri *uri, bool is_network, asi_find_tagged find_tagged,
    asi_ctl_publication_params *params)
{
    static const char prefix[] = "tag:";
    const char *text = asi_uri_get(uri, "session-id");
    params->has_session_id = NULL != text;
    if (NULL == text || 0 != strncmp(text, prefix, sizeof(prefix) - 1))
    {
        return asi_uri_get_i32(uri, "session-id", 0, &params->session_id);
    }
    int64_t tag;
    if (!parse_tag(text + sizeof(prefix) - 1, &tag))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "could not parse session-id=%s as int64_t in URI", text);
    }
    const asi_ctl_publication_params *tagged = find_tagged(conductor, tag, &params->session_id);
    if (NULL == tagged)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "session-id=%s must reference %s publication", text,
            is_network ? "a network" : "an IPC");
    }
    params->mtu_length = tagged->mtu_length;
    params->term_length = tagged->term_length;
    return AS_OK;
}

as_result asi_check_term_length(int64_t length)
{
    if (length < AS_TERM_MIN_LENGTH)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "term length less than min length of %d: length=%" PRId64, AS_TERM_MIN_LENGTH, length);
    }
    if (length > AS_TERM_MAX_LENGTH)
    {
        return asi_fail(
            AS_E_USAGE, EINVAL, "term length greater than max length of %d: length=%" PRId64, AS_TERM_MAX_LENGTH, length);
    }
    return asi_is_power_of_two(length) ? AS_OK :
        asi_fail(AS_E_USAGE, EINVAL, "term length not a power of 2: length=%" PRId64, length);
}

as_result asi_check_mtu_length(int64_t length)
{
    if (length <= AS_FRAME_HEADER_LENGTH || length > AS_MAX_UDP_PAYLOAD_LENGTH)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "mtuLength must be a > HEADER_LENGTH and <= MAX_UDP_PAYLOAD_LENGTH: mtuLength=%"
            PRId64 ": %d < mtu <= %d", length, AS_FRAME_HEADER_LENGTH, AS_MAX_UDP_PAYLOAD_LENGTH);
    }
    return 0 == length % AS_FRAME_ALIGNMENT ? AS_OK : asi_fail(AS_E_USAGE, EINVAL,
        "mtuLength must be a multiple of FRAME_ALIGNMENT: mtuLength=%" PRId64 ": a multiple of %d", length, AS_FRAME_ALIGNMENT);
}

static as_result read_lengths(
    const asi_conductor *conductor, const asi_uri *uri, bool is_network, asi_ctl_publication_params *params)
{
    int64_t term_length;
    int64_t mtu_length;
    int64_t window_length;
    as_result result = asi_uri_get_size(uri, "term-length", params->term_length, &term_length);
    if (AS_OK == result)
    {
        result = asi_uri_get_size(uri, "mtu", params->mtu_length, &mtu_length);
    }
    if (AS_OK == result)
    {
        result = asi_uri_get_size(uri, "pub-wnd", -1, &window_length);
    }
    if (AS_OK != result)
    {
        return result;
    }
    params->has_term_length = NULL != asi_uri_get(uri, "term-length");
    params->has_mtu_length = NULL != asi_uri_get(uri, "mtu");
    result = asi_check_term_length(term_length);
    result = AS_OK == result ? asi_check_mtu_length(mtu_length) : result;
    if (AS_OK != result)
    {
        return result;
    }
    params->term_length = (int32_t)term_length;
    params->mtu_length = (int32_t)mtu_length;
    const int64_t half = term_length / 2;
    if (NULL != asi_uri_get(uri, "pub-wnd"))
    {
        if (window_length < mtu_length)
        {
            return asi_fail(AS_E_USAGE, EINVAL, "pub-wnd=%" PRId64 " cannot be less than the mtu=%" PRId64, window_length,
                mtu_length);
        }
        if (window_length > half)
        {
            return asi_fail(AS_E_USAGE, EINVAL, "pub-wnd=%" PRId64 " must not exceed half the term-length=%" PRId64,
                window_length, term_length);
        }
    }
    else
    {
        const int64_t configured = is_network ? conductor->settings->publication_window_length :
            conductor->settings->ipc_publication_window_length;
        window_length = 0 != configured && configured < half ? configured : half;
    }
    params->window_length = (int32_t)window_length;
    return AS_OK;
}

static as_result read_position(const asi_uri *uri, asi_ctl_publication_params *params)
{
    const bool has_initial = NULL != asi_uri_get(uri, "init-term-id");
    const bool has_term = NULL != asi_uri_get(uri, "term-id");
    const bool has_offset = NULL != asi_uri_get(uri, "term-offset");
    if (has_initial != has_term || has_term != has_offset)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "params: init-term-id term-id term-offset must be used as a complete set");
    }
    params->has_position = has_initial;
    int64_t offset;
    as_result result = asi_uri_get_i32(uri, "init-term-id", 0, &params->initial_term_id);
    if (AS_OK == result)
    {
        result = asi_uri_get_i32(uri, "term-id", 0, &params->term_id);
    }
    if (AS_OK == result)
    {
        result = asi_uri_get_i64(uri, "term-offset", 0, &offset);
    }
    if (AS_OK != result)
    {
        return result;
    }
    if (asi_wrap_sub(params->term_id, params->initial_term_id) < 0)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "Param difference greater than 2^31 - 1: init-term-id=%d term-id=%d",
            params->initial_term_id, params->term_id);
    }
    if (offset < 0 || offset > params->term_length)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "Param term-offset=%" PRId64 " > term-length=%d", offset, params->term_length);
    }
    if (0 != offset % AS_FRAME_ALIGNMENT)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "Param term-offset=%" PRId64 " must be multiple of FRAME_ALIGNMENT", offset);
    }
    params->term_offset = (int32_t)offset;
    return AS_OK;
}

static as_result read_response(const asi_uri *uri, asi_ctl_publication_params *params)
{
    const char *mode = asi_uri_get(uri, "control-mode");
    const char *id = asi_uri_get(uri, "response-correlation-id");
    params->is_response = NULL != mode && 0 == strcmp(mode, "response");
    params->response_correlation_id = ASI_RESPONSE_PROTOTYPE;
    if (NULL != id && 0 == strcmp(id, "prototype"))
    {
        return AS_OK;
    }
    const as_result result =
        asi_uri_get_i64(uri, "response-correlation-id", AS_NULL_VALUE, &params->response_correlation_id);
    return AS_OK == result && params->response_correlation_id >= AS_NULL_VALUE ? AS_OK : asi_fail(AS_E_USAGE, EINVAL,
        "invalid response-correlation-id, must be a number greater than or equal to -1, or 'prototype': "
        "response-correlation-id=%s", id);
}

static as_result read_flags(const asi_conductor *conductor, const asi_uri *uri, asi_ctl_publication_params *params)
{
    const asi_driver_settings *settings = conductor->settings;
    int64_t max_resend = 0;
    as_result result = asi_uri_get_bool(uri, "sparse", settings->term_buffer_sparse_file, &params->is_sparse);
    if (AS_OK == result)
    {
        result = asi_uri_get_bool(uri, "eos", true, &params->signal_eos);
    }
    if (AS_OK == result)
    {
        result = asi_uri_get_bool(uri, "ssc", settings->spies_simulate_connection, &params->spies_simulate_connection);
    }
    if (AS_OK == result)
    {
        result = asi_uri_get_bool(uri, "setup-backoff", false, &params->backs_off_setups);
    }
    if (AS_OK == result)
    {
        result = asi_uri_get_size(uri, "max-resend", 0, &max_resend);
    }
    if (AS_OK == result && NULL != asi_uri_get(uri, "max-resend") && (max_resend <= 0 || max_resend > ASI_MAX_RESEND_LIMIT))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "invalid max-resend=%" PRId64 ", must be > 0 and <= %d", max_resend,
            ASI_MAX_RESEND_LIMIT);
    }
    params->max_resend = (int32_t)max_resend;
    return result;
}

as_result asi_untethered_timeouts_read(
    const asi_conductor *conductor, const asi_uri *uri, asi_untethered_timeouts *timeouts)
{
    const asi_driver_settings *settings = conductor->settings;
    as_result result = asi_uri_get_duration_ns(uri, "untethered-window-limit-timeout",
        settings->untethered_window_limit_timeout_ns, &timeouts->window_limit_ns);
    if (AS_OK == result)
    {
        result = asi_uri_get_duration_ns(
            uri, "untethered-linger-timeout", settings->untethered_linger_timeout_ns, &timeouts->linger_ns);
    }
    if (AS_OK == result)
    {
        result = asi_uri_get_duration_ns(
            uri, "untethered-resting-timeout", settings->untethered_resting_timeout_ns, &timeouts->resting_ns);
    }
    if (AS_OK == result && timeouts->linger_ns <= 0)
    {
        timeouts->linger_ns = timeouts->window_limit_ns;
    }
    return result;
}

as_result asi_ctl_publication_params_read(const asi_conductor *conductor, const asi_uri *uri, bool is_network,
    asi_find_tagged find_tagged, asi_ctl_publication_params *params)
{
    const asi_driver_settings *settings = conductor->settings;
    *params = (asi_ctl_publication_params){
        .term_length = (int32_t)(is_network ? settings->term_buffer_length : settings->ipc_term_buffer_length),
        .mtu_length = (int32_t)(is_network ? settings->mtu_length : settings->ipc_mtu_length)
    };
    as_result result = read_entity_tag(uri, params);
    if (AS_OK == result)
    {
        result = read_session_id(conductor, uri, is_network, find_tagged, params); /* tag sets lengths; channel may override */
    }
    if (AS_OK == result)
    {
        result = read_lengths(conductor, uri, is_network, params);
    }
    if (AS_OK == result)
    {
        result = read_position(uri, params);
    }
    if (AS_OK == result)
    {
        result = read_flags(conductor, uri, params);
    }
    if (AS_OK == result)
    {
        result = read_response(uri, params);
    }
    if (AS_OK == result)
    {
        result = asi_uri_get_duration_ns(uri, "linger", settings->publication_linger_timeout_ns, &params->linger_timeout_ns);
    }
    return AS_OK == result ? asi_untethered_timeouts_read(conductor, uri, &params->untethered) : result;
}

static as_result check_same(const char *param, bool is_given, int64_t existing, int64_t requested)
{
    return !is_given || existing == requested ? AS_OK :
        asi_fail(AS_E_USAGE, EINVAL, "existing publication has different '%s': existing=%" PRId64 " requested=%" PRId64, param,
            existing, requested);
}

as_result asi_ctl_publication_params_check_same(
    const asi_ctl_publication_params *existing, int32_t existing_session_id, const asi_ctl_publication_params *requested)
{
    const struct { const char *param; bool is_given; int64_t existing; int64_t requested; } rows[] = {
        { "session-id", requested->has_session_id, existing_session_id, requested->session_id },
        { "mtu", requested->has_mtu_length, existing->mtu_length, requested->mtu_length },
        { "term-length", requested->has_term_length, existing->term_length, requested->term_length },
        { "init-term-id", requested->has_position, existing->initial_term_id, requested->initial_term_id },
        { "term-id", requested->has_position, existing->term_id, requested->term_id },
        { "term-offset", requested->has_position, existing->term_offset, requested->term_offset },
    };
    as_result result = AS_OK;
    for (size_t i = 0; AS_OK == result && i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        result = check_same(rows[i].param, rows[i].is_given, rows[i].existing, rows[i].requested);
    }
    return result;
}

/* Terminates, because there are fewer publications than session ids. */
int32_t asi_session_id_next(asi_conductor *conductor,
    bool (*is_used)(const asi_conductor *conductor, int32_t session_id, const void *context), const void *context)
{
    const int64_t low = conductor->settings->reserved_session_id_low;
    const int64_t high = conductor->settings->reserved_session_id_high;
    int32_t candidate = conductor->next_session_id;
    for (;;)
    {
        if (low <= candidate && candidate <= high)
        {
            candidate = asi_wrap_add((int32_t)high, 1);
        }
        if (!is_used(conductor, candidate, context))
        {
            conductor->next_session_id = asi_wrap_add(candidate, 1);
            return candidate;
        }
        candidate = asi_wrap_add(candidate, 1);
    }
}

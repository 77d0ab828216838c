/* See flow.h. */
#include "driver/tx/flow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/idle.h"

#define OPTION_CAPACITY 64

/* -- parameters, Spec: 04 §6.1-6.2, 05 §6 --------------------------------------------------------------------------------- */

static as_result read_supplier(const char *name, asi_flow_kind *kind)
{
    static const struct { const char *name; asi_flow_kind kind; } NAMES[] = {
        { "unicast_max", ASI_FLOW_MAX }, { "aeron_unicast_flow_control_strategy_supplier", ASI_FLOW_MAX },
        { "io.aeron.driver.DefaultUnicastFlowControlSupplier", ASI_FLOW_MAX },
        { "multicast_max", ASI_FLOW_MAX }, { "aeron_max_multicast_flow_control_strategy_supplier", ASI_FLOW_MAX },
        { "io.aeron.driver.DefaultMulticastFlowControlSupplier", ASI_FLOW_MAX },
        { "io.aeron.driver.MaxMulticastFlowControlSupplier", ASI_FLOW_MAX },
        { "multicast_min", ASI_FLOW_MIN }, { "aeron_min_flow_control_strategy_supplier", ASI_FLOW_MIN },
        { "io.aeron.driver.MinMulticastFlowControlSupplier", ASI_FLOW_MIN },
        { "multicast_tagged", ASI_FLOW_TAGGED }, { "aeron_tagged_flow_control_strategy_supplier", ASI_FLOW_TAGGED },
        { "io.aeron.driver.TaggedMulticastFlowControlSupplier", ASI_FLOW_TAGGED }
    };
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
    {
        if (0 == strcmp(name, NAMES[i].name))
        {
            *kind = NAMES[i].kind;
            return AS_OK;
        }
    }
    return asi_fail(AS_E_USAGE, EINVAL, "flow control supplier '%s' is none of unicast_max, multicast_max, multicast_min and "
        "multicast_tagged", name);
}

static as_result fail_option(const char *fc, const char *option, const char *what)
{
    return asi_fail(AS_E_USAGE, EINVAL, "%s, field: %s, options: %s", what, option, fc);
}

static bool parse_whole(const char *text, int64_t min, int64_t max, int64_t *value)
{
    char *end = NULL;
    errno = 0;
    const int64_t parsed = strtoll(text, &end, 10);
    if (end == text || '\0' != *end || 0 != errno || parsed < min || parsed > max)
    {
        return false;
    }
    *value = parsed;
    return true;
}

/* "[tag][/minSize]", not empty. */
static as_result read_group(const char *fc, const char *option, asi_flow_params *params)
{
    char tag[OPTION_CAPACITY];
    const char *text = option + strlen("g:");
    const char *slash = strchr(text, '/');
    if (NULL != slash && !parse_whole(slash + 1, 0, INT32_MAX, &params->min_group_size))
    {
        return fail_option(fc, option, "Group count invalid");
    }
    const size_t length = NULL == slash ? strlen(text) : (size_t)(slash - text);
    memcpy(tag, text, length);
    tag[length] = '\0';
    return 0 == length || parse_whole(tag, INT64_MIN, INT64_MAX, &params->group_tag) ? AS_OK :
        fail_option(fc, option, "Group tag invalid");
}

static bool is_option(const char *option, const char *name) { return 0 == strncmp(option, name, strlen(name)); }

static as_result read_option(const char *fc, const char *option, bool only_rrwm, asi_flow_params *params)
{
    const char *value = strchr(option, ':');
    if (is_option(option, "rrwm:"))
    {
        return parse_whole(value + 1, 1, INT32_MAX, &params->rrwm) ? AS_OK :
            fail_option(fc, option, "Flow control options - invalid flow control retransmit receiver window multiple");
    }
    if (only_rrwm || NULL == value || '\0' == value[1] || (!is_option(option, "g:") && !is_option(option, "t:")))
    {
        return fail_option(fc, option, "Flow control options - unrecognised option");
    }
    if (is_option(option, "g:"))
    {
        return read_group(fc, option, params);
    }
    return AS_OK == asi_parse_duration_ns(value + 1, &params->receiver_timeout_ns) ? AS_OK :
        fail_option(fc, option, "Flow control options - invalid timeout");
}

/* Removes the text up to the next comma from `*rest`; false when nothing is left. */
static bool next_token(const char **rest, char *token)
{
    if (NULL == *rest)
    {
        return false;
    }
    const char *comma = strchr(*rest, ',');
    const size_t length = NULL == comma ? strlen(*rest) : (size_t)(comma - *rest);
    const size_t copied = length < OPTION_CAPACITY ? length : OPTION_CAPACITY - 1;
    memcpy(token, *rest, copied);
    token[copied] = '\0';
    *rest = NULL == comma ? NULL : comma + 1;
    return true;
}

static as_result read_strategy(const char *name, const char *channel, asi_flow_kind *kind)
{
    if ('\0' == name[0])
    {
        return asi_fail(AS_E_USAGE, EINVAL, "No flow control strategy name specified, URI: %s: choose max, min or tagged", channel);
    }
    *kind = 0 == strcmp(name, "min") ? ASI_FLOW_MIN : 0 == strcmp(name, "tagged") ? ASI_FLOW_TAGGED : ASI_FLOW_MAX;
    return ASI_FLOW_MAX != *kind || 0 == strcmp(name, "max") ? AS_OK :
        asi_fail(AS_E_USAGE, EINVAL, "Invalid flow control strategy name: %s from URI: %s: choose max, min or tagged", name,
            channel);
}

as_result asi_flow_params_read(const asi_driver_settings *settings, const asi_uri *uri, const char *channel, bool is_group,
    asi_flow_params *params)
{
    *params = (asi_flow_params){
        .group_tag = settings->flow_control_group_tag,
        .min_group_size = settings->flow_control_group_min_size,
        .receiver_timeout_ns = settings->flow_control_receiver_timeout_ns,
        .rrwm = is_group ? settings->multicast_rrwm : settings->unicast_rrwm
    };
    as_result result =
        read_supplier(is_group ? settings->multicast_flow_control : settings->unicast_flow_control, &params->kind);
    const char *fc = asi_uri_get(uri, "fc");
    char token[OPTION_CAPACITY];
    const char *rest = fc;
    if (AS_OK != result || !next_token(&rest, token))
    {
        return result;
    }
    /* Spec: 04 §6.1, §23 row 23 - for a unicast channel only the rrwm of `fc` applies; the rest is ignored. */
    result = is_group ? read_strategy(token, channel, &params->kind) : AS_OK;
    while (AS_OK == result && next_token(&rest, token))
    {
        const bool is_end = NULL == rest && '\0' == token[0]; /* "min,": stock drivers accept the comma */
        if (!is_end && (is_group || 0 == strncmp(token, "rrwm:", 5)))
        {
            result = read_option(fc, token, ASI_FLOW_MAX == params->kind, params);
        }
    }
    return result;
}

/* -- used by the sender ---------------------------------------------------------------------------------------------------- */

as_result asi_flow_open(asi_flow *flow, const asi_flow_params *params, int64_t *receivers_counter)
{
    *flow = (asi_flow){ .params = *params, .receivers_counter = receivers_counter };
    if (ASI_FLOW_MAX == params->kind)
    {
        return AS_OK;
    }
    flow->receiver_capacity = 16;
    flow->receivers = calloc((size_t)flow->receiver_capacity, sizeof(*flow->receivers));
    return NULL != flow->receivers ? AS_OK : asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for receivers of flow control");
}

void asi_flow_close(asi_flow *flow)
{
    free(flow->receivers);
    flow->receivers = NULL;
}

static bool is_in_group(const asi_flow *flow, bool has_group_tag, int64_t group_tag)
{
    return ASI_FLOW_TAGGED != flow->params.kind || (has_group_tag && group_tag == flow->params.group_tag);
}

static void show_count(const asi_flow *flow)
{
    if (NULL != flow->receivers_counter)
    {
        asi_store_release_i64(flow->receivers_counter, flow->receiver_count);
    }
}

static void log_receiver(const asi_flow *flow, asi_event event, int64_t receiver_id)
{
    asi_events_log(flow->events, event, "sessionId=%d streamId=%d receiverId=%" PRId64 " receiverCount=%d", flow->session_id,
        flow->stream_id, receiver_id, flow->receiver_count);
}

static bool reserve(asi_flow *flow)
{
    if (flow->receiver_count < flow->receiver_capacity)
    {
        return true;
    }
    if (flow->receiver_capacity >= ASI_FLOW_RECEIVERS_CAPACITY)
    {
        return false;
    }
    const int32_t capacity = flow->receiver_capacity * 2;
    asi_flow_receiver *receivers = realloc(flow->receivers, (size_t)capacity * sizeof(*receivers));
    if (NULL == receivers)
    {
        return false;
    }
    flow->receivers = receivers;
    flow->receiver_capacity = capacity;
    return true;
}

static int64_t held_limit(asi_flow *flow, int64_t now_ns)
{
    if (flow->is_limit_held && now_ns - flow->held_since_ns > flow->params.receiver_timeout_ns)
    {
        flow->is_limit_held = false;
    }
    return flow->is_limit_held ? flow->held_limit : INT64_MAX;
}

static int64_t limit_for(const asi_flow *flow, int64_t sender_limit, int64_t min_limit, int64_t alone)
{
    if (flow->receiver_count < flow->params.min_group_size)
    {
        return sender_limit;
    }
    const int64_t limit = 0 == flow->receiver_count ? alone : min_limit;
    return limit > sender_limit ? limit : sender_limit;
}

int64_t asi_flow_on_status(asi_flow *flow, const asi_flow_status *status, int64_t sender_limit, int64_t now_ns)
{
    const int64_t status_limit = status->position + status->window_length;
    if (ASI_FLOW_MAX == flow->params.kind)
    {
        return status_limit > sender_limit ? status_limit : sender_limit;
    }
    const bool matches = is_in_group(flow, status->has_group_tag, status->group_tag);
    int64_t min_limit = held_limit(flow, now_ns);
    bool is_known = false;
    for (int32_t i = 0; i < flow->receiver_count; i++)
    {
        asi_flow_receiver *receiver = &flow->receivers[i];
        if (matches && receiver->receiver_id == status->receiver_id)
        {
            is_known = true;
            receiver->is_ended = status->is_end_of_stream;
            receiver->position = status->position > receiver->position ? status->position : receiver->position;
            receiver->limit = status_limit;
            receiver->last_status_ns = now_ns;
        }
        min_limit = receiver->limit < min_limit ? receiver->limit : min_limit;
    }
    /* Spec: 04 §6.4 - a new receiver more than a window behind the slowest one does not join. */
    if (!is_known && !status->is_end_of_stream && matches &&
        (0 == flow->receiver_count || status_limit >= min_limit - status->window_length) && reserve(flow))
    {
        flow->receivers[flow->receiver_count++] = (asi_flow_receiver){ .receiver_id = status->receiver_id,
            .position = status->position, .limit = status_limit, .last_status_ns = now_ns };
        min_limit = status_limit < min_limit ? status_limit : min_limit;
        flow->is_limit_held = false;
        show_count(flow);
        log_receiver(flow, ASI_EVENT_FLOW_CONTROL_RECEIVER_ADDED, status->receiver_id);
    }
    return limit_for(flow, sender_limit, min_limit, status_limit);
}

int64_t asi_flow_on_idle(asi_flow *flow, int64_t sender_limit, int64_t now_ns)
{
    if (ASI_FLOW_MAX == flow->params.kind)
    {
        return sender_limit;
    }
    const int32_t count_before = flow->receiver_count;
    int64_t min_limit = held_limit(flow, now_ns);
    for (int32_t i = flow->receiver_count - 1; i >= 0; i--)
    {
        const asi_flow_receiver receiver = flow->receivers[i];
        if (receiver.is_ended || now_ns - receiver.last_status_ns > flow->params.receiver_timeout_ns)
        {
            flow->receivers[i] = flow->receivers[--flow->receiver_count];
            log_receiver(flow, ASI_EVENT_FLOW_CONTROL_RECEIVER_REMOVED, receiver.receiver_id);
        }
    }
    for (int32_t i = 0; i < flow->receiver_count; i++)
    {
        min_limit = flow->receivers[i].limit < min_limit ? flow->receivers[i].limit : min_limit;
    }
    if (count_before != flow->receiver_count)
    {
        show_count(flow);
    }
    /* Spec: 04 §6.5 - not the greater of both: the limit moves back with the slowest receiver. */
    return 0 == flow->receiver_count || flow->receiver_count < flow->params.min_group_size ? sender_limit : min_limit;
}

void asi_flow_on_setup_request(asi_flow *flow, const asi_flow_status *status)
{
    if (ASI_FLOW_MAX != flow->params.kind && is_in_group(flow, status->has_group_tag, status->group_tag))
    {
        flow->has_setup_request = true;
    }
}

/* Spec: 04 §6.6 - otherwise the limit would move on while a joining receiver creates its image. */
void asi_flow_on_setup(asi_flow *flow, int64_t sender_limit, int64_t now_ns)
{
    if (flow->has_setup_request && flow->receiver_count > 0)
    {
        flow->is_limit_held = true;
        flow->held_limit = sender_limit;
        flow->held_since_ns = now_ns;
    }
    flow->has_setup_request = false;
}

void asi_flow_on_error(asi_flow *flow, int64_t receiver_id, bool has_group_tag, int64_t group_tag)
{
    for (int32_t i = 0; i < flow->receiver_count; i++)
    {
        if (receiver_id == flow->receivers[i].receiver_id && is_in_group(flow, has_group_tag, group_tag))
        {
            flow->receivers[i].is_ended = true;
        }
    }
}

bool asi_flow_has_required_receivers(const asi_flow *flow)
{
    return ASI_FLOW_MAX == flow->params.kind || flow->receiver_count >= flow->params.min_group_size;
}

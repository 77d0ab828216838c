/* UDP channels; see udp_channel.h. Error codes and the main texts are the stock C driver's. */
#include "driver/net/udp_channel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/net/interfaces.h"
#include "wire/command.h"

#define MAX_INTERFACES 256
#define MAX_KEY_LENGTH 16 /* that is taken for a misspelt one */
#define MAX_TTL 255

static as_result fail_channel(const char *text) { return asi_fail(AS_E_USAGE, ASI_ERR_INVALID_CHANNEL, "%s", text); }

static asi_control_mode control_mode_of(const char *text)
{
    static const struct
    {
        const char *text;
        asi_control_mode mode;
    } modes[] = {
        { "dynamic", ASI_CONTROL_MODE_DYNAMIC },
        { "manual", ASI_CONTROL_MODE_MANUAL },
        { "response", ASI_CONTROL_MODE_RESPONSE },
    };
    for (size_t i = 0; NULL != text && i < sizeof(modes) / sizeof(modes[0]); i++)
    {
        if (0 == strcmp(text, modes[i].text))
        {
            return modes[i].mode;
        }
    }
    return ASI_CONTROL_MODE_NONE; /* Spec: 04 §3.3 - unknown ones too */
}

/* "<channel tag>[,<entity tag>]", either side may be empty; the entity tag is the publication's affair. */
static as_result read_tag(asi_udp_channel *channel)
{
    const char *tags = asi_uri_get(&channel->uri, "tags");
    if (NULL == tags || ',' == tags[0])
    {
        return AS_OK;
    }
    char *end;
    errno = 0;
    const long long value = strtoll(tags, &end, 10);
    if (0 != errno || end == tags || ('\0' != *end && ',' != *end) || -1 == value) /* -1 stands for "no tag" */
    {
        return asi_fail(AS_E_USAGE, ASI_ERR_INVALID_CHANNEL, "could not parse channel tag string: %s", tags);
    }
    channel->has_tag = true;
    channel->tag = value;
    return AS_OK;
}

static as_result read_timestamp_offset(const asi_uri *uri, const char *key, int32_t *offset)
{
    const char *text = asi_uri_get(uri, key);
    if (NULL != text && 0 == strcmp(text, "reserved"))
    {
        *offset = ASI_TIMESTAMP_RESERVED;
        return AS_OK;
    }
    if (AS_OK != asi_uri_get_i32(uri, key, ASI_TIMESTAMP_OFF, offset))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "Invalid %s: %s, it must be a number or 'reserved'", key, text);
    }
    if (*offset < 0 && ASI_TIMESTAMP_RESERVED != *offset)
    {
        *offset = ASI_TIMESTAMP_OFF; /* Spec: 05 §3 - other negative ones switch it off */
    }
    return AS_OK;
}

static as_result read_timestamp_offsets(asi_udp_channel *channel)
{
    static const char *const keys[] = { "media-rcv-ts-offset", "channel-rcv-ts-offset", "channel-snd-ts-offset" };
    int32_t *offsets[] = { &channel->media_receive_timestamp_offset, &channel->channel_receive_timestamp_offset,
        &channel->channel_send_timestamp_offset };
    for (int i = 0; i < 3; i++)
    {
        const as_result result = read_timestamp_offset(&channel->uri, keys[i], offsets[i]);
        if (AS_OK != result)
        {
            return result;
        }
        for (int k = 0; k < i; k++)
        {
            if (ASI_TIMESTAMP_OFF != *offsets[i] && ASI_TIMESTAMP_OFF != *offsets[k] &&
                llabs((long long)*offsets[i] - *offsets[k]) < (long long)sizeof(int64_t))
            {
                return asi_fail(AS_E_USAGE, EINVAL, "%s and %s overlap", keys[k], keys[i]);
            }
        }
    }
    return AS_OK;
}

static as_result read_length(const asi_uri *uri, const char *key, int64_t *length)
{
    const as_result result = asi_uri_get_size(uri, key, 0, length);
    return AS_OK == result && *length > INT32_MAX ?
        asi_fail(AS_E_USAGE, EINVAL, "%s=%s is more than %d bytes", key, asi_uri_get(uri, key), INT32_MAX) : result;
}

static as_result read_options(asi_udp_channel *channel)
{
    const asi_uri *uri = &channel->uri;
    if (AS_OK != asi_uri_get_i32(uri, "ttl", 0, &channel->ttl)) /* the stock drivers ignore what is no number */
    {
        channel->ttl = 0;
    }
    channel->ttl = channel->ttl > MAX_TTL ? MAX_TTL : channel->ttl < 0 ? 0 : channel->ttl;
    const char *group = asi_uri_get(uri, "group");
    channel->group = NULL == group || 0 == strcmp(group, "infer") ? ASI_GROUP_INFER :
        0 == strcmp(group, "true") ? ASI_GROUP_TRUE : ASI_GROUP_FALSE;
    channel->has_group_tag = NULL != asi_uri_get(uri, "gtag");
    as_result result = asi_uri_get_i64(uri, "gtag", 0, &channel->group_tag);
    result = AS_OK == result ? read_length(uri, "so-sndbuf", &channel->sndbuf_length) : result;
    result = AS_OK == result ? read_length(uri, "so-rcvbuf", &channel->rcvbuf_length) : result;
    result = AS_OK == result ? read_length(uri, "rcv-wnd", &channel->receiver_window_length) : result;
    result = AS_OK == result ? asi_uri_get_duration_ns(uri, "nak-delay", -1, &channel->nak_delay_ns) : result;
    return AS_OK == result ? read_timestamp_offsets(channel) : result;
}

/* Sets `local` from an interface of this machine. */
static as_result find_interface(asi_udp_channel *channel, const asi_udp_ops *ops, const char *text)
{
    asi_interface interfaces[MAX_INTERFACES];
    asi_interface_search search;
    int32_t count;
    as_result result = asi_interface_search_parse(text, channel->remote_data.any.sa_family, &search);
    if (AS_OK != result)
    {
        return result;
    }
    if (!channel->is_multicast && '\0' == search.name[0] && asi_address_is_any(&search.address))
    {
        channel->local = search.address;
        return AS_OK;
    }
    result = ops->interfaces(ops->context, interfaces, MAX_INTERFACES, &count);
    if (AS_OK != result)
    {
        return result;
    }
    const int32_t chosen = asi_interface_choose(&search, interfaces, count, channel->is_multicast);
    if (chosen < 0)
    {
        const char *which = channel->is_multicast ? "no interface that is up and takes multicast" : "no interface that is up";
        return '\0' != search.name[0] ?
            asi_fail(AS_E_USAGE, EINVAL, "unknown interface %s: %s has that name, see `ip addr`", search.name, which) :
            asi_fail(AS_E_USAGE, EINVAL, "could not find matching interface='%s': %s has an address of that network, see "
                "`ip addr`", text, which);
    }
    channel->local = interfaces[chosen].address;
    asi_address_set_port(&channel->local, asi_address_port(&search.address));
    channel->interface_index = interfaces[chosen].index;
    return AS_OK;
}

/* Spec: 04 §3.1-3.2, first row: data goes to an odd address, control to the even one above it. */
static as_result derive_multicast(asi_udp_channel *channel, const asi_udp_ops *ops, const char *interface)
{
    channel->is_multicast = true;
    channel->remote_control = channel->remote_data;
    const bool is_v6 = AF_INET6 == channel->remote_data.any.sa_family;
    uint8_t *last = is_v6 ? &channel->remote_control.v6.sin6_addr.s6_addr[15] :
        (uint8_t *)&channel->remote_control.v4.sin_addr.s_addr + 3;
    if (0 == *last % 2)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "Multicast data address must be odd: endpoint=%s, the even "
            "address above it carries status messages", asi_uri_get(&channel->uri, "endpoint"));
    }
    *last = (uint8_t)(*last + 1);
    return find_interface(channel, ops, NULL != interface ? interface : is_v6 ? "[0::]/0" : "0.0.0.0/0");
}

static as_result derive_addresses(asi_udp_channel *channel, const asi_udp_channel_context *context)
{
    const char *endpoint = asi_uri_get(&channel->uri, "endpoint");
    const char *control = asi_uri_get(&channel->uri, "control");
    const char *interface = asi_uri_get(&channel->uri, "interface");
    as_result result;
    channel->has_explicit_endpoint = NULL != endpoint;
    if (NULL != endpoint)
    {
        result = asi_address_resolve(context->resolver, endpoint, "endpoint", false, &channel->remote_data);
        if (AS_OK != result)
        {
            return asi_fail_in(result, "URI: %s", channel->original);
        }
        if (asi_address_is_multicast(&channel->remote_data))
        {
            return derive_multicast(channel, context->ops, interface);
        }
    }
    if (NULL != control)
    {
        result = asi_address_resolve(context->resolver, control, "control", false, &channel->local);
        if (AS_OK != result)
        {
            return result;
        }
        channel->has_explicit_control = true;
    }
    if (NULL == endpoint)
    {
        channel->remote_data = asi_address_any(NULL != control ? channel->local.any.sa_family : AF_INET);
    }
    channel->remote_control = channel->remote_data;
    if (NULL == control && NULL != interface)
    {
        return find_interface(channel, context->ops, interface);
    }
    if (NULL == control)
    {
        channel->local = asi_address_any(channel->remote_data.any.sa_family);
    }
    return AS_OK;
}

/* Spec: 05 §5 - names stay as they are written, so that the form needs no resolving to compare. */
static as_result make_canonical(asi_udp_channel *channel, bool is_destination, int64_t *next_unique_suffix)
{
    const char *endpoint = asi_uri_get(&channel->uri, "endpoint");
    const char *control = asi_uri_get(&channel->uri, "control");
    char local[ASI_ADDRESS_TEXT_CAPACITY];
    char remote[ASI_ADDRESS_TEXT_CAPACITY];
    char suffix[32] = "";
    asi_address_format(&channel->local, local);
    asi_address_format(&channel->remote_data, remote);
    const bool is_unique = (!channel->has_explicit_endpoint && !channel->has_explicit_control) ||
        (channel->has_explicit_endpoint && 0 == asi_address_port(&channel->remote_data)) ||
        (channel->has_explicit_control && 0 == asi_address_port(&channel->local));
    if (is_unique && !is_destination && channel->has_tag)
    {
        snprintf(suffix, sizeof(suffix), "#%" PRId64, channel->tag);
    }
    else if (is_unique && !is_destination)
    {
        snprintf(suffix, sizeof(suffix), "-%" PRId64, (*next_unique_suffix)++);
    }
    const int length = snprintf(channel->canonical, sizeof(channel->canonical), "UDP-%s-%s%s",
        channel->has_explicit_control ? control : local,
        channel->has_explicit_endpoint && !channel->is_multicast ? endpoint : remote, suffix);
    return length < (int)sizeof(channel->canonical) ? AS_OK : fail_channel("endpoint and control are too long");
}

/* How many letters must be put in, left out or changed. */
static size_t distance(const char *a, const char *b)
{
    size_t costs[MAX_KEY_LENGTH + 1];
    const size_t length = strlen(b);
    for (size_t k = 0; k <= length; k++)
    {
        costs[k] = k;
    }
    for (size_t i = 0; '\0' != a[i]; i++)
    {
        size_t diagonal = costs[0];
        costs[0] = i + 1;
        for (size_t k = 0; k < length; k++)
        {
            const size_t changed = diagonal + (a[i] == b[k] ? 0 : 1);
            const size_t moved = (costs[k] < costs[k + 1] ? costs[k] : costs[k + 1]) + 1;
            diagonal = costs[k + 1];
            costs[k + 1] = changed < moved ? changed : moved;
        }
    }
    return costs[length];
}

/* Unknown parameters are taken, as by the stock drivers, so a misspelt one is only seen by what is missing. */
static as_result fail_without_address(const asi_uri *uri)
{
    static const char text[] = "URIs for UDP must specify endpoint, control, tags, or control-mode=manual/response";
    static const char *const KEYS[] = { "endpoint", "control", "tags", "control-mode" };
    for (int32_t i = 0; i < uri->param_count; i++)
    {
        const char *key = uri->params[i].key;
        for (size_t k = 0; k < sizeof(KEYS) / sizeof(KEYS[0]) && strlen(key) <= MAX_KEY_LENGTH; k++)
        {
            const size_t changes = distance(key, KEYS[k]);
            if (changes > 0 && changes <= (strlen(KEYS[k]) + 1) / 4)
            {
                return asi_fail(AS_E_USAGE, ASI_ERR_INVALID_CHANNEL, "%s; %s is none of them, is %s meant?", text, key, KEYS[k]);
            }
        }
    }
    return fail_channel(text);
}

static as_result fill(asi_udp_channel *channel, const asi_udp_channel_context *context, bool is_destination)
{
    const asi_uri *uri = &channel->uri;
    if (ASI_MEDIA_UDP != uri->media)
    {
        return fail_channel("UDP channels must use UDP URIs");
    }
    channel->control_mode = control_mode_of(asi_uri_get(uri, "control-mode"));
    as_result result = read_tag(channel);
    if (AS_OK != result)
    {
        return result;
    }
    if (ASI_CONTROL_MODE_DYNAMIC == channel->control_mode && NULL == asi_uri_get(uri, "control"))
    {
        return fail_channel("explicit control expected with dynamic control mode");
    }
    if (NULL == asi_uri_get(uri, "endpoint") && NULL == asi_uri_get(uri, "control") && !channel->has_tag &&
        ASI_CONTROL_MODE_MANUAL != channel->control_mode && ASI_CONTROL_MODE_RESPONSE != channel->control_mode)
    {
        return fail_without_address(uri);
    }
    result = read_options(channel);
    result = AS_OK == result ? derive_addresses(channel, context) : result;
    return AS_OK == result ? make_canonical(channel, is_destination, context->next_unique_suffix) : result;
}

as_result asi_udp_channel_open_untrusted(const asi_udp_channel_context *context, const char *text, int64_t length,
    bool is_destination, asi_udp_channel **channel)
{
    asi_udp_channel *opened = calloc(1, sizeof(*opened));
    if (NULL == opened)
    {
        return asi_fail(AS_E_INTERNAL, ENOMEM, "no memory for a channel");
    }
    as_result result = asi_uri_parse_untrusted(&opened->uri, text, length);
    if (AS_OK == result)
    {
        memcpy(opened->original, text, (size_t)length);
        result = fill(opened, context, is_destination);
    }
    if (AS_OK != result)
    {
        free(opened);
        return asi_fail_in(result, "failed to parse channel");
    }
    *channel = opened;
    return AS_OK;
}

void asi_udp_channel_close(asi_udp_channel *channel) { free(channel); }

as_result asi_udp_channel_check_publication(const asi_udp_channel *channel)
{
    if (!asi_udp_channel_is_multi_destination(channel) && channel->has_explicit_endpoint &&
        0 == asi_address_port(&channel->remote_data))
    {
        return asi_fail(AS_E_USAGE, EINVAL, "endpoint has port=0 for publication: channel=%s", channel->original);
    }
    if (channel->has_explicit_control && !channel->has_explicit_endpoint &&
        NULL == asi_uri_get(&channel->uri, "control-mode"))
    {
        return asi_fail(AS_E_USAGE, EINVAL,
            "'control' parameter requires that either 'endpoint' or 'control-mode' is specified, channel=%s", channel->original);
    }
    return AS_OK;
}

as_result asi_udp_channel_check_subscription(const asi_udp_channel *channel)
{
    return channel->has_explicit_control && 0 == asi_address_port(&channel->local) ?
        asi_fail(AS_E_USAGE, EINVAL, "control has port=0 for subscription: channel=%s", channel->original) : AS_OK;
}

as_result asi_udp_channel_check_destination_keys_untrusted(const asi_uri *uri, const char *channel)
{
    static const char *const forbidden[] = { "mtu", "rcv-wnd", "so-rcvbuf", "so-sndbuf", "response-correlation-id" };
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
    {
        if (NULL != asi_uri_get(uri, forbidden[i]))
        {
            return asi_fail(AS_E_USAGE, ASI_ERR_INVALID_CHANNEL, "destinations must not contain the key: %s channel=%s",
                forbidden[i], channel);
        }
    }
    return ASI_CONTROL_MODE_RESPONSE == control_mode_of(asi_uri_get(uri, "control-mode")) ?
        fail_channel("destinations may not specify control-mode=response") : AS_OK;
}

as_result asi_udp_channel_check_send_destination_untrusted(const asi_uri *uri, const char *channel)
{
    if (uri->is_spy)
    {
        return asi_fail(
            AS_E_USAGE, ASI_ERR_INVALID_CHANNEL, "Aeron spies are invalid as send destinations: %s", channel);
    }
    const char *endpoint = asi_uri_get(uri, "endpoint");
    if (ASI_MEDIA_UDP != uri->media || NULL == endpoint)
    {
        return asi_fail(
            AS_E_USAGE, EINVAL, "incorrect URI format for destination: %s, it needs udp and an endpoint", channel);
    }
    const as_result result = asi_udp_channel_check_destination_keys_untrusted(uri, channel);
    if (AS_OK != result)
    {
        return result;
    }
    const char *port = strrchr(endpoint, ':');
    return NULL != port && '\0' != port[1] && strspn(port + 1, "0") == strlen(port + 1) ?
        asi_fail(AS_E_USAGE, EINVAL, "endpoint has port=0 for send destination: channel=%s", channel) : AS_OK;
}

bool asi_udp_channel_is_multi_destination(const asi_udp_channel *channel)
{
    return ASI_CONTROL_MODE_DYNAMIC == channel->control_mode || ASI_CONTROL_MODE_MANUAL == channel->control_mode;
}

bool asi_udp_channel_has_group_semantics(const asi_udp_channel *channel)
{
    return channel->is_multicast || asi_udp_channel_is_multi_destination(channel);
}

bool asi_udp_channel_is_wildcard(const asi_udp_channel *channel)
{
    return asi_address_is_any(&channel->remote_data) && 0 == asi_address_port(&channel->remote_data) &&
        asi_address_is_any(&channel->local) && 0 == asi_address_port(&channel->local);
}

static bool is_same_text(const asi_udp_channel *a, const asi_udp_channel *b, const char *key)
{
    const char *of_a = asi_uri_get(&a->uri, key);
    const char *of_b = asi_uri_get(&b->uri, key);
    return NULL == of_a || NULL == of_b ? of_a == of_b : 0 == strcmp(of_a, of_b);
}

/* A name that is asked for again may have another address by now, and another name the same one. */
static bool is_same_place(const asi_udp_channel *a, const asi_udp_channel *b)
{
    return (is_same_text(a, b, "endpoint") || asi_address_equal(&a->remote_data, &b->remote_data)) &&
        ((is_same_text(a, b, "control") && is_same_text(a, b, "interface")) || asi_address_equal(&a->local, &b->local));
}

as_result asi_udp_channel_matches_tag(const asi_udp_channel *existing, const asi_udp_channel *wanted, bool *matches)
{
    *matches = existing->has_tag && wanted->has_tag && existing->tag == wanted->tag;
    if (!*matches)
    {
        return AS_OK;
    }
    if (ASI_CONTROL_MODE_NONE != wanted->control_mode && wanted->control_mode != existing->control_mode)
    {
        return asi_fail(AS_E_USAGE, EINVAL, "matching tag %" PRId64 " has mismatched control-mode: %s <> %s",
            wanted->tag, wanted->original, existing->original);
    }
    return asi_udp_channel_is_wildcard(wanted) || is_same_place(existing, wanted) ? AS_OK : asi_fail(AS_E_USAGE, EINVAL,
        "matching tag %" PRId64 " has mismatched endpoint or control: %s <> %s", wanted->tag, wanted->original,
        existing->original);
}

bool asi_udp_channel_matches_canonical(const asi_udp_channel *existing, const asi_udp_channel *wanted)
{
    return !(existing->has_tag && wanted->has_tag && existing->tag != wanted->tag) &&
        0 == strcmp(existing->canonical, wanted->canonical);
}

static int32_t given_or(int64_t given, int32_t fallback) { return 0 != given ? (int32_t)given : fallback; }

/* Where a group is received: any address of the machine, at the group's port. Spec: 04 §3.5. */
static asi_address wildcard_with_port_of(const asi_address *address)
{
    asi_address wildcard = asi_address_any(address->any.sa_family);
    asi_address_set_port(&wildcard, asi_address_port(address));
    return wildcard;
}

static void set_multicast(const asi_udp_channel *channel, const asi_address *group, asi_udp_params *params)
{
    params->group = *group;
    params->bind = wildcard_with_port_of(&channel->remote_data);
    params->interface = channel->local;
    params->interface_index = channel->interface_index;
}

void asi_udp_channel_send_params(
    const asi_udp_channel *channel, const asi_socket_defaults *defaults, asi_udp_params *params)
{
    *params = (asi_udp_params){
        .bind = channel->local,
        .ttl = given_or(channel->ttl, defaults->ttl),
        .sndbuf_length = given_or(channel->sndbuf_length, defaults->sndbuf_length),
        .rcvbuf_length = given_or(channel->rcvbuf_length, defaults->rcvbuf_length)
    };
    if (channel->is_multicast)
    {
        set_multicast(channel, &channel->remote_control, params);
    }
    if (defaults->is_connecting && channel->has_explicit_endpoint && !asi_udp_channel_is_multi_destination(channel))
    {
        params->connect = channel->remote_data;
    }
}

void asi_udp_channel_receive_params(const asi_udp_channel *destination, const asi_udp_channel *subscription,
    const asi_socket_defaults *defaults, asi_udp_params *params)
{
    *params = (asi_udp_params){
        .bind = destination->remote_data,
        .ttl = given_or(destination->ttl, defaults->ttl),
        .sndbuf_length = given_or(subscription->sndbuf_length, defaults->sndbuf_length),
        .rcvbuf_length = given_or(subscription->rcvbuf_length, defaults->rcvbuf_length),
        .has_receive_timestamps = ASI_TIMESTAMP_OFF != subscription->media_receive_timestamp_offset,
        .may_coalesce = true
    };
    if (destination->is_multicast)
    {
        set_multicast(destination, &destination->remote_data, params);
    }
}

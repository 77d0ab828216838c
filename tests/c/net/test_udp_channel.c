/* Channels by table: URI to addresses, canonical form, refusals with code and text (the stock C driver's, from the captured
 * answers of its conductor), which sockets are opened, and which channels name the same endpoint.
 * Spec: 04 §3, 05 §3-5, 03 §14. */
#include "fake_net.h"

#include <errno.h>

#include "driver/net/interfaces.h"
#include "driver/net/udp_channel.h"
#include "wire/command.h"

static fake_net net;
static asi_udp_ops ops;
static int64_t suffix;

/* "known" is a host; everything else is none. */
static as_result resolve(void *context, const char *name, const char *param, bool is_re_resolution, asi_address *address)
{
    (void)context;
    (void)param;
    (void)is_re_resolution;
    if (0 == strcmp(name, "known"))
    {
        *address = fake_address("10.1.2.3", 0);
        return AS_OK;
    }
    return asi_fail(AS_E_USAGE, ASI_ERR_UNKNOWN_HOST, "Unable to resolve host=(%s)", name);
}

static const asi_name_resolver resolver = { .resolve = resolve };

static as_result open_channel(const char *text, bool is_destination, asi_udp_channel **channel)
{
    const asi_udp_channel_context context = { .resolver = &resolver, .ops = &ops, .next_unique_suffix = &suffix };
    return asi_udp_channel_open_untrusted(&context, text, (int64_t)strlen(text), is_destination, channel);
}

static asi_udp_channel *must_open(const char *text)
{
    asi_udp_channel *channel;
    CHECK_I64(open_channel(text, false, &channel), AS_OK);
    return channel;
}

static void check_address(const asi_address *address, const char *expected)
{
    char text[ASI_ADDRESS_TEXT_CAPACITY];
    asi_address_format(address, text);
    CHECK_TEXT(text, expected);
}

static void addresses_and_canonical_forms(void)
{
    static const struct
    {
        const char *text;
        const char *data;
        const char *control;
        const char *local;
        const char *canonical;
        bool is_multicast;
        bool has_control;
        bool is_group;
    } rows[] = {
        { "aeron:udp?endpoint=127.0.0.1:24000", "127.0.0.1:24000", "127.0.0.1:24000", "0.0.0.0:0",
            "UDP-0.0.0.0:0-127.0.0.1:24000", false, false, false },
        { "aeron-spy:aeron:udp?endpoint=127.0.0.1:24000", "127.0.0.1:24000", "127.0.0.1:24000", "0.0.0.0:0",
            "UDP-0.0.0.0:0-127.0.0.1:24000", false, false, false },
        { "aeron:udp?endpoint=known:24000", "10.1.2.3:24000", "10.1.2.3:24000", "0.0.0.0:0", "UDP-0.0.0.0:0-known:24000",
            false, false, false },
        { "aeron:udp?endpoint=[::1]:24000", "[::1]:24000", "[::1]:24000", "[::]:0", "UDP-[::]:0-[::1]:24000", false, false,
            false },
        { "aeron:udp?endpoint=127.0.0.1:24000|interface=127.0.0.1", "127.0.0.1:24000", "127.0.0.1:24000", "127.0.0.1:0",
            "UDP-127.0.0.1:0-127.0.0.1:24000", false, false, false },
        { "aeron:udp?endpoint=127.0.0.1:24000|interface=127.0.0.9:5/8", "127.0.0.1:24000", "127.0.0.1:24000", "127.0.0.1:5",
            "UDP-127.0.0.1:5-127.0.0.1:24000", false, false, false },
        { "aeron:udp?endpoint=127.0.0.1:24000|control=known:9", "127.0.0.1:24000", "127.0.0.1:24000", "10.1.2.3:9",
            "UDP-known:9-127.0.0.1:24000", false, true, false },
        { "aeron:udp?control=127.0.0.1:24100|control-mode=dynamic", "0.0.0.0:0", "0.0.0.0:0", "127.0.0.1:24100",
            "UDP-127.0.0.1:24100-0.0.0.0:0", false, true, true },
        { "aeron:udp?control=[::1]:24100|control-mode=dynamic", "[::]:0", "[::]:0", "[::1]:24100", "UDP-[::1]:24100-[::]:0",
            false, true, true },
        { "aeron:udp?endpoint=224.20.30.39:24000", "224.20.30.39:24000", "224.20.30.40:24000", "127.0.0.1:0",
            "UDP-127.0.0.1:0-224.20.30.39:24000", true, false, true },
        { "aeron:udp?endpoint=224.20.30.39:24000|interface={lo}:77", "224.20.30.39:24000", "224.20.30.40:24000",
            "127.0.0.1:77", "UDP-127.0.0.1:77-224.20.30.39:24000", true, false, true },
        { "aeron:udp?endpoint=224.20.30.39:24000|control=127.0.0.1:9", "224.20.30.39:24000", "224.20.30.40:24000",
            "127.0.0.1:0", "UDP-127.0.0.1:0-224.20.30.39:24000", true, false, true },
        { "aeron:udp?tags=7|endpoint=127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "0.0.0.0:0", "UDP-0.0.0.0:0-127.0.0.1:0#7",
            false, false, false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        asi_udp_channel *channel = must_open(rows[i].text);
        check_address(&channel->remote_data, rows[i].data);
        check_address(&channel->remote_control, rows[i].control);
        check_address(&channel->local, rows[i].local);
        CHECK_TEXT(channel->canonical, rows[i].canonical);
        CHECK_TEXT(channel->original, rows[i].text);
        CHECK_I64(channel->is_multicast, rows[i].is_multicast);
        CHECK_I64(channel->has_explicit_control, rows[i].has_control);
        CHECK_I64(asi_udp_channel_has_group_semantics(channel), rows[i].is_group);
        asi_udp_channel_close(channel);
    }
    asi_udp_channel_close(NULL);
}

static void refusals(void)
{
    static const struct
    {
        const char *text;
        int32_t code;
        const char *part;
    } rows[] = {
        { "aeron:udp", ASI_ERR_INVALID_CHANNEL, "URIs for UDP must specify" },
        { "aeron:udp?", ASI_ERR_INVALID_CHANNEL, "URIs for UDP must specify endpoint, control, tags, or control-mode" },
        { "aeron:udp?endpoint=", ASI_ERR_INVALID_CHANNEL, "URIs for UDP must specify" },
        { "aeron:udp?endpont=127.0.0.1:9", ASI_ERR_INVALID_CHANNEL, "control-mode=manual/response; endpont is none of them, is endpoint meant?" },
        { "aeron:udp?contol=127.0.0.1:9", ASI_ERR_INVALID_CHANNEL, "contol is none of them, is control meant?" },
        { "aeron:udp?mtu=1408", ASI_ERR_INVALID_CHANNEL, "URIs for UDP must specify" },
        { "aeron:tcp?endpoint=127.0.0.1:1", ASI_ERR_INVALID_CHANNEL, "invalid URI scheme or transport" },
        { "aeron-spy:aeron:ipc", ASI_ERR_INVALID_CHANNEL, "UDP channels must use UDP URIs" },
        { "aeron:udp?control-mode=dynamic", ASI_ERR_INVALID_CHANNEL, "explicit control expected" },
        { "aeron:udp?endpoint=127.0.0.1:9|control-mode=dynamic", ASI_ERR_INVALID_CHANNEL,
            "explicit control expected with dynamic control mode" },
        { "aeron:udp?endpoint=127.0.0.1", EINVAL, "port invalid: ''" },
        { "aeron:udp?endpoint=127.0.0.1:99999", EINVAL, "port out of range: '99999'" },
        { "aeron:udp?endpoint=127.0.0.1:x", EINVAL, "port invalid: 'x'" },
        { "aeron:udp?endpoint=127.0.0.1:x", EINVAL, "Unresolved - endpoint=127.0.0.1:x, name-and-port=127.0.0.1:x" },
        { "aeron:udp?endpoint=[::1:24300", ASI_ERR_UNKNOWN_HOST, "Unable to resolve host=([::1)" },
        { "aeron:udp?endpoint=no.such.host:1", ASI_ERR_UNKNOWN_HOST, "Unable to resolve host=(no.such.host)" },
        { "aeron:udp?endpoint=127.0.0.1:1|control=unknown:2", ASI_ERR_UNKNOWN_HOST, "Unresolved - control=unknown:2" },
        { "aeron:udp?endpoint=224.20.30.40:24300", EINVAL, "Multicast data address must be odd" },
        { "aeron:udp?endpoint=[ff02::2]:24300", EINVAL, "Multicast data address must be odd" },
        { "aeron:udp?endpoint=127.0.0.1:1|interface=10.99.99.99/24", EINVAL,
            "could not find matching interface='10.99.99.99/24'" },
        { "aeron:udp?endpoint=224.20.30.39:1|interface={eth9}", EINVAL, "unknown interface eth9" },
        { "aeron:udp?endpoint=224.20.30.39:1|interface=1.2.3.4/33", EINVAL,
            "could not parse interface='1.2.3.4/33': prefixlen out of range: 33" },
        { "aeron:udp?endpoint=127.0.0.1:1|tags=-1", ASI_ERR_INVALID_CHANNEL, "could not parse channel tag string: -1" },
        { "aeron:udp?endpoint=127.0.0.1:1|tags=x", ASI_ERR_INVALID_CHANNEL, "could not parse channel tag string: x" },
        { "aeron:udp?endpoint=127.0.0.1:1|so-sndbuf=abc", EINVAL, "could not parse so-sndbuf=abc in URI" },
        { "aeron:udp?endpoint=127.0.0.1:1|rcv-wnd=abc", EINVAL, "could not parse rcv-wnd=abc in URI" },
        { "aeron:udp?endpoint=127.0.0.1:1|rcv-wnd=4g", EINVAL, "rcv-wnd=4g is more than" },
        { "aeron:udp?endpoint=127.0.0.1:1|channel-rcv-ts-offset=4|media-rcv-ts-offset=8", EINVAL, "overlap" },
        { "aeron:udp?endpoint=127.0.0.1:1|channel-rcv-ts-offset=reserved|media-rcv-ts-offset=reserved", EINVAL,
            "overlap" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        asi_udp_channel *channel = NULL;
        CHECK_I64(open_channel(rows[i].text, false, &channel), AS_E_USAGE);
        CHECK_I64(as_error_code(), rows[i].code);
        CHECK(NULL != strstr(as_error_text(), rows[i].part));
        CHECK(NULL == channel);
    }
}

static void options(void)
{
    asi_udp_channel *channel = must_open("aeron:udp?endpoint=224.20.30.39:1|ttl=300|so-rcvbuf=2m|so-sndbuf=64k|rcv-wnd=16k|"
        "nak-delay=5ms|gtag=9|group=false|tags=3,4|channel-rcv-ts-offset=reserved|media-rcv-ts-offset=0|channel-snd-ts-offset=-3");
    CHECK_I64(channel->ttl, 255);
    CHECK_I64(channel->rcvbuf_length, 2 * 1024 * 1024);
    CHECK_I64(channel->sndbuf_length, 65536);
    CHECK_I64(channel->receiver_window_length, 16384);
    CHECK_I64(channel->nak_delay_ns, 5000000);
    CHECK(channel->has_group_tag && 9 == channel->group_tag);
    CHECK_I64(channel->group, ASI_GROUP_FALSE);
    CHECK(channel->has_tag && 3 == channel->tag);
    CHECK_I64(channel->channel_receive_timestamp_offset, ASI_TIMESTAMP_RESERVED);
    CHECK_I64(channel->media_receive_timestamp_offset, 0);
    CHECK_I64(channel->channel_send_timestamp_offset, ASI_TIMESTAMP_OFF);
    asi_udp_channel_close(channel);
    channel = must_open("aeron:udp?endpoint=127.0.0.1:1|ttl=abc|control-mode=bogus");
    CHECK_I64(channel->ttl, 0);
    CHECK_I64(channel->control_mode, ASI_CONTROL_MODE_NONE);
    CHECK_I64(channel->nak_delay_ns, -1);
    CHECK_I64(channel->group, ASI_GROUP_INFER);
    CHECK(!channel->has_group_tag && !channel->has_tag);
    asi_udp_channel_close(channel);
}

static void checks_by_use(void)
{
    static const struct
    {
        const char *text;
        bool is_publication;
        const char *part; /* NULL: fine */
    } rows[] = {
        { "aeron:udp?endpoint=127.0.0.1:0", true, "endpoint has port=0 for publication" },
        { "aeron:udp?endpoint=127.0.0.1:0|control=127.0.0.1:9|control-mode=dynamic", true, NULL },
        { "aeron:udp?endpoint=127.0.0.1:0", false, NULL },
        { "aeron:udp?control=127.0.0.1:9", true, "'control' parameter requires that either 'endpoint' or 'control-mode'" },
        { "aeron:udp?control=127.0.0.1:9|control-mode=bogus", true, NULL },
        { "aeron:udp?control=127.0.0.1:0|control-mode=dynamic", false, "control has port=0 for subscription" },
        { "aeron:udp?control=127.0.0.1:0|control-mode=dynamic", true, NULL },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        asi_udp_channel *channel = must_open(rows[i].text);
        const as_result result = rows[i].is_publication ? asi_udp_channel_check_publication(channel) :
            asi_udp_channel_check_subscription(channel);
        CHECK_I64(result, NULL == rows[i].part ? AS_OK : AS_E_USAGE);
        CHECK(NULL == rows[i].part || NULL != strstr(as_error_text(), rows[i].part));
        asi_udp_channel_close(channel);
    }
}

static void send_destinations(void)
{
    static const struct
    {
        const char *text;
        int32_t code; /* 0: fine */
    } rows[] = {
        { "aeron:udp?endpoint=127.0.0.1:24500", 0 },
        { "aeron:ipc", EINVAL },
        { "aeron:udp?control=127.0.0.1:24501", EINVAL },
        { "aeron:udp?endpoint=127.0.0.1:0", EINVAL },
        { "aeron-spy:aeron:udp?endpoint=127.0.0.1:24500", ASI_ERR_INVALID_CHANNEL },
        { "aeron:udp?endpoint=127.0.0.1:24500|mtu=1408", ASI_ERR_INVALID_CHANNEL },
        { "aeron:udp?endpoint=127.0.0.1:24500|response-correlation-id=1", ASI_ERR_INVALID_CHANNEL },
        { "aeron:udp?endpoint=127.0.0.1:24500|control-mode=response", ASI_ERR_INVALID_CHANNEL },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        asi_uri uri;
        CHECK_I64(asi_uri_parse_untrusted(&uri, rows[i].text, (int64_t)strlen(rows[i].text)), AS_OK);
        CHECK_I64(asi_udp_channel_check_send_destination_untrusted(&uri, rows[i].text), 0 == rows[i].code ? AS_OK : AS_E_USAGE);
        CHECK(0 == rows[i].code || rows[i].code == as_error_code());
    }
}

/* Port 0 is never shared; a destination needs no suffix. Spec: 05 §5. */
static void unique_forms(void)
{
    asi_udp_channel *first = must_open("aeron:udp?endpoint=127.0.0.1:0");
    asi_udp_channel *second = must_open("aeron:udp?endpoint=127.0.0.1:0");
    asi_udp_channel *destination;
    CHECK_I64(open_channel("aeron:udp?endpoint=127.0.0.1:0", true, &destination), AS_OK);
    CHECK(0 != strcmp(first->canonical, second->canonical));
    CHECK_TEXT(destination->canonical, "UDP-0.0.0.0:0-127.0.0.1:0");
    asi_udp_channel_close(first);
    asi_udp_channel_close(second);
    asi_udp_channel_close(destination);
}

static void same_endpoint(void)
{
    static const struct
    {
        const char *existing;
        const char *wanted;
        bool by_tag;
        bool by_form;
        bool is_error;
    } rows[] = {
        { "aeron:udp?endpoint=127.0.0.1:1", "aeron:udp?endpoint=127.0.0.1:1|mtu=8k|alias=x", false, true, false },
        { "aeron:udp?endpoint=127.0.0.1:1", "aeron:udp?endpoint=127.0.0.1:2", false, false, false },
        { "aeron:udp?endpoint=known:1", "aeron:udp?endpoint=10.1.2.3:1", false, false, false },
        { "aeron:udp?endpoint=127.0.0.1:1|tags=1", "aeron:udp?endpoint=127.0.0.1:1", false, true, false },
        { "aeron:udp?endpoint=127.0.0.1:1|tags=1", "aeron:udp?endpoint=127.0.0.1:1|tags=2", false, false, false },
        { "aeron:udp?endpoint=127.0.0.1:1|tags=1", "aeron:udp?tags=1", true, false, false },
        { "aeron:udp?endpoint=127.0.0.1:1|tags=1", "aeron:udp?endpoint=127.0.0.1:1|tags=1", true, true, false },
        { "aeron:udp?endpoint=127.0.0.1:1|tags=1", "aeron:udp?endpoint=127.0.0.1:2|tags=1", true, false, true },
        { "aeron:udp?endpoint=127.0.0.1:1|tags=1", "aeron:udp?tags=1|control-mode=manual", true, false, true },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        asi_udp_channel *existing = must_open(rows[i].existing);
        asi_udp_channel *wanted = must_open(rows[i].wanted);
        bool matches = false;
        CHECK_I64(asi_udp_channel_matches_tag(existing, wanted, &matches), rows[i].is_error ? AS_E_USAGE : AS_OK);
        CHECK_I64(matches, rows[i].by_tag);
        CHECK_I64(asi_udp_channel_matches_canonical(existing, wanted), rows[i].by_form);
        asi_udp_channel_close(existing);
        asi_udp_channel_close(wanted);
    }
}

static const char *text_of(const asi_address *address)
{
    static char texts[4][ASI_ADDRESS_TEXT_CAPACITY];
    static int next;
    char *text = texts[next++ % 4];
    asi_address_format(address, text);
    return text;
}

/* Spec: 04 §3.5 */
static void what_is_opened(void)
{
    static const struct
    {
        const char *text;
        bool is_publication;
        const char *bind;
        const char *connect;
        const char *group;
    } rows[] = {
        { "aeron:udp?endpoint=127.0.0.1:1", true, "0.0.0.0:0", "127.0.0.1:1", "unresolved" },
        { "aeron:udp?endpoint=127.0.0.1:1", false, "127.0.0.1:1", "unresolved", "unresolved" },
        { "aeron:udp?control=127.0.0.1:9|control-mode=dynamic", true, "127.0.0.1:9", "unresolved", "unresolved" },
        { "aeron:udp?control=127.0.0.1:9|control-mode=dynamic", false, "0.0.0.0:0", "unresolved", "unresolved" },
        { "aeron:udp?control-mode=manual", true, "0.0.0.0:0", "unresolved", "unresolved" },
        { "aeron:udp?control=127.0.0.1:9|control-mode=response", true, "127.0.0.1:9", "unresolved", "unresolved" },
        { "aeron:udp?endpoint=224.20.30.39:5", true, "0.0.0.0:5", "224.20.30.39:5", "224.20.30.40:5" },
        { "aeron:udp?endpoint=224.20.30.39:5", false, "0.0.0.0:5", "unresolved", "224.20.30.39:5" },
    };
    const asi_socket_defaults defaults = { .sndbuf_length = 1000, .rcvbuf_length = 2000, .ttl = 3, .is_connecting = true };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        asi_udp_channel *channel = must_open(rows[i].text);
        asi_udp_params params;
        if (rows[i].is_publication)
        {
            asi_udp_channel_send_params(channel, &defaults, &params);
        }
        else
        {
            asi_udp_channel_receive_params(channel, channel, &defaults, &params);
        }
        CHECK_TEXT(text_of(&params.bind), rows[i].bind);
        CHECK_TEXT(text_of(&params.connect), rows[i].connect);
        CHECK_TEXT(text_of(&params.group), rows[i].group);
        CHECK_I64(params.sndbuf_length, 1000);
        CHECK_I64(params.rcvbuf_length, 2000);
        CHECK_I64(params.ttl, 3);
        CHECK_I64(params.interface_index, channel->is_multicast ? 1 : 0);
        asi_udp_channel_close(channel);
    }
}

/* Spec: 04 §3.6 */
static void interface_choice(void)
{
    const asi_interface interfaces[] = {
        { .name = "lo", .index = 1, .address = fake_address("127.0.0.1", 0), .prefix_length = 8, .is_up = true,
            .is_loopback = true },
        { .name = "down", .index = 2, .address = fake_address("10.0.0.9", 0), .prefix_length = 30, .is_multicast = true },
        { .name = "eth0", .index = 3, .address = fake_address("10.0.0.1", 0), .prefix_length = 16, .is_up = true,
            .is_multicast = true },
        { .name = "eth1", .index = 4, .address = fake_address("10.0.1.1", 0), .prefix_length = 24, .is_up = true,
            .is_multicast = true },
        { .name = "tun", .index = 5, .address = fake_address("10.9.0.1", 0), .prefix_length = 32, .is_up = true },
    };
    static const struct
    {
        const char *text;
        int32_t multicast;
        int32_t unicast;
    } rows[] = {
        { "0.0.0.0/0", 3, 4 }, { "127.0.0.1", 0, 0 }, { "10.0.0.0/16", 3, 3 }, { "10.0.0.1", 2, 2 }, { "{eth0}", 2, 2 },
        { "{down}", -1, -1 }, { "10.9.0.1", -1, 4 }, { "10.0.0.9", -1, -1 }, { "192.168.0.0/16", -1, -1 }, { "{tun}:5", -1, 4 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    {
        asi_interface_search search;
        CHECK_I64(asi_interface_search_parse(rows[i].text, AF_INET, &search), AS_OK);
        CHECK_I64(asi_interface_choose(&search, interfaces, 5, true), rows[i].multicast);
        CHECK_I64(asi_interface_choose(&search, interfaces, 5, false), rows[i].unicast);
    }
    static const char *const bad[] = { "", "no host", "1.2.3.4:x", "1.2.3.4/x", "1.2.3.4/", "{eth0", "{eth0}x", "[::1", "[::1]x",
        "1.2.3.4:65536", "[::1]:1/129" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    {
        asi_interface_search search;
        CHECK_I64(asi_interface_search_parse(bad[i], AF_INET, &search), AS_E_USAGE);
    }
    asi_interface_search search;
    CHECK_I64(asi_interface_search_parse("localhost/8", AF_INET, &search), AS_OK);
    CHECK_I64(asi_interface_choose(&search, interfaces, 5, true), 0);
    CHECK_I64(asi_interface_search_parse("no host", AF_INET, &search), AS_E_USAGE);
    CHECK_I64(as_error_code(), ASI_ERR_UNKNOWN_HOST);
}

int main(void)
{
    ops = fake_net_ops(&net);
    RUN(addresses_and_canonical_forms);
    RUN(refusals);
    RUN(options);
    RUN(checks_by_use);
    RUN(send_destinations);
    RUN(unique_forms);
    RUN(same_endpoint);
    RUN(what_is_opened);
    RUN(interface_choice);
    return 0;
}

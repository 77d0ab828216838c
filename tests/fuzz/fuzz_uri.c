/* Channel URIs: the parser, its typed reads, the UDP channel of it, what publications and destinations read of it. What parses can
 * be written again and reads back the same. */
#include "driver/ctl/params.h"
#include "driver/net/udp_channel.h"
#include "driver/tx/flow.h"
#include "fuzz.h"
#include "net/fake_net.h"
#include "wire/command.h"

static as_result no_host(void *context, const char *name, const char *param, bool is_again, asi_address *address)
{
    (void)context;
    (void)is_again;
    (void)address;
    return asi_fail(AS_E_USAGE, ASI_ERR_UNKNOWN_HOST, "unknown host %s in %s", name, param);
}

static void read_typed(const asi_uri *uri)
{
    for (int32_t i = 0; i < uri->param_count; i++)
    {
        int32_t i32;
        int64_t i64;
        bool is_true;
        const char *key = uri->params[i].key;
        (void)!asi_uri_get_i32(uri, key, 1, &i32);
        (void)!asi_uri_get_i64(uri, key, 1, &i64);
        (void)!asi_uri_get_size(uri, key, 1, &i64);
        (void)!asi_uri_get_duration_ns(uri, key, 1, &i64);
        (void)!asi_uri_get_bool(uri, key, true, &is_true);
    }
}

static void write_again(const asi_uri *uri)
{
    asi_uri_builder builder;
    asi_uri again;
    asi_uri_build_start(&builder, uri->media, uri->is_spy);
    for (int32_t i = 0; i < uri->param_count; i++)
    {
        if (NULL == uri->params[i].value)
        {
            return; /* a final "key=" can't be written */
        }
        asi_uri_build_put(&builder, uri->params[i].key, uri->params[i].value);
    }
    if (AS_OK != asi_uri_build_end(&builder))
    {
        return; /* too long with its separators */
    }
    CHECK_I64(asi_uri_parse_untrusted(&again, builder.text, builder.length), AS_OK);
    CHECK_I64(again.param_count, uri->param_count);
    for (int32_t i = 0; i < uri->param_count; i++)
    {
        CHECK_TEXT(again.params[i].key, uri->params[i].key);
        CHECK_TEXT(again.params[i].value, uri->params[i].value);
    }
}

static const asi_ctl_publication_params *find_no_tagged(const asi_conductor *conductor, int64_t tag, int32_t *session_id)
{
    (void)conductor;
    (void)tag;
    (void)session_id;
    return NULL;
}

static void read_params(const asi_uri *uri)
{
    static asi_driver_settings settings;
    static asi_conductor conductor;
    if (0 == settings.mtu_length)
    {
        asi_driver_settings_init(&settings);
        conductor.settings = &settings;
    }
    asi_ctl_publication_params params;
    asi_flow_params flow;
    (void)!asi_ctl_publication_params_read(&conductor, uri, true, find_no_tagged, &params);
    (void)!asi_ctl_publication_params_read(&conductor, uri, false, find_no_tagged, &params);
    (void)!asi_flow_params_read(&settings, uri, "", true, &flow);
    (void)!asi_flow_params_read(&settings, uri, "", false, &flow);
    (void)!asi_udp_channel_check_send_destination_untrusted(uri, "");
    (void)!asi_udp_channel_check_destination_keys_untrusted(uri, "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fake_net net = { 0 };
    const asi_udp_ops ops = fake_net_ops(&net);
    const asi_name_resolver resolver = { .resolve = no_host };
    int64_t suffix = 0;
    const asi_udp_channel_context context = { .resolver = &resolver, .ops = &ops, .next_unique_suffix = &suffix };
    fuzz_input input = { .at = data, .left = (int64_t)size };
    int64_t length;
    uint8_t *text = fuzz_take(&input, input.left, &length); /* not terminated */
    asi_uri uri;
    if (AS_OK == asi_uri_parse_untrusted(&uri, (const char *)text, length))
    {
        read_typed(&uri);
        write_again(&uri);
        read_params(&uri);
    }
    for (int is_destination = 0; is_destination < 2; is_destination++)
    {
        asi_udp_channel *channel = NULL;
        if (AS_OK == asi_udp_channel_open_untrusted(&context, (const char *)text, length, 0 != is_destination, &channel))
        {
            asi_udp_params params;
            const asi_socket_defaults defaults = { .is_connecting = true };
            (void)!asi_udp_channel_check_publication(channel);
            (void)!asi_udp_channel_check_subscription(channel);
            asi_udp_channel_send_params(channel, &defaults, &params);
            asi_udp_channel_receive_params(channel, channel, &defaults, &params);
            asi_udp_channel_close(channel);
        }
        else
        {
            CHECK('\0' != as_error_text()[0]);
        }
    }
    free(text);
    return 0;
}

/* Goal: channels are read and written by the grammar of Spec: 05 §2, and nothing outside it gets through.
 * Method: tables; then random cuts and changes of good channels under the sanitizers. */
#include "wire/uri.h"

#include <errno.h>

#include "support.h"
#include "wire/command.h"

static as_result parse(asi_uri *uri, const char *text)
{
    return asi_uri_parse_untrusted(uri, text, (int64_t)strlen(text));
}

static void reads_good_channels(void)
{
    static const struct
    {
        const char *text;
        asi_uri_media media;
        bool is_spy;
        int32_t params;
        const char *key;
        const char *value;
    } ROWS[] = {
        { "aeron:ipc", ASI_MEDIA_IPC, false, 0, "mtu", NULL },
        { "aeron:ipc?", ASI_MEDIA_IPC, false, 0, "mtu", NULL },
        { "aeron:udp", ASI_MEDIA_UDP, false, 0, "endpoint", NULL },
        { "aeron:ipc?term-length=64k", ASI_MEDIA_IPC, false, 1, "term-length", "64k" },
        { "aeron:ipc?term-length=64k|", ASI_MEDIA_IPC, false, 1, "term-length", "64k" },
        { "aeron:ipc?term-length=64k|mtu=1408", ASI_MEDIA_IPC, false, 2, "mtu", "1408" },
        { "aeron:ipc?mtux=1", ASI_MEDIA_IPC, false, 1, "mtu", NULL },
        { "aeron:ipc?mtu=1|mtu=2", ASI_MEDIA_IPC, false, 2, "mtu", "2" },
        { "aeron:ipc?alias=a=b?c", ASI_MEDIA_IPC, false, 1, "alias", "a=b?c" },
        { "aeron:ipc?alias=", ASI_MEDIA_IPC, false, 1, "alias", NULL },
        { "aeron:ipc?mtu=1408|alias", ASI_MEDIA_IPC, false, 1, "alias", NULL },
        { "aeron-spy:aeron:udp?endpoint=[::1]:24325", ASI_MEDIA_UDP, true, 1, "endpoint", "[::1]:24325" },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        asi_uri uri;
        CHECK_I64(parse(&uri, ROWS[i].text), AS_OK);
        CHECK_I64(uri.media, ROWS[i].media);
        CHECK_I64(uri.is_spy, ROWS[i].is_spy);
        CHECK_I64(uri.param_count, ROWS[i].params);
        const char *value = asi_uri_get(&uri, ROWS[i].key);
        if (NULL == ROWS[i].value)
        {
            CHECK(NULL == value);
        }
        else
        {
            CHECK_TEXT(value, ROWS[i].value);
        }
    }
}

static void refuses_bad_channels(void)
{
    static const struct { const char *text; const char *reason; } ROWS[] = {
        { "", "invalid URI scheme or transport: " },
        { "bogus", "invalid URI scheme or transport: bogus" },
        { "aeron:", "invalid URI scheme or transport: aeron:" },
        { "aeron:tcp?endpoint=127.0.0.1:1", "invalid URI scheme or transport: aeron:tcp?endpoint=127.0.0.1:1" },
        { "AERON:ipc", "invalid URI scheme or transport: AERON:ipc" },
        { "aeron:ipcs", "invalid URI scheme or transport: aeron:ipcs" },
        { "aeron-spy:ipc", "invalid URI scheme or transport: aeron-spy:ipc" },
        { "aeron:udp?=x", "empty key not allowed: aeron:udp?=x" },
        { "aeron:ipc?a|b=1", "invalid end of key: aeron:ipc?a|b=1" },
        { "aeron:ipc?|b=1", "invalid end of key: aeron:ipc?|b=1" },
        { "aeron:ipc?a=|b=1", "empty value not allowed: aeron:ipc?a=|b=1" },
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        asi_uri uri;
        CHECK_I64(parse(&uri, ROWS[i].text), AS_E_USAGE);
        CHECK_I64(as_error_code(), ASI_ERR_INVALID_CHANNEL);
        CHECK_TEXT(as_error_text(), ROWS[i].reason);
    }
}

static void bounds_length_and_parameters(void)
{
    static char text[AS_CHANNEL_MAX_LENGTH + 2];
    memset(text, 'x', sizeof(text));
    memcpy(text, "aeron:ipc?alias=", 16);
    asi_uri uri;
    CHECK_I64(asi_uri_parse_untrusted(&uri, text, AS_CHANNEL_MAX_LENGTH), AS_OK);
    CHECK_I64(strlen(asi_uri_get(&uri, "alias")), AS_CHANNEL_MAX_LENGTH - 16);
    CHECK_I64(asi_uri_parse_untrusted(&uri, text, AS_CHANNEL_MAX_LENGTH + 1), AS_E_USAGE);
    CHECK(NULL != strstr(as_error_text(), "URI length (4096) exceeds max supported length (4095): aeron:ipc?alias=xxx"));
    CHECK_I64(asi_uri_parse_untrusted(&uri, text, -1), AS_E_USAGE);
    CHECK_TEXT(as_error_text(), "URI length (18446744073709551615) exceeds max supported length (4095): ");
    CHECK_I64(asi_uri_parse_untrusted(&uri, "aeron:ipc\0?x", 12), AS_E_USAGE);

    char many[1024] = "aeron:ipc?";
    size_t length = strlen(many);
    for (int i = 0; i < ASI_URI_MAX_PARAMS; i++)
    {
        length += (size_t)snprintf(many + length, sizeof(many) - length, "k%d=1|", i);
    }
    CHECK_I64(parse(&uri, many), AS_OK);
    CHECK_I64(uri.param_count, ASI_URI_MAX_PARAMS);
    snprintf(many + length, sizeof(many) - length, "last=1");
    CHECK_I64(parse(&uri, many), AS_E_USAGE);
}

static void reads_typed_values(void)
{
    asi_uri uri;
    CHECK_I64(parse(&uri, "aeron:ipc?dec=-12|hex=0x7fffffff|oct=010|big=2147483648|bad=12x|space= 1|size=64k|time=5s|yes=true|no=false|"
        "maybe=maybe|tag=tag:7"), AS_OK);
    int32_t i32 = 0;
    int64_t i64 = 0;
    bool flag = false;
    CHECK_I64(asi_uri_get_i32(&uri, "dec", 0, &i32), AS_OK);
    CHECK_I64(i32, -12);
    CHECK_I64(asi_uri_get_i32(&uri, "hex", 0, &i32), AS_OK);
    CHECK_I64(i32, INT32_MAX);
    CHECK_I64(asi_uri_get_i32(&uri, "oct", 0, &i32), AS_OK);
    CHECK_I64(i32, 8);
    CHECK_I64(asi_uri_get_i32(&uri, "absent", 99, &i32), AS_OK);
    CHECK_I64(i32, 99);
    CHECK_I64(asi_uri_get_i64(&uri, "big", 0, &i64), AS_OK);
    CHECK_I64(i64, 2147483648LL);
    CHECK_I64(asi_uri_get_size(&uri, "size", 0, &i64), AS_OK);
    CHECK_I64(i64, 65536);
    CHECK_I64(asi_uri_get_duration_ns(&uri, "time", 0, &i64), AS_OK);
    CHECK_I64(i64, 5000000000LL);
    CHECK_I64(asi_uri_get_bool(&uri, "yes", false, &flag), AS_OK);
    CHECK(flag);
    CHECK_I64(asi_uri_get_bool(&uri, "no", true, &flag), AS_OK);
    CHECK(!flag);
    CHECK_I64(asi_uri_get_bool(&uri, "absent", true, &flag), AS_OK);
    CHECK(flag);

    CHECK_I64(asi_uri_get_i32(&uri, "big", 0, &i32), AS_E_USAGE);
    CHECK_I64(as_error_code(), EINVAL);
    CHECK_TEXT(as_error_text(), "could not parse big=2147483648 as int32_t in URI");
    CHECK_I64(asi_uri_get_i32(&uri, "tag", 0, &i32), AS_E_USAGE);
    CHECK_I64(asi_uri_get_i64(&uri, "bad", 0, &i64), AS_E_USAGE);
    CHECK_I64(asi_uri_get_i64(&uri, "space", 0, &i64), AS_E_USAGE);
    CHECK_I64(asi_uri_get_size(&uri, "maybe", 0, &i64), AS_E_USAGE);
    CHECK_TEXT(as_error_text(), "could not parse maybe=maybe in URI");
    CHECK_I64(asi_uri_get_duration_ns(&uri, "maybe", 0, &i64), AS_E_USAGE);
    CHECK_I64(asi_uri_get_bool(&uri, "maybe", false, &flag), AS_E_USAGE);
    CHECK_TEXT(as_error_text(), "could not parse maybe=maybe as bool from URI");
}

static void builds_what_it_reads(void)
{
    asi_uri_builder builder;
    asi_uri_build_start(&builder, ASI_MEDIA_UDP, true);
    asi_uri_build_put(&builder, "endpoint", "localhost:0");
    asi_uri_build_put_i64(&builder, "session-id", -7);
    CHECK_I64(asi_uri_build_end(&builder), AS_OK);
    CHECK_TEXT(builder.text, "aeron-spy:aeron:udp?endpoint=localhost:0|session-id=-7");

    static const struct { const char *key; const char *value; } BAD[] = {
        { "", "1" }, { "k", "" }, { "a=b", "1" }, { "a|b", "1" }, { "a?b", "1" }, { "k", "a|b" }
    };
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
    {
        asi_uri_build_start(&builder, ASI_MEDIA_IPC, false);
        asi_uri_build_put(&builder, BAD[i].key, BAD[i].value);
        CHECK_I64(asi_uri_build_end(&builder), AS_E_USAGE);
    }
    asi_uri_build_start(&builder, ASI_MEDIA_IPC, false);
    for (int i = 0; i < 1000; i++)
    {
        asi_uri_build_put(&builder, "alias", "0123456789");
    }
    CHECK_I64(asi_uri_build_end(&builder), AS_E_USAGE);
    CHECK(builder.length <= AS_CHANNEL_MAX_LENGTH);
}

static void survives_mutations(void)
{
    static const char GOOD[] = "aeron-spy:aeron:udp?endpoint=127.0.0.1:24325|term-length=64k|alias=x|tags=1,2";
    static const char SPICE[] = "=|?:\0aeron-spyipcudp\xff";
    asi_rand rand = test_rand();
    for (int i = 0; i < 20000; i++)
    {
        char text[sizeof(GOOD)];
        memcpy(text, GOOD, sizeof(GOOD));
        const int64_t changes = test_rand_below(&rand, 4);
        for (int64_t change = 0; change < changes; change++)
        {
            text[test_rand_below(&rand, sizeof(GOOD) - 1)] = SPICE[test_rand_below(&rand, sizeof(SPICE) - 1)];
        }
        const int64_t length = test_rand_below(&rand, sizeof(GOOD));
        char *exact = malloc((size_t)length + 1); /* so that reading past `length` is caught */
        memcpy(exact, text, (size_t)length);
        asi_uri uri;
        if (AS_OK == asi_uri_parse_untrusted(&uri, exact, length))
        {
            int64_t value;
            (void)asi_uri_get(&uri, "alias");
            (void)(asi_uri_get_size(&uri, "term-length", 0, &value) || asi_uri_get_i64(&uri, "tags", 0, &value));
        }
        free(exact);
    }
}

int main(void)
{
    RUN(reads_good_channels);
    RUN(refuses_bad_channels);
    RUN(bounds_length_and_parameters);
    RUN(reads_typed_values);
    RUN(builds_what_it_reads);
    RUN(survives_mutations);
    return 0;
}

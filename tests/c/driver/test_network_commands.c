/* Answers to commands that name network channels: the codes of the stock C driver to the same channels (Spec: 03 §6.1-6.8), taken
 * from what it answered to 235 raw commands. Ours where it differs: a nak-delay or gtag that is no number is refused, as the
 * stock Java driver does; the C driver overlooks it. */
#include "network_rig.h"

#define CHANNEL_CAPACITY 512

#define OK 0
#define PUB ASI_CMD_ADD_PUBLICATION
#define XPUB ASI_CMD_ADD_EXCLUSIVE_PUBLICATION
#define SUB ASI_CMD_ADD_SUBSCRIPTION
#define ADD ASI_CMD_ADD_DESTINATION
#define REMOVE ASI_CMD_REMOVE_DESTINATION
#define ADD_RCV ASI_CMD_ADD_RCV_DESTINATION
#define REMOVE_RCV ASI_CMD_REMOVE_RCV_DESTINATION

typedef struct add_row
{
    int32_t type_id;
    int32_t stream_id;
    const char *channel;
    int32_t code;
    const char *text; /* what the error says; NULL: anything */
} add_row;

/* Rows see what those before have added. */
static const add_row ADDS[] = {
    { XPUB, 10, "aeron:udp", 1, NULL },
    { XPUB, 10, "aeron:udp?", 1, NULL },
    { XPUB, 10, "aeron:udp?endpoint", 1, NULL },
    { XPUB, 10, "aeron:udp?endpoint=", 1, NULL },
    { XPUB, 10, "aeron:udp?=x", 1, NULL },
    { XPUB, 10, "aeron:udp?endpoint=127.0.0.1", 11, "port" },
    { XPUB, 10, "aeron:udp?endpoint=127.0.0.1:99999", 11, "99999" },
    { XPUB, 10, "aeron:udp?endpoint=127.0.0.1:x", 11, NULL },
    { XPUB, 10, "aeron:udp?endpoint=127.0.0.1:0", 11, "port=0" },
    { XPUB, 10, "aeron:udp?endpoint=[::1:24300", 9, NULL },
    { XPUB, 10, "aeron:udp?endpoint=no.such.host.invalid:24300", 9, "no.such.host.invalid" },
    { XPUB, 10, "aeron:udp?endpoint=224.20.30.40:24300", 11, "must be odd" },
    { XPUB, 10, "aeron:udp?endpoint=127.0.0.1:24300|interface=10.99.99.99/24", 11, "could not find matching interface" },
    { XPUB, 10, "aeron:udp?control=127.0.0.1:24300", 11, "'control' parameter requires" },
    { XPUB, 10, "aeron:udp?control-mode=dynamic", 1, NULL },
    { XPUB, 10, "aeron:udp?control-mode=bogus|control=127.0.0.1:24300", OK, NULL },
    { XPUB, 10, "aeron:udp?endpoint=127.0.0.1:24300|control-mode=response", 11, NULL },
    { XPUB, 10, "aeron:udp?endpoint=127.0.0.1:24300|control=127.0.0.1:24301|control-mode=response|response-correlation-id=77777",
        11, "image.correlationId=77777 not found" },
    { XPUB, 10, "aeron:udp?tags=1", 11, "explicit control, endpoint" },
    { XPUB, 10, "aeron:udp?tags=x|endpoint=127.0.0.1:24300", 1, NULL },
    { XPUB, 10, "aeron-spy:aeron:udp?endpoint=127.0.0.1:24300", 1, NULL },
    { XPUB, 10, "aeron:udp?endpoint=127.0.0.1:24300|endpoint=127.0.0.1:24301", OK, NULL },
    { XPUB, 10, "AERON:udp?endpoint=127.0.0.1:24300", 1, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|term-length=abc", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|term-length=65535", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|term-length=32k", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|term-length=2g", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|mtu=16", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|mtu=33", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|mtu=65536", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|mtu=100000", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|mtu=16k", OK, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|mtu=8224|term-length=64k", OK, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|init-term-id=1", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|init-term-id=5|term-id=4|term-offset=0", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|init-term-id=5|term-id=5|term-offset=65568|term-length=64k", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|init-term-id=5|term-id=5|term-offset=31", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|init-term-id=5|term-id=5|term-offset=-32", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|pub-wnd=100", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|pub-wnd=64k|term-length=64k", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|max-resend=0", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|max-resend=257", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|session-id=abc", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|session-id=tag:99", 11, "must reference a network publication" },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|tags=1,x", 11, "Entity tag invalid" },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|tags=5,-1", OK, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|linger=abc", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|linger=-1s", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|eos=maybe", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|ttl=256", OK, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|ttl=abc", OK, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|fc=bogus", OK, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|fc=tagged,g:abc", OK, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|fc=min,t:xx", OK, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|cc=bogus", OK, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|so-sndbuf=abc", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|stream-id=77", OK, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|response-correlation-id=-5", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|response-correlation-id=99999",
        11, "unable to find response subscription" },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|response-correlation-id=prototype",
        11, "response-correlation-id=-2: prototype needs control-mode=response" },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|ssc=maybe", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|sparse=maybe", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|untethered-window-limit-timeout=abc", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|nak-delay=abc", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|media-rcv-ts-offset=bogus", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|channel-snd-ts-offset=7", 11, NULL },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24300|ats=true", 11, "ATS is not enabled" },
    { PUB, 20, "aeron:udp?endpoint=127.0.0.1:24300|term-length=64k|mtu=1408|session-id=100", OK, NULL },
    { PUB, 20, "aeron:udp?endpoint=127.0.0.1:24300|term-length=64k|mtu=1408|session-id=100", OK, NULL },
    { PUB, 20, "aeron:udp?endpoint=127.0.0.1:24300|term-length=128k", 11, NULL },
    { PUB, 20, "aeron:udp?endpoint=127.0.0.1:24300|term-length=64k|mtu=4096", 11, NULL },
    { PUB, 20, "aeron:udp?endpoint=127.0.0.1:24300|term-length=64k|session-id=101", 11, NULL },
    { PUB, 20, "aeron:udp?endpoint=127.0.0.1:24300|term-length=64k|init-term-id=1|term-id=1|term-offset=64", 11, NULL },
    { PUB, 20, "aeron:udp?endpoint=127.0.0.1:24300|term-length=64k|ssc=true", 11, "spies simulate connection" },
    { PUB, 20, "aeron:udp?endpoint=127.0.0.1:24300|term-length=64k|linger=1s", OK, NULL },
    { XPUB, 20, "aeron:udp?endpoint=127.0.0.1:24300|term-length=64k|session-id=100", 1, NULL },
    { XPUB, 21, "aeron:udp?endpoint=127.0.0.1:24300|term-length=64k|session-id=100", OK, NULL },
    { XPUB, 22, "aeron:udp?endpoint=127.0.0.1:24300|term-length=64k|so-sndbuf=64k",
        11, "so-sndbuf=65536 does not match existing value" },
    { XPUB, 22, "aeron:udp?endpoint=127.0.0.1:24300|term-length=64k|channel-snd-ts-offset=8", 11, "channel-snd-ts-offset=8" },
    { XPUB, 23, "aeron:udp?endpoint=127.0.0.1:24321|tags=2,3|term-length=64k", OK, NULL },
    { XPUB, 24, "aeron:udp?endpoint=127.0.0.1:24322|tags=4,3|term-length=64k", OK, NULL },
    { XPUB, 25, "aeron:udp?endpoint=127.0.0.1:24323|tags=2|term-length=64k", 11, "mismatched endpoint or control" },
    { XPUB, 26, "aeron:udp?endpoint=127.0.0.1:24324|session-id=tag:3|term-length=64k", OK, NULL },
    { XPUB, 26, "aeron:udp?endpoint=127.0.0.1:24325|session-id=tag:3|term-length=128k", OK, NULL },
    { SUB, 40, "aeron:udp?endpoint=127.0.0.1:24400", OK, NULL },
    { SUB, 40, "aeron:udp", 1, NULL },
    { SUB, 40, "aeron:udp?endpoint=127.0.0.1", 11, "port" },
    { SUB, 40, "aeron:udp?endpoint=127.0.0.1:24400|rcv-wnd=abc", 11, NULL },
    { SUB, 40, "aeron:udp?endpoint=127.0.0.1:24400|rcv-wnd=1g", 11, "Initial window greater than SO_RCVBUF" },
    { SUB, 40, "aeron:udp?endpoint=127.0.0.1:24400|so-rcvbuf=64k", 11, "Initial window greater than SO_RCVBUF" },
    { SUB, 40, "aeron:udp?endpoint=127.0.0.1:24400|reliable=false", 11, "reliable=false" },
    { SUB, 40, "aeron:udp?endpoint=127.0.0.1:24400|rejoin=false", 11, "rejoin=false" },
    { SUB, 40, "aeron:udp?endpoint=127.0.0.1:24400|tether=false", OK, NULL },
    { SUB, 40, "aeron:udp?endpoint=127.0.0.1:24400|group=true", OK, NULL },
    { SUB, 40, "aeron:udp?endpoint=127.0.0.1:24400|session-id=abc", 11, NULL },
    { SUB, 40, "aeron:udp?endpoint=127.0.0.1:24400|session-id=tag:9", 11, NULL },
    { SUB, 40, "aeron:udp?endpoint=127.0.0.1:24400|gtag=abc", 11, NULL },
    { SUB, 40, "aeron:udp?endpoint=127.0.0.1:24400|control-mode=manual", OK, NULL },
    { SUB, 40, "aeron:udp?control-mode=manual", OK, NULL },
    { SUB, 40, "aeron:udp?tags=7", OK, NULL },
    { SUB, 40, "aeron:udp?endpoint=10.99.99.99:24400", 11, "10.99.99.99" },
    { SUB, 40, "aeron:udp?endpoint=127.0.0.1:24400|media-rcv-ts-offset=8", 11, "media-rcv-ts-offset=8" },
    { SUB, 40, "aeron:udp?endpoint=127.0.0.1:24400|channel-rcv-ts-offset=reserved", 11, NULL },
    { SUB, 40, "aeron:udp?endpoint=no.such.host.invalid:24400", 9, "no.such.host.invalid" },
    { SUB, 40, "aeron:udp?control=127.0.0.1:24401|control-mode=response", OK, NULL },
    { SUB, 40, "aeron:udp?endpoint=127.0.0.1:24402|control=127.0.0.1:24401|control-mode=dynamic|nak-delay=abc", 11, NULL },
};

typedef struct destination_row
{
    int32_t type_id;
    const char *channel;
    int32_t code;
} destination_row;

static const destination_row DESTINATIONS[] = {
    { ADD, "bogus", 1 },
    { REMOVE, "bogus", 1 },
    { ADD, "aeron:ipc", 11 },
    { REMOVE, "aeron:ipc", 11 },
    { ADD, "aeron:udp?control=127.0.0.1:24501", 11 },
    { REMOVE, "aeron:udp?control=127.0.0.1:24501", 11 },
    { ADD, "aeron:udp?endpoint=127.0.0.1:0", 11 },
    { REMOVE, "aeron:udp?endpoint=127.0.0.1:0", 11 },
    { ADD, "aeron-spy:aeron:udp?endpoint=127.0.0.1:24500", 1 },
    { REMOVE, "aeron-spy:aeron:udp?endpoint=127.0.0.1:24500", 1 },
    { ADD, "aeron:udp?endpoint=127.0.0.1:24500|mtu=1408", 1 },
    { REMOVE, "aeron:udp?endpoint=127.0.0.1:24500|mtu=1408", 1 },
    { ADD, "aeron:udp?endpoint=127.0.0.1:24500|rcv-wnd=64k", 1 },
    { REMOVE, "aeron:udp?endpoint=127.0.0.1:24500|rcv-wnd=64k", 1 },
    { ADD, "aeron:udp?endpoint=127.0.0.1:24500|so-rcvbuf=64k", 1 },
    { REMOVE, "aeron:udp?endpoint=127.0.0.1:24500|so-rcvbuf=64k", 1 },
    { ADD, "aeron:udp?endpoint=127.0.0.1:24500|so-sndbuf=64k", 1 },
    { REMOVE, "aeron:udp?endpoint=127.0.0.1:24500|so-sndbuf=64k", 1 },
    { ADD, "aeron:udp?endpoint=127.0.0.1:24500|response-correlation-id=1", 1 },
    { REMOVE, "aeron:udp?endpoint=127.0.0.1:24500|response-correlation-id=1", 1 },
    { ADD, "aeron:udp?endpoint=127.0.0.1:24500|control=127.0.0.1:24501|control-mode=response", 1 },
    { REMOVE, "aeron:udp?endpoint=127.0.0.1:24500|control=127.0.0.1:24501|control-mode=response", 1 },
    { ADD, "aeron:udp?endpoint=no.such.host.invalid:24500", OK },
    { REMOVE, "aeron:udp?endpoint=no.such.host.invalid:24500", OK },
    { ADD, "aeron:udp?endpoint=127.0.0.1:24500", OK },
    { REMOVE, "aeron:udp?endpoint=127.0.0.1:24500", OK },
    { ADD_RCV, "bogus", 1 },
    { ADD_RCV, "aeron:udp?endpoint=10.99.99.99:24412", 11 },
    { ADD_RCV, "aeron:udp?endpoint=127.0.0.1:24412|mtu=1408", 1 },
    { ADD_RCV, "aeron:udp?endpoint=127.0.0.1:24412|rcv-wnd=64k", 1 },
    { ADD_RCV, "aeron:udp?endpoint=127.0.0.1:24412", OK },
    { ADD_RCV, "aeron:udp?endpoint=127.0.0.1:24412", 11 },
    { ADD_RCV, "aeron:ipc", OK },
    { ADD_RCV, "aeron-spy:aeron:udp?endpoint=127.0.0.1:24306", OK },
    { ADD_RCV, "aeron-spy:bogus", 1 },
    { REMOVE_RCV, "bogus", 1 },
    { REMOVE_RCV, "aeron:udp?endpoint=127.0.0.1:24499", OK },
    { REMOVE_RCV, "aeron:udp?endpoint=127.0.0.1:24412", OK },
    { REMOVE_RCV, "aeron:ipc", OK },
    { REMOVE_RCV, "aeron:ipc", 2 },
    { REMOVE_RCV, "aeron-spy:aeron:udp?endpoint=127.0.0.1:24306", OK },
    { REMOVE_RCV, "aeron-spy:aeron:udp?endpoint=127.0.0.1:24399", 2 },
};

/* Code of the answer to a command; 0: success. Other clients' news are skipped. */
static int32_t answer_to(test_rig *rig, int64_t correlation_id)
{
    while (rig_receive(rig))
    {
        const bool is_mine = correlation_id == asi_get_i64(rig->last.bytes);
        if (ASI_RSP_ERROR == rig->last.type_id && is_mine)
        {
            return asi_get_i32(rig->last.bytes + 8);
        }
        if (is_mine && ASI_RSP_COUNTER_READY != rig->last.type_id)
        {
            return OK;
        }
    }
    fprintf(stderr, "no answer to %" PRId64 "\n", correlation_id);
    exit(1);
}

static void send_add(test_rig *rig, int32_t type_id, int64_t correlation_id, int32_t stream_id, const char *named)
{
    char channel[CHANNEL_CAPACITY];
    network_own(named, channel, sizeof(channel));
    rig_send_add(rig, type_id, 1, correlation_id, stream_id, channel);
}

static void adds(test_rig *rig)
{
    for (size_t i = 0; i < sizeof(ADDS) / sizeof(ADDS[0]); i++)
    {
        const int64_t correlation_id = 100 + (int64_t)i;
        send_add(rig, ADDS[i].type_id, correlation_id, ADDS[i].stream_id, ADDS[i].channel);
        const int32_t code = answer_to(rig, correlation_id);
        const asi_rsp_error *error = (const void *)rig->last.bytes;
        const char *text = OK == code ? "" : (const char *)(error + 1);
        if (code != ADDS[i].code || (NULL != ADDS[i].text && NULL == strstr(text, ADDS[i].text)))
        {
            fprintf(stderr, "%s: code %d, expected %d: %s\n", ADDS[i].channel, code, ADDS[i].code, text);
            exit(1);
        }
        rig_cycles(rig, 4);
        memset(rig->last.bytes, 0, sizeof(rig->last.bytes));
    }
}

static int32_t send_destination(test_rig *rig, int32_t type_id, int64_t correlation_id, int64_t resource, const char *named)
{
    uint8_t message[CHANNEL_CAPACITY + sizeof(asi_cmd_destination)];
    char channel[CHANNEL_CAPACITY];
    network_own(named, channel, sizeof(channel));
    const int32_t length = (int32_t)strlen(channel);
    const asi_cmd_destination command = { { 1, correlation_id }, resource, length };
    memcpy(message, &command, sizeof(command));
    memcpy(message + sizeof(command), channel, (size_t)length);
    rig_send(rig, type_id, message, (int64_t)sizeof(command) + length);
    const int32_t code = answer_to(rig, correlation_id);
    rig_cycles(rig, 4);
    return code;
}

static void destinations(test_rig *rig)
{
    send_add(rig, XPUB, 10, 51, "aeron:udp?control-mode=manual|control=127.0.0.1:24310|term-length=64k");
    CHECK_I64(answer_to(rig, 10), OK);
    send_add(rig, SUB, 11, 53, "aeron:udp?control-mode=manual");
    CHECK_I64(answer_to(rig, 11), OK);
    for (size_t i = 0; i < sizeof(DESTINATIONS) / sizeof(DESTINATIONS[0]); i++)
    {
        const destination_row *row = &DESTINATIONS[i];
        const bool is_receive = ADD_RCV == row->type_id || REMOVE_RCV == row->type_id;
        const int32_t code = send_destination(rig, row->type_id, 100 + (int64_t)i, is_receive ? 11 : 10, row->channel);
        if (code != row->code)
        {
            fprintf(stderr, "%s: code %d, expected %d\n", row->channel, code, row->code);
            exit(1);
        }
    }
    static const char CHANNEL[] = "aeron:udp?endpoint=127.0.0.1:24500";
    CHECK_I64(send_destination(rig, ADD, 900, 4242, CHANNEL), ASI_ERR_UNKNOWN_PUBLICATION);
    CHECK_I64(send_destination(rig, ADD_RCV, 901, 4242, CHANNEL), ASI_ERR_UNKNOWN_SUBSCRIPTION);
    send_add(rig, XPUB, 20, 54, "aeron:udp?endpoint=127.0.0.1:24501");
    CHECK_I64(answer_to(rig, 20), OK);
    CHECK_I64(send_destination(rig, ADD, 902, 20, CHANNEL), ASI_ERR_GENERIC);
    send_add(rig, SUB, 21, 55, "aeron:udp?endpoint=127.0.0.1:24502");
    CHECK_I64(answer_to(rig, 21), OK);
    CHECK_I64(send_destination(rig, ADD_RCV, 903, 21, CHANNEL), ASI_ERR_INVALID_CHANNEL);
}

/* An agent closes an endpoint: a command for it meanwhile is to be repeated, and counts as no error. */
static void closing_endpoints(test_rig *rig)
{
    static const char CHANNEL[] = "aeron:udp?endpoint=127.0.0.1:24901";
    rig_send_add(rig, SUB, 1, 10, NETWORK_STREAM, CHANNEL);
    rig_expect_i32(rig, ASI_RSP_COUNTER_READY, 1);
    rig_expect_i32(rig, ASI_RSP_SUBSCRIPTION_READY, 10);
    rig_send_remove(rig, ASI_CMD_REMOVE_SUBSCRIPTION, 1, 11, 10);
    rig_expect_success(rig, 11);
    rig_send_add(rig, SUB, 1, 12, NETWORK_STREAM, CHANNEL);
    rig_expect_error(rig, 12, ASI_ERR_RESOURCE_TEMPORARILY_UNAVAILABLE);
    CHECK(NULL != strstr((const char *)rig->last.bytes + sizeof(asi_rsp_error),
        "receive_channel_endpoint found in CLOSING state, please retry"));
    CHECK_I64(rig_system(rig, ASI_SYSTEM_ERRORS), 0);
    rig_send_add(rig, SUB, 1, 13, NETWORK_STREAM, CHANNEL);
    rig_expect_i32(rig, ASI_RSP_SUBSCRIPTION_READY, 13);
}

int main(void)
{
    RUN_IN_NETWORK_RIG(closing_endpoints);
    RUN_IN_NETWORK_RIG(adds);
    RUN_IN_NETWORK_RIG(destinations);
    return 0;
}

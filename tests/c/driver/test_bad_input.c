/* The error that a user gets for an impossible channel: the stock C driver's code, and a text that says what to change. Each
 * row is a command to one driver, which keeps what the rows before have added; rows of code 0 only prepare. Codes of many more
 * channels are in test_network_commands.c. Spec: 03 §6, 05 §3-6. */
#include "memory_rig.h"
#include "network_rig.h"
#include "shm/error_log.h"

#define PUB ASI_CMD_ADD_PUBLICATION
#define XPUB ASI_CMD_ADD_EXCLUSIVE_PUBLICATION
#define SUB ASI_CMD_ADD_SUBSCRIPTION
#define UDP "aeron:udp?endpoint=127.0.0.1:24700"

typedef struct bad_row
{
    int32_t type_id;
    int32_t code;
    const char *channel;
    const char *texts[2]; /* what the error says */
} bad_row;

static const bad_row ROWS[] = {
    /* malformed */
    { PUB, 1, "arn:udp?endpoint=127.0.0.1:24700", { "arn:udp" } },
    { PUB, 1, "aeron:tcp?endpoint=127.0.0.1:24700", { "aeron:tcp" } },
    { PUB, 1, "aeron:udp?endpoint", { "must specify", "endpoint" } },
    { PUB, 1, "aeron:udp?=x", { "aeron:udp?=x" } },
    { PUB, 1, "aeron:udp", { "must specify", "endpoint" } },
    { PUB, 1, "aeron-spy:" UDP, { "spy" } },
    /* addresses */
    { PUB, 11, "aeron:udp?endpoint=127.0.0.1", { "port", "127.0.0.1" } },
    { PUB, 11, "aeron:udp?endpoint=127.0.0.1:99999", { "port", "99999" } },
    { PUB, 11, "aeron:udp?endpoint=127.0.0.1:0", { "port=0" } },
    { PUB, 9, "aeron:udp?endpoint=no.such.host.invalid:24700", { "no.such.host.invalid", "endpoint" } },
    { SUB, 9, "aeron:udp?endpoint=127.0.0.1:24700|control=no.such.host.invalid:1", { "no.such.host.invalid", "control" } },
    { PUB, 11, "aeron:udp?endpoint=224.20.30.40:24700", { "must be odd", "224.20.30.40" } },
    { PUB, 11, UDP "|interface=10.99.99.99/24", { "could not find matching interface", "10.99.99.99/24" } },
    { SUB, 11, "aeron:udp?endpoint=224.20.30.39:24700|interface={no-such}", { "unknown interface no-such", "multicast" } },
    { SUB, 11, UDP "|interface=127.0.0.1/99", { "127.0.0.1/99" } },
    { SUB, 11, "aeron:udp?endpoint=192.0.2.77:24700", { "uri = aeron:udp?endpoint=192.0.2.77:24700", "no interface of this machine" } },
    { SUB, 11, "aeron:udp?endpoint=127.0.0.1:IN_USE", { "uri = aeron:udp?endpoint=127.0.0.1:", "choose another port" } },
    { PUB, 11, "aeron:udp?control=127.0.0.1:24700", { "'control' parameter requires" } },
    { PUB, 1, "aeron:udp?control-mode=dynamic", { "control" } },
    { SUB, 11, UDP "|control=127.0.0.1:0", { "control has port=0" } },
    /* values */
    { PUB, 11, UDP "|term-length=100000", { "term length not a power of 2", "length=100000" } },
    { PUB, 11, UDP "|term-length=abc", { "term-length=abc" } },
    { PUB, 11, UDP "|mtu=1400", { "mtuLength=1400", "multiple of 32" } },
    { PUB, 11, UDP "|mtu=65536", { "65536", "MAX_UDP_PAYLOAD_LENGTH" } },
    { PUB, 11, UDP "|mtu=8k|so-sndbuf=4k", { "MTU greater than SO_SNDBUF", "lower the one or raise the other" } },
    { SUB, 11, UDP "|rcv-wnd=1m|so-rcvbuf=128k", { "Initial window greater than SO_RCVBUF", "rcv-wnd=1048576" } },
    { PUB, 11, UDP "|init-term-id=1", { "complete set" } },
    { PUB, 11, UDP "|init-term-id=5|term-id=4|term-offset=0", { "init-term-id=5", "term-id=4" } },
    { PUB, 11, UDP "|init-term-id=5|term-id=5|term-offset=65568", { "term-offset=65568", "term-length=65536" } },
    { PUB, 11, UDP "|init-term-id=5|term-id=5|term-offset=31", { "term-offset=31", "multiple" } },
    { PUB, 11, UDP "|pub-wnd=100", { "pub-wnd=100", "mtu=" } },
    { PUB, 11, UDP "|pub-wnd=64k", { "pub-wnd=65536", "half the term-length" } },
    { PUB, 11, UDP "|max-resend=257", { "max-resend=257", "256" } },
    { PUB, 11, UDP "|session-id=abc", { "session-id=abc" } },
    { PUB, 11, UDP "|session-id=tag:99", { "session-id=tag:99", "must reference a network publication" } },
    { PUB, 1, UDP "|tags=x", { "tag", "x" } },
    { PUB, 11, UDP "|tags=1,x", { "Entity tag invalid", "x" } },
    { PUB, 11, UDP "|linger=5m", { "linger=5m" } },
    { PUB, 11, UDP "|eos=maybe", { "eos=maybe" } },
    { PUB, 11, UDP "|ssc=maybe", { "ssc=maybe" } },
    { PUB, 11, UDP "|sparse=maybe", { "sparse=maybe" } },
    { PUB, 11, UDP "|so-sndbuf=abc", { "so-sndbuf=abc" } },
    { SUB, 11, UDP "|so-rcvbuf=abc", { "so-rcvbuf=abc" } },
    { SUB, 11, UDP "|rcv-wnd=abc", { "rcv-wnd=abc" } },
    { SUB, 11, UDP "|nak-delay=abc", { "nak-delay=abc" } },
    { SUB, 11, UDP "|gtag=abc", { "gtag=abc" } },
    { SUB, 11, UDP "|reliable=maybe", { "reliable=maybe" } },
    { SUB, 11, UDP "|rejoin=maybe", { "rejoin=maybe" } },
    { SUB, 11, UDP "|tether=maybe", { "tether=maybe" } },
    { SUB, 11, UDP "|session-id=tag:1", { "session-id=tag:1" } },
    { PUB, 11, UDP "|untethered-window-limit-timeout=abc", { "untethered-window-limit-timeout=abc" } },
    { PUB, 11, UDP "|untethered-linger-timeout=abc", { "untethered-linger-timeout=abc" } },
    { PUB, 11, UDP "|untethered-resting-timeout=abc", { "untethered-resting-timeout=abc" } },
    { PUB, 11, UDP "|channel-snd-ts-offset=abc", { "Invalid channel-snd-ts-offset: abc" } },
    { SUB, 11, UDP "|channel-rcv-ts-offset=0|media-rcv-ts-offset=4", { "overlap", "channel-rcv-ts-offset" } },
    { PUB, 11, UDP "|response-correlation-id=-5", { "response-correlation-id=-5", "prototype" } },
    { PUB, 11, UDP "|response-correlation-id=77", { "response subscription", "77" } },
    { PUB, 11, UDP "|control-mode=response", { "response-correlation-id" } },
    { PUB, 11, UDP "|ats=true", { "ATS is not enabled" } },
    /* flow control */
    { PUB, 11, "aeron:udp?control-mode=manual|fc=bogus", { "bogus", "max, min or tagged" } },
    { PUB, 11, "aeron:udp?control-mode=manual|fc=,t:1s", { "choose max, min or tagged" } },
    { PUB, 11, "aeron:udp?control-mode=manual|fc=max,t:1s", { "t:1s", "max,t:1s" } },
    { PUB, 11, "aeron:udp?control-mode=manual|fc=min,g:", { "g:", "min,g:" } },
    { PUB, 11, "aeron:udp?control-mode=manual|fc=tagged,g:x/1", { "g:x/1", "Group tag" } },
    { PUB, 11, "aeron:udp?control-mode=manual|fc=min,t:xx", { "xx" } },
    { PUB, 11, "aeron:udp?control-mode=manual|fc=min,rrwm:0", { "rrwm:0" } },
    /* clashes */
    { PUB, 0, UDP "|term-length=64k|session-id=100|tags=7", { NULL } },
    { PUB, 11, UDP "|term-length=128k", { "different 'term-length'", "existing=65536 requested=131072" } },
    { PUB, 11, UDP "|mtu=4096", { "different 'mtu'", "existing=1408 requested=4096" } },
    { PUB, 11, UDP "|session-id=101", { "different 'session-id'", "existing=100 requested=101" } },
    { PUB, 11, UDP "|ssc=true", { "spies simulate connection" } },
    { XPUB, 1, UDP "|session-id=100", { "session-id", "100" } },
    { XPUB, 11, UDP "|so-sndbuf=64k", { "so-sndbuf=65536 does not match existing value of OS default", "existingChannel=" UDP } },
    { XPUB, 0, UDP "|so-rcvbuf=128k", { NULL } }, /* what the first has, by the driver's default */
    { XPUB, 11, UDP "|so-rcvbuf=256k", { "so-rcvbuf=262144 does not match existing value of 131072" } },
    { XPUB, 11, UDP "|channel-snd-ts-offset=8", { "channel-snd-ts-offset=8", "conflicts" } },
    { XPUB, 11, "aeron:udp?endpoint=127.0.0.1:24701|tags=7", { "tag 7", "mismatched endpoint or control" } },
    { XPUB, 11, "aeron:udp?tags=8", { "explicit control, endpoint" } },
    { SUB, 0, "aeron:udp?endpoint=127.0.0.1:FREE|so-rcvbuf=256k", { NULL } },
    { SUB, 11, "aeron:udp?endpoint=127.0.0.1:FREE|so-rcvbuf=128k", { "so-rcvbuf=131072 does not match existing value of 262144", "existingChannel=" } },
    { SUB, 11, "aeron:udp?endpoint=127.0.0.1:FREE|reliable=false", { "reliable=false" } },
    { SUB, 11, "aeron:udp?endpoint=127.0.0.1:FREE|rejoin=false", { "rejoin=false" } },
};

static int32_t answer_to(test_rig *rig, int64_t correlation_id)
{
    int32_t code = -1;
    for (int i = 0; -1 == code && i < 20; i++)
    {
        while (-1 == code && rig_receive(rig))
        {
            if (ASI_RSP_ERROR == rig->last.type_id && correlation_id == asi_get_i64(rig->last.bytes))
            {
                code = asi_get_i32(rig->last.bytes + 8);
                rig->last.bytes[rig->last.length] = '\0';
            }
            else if (ASI_RSP_ERROR != rig->last.type_id && ASI_RSP_COUNTER_READY != rig->last.type_id &&
                correlation_id == asi_get_i64(rig->last.bytes))
            {
                code = 0;
            }
        }
        rig_cycle(rig);
    }
    return code;
}

/* The channel with a word replaced by a port. */
static void put_port(const char *channel, const char *word, int port, char *to, size_t capacity)
{
    const char *found = strstr(channel, word);
    if (NULL == found)
    {
        snprintf(to, capacity, "%s", channel);
        return;
    }
    snprintf(to, capacity, "%.*s%d%s", (int)(found - channel), channel, port, found + strlen(word));
}

static void what_bad_channels_say(void)
{
    test_rig rig;
    peer in_use;
    int failures = 0;
    peer_open(&in_use);
    const int unused = free_port();
    rig_open(&rig, network_settings);
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        char filled[512], channel[512];
        const bad_row *row = &ROWS[i];
        put_port(row->channel, "IN_USE", in_use.port, filled, sizeof(filled));
        put_port(filled, "FREE", unused, channel, sizeof(channel));
        rig_send_add(&rig, row->type_id, 1, 100 + (int64_t)i, 1001, channel);
        const int32_t code = answer_to(&rig, 100 + (int64_t)i);
        const char *text = 0 == code ? "" : (const char *)rig.last.bytes + sizeof(asi_rsp_error);
        bool says_all = true;
        for (int k = 0; k < 2; k++)
        {
            says_all = says_all && (NULL == row->texts[k] || NULL != strstr(text, row->texts[k]));
        }
        if (code != row->code || !says_all)
        {
            fprintf(stderr, "%s: code %d, expected %d, '%s' and '%s' in: %s\n", channel, code, row->code,
                NULL == row->texts[0] ? "" : row->texts[0], NULL == row->texts[1] ? "" : row->texts[1], text);
            failures++;
        }
    }
    rig_close(&rig);
    peer_close(&in_use);
    CHECK_I64(failures, 0);
}

static void look_for_errno(const asi_error_entry *entry, void *context)
{
    bool *is_found = context;
    static const char EXPECTED[] = "(1) Operation not permitted";
    *is_found = *is_found || (entry->text_length >= (int64_t)sizeof(EXPECTED) &&
        0 == strncmp(entry->text, EXPECTED, sizeof(EXPECTED) - 1));
}

/* What a firewall refuses to the sender is no invalid channel, which has the same number. */
static void what_a_socket_refuses_is_an_errno(memory_rig *m)
{
    bool is_found = false;
    rig_send_add(&m->rig, PUB, 1, 10, 1001, "aeron:udp?endpoint=127.0.0.1:24100");
    m->net.fail_with = EPERM;
    rig_pass(&m->rig, RIG_SECOND);
    asi_error_log_read_untrusted(m->rig.cnc.error_log, m->rig.cnc.lengths.error_log, 0, look_for_errno, &is_found);
    CHECK(is_found);
}

int main(void)
{
    RUN(what_bad_channels_say);
    RUN_IN_MEMORY_RIG(what_a_socket_refuses_is_an_errno);
    return 0;
}

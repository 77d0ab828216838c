/* Floods of forged datagrams against the name resolver of a whole driver, as in test_network_hostile.c: limits bound the names and
 * neighbours that it keeps, and what it sends to addresses that it knows from a datagram only. */
#include "memory_rig.h"
#include "wire/frame.h"

static void adjust_resolver(asi_driver_settings *settings)
{
    snprintf(settings->name_resolver, sizeof(settings->name_resolver), "driver");
    snprintf(settings->resolver_name, sizeof(settings->resolver_name), "ours");
    snprintf(settings->resolver_interface, sizeof(settings->resolver_interface), "127.0.0.1:8050");
}

static int32_t put_entry(uint8_t *to, uint32_t host, uint16_t port, const char *name)
{
    const int32_t length = (int32_t)asi_align_i64(14 + (int64_t)strlen(name), 8);
    memset(to, 0, (size_t)length);
    to[0] = 1;
    asi_put_u16(to + 2, port);
    asi_put_i32(to + 8, (int32_t)host);
    asi_put_u16(to + 12, (uint16_t)strlen(name));
    memcpy(to + 14, name, strlen(name));
    return length;
}

/* Invented names and neighbours: kept up to the limit; each gets our name twice and no other, none at an impossible address. */
static void invented_neighbours(void)
{
    memory_rig h;
    uint8_t bytes[1024] __attribute__((aligned(8)));
    char name[401];
    memory_rig_open(&h, adjust_resolver);
    memset(name, 'n', sizeof(name));
    name[400] = '\0';
    for (int32_t i = 0; i < 3000; i++)
    {
        snprintf(name, sizeof(name), "%d", i);
        name[strlen(name)] = 'n';
        const int32_t entry = put_entry(bytes + 8, 0x0100000Au + ((uint32_t)i << 16), (uint16_t)(0 == i % 3 ? 0 : 8000 + i), name);
        const asi_frame_prefix prefix = { .frame_length = 8 + entry, .type = ASI_FRAME_RESOLUTION };
        memcpy(bytes, &prefix, sizeof(prefix));
        memory_rig_send(&h, bytes, 8 + entry, 8050);
        if (0 == i % 16)
        {
            h.rig.now_ns += 11 * RIG_MS;
            memory_rig_cycles(&h, 1);
        }
    }
    for (int i = 0; i < 30; i++)
    {
        h.rig.now_ns += 100 * RIG_MS;
        memory_rig_cycles(&h, 1);
    }
    CHECK(rig_system(&h.rig, ASI_SYSTEM_INVALID_PACKETS) >= 1000);
    CHECK_I64(h.net.sends - 3000, 2 * 256); /* the test's own count, too */
    CHECK_I64(rig_system(&h.rig, ASI_SYSTEM_ERRORS), 0);
    memory_rig_close(&h);
}

enum { NAMES = 150, NAME_PEER = 24101 };

/* From another socket; each is of a driver of its own. */
static void tell_of_others(memory_rig *h)
{
    uint8_t bytes[64] __attribute__((aligned(8)));
    asi_udp_socket *other;
    const asi_udp_params params = { .bind = fake_address("127.0.0.1", NAME_PEER) };
    const asi_address to = fake_address("127.0.0.1", 8050);
    CHECK_I64(fake_open(&h->net, &params, &other), AS_OK);
    for (int32_t i = 0; i < NAMES; i++)
    {
        char name[8];
        int32_t sent;
        snprintf(name, sizeof(name), "n%03d", i);
        const int32_t length = 8 + put_entry(bytes + 8, 0x0100000Au + ((uint32_t)i << 16), 8050, name);
        const asi_frame_prefix prefix = { .frame_length = length, .type = ASI_FRAME_RESOLUTION };
        memcpy(bytes, &prefix, sizeof(prefix));
        const asi_outgoing datagram = { .bytes = bytes, .length = length, .to = &to };
        CHECK_I64(fake_send(&h->net, other, &datagram, 1, &sent), AS_OK);
        if (0 == i % 10)
        {
            h->rig.now_ns += 11 * RIG_MS;
            memory_rig_cycles(h, 1);
        }
    }
    fake_close(&h->net, other);
}

static int32_t tell_of_oneself(memory_rig *h)
{
    uint8_t bytes[64] __attribute__((aligned(8)));
    const int32_t length = 8 + put_entry(bytes + 8, 0x0100007Fu, 24100, "them");
    const asi_frame_prefix prefix = { .frame_length = length, .type = ASI_FRAME_RESOLUTION };
    memcpy(bytes, &prefix, sizeof(prefix));
    bytes[9] = 0x80; /* of the sender itself */
    memory_rig_send(h, bytes, length, 8050);
    return length;
}

/* The next datagram that came to the test's socket; its length, 0: none. */
static int32_t hear(memory_rig *h, uint8_t bytes[2048])
{
    int32_t received;
    asi_incoming datagram = { .buffer = bytes, .capacity = 2048 };
    CHECK_I64(fake_receive(&h->net, h->peer, &datagram, 1, &received), AS_OK);
    return received > 0 ? datagram.length : 0;
}

/* Marks the names in a datagram; returns how many. */
static int32_t mark_names(const uint8_t *bytes, int32_t length, bool heard[NAMES])
{
    int32_t count = 0;
    for (int32_t at = 8; at + 24 <= length; at += 24) /* 14 bytes, four of the name, aligned */
    {
        int index;
        char name[5] = "";
        memcpy(name, bytes + at + 14, 4);
        if (1 == sscanf(name, "n%d", &index))
        {
            CHECK(index >= 0 && index < NAMES);
            heard[index] = true;
            count++;
        }
    }
    return count;
}

/* A forged datagram makes us send its source at most three times its size, and our name twice, however many names there are. */
static void a_neighbour_that_is_silent_is_told_little(void)
{
    memory_rig h;
    memory_rig_open(&h, adjust_resolver);
    tell_of_others(&h);
    const int32_t sent = tell_of_oneself(&h);
    int32_t total = 0;
    for (int i = 0; i < 90; i++)
    {
        h.rig.now_ns += 100 * RIG_MS;
        memory_rig_cycles(&h, 1);
        uint8_t bytes[2048] __attribute__((aligned(8)));
        for (int32_t length = hear(&h, bytes); length > 0; length = hear(&h, bytes))
        {
            total += length + ASI_DATAGRAM_HEADERS_LENGTH;
        }
    }
    CHECK(total >= 32);
    CHECK(total <= 3 * (sent + ASI_DATAGRAM_HEADERS_LENGTH) + 2 * (32 + ASI_DATAGRAM_HEADERS_LENGTH));
    memory_rig_close(&h);
}

/* A neighbour that sends what drivers send, its name each second and the names it got, gets all names in three rounds. */
static void a_neighbour_that_tells_is_told_everything(void)
{
    memory_rig h;
    bool heard[NAMES] = { false };
    memory_rig_open(&h, adjust_resolver);
    tell_of_others(&h);
    for (int i = 0; i < 70; i++)
    {
        if (0 == i % 10)
        {
            (void)tell_of_oneself(&h);
        }
        h.rig.now_ns += 100 * RIG_MS;
        memory_rig_cycles(&h, 1);
        uint8_t bytes[2048] __attribute__((aligned(8)));
        for (int32_t length = hear(&h, bytes); length > 0; length = hear(&h, bytes))
        {
            if (mark_names(bytes, length, heard) > 0)
            {
                memory_rig_send(&h, bytes, length, 8050); /* it knows them now, and sends them as well */
            }
        }
    }
    for (int32_t i = 0; i < NAMES; i++)
    {
        CHECK(heard[i]);
    }
    memory_rig_close(&h);
}

/* A driver from the settings, which is told everything, at the test's socket. */
static void adjust_resolver_of_long_datagrams(asi_driver_settings *settings)
{
    adjust_resolver(settings);
    snprintf(settings->resolver_bootstrap, sizeof(settings->resolver_bootstrap), "127.0.0.1:24100");
    settings->mtu_length = AS_MAX_UDP_PAYLOAD_LENGTH;
    settings->initial_window_length = 2 * AS_MAX_UDP_PAYLOAD_LENGTH;
}

enum { LONG_ENTRY = 528, LONG_ENTRIES = (AS_MAX_UDP_PAYLOAD_LENGTH - 8) / LONG_ENTRY };

/* The longest names at the longest MTU: a datagram ends with the last name that fits, and no byte is written beyond it. */
static void names_that_fill_the_longest_datagram(void)
{
    memory_rig h;
    uint8_t bytes[8 + LONG_ENTRY] __attribute__((aligned(8)));
    static uint8_t heard[AS_MAX_UDP_PAYLOAD_LENGTH] __attribute__((aligned(8)));
    char name[513];
    memory_rig_open(&h, adjust_resolver_of_long_datagrams);
    (void)tell_of_oneself(&h);
    memset(name, 'n', sizeof(name));
    name[512] = '\0';
    for (int32_t i = 0; i <= LONG_ENTRIES; i++)
    {
        name[0] = (char)('A' + i / 26);
        name[1] = (char)('a' + i % 26);
        const int32_t length = 8 + put_entry(bytes + 8, 0x0100000Au, 8050, name);
        const asi_frame_prefix prefix = { .frame_length = length, .type = ASI_FRAME_RESOLUTION };
        memcpy(bytes, &prefix, sizeof(prefix));
        memory_rig_send(&h, bytes, length, 8050);
        h.rig.now_ns += 11 * RIG_MS;
        memory_rig_cycles(&h, 1);
    }
    int32_t longest = 0;
    for (int i = 0; i < 30; i++)
    {
        h.rig.now_ns += 100 * RIG_MS;
        memory_rig_cycles(&h, 1);
        asi_incoming datagram = { .buffer = heard, .capacity = sizeof(heard) };
        int32_t received;
        CHECK_I64(fake_receive(&h.net, h.peer, &datagram, 1, &received), AS_OK);
        longest = received > 0 && datagram.length > longest ? datagram.length : longest;
    }
    CHECK_I64(longest, 8 + 24 + LONG_ENTRIES * LONG_ENTRY); /* with the name of the test's own driver */
    memory_rig_close(&h); /* frees the buffer: the allocator finds what was written beyond it */
}

/* A name with a NUL would be kept up to there, and forwarded so: without a character it spoils the rest of the datagram. */
static void names_with_a_nul(void)
{
    static const struct { char name[4]; int32_t entries; } ROWS[] = {
        { "abcd", 2 }, { "\0bcd", 1 }, { "ab\0d", 1 }, { "abc\0", 1 }
    };
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++)
    {
        memory_rig h;
        uint8_t bytes[64] __attribute__((aligned(8)));
        memory_rig_open(&h, adjust_resolver);
        const int32_t length = 8 + put_entry(bytes + 8, 0x0100000Au, 8050, "four");
        const asi_frame_prefix prefix = { .frame_length = length, .type = ASI_FRAME_RESOLUTION };
        memcpy(bytes, &prefix, sizeof(prefix));
        memcpy(bytes + 8 + 14, ROWS[i].name, sizeof(ROWS[i].name));
        memory_rig_send(&h, bytes, length, 8050);
        (void)tell_of_oneself(&h);
        h.rig.now_ns += 100 * RIG_MS;
        memory_rig_cycles(&h, 1);
        CHECK_I64(rig_counter_of_type(&h.rig, ASI_COUNTER_TYPE_RESOLVER_CACHE), ROWS[i].entries);
        CHECK_I64(rig_system(&h.rig, ASI_SYSTEM_INVALID_PACKETS), 2 - ROWS[i].entries);
        memory_rig_close(&h);
    }
}

int main(void)
{
    RUN(names_that_fill_the_longest_datagram);
    RUN(names_with_a_nul);
    RUN(invented_neighbours);
    RUN(a_neighbour_that_is_silent_is_told_little);
    RUN(a_neighbour_that_tells_is_told_everything);
    return 0;
}

/* Captured packets become their payloads, whatever they are cut to. Method: packets and files made by hand lie so that their last
 * byte is the last of a page before one that cannot be read, and are given in each length from 0 to all: a read past the end is a
 * crash in any build. What is whole has one right answer; what is shorter is never more than malformed or cut. */
#include <sys/mman.h>
#include <unistd.h>

#include "aeron_spark/as_capture.h"
#include "capture_packet.h"
#include "check.h"

#define PAGE 65536
#define ROWS 8
#define ADDRESSES 10, 0, 0, 1, 10, 0, 0, 2
#define ADDRESSES_6 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2
#define UDP_ABC 4, 0xd2, 0x23, 0x28, 0, 11, 0, 0, 'a', 'b', 'c' /* ports 1234 and 9000 */
#define TCP_ABC 4, 0xd2, 0x23, 0x28, 1, 2, 3, 4, 0, 0, 0, 0, 0x50, 0x18, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c'
#define TCP_SYN_ABC 4, 0xd2, 0x23, 0x28, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c'
#define TCP_RST_ABC 4, 0xd2, 0x23, 0x28, 1, 2, 3, 4, 0, 0, 0, 0, 0x50, 0x14, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c'
#define IPV4(total, fragment, protocol) 0x45, 0, 0, (total), 0, 9, (fragment), 0, 64, (protocol), 0, 0, ADDRESSES
#define IPV4_UDP IPV4(31, 0, 17), UDP_ABC
#define MAC 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12

/* Bytes that end where memory does. */
static const uint8_t *at_the_end(const uint8_t *bytes, int64_t length)
{
    static uint8_t *pages;
    if (NULL == pages)
    {
        pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(MAP_FAILED != (void *)pages);
        CHECK_I64(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    }
    CHECK(length <= PAGE);
    memcpy(pages + PAGE - length, bytes, (size_t)length);
    return pages + PAGE - length;
}

typedef struct packet_case
{
    const char *name;
    int32_t link;
    int64_t length;
    as_capture_kind kind;
    int64_t payload; /* length */
    uint8_t bytes[128];
} packet_case;

#define PACKET(name, link, kind, payload, ...) \
    { name, link, (int64_t)sizeof((const uint8_t[]){ __VA_ARGS__ }), kind, payload, { __VA_ARGS__ } }

static const packet_case PACKETS[] = {
    PACKET("ethernet", 1, AS_CAPTURE_UDP, 3, MAC, 8, 0, IPV4_UDP),
    PACKET("ethernet with a tail", 1, AS_CAPTURE_UDP, 3, MAC, 8, 0, IPV4_UDP, 0, 0, 0, 0),
    PACKET("vlan", 1, AS_CAPTURE_UDP, 3, MAC, 0x81, 0, 0, 7, 8, 0, IPV4_UDP),
    PACKET("two tags", 1, AS_CAPTURE_UDP, 3, MAC, 0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 8, 0, IPV4_UDP),
    PACKET("cooked", 113, AS_CAPTURE_UDP, 3, 0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0, IPV4_UDP),
    PACKET("cooked 2", 276, AS_CAPTURE_UDP, 3, 8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, IPV4_UDP),
    PACKET("raw", 101, AS_CAPTURE_UDP, 3, IPV4_UDP),
    PACKET("loopback", 0, AS_CAPTURE_UDP, 3, 2, 0, 0, 0, IPV4_UDP),
    PACKET("tcp", 101, AS_CAPTURE_TCP, 3, IPV4(43, 0, 6), TCP_ABC),
    PACKET("tcp syn", 101, AS_CAPTURE_TCP, 3, IPV4(43, 0, 6), TCP_SYN_ABC),
    PACKET("fragment", 101, AS_CAPTURE_FRAGMENT, 11, IPV4(31, 0x20, 17), UDP_ABC),
    PACKET("ipv6", 101, AS_CAPTURE_UDP, 3, 0x60, 0, 0, 0, 0, 11, 17, 64, ADDRESSES_6, UDP_ABC),
    PACKET("ipv6 with options", 101, AS_CAPTURE_UDP, 3, 0x60, 0, 0, 0, 0, 19, 0, 64, ADDRESSES_6, 17, 0, 1, 4, 0, 0, 0, 0,
        UDP_ABC),
    PACKET("ipv6 fragment", 101, AS_CAPTURE_FRAGMENT, 11, 0x60, 0, 0, 0, 0, 19, 44, 64, ADDRESSES_6, 17, 0, 0, 1, 0, 0, 0, 9,
        UDP_ABC),
    PACKET("tcp rst with a text", 101, AS_CAPTURE_TCP, 0, IPV4(43, 0, 6), TCP_RST_ABC),
};

/* Headers that say more than there is, or what cannot be. */
static const packet_case WRONG[] = {
    PACKET("empty", 1, AS_CAPTURE_MALFORMED, 0, 0),
    PACKET("arp", 1, AS_CAPTURE_OTHER, 0, MAC, 8, 6, 0, 1),
    PACKET("icmp", 101, AS_CAPTURE_OTHER, 0, IPV4(24, 0, 1), 8, 0, 0, 0),
    PACKET("version 5", 101, AS_CAPTURE_MALFORMED, 0, 0x55, 0, 0, 20, 0, 9, 0, 0, 64, 17, 0, 0, ADDRESSES),
    PACKET("header below 20", 101, AS_CAPTURE_MALFORMED, 0, 0x44, 0, 0, 31, 0, 9, 0, 0, 64, 17, 0, 0, ADDRESSES, 0, 15, 0,
        0, 1, 2, 3, 4, 5, 6, 7),
    PACKET("header beyond total", 101, AS_CAPTURE_MALFORMED, 0, 0x4f, 0, 0, 31, 0, 9, 0, 0, 64, 17, 0, 0, ADDRESSES, UDP_ABC),
    PACKET("total beyond the packet", 101, AS_CAPTURE_MALFORMED, 0, IPV4(32, 0, 17), UDP_ABC),
    PACKET("udp beyond ip", 101, AS_CAPTURE_MALFORMED, 0, IPV4(31, 0, 17), 4, 0xd2, 0x23, 0x28, 0, 12, 0, 0, 'a', 'b', 'c'),
    PACKET("udp below 8", 101, AS_CAPTURE_MALFORMED, 0, IPV4(31, 0, 17), 4, 0xd2, 0x23, 0x28, 0, 7, 0, 0, 'a', 'b', 'c'),
    PACKET("tcp below 20", 101, AS_CAPTURE_MALFORMED, 0, IPV4(40, 0, 6), 4, 0xd2, 0x23, 0x28, 1, 2, 3, 4, 0, 0, 0, 0, 0x40, 0, 0,
        0, 0, 0, 0, 0),
    PACKET("tcp options beyond ip", 101, AS_CAPTURE_MALFORMED, 0, IPV4(40, 0, 6), 4, 0xd2, 0x23, 0x28, 1, 2, 3, 4, 0, 0, 0, 0,
        0x60, 0, 0, 0, 0, 0, 0, 0),
    PACKET("ipv6 options beyond the packet", 101, AS_CAPTURE_MALFORMED, 0, 0x60, 0, 0, 0, 0, 8, 0, 64, ADDRESSES_6, 17, 9, 0, 0,
        0, 0, 0, 0),
};

static void check_payload(const packet_case *one, const asi_packet *packet, const uint8_t *bytes, int64_t length)
{
    CHECK(packet->start >= 0 && packet->length >= 0 && packet->start + packet->length <= length);
    CHECK_I64(packet->length, one->payload);
    if (packet->length >= 3)
    {
        CHECK(0 == memcmp(bytes + packet->start + packet->length - 3, "abc", 3));
    }
}

static void packets_in_each_length(void)
{
    for (size_t i = 0; i < sizeof(PACKETS) / sizeof(PACKETS[0]); i++)
    {
        const packet_case *one = &PACKETS[i];
        bool was_whole = false;
        for (int64_t length = 0; length <= one->length; length++)
        {
            for (int is_cut = 0; is_cut < 2; is_cut++)
            {
                const uint8_t *bytes = at_the_end(one->bytes, length);
                asi_packet packet;
                CHECK(asi_packet_read_untrusted(one->link, bytes, length, 0 != is_cut, &packet));
                if (packet.kind == one->kind)
                {
                    check_payload(one, &packet, bytes, length);
                    was_whole = true;
                    continue;
                }
                CHECK(!was_whole);
                CHECK_I64(packet.kind, 0 != is_cut ? AS_CAPTURE_CUT : AS_CAPTURE_MALFORMED);
                CHECK_I64(packet.length, 0);
            }
        }
        printf("%s\n", one->name);
        CHECK(was_whole);
    }
}

static void contradictions(void)
{
    for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++)
    {
        const packet_case *one = &WRONG[i];
        asi_packet packet;
        printf("%s\n", one->name);
        CHECK(asi_packet_read_untrusted(one->link, at_the_end(one->bytes, one->length), one->length, false, &packet));
        CHECK_I64(packet.kind, one->kind);
        CHECK_I64(packet.length, 0);
    }
    asi_packet packet;
    CHECK(!asi_packet_read_untrusted(147, PACKETS[0].bytes, 10, false, &packet));
}

static void flow_and_sequence(void)
{
    asi_packet packet;
    CHECK(asi_packet_read_untrusted(101, PACKETS[8].bytes, PACKETS[8].length, false, &packet));
    CHECK_I64(packet.sequence, 0x01020304);
    CHECK_I64(packet.more, 0x18);
    CHECK_I64(packet.flow.source_port, 1234);
    CHECK_I64(packet.flow.target_port, 9000);
    CHECK_I64(packet.flow.protocol, 6);
    CHECK(!packet.flow.is_ipv6 && 10 == packet.flow.source[0] && 2 == packet.flow.target[3]);
    CHECK(asi_packet_read_untrusted(101, PACKETS[9].bytes, PACKETS[9].length, false, &packet));
    CHECK_I64(packet.sequence, 0); /* behind the SYN's 2^32 - 1 */
    CHECK(asi_packet_read_untrusted(101, PACKETS[13].bytes, PACKETS[13].length, false, &packet));
    CHECK_I64(packet.sequence, 9);
    CHECK_I64(packet.more, 0x80000000);
    CHECK(packet.flow.is_ipv6 && 0xff == packet.flow.target[0]);
}

/* -- files ---------------------------------------------------------------------------------------------------------------- */

typedef struct columns
{
    int64_t time_ns[ROWS], start[ROWS], length[ROWS];
    int32_t flow[ROWS];
    uint8_t kind[ROWS];
    uint32_t sequence[ROWS], more[ROWS];
} columns;

static as_capture_error read_file(const uint8_t *bytes, int64_t length, columns *into, int64_t *count, int64_t *consumed)
{
    const as_capture_rows rows = { .time_ns = into->time_ns, .start = into->start, .length = into->length, .flow = into->flow,
        .kind = into->kind, .sequence = into->sequence, .more = into->more };
    as_capture *capture = as_capture_open();
    CHECK(NULL != capture);
    const as_capture_error error =
        as_capture_read(capture, at_the_end(bytes, length), length, true, &rows, ROWS, count, consumed);
    for (int64_t row = 0; row < *count; row++)
    {
        CHECK(into->start[row] >= 0 && into->length[row] >= 0 && into->start[row] + into->length[row] <= length);
        CHECK(into->flow[row] < as_capture_flow_count(capture));
    }
    CHECK(*consumed <= length);
    as_capture_close(capture);
    return error;
}

#define PCAP 0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0
#define PCAP_PACKET(captured, original) 10, 0, 0, 0, 7, 0, 0, 0, (captured), 0, 0, 0, (original), 0, 0, 0
#define SECTION 0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 28, 0, 0, 0
#define INTERFACE(unit) 1, 0, 0, 0, 32, 0, 0, 0, 101, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, (unit), 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0
#define BLOCK(interface, captured) \
    6, 0, 0, 0, 64, 0, 0, 0, (interface), 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, (captured), 0, 0, 0, 31, 0, 0, 0, IPV4_UDP, 0, 64, 0, 0, 0

static void check_file(const uint8_t *bytes, int64_t length, int64_t time_ns)
{
    columns rows;
    int64_t count;
    int64_t consumed;
    CHECK_I64(read_file(bytes, length, &rows, &count, &consumed), AS_CAPTURE_FINE);
    CHECK_I64(count, 1);
    CHECK_I64(consumed, length);
    CHECK_I64(rows.kind[0], AS_CAPTURE_UDP);
    CHECK_I64(rows.time_ns[0], time_ns);
    for (int64_t part = 0; part < length; part++)
    {
        const as_capture_error error = read_file(bytes, part, &rows, &count, &consumed);
        CHECK((AS_CAPTURE_NO_CAPTURE == error) == (part < 24));
        CHECK(part < 24 || AS_CAPTURE_FINE == error || AS_CAPTURE_TRUNCATED == error);
        CHECK_I64(count, 0);
    }
}

static void files_in_each_length(void)
{
    static const uint8_t OLD[] = { PCAP, PCAP_PACKET(31, 31), IPV4_UDP };
    static const uint8_t NEW[] = { SECTION, INTERFACE(9), BLOCK(0, 31) };
    static const uint8_t MILLIS[] = { SECTION, INTERFACE(3), BLOCK(0, 31) };
    static const uint8_t BINARY[] = { SECTION, INTERFACE(0x80), BLOCK(0, 31) };
    static const uint8_t BINARY_FINE[] = { SECTION, INTERFACE(0x80 | 30), BLOCK(0, 31) };
    check_file(OLD, sizeof(OLD), 10000000007);
    check_file(NEW, sizeof(NEW), 7);
    check_file(MILLIS, sizeof(MILLIS), 7000000);
    check_file(BINARY, sizeof(BINARY), 7000000000);
    check_file(BINARY_FINE, sizeof(BINARY_FINE), 6); /* 7e9 / 2^30 */
}

/* Two files of pcap in one, the second big-endian, cut anywhere: each packet that is whole is there. */
static void files_one_behind_the_other(void)
{
    static const uint8_t BOTH[] = { PCAP, PCAP_PACKET(31, 31), IPV4_UDP, 0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 4, 0, 0, 0, 0, 0, 101, 0, 0, 0, 11, 0, 0, 0, 7, 0, 0, 0, 31, 0, 0, 0, 31, IPV4_UDP };
    const int64_t whole = (int64_t)sizeof(BOTH);
    for (int64_t part = 24; part <= whole; part++)
    {
        columns rows;
        int64_t count;
        int64_t consumed;
        const as_capture_error error = read_file(BOTH, part, &rows, &count, &consumed);
        CHECK_I64(count, (part >= 24 + 16 + 31 ? 1 : 0) + (part == whole ? 1 : 0));
        CHECK(AS_CAPTURE_TRUNCATED == error || (AS_CAPTURE_FINE == error && consumed == part));
        CHECK(part < whole || (AS_CAPTURE_UDP == rows.kind[1] && 11000007000 == rows.time_ns[1]));
    }
}

static void files_that_lie(void)
{
    static const uint8_t NO_INTERFACE[] = { SECTION, BLOCK(0, 31) };
    static const uint8_t OTHER_INTERFACE[] = { SECTION, INTERFACE(9), BLOCK(1, 31) };
    static const uint8_t BEYOND[] = { SECTION, INTERFACE(9), BLOCK(0, 33) };
    static const uint8_t UNIT[] = { SECTION, INTERFACE(19), BLOCK(0, 31) };
    static const uint8_t BINARY_UNIT[] = { SECTION, INTERFACE(0xbf), BLOCK(0, 31) };
    static const uint8_t ODD[] = { SECTION, 1, 0, 0, 0, 30, 0, 0, 0, 101, 0, 0, 0 };
    static const uint8_t SHORT[] = { SECTION, 11, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0 };
    static const uint8_t SMALL_INTERFACE[] = { SECTION, 1, 0, 0, 0, 16, 0, 0, 0, 101, 0, 0, 0, 16, 0, 0, 0 };
    static const uint8_t SMALL_PACKET[] = { SECTION, INTERFACE(9), 6, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0,
        0, 0, 0, 0, 28, 0, 0, 0 };
    static const uint8_t SIMPLE_BEYOND[] = { SECTION, INTERFACE(9), 3, 0, 0, 0, 20, 0, 0, 0, 31, 0, 0, 0, 0x45, 0, 0, 31, 20, 0, 0,
        0 };
    static const uint8_t HUGE_PACKET[] = { PCAP, 10, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0x45 };
    static const uint8_t OTHER_END[] = { SECTION, 1, 0, 0, 0, 20, 0, 0, 0, 101, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0 };
    static const struct
    {
        const uint8_t *bytes;
        int64_t length;
    } FILES[] = { { NO_INTERFACE, sizeof(NO_INTERFACE) }, { OTHER_INTERFACE, sizeof(OTHER_INTERFACE) },
        { BEYOND, sizeof(BEYOND) }, { UNIT, sizeof(UNIT) }, { BINARY_UNIT, sizeof(BINARY_UNIT) }, { ODD, sizeof(ODD) },
        { SHORT, sizeof(SHORT) }, { SMALL_INTERFACE, sizeof(SMALL_INTERFACE) }, { SMALL_PACKET, sizeof(SMALL_PACKET) },
        { SIMPLE_BEYOND, sizeof(SIMPLE_BEYOND) }, { HUGE_PACKET, sizeof(HUGE_PACKET) }, { OTHER_END, sizeof(OTHER_END) } };
    for (size_t i = 0; i < sizeof(FILES) / sizeof(FILES[0]); i++)
    {
        columns rows;
        int64_t count;
        int64_t consumed;
        printf("file %zu\n", i);
        CHECK_I64(read_file(FILES[i].bytes, FILES[i].length, &rows, &count, &consumed), AS_CAPTURE_BAD_BLOCK);
        CHECK_I64(count, 0);
    }
}

/* Interfaces and flows have a most. */
static void what_a_file_can_make_us_keep(void)
{
    static const uint8_t HEAD[] = { SECTION };
    static const uint8_t MORE[] = { INTERFACE(9) };
    int64_t count;
    int64_t consumed;
    as_capture *capture = as_capture_open();
    CHECK(NULL != capture);
    CHECK_I64(as_capture_read(capture, HEAD, sizeof(HEAD), false, &(as_capture_rows){ 0 }, ROWS, &count, &consumed), AS_CAPTURE_FINE);
    for (int64_t i = 0; i <= AS_CAPTURE_MAX_INTERFACES; i++)
    {
        CHECK_I64(as_capture_read(capture, MORE, sizeof(MORE), false, &(as_capture_rows){ 0 }, ROWS, &count, &consumed),
            i < AS_CAPTURE_MAX_INTERFACES ? AS_CAPTURE_FINE : AS_CAPTURE_TOO_MANY_INTERFACES);
    }
    as_capture_flow flow = { .protocol = 17 };
    for (int32_t i = 0; i < AS_CAPTURE_MAX_FLOWS; i++)
    {
        flow.source_port = (uint16_t)i;
        CHECK_I64(as_capture_flow_of(capture, &flow), i);
    }
    CHECK_I64(as_capture_flow_of(capture, &flow), AS_CAPTURE_MAX_FLOWS - 1);
    flow.target_port = 1;
    CHECK_I64(as_capture_flow_of(capture, &flow), -1);
    CHECK(NULL == as_capture_flow_at(capture, AS_CAPTURE_MAX_FLOWS));
    CHECK(NULL == as_capture_flow_at(capture, -1));
    as_capture_close(capture);
}

int main(void)
{
    RUN(packets_in_each_length);
    RUN(contradictions);
    RUN(flow_and_sequence);
    RUN(files_in_each_length);
    RUN(files_one_behind_the_other);
    RUN(files_that_lie);
    RUN(what_a_file_can_make_us_keep);
    return 0;
}

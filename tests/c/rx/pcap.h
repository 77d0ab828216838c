/* Reads the UDP datagrams of a capture in tests/golden/udp: Ethernet, IPv4 or IPv6, no fragments. Golden files are trusted except
 * for their lengths. */
#ifndef AS_TESTS_RX_PCAP_H
#define AS_TESTS_RX_PCAP_H

#include "support.h"

#define PCAP_HEADER_LENGTH 24
#define PCAP_RECORD_LENGTH 16
#define ETHERNET_LENGTH 14
#define UDP_LENGTH 8

typedef struct pcap_reader
{
    uint8_t *bytes; /* owned */
    int64_t length;
    int64_t at;
    int64_t start_ns;
} pcap_reader;

typedef struct pcap_datagram
{
    int64_t time_ns; /* since the first */
    uint16_t from_port;
    uint16_t to_port;
    int32_t length;
    uint8_t bytes[65536] __attribute__((aligned(8)));
} pcap_datagram;

static inline pcap_reader pcap_open(const char *name)
{
    pcap_reader reader = { .at = PCAP_HEADER_LENGTH, .start_ns = -1 };
    reader.bytes = golden_load(name, &reader.length);
    CHECK_I64((uint32_t)asi_get_i32(reader.bytes), 0xA1B2C3D4u);
    CHECK_I64(asi_get_i32(reader.bytes + 20), 1);
    return reader;
}

static inline void pcap_close(pcap_reader *reader) { free(reader->bytes); }

static inline uint16_t pcap_u16(const uint8_t *from) { return (uint16_t)(from[0] << 8 | from[1]); }

static inline bool pcap_next(pcap_reader *reader, pcap_datagram *datagram)
{
    if (reader->at + PCAP_RECORD_LENGTH > reader->length)
    {
        return false;
    }
    const uint8_t *record = reader->bytes + reader->at;
    const int64_t captured = asi_get_i32(record + 8);
    const int64_t time_ns = (int64_t)asi_get_i32(record) * 1000000000LL + (int64_t)asi_get_i32(record + 4) * 1000LL;
    CHECK(captured > 0 && reader->at + PCAP_RECORD_LENGTH + captured <= reader->length);
    reader->at += PCAP_RECORD_LENGTH + captured;
    reader->start_ns = reader->start_ns < 0 ? time_ns : reader->start_ns;
    datagram->time_ns = time_ns - reader->start_ns;
    const uint8_t *ip = record + PCAP_RECORD_LENGTH + ETHERNET_LENGTH;
    const uint8_t *udp = ip + (6 == ip[0] >> 4 ? 40 : (ip[0] & 15) * 4);
    datagram->from_port = pcap_u16(udp);
    datagram->to_port = pcap_u16(udp + 2);
    datagram->length = pcap_u16(udp + 4) - UDP_LENGTH;
    CHECK(datagram->length >= 0 && udp + UDP_LENGTH + datagram->length <= reader->bytes + reader->at);
    memcpy(datagram->bytes, udp + UDP_LENGTH, (size_t)datagram->length);
    return true;
}

#endif

/* Reads the headers of a captured packet: link, VLAN tags, IP with its extensions, UDP or TCP.
 *
 * Each header is read only after its length is checked against the bytes that are there. A length that IP or UDP states must lie
 * within what encloses it; 0 is what network cards that segment by themselves leave there, and means all of it. Where the capture
 * cut the packet, too few bytes are no contradiction. Pure functions; any thread. */
#include "capture_packet.h"

enum
{
    LINK_LOOPBACK = 0,
    LINK_ETHERNET = 1,
    LINK_RAW_BSD = 12,
    LINK_RAW_OPENBSD = 14,
    LINK_RAW = 101,
    LINK_LOOP = 108,
    LINK_COOKED = 113,
    LINK_IPV4 = 228,
    LINK_IPV6 = 229,
    LINK_COOKED_2 = 276
};

enum
{
    ETHER_IPV4 = 0x0800,
    ETHER_IPV6 = 0x86dd,
    ETHER_VLAN = 0x8100,
    ETHER_PROVIDER = 0x88a8,
    ETHER_QINQ = 0x9100
};

enum
{
    IP_HOP_BY_HOP = 0,
    IP_TCP = 6,
    IP_UDP = 17,
    IP_ROUTING = 43,
    IP_FRAGMENT = 44,
    IP_AUTHENTICATION = 51,
    IP_DESTINATION = 60
};

#define TCP_SYN 2
#define TCP_RST 4
#define MOST_TAGS 8
#define MOST_EXTENSIONS 16
#define FRAGMENT_MORE 0x80000000U

/* What is left to read of a packet. */
typedef struct view
{
    const uint8_t *bytes;
    int64_t at;
    int64_t end;
    bool is_cut;
} view;

static void end_as(asi_packet *packet, as_capture_kind kind) { *packet = (asi_packet){ .kind = kind }; }

/* False, and the packet is done, if the bytes are not there. */
static bool needs(const view *from, int64_t count, asi_packet *packet)
{
    if (from->end - from->at >= count)
    {
        return true;
    }
    end_as(packet, from->is_cut ? AS_CAPTURE_CUT : AS_CAPTURE_MALFORMED);
    return false;
}

/* Ends the view after `length` bytes from its position, 0: where it ends. False, and the packet is done, if they are not there. */
static bool narrow(view *from, int64_t length, asi_packet *packet)
{
    if (0 == length)
    {
        if (from->is_cut)
        {
            end_as(packet, AS_CAPTURE_CUT);
            return false;
        }
        return true;
    }
    if (!needs(from, length, packet))
    {
        return false;
    }
    from->end = from->at + length;
    from->is_cut = false;
    return true;
}

static void read_udp(view *from, asi_packet *packet)
{
    if (!needs(from, 8, packet))
    {
        return;
    }
    const uint8_t *header = from->bytes + from->at;
    const int64_t length = asi_big_16(header + 4);
    if (0 != length && length < 8)
    {
        end_as(packet, AS_CAPTURE_MALFORMED);
        return;
    }
    if (narrow(from, length, packet))
    {
        packet->flow.source_port = (uint16_t)asi_big_16(header);
        packet->flow.target_port = (uint16_t)asi_big_16(header + 2);
        packet->kind = AS_CAPTURE_UDP;
        packet->start = from->at + 8;
        packet->length = from->end - packet->start;
    }
}

static void read_tcp(view *from, asi_packet *packet)
{
    if (!needs(from, 20, packet))
    {
        return;
    }
    const uint8_t *header = from->bytes + from->at;
    const int64_t length = (header[12] >> 4) * 4;
    if (length < 20)
    {
        end_as(packet, AS_CAPTURE_MALFORMED);
        return;
    }
    if (needs(from, length, packet))
    {
        packet->flow.source_port = (uint16_t)asi_big_16(header);
        packet->flow.target_port = (uint16_t)asi_big_16(header + 2);
        /* Spec: RFC 9293, 3.4 - a SYN has a sequence number of its own, before that of the first byte. */
        packet->sequence = asi_big_32(header + 4) + (0 != (header[13] & TCP_SYN) ? 1 : 0);
        packet->more = header[13];
        packet->kind = AS_CAPTURE_TCP;
        packet->start = from->at + length;
        /* Spec: RFC 9293, SHLD-2 - a RST can carry a text that explains it, which is none of the connection's bytes. */
        packet->length = 0 != (header[13] & TCP_RST) ? 0 : from->end - packet->start;
    }
}

/* What IP carries. `from` ends where the IP packet does. */
static void read_transport(view *from, uint8_t protocol, asi_packet *packet)
{
    packet->flow.protocol = protocol;
    switch (protocol)
    {
        case IP_UDP: read_udp(from, packet); break;
        case IP_TCP: read_tcp(from, packet); break;
        default: end_as(packet, AS_CAPTURE_OTHER); break;
    }
}

static void read_fragment(const view *from, uint8_t protocol, uint32_t ident, uint32_t offset, bool has_more, asi_packet *packet)
{
    packet->flow.protocol = protocol;
    packet->kind = AS_CAPTURE_FRAGMENT;
    packet->start = from->at;
    packet->length = from->end - from->at;
    packet->sequence = ident;
    packet->more = offset | (has_more ? FRAGMENT_MORE : 0);
}

static void read_ipv4(view *from, asi_packet *packet)
{
    if (!needs(from, 20, packet))
    {
        return;
    }
    const uint8_t *header = from->bytes + from->at;
    const int64_t header_length = (header[0] & 15) * 4;
    const int64_t total = asi_big_16(header + 2);
    if (4 != header[0] >> 4 || header_length < 20 || (0 != total && total < header_length))
    {
        end_as(packet, AS_CAPTURE_MALFORMED);
        return;
    }
    if (!narrow(from, total, packet) || !needs(from, header_length, packet))
    {
        return;
    }
    memcpy(packet->flow.source, header + 12, 4);
    memcpy(packet->flow.target, header + 16, 4);
    const uint32_t fragment = asi_big_16(header + 6);
    from->at += header_length;
    if (0 != (fragment & 0x3fff))
    {
        read_fragment(from, header[9], asi_big_16(header + 4), (fragment & 0x1fff) * 8, 0 != (fragment & 0x2000), packet);
        return;
    }
    read_transport(from, header[9], packet);
}

/* Skips extensions of IPv6 up to what it carries. */
static void read_extensions(view *from, uint8_t protocol, asi_packet *packet)
{
    for (int i = 0; i < MOST_EXTENSIONS; i++)
    {
        const bool is_extension = IP_HOP_BY_HOP == protocol || IP_ROUTING == protocol || IP_DESTINATION == protocol ||
            IP_AUTHENTICATION == protocol || IP_FRAGMENT == protocol;
        if (!is_extension)
        {
            read_transport(from, protocol, packet);
            return;
        }
        if (!needs(from, 8, packet))
        {
            return;
        }
        const uint8_t *header = from->bytes + from->at;
        const int64_t length = IP_FRAGMENT == protocol ? 8 : IP_AUTHENTICATION == protocol ? (header[1] + 2) * 4 : (header[1] + 1) * 8;
        if (!needs(from, length, packet))
        {
            return;
        }
        from->at += length;
        if (IP_FRAGMENT == protocol && 0 != (asi_big_16(header + 2) & 0xfff9))
        {
            const uint32_t fragment = asi_big_16(header + 2);
            read_fragment(from, header[0], asi_big_32(header + 4), fragment & 0xfff8, 0 != (fragment & 1), packet);
            return;
        }
        protocol = header[0];
    }
    end_as(packet, AS_CAPTURE_MALFORMED);
}

static void read_ipv6(view *from, asi_packet *packet)
{
    if (!needs(from, 40, packet))
    {
        return;
    }
    const uint8_t *header = from->bytes + from->at;
    if (6 != header[0] >> 4)
    {
        end_as(packet, AS_CAPTURE_MALFORMED);
        return;
    }
    packet->flow.is_ipv6 = true;
    memcpy(packet->flow.source, header + 8, 16);
    memcpy(packet->flow.target, header + 24, 16);
    from->at += 40;
    if (narrow(from, asi_big_16(header + 4), packet))
    {
        read_extensions(from, header[6], packet);
    }
}

static void read_ip(view *from, asi_packet *packet)
{
    if (!needs(from, 1, packet))
    {
        return;
    }
    if (6 == from->bytes[from->at] >> 4)
    {
        read_ipv6(from, packet);
    }
    else
    {
        read_ipv4(from, packet);
    }
}

static void read_ether_type(view *from, uint32_t type, asi_packet *packet)
{
    for (int i = 0; i < MOST_TAGS && (ETHER_VLAN == type || ETHER_PROVIDER == type || ETHER_QINQ == type); i++)
    {
        if (!needs(from, 4, packet))
        {
            return;
        }
        type = asi_big_16(from->bytes + from->at + 2);
        from->at += 4;
    }
    if (ETHER_IPV4 == type)
    {
        read_ipv4(from, packet);
    }
    else if (ETHER_IPV6 == type)
    {
        read_ipv6(from, packet);
    }
    else
    {
        end_as(packet, AS_CAPTURE_OTHER);
    }
}

/* A link's header of `length` bytes, with the type of what follows at `type_at`. */
static void read_link(view *from, int64_t length, int64_t type_at, asi_packet *packet)
{
    if (needs(from, length, packet))
    {
        from->at = length;
        read_ether_type(from, asi_big_16(from->bytes + type_at), packet);
    }
}

bool asi_packet_read_untrusted(int32_t link, const uint8_t *bytes, int64_t length, bool is_cut, asi_packet *packet)
{
    view from = { .bytes = bytes, .at = 0, .end = length, .is_cut = is_cut };
    *packet = (asi_packet){ .kind = AS_CAPTURE_OTHER };
    switch (link)
    {
        case LINK_ETHERNET: read_link(&from, 14, 12, packet); break;
        case LINK_COOKED: read_link(&from, 16, 14, packet); break;
        case LINK_COOKED_2: read_link(&from, 20, 0, packet); break;
        case LINK_LOOPBACK:
        case LINK_LOOP:
            /* The address family has another number on each system, and an order of its own: IP's version tells more. */
            if (needs(&from, 4, packet))
            {
                from.at = 4;
                read_ip(&from, packet);
            }
            break;
        case LINK_RAW:
        case LINK_RAW_BSD:
        case LINK_RAW_OPENBSD:
        case LINK_IPV4:
        case LINK_IPV6: read_ip(&from, packet); break;
        default: return false;
    }
    return true;
}

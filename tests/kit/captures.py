"""Captures of packets: from a host's interface into a pcap file, and files made of packets by hand.

An AF_PACKET socket of the host's namespace queues each packet; `Sniffer.save` reads them out after the traffic, so that
nothing depends on when another program has started or flushed. Needs root.
"""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
from collections.abc import Iterable
from pathlib import Path

from aeron_spark.closing import Closing
from tests.kit.hosts import Host
from tests.kit.payload import payloads

ETHERNET, RAW, LOOPBACK, COOKED, COOKED_2 = 1, 101, 0, 113, 276
_ALL = 0x0003
_NEW_NET = 0x40000000
_BUFFER_FORCE = 33
_BUFFER = 64 << 20
_TIMESTAMP = 35
_LONGEST = 65_536 + 64
START_NS = 1_790_000_000 * 10**9
#: A packet and its time in ns since 1970.
Packet = tuple[int, bytes]


class Sniffer(Closing):
    """Queues what an interface of a host sees, from its opening on."""

    def __init__(self, host: Host, interface: str = "eth") -> None:
        opened: list[socket.socket] = []

        def run() -> None:
            # The namespace is the thread's, which ends here; a socket keeps that of its making.
            with Path(f"/run/netns/{host.name}").open("rb") as there:
                if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), _NEW_NET):
                    raise OSError(ctypes.get_errno(), f"cannot enter {host.name}")
            made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
            made.setsockopt(socket.SOL_SOCKET, _BUFFER_FORCE, _BUFFER)
            made.setsockopt(socket.SOL_SOCKET, _TIMESTAMP, 1)
            made.bind((interface, 0))
            made.setblocking(False)  # noqa: FBT003
            opened.append(made)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        (self._socket,) = opened

    def packets(self) -> list[Packet]:
        """What was seen since the last call."""
        found = []
        while True:
            try:
                packet, ((_, _, at),), *_ = self._socket.recvmsg(_LONGEST, _LONGEST)
            except BlockingIOError:
                return found
            seconds, rest = struct.unpack("qq", at)
            found.append((seconds * 10**9 + rest, packet))

    def save(self, path: Path) -> Path:
        """Write what was seen to a pcap file."""
        return write_pcap(path, self.packets())

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def write_pcap(
    path: Path,
    packets: Iterable[Packet],
    *,
    link: int = ETHERNET,
    order: str = "<",
    nanoseconds: bool = True,
    snap: int = 262_144,
) -> Path:
    """A pcap file; of each packet `snap` bytes at most."""
    magic, unit = (0xA1B23C4D, 1) if nanoseconds else (0xA1B2C3D4, 1000)
    parts = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snap, link)]
    for at_ns, packet in packets:
        kept = packet[:snap]
        seconds, rest = divmod(at_ns, 10**9)
        parts += [struct.pack(f"{order}IIII", seconds, rest // unit, len(kept), len(packet)), kept]
    path.write_bytes(b"".join(parts))
    return path


def udp(body: bytes, port: int = 9000, *, to: str = "10.0.0.2", source: tuple[str, int] = ("10.0.0.1", 1234)) -> bytes:
    """An IPv4 packet with a UDP datagram, without checksums."""
    content = struct.pack(">HHHH", source[1], port, 8 + len(body), 0) + body
    return ipv4(content, 17, source[0], to)


def ipv4(content: bytes, protocol: int, source: str, to: str, *, ident: int = 0, fragment: int = 0) -> bytes:
    """An IPv4 packet; `fragment`: its flags and its offset in 8 bytes."""
    addresses = socket.inet_aton(source) + socket.inet_aton(to)
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(content), ident, fragment, 64, protocol, 0) + addresses + content


SESSION, STREAM, INITIAL_TERM = 4711, 1001, 7


def data_frame(
    body: bytes, offset: int, *, flags: int = 0xC0, kind: int = 1, term: int = INITIAL_TERM, session: int = SESSION
) -> bytes:
    """A frame of a term, with its alignment."""
    header = struct.pack("<iBBHiiiiq", 32 + len(body), 0, flags, kind, offset, session, STREAM, term, 0)
    return header + body + bytes(-len(body) % 32)


def setup_frame(
    *, term_length: int = 65_536, offset: int = 0, term: int = INITIAL_TERM, session: int = SESSION
) -> bytes:
    """The frame that tells a stream's initial term and the length of its terms."""
    return struct.pack("<iBBHiiiiiiii", 40, 0, 0, 5, offset, session, STREAM, INITIAL_TERM, term, term_length, 1408, 0)


def ipv6(content: bytes, protocol: int, source: str, to: str, *, extensions: bytes = b"") -> bytes:
    """An IPv6 packet; extensions end with the protocol of what follows, and begin with hop-by-hop options."""
    addresses = socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, to)
    first = 0 if extensions else protocol
    return struct.pack(">IHBB", 6 << 28, len(extensions) + len(content), first, 64) + addresses + extensions + content


def tcp(body: bytes, sequence: int, *, flags: int = 0x10, ports: tuple[int, int] = (40_000, 9000)) -> bytes:
    """An IPv4 packet with a TCP segment, without checksums."""
    header = struct.pack(">HHIIBBHHH", *ports, sequence % 2**32, 0, 0x50, flags, 65_535, 0, 0)
    return ipv4(header + body, 6, "10.0.0.1", "10.0.0.2")


#: Headers of links before an IPv4 packet.
LINKS = {
    "ethernet": (ETHERNET, bytes(12) + b"\x08\x00"),
    "vlan": (ETHERNET, bytes(12) + b"\x81\x00\x00\x07\x08\x00"),
    "qinq": (ETHERNET, bytes(12) + b"\x88\xa8\x00\x07\x81\x00\x00\x08\x08\x00"),
    "cooked": (COOKED, bytes(14) + b"\x08\x00"),
    "cooked 2": (COOKED_2, b"\x08\x00" + bytes(18)),
    "raw": (RAW, b""),
    "loopback": (LOOPBACK, b"\x02\x00\x00\x00"),
}


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """A block of pcapng."""
    size = 12 + len(body) + -len(body) % 4
    return struct.pack(f"{order}II", kind, size) + body + bytes(-len(body) % 4) + struct.pack(f"{order}I", size)


def write_pcapng(
    path: Path,
    packets: Iterable[Packet],
    *,
    link: int = ETHERNET,
    order: str = "<",
    unit: int = 9,
    offset_s: int = 0,
) -> Path:
    """A pcapng file with times in 10**-unit seconds, or 2**-n for a unit of 128 + n, since `offset_s`."""
    units_a_second = 2 ** (unit - 128) if unit >= 128 else 10**unit
    option = struct.pack(f"{order}HHB3x", 9, 1, unit) + struct.pack(f"{order}HHqHH", 14, 8, offset_s, 0, 0)
    parts = [
        block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order),
        block(1, struct.pack(f"{order}HHI", link, 0, 0) + option, order),
        block(5, struct.pack(f"{order}III", 0, 0, 0), order),
    ]
    for at_ns, packet in packets:
        time = -(-(at_ns - offset_s * 10**9) * units_a_second // 10**9)
        head = struct.pack(f"{order}IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(packet), len(packet))
        parts.append(block(6, head + packet, order))
    path.write_bytes(b"".join(parts))
    return path


def stream(count: int = 200, *, sizes: tuple[int, ...] = (100, 0, 700, 5)) -> tuple[list[bytes], list[bytes]]:
    """Messages, and a datagram of the setup and of each frame; terms of 64 KiB end with padding."""
    messages = list(payloads(1, count, sizes))
    datagrams, offset, term = [setup_frame()], 0, INITIAL_TERM
    for message in messages:
        frame = data_frame(message, offset, term=term)
        if offset + len(frame) > 65_536:
            padding = bytearray(data_frame(b"", offset, kind=0, term=term))
            padding[:4] = struct.pack("<i", 65_536 - offset)
            datagrams.append(bytes(padding))
            offset, term = 0, term + 1
            frame = data_frame(message, 0, term=term)
        datagrams.append(frame)
        offset = (offset + len(frame)) % 65_536
        term += offset == 0
    return messages, datagrams


def timed(packets: Iterable[bytes]) -> list[Packet]:
    """A microsecond apart."""
    return [(START_NS + 1000 * number, packet) for number, packet in enumerate(packets)]


def sofh(message: bytes) -> bytes:
    """A message behind a Simple Open Framing Header."""
    return struct.pack(">IH", 6 + len(message), 0x5BE0) + message

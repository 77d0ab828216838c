"""`aeron-spark archive import`, its files and packets: each container, unit of time and link, fragments, cuts and damage."""

from __future__ import annotations

import fcntl
import gzip
import io
import itertools
import os
import random
import struct
import termios
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from aeron_spark._native._lib import lib
from aeron_spark.archive.segments import Folder
from aeron_spark.captures import compressed, import_capture
from aeron_spark.captures.files import CaptureFile
from aeron_spark.errors import AeronError, UsageError
from aeron_spark.tables import scan
from tests.kit import captures
from tests.kit.captures import LINKS, RAW, START_NS, sofh, stream, timed, udp, write_pcap, write_pcapng
from tests.kit.imported import SEGMENT, values, verified
from tests.kit.wait import wait_until


def written_as_pcap(path: Path, packets: list[captures.Packet], link: int) -> Path:
    return write_pcap(path, packets, link=link)


CONTAINERS: dict[str, Callable[[Path, list[captures.Packet], int], Path]] = {
    "pcap": written_as_pcap,
    "microseconds": lambda path, packets, link: write_pcap(path, packets, link=link, nanoseconds=False),
    "big-endian": lambda path, packets, link: write_pcap(path, packets, link=link, order=">"),
    "pcapng": lambda path, packets, link: write_pcapng(path, packets, link=link),
    "pcapng big-endian": lambda path, packets, link: write_pcapng(path, packets, link=link, order=">", unit=6),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("link", LINKS)
def test_each_container_and_link(container: str, link: str, tmp_path: Path) -> None:
    messages, datagrams = stream(20)
    kind, header = LINKS[link]
    capture = CONTAINERS[container](tmp_path / "capture", timed([header + udp(one) for one in datagrams]), kind)
    report = import_capture(capture, tmp_path / "folder", segment_length=SEGMENT)
    assert (report.packets, report.imported, report.problems) == (21, 20, [])
    assert values(tmp_path / "folder") == {0: messages}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("captured", ["udp", "tcp"])
def test_times_of_each_container(captured: str, container: str, tmp_path: Path) -> None:
    """Right to the file's unit, also beyond 2038; where packets come out of order, those of the time index do not decrease."""
    unit = 1000 if container in {"microseconds", "pcapng big-endian"} else 1
    offsets = [0, 1_001, 999_999_999, 20_000_000_123, 5_000, 30_000_000_000, 30 * 365 * 86_400 * 10**9 + 1_999]
    offsets = [offset // unit * unit for offset in offsets]
    packets = []
    for number, offset in enumerate(offsets):
        body = sofh(b"one")
        sent = captures.tcp(body, 1 + number * len(body)) if captured == "tcp" else udp(body)
        packets.append((START_NS + offset, sent))
    capture = CONTAINERS[container](tmp_path / "capture", packets, RAW)
    import_capture(capture, tmp_path / "folder", captured=captured, framing="sofh")
    table = scan(tmp_path / "folder").to_table(columns=["position", "reserved_value"])
    times = list(itertools.accumulate((START_NS + offset for offset in offsets), max))
    assert table["reserved_value"].to_pylist() == times
    with Folder(tmp_path / "folder") as folder:
        index = folder.times_at(0, table["position"].to_numpy()).cast(pa.int64()).to_pylist()
    assert index == sorted(index)
    assert [0 <= at - one < 10_000_000 for one, at in zip(index, times, strict=True)] == [True] * len(times)


@pytest.mark.parametrize("unit", [3, 9, 12, 18, 128 + 20, 128 + 29, 128 + 30, 128 + 31, 128 + 40, 128 + 61])
@pytest.mark.parametrize("offset_s", [0, START_NS // 10**9, -5])
def test_each_unit_of_time(unit: int, offset_s: int, tmp_path: Path) -> None:
    """Fractions of a second are right to a ns, or to the unit."""
    begin = max(offset_s, 0) + 2
    times = [begin * 10**9 + rest * 10**6 for rest in (0, 250, 500, 999)]
    packets = [(at_ns, udp(b"one")) for at_ns in times]
    capture = write_pcapng(tmp_path / "capture", packets, link=RAW, unit=unit, offset_s=offset_s)
    import_capture(capture, tmp_path / "folder", captured="udp")
    got = scan(tmp_path / "folder").to_table(columns=["reserved_value"])["reserved_value"].to_pylist()
    error_ns = 10**9 // 2 ** (unit - 128) + 1 if unit >= 128 else 0
    assert [0 <= got_ns - at_ns <= error_ns for got_ns, at_ns in zip(got, times, strict=True)] == [True] * 4


def test_each_interface_of_each_section_has_its_own_link_and_unit_of_time(tmp_path: Path) -> None:
    """More of them than a host has, as of many captures that were merged."""
    content, wanted = b"", []
    for order, count in (("<", 1000), (">", 2)):
        content += captures.block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)
        links = [list(LINKS.values())[number % len(LINKS)] for number in range(count)]
        units = [(3, 6, 9, 128 + 30)[number % 4] for number in range(count)]
        offsets = [number * 7 - 500 for number in range(count)]
        for (link, _), unit, offset_s in zip(links, units, offsets, strict=True):
            option = struct.pack(f"{order}HHB3x", 9, 1, unit) + struct.pack(f"{order}HHq", 14, 8, offset_s)
            content += captures.block(1, struct.pack(f"{order}HHI", link, 0, 0) + option, order)
        for number in (count - 1, 0, *range(1, count, 97)):
            begin = len(wanted) + 1_000_000
            wanted.append(begin * 10**9 + 10**9 // 2)
            a_second = 2**30 if units[number] >= 128 else 10 ** units[number]
            time = (begin - offsets[number]) * a_second + a_second // 2
            packet = links[number][1] + udp(b"one")
            head = struct.pack(f"{order}IIIII", number, time >> 32, time & 0xFFFFFFFF, len(packet), len(packet))
            content += captures.block(6, head + packet, order)
    capture = tmp_path / "capture"
    capture.write_bytes(content)
    report = import_capture(capture, tmp_path / "folder", captured="udp")
    assert (report.imported, report.problems) == (len(wanted), [])
    got = scan(tmp_path / "folder").to_table(columns=["reserved_value"])["reserved_value"].to_pylist()
    assert got == wanted


def test_more_interfaces_than_are_kept(tmp_path: Path) -> None:
    capture = write_pcapng(tmp_path / "capture", timed([udp(b"one")]), link=RAW)
    more = captures.block(1, struct.pack("<HHI", RAW, 0, 0)) * 65_536
    capture.write_bytes(capture.read_bytes() + more)
    report = import_capture(capture, tmp_path / "folder", captured="udp")
    assert report.imported == 1
    assert "has more than 65536 interfaces; make equal ones one, for example with mergecap " in report.problems[0]


def in_parts(codec: str, parts: list[bytes], path: Path) -> list[int]:
    """A compressed file of which each part ends where a block does; where those ends are."""
    ends = []
    with path.open("wb") as file, pa.PythonFile(file, "w") as raw, pa.CompressedOutputStream(raw, codec) as stream:
        for part in parts:
            stream.write(part)
            stream.flush()
            ends.append(file.tell())
    return ends


@pytest.mark.parametrize("damage", ["none", "cut", "block", "end"])
@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_compressed(
    codec: str, damage: str, tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is before the damage is there, wherever blocks end; the report says how far it was read."""
    messages, datagrams = stream(4000)
    plain = write_pcap(tmp_path / "plain", timed([udp(one) for one in datagrams]), link=RAW).read_bytes()
    cuts = [0, *sorted(rng.sample(range(200_000, len(plain)), 5)), len(plain)]
    parts = [plain[begin:end] for begin, end in itertools.pairwise(cuts)]
    capture = tmp_path / "capture"
    ends = in_parts(codec, parts, capture)
    content = capture.read_bytes()
    if damage == "cut":
        content = content[: ends[3]]
    elif damage == "block":
        content = content[: ends[3]] + b"\x07" + content[ends[3] + 1 :]  # of a kind that there is not
    elif damage == "end":
        content = content[:-1] if codec == "zstd" else content[:-5] + bytes([content[-5] ^ 1]) + content[-4:]
    capture.write_bytes(content)
    whole = cuts[4] if damage in {"cut", "block"} else len(plain)
    with monkeypatch.context() as patch:  # the noise has no byte of where the data end
        patch.setattr(compressed.os, "urandom", lambda size: bytes([plain[whole - 1] ^ 1]) * size)
        report = import_capture(capture, tmp_path / "folder")
    assert [f"can't be read further than byte {whole:,}" in one for one in report.problems] == [True] * (
        damage != "none"
    )
    counted = write_pcap(tmp_path / "counted", timed([udp(one) for one in datagrams]), link=RAW)
    counted.write_bytes(plain[:whole])
    expected = import_capture(counted, tmp_path / "counted-folder")
    assert report.packets == expected.packets
    assert values(tmp_path / "folder") == values(tmp_path / "counted-folder")
    assert damage in {"cut", "block"} or values(tmp_path / "folder") == {0: messages}


def test_gzip_that_is_cut_anywhere(tmp_path: Path, rng: random.Random) -> None:
    """Each byte counts."""
    _, datagrams = stream(100)
    plain = write_pcap(tmp_path / "plain", timed([udp(one) for one in datagrams]), link=RAW).read_bytes()
    content = gzip.compress(plain)
    for length in rng.sample(range(200, len(content) - 8), 40):
        capture = tmp_path / "capture"
        capture.write_bytes(content[:length])
        held = zlib.decompressobj(31).decompress(content[:length])
        with CaptureFile(capture) as opened:
            assert sum(map(len, opened.batches())) == packets_in(held)
            assert f"byte {len(held):,} of what it holds" in opened.problems[0]


def packets_in(pcap: bytes) -> int:
    """How many are whole."""
    at, count = 24, 0
    while at + 16 <= len(pcap) and (at := at + 16 + int.from_bytes(pcap[at + 8 : at + 12], "little")) <= len(pcap):
        count += 1
    return count


def skipped(body: bytes) -> bytes:
    """A frame of zstd that readers skip."""
    return struct.pack("<II", 0x184D2A53, len(body)) + body


@pytest.mark.parametrize("codec", ["gzip", "zstd", "none"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_files_one_behind_the_other(codec: str, order: str, tmp_path: Path) -> None:
    """As of a rotation: members of gzip with zeros behind them, frames of zstd with others between them, a header in each."""
    messages, datagrams = stream(400)
    packets = timed([udp(one) for one in datagrams])
    parts = [
        write_pcap(tmp_path / "part", packets[:100], link=RAW).read_bytes(),
        write_pcap(
            tmp_path / "part", [(at, LINKS["ethernet"][1] + one) for at, one in packets[100:300]], order=order
        ).read_bytes(),
        write_pcap(tmp_path / "part", packets[300:], link=RAW, nanoseconds=False).read_bytes(),
    ]
    capture = tmp_path / "capture"
    if codec == "gzip":
        capture.write_bytes(b"".join(gzip.compress(part) + bytes(70_000 * row) for row, part in enumerate(parts)))
    elif codec == "zstd":
        packed = [pa.compress(part, "zstd", asbytes=True) for part in parts]
        capture.write_bytes(b"".join(skipped(bytes(row)) + part for row, part in enumerate(packed)) + skipped(b"end"))
    else:
        capture.write_bytes(b"".join(parts))
    report = import_capture(capture, tmp_path / "folder", segment_length=SEGMENT)
    assert (report.packets, report.malformed, report.problems) == (len(datagrams), 0, [])
    assert values(tmp_path / "folder") == {0: messages}


@pytest.mark.parametrize(
    ("codec", "tail"), [("gzip", b"\0\0tail"), ("zstd", b"tail of it"), ("zstd", skipped(b"tail")[:-1])]
)
def test_what_follows_compressed_data_is_told(
    codec: str, tail: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages, datagrams = stream(40)
    plain = write_pcap(tmp_path / "plain", timed([udp(one) for one in datagrams]), link=RAW).read_bytes()
    capture = tmp_path / "capture"
    capture.write_bytes((gzip.compress(plain) if codec == "gzip" else pa.compress(plain, codec, asbytes=True)) + tail)
    monkeypatch.setattr(compressed.os, "urandom", lambda size: bytes([plain[-1] ^ 1]) * size)
    report = import_capture(capture, tmp_path / "folder")
    assert [f"can't be read further than byte {len(plain):,}" in one for one in report.problems] == [True]
    assert values(tmp_path / "folder") == {0: messages}


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_pipe(codec: str, tmp_path: Path) -> None:
    """Nothing is read twice, also where its first byte comes alone; progress counts the bytes of the pipe."""
    messages, datagrams = stream(400)
    plain = write_pcap(tmp_path / "plain", timed([udp(one) for one in datagrams]), link=RAW).read_bytes()
    content = gzip.compress(plain) if codec == "gzip" else plain
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("wb", buffering=0) as file:
            file.write(content[:1])
            wait_until(lambda: not unread(file), 20, "the first byte to be read")
            file.write(content[1:])

    writer = threading.Thread(target=write)
    writer.start()
    told: list[int] = []
    import_capture(pipe, tmp_path / "folder", on_progress=lambda count, _: told.append(count))
    writer.join()
    assert told[-1] == len(content)
    assert values(tmp_path / "folder") == {0: messages}


def unread(pipe: io.FileIO) -> int:
    """Bytes in a pipe."""
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0])


def test_ipv6_with_extensions(tmp_path: Path) -> None:
    messages, datagrams = stream(20)
    packets = []
    for one in datagrams:
        body = struct.pack(">HHHH", 1, 9000, 8 + len(one), 0) + one
        packets.append(
            captures.ipv6(body, 17, "fe80::1", "ff02::2", extensions=b"\x3c\x00" + bytes(6) + b"\x11\x00" + bytes(6))
        )
    report = import_capture(write_pcap(tmp_path / "capture", timed(packets), link=RAW), tmp_path / "folder")
    assert report.recordings[0].channel == "aeron:udp?endpoint=[ff02::2]:9000"
    assert values(tmp_path / "folder") == {0: messages}


def fragmented(datagram: bytes, ident: int, most: int = 480) -> list[bytes]:
    content = struct.pack(">HHHH", 1234, 9000, 8 + len(datagram), 0) + datagram
    return [
        captures.ipv4(
            content[at : at + most], 17, "10.0.0.1", "10.0.0.2", ident=ident,
            fragment=at // 8 | (0x2000 if at + most < len(content) else 0),
        )
        for at in range(0, len(content), most)
    ]  # fmt: skip


def test_fragments_are_put_together(tmp_path: Path, rng: random.Random) -> None:
    """In any order, those of several datagrams between each other; one that lacks a fragment is none."""
    messages, datagrams = stream(40, sizes=(1376, 40))
    packets = []
    for first in range(0, len(datagrams), 4):
        mixed = [
            piece
            for number in range(first, min(first + 4, len(datagrams)))
            for piece in fragmented(datagrams[number], number)
        ]
        rng.shuffle(mixed)
        packets += mixed
    capture = write_pcap(tmp_path / "capture", timed(packets), link=RAW)
    report = import_capture(capture, tmp_path / "folder")
    assert (report.problems, report.other, report.incomplete_fragments) == ([], 0, 0)
    assert values(tmp_path / "folder") == {0: messages}
    assert import_capture(capture, tmp_path / "tcp", captured="tcp", framing="sofh").other == len(packets)
    whole = [piece for number, one in enumerate(datagrams) for piece in fragmented(one, number)]
    del whole[-2:]
    report = import_capture(write_pcap(tmp_path / "less", timed(whole), link=RAW), tmp_path / "less-folder")
    assert (report.incomplete_fragments, report.other) == (1, 0)
    assert values(tmp_path / "less-folder")[0] == messages[: len(values(tmp_path / "less-folder")[0])]


def test_fragments_of_ipv6(tmp_path: Path) -> None:
    """Behind other extensions, in any order, with the checksum that IPv6 demands; what the capture cut is counted as that."""
    messages, datagrams = stream(10, sizes=(1376, 40))
    packets = []
    for ident, one in enumerate(datagrams):
        content = struct.pack(">HHHH", 1234, 9000, 8 + len(one), 0) + one
        content = content[:6] + checksum_6(content) + content[8:]
        for at in reversed(range(0, len(content), 480)):
            has_more = at + 480 < len(content)
            extensions = b"\x2c\x00" + bytes(6) + struct.pack(">BBHI", 17, 0, at | has_more, 70_000 + ident)
            packets.append(captures.ipv6(content[at : at + 480], 17, "fe80::1", "ff02::2", extensions=extensions))
    report = import_capture(write_pcap(tmp_path / "capture", timed(packets), link=RAW), tmp_path / "folder")
    assert (report.problems, report.other, report.incomplete_fragments) == ([], 0, 0)
    assert values(tmp_path / "folder") == {0: messages}
    short = write_pcap(tmp_path / "short", timed(packets), link=RAW, snap=520)
    report = import_capture(short, tmp_path / "short-folder")
    assert report.cut == sum(len(one) > 520 for one in packets)
    assert (report.other, report.malformed) == (0, 0)
    assert report.incomplete_fragments == sum(len(one) > 480 for one in datagrams)


def checksum_6(content: bytes) -> bytes:
    """Of UDP, between the addresses of `test_fragments_of_ipv6`."""
    pseudo = b"\xfe\x80" + bytes(13) + b"\x01\xff\x02" + bytes(13) + b"\x02" + struct.pack(">II", len(content), 17)
    whole = pseudo + content + bytes(len(content) % 2)
    total = sum(struct.unpack(f">{len(whole) // 2}H", whole))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", 0xFFFF - total or 0xFFFF)


@pytest.mark.parametrize("write", [write_pcap, write_pcapng])
def test_a_capture_that_is_cut_anywhere(write: Callable[..., Path], tmp_path: Path, rng: random.Random) -> None:
    """What was whole is imported, the rest is told."""
    messages, datagrams = stream(10)
    content = write(tmp_path / "capture", timed([udp(one) for one in datagrams]), link=RAW).read_bytes()
    for number, length in enumerate(rng.sample(range(len(content)), 60)):
        cut = tmp_path / "cut"
        cut.write_bytes(content[:length])
        folder = tmp_path / str(number)
        try:
            report = import_capture(cut, folder)
        except UsageError:
            assert length < 28  # no capture file
            continue
        got = values(folder).get(0, []) if report.recordings else []
        assert got == messages[: len(got)]
        assert report.problems == [] or "truncated" in report.problems[0]


def test_packets_that_the_capture_cut(tmp_path: Path) -> None:
    messages, datagrams = stream(40)
    capture = write_pcap(tmp_path / "capture", timed([udp(one) for one in datagrams]), link=RAW, snap=400)
    report = import_capture(capture, tmp_path / "folder")
    assert report.cut == 10
    assert "capture whole packets" in report.problems[-1]
    short = [message for message in messages if len(message) < 300]
    assert [one for found in values(tmp_path / "folder").values() for one in found] == short


def test_a_damaged_capture_gives_an_error_or_what_is_right(tmp_path: Path, rng: random.Random) -> None:
    """Bytes changed at random: no crash, and each recording verifies, but for flags of a frame that were changed."""
    _, datagrams = stream(60)
    content = write_pcapng(tmp_path / "capture", timed([udp(one) for one in datagrams]), link=RAW).read_bytes()
    for number in range(60):
        damaged = bytearray(content)
        for _ in range(rng.randrange(1, 20)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        file = tmp_path / "damaged"
        file.write_bytes(damaged)
        folder = tmp_path / f"folder-{number}"
        try:
            import_capture(file, folder, segment_length=SEGMENT, captured=rng.choice(["aeron", "udp"]))
        except AeronError:
            continue
        verified(folder, but="a fragment that belongs to no message")


def test_interfaces_of_other_links_are_left_out(tmp_path: Path) -> None:
    """What another interface of the same file saw is imported; the report names the link type once."""
    head, packets = (
        write_pcapng(tmp_path / "capture", timed(map(udp, wanted)), link=RAW).read_bytes()
        for wanted in ([], [b"one", b"two"])
    )
    wlan = captures.block(1, struct.pack("<HHI", 105, 0, 0))
    seen = captures.block(6, struct.pack("<IIIII", 1, 0, 0, 60, 60) + bytes(60))
    capture = tmp_path / "both"
    capture.write_bytes(head + wlan + seen + packets[len(head) :] + seen)
    report = import_capture(capture, tmp_path / "folder", captured="udp")
    assert (report.packets, report.imported, report.other) == (4, 2, 2)
    assert values(tmp_path / "folder") == {0: [b"one", b"two"]}
    assert ["link type 105" in one for one in report.problems] == [True]


def test_flows_beyond_those_that_are_kept_are_left_out(tmp_path: Path) -> None:
    """Those that were there before go on."""
    many = lib.AS_CAPTURE_MAX_FLOWS
    sources = [(f"10.1.{number >> 8 & 255}.{number & 255}", 1 + (number >> 16)) for number in range(many + 1)]
    packets = [udp(b"one"), *(udp(b"", 9, source=source) for source in sources), udp(b"two")]
    capture = write_pcap(tmp_path / "capture", timed(packets), link=RAW)
    report = import_capture(capture, tmp_path / "folder", captured="udp", ports=[9000])
    assert (report.packets, report.other) == (many + 3, 2)
    assert ["2 packets are of more than 65,536 pairs" in one for one in report.problems] == [True]
    assert values(tmp_path / "folder") == {0: [b"one", b"two"]}


def with_checksum(packet: bytes) -> bytes:
    """An IPv4 packet whose checksum of UDP or TCP is right."""
    body, at = packet[20:], 26 if packet[9] == 17 else 36
    total = sum(
        struct.unpack(
            f">{(12 + len(body) + 1) // 2}H",
            packet[12:20] + struct.pack(">HH", packet[9], len(body)) + body + bytes(len(body) % 2),
        )
    )
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return packet[:at] + struct.pack(">H", 0xFFFF - total or 0xFFFF) + packet[at + 2 :]


def halves(datagram: bytes, ident: int) -> list[bytes]:
    """Two fragments of a datagram with a checksum."""
    return halves_of(with_checksum(udp(datagram)), ident)


def halves_of(packet: bytes, ident: int) -> list[bytes]:
    content, protocol = packet[20:], packet[9]
    at = len(content) // 16 * 8
    return [
        captures.ipv4(content[:at], protocol, "10.0.0.1", "10.0.0.2", ident=ident, fragment=0x2000),
        captures.ipv4(content[at:], protocol, "10.0.0.1", "10.0.0.2", ident=ident, fragment=at // 8),
    ]


def test_fragments_of_a_connection_are_put_together(tmp_path: Path) -> None:
    """Also of its beginning and its end; those of two segments never make one."""
    one, two, three = (sofh(bytes([number]) * 100) for number in (1, 2, 3))
    size = len(one)
    whole = [
        captures.tcp(one, 2**32 - 1, flags=2),
        captures.tcp(two, size),
        captures.tcp(three, 2 * size),
        captures.tcp(b"a text", 3 * size, flags=0x14),
    ]
    pieces = [halves_of(with_checksum(packet), ident) for ident, packet in enumerate(whole)]
    sent = [*pieces[0], *pieces[1][::-1], *pieces[2], *pieces[3]]
    report = import_capture(
        write_pcap(tmp_path / "capture", timed(sent), link=RAW), tmp_path / "folder", captured="tcp", framing="sofh"
    )
    assert (report.problems, report.other, report.incomplete_fragments, report.gap_count) == ([], 0, 0, 0)
    assert values(tmp_path / "folder") == {0: [bytes([number]) * 100 for number in (1, 2, 3)]}
    mixed = [*pieces[0], pieces[1][0], halves_of(with_checksum(whole[2]), 1)[1], *pieces[2]]
    report = import_capture(
        write_pcap(tmp_path / "mixed", timed(mixed), link=RAW), tmp_path / "torn", captured="tcp", framing="sofh"
    )
    assert (report.other, report.incomplete_fragments, report.gap_count) == (0, 1, 1)
    assert values(tmp_path / "torn") == {0: [bytes([1]) * 100]}
    assert import_capture(tmp_path / "mixed", tmp_path / "udp", captured="udp").other == len(mixed)


def test_fragments_of_two_datagrams_never_make_one(tmp_path: Path) -> None:
    """Identifications are used again; the checksum, or other bytes at the same place, show it."""
    one, two, three = b"1" * 800, b"2" * 800, b"3" * 800
    packets = [
        halves(one, 1)[0],  # its second half was lost
        *halves(two, 1),
        halves(one, 2)[1],  # its first half was lost
        *halves(three, 2),
        *halves(one, 3),
        captures.ipv4(bytes(800), 6, "10.0.0.1", "10.0.0.2", ident=4, fragment=0x2000),
        captures.ipv4(bytes(800), 6, "10.0.0.1", "10.0.0.2", ident=4, fragment=100),
    ]
    report = import_capture(
        write_pcap(tmp_path / "capture", timed(packets), link=RAW), tmp_path / "folder", captured="udp"
    )
    assert report.incomplete_fragments >= 2
    assert values(tmp_path / "folder") == {0: [two, one]}

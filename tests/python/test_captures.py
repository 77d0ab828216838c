"""`aeron-spark archive import`: captures become recordings that have what was captured, and nothing else.

Method: a relay between publication and recording shows the datagrams, which make a capture; its import is compared byte for
byte with the archive's own recording. Other captures are made by hand: each container, link, order, loss and damage.
"""

from __future__ import annotations

import fcntl
import gzip
import io
import itertools
import json
import os
import random
import struct
import termios
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from aeron_spark import Archive
from aeron_spark.archive.segments import Folder
from aeron_spark.archive.tools import Catalog, VerifyOutcome
from aeron_spark.captures import aeron, files, import_capture, ordering, writing
from aeron_spark.cli.__main__ import main
from aeron_spark.errors import AeronError, StorageError, UsageError
from aeron_spark.tables import scan
from aeron_spark.testing import RecordedFolder, Servers
from aeron_spark.types import SourceLocation
from tests.kit import captures
from tests.kit.captures import INITIAL_TERM, LINKS, RAW, data_frame, setup_frame, udp, write_pcap, write_pcapng
from tests.kit.payload import payloads
from tests.kit.ports import free_port
from tests.kit.relay import Relay
from tests.kit.wait import wait_until

START_NS = 1_790_000_000 * 10**9
SEGMENT = 131_072


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


def timed(packets: Iterable[bytes]) -> list[captures.Packet]:
    """A microsecond apart."""
    return [(START_NS + 1000 * number, packet) for number, packet in enumerate(packets)]


def values(folder: Path) -> dict[int, list[bytes]]:
    """Messages of each recording, by a table over the folder."""
    found: dict[int, list[bytes]] = {}
    table = scan(folder).to_table(columns=["recording_id", "value"])
    for row in table.to_pylist():
        found.setdefault(row["recording_id"], []).append(row["value"])
    return found


def verified(folder: Path, but: str | None = None) -> None:
    with Catalog(folder) as catalog:
        reports = [catalog.verify(entry, all_segments=True) for entry in catalog.entries()]
    wrong = [report for report in reports if report.outcome != VerifyOutcome.OK]
    assert [report for report in wrong if but is None or but not in report.text] == []


def segments(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.rec")}


@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_the_import_of_a_publications_capture_is_its_recording(loss: float, tmp_path: Path, rng: random.Random) -> None:
    """Also where datagrams were lost on the way and sent again."""
    seen: list[captures.Packet] = []

    def see(datagram: bytes, is_answer: bool, at: float) -> None:
        if not is_answer:
            seen.append((int(at * 1e9), udp(datagram)))

    messages = list(payloads(3, 2000, [100, 1376, 3000, 8, 0, 5]))
    with Servers(
        settings={"aeron.term.buffer.length": "64k", "aeron.archive.segment.file.length": str(SEGMENT)}
    ) as servers:
        port = free_port()
        channel = f"aeron:udp?endpoint=127.0.0.1:{port}"
        with (
            Archive(aeron_dir=servers.aeron_dir) as archive,
            Relay(("127.0.0.1", port), see, loss=loss, rng=rng) as relay,
        ):
            archive.start_recording(channel, 10, source=SourceLocation.REMOTE)
            with archive.client.add_exclusive_publication(f"aeron:udp?endpoint={relay.endpoint}", 10) as publication:
                publication.wait_connected(20)
                recording = archive.wait_recording(channel, 10, publication.session_id)
                end = publication.offer_batch(messages)
                archive.wait_position(recording, end, timeout=30)
            recorded = segments(servers.archive_dir)
    capture = write_pcap(tmp_path / "capture.pcap", seen, link=RAW)
    report = import_capture(capture, tmp_path / "imported", segment_length=SEGMENT)
    assert (report.problems, report.gap_count) == ([], 0)
    assert (report.repeated > 0) >= (loss > 0 and relay.lost == 0)
    assert segments(tmp_path / "imported") == recorded
    assert values(tmp_path / "imported") == {0: messages}
    verified(tmp_path / "imported")


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


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_compressed(codec: str, tmp_path: Path) -> None:
    messages, datagrams = stream(4000)
    plain = write_pcap(tmp_path / "plain", timed([udp(one) for one in datagrams]), link=RAW).read_bytes()
    content = gzip.compress(plain) if codec == "gzip" else pa.compress(plain, codec, asbytes=True)
    capture = tmp_path / "capture"
    capture.write_bytes(content)
    import_capture(capture, tmp_path / "folder")
    assert values(tmp_path / "folder") == {0: messages}
    capture.write_bytes(content[: len(content) // 2])
    report = import_capture(capture, tmp_path / "half")
    assert "can't be read further" in report.problems[0]
    (got,) = values(tmp_path / "half").values()
    assert got == messages[: len(got)]
    assert len(got) > len(messages) // 4  # zstd's blocks have 128 KiB


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
    assert import_capture(capture, tmp_path / "folder").problems == []
    assert values(tmp_path / "folder") == {0: messages}
    whole = [piece for number, one in enumerate(datagrams) for piece in fragmented(one, number)]
    del whole[-2:]
    report = import_capture(write_pcap(tmp_path / "less", timed(whole), link=RAW), tmp_path / "less-folder")
    assert report.incomplete_fragments in {0, 1}
    assert values(tmp_path / "less-folder")[0] == messages[: len(values(tmp_path / "less-folder")[0])]


def test_what_comes_again_or_late_is_put_in_order(tmp_path: Path, rng: random.Random) -> None:
    messages, datagrams = stream(600)
    shuffled = datagrams[1:] + rng.choices(datagrams, k=100)
    order = sorted(range(len(shuffled)), key=lambda number: number + rng.randrange(30))
    packets = [datagrams[0], *(shuffled[number] for number in order)]
    capture = write_pcap(tmp_path / "capture", timed([udp(one) for one in packets]), link=RAW)
    report = import_capture(capture, tmp_path / "folder", segment_length=SEGMENT)
    assert (report.gap_count, report.imported) == (0, len(datagrams) - 1)
    assert report.repeated + report.imported == len(packets) - sum(one == datagrams[0] for one in packets)
    assert values(tmp_path / "folder") == {0: messages}
    verified(tmp_path / "folder")


def test_a_retransmission_that_begins_before_what_is_missing(tmp_path: Path) -> None:
    """A datagram of two frames, of which the first is there already, gives its second."""
    messages, datagrams = stream(10)
    both = datagrams[3] + datagrams[4]
    packets = [*datagrams[:4], *datagrams[5:], both]
    capture = write_pcap(tmp_path / "capture", timed([udp(one) for one in packets]), link=RAW)
    assert import_capture(capture, tmp_path / "folder").gap_count == 0
    assert values(tmp_path / "folder") == {0: messages}


def test_a_gap_ends_a_recording_and_another_begins_behind_it(tmp_path: Path) -> None:
    """Positions are those of the stream; bytes that were not captured are in no recording."""
    messages, datagrams = stream(200)
    lost = range(50, 60)
    packets = [one for number, one in enumerate(datagrams) if number not in lost]
    capture = write_pcap(tmp_path / "capture", timed([udp(one) for one in packets]), link=RAW)
    report = import_capture(capture, tmp_path / "folder", segment_length=SEGMENT)
    (gap,) = report.gaps
    first, second = report.recordings
    assert (first.stop_position, second.start_position) == (gap.start, gap.end)
    assert gap.end - gap.start == sum(len(datagrams[number]) for number in lost)
    assert values(tmp_path / "folder") == {0: messages[:49], 1: messages[59:]}
    verified(tmp_path / "folder")
    positions = scan(tmp_path / "folder").to_table(columns=["recording_id", "position"]).to_pylist()
    assert min(row["position"] for row in positions if row["recording_id"] == 1) == gap.end


def test_a_gap_is_given_up_when_a_term_lies_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "BUDGET", 8_000)
    messages, datagrams = stream(400)
    packets = [*datagrams[:20], *datagrams[21:], datagrams[20]]
    capture = write_pcap(tmp_path / "capture", timed([udp(one) for one in packets]), link=RAW)
    # In batches of one read: the late datagram comes after its place was given up.
    report = import_capture(capture, tmp_path / "folder")
    assert report.gap_count in (0, 1)
    assert sum(map(len, values(tmp_path / "folder").values())) == len(messages) - report.gap_count


def test_several_streams_and_sessions(tmp_path: Path) -> None:
    messages, datagrams = stream(50)
    of_session = {
        session: [one[:12] + struct.pack("<i", session) + one[16:] for one in datagrams] for session in (5, 6, 7)
    }
    packets = [
        udp(one, 9000 + session % 2)
        for rows in zip(*of_session.values(), strict=True)
        for session, one in zip(of_session, rows, strict=True)
    ]
    capture = write_pcap(tmp_path / "capture", timed(packets), link=RAW)
    report = import_capture(capture, tmp_path / "folder")
    assert sorted(one.session_id for one in report.recordings) == [5, 6, 7]
    assert list(values(tmp_path / "folder").values()) == [messages] * 3
    assert [one.session_id for one in import_capture(capture, tmp_path / "one", ports=[9000]).recordings] == [6]


def test_without_its_setup_frame_a_stream_is_left_out(tmp_path: Path) -> None:
    messages, datagrams = stream(50)
    capture = write_pcap(tmp_path / "capture", timed([udp(one) for one in datagrams[11:]]), link=RAW)
    report = import_capture(capture, tmp_path / "none")
    assert report.recordings == []
    assert "--term-length" in report.problems[0]
    report = import_capture(capture, tmp_path / "folder", term_length=65_536, initial_term_id=INITIAL_TERM)
    assert report.recordings[0].start_position == sum(map(len, datagrams[1:11]))
    assert values(tmp_path / "folder") == {0: messages[10:]}
    late = write_pcap(tmp_path / "late", timed([udp(one) for one in [*datagrams[11:], datagrams[0]]]), link=RAW)
    import_capture(late, tmp_path / "late-folder")
    assert values(tmp_path / "late-folder") == {0: messages[10:]}


@pytest.mark.parametrize("given", [3_000_000_000, 3_000_000_000 - 2**32])
def test_an_initial_term_id_with_and_without_its_sign(given: int, tmp_path: Path) -> None:
    """Wireshark shows 32 bits without sign."""
    messages, datagrams = stream(50)
    packets = [udp(one) for one in restarted(datagrams, 3_000_000_000 - 2**32)[1:]]
    capture = write_pcap(tmp_path / "capture", timed(packets), link=RAW)
    terms = ["--term-length", "65536", "--initial-term-id", str(given)]
    assert main(["archive", "import", str(capture), str(tmp_path / "folder"), *terms]) == 0
    assert values(tmp_path / "folder") == {0: messages}


@pytest.mark.parametrize("setup", [0, 7, 50])
def test_batches_of_a_few_rows_change_nothing(setup: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their columns are used again for the next batch, while frames wait for a setup frame and others for lost ones."""
    monkeypatch.setattr(files, "_ROWS", 7)
    messages, (setup_datagram, *datagrams) = stream(60)
    datagrams[20], datagrams[45] = datagrams[45], datagrams[20]
    order = [*datagrams[:setup], setup_datagram, *datagrams[setup:]]
    report = import_capture(write_pcap(tmp_path / "capture", timed(map(udp, order)), link=RAW), tmp_path / "folder")
    assert (report.problems, report.gap_count, report.imported) == ([], 0, len(datagrams))
    assert values(tmp_path / "folder") == {0: messages}
    verified(tmp_path / "folder")


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


def test_a_message_a_datagram_with_the_time_of_its_packet(tmp_path: Path) -> None:
    messages = list(payloads(1, 500, [100, 1400, 3, 5000, 0]))
    capture = write_pcap(tmp_path / "capture", timed([udp(one) for one in messages]), link=RAW)
    report = import_capture(capture, tmp_path / "folder", captured="udp")
    assert (report.imported, report.problems) == (500, [])
    table = scan(tmp_path / "folder").to_table(columns=["value", "reserved_value", "position"])
    assert table["value"].to_pylist() == messages
    assert table["reserved_value"].to_pylist() == [START_NS + 1000 * number for number in range(500)]
    verified(tmp_path / "folder")
    with Folder(tmp_path / "folder") as folder:
        times = folder.times_at(0, table["position"].to_numpy())
    assert times.cast(pa.int64())[0].as_py() == START_NS
    assert abs(times.cast(pa.int64())[-1].as_py() - START_NS - 499_000) < 10_000_000


@pytest.mark.parametrize("framing", ["none", "sofh"])
def test_times_never_decrease(framing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from one batch to the next, as where a capture's clock is set back; a recording stops at its last time."""
    monkeypatch.setattr(files, "_ROWS", 4)
    offsets = [0, 5, 3, 9, 1, 2, 12, 4, 4, 4]
    packets = [(START_NS + 10**9 * offset, udp(sofh(b"one"))) for offset in offsets]
    capture = write_pcap(tmp_path / "capture", packets, link=RAW)
    import_capture(capture, tmp_path / "folder", captured="udp", framing=framing)
    times = scan(tmp_path / "folder").to_table(columns=["reserved_value"])["reserved_value"].to_pylist()
    assert times == [START_NS + 10**9 * latest for latest in itertools.accumulate(offsets, max)]
    with Catalog(tmp_path / "folder") as catalog:
        assert catalog.entries()[0].recording.stop_timestamp_ms == times[-1] // 10**6


def test_messages_of_a_datagram_by_framing(tmp_path: Path) -> None:
    messages = list(payloads(1, 30, [8, 20, 300]))
    packets = [
        bytes(12) + b"".join(struct.pack("<H", 2 + len(one)) + one for one in messages[first : first + 3])
        for first in range(0, 30, 3)
    ]
    packets[4] = packets[4][:30]  # the third of its messages goes beyond the datagram
    capture = write_pcap(tmp_path / "capture", timed([udp(one) for one in packets]), link=RAW)
    report = import_capture(capture, tmp_path / "folder", captured="udp", framing="cme-udp")
    got = values(tmp_path / "folder")[0]
    assert set(got) <= set(messages)
    assert len(messages) - len(got) <= 3
    assert "do not have the framing" in report.problems[0]


def segments_of(content: bytes, rng: random.Random, *, first: int) -> list[bytes]:
    """TCP segments of any length, some again and overlapping, in a changed order."""
    found, at = [], 0
    while at < len(content):
        size = rng.randrange(1, 1400)
        found.append((at, captures.tcp(content[at : at + size], first + 1 + at)))
        if rng.random() < 0.1:
            back = min(at, 50)
            found.append((at, captures.tcp(content[at - back : at + size + 20], first + 1 + at - back)))
        at += size
    order = sorted(range(len(found)), key=lambda number: number + rng.randrange(6))
    return [captures.tcp(b"", first, flags=2), *(found[number][1] for number in order)]


def sofh(message: bytes) -> bytes:
    return struct.pack(">IH", 6 + len(message), 0x5BE0) + message


def test_a_connection_is_put_together(tmp_path: Path, rng: random.Random) -> None:
    messages = list(payloads(1, 2000, [8, 20, 300, 4000]))
    content = b"".join(map(sofh, messages))
    packets = segments_of(content, rng, first=2**32 - 5000)
    capture = write_pcap(tmp_path / "capture", timed(packets), link=RAW)
    report = import_capture(capture, tmp_path / "folder", captured="tcp", framing="sofh")
    assert (report.problems, report.gap_count) == ([], 0)
    assert values(tmp_path / "folder") == {0: messages}
    verified(tmp_path / "folder")


def test_bytes_of_a_connection_that_come_again_or_early_anywhere(tmp_path: Path, rng: random.Random) -> None:
    """Pieces over any borders, long after their bytes or long before; and segments whose first copy was lost."""
    messages = list(payloads(2, 1000, [8, 20, 300, 1200]))
    content = b"".join(map(sofh, messages))
    cuts = [0, *sorted(rng.sample(range(1, len(content)), len(content) // 700)), len(content)]
    packets = [captures.tcp(content[low:high], 1 + low) for low, high in itertools.pairwise(cuts)]
    for _ in range(100):
        low = rng.randrange(len(content))
        packets.insert(rng.randrange(len(packets)), captures.tcp(content[low : low + rng.randrange(1, 5000)], 1 + low))
    for place in rng.sample(range(len(packets) - 50), 30):
        packets.insert(place + rng.randrange(50), packets.pop(place))
    capture = write_pcap(tmp_path / "capture", timed([captures.tcp(b"", 0, flags=2), *packets]), link=RAW)
    report = import_capture(capture, tmp_path / "folder", captured="tcp", framing="sofh")
    assert (report.problems, report.gap_count) == ([], 0)
    assert report.repeated > 0
    assert values(tmp_path / "folder") == {0: messages}
    verified(tmp_path / "folder")


@pytest.mark.parametrize("first", [1000, 2**32 - 1])
@pytest.mark.parametrize("is_taken", [True, False])
def test_a_connection_whose_first_segment_has_data(first: int, is_taken: bool, tmp_path: Path) -> None:
    """TCP Fast Open; a server that does not take the data gets them again."""
    messages = [b"one", b"two", b"three"]
    begin, rest = sofh(messages[0]), b"".join(map(sofh, messages[1:]))
    packets = [captures.tcp(begin, first, flags=2)]
    packets += [] if is_taken else [captures.tcp(begin, first + 1)]
    packets.append(captures.tcp(rest, first + 1 + len(begin)))
    capture = write_pcap(tmp_path / "capture", timed(packets), link=RAW)
    report = import_capture(capture, tmp_path / "folder", captured="tcp", framing="sofh")
    assert (report.problems, report.gap_count, report.repeated) == ([], 0, int(not is_taken))
    assert values(tmp_path / "folder") == {0: messages}


@pytest.mark.parametrize("size", [2 << 20, (2 << 20) + 1])
@pytest.mark.parametrize("rows", [50, 100_000])
def test_a_message_that_terms_do_not_hold(
    size: int, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends its connection, wherever batches end, and others are imported; one of the greatest length is read."""
    monkeypatch.setattr(files, "_ROWS", rows)
    long = bytes(size)
    sent = {port: sofh(b"one") + sofh(long if port == 2 else b"two") + sofh(b"three") for port in (1, 2, 3)}
    packets = [
        captures.tcp(content[at : at + 40_000], at, ports=(port, 9000))
        for port, content in sent.items()
        for at in range(0, len(content), 40_000)
    ]
    capture = write_pcap(tmp_path / "capture", timed(packets), link=RAW)
    report = import_capture(capture, tmp_path / "folder", captured="tcp", framing="sofh")
    is_held = size == 2 << 20
    assert ["byte 9 does not begin a message" in one for one in report.problems] == [True] * (not is_held)
    short = [b"one", b"two", b"three"]
    assert values(tmp_path / "folder") == {0: short, 1: [b"one", long, b"three"] if is_held else [b"one"], 2: short}
    verified(tmp_path / "folder")


@pytest.mark.parametrize("framing", ["none", "sofh"])
def test_a_datagram_that_terms_do_not_hold(framing: str, tmp_path: Path) -> None:
    """Lengths of 0 in headers, as where a network card splits datagrams, leave the packet's own."""
    head = udp(b"")
    long = head[:2] + bytes(2) + head[4:24] + bytes(2) + head[26:] + sofh(bytes(3 << 20))
    capture = write_pcap(
        tmp_path / "capture", timed([udp(sofh(b"one")), long, udp(sofh(b"two"))]), link=RAW, snap=4 << 20
    )
    report = import_capture(capture, tmp_path / "folder", captured="udp", framing=framing)
    assert ["1 messages of more than 2,097,152 bytes" in one for one in report.problems] == [True]
    assert values(tmp_path / "folder") == {0: [b"one", b"two"] if framing == "sofh" else [sofh(b"one"), sofh(b"two")]}


@pytest.mark.parametrize("rows", [1, 2, 5, 100])
@pytest.mark.parametrize("ahead", [-1_000_000_000, 1_000_000_000])
@pytest.mark.parametrize("end", [0x11, 0x14])
def test_ports_are_used_again_without_a_captured_syn(
    end: int, ahead: int, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a FIN or RST other sequence numbers are another connection's; those within the last one are late or repeated."""
    monkeypatch.setattr(files, "_ROWS", rows)
    old, new = list(payloads(1, 10, [100])), list(payloads(2, 10, [100]))
    first, size = 2**32 - 500, len(sofh(old[0]))
    sent = [captures.tcp(sofh(one), first + 1 + size * number) for number, one in enumerate(old)]
    reset = captures.tcp(b"", first + 1 + 10 * size, flags=end)
    late = [sent[3], sent[9], reset, sent[8], sent[0]]
    again = [captures.tcp(sofh(one), first + ahead + size * number) for number, one in enumerate(new)]
    packets = [captures.tcp(b"", first, flags=2), *sent[:8], reset, *late, *again]
    capture = write_pcap(tmp_path / "capture", timed(packets), link=RAW)
    report = import_capture(capture, tmp_path / "folder", captured="tcp", framing="sofh")
    assert (report.problems, report.gap_count, report.repeated) == ([], 0, 2)
    assert values(tmp_path / "folder") == {0: old, 1: new}


@pytest.mark.parametrize("rows", [1, 3, 100])
@pytest.mark.parametrize("ahead", [-5000, 0, 5000])
def test_a_reset_that_nobody_obeys_ends_nothing(
    ahead: int, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sequence number does not fit, or it is answered by a question: data go on where they were."""
    monkeypatch.setattr(files, "_ROWS", rows)
    messages = list(payloads(1, 20, [300]))
    content = b"".join(map(sofh, messages))
    sent = [captures.tcp(content[at : at + 500], 1 + at) for at in range(0, len(content), 500)]
    reset = captures.tcp(b"", 1 + 3 * 500 + ahead, flags=0x14)
    packets = [captures.tcp(b"", 0, flags=2), *sent[:3], reset, *sent[3:]]
    capture = write_pcap(tmp_path / "capture", timed(packets), link=RAW)
    report = import_capture(capture, tmp_path / "folder", captured="tcp", framing="sofh")
    assert report.problems == []
    assert values(tmp_path / "folder") == {0: messages}


def test_a_connection_that_was_left_out_ends(tmp_path: Path) -> None:
    """The next one on its ports is read."""
    message = sofh(b"one")
    gap = [captures.tcp(message, 1), captures.tcp(message, 1 + 2 * len(message), flags=0x11)]
    again = [captures.tcp(message, 3_000_000_000)]
    packets = [captures.tcp(b"", 0, flags=2), *gap, *again]
    capture = write_pcap(tmp_path / "capture", timed(packets), link=RAW)
    report = import_capture(capture, tmp_path / "folder", captured="tcp", framing="sofh")
    assert (len(report.problems), report.gap_count) == (1, 1)
    assert values(tmp_path / "folder") == {0: [b"one"], 1: [b"one"]}


def test_a_gap_in_a_connection_ends_it(tmp_path: Path, rng: random.Random) -> None:
    messages = list(payloads(1, 100, [300]))
    content = b"".join(map(sofh, messages))
    packets = [captures.tcp(b"", 0, flags=2)] + [
        captures.tcp(content[at : at + 100], 1 + at) for at in range(0, len(content), 100)
    ]
    del packets[150:152]
    capture = write_pcap(tmp_path / "capture", timed(packets), link=RAW)
    report = import_capture(capture, tmp_path / "folder", captured="tcp", framing="sofh")
    assert report.gap_count == 1
    assert values(tmp_path / "folder") == {0: messages[: 149 * 100 // 306]}
    assert "where the next message begins is not known" in report.problems[0]
    broken = bytearray(content)
    broken[306 * 50 + 5] ^= 1
    packets = [captures.tcp(bytes(broken[at : at + 100]), at) for at in range(0, len(content), 100)]
    report = import_capture(
        write_pcap(tmp_path / "bad", timed(packets), link=RAW), tmp_path / "bad-folder", captured="tcp", framing="sofh"
    )
    assert values(tmp_path / "bad-folder") == {0: messages[:50]}
    assert f"byte {306 * 50} does not begin a message" in report.problems[0]


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    messages, datagrams = stream(50)
    capture = write_pcap(tmp_path / "capture.pcap", timed([udp(one) for one in datagrams]), link=RAW)
    folder = tmp_path / "folder"
    assert main(["archive", "import", str(capture), str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["imported"], told["gap_count"], told["problems"]) == (50, 0, [])
    assert main(["cat", str(folder), "0", "--format", "hex"]) == 0
    assert capsys.readouterr().out.split() == [message.hex() for message in messages if message]
    assert main(["archive", "import", str(capture), str(folder)]) == 0
    assert "aeron:udp?endpoint=10.0.0.2:9000" in capsys.readouterr().out
    assert sorted(values(folder)) == [0, 1]
    assert main(["archive", "import", str(capture), str(tmp_path / "empty"), "--as", "tcp", "--framing", "sofh"]) == 1
    assert "there is nothing to import as tcp" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path / "empty")
    before = sorted(Path.cwd().iterdir())
    assert main(["archive", "import", str(capture), ""]) == 2
    assert sorted(Path.cwd().iterdir()) == before


def test_what_can_not_be_imported(tmp_path: Path) -> None:
    capture = write_pcap(tmp_path / "capture", [], link=147)
    text = tmp_path / "text"
    text.write_text("this is no capture file, by far\n")
    for refused, more, told in (
        (text, {}, "is no capture file"),
        (capture, {"framing": "sofh"}, "Aeron's frames have their own"),
        (capture, {"captured": "tcp"}, "give the framing"),
        (capture, {"captured": "tcp", "framing": "cme-tcp"}, "packet header"),
        (capture, {"captured": "udp", "framing": "messages"}, "needs a schema"),
        (capture, {"term_length": 65_536}, "together"),
        (capture, {"term_length": 65_536, "initial_term_id": 2**32}, "more than 32 bits"),
        (capture, {"term_length": 65_536, "initial_term_id": -(2**31) - 1}, "more than 32 bits"),
        (capture, {"segment_length": 100_000}, "no power of two"),
    ):
        with pytest.raises(UsageError, match=told):
            import_capture(refused, tmp_path / "folder", **more)
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    broken = tmp_path / "broken"
    broken.write_bytes(gzip.compress(capture.read_bytes())[:12])
    for refused, told in ((empty, "is no capture file"), (broken, "can't be read further")):
        with pytest.raises(UsageError, match=told):
            import_capture(refused, tmp_path / "folder")
    with pytest.raises(UsageError, match="folder is empty"):
        import_capture(capture, "")
    assert not (tmp_path / "folder").exists()
    with pytest.raises(StorageError, match="cannot read"):
        import_capture(tmp_path / "missing", tmp_path / "folder")
    unknown = write_pcap(tmp_path / "unknown", timed([b"x" * 60]), link=147)
    report = import_capture(unknown, tmp_path / "folder")
    assert "link type 147" in report.problems[0]
    assert (report.packets, report.other) == (1, 1)


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


def test_a_running_archives_folder_is_refused(tmp_path: Path) -> None:
    _, datagrams = stream(5)
    capture = write_pcap(tmp_path / "capture", timed([udp(one) for one in datagrams]), link=RAW)
    with Servers() as servers:
        RecordedFolder(servers).write([b"one"])
        with pytest.raises(UsageError, match="running archive"):
            import_capture(capture, servers.archive_dir)


def restarted(datagrams: list[bytes], initial: int) -> list[bytes]:
    """The same session with other terms."""
    ahead = initial - INITIAL_TERM
    found = []
    for one in datagrams:
        if len(one) == len(setup_frame()):
            terms = struct.unpack_from("<ii", one, 20)
            found.append(one[:20] + struct.pack("<ii", *(term + ahead for term in terms)) + one[28:])
        else:
            found.append(one[:20] + struct.pack("<i", struct.unpack_from("<i", one, 20)[0] + ahead) + one[24:])
    return found


@pytest.mark.parametrize("initial", [INITIAL_TERM, 12])
def test_a_session_that_begins_again_begins_another_recording(initial: int, tmp_path: Path) -> None:
    """By other terms, or by a setup frame of an earlier position after a while; not by one that comes again at once."""
    messages, datagrams = stream(50)
    first = timed([udp(one) for one in [datagrams[0], *datagrams[:30], datagrams[0], *datagrams[30:]]])
    again = [(at + 20 * 10**9, packet) for at, packet in timed([udp(one) for one in restarted(datagrams, initial)])]
    capture = write_pcap(tmp_path / "capture", first + again, link=RAW)
    report = import_capture(capture, tmp_path / "folder", segment_length=SEGMENT)
    assert (report.problems, report.gap_count, report.repeated) == ([], 0, 0)
    assert values(tmp_path / "folder") == {0: messages, 1: messages}
    verified(tmp_path / "folder")


def test_what_is_missing_before_the_first_frame_is_a_gap(tmp_path: Path) -> None:
    """The setup frame tells where the stream begins."""
    messages, datagrams = stream(20)
    capture = write_pcap(tmp_path / "capture", timed([udp(one) for one in [datagrams[0], *datagrams[4:]]]), link=RAW)
    report = import_capture(capture, tmp_path / "folder")
    assert [(gap.start, gap.end) for gap in report.gaps] == [(0, sum(map(len, datagrams[1:4])))]
    assert values(tmp_path / "folder") == {0: messages[3:]}


def test_a_datagram_of_several_streams_is_none(tmp_path: Path) -> None:
    """Frames of another session, or behind padding, can't be recorded where they stand: the datagram is not Aeron's."""
    messages, datagrams = stream(20)
    other = datagrams[11][:12] + struct.pack("<i", 1) + datagrams[11][16:]
    packets = [*datagrams[:10], datagrams[10] + other, *datagrams[10:]]
    capture = write_pcap(tmp_path / "capture", timed([udp(one) for one in packets]), link=RAW)
    report = import_capture(capture, tmp_path / "folder")
    assert (report.other, report.gap_count) == (1, 0)
    assert values(tmp_path / "folder") == {0: messages}


def with_checksum(packet: bytes) -> bytes:
    """An IPv4 packet whose UDP checksum is right."""
    body = packet[20:]
    total = sum(
        struct.unpack(
            f">{(12 + len(body) + 1) // 2}H",
            packet[12:20] + struct.pack(">HH", 17, len(body)) + body + bytes(len(body) % 2),
        )
    )
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return packet[:26] + struct.pack(">H", 0xFFFF - total or 0xFFFF) + packet[28:]


def halves(datagram: bytes, ident: int) -> list[bytes]:
    """Two fragments of a datagram with a checksum."""
    content = with_checksum(udp(datagram))[20:]
    at = len(content) // 16 * 8
    return [
        captures.ipv4(content[:at], 17, "10.0.0.1", "10.0.0.2", ident=ident, fragment=0x2000),
        captures.ipv4(content[at:], 17, "10.0.0.1", "10.0.0.2", ident=ident, fragment=at // 8),
    ]


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


def test_what_a_capture_can_make_us_keep_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings, what waits for a setup frame, and what waits for lost bytes: what goes beyond is left out, and told."""
    messages, datagrams = stream(40)
    sessions = [[one[:12] + struct.pack("<i", number) + one[16:] for one in datagrams] for number in range(5)]
    packets = [udp(sessions[number][row]) for row in range(len(datagrams)) for number in range(5)]
    capture = write_pcap(tmp_path / "capture", timed(packets), link=RAW)
    with monkeypatch.context() as patch:
        patch.setattr(writing, "MOST_OPEN", 3)
        report = import_capture(capture, tmp_path / "open")
        assert values(tmp_path / "open") == dict.fromkeys(range(3), messages)
        assert sum("3 recordings are being written already" in one for one in report.problems) == 2
    with monkeypatch.context() as patch:
        patch.setattr(aeron, "MOST_STREAMS", 4)
        report = import_capture(capture, tmp_path / "streams")
        assert values(tmp_path / "streams") == dict.fromkeys(range(4), messages)
        assert sum("more than 4 streams" in one for one in report.problems) == 1
    monkeypatch.setattr(ordering, "BUDGET", 4_000)
    early = write_pcap(tmp_path / "early", timed([udp(one) for one in [*datagrams[1:], datagrams[0]]]), link=RAW)
    report = import_capture(early, tmp_path / "early-folder")
    assert report.recordings == []
    assert "too much of it was captured before its setup frame" in report.problems[0]
    content = sofh(bytes(200_000))
    unfinished = [
        captures.tcp(content[at : at + 1000], at, ports=(port, 9000)) for port in (1, 2) for at in range(0, 5000, 1000)
    ]
    report = import_capture(
        write_pcap(tmp_path / "tcp", timed(unfinished), link=RAW),
        tmp_path / "tcp-folder",
        captured="tcp",
        framing="sofh",
    )
    assert sum("too many connections wait" in one for one in report.problems) == 2


def test_an_import_takes_no_id_with_segments(tmp_path: Path) -> None:
    """A power failure took the records of the newest recordings, not their files."""
    folder = tmp_path / "folder"
    capture = write_pcap(tmp_path / "capture", timed([udp(b"one")]), link=RAW)
    import_capture(capture, folder, captured="udp")
    (folder / "7-0.rec").write_bytes(b"precious")
    import_capture(capture, folder, captured="udp")
    assert (folder / "7-0.rec").read_bytes() == b"precious"
    with Folder(folder) as opened:
        assert [one.recording_id for one in opened.recordings()] == [0, 8]

"""`aeron-spark archive import --as udp` and `--as tcp`: a message a datagram, or several by their framing, and connections."""

from __future__ import annotations

import itertools
import random
import struct
from pathlib import Path

import pyarrow as pa
import pytest

from aeron_spark.archive.segments import Folder
from aeron_spark.archive.tools import Catalog
from aeron_spark.captures import files, import_capture
from aeron_spark.captures.importing import Report
from aeron_spark.tables import scan
from tests.kit import captures
from tests.kit.captures import RAW, START_NS, sofh, timed, udp, write_pcap
from tests.kit.imported import values, verified
from tests.kit.payload import payloads


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


def imported(packets: list[bytes], tmp_path: Path) -> tuple[Report, dict[int, list[bytes]]]:
    """A capture of TCP with messages behind a Simple Open Framing Header: report and messages."""
    capture = write_pcap(tmp_path / "capture", timed(packets), link=RAW)
    report = import_capture(capture, tmp_path / "folder", captured="tcp", framing="sofh")
    return report, values(tmp_path / "folder") if report.recordings else {}


@pytest.mark.parametrize("rows", [1, 100])
def test_the_text_of_a_reset_is_no_data(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_ROWS", rows)
    one, two = sofh(b"one"), sofh(b"two")
    packets = [
        captures.tcp(b"", 0, flags=2),
        captures.tcp(one, 1),
        captures.tcp(b"not today", 1 + len(one), flags=0x14),
        captures.tcp(two, 1 + len(one) + 5),  # another connection, behind the end of the last
    ]
    report, messages = imported(packets, tmp_path)
    assert (report.problems, messages) == ([], {0: [b"one"], 1: [b"two"]})


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize("begin", ["captured", "not captured"])
def test_a_keep_alive_is_no_data(begin: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its byte, of any value, is one that the other side has: also where the capture has nothing before it."""
    monkeypatch.setattr(files, "_ROWS", rows)
    one, two = sofh(b"one"), sofh(b"two")
    packets = [
        *([captures.tcp(b"", 0, flags=2)] if begin == "captured" else []),
        *[captures.tcp(b"\0", 0)] * 2,
        captures.tcp(one, 1, flags=0x18),
        captures.tcp(b"\0", len(one)),
        captures.tcp(two, 1 + len(one), flags=0x18),
    ]
    report, messages = imported(packets, tmp_path)
    assert (report.problems, report.gap_count, messages) == ([], 0, {0: [b"one", b"two"]})


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize("body", [b"", b"last"])
def test_a_keep_alive_behind_a_fin_is_no_data(
    body: bytes, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A FIN takes a sequence number, which is that of the byte. Behind a RST a byte there is one of data."""
    monkeypatch.setattr(files, "_ROWS", rows)
    one, last = sofh(b"one"), sofh(body) if body else b""
    end = 1 + len(one + last)
    packets = [
        captures.tcp(b"", 0, flags=2),
        captures.tcp(one, 1),
        captures.tcp(last, 1 + len(one), flags=0x11),
        *[captures.tcp(b"\0", end)] * 2,
        captures.tcp(last, 1 + len(one), flags=0x11),
        captures.tcp(b"\0", end, flags=0x18),
    ]
    report, messages = imported(packets, tmp_path)
    assert (report.problems, report.gap_count) == ([], 0)
    assert (report.repeated, messages) == (3 + bool(body), {0: [b"one", body] if body else [b"one"]})
    again = [*packets[:2], captures.tcp(b"", 1 + len(one), flags=0x14)]
    again += [captures.tcp(sofh(b"two")[at : at + 1], 1 + len(one) + at) for at in range(len(sofh(b"two")))]
    (tmp_path / "reset").mkdir()
    report, messages = imported(again, tmp_path / "reset")
    assert (report.problems, messages) == ([], {0: [b"one", b"two"]})


def test_of_bytes_that_are_captured_twice_the_first_count(tmp_path: Path) -> None:
    """Where they came in order. While something is missing, those of the segment that begins first."""
    one, two, three = sofh(b"one"), sofh(b"two"), sofh(b"six")
    size = len(one)
    packets = [
        captures.tcp(b"", 0, flags=2),
        captures.tcp(one, 1),
        captures.tcp(sofh(b"ONE"), 1),
        captures.tcp(sofh(b"ONE") + two, 1),
        captures.tcp(two, 1 + size),
        captures.tcp(three, 1 + 3 * size),
        captures.tcp(two + sofh(b"SIX"), 1 + 2 * size),
    ]
    report, messages = imported(packets, tmp_path)
    assert (report.problems, report.repeated, messages) == ([], 3, {0: [b"one", b"two", b"two", b"SIX"]})


def test_what_was_before_the_first_captured_byte_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a connection whose beginning was not captured: late, or sent again, when others were taken already."""
    monkeypatch.setattr(files, "_ROWS", 2)
    one, two, three = sofh(b"one"), sofh(b"two"), sofh(b"three")
    at = [1000, 1000 + len(one), 1000 + len(one + two)]
    packets = [captures.tcp(body, at[row]) for row, body in ((1, two), (2, three), (0, one), (0, one + two))]
    report, messages = imported(packets, tmp_path)
    assert (report.repeated, messages) == (0, {0: [b"two", b"three"]})
    assert ["2 segments begin before its first captured byte" in text for text in report.problems] == [True]


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


@pytest.mark.parametrize("captured", ["udp", "tcp"])
def test_more_flows_at_a_time_than_files(captured: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings that wait give their files up, and go on where they were, with their time indexes."""
    monkeypatch.setattr(files, "_ROWS", 500)
    count, rounds = 600, 5
    messages = [list(payloads(number, rounds, [8, 300])) for number in range(count)]
    sent = [[sofh(one) for one in each] for each in messages]
    packets, begins = [], [1] * count
    for row in range(rounds):
        for number in range(count):
            body, ports = sent[number][row], (10_000 + number, 9000)
            packet = captures.tcp(body, begins[number], ports=ports)
            packets.append(udp(body, source=("10.0.0.1", ports[0])) if captured == "udp" else packet)
            begins[number] += len(body)
    capture = write_pcap(
        tmp_path / "capture",
        [(START_NS + 10**8 * number, packet) for number, packet in enumerate(packets)],
        link=RAW,
    )
    before, open_files = len(list(Path("/proc/self/fd").iterdir())), []

    def look(*_: int) -> None:
        open_files.append(len(list(Path("/proc/self/fd").iterdir())))

    report = import_capture(capture, tmp_path / "folder", captured=captured, framing="sofh", on_progress=look)
    assert (report.imported, report.problems) == (count * rounds, [])
    assert max(open_files) - before < 600
    assert values(tmp_path / "folder") == dict(enumerate(messages))
    verified(tmp_path / "folder")
    with Folder(tmp_path / "folder") as folder:
        for recording in (0, count - 1):
            table = scan(tmp_path / "folder", recording).to_table(columns=["position", "reserved_value"])
            times = folder.times_at(recording, table["position"].to_numpy()).cast(pa.int64()).to_pylist()
            assert times == table["reserved_value"].to_pylist()


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

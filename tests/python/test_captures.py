"""`aeron-spark archive import`: captures of Aeron's streams become recordings that have what was captured, and nothing else.

Method: a relay between publication and recording shows the datagrams, which make a capture; its import is compared byte for
byte with the archive's own recording. Other captures are made by hand: each order, loss and restart. Files and packets are in
test_captures_files.py, datagrams and connections of others in test_captures_messages.py.
"""

from __future__ import annotations

import gzip
import json
import random
import struct
from pathlib import Path

import pytest

from aeron_spark import Archive
from aeron_spark.archive.segments import Folder
from aeron_spark.captures import aeron, files, import_capture, ordering, writing
from aeron_spark.cli.__main__ import main
from aeron_spark.errors import StorageError, UsageError
from aeron_spark.tables import scan
from aeron_spark.testing import RecordedFolder, Servers
from aeron_spark.types import SourceLocation
from tests.kit import captures
from tests.kit.captures import INITIAL_TERM, RAW, data_frame, setup_frame, sofh, stream, timed, udp, write_pcap
from tests.kit.imported import SEGMENT, values, verified
from tests.kit.payload import payloads
from tests.kit.ports import free_port
from tests.kit.relay import Relay


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


def test_what_comes_from_before_the_first_position_is_told(tmp_path: Path) -> None:
    """A capture that begins within a stream can have datagrams late, or sent again, of which its recording has no place."""
    messages, datagrams = stream(20)
    setup = setup_frame(offset=sum(map(len, datagrams[1:9])))
    packets = [*datagrams[7:9], setup, *datagrams[4:7], *datagrams[9:], datagrams[7]]
    capture = write_pcap(tmp_path / "capture", timed([udp(one) for one in packets]), link=RAW)
    report = import_capture(capture, tmp_path / "folder")
    assert values(tmp_path / "folder") == {0: messages[6:]}
    assert (report.gap_count, report.repeated) == (0, 1)
    (problem,) = report.problems
    assert f"3 datagrams begin before position {sum(map(len, datagrams[1:7]))}" in problem


def test_a_stream_up_to_its_maximum_position(tmp_path: Path) -> None:
    """Stock senders then name the end by the term id after the last one."""
    length = 65_536
    last, behind = ((INITIAL_TERM + count + 2**31) % 2**32 - 2**31 for count in (2**31 - 1, 2**31))
    bodies = [bytes([number]) * 32 for number in range(4)]
    frames = [data_frame(body, length - 64 * (4 - number), term=last) for number, body in enumerate(bodies)]
    heartbeat = bytes(4) + data_frame(b"", 0, term=behind)[4:]
    setups = (setup_frame(term=last, offset=length - 256), setup_frame(term=behind))
    packets = [setups[0], *frames, heartbeat, setups[1], heartbeat]
    capture = write_pcap(tmp_path / "capture", timed([udp(one) for one in packets]), link=RAW)
    report = import_capture(capture, tmp_path / "folder")
    assert (report.problems, report.gap_count) == ([], 0)
    assert values(tmp_path / "folder") == {0: bodies}
    with Folder(tmp_path / "folder") as folder:
        assert folder.recordings()[0].stop_position == length << 31


def test_a_datagram_of_several_streams_is_none(tmp_path: Path) -> None:
    """Frames of another session, or behind padding, can't be recorded where they stand: the datagram is not Aeron's."""
    messages, datagrams = stream(20)
    other = datagrams[11][:12] + struct.pack("<i", 1) + datagrams[11][16:]
    packets = [*datagrams[:10], datagrams[10] + other, *datagrams[10:]]
    capture = write_pcap(tmp_path / "capture", timed([udp(one) for one in packets]), link=RAW)
    report = import_capture(capture, tmp_path / "folder")
    assert (report.other, report.gap_count) == (1, 0)
    assert values(tmp_path / "folder") == {0: messages}


def test_what_a_capture_can_make_us_keep_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings, what waits for a setup frame, and what waits for lost bytes: what goes beyond is left out, and told."""
    messages, datagrams = stream(40)
    sessions = [[one[:12] + struct.pack("<i", number) + one[16:] for one in datagrams] for number in range(5)]
    packets = [udp(sessions[number][row]) for row in range(len(datagrams)) for number in range(5)]
    capture = write_pcap(tmp_path / "capture", timed(packets), link=RAW)
    with monkeypatch.context() as patch:
        patch.setattr(writing, "MOST_RECORDINGS", 3)
        report = import_capture(capture, tmp_path / "most")
        assert values(tmp_path / "most") == dict.fromkeys(range(3), messages)
        assert sum("3 recordings of this capture already" in one for one in report.problems) == 2
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

"""What a read takes: which recordings and segment files, from which position, time or message to which.

Recordings of ours over IPC, read by the readers as Spark calls them; times are checked against the instants between two halves
of a stream and, where messages carry their time, against every message.
"""

from __future__ import annotations

import json
import random
import shutil
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

from aeron_spark.archive import search
from aeron_spark.archive.segments import Folder
from aeron_spark.archive.time_text import TimeSource, parse_time_ns, parse_time_source
from aeron_spark.archive.times import TimeIndexInfo
from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.publication import ExclusivePublication
from aeron_spark.spark.planning import start_times
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.ranges import Range
from aeron_spark.spark.planning.selection import _without_session
from aeron_spark.spark.planning.slices import _cuts
from tests.kit import dirs
from tests.kit.payload import RESERVED_FACTOR, payload
from tests.kit.wait import wait_until
from tests.spark import recorded
from tests.spark.readers import Follower, batch, read

SIZES = [8, 100, 1377]
SCHEMA = """<?xml version="1.0"?>
<sbe:messageSchema xmlns:sbe="http://fixprotocol.io/2016/sbe" package="ticks" id="7" version="0" byteOrder="littleEndian">
  <types><composite name="messageHeader">
    <type name="blockLength" primitiveType="uint16"/><type name="templateId" primitiveType="uint16"/>
    <type name="schemaId" primitiveType="uint16"/><type name="version" primitiveType="uint16"/>
  </composite></types>
  <sbe:message name="Tick" id="1">
    <field name="at" id="1" type="uint64" semanticType="UTCTimestamp"/><field name="price" id="2" type="int32"/>
    <field name="raw" id="3" type="int64"/>
  </sbe:message>
  <sbe:message name="Note" id="2"><field name="code" id="1" type="int32"/></sbe:message>
</sbe:messageSchema>
"""


def tick(at: int, price: int) -> bytes:
    return struct.pack("<4H", 20, 1, 7, 0) + struct.pack("<QiQ", at, price, at // 1000)


NOTE = struct.pack("<4Hi", 4, 2, 7, 0, 5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Recording 0: 3,000 messages; 1: 300; 2: 20,000 ticks with notes among them, stamped when they were sent."""
    archive_dir = tmp_path_factory.mktemp("choice") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        archive.recorded(1001, 3000, SIZES)
        archive.recorded(1002, 300, SIZES)
        publication = archive.record(1003)
        for part in range(200):
            now = time.time_ns()
            bodies = [NOTE if index % 5 == 4 else tick(now, part) for index in range(100)]
            publication.offer_batch(pa.array(bodies, pa.binary()), reserved_values=pa.array([now] * 100), timeout=20)
        archive.stop(publication, 1003)
    return archive_dir


@pytest.fixture
def schema_path(tmp_path: Path) -> Path:
    (tmp_path / "ticks.xml").write_text(SCHEMA, encoding="utf-8")
    return tmp_path / "ticks.xml"


def ids(path: Path, **options: str) -> set[int]:
    return {row["recording_id"] for row in read(batch(path, **options))}


def test_which_recordings(folder: Path) -> None:
    with Folder(folder) as opened:
        session = opened.recording(1).session_id
    assert ids(folder, sessionId=str(session)) == {1}
    assert ids(folder, channel=recorded.CHANNEL, streamId="1002", sessionId=str(session)) == {1}
    assert ids(folder, channelPattern="^aeron:ipc", streamId="1001") == {0}
    assert ids(folder, channelPattern="ipc") == {0, 1, 2}
    with pytest.raises(UsageError, match=f"matches channelPattern=udp; .*session {session}"):
        batch(folder, channelPattern="udp").partitions()


def test_segment_files(folder: Path) -> None:
    whole = read(batch(folder, recordingIds="0"))
    length = 128 * 1024
    of_files = read(
        batch(folder, paths=f'["{folder}/0-{length}.rec", "file:{folder}/0-{3 * length}.rec", "{folder}/1-0.rec"]')
    )
    assert [row for row in of_files if row["recording_id"] == 0] == [
        row for row in whole if row["position"] // length in (1, 3)
    ]
    assert {row["recording_id"] for row in of_files} == {0, 1}
    assert read(batch(folder / f"0-{length}.rec")) == [row for row in whole if row["position"] // length == 1]
    for given, names in ((f"0-{length + 1}.rec", "is no segment file of recording 0: its segments begin every 131072"),
                         ("9-0.rec", "9")):  # fmt: skip
        with pytest.raises(UsageError, match=names):
            batch(folder / given).partitions()


@pytest.mark.parametrize(
    "source",
    ["index", "reserved(ns)", "sbe:at", "sbe:raw(us)"],
)
def test_times_skip_nothing(
    folder: Path, schema_path: Path, source: str, monkeypatch: pytest.MonkeyPatch, rng: random.Random
) -> None:
    monkeypatch.setattr(search, "SCAN_BYTES", 2048)
    rows = read(batch(folder, recordingIds="2"))
    times = [row["reserved_value"] for row in rows]
    is_exact = source != "index"
    unit = 1000 if "us" in source else 1
    low, high = times[0] - 10**9, times[-1] + 10**9
    for asked_for in [low, high, *(rng.choice(times) + rng.choice([-1000, 0, 1000]) for _ in range(8))]:
        when = asked_for // unit * unit
        sbe = {"sbeSchema": str(schema_path)} if source.startswith("sbe") else {}
        common = {"recordingIds": "2", **sbe}
        asked = f"{when}ns"
        after = read(batch(folder, startingTimestamp=asked, timestampFrom=source, **common))
        before = read(batch(folder, endingTimestamp=asked, timestampFrom=source, **common))
        assert after == rows[len(rows) - len(after) :], "a tail of the recording"
        assert before == rows[: len(before)], "a head of the recording"
        # The index tells when a message was written, which is never before it was stamped.
        assert len(before) >= sum(row["reserved_value"] < when - (0 if is_exact else 10**9) for row in rows)
        wanted = [row for row in rows if _time(row, source) >= when]
        assert not wanted or (after and after[0]["position"] <= wanted[0]["position"])
        if is_exact:
            assert not wanted or after[0]["position"] == wanted[0]["position"]
            assert len(after) + len(before) == len(rows)


def _time(row: dict[str, Any], source: str) -> int:
    if source.startswith("sbe"):
        return -1 if row["value"] == NOTE else struct.unpack_from("<Q", row["value"], 8)[0]
    return int(row["reserved_value"])


def test_time_between_two_halves(tmp_path: Path) -> None:
    """The index counts when a message was written: what came after an instant is there, and so is what came before it."""
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir) as archive:
            publication = archive.record(1001)
            recorded.publish(publication, 1001, 500, SIZES)
            archive.wait_recorded(1001, publication.position)
            between = time.time_ns()
            recorded.publish(publication, 1001, 500, SIZES, first=500)
            archive.wait_recorded(1001, publication.position)
            expected = [payload(1001, index, SIZES[index % 3]) for index in range(1000)]
            after = [row["value"] for row in read(batch(archive_dir, startingTimestamp=f"{between}ns"))]
            assert after == expected[-len(after) :]
            assert len(after) >= 500
            with Follower(archive_dir, startingTimestamp=f"{between}ns") as follower:
                later = [row["value"] for row in follower.step()]
                assert later == expected[-len(later) :]
                assert len(later) >= 500
            before = [row["value"] for row in read(batch(archive_dir, endingTimestamp=f"{between}ns"))]
            assert before == expected[: len(before)]
            assert len(before) >= 500
            publication.close()


def test_a_stream_waits_for_messages_of_its_time(tmp_path: Path) -> None:
    """A time in the future: data recorded before it is not read, in old recordings and new ones, over restarts."""

    def put(publication: ExclusivePublication, stream_id: int, first: int, after: int) -> None:
        stamps = range(first, after)
        reserved = pa.array([stamp * 1_000_000 for stamp in stamps], pa.int64())
        publication.offer_batch([b"%d" % stamp for stamp in stamps], reserved_values=reserved, timeout=10)
        archive.wait_recorded(stream_id, publication.position)

    def numbers(rows: list[dict[str, Any]]) -> list[int]:
        return [int(row["value"]) for row in rows]

    options = {"startingTimestamp": "500ms", "timestampFrom": "reserved(ns)"}
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive") as archive:
        old = archive.record(1)
        put(old, 1, 1, 101)
        with Follower(archive.archive_dir, **options) as follower:
            assert follower.step() == []
            put(old, 1, 101, 131)
            assert follower.step() == []
            new = archive.record(2)
            put(new, 2, 200, 230)
            assert follower.step() == []
            begin = follower.offset
            put(old, 1, 495, 510)
            assert numbers(follower.step()) == list(range(500, 510))
            with Follower(archive.archive_dir, **options) as restarted:
                again = restarted.reader.partitions(begin, follower.offset)
                assert numbers(read(restarted.reader, again)) == list(range(500, 510)), "the same batch, planned again"
            put(new, 2, 480, 520)
            put(old, 1, 400, 401)
            assert sorted(numbers(follower.step())) == [400, *range(500, 520)], (
                "a position is followed once it is found"
            )
        old.close()
        new.close()


def test_a_stream_waits_for_the_archives_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the index nothing that is written before the time has come is read, though it be the last that was."""
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive") as archive:
        publication = archive.record(1001)
        recorded.publish(publication, 1001, 500, SIZES)
        archive.wait_recorded(1001, publication.position)
        when = time.time_ns()
        with Follower(archive.archive_dir, startingTimestamp=f"{when}ns") as follower:
            before = SimpleNamespace(time_ns=lambda: when - 1, monotonic=time.monotonic)
            monkeypatch.setattr(start_times, "time", before)
            assert follower.step() == []
            monkeypatch.setattr(start_times, "time", time)
            recorded.publish(publication, 1001, 500, SIZES, first=500)
            archive.wait_recorded(1001, publication.position)
            rows = [row["value"] for row in follower.step()]
        expected = [payload(1001, index, SIZES[index % 3]) for index in range(1000)]
        assert rows == expected[-len(rows) :]
        assert len(rows) >= 500
        publication.close()


def test_a_stream_waits_for_its_time_while_messages_are_purged(tmp_path: Path) -> None:
    """With failOnDataLoss=false, in batches by other readers than the one that met the purge, as after restarts."""
    when = 100 * RESERVED_FACTOR
    options = {"timestampFrom": "reserved(ns)", "startingTimestamp": f"{when}ns"}
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive") as archive:
        folder = archive.archive_dir
        archive.recorded(1001, 1, [100])
        with (
            Follower(folder, **options) as strict,
            Follower(folder, failOnDataLoss="false", **options) as follower,
            archive.record(1002) as publication,
        ):
            recorded.publish(publication, 1002, 90, [5000])
            archive.wait_recorded(1002, publication.position)
            assert follower.step() == strict.step() == []
            archive.control.purge_segments(1, 2 * 128 * 1024)
            recorded.publish(publication, 1002, 5, [5000], first=90)
            archive.wait_recorded(1002, publication.position)
            with pytest.raises(DataLossError, match="bytes were purged before they were read"):
                strict.step()
            assert follower.step() == []
            offset = json.loads(json.dumps(follower.offset))
            recorded.publish(publication, 1002, 25, [5000], first=95)
            archive.wait_recorded(1002, publication.position)
            seen = []
            for _ in range(30):
                with Follower(folder, failOnDataLoss="false", **options) as restarted:
                    end = restarted.reader.latestOffset(offset, ReadMaxBytes(20_000))
                    seen += read(restarted.reader, restarted.reader.partitions(offset, end))
                    offset = json.loads(json.dumps(end))
        assert [row["reserved_value"] // RESERVED_FACTOR for row in seen] == list(range(100, 120))


def test_what_is_purged_before_its_time_is_no_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the time index: a stream may wait for longer than the archive keeps messages."""
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive") as archive:
        folder = archive.archive_dir
        when = time.time_ns() + 3600 * 10**9
        with (
            Follower(folder, startingTimestamp=f"{when}ns") as follower,
            Follower(folder, startingTimestamp="2020-01-01") as past,
            Follower(folder, startingTimestamp=f"{when}ns", timestampFrom="reserved(ns)") as by_reserved,
            archive.record(1001) as publication,
        ):
            archive.wait_recorded(1001, 0)
            assert follower.step() == past.step() == by_reserved.step() == []
            begin = follower.offset
            recorded.publish(publication, 1001, 100, [5000])
            archive.wait_recorded(1001, publication.position)
            archive.control.purge_segments(0, 2 * 128 * 1024)
            assert follower.step() == []
            last = pa.array([publication.position - 1])
            with Folder(folder) as opened:
                wait_until(lambda: opened.index_times_at(0, last)[0].is_valid, 10, "the index to be written to the end")
            for one in (past, by_reserved):
                with pytest.raises(DataLossError, match="bytes were purged before they were read"):
                    one.step()
            # The time has come: by the index, all that is left was written before it.
            monkeypatch.setattr(start_times, "time", SimpleNamespace(time_ns=lambda: when, monotonic=time.monotonic))
            follower.offset = begin
            assert follower.step() == []
            publication.close()
        whole = read(batch(folder, columns="position,timestamp_ns"))
        between = next(row for row in whole if row["position"] > 3 * 128 * 1024)["timestamp_ns"]
        with Follower(folder, startingTimestamp=f"{between}ns") as later:
            monkeypatch.undo()
            end = later.reader.latestOffset(begin, ReadAllAvailable())
            rows = read(later.reader, later.reader.partitions(begin, end))
        positions = [row["position"] for row in whole]
        assert 0 < len(rows) < len(whole)
        assert [row["position"] for row in rows] == positions[-len(rows) :]


def test_ending_timestamp_without_index_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    for index in copy.glob("*.time-index"):
        index.unlink()
    with pytest.raises(UsageError, match=r"recording 0 of .*has no time index of its own archive.*timestampFrom"):
        batch(copy, endingTimestamp="2026-01-01").partitions()
    rows = read(batch(copy, recordingIds="2"))
    when = rows[10_000]["reserved_value"]
    first = next(row for row in rows if row["reserved_value"] >= when)
    after = read(batch(copy, recordingIds="2", startingTimestamp=f"{when}ns", timestampFrom="reserved(ns)"))
    assert after[0] == first
    early = read(batch(copy, recordingIds="2", startingTimestamp=f"{when}ns"))
    assert early[0]["position"] <= first["position"]


def test_an_ending_timestamp_leaves_recordings_without_messages_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have no index; nor has, for a moment, a recording that has just begun."""
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive") as archive:
        folder = archive.archive_dir
        archive.recorded(1001, 100, [100])
        archive.recorded(1002, 0, [100])
        with archive.record(1003) as publication:
            assert len(read(batch(folder, endingTimestamp="2090-01-01"))) == 100
            assert read(batch(folder, endingTimestamp="2020-01-01")) == []
            recorded.publish(publication, 1003, 10, [100])
            archive.wait_recorded(1003, publication.position)
            info = Folder.time_index

            def without_runs(opened: Folder, recording_id: int) -> TimeIndexInfo:
                found = info(opened, recording_id)
                return replace(found, run_count=0, is_believed=True) if recording_id == 2 else found

            monkeypatch.setattr(Folder, "time_index", without_runs)
            assert len(read(batch(folder, endingTimestamp="2090-01-01"))) == 110
            archive.stop(publication, 1003)
        with pytest.raises(UsageError, match=r"recording 2 of .* has no time index"):
            batch(folder, endingTimestamp="2090-01-01").partitions()


@pytest.mark.parametrize("count", [0, 1, 7, 2999, 3000, 5000])
def test_tail(folder: Path, count: int) -> None:
    whole = read(batch(folder, recordingIds="0"))
    assert read(batch(folder, recordingIds="0", tail=str(count))) == whole[max(0, 3000 - count) :]
    with Follower(folder, recordingIds="0", tail=str(count)) as follower:
        assert len(follower.step()) == min(count, 3000)


def test_positions_outside(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    limit = read(batch(folder, recordingIds="1"))[-1]["next_position"]
    chosen = {"recordingIds": "1", "startingPositions": '{"1": 99999999}'}
    told = rf"startingPositions 99999999 of recording 1, which ends in .*/1-131072.rec, is out of range, 0 to {limit}"
    with pytest.raises(DataLossError, match=told):
        batch(folder, **chosen).partitions()
    assert read(batch(folder, failOnDataLoss="false", **chosen)) == []
    assert "going on" in caplog.text
    assert len(read(batch(folder, recordingIds="1", startingPositions='{"1": "earliest"}'))) == 300
    assert read(batch(folder, recordingIds="1", startingPositions='{"1": "latest"}')) == []


def test_recordings_change_while_they_are_followed(tmp_path: Path) -> None:
    """Purged from the head, stopped, extended, joined by the publisher's next session and by one that starts late."""
    with dirs.fresh("aeron") as aeron_dir, dirs.fresh("archive") as archive_dir:
        with recorded.archive(aeron_dir, archive_dir) as archive, ExitStack() as opened:
            publication = archive.record(1001)
            recorded.publish(publication, 1001, 2000, SIZES)
            archive.wait_recorded(1001, publication.position)
            follower = opened.enter_context(Follower(archive_dir))
            of_session = opened.enter_context(Follower(archive_dir, sessionId=str(publication.session_id)))
            seen = follower.step()
            assert of_session.step() == seen
            archive.control.purge_segments(0, 2 * 128 * 1024)
            recorded.publish(publication, 1001, 100, SIZES, first=2000)
            archive.stop(publication, 1001)
            seen += follower.step()
            recording = archive.control.recording(0)
            assert recording is not None
            assert recording.stop_position is not None
            place = f"init-term-id={recording.initial_term_id}|term-id={recording.term_id(recording.stop_position)}"
            channel = f"{recorded.CHANNEL}|{place}|term-offset={recording.term_offset(recording.stop_position)}"
            with archive.client.add_exclusive_publication(channel, 1001) as again:
                archive.control.extend_recording(0, f"{recorded.CHANNEL}|session-id={again.session_id}", 1001)
                again.wait_connected(10)
                recorded.publish(again, 1001, 50, SIZES, first=2100)
                archive.wait_recorded(1001, again.position)
                extended = follower.step()
                seen += extended
                # An extension has another session: the recording stays the query's.
                assert of_session.step()[-50:] == extended
            restarted = archive.record(1001)
            recorded.publish(restarted, 1001, 70, SIZES, first=2150)
            archive.stop(restarted, 1001)
            late = f"{recorded.CHANNEL}|init-term-id=5|term-id=9|term-offset=640"
            midway = archive.record(1001, late)
            recorded.publish(midway, 1001, 30, SIZES, first=2220)
            archive.wait_recorded(1001, midway.position)
            seen += follower.step()
            values = [row["value"] for row in seen]
            assert values == [payload(1001, index, SIZES[index % 3]) for index in range(2250)]
            assert seen[-30]["position"] == 4 * recorded.TERM_LENGTH + 640
            archive.stop(midway, 1001, late)


@contextmanager
def extending(archive: recorded.Archive) -> Iterator[ExclusivePublication]:
    """Recording 0, by the next session of its publisher."""
    old = archive.control.recording(0)
    assert old.stop_position is not None
    place = f"init-term-id={old.initial_term_id}|term-id={old.term_id(old.stop_position)}"
    channel = f"{recorded.CHANNEL}|{place}|term-offset={old.term_offset(old.stop_position)}"
    with archive.client.add_exclusive_publication(channel, 1001) as publication:
        named = f"{recorded.CHANNEL}|session-id={publication.session_id}"
        archive.control.extend_recording(0, named, 1001)
        publication.wait_connected(10)
        yield publication
        archive.control.wait_position(0, publication.position, timeout=20)
        archive.control.stop_recording(named, 1001)
    wait_until(lambda: archive.control.stop_position(0) is not None, 10, "the recording to stop")


def extend(archive: recorded.Archive, first: int, count: int) -> None:
    with extending(archive) as publication:
        recorded.publish(publication, 1001, count, SIZES, first=first)


@pytest.mark.parametrize("loss", ["true", "false"])
def test_a_restarted_stream_follows_what_it_has_begun(tmp_path: Path, loss: str) -> None:
    """Whatever session and channel the recording has by then; also by a run that takes what is there and ends."""
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive") as archive:
        folder = archive.archive_dir
        archive.recorded(1001, 10, SIZES)
        archive.recorded(1002, 10, SIZES)
        named = {"sessionId": str(archive.control.recording(0).session_id), "failOnDataLoss": loss}
        by_channel = {"channel": recorded.CHANNEL, "streamId": "1001", "failOnDataLoss": loss}
        first: list[dict[str, Any]] = []
        for options in (named, by_channel):
            with Follower(folder, **options) as follower:
                assert len(follower.step()) == 10
                first.append(json.loads(json.dumps(follower.offset)))
        extend(archive, 10, 5)
        archive.control.update_channel(0, "aeron:ipc?alias=renamed")
        for options, offset in zip((named, by_channel), first, strict=True):
            for is_ending in (False, True):
                with Follower(folder, **options) as restarted:
                    if is_ending:
                        restarted.reader.prepareForTriggerAvailableNow()
                    restarted.offset = offset
                    assert [row["value"] for row in restarted.step()] == [
                        payload(1001, index, SIZES[index % 3]) for index in range(10, 15)
                    ]
                    end = json.loads(json.dumps(restarted.offset))
            with Follower(folder, **options) as restarted:
                again = read(restarted.reader, restarted.reader.partitions(offset, end))
                assert len(again) == 5, "the same batch, planned again"
        # By its stream it is another query's.
        with Follower(folder, channel=recorded.CHANNEL, streamId="1002") as other:
            other.offset = first[1]
            with pytest.raises(DataLossError, match="no longer matches the options"):
                other.step()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1700000000000", 1_700_000_000_000_000_000),
        ("1700000000s", 1_700_000_000_000_000_000),
        ("1700000000000000001 ns", 1_700_000_000_000_000_001),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000_000_000),
        ("2023-11-14 22:13:20.123456789", 1_700_000_000_123_456_789),
        ("2023-11-15T00:13:20.5+02:00", 1_700_000_000_500_000_000),
        ("20231114T221320.123456789Z", 1_700_000_000_123_456_789),
        ("20231115T001320,1234567+0200", 1_700_000_000_123_456_700),
        ("2023-11-14", 1_699_920_000_000_000_000),
    ],
)
def test_time_text(text: str, expected: int) -> None:
    assert parse_time_ns("startingTimestamp", text) == expected


def test_time_sources_in_any_case() -> None:
    assert parse_time_source(" Reserved(NS)", "by") == TimeSource("reserved", "ns")
    assert parse_time_source("SBE:sentAt(Us)", "by") == TimeSource("sbe", "us", "sentAt")


@pytest.mark.parametrize(
    ("options", "streaming", "names"),
    [
        ({"channel": "aeron:ipc", "channelPattern": "a"}, False, "give channel or channelPattern, not both"),
        ({"recordingIds": "0", "sessionId": "1"}, False, "give recordingIds or sessionId"),
        ({"channelPattern": "("}, False, "no regular expression"),
        ({"startingPositions": "latest", "startingTimestamp": "0"}, False, "startingPositions or startingTimestamp"),
        ({"tail": "1", "startingTimestamp": "0"}, False, "startingTimestamp or tail"),
        ({"endingTimestamp": "2026-01-01"}, True, "endingTimestamp cannot be given: it is for batch reads"),
        ({"startingTimestamp": "soon"}, False, "write it like"),
        ({"endingTimestamp": "2023-11-14T22:13:20.1234567891Z"}, False, "a fraction finer than nanoseconds"),
        ({"endingTimestamp": "2023-11-14T22:13:20+01:00:00.1234567"}, False, "none in the zone"),
        ({"startingTimestamp": "1700000000000000000"}, False, "a number without unit is in ms"),
        ({"timestampFrom": "reserved"}, False, r"choose index, reserved\(ns\)"),
        ({"timestampFrom": "sbe:at"}, False, "needs sbeSchema"),
        ({"minBytesPerTrigger": "2m", "maxBytesPerTrigger": "1m"}, True, "more than"),
        ({"maxTriggerDelay": "1m"}, True, "give both"),
        ({"minBytesPerTrigger": "2m"}, False, "minBytesPerTrigger cannot be given: it is for streaming"),
        ({"onCorruption": "ignore"}, False, "choose one of fail, skip"),
        ({"paths": '["/a/0-0.rec", "/b/0-0.rec"]'}, False, "several folders"),
        ({"paths": '["/a/0-0.rec", "/a/1-0.rec"]'}, True, "a stream follows a folder"),
        ({"paths": '["/a/0-0.rec", "/a/1-0.rec"]', "tail": "1"}, False, "segment files are given"),
    ],
)
def test_refused(options: dict[str, str], streaming: bool, names: str) -> None:
    with pytest.raises(UsageError, match=names):
        ReadOptions.parse({"path": "x", **options} if "paths" not in options else options, streaming=streaming)


@pytest.mark.parametrize(
    ("recorded_as", "meant"),
    [
        ("aeron:ipc?session-id=7", "aeron:ipc"),
        ("aeron:ipc?term-length=64k|session-id=7", "aeron:ipc?term-length=64k"),
        ("aeron:ipc?session-id=7|term-length=64k", "aeron:ipc?term-length=64k"),
        ("aeron:ipc", "aeron:ipc"),
    ],
)
def test_the_channel_of_a_session_that_was_recorded(recorded_as: str, meant: str) -> None:
    assert _without_session(recorded_as) == meant


@pytest.mark.parametrize("start", [0, 10_000_000])
def test_times_between_slices_wherever_a_recording_starts(start: int) -> None:
    clock: Any = SimpleNamespace(time=lambda _, position: position - start)
    ranges = [Range(recording_id, start, start + 64_000, start + 64_000) for recording_id in (0, 1)]
    assert _cuts(clock, ranges, 16_000) == [8_000 * number for number in range(1, 8)]

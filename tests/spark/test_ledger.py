"""The ledger without Spark: its bytes, what a commit does step by step, and what read_committed makes of it.

Tasks and commits are calls here; test_exactly_once.py kills real ones.
"""

from __future__ import annotations

import json
import os
import random
import threading
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import BinaryType, StructField, StructType

from aeron_spark.archive.client import Archive
from aeron_spark.archive.segments import Folder
from aeron_spark.channel import ChannelUri
from aeron_spark.cli.__main__ import main
from aeron_spark.errors import AeronError, DataLossError, UsageError, WaitTimeoutError
from aeron_spark.spark import ledger
from aeron_spark.spark.listener import Lag, lag
from aeron_spark.spark.planning.committed import check_isolation
from aeron_spark.spark.planning.offsets import OFFSET_VERSION
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.selection import select_recordings
from aeron_spark.spark.reading.batch import AeronBatchReader
from aeron_spark.spark.reading.stream import AeronStreamReader
from aeron_spark.spark.writing import commit
from aeron_spark.spark.writing import publications as pool
from aeron_spark.spark.writing.options import WriteOptions
from aeron_spark.spark.writing.publish import Published, publish_batches
from tests.kit.wait import wait_until
from tests.spark import recorded

STREAM_ID = 1001
VALUE = StructType([StructField("value", BinaryType(), nullable=False)])
# As the first release wrote it.
GOLDEN = bytes.fromhex(
    "41534c450100000000112233445566778899aabbccddeeff07000000000000000068e5cf8b01000002000000c2755302"
    "03000000000000000df0adba000000004000000000000000800000000000000002000000000000000100000002000000"
    "0400000000000000010000000000000000000000000000006000000000000000010000000000000003000000fcffffff"
)
ENTRY = ledger.Entry(
    query=UUID("00112233-4455-6677-8899-aabbccddeeff"),
    batch=7,
    written_ms=1_700_000_000_000,
    ranges=(
        ledger.PublishedRange(
            recording_id=3, identity=0xBAADF00D, begin=64, end=128, messages=2, stream_id=1, session_id=2
        ),
        ledger.PublishedRange(recording_id=4, identity=1, begin=0, end=96, messages=1, stream_id=3, session_id=-4),
    ),
)


def test_entry_bytes_are_read_for_ever() -> None:
    assert ledger.LEDGER_STREAM_ID.to_bytes(4, "big") == b"ASLE"
    assert ledger.encode_entry(ENTRY) == GOLDEN
    assert ledger.decode_entry(GOLDEN, "here") == ENTRY


def test_an_entry_may_fill_its_frame() -> None:
    assert ledger.encode_entry(ENTRY, len(GOLDEN)) == GOLDEN
    with pytest.raises(UsageError, match=r"in 2 ranges, .* holds 1: write to fewer streams"):
        ledger.encode_entry(ENTRY, len(GOLDEN) - 1)


def test_no_changed_byte_of_an_entry_is_believed() -> None:
    for index in range(len(GOLDEN)):
        damaged = bytearray(GOLDEN)
        damaged[index] ^= 1
        with pytest.raises(DataLossError, match=r"^here: "):
            ledger.decode_entry(bytes(damaged), "here")
    for length in (0, 47, 48, len(GOLDEN) - 1):
        with pytest.raises(DataLossError, match=r"^here: "):
            ledger.decode_entry(GOLDEN[:length], "here")


def test_ranges_that_follow_each_other_are_one() -> None:
    def part(begin: int, end: int, recording_id: int = 0) -> ledger.PublishedRange:
        return ledger.PublishedRange(
            recording_id=recording_id, identity=9, begin=begin, end=end, messages=1, stream_id=1, session_id=1
        )

    found = ledger.joined([part(64, 128), part(0, 32, 1), part(0, 64), part(128, 128), part(160, 192)])
    assert [(one.recording_id, one.begin, one.end, one.messages) for one in found] == [
        (0, 0, 128, 2),
        (0, 160, 192, 1),
        (1, 0, 32, 1),
    ]
    with pytest.raises(UsageError, match="two tasks"):
        ledger.joined([part(0, 64), part(32, 96)])
    with pytest.raises(UsageError, match=r"1400 ranges, .* holds 1363"):
        ledger.encode_entry(
            ledger.Entry(query=uuid4(), batch=0, written_ms=0, ranges=tuple(part(0, 32, at) for at in range(1400)))
        )


def test_batches_in_any_order(rng: random.Random) -> None:
    """Each counts once, whether others of its query are before it, behind it, or on both sides."""
    queries = [uuid4() for _ in range(3)]
    batches, seen = ledger.Batches(), set[tuple[UUID, int]]()
    for _ in range(3000):
        key = rng.choice(queries), rng.randrange(-1, 300)
        assert batches.add(*key) == (key not in seen)
        seen.add(key)


def test_entries_that_were_read_take_little_memory() -> None:
    """A query keeps all of its ledger, which grows by an entry with each batch."""
    count = 5000
    tracemalloc.start()
    entries, seen = ledger.Entries(), ledger.Batches()
    read = (
        ledger.OffsetEntry(
            entry=replace(ENTRY, batch=number), recording_id=1, position=192 * number, next_position=192 * (number + 1)
        )
        for number in range(count)
    )
    for item in ledger.first_of_each(read, seen):
        entries.append(item)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 150 * count
    assert list(entries.between(192, 192 * 3)) == [(192 * 2, ENTRY.ranges), (192 * 3, ENTRY.ranges)]


class Sink:
    """A sink of one query: tasks, commits and reading."""

    def __init__(self, archive: recorded.Archive) -> None:
        self.archive = archive
        self.folder = str(archive.archive_dir)
        self.writing = {"channel": recorded.CHANNEL, "recordTo": self.folder}
        self.reading = {"path": self.folder}
        self.query = uuid4()

    @property
    def options(self) -> WriteOptions:
        return self.with_options()

    def with_options(self, **more: str) -> WriteOptions:
        given = {"streamId": str(STREAM_ID), "guarantee": "exactly-once", "publishTimeout": "20s"}
        return WriteOptions.parse({**given, **self.writing, **more})

    def task(self, *rows: bytes, batch: int, **more: str) -> Published:
        """The commit message of a task of a stream's batch."""
        columns = pa.record_batch({"value": pa.array(rows, pa.binary())})
        done = publish_batches(iter([columns]), self.with_options(**more), "test", self.query)
        return Published(self.query, batch, done.rows, done.archive_id, done.ranges)

    def commit(self, *messages: Published, **more: str) -> bool:
        return commit.commit_batch(messages, self.with_options(**more), "test")

    def read(self, **more: str) -> list[bytes]:
        """What is read committed, sorted."""
        reader = AeronBatchReader(self.read_options(**more), VALUE)
        return sorted(value for part in reader.partitions() for batch in reader.read(part) for value in _values(batch))

    def read_options(self, *, streaming: bool = False, **more: str) -> ReadOptions:
        return ReadOptions.parse({"isolation": "read_committed", **self.reading, **more}, streaming=streaming)


def _values(batch: pa.RecordBatch) -> list[bytes]:
    values: list[bytes] = batch.column("value").to_pylist()
    return values


def close_pool() -> None:
    for publications in pool._idle.values():
        while publications:
            publications.pop().close()
    for client in pool._clients.values():
        client.close()


@pytest.fixture
def sink(aeron_dir: Path, archive_dir: Path) -> Iterator[Sink]:
    with recorded.archive(aeron_dir, archive_dir) as archive:
        yield Sink(archive)
        close_pool()


def test_only_committed_ranges_are_read_once(sink: Sink) -> None:
    assert sink.read() == [], "no ledger yet"
    lost = sink.task(b"killed attempt", batch=0)
    first = sink.task(b"a", b"b", batch=0)
    assert sink.read() == []
    assert sink.commit(first, sink.task(batch=0))
    assert sink.read() == [b"a", b"b"]
    again = sink.task(b"a", b"b", batch=0)
    assert not sink.commit(again), "the first entry wins"
    assert not sink.commit(lost)
    assert sink.commit(sink.task(b"c", batch=1, syncLevel="2"), syncLevel="2")
    assert not sink.commit(), "a batch without rows"
    assert not sink.commit(sink.task(batch=2))
    assert sink.read() == [b"a", b"b", b"c"]
    other = Sink(sink.archive)
    assert other.commit(other.task(b"of another query", batch=0, streamId="5"))
    assert sink.read(streamId="5") == [b"of another query"]
    assert sink.read(streamId=str(STREAM_ID)) == [b"a", b"b", b"c"]
    ledgers = [one for one in sink.archive.control.recordings() if ledger.is_ledger(one)]
    assert len(ledgers) == 1, "one ledger, extended by each commit"


def test_a_task_ends_when_its_rows_are_recorded(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a write could be over, and its rows be lost with a driver that dies then."""
    awaited: list[tuple[int, int]] = []
    wait_position = Archive.wait_position

    def wait(self: Archive, recording_id: int, position: int, *, timeout: float = 30.0) -> None:
        awaited.append((recording_id, position))
        wait_position(self, recording_id, position, timeout=timeout)

    monkeypatch.setattr(Archive, "wait_position", wait)
    done = sink.task(b"a", b"b", batch=0)
    assert awaited == [(part.recording_id, part.end) for part in done.ranges]


def test_an_uncommitted_read_does_not_show_the_ledger(sink: Sink) -> None:
    sink.commit(sink.task(b"a", batch=0))
    with Folder(sink.folder) as folder:
        for more, count in (({}, 1), ({"streamId": str(ledger.LEDGER_STREAM_ID)}, 1), ({"recordingIds": "0,1"}, 2)):
            options = ReadOptions.parse({"path": sink.folder, **more}, streaming=False)
            assert len(select_recordings(folder, options, allow_none=True)) == count


def test_a_second_entry_of_a_key_does_not_count(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    """As two committers leave it that both saw none; readers do not rely on the committer's check."""
    monkeypatch.setattr(commit, "_has_entry", lambda *_: False)
    assert sink.commit(sink.task(b"first", batch=0))
    assert sink.commit(sink.task(b"second", batch=0))
    assert sink.read() == [b"first"]
    assert stream_rows(sink) == [[b"first"]]


def stream_rows(sink: Sink, **more: str) -> list[list[bytes]]:
    """Micro-batches of a fresh reader, one entry each, replayed by another reader from the journaled offsets."""
    found: list[list[bytes]] = []
    with streaming(sink, startingPositions="earliest", **more) as planner:
        start = planner.initialOffset()
        while (end := planner.latestOffset(start, ReadMaxRows(1))) != start:
            with streaming(sink, **more) as replayed:
                rows = [sorted(_rows(reader, start, end)) for reader in (planner, replayed)]
            assert rows[0] == rows[1], "a batch gives the same rows when it is run again"
            found.append(rows[0])
            start = end
    return found


def _rows(reader: AeronStreamReader, start: dict[str, object], end: dict[str, object]) -> list[bytes]:
    return [value for part in reader.partitions(start, end) for batch in reader.read(part) for value in _values(batch)]


@contextmanager
def streaming(sink: Sink, **more: str) -> Iterator[AeronStreamReader]:
    reader = AeronStreamReader(sink.read_options(streaming=True, **more), VALUE)
    try:
        yield reader
    finally:
        reader.stop()


def test_a_stream_reads_entry_by_entry(sink: Sink) -> None:
    with streaming(sink) as reader, streaming(sink) as pinned:
        nothing = reader.initialOffset()
        assert reader.latestOffset(nothing, ReadAllAvailable()) == nothing
        for number in range(3):
            sink.commit(sink.task(b"%d" % number, b"+", batch=number))
        assert stream_rows(sink) == [[b"+", b"0"], [b"+", b"1"], [b"+", b"2"]]
        pinned.prepareForTriggerAvailableNow()
        sink.commit(sink.task(b"later", batch=3))
        for one in (reader, pinned):
            one.planner.pace.due_at = 0.0
        end = pinned.latestOffset(nothing, ReadAllAvailable())
        later = reader.latestOffset(nothing, ReadAllAvailable())
        reported = reader.reportLatestOffset()
        assert reported is not None
        assert later == {name: value for name, value in reported.items() if name != "behind"}
        assert _rows(reader, end, later) == [b"later"]
        with streaming(sink) as latest:
            assert latest.initialOffset()["positions"] == later["positions"]
    with pytest.raises(UsageError, match="whole entries"):
        check_isolation(sink.read_options(startingPositions='{"0": 64}'))


def test_lag_is_that_of_what_was_committed(sink: Sink) -> None:
    """Of the chosen recordings, not of the ledger; with a folder seconds, too."""
    sink.commit(sink.task(b"a" * 1000, b"b", batch=0))
    sink.task(b"not committed", batch=1)
    sink.commit(sink.task(b"c", batch=1), sink.task(b"d", batch=1, streamId="7"))
    (one,) = {part.recording_id for part in sink.archive.control.recordings() if part.stream_id == STREAM_ID}
    with streaming(sink, streamId=str(STREAM_ID), startingPositions="earliest") as reader:
        start = reader.initialOffset()
        for expected in (Lag(bytes=64, messages=1), Lag(bytes=0, messages=0)):
            start = reader.latestOffset(start, ReadMaxRows(1))
            progress = {"sources": [{"endOffset": start, "latestOffset": reader.reportLatestOffset()}]}
            assert lag(json.dumps(progress)) == {one: expected}
            measured = lag(progress, sink.folder)[one]
            assert measured.seconds is not None
            assert replace(measured, seconds=None) == expected
        with pytest.raises(UsageError, match="its own endOffset only"):
            lag({"sources": [{"endOffset": reader.initialOffset(), "latestOffset": reader.reportLatestOffset()}]})


@pytest.mark.parametrize("step", ["check_recorded", "_extend", "publish_entry", "after"])
def test_a_commit_that_raises_is_done_again_or_was_done(sink: Sink, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Spark aborts then, and runs the batch again; the abort undoes nothing."""
    assert sink.commit(sink.task(b"before", batch=0))

    def fails(*_: object) -> None:
        raise WaitTimeoutError("injected")

    with monkeypatch.context() as patch:
        if step == "after":
            publish_entry = commit.publish_entry

            def publish_then_fail(*arguments: object) -> None:
                publish_entry(*arguments)  # type: ignore[arg-type]
                fails()

            patch.setattr(commit, "publish_entry", publish_then_fail)
        else:
            patch.setattr(commit, step, fails)
        with pytest.raises(WaitTimeoutError, match="injected"):
            sink.commit(sink.task(b"a", batch=1))
    appended = sink.commit(sink.task(b"a", batch=1))
    assert appended == (step != "after")
    assert sink.read() == [b"a", b"before"]


def test_an_entry_that_is_found_is_put_on_the_disk(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its committer may have died before it did so."""
    synced: list[str] = []
    fdatasync = os.fdatasync

    def sync(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        fdatasync(handle)

    monkeypatch.setattr(os, "fdatasync", sync)
    with monkeypatch.context() as patch:
        patch.setattr(commit, "_sync", lambda *_: None)
        assert sink.commit(sink.task(b"a", batch=0))
    assert not synced
    assert not sink.commit(sink.task(b"a", batch=0, syncLevel="1"), syncLevel="1")
    (found,) = (one for one in sink.archive.control.recordings() if ledger.is_ledger(one))
    assert f"{found.recording_id}-0.rec" in synced


def test_first_commits_at_the_same_time_have_one_ledger(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both begin one, as no other host's lock is known; the same one is extended by both, in turn."""
    done = [sink.task(b"a", batch=0), sink.task(b"a", batch=0)]
    other = Sink(sink.archive)
    done_by_other = other.task(b"of another query", batch=0)
    begun, begin = threading.Barrier(3), commit._begin

    def begin_together(*given: Any) -> Any:
        begun.wait(20)
        return begin(*given)

    monkeypatch.setattr(commit, "_locked", lambda *_: nullcontext())
    monkeypatch.setattr(commit, "_begin", begin_together)
    with ThreadPoolExecutor(3) as threads:
        ours = [threads.submit(sink.commit, one) for one in done]
        theirs = threads.submit(other.commit, done_by_other)
        assert sorted(one.result(60) for one in ours) == [False, True]
        assert theirs.result(60)
    with Folder(sink.folder) as folder:
        found = [one for one in folder.recordings() if ledger.is_ledger(one)]
        entries = [item.recording_id for item in ledger.read_entries(folder, {})]
    assert len(found) == 3
    assert entries == [found[0].recording_id] * 2
    assert sink.read() == [b"a", b"of another query"]
    monkeypatch.undo()
    assert sink.commit(sink.task(b"b", batch=1))
    with Folder(sink.folder) as folder:
        assert [item.recording_id for item in ledger.read_entries(folder, {})] == [found[0].recording_id] * 3


def test_of_two_ledgers_with_entries_the_last_goes_on(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases before could make two; the order of their entries stays."""
    assert sink.commit(sink.task(b"a", batch=0))
    with monkeypatch.context() as patch:
        of_archive = commit._ledger
        patch.setattr(commit, "_ledger", lambda _: None)
        with pytest.raises(AssertionError):
            sink.commit(sink.task(b"b", batch=1))  # has begun a second one
        found = [one for one in sink.archive.control.recordings() if ledger.is_ledger(one)]
        patch.setattr(commit, "_ledger", lambda _: found[1])
        assert sink.commit(sink.task(b"b", batch=1))
        assert of_archive(sink.archive.control).recording_id == found[1].recording_id
    assert not sink.commit(sink.task(b"a", batch=0))
    assert sink.commit(sink.task(b"c", batch=2))
    with Folder(sink.folder) as folder:
        at = [(item.recording_id, item.entry.batch) for item in ledger.read_entries(folder, {})]
    assert at == [(found[0].recording_id, 0), (found[1].recording_id, 1), (found[1].recording_id, 2)]


def test_a_range_that_is_not_there_is_not_committed(sink: Sink) -> None:
    done = sink.task(b"a", b"b", batch=0)
    (part,) = done.ranges
    close_pool()
    beyond = Published(sink.query, 0, 2, done.archive_id, (ledger.replace(part, end=part.end + 64),))
    with pytest.raises(WaitTimeoutError, match=f"not at {part.end + 64}"):
        sink.commit(beyond, publishTimeout="1s")
    foreign = Published(sink.query, 0, 2, done.archive_id, (ledger.replace(part, identity=1),))
    with pytest.raises(DataLossError, match="has to run again"):
        sink.commit(foreign)
    with pytest.raises(UsageError, match="another archive"):
        sink.commit(Published(sink.query, 0, 2, 12345, foreign.ranges))
    assert sink.read() == []
    assert sink.commit(Published(sink.query, 0, 2, 12345, done.ranges)), "the archive was started again since"
    assert sink.read() == [b"a", b"b"]
    control = sink.archive.control
    control.truncate_recording(part.recording_id, part.begin)
    with pytest.raises(DataLossError, match=r"was committed, but the recording now ends at 0"):
        sink.read()


def test_committed_recordings_that_were_purged(sink: Sink) -> None:
    """A table is what the archive still holds; a stream that has not read them has lost something."""
    done = sink.task(b"a", batch=0)
    sink.commit(done)
    close_pool()
    sink.commit(sink.task(b"b", batch=1))
    control, recording_id = sink.archive.control, done.ranges[0].recording_id
    wait_until(lambda: control.stop_position(recording_id) is not None, 20, "the recording to stop")
    control.purge_recording(recording_id)
    assert sink.read() == [b"b"]
    with pytest.raises(DataLossError, match="purged before it was read"):
        stream_rows(sink)


def test_a_stream_tells_of_entries_that_were_purged_before_it_read_them(aeron_dir: Path, archive_dir: Path) -> None:
    with recorded.archive(aeron_dir, archive_dir, {"aeron.archive.segment.file.length": "1m"}) as archive:
        sink = Sink(archive)
        assert sink.commit(sink.task(b"0", batch=0))
        with streaming(sink, startingPositions="earliest") as running:
            first = running.initialOffset()
            seen = running.latestOffset(first, ReadAllAvailable())
            assert _rows(running, first, seen) == [b"0"]
            control = archive.control
            for batch in range(1, 20):
                long = replace(ENTRY, query=sink.query, batch=batch, ranges=ENTRY.ranges * 650)  # 62 KB
                assert commit.append(control, long, sink.options)
            (found,) = (one for one in control.recordings() if ledger.is_ledger(one))
            control.purge_segments(found.recording_id, 1 << 20)
            running.planner.pace.due_at = 0.0
            with pytest.raises(DataLossError, match="purged before this query read them"):
                running.latestOffset(seen, ReadAllAvailable())
        with streaming(sink) as restarted:
            with pytest.raises(DataLossError, match="purged before this query read them"):
                restarted.latestOffset(seen, ReadAllAvailable())
            # Of a batch 0 that crashed Spark has the end, and asks for an initial offset again.
            crashed = {**restarted.planner.newest(), "starts": seen["starts"]}
            with pytest.raises(DataLossError, match="purged before this query read them"):
                restarted.partitions(restarted.initialOffset(), crashed)
        close_pool()


def test_a_stream_tells_of_a_ledger_that_lost_its_tail_and_grew_again(sink: Sink) -> None:
    control = sink.archive.control
    assert sink.commit(sink.task(b"0", batch=0))
    (found,) = (one for one in control.recordings() if ledger.is_ledger(one))
    wait_until(lambda: control.stop_position(found.recording_id) is not None, 20, "the commit to end")
    kept = control.stop_position(found.recording_id)
    assert kept is not None
    assert sink.commit(sink.task(b"1", batch=1))
    with streaming(sink, startingPositions="earliest") as running:
        first = running.initialOffset()
        seen = running.latestOffset(first, ReadAllAvailable())
        assert _rows(running, first, seen) == [b"0", b"1"]
        wait_until(lambda: control.stop_position(found.recording_id) is not None, 20, "the commit to end")
        control.truncate_recording(found.recording_id, kept)
        running.planner.pace.due_at = 0.0
        with pytest.raises(DataLossError, match=f"the ledger now ends at {kept}"):
            running.latestOffset(seen, ReadAllAvailable())
        other = Sink(sink.archive)
        assert other.commit(other.task(b"of another query", batch=0))
        assert sink.commit(sink.task(b"1", batch=1))
        with pytest.raises(DataLossError, match="another entry stands before position"):
            running.latestOffset(seen, ReadAllAvailable())
    with streaming(sink) as restarted, pytest.raises(DataLossError, match="another entry stands before position"):
        restarted.latestOffset(seen, ReadAllAvailable())
    unmarked = {**{name: part for name, part in seen.items() if name != "marks"}, "version": 1}
    with streaming(sink) as restarted:  # from a checkpoint of a release before
        end = restarted.latestOffset(unmarked, ReadAllAvailable())
        assert end["version"] == OFFSET_VERSION


def test_a_session_is_that_of_the_entry(sink: Sink) -> None:
    """A batch has the same rows though the recording was extended by another session since."""
    done = sink.task(b"a", batch=0)
    assert sink.commit(done)
    (part,) = done.ranges
    control = sink.archive.control
    with streaming(sink, startingPositions="earliest", sessionId=str(part.session_id)) as reader:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadAllAvailable())
        assert _rows(reader, start, end) == [b"a"]
        close_pool()
        wait_until(lambda: control.stop_position(part.recording_id) is not None, 20, "the recording to stop")
        (recording,) = (one for one in control.recordings() if one.recording_id == part.recording_id)
        term = recording.term_buffer_length
        channel = ChannelUri.parse(recorded.CHANNEL).with_params(
            init_term_id=recording.initial_term_id,
            term_id=recording.term_id(part.end),
            term_offset=part.end % term,
            term_length=term,
        )
        with control.client.add_exclusive_publication(channel, STREAM_ID) as other:
            session = f"{recorded.CHANNEL}|session-id={other.session_id}"
            control.extend_recording(part.recording_id, session, STREAM_ID)
            wait_until(lambda: control.recording_position(part.recording_id) is not None, 20, "the extension")
        assert _rows(reader, start, end) == [b"a"]
        assert sink.read(sessionId=str(part.session_id)) == [b"a"]
        assert sink.read(sessionId=str(other.session_id)) == []


def test_retention_keeps_the_ledger_and_tells_what_was_committed(
    sink: Sink, capsys: pytest.CaptureFixture[str]
) -> None:
    done = sink.task(b"a", batch=0)
    assert sink.commit(done)
    assert sink.commit(sink.task(b"b", batch=1), sink.task(b"of another stream", batch=1, streamId="5"))
    sink.task(b"never committed", batch=2, streamId="6")
    close_pool()
    (found,) = (one for one in sink.archive.control.recordings() if ledger.is_ledger(one))
    rows = {one.stream_id: one.recording_id for one in sink.archive.control.recordings() if one != found}
    command = ["archive", "retain", sink.folder, "--keep-recordings", "0"]
    wait_until(lambda: sink.archive.control.stop_position(rows[6]) is not None, 10, "the recordings to stop")
    assert main(command) == 0
    told = capsys.readouterr().out
    assert f"(recordingId={rows[STREAM_ID]}) would delete all of it" in told
    assert "channel and stream; rows of 2 committed batches go with it" in told
    assert "channel and stream; rows of 1 committed batches go with it" in told
    assert f"(recordingId={found.recording_id}) stays whatever its age and size: the ledger" in told
    assert main([*command, "--yes", "--json"]) == 0
    told = capsys.readouterr().out
    counts = {row["recording_id"]: row["committed_batches"] for row in map(json.loads, told.splitlines())}
    assert counts == {rows[STREAM_ID]: 2, rows[5]: 1, rows[6]: 0}
    assert [one.recording_id for one in sink.archive.control.recordings()] == [found.recording_id]
    assert sink.read() == []
    assert not sink.commit(sink.task(b"a", batch=0)), "it still knows what was committed"


def test_a_policy_of_the_archive_keeps_the_ledger(aeron_dir: Path, archive_dir: Path) -> None:
    policy = {"aeron.spark.archive.retain.max.bytes": "1", "aeron.spark.archive.retain.interval": "100ms"}
    with recorded.archive(aeron_dir, archive_dir, policy) as archive:
        sink = Sink(archive)
        assert sink.commit(sink.task(b"a", batch=0))
        assert sink.commit(sink.task(b"b", batch=1))
        close_pool()
        wait_until(lambda: len(archive.control.recordings()) == 1, 20, "the policy to delete the rows")
        assert sink.commit(sink.task(b"c", batch=2))
        assert not sink.commit(sink.task(b"c", batch=2)), "the ledger is there and grows"
        (kept,) = filter(ledger.is_ledger, archive.control.recordings())
        assert kept.start_position == 0
        close_pool()


def test_foreign_messages_on_the_ledger(sink: Sink) -> None:
    sink.commit(sink.task(b"a", batch=0))
    (found,) = (one for one in sink.archive.control.recordings() if ledger.is_ledger(one))
    publication = commit._extend(sink.archive.control, found, sink.options, float("inf"))
    with publication:
        sink.archive.control.wait_position(found.recording_id, publication.offer_batch([b"x" * 60]))
    with pytest.raises(DataLossError, match="something else published on its stream"):
        sink.read()


def test_write_ids_and_levels_are_of_exactly_once() -> None:
    for options, names in (
        ({"writeId": "x"}, "writeId is for guarantee=exactly-once"),
        ({"guarantee": "exactly-once"}, "needs an archive"),
        ({"guarantee": "exactly-once", "recordTo": "/x", "syncLevel": "3"}, "out of range"),
    ):
        with pytest.raises(AeronError, match=names):
            WriteOptions.parse({"streamId": "1", **options})
    given = {"streamId": "1", "guarantee": "exactly-once", "recordTo": os.sep, "writeId": "day 5"}
    assert WriteOptions.parse(given).write_id == WriteOptions.parse(given).write_id
    with pytest.raises(UsageError, match=r"writeId cannot be given: .* a stream's batches are named by the query's id"):
        WriteOptions.parse(given, streaming=True)
    with pytest.raises(UsageError, match="read_committed"):
        ReadOptions.parse({"path": "x", "isolation": "serial"}, streaming=False)


def test_every_input_row_is_read_once_over_many_batches(sink: Sink) -> None:
    """A hundred batches, every third of them run twice, every fifth with a lost attempt before."""
    expected: Counter[bytes] = Counter()
    for number in range(60):
        rows = [b"%d.%d" % (number, row % 3) for row in range(7)]
        if number % 5 == 0:
            sink.task(*rows[:4], batch=number)
        assert sink.commit(sink.task(*rows[:3], batch=number), sink.task(*rows[3:], batch=number))
        if number % 3 == 0:
            assert not sink.commit(sink.task(*rows, batch=number))
        expected.update(rows)
    assert Counter(sink.read()) == expected
    assert Counter(value for rows in stream_rows(sink) for value in rows) == expected

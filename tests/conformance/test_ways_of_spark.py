"""Spark gets the same rows in every access mode: committed reads, times, tails, and skipped parts of broken recordings.

The readers as Spark calls them, over one archive: its folder, replays over UDP, its folder as a store, and a bucket. What a way
cannot do it refuses, and says why and what to do instead.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from aeron_spark.archive import objects
from aeron_spark.archive.segments import Folder
from aeron_spark.errors import AeronError, DataLossError, PeerError, UsageError
from aeron_spark.spark import access, ledger
from aeron_spark.spark.planning.offsets import UNMARKED_VERSION
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.reading.batch import AeronBatchReader
from aeron_spark.spark.reading.rows import read_schema
from aeron_spark.spark.reading.stream import AeronStreamReader
from aeron_spark.types import RecordingId
from tests.kit import dirs, s3
from tests.kit.catalogs import catalog_of
from tests.kit.payload import payload
from tests.kit.ports import free_port
from tests.spark import recorded
from tests.spark.readers import read
from tests.spark.test_ledger import Sink, close_pool
from tests.spark.test_loss import SEGMENT, TERM, break_frame, remove

STREAM = 1001
SIZES = [8, 100, 1377, 5000]
FIRST_NS, STEP_NS = 1_700_000_000_000_000_000, 1_000_000
FAR = ("replay", "object store", "s3")
Rows = list[dict[str, Any]]


class Archive(NamedTuple):
    """An archive that lives, and how to read it in each way."""

    folder: Path
    running: recorded.Archive
    control: str
    bucket: dict[str, str] | None = None

    def way(self, name: str) -> dict[str, str]:
        if name == "replay":
            return {"access": name, "controlChannel": self.control, "aeronDir": str(self.running.aeron_dir)}
        return self.bucket if name == "s3" and self.bucket else {"access": name, "path": str(self.folder)}


@contextmanager
def running(folder: Path) -> Iterator[Archive]:
    """An archive on a folder; sessions with it end with it."""
    control = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    settings = {"aeron.archive.control.channel": control, "aeron.archive.control.channel.enabled": "true"}
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, folder, settings) as archive:
        try:
            yield Archive(folder, archive, control)
        finally:
            while access._archives:
                access._archives.popitem()[1].close()


def record(archive: recorded.Archive) -> None:
    """Recording 0: 600 messages over some 8 segments, each with its time in the reserved value, some with none."""
    publication = archive.record(STREAM)
    for first in range(0, 600, 50):
        bodies = [payload(STREAM, index, SIZES[index % len(SIZES)]) for index in range(first, first + 50)]
        times = [0 if index % 7 == 3 else FIRST_NS + index * STEP_NS for index in range(first, first + 50)]
        publication.offer_batch(pa.array(bodies, pa.binary()), reserved_values=pa.array(times), timeout=20)
    archive.stop(publication, STREAM)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Recording 0, and what a sink of two streams committed and did not commit, one batch larger than two terms."""
    with running(tmp_path_factory.mktemp("ways") / "archive") as found:
        record(found.running)
        sink = Sink(found.running)
        for batch in range(4):
            sink.task(b"lost attempt", batch=batch)
            rows = [b"%d.%d" % (batch, row) + bytes(500 if batch == 2 else 0) for row in range(400)]
            sink.commit(sink.task(*rows, batch=batch), sink.task(b"other %d" % batch, batch=batch, streamId="5"))
            sink.commit(sink.task(b"second attempt", batch=batch))
        close_pool()
        with s3.store(found.folder) as store:
            yield found._replace(bucket=store.options(tmp_path_factory.mktemp("keys") / "keys.json"))


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many windows of a store in a small recording."""
    monkeypatch.setattr(objects, "WINDOW_BYTES", 1)
    monkeypatch.setattr(objects, "REQUEST_BYTES", 50_000)


def batch(way: dict[str, str], **options: str) -> AeronBatchReader:
    parsed = ReadOptions.parse({**way, **options}, streaming=False)
    return AeronBatchReader(parsed, read_schema(parsed))


def rows_of(way: dict[str, str], **options: str) -> Rows:
    return read(batch(way, **options))


def streamed(way: dict[str, str], **options: str) -> Rows:
    """Rows of a stream in batches of 50 kB."""
    parsed = ReadOptions.parse({**way, "startingPositions": "earliest", **options}, streaming=True)
    reader = AeronStreamReader(parsed, read_schema(parsed))
    found: Rows = []
    offset = reader.initialOffset()
    while (end := reader.latestOffset(offset, ReadMaxBytes(50_000))) != offset:
        found += read(reader, reader.partitions(offset, end))
        offset = end
    reader.stop()
    return found


# -- committed reads -----------------------------------------------------------------------------------------------


def committed(way: dict[str, str], **options: str) -> Rows:
    parsed = ReadOptions.parse({**way, "isolation": "read_committed", **options}, streaming=False)
    return read(AeronBatchReader(parsed, read_schema(parsed)))


@contextmanager
def committed_stream(way: dict[str, str], **options: str) -> Iterator[AeronStreamReader]:
    given = {**way, "isolation": "read_committed", "startingPositions": "earliest", **options}
    parsed = ReadOptions.parse(given, streaming=True)
    reader = AeronStreamReader(parsed, read_schema(parsed))
    try:
        yield reader
    finally:
        reader.stop()


def committed_batches(way: dict[str, str]) -> list[tuple[dict[str, object], Rows]]:
    """End and rows of each micro-batch, one entry each."""
    found = []
    with committed_stream(way) as reader:
        start = reader.initialOffset()
        while (end := reader.latestOffset(start, ReadMaxRows(1))) != start:
            found.append((end, read(reader, reader.partitions(start, end))))
            start = end
    return found


def _unmarked(offset: dict[str, object]) -> dict[str, object]:
    """As of the first version of offsets."""
    return {**{name: part for name, part in offset.items() if name != "marks"}, "version": UNMARKED_VERSION}


@pytest.mark.parametrize("way", FAR)
def test_committed_rows_are_those_of_the_folder(archive: Archive, way: str) -> None:
    near, far = archive.way("segments"), archive.way(way)
    expected = committed(near)
    assert len(expected) == 4 * 401
    assert not any(b"attempt" in row["value"] for row in expected)
    assert committed(far) == expected
    assert committed(far, maxBytesPerPartition="70k", streamId=str(STREAM)) == [
        row for row in expected if row["stream_id"] == STREAM
    ]
    by_folder = committed_batches(near)
    assert committed_batches(far) == [(_unmarked(end), rows) for end, rows in by_folder], "a folder's have marks beside"
    with committed_stream(near) as before, committed_stream(far) as after:
        start = before.initialOffset()
        middle = before.latestOffset(start, ReadMaxRows(1))
        end = after.latestOffset(middle, ReadAllAvailable())
        assert read(after, after.partitions(start, end)) == expected


def test_a_store_that_lacks_what_was_committed_says_so(archive: Archive, tmp_path: Path) -> None:
    """If a recording has no data left, the result must not look as if nothing had been committed."""
    store = tmp_path / "store"
    shutil.copytree(archive.folder, store)
    way = {"access": "object store", "path": str(store)}
    (of_ledger,) = (one for one in archive.running.control.recordings() if ledger.is_ledger(one))
    (rows, *_) = {row["recording_id"] for row in committed(way, streamId=str(STREAM))}
    first = sorted(store.glob(f"{rows}-*.rec"), key=lambda path: int(path.stem.partition("-")[2]))
    first[0].unlink()
    if len(first) > 1:
        with pytest.raises(DataLossError, match=f"recording {rows} .* was committed, but the recording now starts"):
            committed(way)
    for path in first[1:]:
        path.unlink()
    with pytest.raises(DataLossError, match=f"recording {rows}, in which .* was committed, has no segment in"):
        committed(way)
    assert {row["value"] for row in committed(way, streamId="5")} == {b"other %d" % number for number in range(4)}
    for path in store.glob(f"{of_ledger.recording_id}-*.rec"):
        path.unlink()
    with pytest.raises(DataLossError, match=f"the ledger, recording {of_ledger.recording_id}, has no segment in"):
        committed(way)
    with committed_stream(way) as reader, pytest.raises(DataLossError, match="the ledger"):
        reader.initialOffset()


# -- times and tails -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", FAR)
def test_times_and_tails_are_those_of_the_folder(archive: Archive, way: str) -> None:
    near, far = archive.way("segments"), archive.way(way)
    by_value = {"recordingIds": "0", "timestampFrom": "reserved(ns)"}
    for index in (0, 3, 299, 300, 599):
        when = f"{FIRST_NS + index * STEP_NS}ns"
        for option in ("startingTimestamp", "endingTimestamp"):
            expected = rows_of(near, **by_value, **{option: when})
            assert rows_of(far, **by_value, **{option: when}) == expected
    assert rows_of(far, **by_value, startingTimestamp=f"{FIRST_NS * 2}ns") == []
    parsed = ReadOptions.parse(
        {**far, **by_value, "startingTimestamp": f"{FIRST_NS + 590 * STEP_NS}ns"}, streaming=True
    )
    reader = AeronStreamReader(parsed, read_schema(parsed))
    offset = reader.initialOffset()
    assert len(read(reader, reader.partitions(offset, reader.latestOffset(offset, ReadAllAvailable())))) == 10
    reader.stop()
    for count in ("0", "1", "37", "1000"):
        assert rows_of(far, recordingIds="0", tail=count) == rows_of(near, recordingIds="0", tail=count)
    columns = "position,timestamp,timestamp_ns"
    assert rows_of(far, **by_value, columns=columns) == rows_of(near, **by_value, columns=columns)


@pytest.mark.parametrize("way", FAR)
@pytest.mark.parametrize(
    "options", [{"startingTimestamp": "2020-01-01"}, {"endingTimestamp": "2100-01-01"}, {"columns": "timestamp"}]
)
def test_the_time_index_is_near_only(archive: Archive, way: str, options: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"archive's own folder only: read with access=segments, or .*reserved\(ns\)"):
        rows_of(archive.way(way), recordingIds="0", **options)


# -- lost and broken bytes -----------------------------------------------------------------------------------------


@pytest.fixture
def copy(archive: Archive, tmp_path: Path) -> Path:
    shutil.copytree(archive.folder, tmp_path / "copy", ignore=shutil.ignore_patterns("archive-mark.dat"))
    return tmp_path / "copy"


@pytest.mark.parametrize(
    ("damage", "allowed"), [(break_frame, {"onCorruption": "skip"}), (remove, {"failOnDataLoss": "false"})]
)
def test_a_store_leaves_out_what_the_folder_does(
    archive: Archive,
    copy: Path,
    damage: Callable[[Path, int], None],
    allowed: dict[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    whole = rows_of(archive.way("segments"), recordingIds="0")
    in_term = [row["position"] for row in whole if row["position"] // TERM == 4]
    damage(copy, in_term[len(in_term) // 2])
    near, store = ({"access": name, "path": str(copy)} for name in ("segments", "object store"))
    with pytest.raises(DataLossError, match=str(copy)):
        rows_of(store, recordingIds="0")
    other = {"onCorruption": "skip"} if "failOnDataLoss" in allowed else {"failOnDataLoss": "false"}
    with pytest.raises(DataLossError, match=r"0-262144\.rec"):
        rows_of(store, recordingIds="0", **other)
    expected = rows_of(near, recordingIds="0", **allowed)
    assert 0 < len(expected) < len(whole)
    for split in ("1g", "70k", "20k"):
        caplog.clear()
        assert rows_of(store, recordingIds="0", maxBytesPerPartition=split, **allowed) == expected
        assert f"recording 0 of {copy}: left out" in caplog.text
        assert "/aeron-spark-" not in caplog.text, "of the store, not of a window's folder"
    assert streamed(store, recordingIds="0", **allowed) == expected
    last = in_term[-1]
    for start in (in_term[len(in_term) // 2] + 32, last):
        inside = {"recordingIds": "0", "startingPositions": f'{{"0": {start}}}', **allowed}
        assert rows_of(store, **inside) == rows_of(near, **inside)


def test_a_replay_of_broken_bytes_fails_and_cannot_skip(archive: Archive, copy: Path) -> None:
    whole = rows_of(archive.way("segments"), recordingIds="0")
    break_frame(copy, next(row["position"] for row in whole if row["position"] > 4 * TERM))
    with running(copy) as broken:
        replay = broken.way("replay")
        with pytest.raises(UsageError, match=r"onCorruption=skip cannot be given for replays.*access=segments"):
            rows_of(replay, recordingIds="0", onCorruption="skip")
        for more in ({}, {"failOnDataLoss": "false"}):
            with pytest.raises(PeerError, match="replay of recording 0"):
                rows_of(replay, recordingIds="0", **more)
        before = rows_of(replay, recordingIds="0", endingPositions=f'{{"0": {4 * TERM}}}')
        assert before == [row for row in whole if row["position"] < 4 * TERM]


@pytest.mark.parametrize("way", ["segments", "replay"])
def test_a_head_that_is_purged_between_planning_and_reading(tmp_path: Path, way: str) -> None:
    """By the archive itself: the task fails with the wanted and the available range, or continues where that is allowed."""
    with running(tmp_path / "archive") as archive:
        record(archive.running)
        here = archive.way(way)
        whole = rows_of(here, recordingIds="0")
        planned, lossy = batch(here, recordingIds="0"), batch(here, recordingIds="0", failOnDataLoss="false")
        partitions = planned.partitions()
        archive.running.control.purge_segments(0, 2 * SEGMENT)
        told = rf"recording 0: \[0, .*but now \[{2 * SEGMENT}, \d+\) is there: it was purged or truncated meanwhile"
        with pytest.raises(DataLossError, match=told):
            read(planned, partitions)
        left = [row for row in whole if row["position"] >= 2 * SEGMENT]
        assert read(lossy, partitions) == left
        assert rows_of(here, recordingIds="0") == left, "a new plan begins at what is there"
        with pytest.raises(AeronError, match=f"is out of range, {2 * SEGMENT} to"):
            rows_of(here, recordingIds="0", startingPositions='{"0": 64}')


# -- many recordings -----------------------------------------------------------------------------------------------

RECORDINGS, KINDS = 2500, 125


@pytest.fixture(scope="module")
def many(archive: Archive, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """An archive of 2,500 recordings in 125 channels, more than any page of a listing: all with the bytes of one."""
    folder = tmp_path_factory.mktemp("many") / "archive"
    folder.mkdir()
    with Folder(archive.folder) as opened:
        small = next(one for one in opened.recordings() if one.stream_id == 5)
    channels = [f"aeron:ipc?alias=kind-{number:03}" for number in range(KINDS)]
    catalog = catalog_of(
        [
            replace(
                small,
                recording_id=RecordingId(number),
                original_channel=channels[number % KINDS],
                stripped_channel=channels[number % KINDS],
            )
            for number in range(RECORDINGS)
        ]
    )
    (folder / objects.CATALOG).write_bytes(catalog)
    shutil.copy(archive.folder / f"{small.recording_id}-0.rec", folder / "0-0.rec")
    for number in range(1, RECORDINGS):
        (folder / f"{number}-0.rec").hardlink_to(folder / "0-0.rec")
    with running(folder) as found:
        yield found


@pytest.mark.parametrize("way", ["segments", "replay", "object store"])
def test_recordings_of_a_long_catalog_are_chosen_by_pattern(archive: Archive, many: Archive, way: str) -> None:
    one = rows_of(archive.way("segments"), streamId="5")
    values = [row["value"] for row in one if row["recording_id"] == one[0]["recording_id"]]
    wanted = [number for number in range(RECORDINGS) if number % KINDS == 120]
    pattern = {"channelPattern": "kind-120$"}
    for rows in (rows_of(many.way(way), **pattern), streamed(many.way(way), **pattern)):
        assert [(row["recording_id"], row["value"]) for row in rows] == [
            (number, value) for number in wanted for value in values
        ]
    assert len(batch(many.way(way), channelPattern="kind-12[0-4]", maxBytesPerPartition="1k").partitions()) > 10
    with pytest.raises(UsageError, match="matches channelPattern=kind-125; there are: aeron:ipc"):
        rows_of(many.way(way), channelPattern="kind-125")

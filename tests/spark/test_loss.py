"""Missing or broken bytes: failures, rows that are skipped and counted on request; limits of a trigger.

A folder of ours is copied and damaged in known places; what is left out must be what cannot be read, whatever the partitions.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxRows

from aeron_spark.errors import DataLossError
from aeron_spark.spark.planning import uncommitted
from aeron_spark.spark.planning.ranges import Budget, Slice, share_out
from aeron_spark.spark.reading.stream import AeronStreamReader
from tests.kit import dirs
from tests.spark import recorded
from tests.spark.readers import Follower, batch, read, stream
from tests.spark.test_reader import START_POSITION, STATE, STOP_POSITION, edit_catalog

SIZES = [8, 100, 1377, 5000]
TERM, SEGMENT = 64 * 1024, 128 * 1024


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Recording 0: 600 messages over 8 segments; 1: 50; 2: 6,000 small ones, 1,024 in a term."""
    archive_dir = tmp_path_factory.mktemp("loss") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        archive.recorded(1001, 600, SIZES)
        archive.recorded(1002, 50, SIZES)
        archive.recorded(1003, 6000, [8])
    return archive_dir


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    shutil.copytree(folder, tmp_path / "copy")
    return tmp_path / "copy"


def break_frame(copy: Path, position: int, recording_id: int = 0) -> None:
    """An impossible frame length."""
    with (copy / f"{recording_id}-{position // SEGMENT * SEGMENT}.rec").open("r+b") as file:
        file.seek(position % SEGMENT)
        file.write(b"\x05\x00\x00\x00")


def remove(copy: Path, position: int, recording_id: int = 0) -> None:
    """The segment that holds a position."""
    (copy / f"{recording_id}-{position // SEGMENT * SEGMENT}.rec").unlink()


Damage = Callable[[Path, int], None]


@pytest.mark.parametrize(("damage", "option"), [(break_frame, "onCorruption"), (remove, "failOnDataLoss")])
@pytest.mark.parametrize("split", ["1g", "20k"])
def test_broken_bytes_are_left_out_and_counted(
    copy: Path, damage: Damage, option: str, split: str, caplog: pytest.LogCaptureFixture
) -> None:
    whole = read(batch(copy, recordingIds="0"))
    in_term = [row for row in whole if row["position"] // TERM == 4]
    broken = in_term[len(in_term) // 2]["position"]
    damage(copy, broken)
    with pytest.raises(DataLossError, match=f"recording 0.*0-{4 * TERM // SEGMENT * SEGMENT}.rec"):
        read(batch(copy, recordingIds="0"))
    # The other option is not about this.
    other = {"onCorruption": "skip"} if option == "failOnDataLoss" else {"failOnDataLoss": "false"}
    with pytest.raises(DataLossError, match="recording 0"):
        read(batch(copy, recordingIds="0", **other))
    gone = range(broken, 5 * TERM) if damage is break_frame else range(4 * TERM, 6 * TERM)
    allowed = {option: "skip" if option == "onCorruption" else "false"}
    expected = [row for row in whole if row["position"] not in gone]
    assert 0 < len(expected) < len(whole)
    assert read(batch(copy, recordingIds="0", maxBytesPerPartition=split, **allowed)) == expected
    assert "left out" in caplog.text
    if split == "1g":
        assert f"left out {len(gone)} bytes, [{gone.start}, {gone.stop})" in caplog.text
    reader = stream(copy, recordingIds="0", **allowed)
    offset, seen = reader.initialOffset(), []
    for _ in range(200):
        end = reader.latestOffset(offset, ReadMaxBytes(50_000))
        if end == offset:
            break
        seen += read(reader, reader.partitions(offset, end))
        offset = end
    reader.stop()
    assert seen == expected


@pytest.mark.parametrize(("damage", "option"), [(break_frame, "onCorruption"), (remove, "failOnDataLoss")])
@pytest.mark.parametrize("limit", [ReadAllAvailable(), ReadMaxBytes(1 << 30), ReadMaxRows(7)])
def test_a_batch_over_broken_bytes_ends_between_messages(
    copy: Path, damage: Damage, option: str, limit: ReadLimit
) -> None:
    """Though the archive had recorded a part of a message by then; and a limit of messages is exact there, too."""
    options = {"recordingIds": "0", option: "skip" if option == "onCorruption" else "false"}
    whole = read(batch(copy, recordingIds="0"))
    end = whole[-1]["next_position"]
    large = next(row["position"] for row in whole if row["position"] > 5 * TERM and len(row["value"]) == 5000)
    with Follower(copy, **options) as follower:
        damage(copy, 0)
        expected = read(batch(copy, **options))
        assert {row["position"] for row in expected} > {large}
        seen = []
        for stop in (large + 2 * 1408, end):
            edit_catalog(copy, 0, STOP_POSITION, stop)
            follower.reader.planner.pace.due_at = 0.0
            while (reached := follower.reader.latestOffset(follower.offset, limit)) != follower.offset:
                rows = read(follower.reader, follower.reader.partitions(follower.offset, reached))
                assert len(rows) <= 7 or not isinstance(limit, ReadMaxRows)
                seen, follower.offset = seen + rows, reached
                if isinstance(limit, ReadAllAvailable):
                    assert reached["positions"] == {"0": end if stop == end else large}, "all there is"
    assert seen == expected


@pytest.mark.parametrize(("damage", "option"), [(break_frame, "onCorruption"), (remove, "failOnDataLoss")])
@pytest.mark.parametrize("messages", [0, 3])
def test_a_query_begins_at_broken_bytes(copy: Path, damage: Damage, option: str, messages: int) -> None:
    """In the last term, wherever it is to begin: a stream begins as a batch read does, and at the latest position."""
    options = {"recordingIds": "0", option: "skip" if option == "onCorruption" else "false"}
    whole = read(batch(copy, recordingIds="0"))
    end = whole[-1]["next_position"]
    in_term = [row["position"] for row in whole if row["position"] >= (end - 1) // TERM * TERM]
    damage(copy, in_term[messages])
    readable = read(batch(copy, **options))
    assert len(whole) - len(in_term) - messages <= len(readable) < len(whole)
    assert read(batch(copy, tail="4", **options))[-4:] == readable[-4:]
    by_reserved = {"timestampFrom": "reserved(ns)", **options}
    last = whole[-1]["reserved_value"]
    assert read(batch(copy, endingTimestamp=f"{last}ns", **by_reserved)) == readable
    for given in (
        {"startingPositions": f'{{"0": {end - 64}}}'},
        {"startingPositions": f'{{"0": {in_term[messages] + 20}}}'},
        {"tail": "4"},
        {"tail": "100"},
        {"startingTimestamp": "2020-01-01"},
        {"startingTimestamp": f"{last}ns", "timestampFrom": "reserved(ns)"},
    ):
        with pytest.raises(DataLossError):
            read(batch(copy, recordingIds="0", **given))
        with Follower(copy, **given, **options) as follower:
            assert follower.step() == read(batch(copy, **given, **options)), given
    with Follower(copy, startingPositions="latest", **options) as follower:
        assert follower.offset["positions"] == {"0": end}
    with Follower(copy, tail="4", **options) as follower:
        assert len(follower.step()) in {4, 4 + messages}


@pytest.mark.parametrize("count", [1, 4, 40])
def test_the_last_messages_are_counted_around_broken_bytes(copy: Path, count: int) -> None:
    whole = read(batch(copy, recordingIds="0"))
    last_term = (whole[-1]["next_position"] - 1) // TERM * TERM
    break_frame(copy, next(row["position"] for row in whole if row["position"] >= last_term - TERM // 8))
    skip = {"recordingIds": "0", "onCorruption": "skip"}
    readable = read(batch(copy, **skip))
    found = read(batch(copy, tail=str(count), **skip))
    assert found[-count:] == readable[-count:]
    in_last_term = sum(row["position"] >= last_term for row in whole)
    assert len(found) == count or count > in_last_term


def test_a_position_outside_is_no_broken_frame(copy: Path) -> None:
    reader = stream(copy, recordingIds="0", onCorruption="skip", startingPositions='{"0": 99999999}')
    with pytest.raises(DataLossError, match="is out of range"):
        reader.initialOffset()
    reader.stop()


@pytest.mark.parametrize("frame", [0, 1, 10, 100, 500, 1023])
def test_rows_before_what_is_broken_are_given_once(copy: Path, frame: int) -> None:
    """In whichever batch and partition they are, and wherever the range begins."""
    whole = read(batch(copy, recordingIds="2", columns="position"))
    broken = 2 * TERM + 64 * frame
    break_frame(copy, broken, 2)
    expected = [row for row in whole if not broken <= row["position"] < 3 * TERM]
    skip = {"recordingIds": "2", "columns": "position", "onCorruption": "skip"}
    for rows_per_batch in ("1", "50", "16384"):
        for split in ("1g", "20k", "3k"):
            options = {**skip, "rowsPerBatch": rows_per_batch, "maxBytesPerPartition": split}
            assert read(batch(copy, **options)) == expected, (rows_per_batch, split)
    for begin in (broken - 640, broken - 64, broken):
        from_there = read(batch(copy, **skip, rowsPerBatch="50", startingPositions=f'{{"2": {begin}}}'))
        assert from_there == [row for row in expected if row["position"] >= begin]
    with Follower(copy, **skip, rowsPerBatch="50") as follower:
        assert follower.step() == expected


def test_rows_before_what_is_missing_are_given_once(copy: Path) -> None:
    whole = read(batch(copy, recordingIds="2", columns="position"))
    remove(copy, 2 * TERM, 2)
    expected = [row for row in whole if not 2 * TERM <= row["position"] < 4 * TERM]
    for split in ("1g", "20k"):
        options = {"columns": "position", "failOnDataLoss": "false", "maxBytesPerPartition": split}
        assert read(batch(copy, recordingIds="2", rowsPerBatch="50", **options)) == expected


def test_a_plan_whose_bytes_went_is_cut_if_that_may_be(copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    reader = batch(copy, recordingIds="0", failOnDataLoss="false")
    whole = read(reader)
    partitions = reader.partitions()
    edit_catalog(copy, 0, START_POSITION, SEGMENT)
    assert read(reader, partitions) == [row for row in whole if row["position"] >= SEGMENT]
    assert "was planned to be read from" in caplog.text
    (record,) = caplog.records
    assert vars(record)["aeron"] == {"path": str(copy), "recording_id": 0, "position": 0}


@pytest.mark.parametrize(
    ("change", "left", "told"),
    [
        (
            (0, START_POSITION, 2 * SEGMENT),
            lambda row: row["recording_id"] or row["position"] >= 2 * SEGMENT,
            "purged before",
        ),
        ((0, STOP_POSITION, 64), lambda row: row["recording_id"], "truncated"),
        ((1, STATE, 2), lambda row: row["recording_id"] != 1, "not in archive"),
    ],
)
def test_a_query_goes_on_if_that_may_be(
    copy: Path,
    change: tuple[int, tuple[int, str], int],
    left: Callable[[dict[str, int]], bool],
    told: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    whole = read(batch(copy))
    with Follower(copy, failOnDataLoss="false") as follower:
        middle = follower.reader.latestOffset(follower.offset, ReadMaxBytes(100_000))
        seen = read(follower.reader, follower.reader.partitions(follower.offset, middle))
        follower.offset = middle
        edit_catalog(copy, *change)
        rest = follower.step()
        assert sorted(map(str, rest)) == sorted(str(row) for row in whole if left(row) and row not in seen)
        assert told in caplog.text
        assert {vars(record)["aeron"]["recording_id"] for record in caplog.records} == {change[0]}
        assert follower.step() == []


def test_small_amounts_wait_for_a_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = ExitStack()

    def made(**options: str) -> AeronStreamReader:
        reader = stream(folder, **options)
        opened.callback(reader.stop)
        return reader

    now = [1000.0]
    monkeypatch.setattr(uncommitted.time, "monotonic", lambda: now[0])
    reader = made(minBytesPerTrigger="1g", maxTriggerDelay="10s")
    start = reader.initialOffset()
    first = reader.latestOffset(start, ReadMaxBytes(100_000))
    assert first != start, "the first batch waits for nothing"
    now[0] += 9.0
    assert reader.latestOffset(first, ReadMaxBytes(100_000)) == first
    assert reader.latestOffset(first, ReadAllAvailable()) != first
    reader = made(minBytesPerTrigger="1g", maxTriggerDelay="10s")
    reader.latestOffset(start, ReadMaxBytes(100_000))
    now[0] += 10.5
    assert reader.latestOffset(first, ReadMaxBytes(100_000)) != first
    reader = made(minBytesPerTrigger="1g")
    reader.prepareForTriggerAvailableNow()
    assert reader.latestOffset(first, ReadMaxBytes(100_000)) != first
    opened.close()


def test_busy_recordings_never_starve_a_small_one() -> None:
    """Nine that grow by more than is taken, one with a single message: under either limit it is read."""

    def advance(recording_id: int, begin: int, limit: int, max_bytes: int | None, max_messages: int | None) -> int:
        whole = (limit - begin) // 64
        wanted = [whole, *(count for count in (max_bytes and max_bytes // 64, max_messages) if count is not None)]
        return begin + 64 * (max(min(wanted), 1) if whole else 0)

    for budget in (Budget(max_bytes=640, max_messages=None), Budget(max_bytes=None, max_messages=3),
                   Budget(max_bytes=64, max_messages=2)):  # fmt: skip
        positions: dict[int, int] = dict.fromkeys(range(10), 0)
        waited: dict[int, int] = {}
        for _ in range(12):
            slices = [Slice(recording_id=key, begin=begin, limit=begin + (64 if key == 9 else 10**7))
                      for key, begin in positions.items()]  # fmt: skip
            ends = share_out(slices, budget, advance, waited)
            waited = {
                part.recording_id: waited.get(part.recording_id, 0) + 1
                for part in slices
                if ends[part.recording_id] == part.begin
            }
            positions = ends
            if positions[9]:
                break
        assert positions[9] == 64, f"still waiting under {budget}"


@pytest.mark.parametrize("access", ["segments", "object store"])
def test_what_looks_damaged_is_told_or_fails(copy: Path, access: str, caplog: pytest.LogCaptureFixture) -> None:
    """A frame's checksum does not cover its flags: the message is lost, and its neighbours show it."""
    options = {"recordingIds": "2", "access": access}
    whole = read(batch(copy, **options))
    assert "breaks off" not in caplog.text
    position = 2 * TERM + 640
    with (copy / f"2-{2 * TERM}.rec").open("r+b") as file:
        file.seek(position % SEGMENT + 5)
        file.write(b"\x80")
    assert read(batch(copy, **options)) == [row for row in whole if row["position"] != position]
    assert f"recording 2 at position {position}: a message breaks off where the next one begins" in caplog.text
    with pytest.raises(DataLossError, match=f"at position {position}: a message breaks off.*onCorruption=fail goes on"):
        read(batch(copy, onCorruption="strict", **options))


def test_recordings_that_are_marked_invalid_are_told(copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    edit_catalog(copy, 1, STATE, 0)
    assert {row["recording_id"] for row in read(batch(copy))} == {0, 2}
    assert "1 recordings are marked INVALID and left out" in caplog.text

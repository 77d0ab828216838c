"""Planning of micro-batches is pure: tables of backlogs, limits and what must come out."""

from __future__ import annotations

import contextlib
import json
import random
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.spark.planning import kafka_options
from aeron_spark.spark.planning.offsets import Offset, recording_identity
from aeron_spark.spark.planning.options import ReadOptions, parse_bytes, parse_duration_seconds
from aeron_spark.spark.planning.ranges import Budget, Range, Slice, pack, share_out, target_partition_bytes
from aeron_spark.spark.reading.batch import joined
from aeron_spark.spark.writing.options import WriteOptions

FRAME = 64


def advance(recording_id: int, begin: int, limit: int, max_bytes: int | None, max_messages: int | None) -> int:
    """Messages of 64 bytes (recording 9: of 1,000 x 64), at least one, as ``Folder.advance`` does; 8 and 7 end inside one."""
    if recording_id in {7, 8}:
        return begin
    size = FRAME * 1000 if recording_id == 9 else FRAME
    available = (limit - begin) // size
    wanted = available
    if max_bytes is not None:
        wanted = min(wanted, max_bytes // size)
    if max_messages is not None:
        wanted = min(wanted, max_messages)
    return begin + size * (max(wanted, 1) if available else 0)


def slices(*backlogs: tuple[int, int]) -> list[Slice]:
    return [Slice(recording_id=recording_id, begin=128, limit=128 + backlog) for recording_id, backlog in backlogs]


@pytest.mark.parametrize(
    ("backlogs", "max_bytes", "max_messages", "taken"),
    [
        ([(0, 640)], None, None, {0: 640}),
        ([(0, 640), (1, 0)], None, None, {0: 640, 1: 0}),
        ([(0, 640)], 128, None, {0: 128}),
        ([(0, 640)], 1, None, {0: 64}),  # a limit below one message still progresses
        ([(0, 6400), (1, 640)], 1100, None, {0: 960, 1: 128}),  # in proportion to backlog
        ([(0, 640), (1, 640)], 64, None, {0: 0, 1: 64}),  # no room for one each: one alone
        ([(9, 64000), (0, 6400)], 6400, None, {9: 0, 0: 6400}),  # a large message waits while others fit
        ([(9, 64000)], 6400, None, {9: 64000}),
        ([(0, 64000), (9, 64000)], 64000, None, {0: 32000, 9: 0}),  # what others took is gone for the large one
        ([(9, 64000), (8, 6400), (0, 64)], 64064, None, {9: 64000, 8: 0, 0: 64}),  # what is left is just enough
        ([(0, 640), (1, 640)], None, 5, {0: 192, 1: 128}),
        ([(0, 640)], 320, 3, {0: 192}),  # both limits hold
        # What ends inside a message leaves its share to the others.
        ([(8, 6400), (0, 640)], None, 1, {8: 0, 0: 64}),
        ([(8, 6400), (7, 6400), (0, 640), (1, 640)], None, 3, {8: 0, 7: 0, 0: 128, 1: 64}),
        ([(8, 64000), (0, 640)], 640, None, {8: 0, 0: 640}),
        ([(8, 64000), (7, 64000), (0, 640)], 640, 2, {8: 0, 7: 0, 0: 128}),
    ],
)
def test_share_out(
    backlogs: list[tuple[int, int]], max_bytes: int | None, max_messages: int | None, taken: dict[int, int]
) -> None:
    ends = share_out(slices(*backlogs), Budget(max_bytes=max_bytes, max_messages=max_messages), advance)
    assert {recording_id: end - 128 for recording_id, end in ends.items()} == taken


def test_share_out_never_starves_nor_exceeds(rng: random.Random) -> None:
    for _ in range(200):
        parts = slices(*[(recording_id, 64 * rng.randrange(50)) for recording_id in range(rng.randrange(1, 8))])
        budget = Budget(max_bytes=rng.choice([None, 1, 64, 1000, 5000]), max_messages=rng.choice([None, 1, 7, 100]))
        positions = {part.recording_id: part.begin for part in parts}
        for _ in range(20000):
            current = [
                Slice(recording_id=p.recording_id, begin=positions[p.recording_id], limit=p.limit) for p in parts
            ]
            ends = share_out(current, budget, advance)
            taken = sum(ends[p.recording_id] - p.begin for p in current)
            if taken == 0:
                break
            if budget.max_bytes is not None:
                assert taken <= max(budget.max_bytes, FRAME)
            if budget.max_messages is not None:
                assert taken <= budget.max_messages * FRAME
            positions = ends
        assert positions == {part.recording_id: part.limit for part in parts}


@pytest.mark.parametrize(
    ("total", "slots", "min_partitions", "max_bytes", "target"),
    [
        (1 << 30, 2, None, None, 256 << 20),
        (100 << 20, 2, None, None, (50 << 20) + (64 << 10)),
        (1 << 20, 8, None, None, 4 << 20),
        (1 << 20, 8, 4, None, (1 << 18) + (1 << 15)),
        (1 << 30, 2, None, 1 << 20, 1 << 20),
        (0, 2, None, None, 4 << 20),
    ],
)
def test_partition_target(
    total: int, slots: int, min_partitions: int | None, max_bytes: int | None, target: int
) -> None:
    assert target_partition_bytes(total, slots=slots, min_partitions=min_partitions, max_bytes=max_bytes) == target


@pytest.mark.parametrize(
    ("sizes", "target", "packs"),
    [
        ([], 10, []),
        ([3, 3, 3, 3], 10, [[3, 3, 3], [3]]),
        ([10, 1, 10], 10, [[10], [1], [10]]),
        ([25, 1, 1], 10, [[25], [1, 1]]),  # a range that could not be cut smaller
        ([1, 1], 1, [[1], [1]]),
    ],
)
def test_small_ranges_share_a_partition(sizes: list[int], target: int, packs: list[list[int]]) -> None:
    ranges = [Range(recording_id, 64, 64 + size, 1000) for recording_id, size in enumerate(sizes)]
    packed = pack(ranges, target)
    assert [[part.end - part.start for part in members] for members in packed] == packs
    assert [part for members in packed for part in members] == ranges


def test_small_batches_are_joined_and_rows_stay(rng: random.Random) -> None:
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("value", pa.binary(), nullable=False)])
    for _ in range(50):
        sizes = [rng.choice([1, 1, 2, 5, 12, 13, 40, 100]) for _ in range(rng.randrange(60))]
        numbers = iter(range(sum(sizes)))
        batches = []
        for size in sizes:
            chosen = [next(numbers) for _ in range(size)]
            batches.append(pa.record_batch([chosen, [b"x" * (number % 50) for number in chosen]], schema=schema))
        made = list(joined(iter(batches), max_rows=100, max_bytes=4000))
        assert all(batch.schema.equals(schema) for batch in made), "nullability, too"
        assert [number for batch in made for number in batch.column("n").to_pylist()] == list(range(sum(sizes)))
        assert all(batch.num_rows <= 100 for batch in made)
        assert all(batch.nbytes <= 4000 or batch.num_rows in sizes for batch in made)
        # Each starts with a batch that did not fit to what is before it, or one of the two is not small.
        unread = iter(batches)
        before: list[pa.RecordBatch] = []
        for batch in made:
            members: list[pa.RecordBatch] = []
            while sum(member.num_rows for member in members) < batch.num_rows:
                members.append(next(unread))
            together = [*before, members[0]]
            if before and all(one.num_rows <= 12 and one.nbytes <= 500 for one in together):
                assert sum(one.num_rows for one in together) > 100 or sum(one.nbytes for one in together) > 4000
            before = members
    assert list(joined(iter([]), max_rows=1, max_bytes=1)) == []


GOLDEN_OFFSET_1 = (
    '{"archive": {"0": 7, "10": 9, "2": 8}, "positions": {"0": 64, "10": 32, "2": 0}, '
    '"starts": {"0": 0, "10": 0, "2": 0}, "version": 1}'
)


def test_offset_text_is_read_for_ever_and_stable() -> None:
    offset = Offset.from_json_dict(json.loads(GOLDEN_OFFSET_1))
    assert offset.by_id(offset.positions) == {0: 64, 2: 0, 10: 32}
    assert json.dumps(offset.json) == GOLDEN_OFFSET_1
    shuffled = Offset.of_recordings(
        positions={10: 32, 2: 0, 0: 64}, starts={2: 0, 0: 0, 10: 0}, identities={10: 9, 0: 7, 2: 8}
    )
    assert json.dumps(shuffled.json) == GOLDEN_OFFSET_1


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"version": 3}, "version 3"),
        ({"version": 2, "marks": 5}, "marks"),
        ({"version": 2, "marks": {"0": "x"}}, "marks.0"),
        ({"positions": None}, "positions"),
        ({"positions": {"0": 1.5, "2": 0, "10": 0}}, "positions.0"),
        ({"positions": {"0": 1}}, "do not match"),
        ({"positions": {"0": True, "2": 0, "10": 0}}, "positions.0"),
        ({"starts": {"-1": 0, "2": 0, "10": 0}}, "starts.-1"),
        ({"starts": {"x": 0, "2": 0, "10": 0}}, "starts.x"),
    ],
)
def test_damaged_offset_is_an_error(change: dict[str, object], names: str) -> None:
    with pytest.raises(UsageError, match=names):
        Offset.from_json_dict({**json.loads(GOLDEN_OFFSET_1), **change})


GOLDEN_OFFSET_2 = (
    '{"archive": {"0": 7, "10": 9, "2": 8}, "marks": {"0": 281474976710655, "10": 65536}, '
    '"positions": {"0": 64, "10": 32, "2": 0}, "starts": {"0": 0, "10": 0, "2": 0}, "version": 2}'
)


def test_an_offset_with_marks_is_read_for_ever_and_stable() -> None:
    offset = Offset.from_json_dict(json.loads(GOLDEN_OFFSET_2))
    assert offset.marks.tolist() == [281474976710655, 0, 65536]
    assert json.dumps(offset.json) == GOLDEN_OFFSET_2
    unsorted = dict(reversed(json.loads(GOLDEN_OFFSET_2).items()))
    unsorted["starts"] = {"2": 0, "0": 0, "10": 0}
    assert json.dumps(Offset.from_json_dict(unsorted).json) == GOLDEN_OFFSET_2
    assert offset.by_id(offset.positions) == {0: 64, 2: 0, 10: 32}
    here = offset.marks_at(np.array([0, 2, 3, 10]), np.array([64, 0, 64, 64]))
    assert here.tolist() == [281474976710655, 0, 0, 0], "a mark is that of its position"
    moved = offset.moved(np.array([0, 1]), np.array([96, 0]), np.array([77, 5]))
    assert moved.json["marks"] == {"0": 77, "10": 65536}
    assert offset.moved(np.array([0, 2]), np.array([96, 64])).json["version"] == 1, "no mark is left"


def random_offset(rng: random.Random, count: int) -> Offset:
    ids = sorted(rng.sample(range(3 * count), count))
    starts = [64 * rng.randrange(4) for _ in ids]
    return Offset.of(
        ids=np.array(ids, np.int64),
        positions=np.array([start + 64 * rng.randrange(4) for start in starts], np.int64),
        starts=np.array(starts, np.int64),
        identities=np.array([number * 7 for number in ids], np.int64),
    )


def plain_begin(offset: Offset, end: Offset, recording_id: int) -> int:
    """Where the batch (offset, end] begins in one recording, without arrays."""
    starts, last = offset.by_id(offset.starts), end.by_id(end.starts)
    is_continued = starts.get(recording_id) == last[recording_id]
    return offset.by_id(offset.positions)[recording_id] if is_continued else last[recording_id]


def test_arrays_of_an_offset_are_the_offset(rng: random.Random) -> None:
    assert json.dumps(Offset.from_json_dict(json.loads(GOLDEN_OFFSET_1)).json) == GOLDEN_OFFSET_1
    unsorted = dict(reversed(json.loads(GOLDEN_OFFSET_1).items()))
    unsorted["starts"] = {"2": 0, "0": 0, "10": 0}
    assert json.dumps(Offset.from_json_dict(unsorted).json) == GOLDEN_OFFSET_1
    with pytest.raises(UsageError, match="64 bits"):
        Offset.from_json_dict({**json.loads(GOLDEN_OFFSET_1), "positions": {"0": 1 << 64, "10": 0, "2": 0}})
    for _ in range(200):
        first, last = random_offset(rng, rng.randrange(8)), random_offset(rng, rng.randrange(8))
        positions = first.by_id(first.positions)
        texts = json.loads(json.dumps(first.json))
        assert texts["positions"] == {str(key): position for key, position in positions.items()}
        assert [*texts["positions"]] == sorted(texts["positions"])
        assert Offset.from_json_dict(texts).by_id(Offset.from_json_dict(texts).positions) == positions
        begins = [plain_begin(first, last, number) for number in last.ids.tolist()]
        assert first.begins(last).tolist() == begins
        goes_back = any(end < begin for begin, end in zip(begins, last.positions.tolist(), strict=True))
        with pytest.raises(DataLossError, match="before its begin") if goes_back else contextlib.nullcontext():
            first.check_advances_to(last)
        moved = first.positions.copy()
        if len(moved):
            index = rng.randrange(len(moved))
            moved[index] += 64
            there = first.moved(np.arange(len(moved)), moved)
            assert there.by_id(there.positions) == {**positions, int(first.ids[index]): int(moved[index])}
            assert Offset.from_json_dict(there.json).positions.tolist() == there.positions.tolist()
            assert first.moved(np.arange(len(moved)), first.positions) is first
            assert first.by_id(first.positions) == positions, "the offset itself is as it was"
            assert json.dumps(first.json) == json.dumps(texts)


def one(position: int, start: int) -> Offset:
    return Offset.of_recordings(positions={0: position}, starts={0: start}, identities={0: 1})


def test_begin_of_a_replayed_batch_0_is_the_journaled_start() -> None:
    journaled = one(4096, start=1024)
    assert one(1024, start=1024).begins(journaled).tolist() == [1024]
    assert one(2048, start=1024).begins(journaled).tolist() == [2048]
    assert one(9999, start=9999).begins(journaled).tolist() == [1024]  # "latest" resolved again after the crash
    nothing = Offset.of_recordings(positions={}, starts={}, identities={})
    assert nothing.begins(journaled).tolist() == [1024]


def test_offset_that_goes_back_is_data_loss() -> None:
    with pytest.raises(DataLossError, match="before its begin"):
        one(4096, start=0).check_advances_to(one(64, start=0))


def test_identity_depends_on_every_fact() -> None:
    facts = {
        "recording_id": 1,
        "start_timestamp_ms": 2,
        "initial_term_id": 3,
        "term_length": 4,
        "segment_length": 5,
        "stream_id": 6,
    }
    plain = recording_identity(**facts)
    assert 0 <= plain < 1 << 48
    assert len({recording_identity(**{**facts, key: value + 1}) for key, value in facts.items()} | {plain}) == 7


@pytest.mark.parametrize(("text", "value"), [("512", 512), ("64k", 65536), ("1.5m", 3 << 19), ("2 GB", 2 << 30)])
def test_parse_bytes(text: str, value: int) -> None:
    assert parse_bytes("maxBytesPerTrigger", text) == value


def test_parse_duration() -> None:
    assert parse_duration_seconds("publishTimeout", "500ms") == 0.5
    for text in ("0", "0s", "0.0s", " 00.000 MS"):
        assert WriteOptions.parse({"streamId": "1", "linger": text}).linger == 0


@pytest.mark.parametrize(
    ("options", "streaming", "names"),
    [
        ({}, False, "path is missing"),
        ({"path": "x", "startingposition": "earliest"}, False, "did you mean startingPositions"),
        ({"path": "x", "recordingids": "1", "channel": "aeron:ipc"}, False, "not both"),
        ({"path": "x", "recordingids": "1,1"}, False, "twice"),
        ({"path": "x", "recordingids": "1,"}, False, "'1,' must be ids with commas between"),
        ({"path": "x", "startingpositions": '{"0": 0, " 0": 64}'}, False, "twice"),
        ({"path": "x", "startingpositions": '{"first": 0}'}, False, "'first' is no recording id"),
        ({"path": "x", "startingpositions": '[["0", 64]]'}, False, "must be a JSON object"),
        ({"path": "x", "tail": "5", "endingpositions": "latest"}, False, "tail or endingPositions, not both"),
        ({"path": "a/0-0.rec", "streamid": "5"}, False, "streamId cannot be given: segment files are given"),
        ({"path": "x", "filterpushdown": "true"}, True, "it is for batch reads"),
        ({"path": "x", "storeoptions": "{}"}, False, "storeOptions is for object stores"),
        ({"path": "x", "recordingids": "one"}, False, "no whole number"),
        ({"path": "x", "endingpositions": "latest"}, True, "batch reads"),
        ({"path": "x", "maxbytespertrigger": "1m"}, False, "streaming reads"),
        ({"path": "x", "startingpositions": '{"0": -1}'}, False, "position -1"),
        ({"path": "x", "startingpositions": "soon"}, False, "earliest, latest or JSON"),
        ({"path": "x", "endingpositions": "earliest"}, False, "read nothing"),
        ({"path": "x", "recordchecksum": "md5"}, False, "crc-32c"),
        ({"path": "x", "maxbytespertrigger": "0"}, True, "at least 1"),
        ({"path": "x", "streamid": "4294967296"}, False, "out of range"),
        ({"path": "x", "recordingids": " "}, False, "recordingIds is empty"),
        ({"path": "ftp://host/x"}, False, "ftp: cannot be read"),
        ({"paths": '["x", "y"]'}, False, "several paths"),
        ({"path": "x", "bytesperbatch": "8g"}, False, "at most 1073741824"),
        ({"path": "x", "maxbytespertrigger": "99999999999g"}, True, "at most"),
        ({"path": "x", "maxbytespertrigger": "9" * 400}, True, "at most 4611686018427387904"),
        ({"path": "x", "maxbytespertrigger": str((1 << 62) + 1)}, True, "at most 4611686018427387904"),
        (
            {"controlchannel": "aeron:udp?endpoint=a:1", "controlstreamid": "2147483648"},
            True,
            "from -2147483648 to 2147483647",
        ),
    ],
)
def test_read_options_refused(options: dict[str, str], streaming: bool, names: str) -> None:
    with pytest.raises(UsageError, match=names):
        ReadOptions.parse(options, streaming=streaming)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, "streamId is missing"),
        ({"streamid": "1", "publishtimeout": "never"}, "unit"),
        ({"streamid": "1", "chanel": "x"}, "channel"),
        ({"streamid": "1", "channel": "ipc"}, "must begin with 'aeron:'"),
        ({"streamid": "1", "path": "x"}, "a sink publishes and has no path"),
        ({"streamid": "1", "linger": "0munsnu"}, "no number with a unit"),
        ({"streamid": "1", "publishtimeout": "0.0s"}, "must be more than 0 and at most"),
        ({"streamid": "1", "linger": "9" * 400}, "must be at least 0 and at most 4294967296 s"),
    ],
)
def test_write_options_refused(options: dict[str, str], names: str) -> None:
    with pytest.raises(UsageError, match=names):
        WriteOptions.parse(options)


@pytest.mark.parametrize(
    ("given", "folder"),
    [
        ("/data/a b", "/data/a b"),
        ("file:/data", "/data"),
        ("file:///data/a b", "/data/a b"),
        ("data", f"{Path.cwd()}/data"),
        ("file:data", f"{Path.cwd()}/data"),
        ("/data/at:12://x", "/data/at:12:/x"),
    ],
)
def test_folders_are_absolute(given: str, folder: str) -> None:
    """Tasks have other working directories than the planning process."""
    assert ReadOptions.parse({"path": given}, streaming=False).path == folder
    assert WriteOptions.parse({"streamid": "1", "recordto": given}).record_to == folder


def test_defaults() -> None:
    batch = ReadOptions.parse({"path": "x"}, streaming=False)
    stream = ReadOptions.parse({"path": "x", "checkpointLocation": "y"}, streaming=True)
    assert (batch.starting_positions.word, stream.starting_positions.word) == ("earliest", "latest")
    assert stream.starting_positions.of(3) == "latest"
    mixed = ReadOptions.parse({"path": "x", "startingpositions": '{"1": 64}'}, streaming=True)
    assert mixed.starting_positions.of(1) == 64
    assert mixed.starting_positions.of(2) == "earliest"


def test_options_of_kafka_are_told_with_what_does_the_same() -> None:
    """However they are spelled: Spark gives them in lower case."""
    for options, expected in (
        ({"maxoffsetspertrigger": "1000"}, "of Spark's Kafka source: give maxMessagesPerTrigger"),
        ({"startingOffsets": "earliest"}, "give startingPositions: earliest, latest"),
        ({"kafka.bootstrap.servers": "host:9092"}, "give the archive's folder by load"),
        ({"kafka.security.protocol": "SSL"}, "no consumers here"),
        ({"subscribe": "prices"}, "choose recordings by streamId"),
        ({"maxMessagePerTrigger": "1"}, "did you mean maxMessagesPerTrigger"),
    ):
        with pytest.raises(UsageError, match=expected) as failed:
            ReadOptions.parse({"path": "x", **options}, streaming=True)
        assert str(failed.value).startswith(f"unknown option {next(iter(options)).lower()!r}")
    with pytest.raises(UsageError, match="'topic', which is of Spark's Kafka source: give streamId, or a column"):
        WriteOptions.parse({"topic": "prices"})
    with pytest.raises(UsageError, match="give channel, where messages are published, and recordTo"):
        WriteOptions.parse({"kafka.bootstrap.servers": "host:9092"})


@pytest.mark.parametrize(
    ("habits", "names"), [(kafka_options.READING, ReadOptions.NAMES), (kafka_options.WRITING, WriteOptions.NAMES)]
)
def test_what_is_said_of_kafkas_options_names_ours(habits: Mapping[str, str], names: tuple[str, ...]) -> None:
    for option, hint in habits.items():
        assert option not in names
        for word in re.findall(r"\b[a-z]+[A-Z][A-Za-z]+\b", hint):
            assert word in names, (option, word)

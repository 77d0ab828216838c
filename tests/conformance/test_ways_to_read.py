"""The same stream gives the same rows, whichever way it is read: live, replayed, or from the segment files."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from aeron_spark import Archive, ArchivingMediaDriver, Folder, ReplayLength
from aeron_spark.subscription import Subscription
from aeron_spark.types import Header
from tests.kit.wait import wait_until

CHANNEL = "aeron:ipc?term-length=256k|alias=conformance"
STREAM = 1001
COLUMNS = ("position", "next_position", "reserved_value", "value")
SETTINGS = {
    "aeron.threading.mode": "SHARED",
    "aeron.archive.threading.mode": "SHARED",
    "aeron.archive.segment.file.length": "512k",
}


class Row(NamedTuple):
    """What must be equal in every way of reading."""

    position: int
    next_position: int
    reserved_value: int
    value: bytes


class Recorded(NamedTuple):
    """A finished recording and what its publisher knows about it."""

    archive: Archive
    folder: Path
    recording_id: int
    rows: list[Row]
    polled: list[tuple[int, bytes]]
    batched: list[Row]


@pytest.fixture(scope="module")
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """Messages of every kind (empty, one frame, fragments, term ends), read live in both ways while published."""
    rng = random.Random(request.config.getoption("--seed") or 0)
    folder = tmp_path_factory.mktemp("archive")
    messages = [rng.randbytes(rng.choice([0, 1, 31, 32, 33, 1000, 1375, 1376, 1377, 8000])) for _ in range(1500)]
    with (
        ArchivingMediaDriver(folder / "archive", folder / "aeron", settings=SETTINGS) as servers,
        Archive(aeron_dir=servers.aeron_dir) as archive,
        archive.client.add_subscription(CHANNEL, STREAM) as polling,
        archive.client.add_subscription(CHANNEL, STREAM) as batching,
    ):
        archive.start_recording(CHANNEL, STREAM)
        rows: list[Row] = []
        polled: list[tuple[int, bytes]] = []
        batched: list[Row] = []
        with archive.client.add_exclusive_publication(CHANNEL, STREAM) as publication:
            publication.wait_connected(10)
            recording_id = archive.wait_recording("conformance", STREAM, publication.session_id)
            for number, message in enumerate(messages):
                end = publication.offer_batch([message], reserved_values=[number * 1_000_003])
                rows.append(Row(-1, end, number * 1_000_003, message))
                if number % 7 == 0:
                    take(polling, polled)
                    batched += as_rows(batching.poll_batch(columns=COLUMNS).to_pylist())
            wait_until(lambda: take(polling, polled) or len(polled) == len(messages), 10, "the polling subscriber")
            wait_until(
                lambda: (
                    batched.extend(as_rows(batching.poll_batch(columns=COLUMNS).to_pylist()))
                    or len(batched) == len(rows)
                ),
                10,
                "the batching subscriber",
            )
            archive.wait_position(recording_id, publication.position)
            archive.stop_recording(CHANNEL, STREAM)
        yield Recorded(archive, servers.archive_dir, recording_id, rows, polled, batched)


def take(subscription: Subscription, into: list[tuple[int, bytes]]) -> None:
    def on_message(message: bytes, header: Header) -> None:
        into.append((header.position, message))

    subscription.poll(on_message)


def as_rows(found: list[dict[str, object]]) -> list[Row]:
    return [Row(**row) for row in found]  # type: ignore[arg-type]


def replayed(recorded: Recorded) -> list[Row]:
    with recorded.archive.replay(recorded.recording_id, length=ReplayLength.CURRENT_END) as replay:
        return [row for batch in replay.batches(columns=COLUMNS) for row in as_rows(batch.to_pylist())]


def from_segments(recorded: Recorded) -> list[Row]:
    with Folder(recorded.folder) as folder:
        batches = folder.read(recorded.recording_id, columns=COLUMNS)
        return [row for batch in batches for row in as_rows(batch.to_pylist())]


def from_split_segments(recorded: Recorded) -> list[Row]:
    rows: list[Row] = []
    with Folder(recorded.folder) as folder:
        extent = folder.extent(recorded.recording_id)
        starts = folder.split(recorded.recording_id, extent.start_position, extent.limit_position, 10_000)
        for low, high in zip(starts, [*starts[1:], extent.limit_position], strict=True):
            for batch in folder.read(recorded.recording_id, low, high, columns=COLUMNS, row_capacity=5):
                rows += as_rows(batch.to_pylist())
    return rows


def test_live_polls_give_what_was_published(recorded: Recorded) -> None:
    assert recorded.polled == [(row.next_position, row.value) for row in recorded.rows]
    assert [row._replace(position=-1) for row in recorded.batched] == recorded.rows


@pytest.mark.parametrize("way", [replayed, from_segments, from_split_segments])
def test_recorded_ways_give_what_came_live(recorded: Recorded, way: Callable[[Recorded], list[Row]]) -> None:
    assert way(recorded) == recorded.batched

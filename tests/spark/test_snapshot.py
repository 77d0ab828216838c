"""A snapshot at very many recordings is right whatever changed since the last one, and only what changed is identified again.

The catalog is written as an archive would, several times; each snapshot is compared with one that knows nothing yet. The same
holds for a source without arrays of its own, as remote archives and object stores are.
"""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from aeron_spark import Folder
from aeron_spark.archive.cuts import TermCuts
from aeron_spark.archive.objects import CATALOG
from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.segments import Extent
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.spark.planning import snapshot as snapshot_module
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.selection import identity_of, select_recordings
from aeron_spark.spark.planning.snapshot import Snapshot, SnapshotCache
from aeron_spark.types import Position, RecordingId, SessionId, StreamId
from tests.kit.catalogs import catalog_of

TERM = 64 << 10


def recording(number: int, **facts: object) -> Recording:
    return replace(
        Recording(
            recording_id=RecordingId(number),
            start_timestamp_ms=1000 + number,
            stop_timestamp_ms=2000,
            start_position=Position(0),
            stop_position=Position(32 * number),
            initial_term_id=3,
            segment_file_length=TERM,
            term_buffer_length=TERM,
            mtu_length=1408,
            session_id=SessionId(number),
            stream_id=StreamId(number % 3),
            stripped_channel="aeron:ipc",
            original_channel=f"aeron:ipc?alias={number}",
            source_identity="aeron:ipc",
        ),
        **facts,  # type: ignore[arg-type]
    )


def write(folder: Path, listed: list[Recording]) -> None:
    """A new file under the name, as the archive replaces its catalog."""
    new = folder / "new"
    new.write_bytes(catalog_of(listed))
    new.rename(folder / CATALOG)


class NotReadError(AssertionError):
    """A snapshot reads no messages."""


class Listed(TermCuts):
    """A source that lists its recordings as objects only."""

    def __init__(self, listed: list[Recording]) -> None:
        self._now = listed
        self._read: list[Recording] = []

    def refresh(self) -> None:
        self._read = list(self._now)

    def recordings(self) -> list[Recording]:
        return list(self._read)

    def recording(self, recording_id: int) -> Recording:
        return next(one for one in self._read if one.recording_id == recording_id)

    def extent(self, recording_id: int) -> Extent:
        found = self.recording(recording_id)
        assert found.stop_position is not None
        return Extent(start_position=found.start_position, limit_position=found.stop_position, is_active=False)

    def begins_message(self, recording_id: int, position: int) -> bool:
        raise NotReadError

    def read(self, *_: Any, **__: Any) -> NoReturn:
        raise NotReadError


def as_lists(snapshot: Snapshot) -> list[list[int]]:
    return [column.tolist() for column in (snapshot.ids, snapshot.starts, snapshot.limits, snapshot.identities)]


@pytest.mark.parametrize(
    "given",
    [{}, {"streamId": "1"}, {"recordingIds": "1,4,7,500"}, {"streamId": "2", "sessionId": "5"}, {"streamId": "77"}],
)
@pytest.mark.parametrize("is_folder", [True, False], ids=["folder", "listed"])
def test_snapshots_after_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], rng: random.Random, *, is_folder: bool
) -> None:
    options = ReadOptions.parse({"path": str(tmp_path), **given}, streaming=True)
    identified: list[int] = []

    def counted(one: Recording) -> int:
        identified.append(one.recording_id)
        return identity_of(one)

    monkeypatch.setattr(snapshot_module, "identity_of", counted)
    listed = [recording(number) for number in range(12)]
    write(tmp_path, listed)
    cache = SnapshotCache(options)
    with Folder(tmp_path) if is_folder else contextlib.nullcontext(Listed(listed)) as opened:
        folder = cast("RecordingSource", opened)
        first = snapshot = cache.snapshot(folder)
        assert identified == list(range(12))
        for round_number in range(20):
            identified.clear()
            index = rng.randrange(len(listed))
            kind = rng.choice(
                ["stop", "session", "new", "gone", "channel", "nothing", *([] if given else ["replaced"])]
            )
            before, expected = listed[index], [listed[index].recording_id]
            if kind == "stop":
                listed[index] = replace(before, stop_position=Position((before.stop_position or 0) + 32))
                expected = []
            elif kind == "session":
                listed[index] = replace(before, session_id=SessionId(100 + round_number))
            elif kind == "replaced":
                listed[index] = replace(before, start_timestamp_ms=before.start_timestamp_ms + 100 + round_number)
            elif kind == "channel":
                listed[index] = replace(before, original_channel=f"aeron:ipc?alias=x{round_number}")
            elif kind == "new":
                listed.append(recording(listed[-1].recording_id + 1 + rng.randrange(3)))
                expected = [listed[-1].recording_id]
            elif kind == "gone":
                del listed[index]
                expected = []
            else:
                expected = []
            write(tmp_path, listed)
            before_ids = set(snapshot.ids.tolist())
            snapshot = cache.snapshot(folder)
            assert identified == expected, kind
            # What was the query's stays so, whatever session it gets.
            now = {one.recording_id for one in select_recordings(folder, options, allow_none=True)}
            chosen = [one for one in listed if one.recording_id in now | before_ids]
            assert snapshot.ids.tolist() == [one.recording_id for one in chosen], kind
            if now >= before_ids & {one.recording_id for one in listed}:
                assert as_lists(snapshot) == as_lists(SnapshotCache(options).snapshot(folder)), kind
            assert snapshot.limits.tolist() == [folder.extent(one.recording_id).limit_position for one in chosen]
            assert snapshot.identities.tolist() == [identity_of(one) for one in chosen]
        assert first.ids.tolist() == [number for number in range(12) if number in first.ids], (
            "a snapshot stays as it was"
        )


def test_a_recording_stays_the_querys_whatever_session_it_gets(tmp_path: Path) -> None:
    """Also for what asks without an offset, as the lag does."""
    listed = [recording(number) for number in range(3)]
    write(tmp_path, listed)
    cache = SnapshotCache(ReadOptions.parse({"path": str(tmp_path), "sessionId": "1"}, streaming=True))
    with Folder(tmp_path) as folder:
        assert cache.snapshot(folder).ids.tolist() == [1]
        write(tmp_path, [listed[0], replace(listed[1], session_id=SessionId(7)), listed[2]])
        assert cache.snapshot(folder).ids.tolist() == [1]

"""Recordings in a store: ranges give the rows that the archive's folder gives, and missing data is an error.

The store is a folder on the disk, seen by pyarrow's filesystem; windows and requests are made so small that every range has
several of them.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import fs

from aeron_spark import Folder
from aeron_spark.archive import objects
from aeron_spark.archive.objects import ObjectFolder
from aeron_spark.archive.store_reads import read_range
from aeron_spark.errors import DataLossError, UsageError
from tests.kit import catalogs, dirs
from tests.spark import recorded

TERM, SEGMENT = recorded.TERM_LENGTH, 128 << 10
SIZES = [8, 100, 1377, 5000]
Row = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Recording 0: 400 messages over six segments; 1: ten messages that begin in the middle of a term."""
    archive_dir = tmp_path_factory.mktemp("objects") / "archive"
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, archive_dir) as archive:
        archive.recorded(1001, 400, SIZES)
        late = f"{recorded.CHANNEL}|init-term-id=5|term-id=8|term-offset=640"
        publication = archive.record(1002, late)
        recorded.publish(publication, 1002, 10, SIZES)
        archive.stop(publication, 1002, late)
    return archive_dir


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    shutil.copytree(folder, tmp_path / "store")
    return tmp_path / "store"


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "WINDOW_BYTES", TERM)
    monkeypatch.setattr(objects, "REQUEST_BYTES", 10_000)


def store(path: Path) -> ObjectFolder:
    return ObjectFolder(fs.LocalFileSystem(), str(path))


def rows(source: Folder | ObjectFolder, recording_id: int, *bounds: int, **limit: int) -> list[Row]:
    return [row for batch in source.read(recording_id, *bounds, **limit) for row in batch.to_pylist()]


def test_every_range_gives_the_rows_of_the_folder(folder: Path, rng: random.Random) -> None:
    far = store(folder)
    with Folder(folder) as near:
        for recording_id in (0, 1):
            extent = near.extent(recording_id)
            assert far.extent(recording_id) == extent
            whole = rows(near, recording_id)
            assert rows(far, recording_id) == whole
            cuts = [row["position"] for row in whole] + [extent.limit_position]
            edges = [cut for cut in cuts if cut % TERM == 0]
            for _ in range(20):
                start, end = sorted(
                    rng.choices(cuts, k=2) if rng.random() < 0.7 or not edges else rng.choices(edges, k=2)
                )
                end = min(
                    end + rng.choice([0, 32]), extent.limit_position
                )  # also inside a message, which is then whole
                found = rows(far, recording_id, start, end, limit=extent.limit_position)
                assert found == [row for row in whole if start <= row["position"] < end], (start, end)


def test_cuts_lie_on_boundaries_and_lose_nothing(folder: Path, rng: random.Random) -> None:
    far = store(folder)
    whole = rows(far, 0)
    limit = far.extent(0).limit_position
    boundaries = {row["position"] for row in whole} | {row["next_position"] for row in whole} | {limit}
    boundaries |= set(range(0, limit, TERM))
    for _ in range(25):
        position = rng.randrange(0, limit + 1) // 32 * 32
        after, before = far.align(0, position, limit), far.align(0, position, limit, back=True)
        assert before <= position <= after
        assert after == min(one for one in boundaries if one >= position), position
        assert before == max(one for one in boundaries if one <= position), position
        start = before
        taken = rng.choice([1, 500, 20_000, 100_000])
        reached = far.advance(0, start, limit, max_bytes=taken)
        assert reached in boundaries
        passed = [row for row in whole if start <= row["position"] < reached]
        assert reached - start <= taken or len(passed) == 1
        counted = far.advance(0, start, limit, max_messages=3)
        assert len([row for row in whole if start <= row["position"] < counted]) == min(
            3, len([row for row in whole if row["position"] >= start])
        )


@pytest.mark.parametrize("number", range(1, 5))
def test_a_missing_segment_is_an_error_and_not_fewer_rows(copy: Path, number: int) -> None:
    whole = rows(store(copy), 0)
    base = number * SEGMENT
    (copy / f"0-{base}.rec").unlink()
    far = store(copy)
    assert far.extent(0).start_position == 0, "it is one in the middle"
    with pytest.raises(
        DataLossError, match=rf"segment .*0-{base}\.rec is missing: recording 0 is wanted from position {base}"
    ):
        rows(far, 0)
    before = rows(far, 0, 0, base, limit=base)
    assert before == [row for row in whole if row["position"] < base]
    behind = base + SEGMENT
    if behind < far.extent(0).limit_position:
        after = rows(far, 0, behind, far.extent(0).limit_position, limit=far.extent(0).limit_position)
        assert after == [row for row in whole if row["position"] >= behind]
    there = [part[3] for part in far.segments_between(0, 0, far.extent(0).limit_position)]
    assert there == [one != number for one in range(len(there))]


def test_segments_that_go_while_they_are_read(copy: Path) -> None:
    far = store(copy)
    (copy / f"0-{SEGMENT}.rec").unlink()
    with pytest.raises(DataLossError, match=rf"0-{SEGMENT}\.rec does not exist \(any more\)"):
        rows(far, 0)


def test_heads_and_tails_that_are_not_there_are_told_by_the_extent(copy: Path) -> None:
    with Folder(copy) as near:
        last = near.extent(0).limit_position // SEGMENT * SEGMENT
    for name in ("0-0.rec", f"0-{last}.rec"):
        (copy / name).unlink()
    extent = store(copy).extent(0)
    assert (extent.start_position, extent.limit_position, extent.is_active) == (SEGMENT, last, True)
    for path in copy.glob("0-*.rec"):
        path.unlink()
    far = store(copy)
    assert [one.recording_id for one in far.without_segments()] == [0]
    with pytest.raises(UsageError, match="recording 0 has no segments in"):
        far.recording(0)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (
            lambda path: (path / f"0-{SEGMENT}.rec").rename(path / f"0-{SEGMENT + TERM}.rec"),
            "is no segment of recording 0",
        ),
        (lambda path: (path / f"0-{SEGMENT}.rec").write_bytes(b"\0" * (SEGMENT - 1)), "131071 bytes long, a segment"),
        (lambda path: (path / "archive.catalog").unlink(), "it has no archive.catalog"),
    ],
)
def test_segments_that_do_not_fit(copy: Path, change: Any, names: str) -> None:
    change(copy)
    with pytest.raises(DataLossError, match=names):
        store(copy)


def test_an_object_that_gives_fewer_bytes(copy: Path) -> None:
    far = store(copy)
    with (copy / f"0-{SEGMENT}.rec").open("r+b") as file:
        file.truncate(70_000)
    with pytest.raises(DataLossError, match=rf"0-{SEGMENT}\.rec gave \d+ of \d+ bytes at offset \d+: it was cut"):
        rows(far, 0)


@pytest.mark.parametrize("cut_in", ["a record", "the border behind it"])
def test_a_catalog_that_was_cut(copy: Path, cut_in: str) -> None:
    """The segments show what is missing. An older catalog knows nothing of their recording, and that is right."""
    both = [store(copy).recording(one) for one in (0, 1)]
    whole, one = catalogs.catalog_of(both), catalogs.catalog_of(both[:1])
    (copy / objects.CATALOG).write_bytes(one)
    assert [found.recording_id for found in store(copy).recordings()] == [0]
    (copy / objects.CATALOG).write_bytes(whole[: len(one) + (64 if cut_in == "a record" else 0)])
    with pytest.raises(DataLossError, match=r"store/archive\.catalog"):
        store(copy)
    for segment in copy.glob("1-*.rec"):
        segment.unlink()
    if cut_in != "a record":
        assert [found.recording_id for found in store(copy).recordings()] == [0], "compacted"


def test_segments_behind_the_stop_position(copy: Path) -> None:
    """As a truncation leaves them in a store: they may be of the recording as it was before."""
    whole = store(copy).recording(0)
    for stop, is_behind in ((0, True), (SEGMENT - 32, True), (4 * SEGMENT, True), (5 * SEGMENT, False), (None, False)):
        (copy / objects.CATALOG).write_bytes(catalogs.catalog_of([replace(whole, stop_position=stop)]))
        if is_behind:
            with pytest.raises(
                DataLossError, match=rf"store/0-\d+\.rec lies behind the stop position {stop} of recording 0"
            ):
                store(copy)
        else:
            store(copy)


class Short:
    """A filesystem whose files give fewer bytes than they have where `cut` says so; `cut` receives name, length and offset."""

    type_name = "short"

    def __init__(self, cut: Callable[[str, int, int], bool]) -> None:
        self.cut = cut
        self.get_file_info = fs.LocalFileSystem().get_file_info

    @contextmanager
    def open_input_file(self, path: str) -> Iterator[Any]:
        with fs.LocalFileSystem().open_input_file(path) as file:

            def get_stream(offset: int, length: int) -> Any:
                return file.get_stream(offset, length - self.cut(Path(path).name, length, offset))

            yield SimpleNamespace(size=file.size, get_stream=get_stream)


@pytest.mark.parametrize("name", [objects.CATALOG, f"0-{SEGMENT}.rec"])
def test_a_read_that_gives_fewer_bytes(copy: Path, name: str) -> None:
    """Wherever it is of a file: less of a catalog may be one of fewer recordings, less of a header is none."""
    far = ObjectFolder(Short(lambda _name, _length, _offset: False), str(copy))
    assert far.begins_message(0, SEGMENT)
    far._filesystem.cut = lambda of, _length, _offset: of == name
    text = rf"store/{name} gave \d+ of \d+ bytes at offset 0: it was cut"
    for ask in (
        (far.refresh,) if name == objects.CATALOG else (lambda: rows(far, 0), lambda: far.begins_message(0, SEGMENT))
    ):
        with pytest.raises(DataLossError, match=text):
            ask()


@pytest.mark.parametrize("byte", range(256))
def test_any_byte_may_be_the_last_one_of_a_read(byte: int, tmp_path: Path) -> None:
    """Also one that equals what marks a buffer before it is read into."""
    (tmp_path / "file").write_bytes(bytes([byte]) * 100)
    with fs.LocalFileSystem().open_input_file(str(tmp_path / "file")) as source:
        for offset, length, count in ((0, 100, 100), (7, 1, 1), (90, 20, 10), (100, 5, 0), (0, 0, 0)):
            assert read_range(source, offset, length) == bytes([byte]) * count


def test_a_changed_byte_is_found_by_its_checksum(tmp_path: Path) -> None:
    settings = {"aeron.archive.record.checksum": "CRC-32C"}
    with dirs.fresh("aeron") as aeron_dir, recorded.archive(aeron_dir, tmp_path / "archive", settings) as archive:
        archive.recorded(1001, 100, SIZES)
    assert len(rows(store(tmp_path / "archive"), 0)) == 100
    with (tmp_path / "archive" / "0-0.rec").open("r+b") as file:
        file.seek(TERM + 200)
        byte = file.read(1)[0]
        file.seek(TERM + 200)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(DataLossError, match="checksum"):
        rows(store(tmp_path / "archive"), 0)

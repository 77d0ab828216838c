"""A table of Parquet files that takes each micro-batch of a query once, and a view of it with what is recorded since.

    table = Landing("lake/quotes")
    query = quotes.writeStream.foreachBatch(table.land).option("checkpointLocation", "lake/checkpoint").start()
    table.view(spark, {"path": "recordings", **options}).createOrReplaceTempView("quotes")

The name of a folder is the commit:

    batches-0-41/               micro-batches 0 to 41, put together by `compact`
        dead_letter=false/      rows
        dead_letter=true/       rows that could not be decoded
        _bounds.json            for each recording the end of its last row
    batches-42-42/              a micro-batch as it landed
    _landing-..., _compacting-...   what is being written, or was when its process died; nobody reads it
    _land.lock, _compact.lock       locked by the process that lands or compacts

A folder gets its name when it is whole, and is never changed. The table is the chain of folders from batch 0 on, the widest
of those that begin with the same batch. `compact` adds a wider folder, and deletes what an earlier call has replaced, so
that a query which has listed folders can go on reading them. Rows, dead letters and bounds of a batch have one name: there
is no moment at which the table has the ones and not the others. Thread rule: one query lands and one thread compacts at a
time, each in any process; a second one is refused, where the file system has locks. Anyone may read.

It needs a folder with atomic rename: local, or shared by NFS or the like. In an object store use Delta or Iceberg
(docs/how-to/lakehouse.md).
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import dataset

from aeron_spark.errors import StorageError, UsageError
from aeron_spark.extras import missing
from aeron_spark.small_files import sync_path
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.spark.planning.selection import open_folder, select_recordings

try:
    from pyspark.sql import DataFrame, SparkSession, functions
except ModuleNotFoundError as error:
    raise missing(error, "spark") from None

__all__ = ["Landing", "bounds_of", "live_from", "rows_after"]

#: For each recording, the position from which on nothing of it has landed.
Bounds = Mapping[int, int]

_FOLDER = re.compile(r"batches-(\d+)-(\d+)")
_BOUNDS = "_bounds.json"
_DEAD = "dead_letter"
_PLACE = ("recording_id", "position", "next_position")
_EXTENT = ("recording_id", "position_min", "next_position_max")
#: Columns of a dead letter besides the error: where it was, when, and its bytes.
_OF_DEAD = (*_PLACE, "session_id", "stream_id", "channel", "timestamp", "timestamp_ns")
_RAW = ("sbe_error_at", "sbe_raw")


@dataclass(frozen=True, slots=True)
class _Part:
    """A folder of whole micro-batches, `first` to `last`."""

    path: Path
    first: int
    last: int

    def bounds(self) -> dict[int, int]:
        found = json.loads((self.path / _BOUNDS).read_text("ascii"))
        return {int(recording): position for recording, position in found.items()}

    def replaces(self, other: _Part) -> bool:
        """It has all batches of another folder, and more."""
        return self.first <= other.first and other.last <= self.last and self != other

    def size(self) -> int:
        return sum(file.stat().st_size for file in self.path.rglob("*.parquet"))


class Landing:
    """The table in a folder, which is made by the first micro-batch.

    `error` names the column that says why a row is a dead letter; rows in which it is null, or that lack it, are the table's.
    """

    def __init__(self, folder: str | os.PathLike[str], *, error: str = "sbe_error") -> None:
        self._folder = Path(folder).absolute()
        self._error = error

    def land(self, rows: DataFrame, batch_id: int) -> None:
        """Take a micro-batch: the function for `foreachBatch`. A batch that Spark repeats is not taken twice.

        `rows` have at least the columns recording_id, position and next_position. When this returns, the rows are on the disk.

        UsageError: a column is missing; the batch does not follow the last one, or differs from it where it is repeated: then
        the checkpoint is not the one that this table was filled with; another query lands. OSError: the folder can't be
        written.
        """
        self._check(rows)
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._alone("land"):
            self._land(rows, batch_id)

    def _land(self, rows: DataFrame, batch_id: int) -> None:
        parts = self._parts()
        last = parts[-1].last if parts else -1
        if batch_id == last:
            self._check_repeated(rows, batch_id, parts[-1])
        elif batch_id == last + 1:
            self._remove_unfinished("_landing-")
            self._write(self._with_place(rows), "_landing-", batch_id, batch_id, _bounds(parts))
        else:
            raise self._other_checkpoint(f"micro-batch {batch_id} does not follow {last}, the last one of the table")

    def table(self, spark: SparkSession) -> DataFrame:
        """The rows, with the columns of all versions of their schema: null where a row was written by an earlier one.

        UsageError: nothing has landed yet.
        """
        return self._frame(spark, self._parts())

    def dead_letters(self, spark: SparkSession) -> DataFrame | None:
        """What could not be decoded, with its place, the error and the bytes; None: nothing yet."""
        paths = _paths(self._parts(), is_dead=True)
        if not paths:
            return None
        frame = _read(spark, paths)
        kept = (*_OF_DEAD, self._error, *_RAW)
        return frame.select(*(name for name in kept if name in frame.columns))

    def bounds(self) -> dict[int, int]:
        """Up to where each recording has landed, dead letters included: retention may delete what lies before."""
        return _bounds(self._parts())

    def view(self, spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
        """The table and what the recordings have from its bounds on: each row once, though the query lands more meanwhile.

        `options` are those of a batch read that gives the rows of the query, with `path` or `controlChannel`. Each action on
        the frame reads the recordings as far as they are then. Where retention deletes what lies behind the bounds, or two
        compactions what lies before them, the action ends with an error, never with missing rows: take the view again.
        """
        parts = self._parts()
        live = live_from(spark, options, _bounds(parts))
        if live is not None and self._error in live.columns:
            live = live.where(functions.col(self._error).isNull()).drop(self._error, *_RAW)
        if live is None or not parts:
            return self._frame(spark, parts) if live is None else live
        return self._frame(spark, parts).unionByName(live, allowMissingColumns=True)

    def compact(self, spark: SparkSession, *, target_bytes: int = 128 << 20) -> int:
        """Put micro-batches together, the newest excepted, until a folder has `target_bytes`; how many folders became one.

        Deletes the folders that the call before has replaced. UsageError: no table is there; another compaction of it runs.
        """
        if not any(self._folder.glob("batches-*")):
            raise self._no_table("no micro-batch")
        with self._alone("compact"):
            return self._compact(spark, target_bytes)

    def _compact(self, spark: SparkSession, target_bytes: int) -> int:
        folders, parts = self._listed()
        for folder in folders:
            if any(part.replaces(folder) for part in parts):
                shutil.rmtree(folder.path)
        self._remove_unfinished("_compacting-")
        small = _small(parts[:-1], target_bytes)
        if len(small) < 2:  # noqa: PLR2004 - one folder is put together already
            return 0
        files = 1 + sum(part.size() for part in small) // target_bytes
        rows = self._with_dead(spark, small)
        self._write(None if rows is None else rows.coalesce(files), "_compacting-", small[0].first, small[-1].last, {})
        return len(small)

    @contextlib.contextmanager
    def _alone(self, doing: str) -> Iterator[None]:
        """A second one would delete what the first is writing. The lock goes with the process that has it."""
        with (self._folder / f"_{doing}.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"{self._folder}: something else calls {doing} of this table: wait for its end"
                ) from None
            except OSError:
                yield  # a file system without locks
                return
            try:
                yield
            finally:
                fcntl.flock(lock, fcntl.LOCK_UN)  # a child that was forked meanwhile has the file open as well

    def _with_dead(self, spark: SparkSession, parts: Sequence[_Part]) -> DataFrame | None:
        """Rows and dead letters, as they were written; None: there are none."""
        paths = [(is_dead, _paths(parts, is_dead=is_dead)) for is_dead in (False, True)]
        frames = [_read(spark, some).withColumn(_DEAD, functions.lit(is_dead)) for is_dead, some in paths if some]
        return (
            functools.reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
            if frames
            else None
        )

    def _check(self, rows: DataFrame) -> None:
        lacking = [name for name in _PLACE if name not in rows.columns]
        if lacking:
            raise UsageError(f"rows to land need the columns {', '.join(_PLACE)}, these lack {', '.join(lacking)}")
        if _DEAD in rows.columns:
            raise UsageError(f"the column {_DEAD} is the table's own: rename that of the rows")

    def _check_repeated(self, rows: DataFrame, batch_id: int, part: _Part) -> None:
        """By the ends: what was purged meanwhile may be missing now, where failOnDataLoss=false accepts that."""
        bounds = part.bounds()
        ends = rows.groupBy("recording_id").agg(functions.max("next_position")).collect()
        if any(end > bounds.get(recording, -1) for recording, end in ends):
            raise self._other_checkpoint(f"micro-batch {batch_id} is in the table with other rows")

    def _other_checkpoint(self, why: str) -> UsageError:
        return UsageError(
            f"{self._folder}: {why}: the checkpoint is not the one that this table was filled with; give that one, or a new "
            f"folder for the table"
        )

    def _no_table(self, what: str) -> UsageError:
        return UsageError(
            f"{self._folder}: {what} has landed yet, so there is no table: start the query, or wait for its first batch"
        )

    def _with_place(self, rows: DataFrame) -> DataFrame:
        has_errors = self._error in rows.columns
        return rows.withColumn(
            _DEAD, functions.col(self._error).isNotNull() if has_errors else functions.lit(col=False)
        )

    def _write(self, rows: DataFrame | None, kind: str, first: int, last: int, before: Bounds) -> None:
        """Under another name until it is whole: who dies before leaves nothing in the table."""
        making = self._folder / f"{kind}{uuid.uuid4().hex}"
        if rows is None:
            making.mkdir()
        else:
            rows.write.partitionBy(_DEAD).parquet(_uri(making))
        extents = _extents(_written(making))
        if again := [recording for recording, (start, _) in extents.items() if start < before.get(recording, 0)]:
            raise self._other_checkpoint(f"micro-batch {first} has rows of recording {again[0]} that are in the table")
        bounds = {recording: end for recording, (_, end) in extents.items()}
        (making / _BOUNDS).write_text(json.dumps(bounds), "ascii")
        _sync(making)
        making.rename(self._folder / f"batches-{first}-{last}")
        sync_path(self._folder)

    def _remove_unfinished(self, kind: str) -> None:
        for path in self._folder.glob(f"{kind}*"):
            shutil.rmtree(path)

    def _folders(self) -> Iterator[_Part]:
        for path in self._folder.glob("batches-*"):
            if found := _FOLDER.fullmatch(path.name):
                yield _Part(path, int(found[1]), int(found[2]))

    def _parts(self) -> list[_Part]:
        """The chain of folders."""
        return self._listed()[1]

    def _listed(self) -> tuple[list[_Part], list[_Part]]:
        """Every folder, and the chain of them.

        A listing beside a rename can lack that folder and have one that got its name later. So only a gap that the next
        listing has, too, is a loss.
        """
        gap = None
        while True:
            folders = list(self._folders())
            chain = _chain(folders)
            end = chain[-1].last if chain else -1
            behind = [part for part in folders if part.first > end]
            if not behind:
                return folders, chain
            if gap == end + 1:
                name = min(behind, key=lambda part: part.first).path.name
                raise StorageError(
                    f"{self._folder}: micro-batch {gap} is missing, but {name} is there: the folder has lost files; "
                    f"put them back from a backup, or fill a new folder by a new checkpoint"
                )
            gap = end + 1

    def _frame(self, spark: SparkSession, parts: Sequence[_Part]) -> DataFrame:
        paths = _paths(parts, is_dead=False)
        if not paths:
            raise self._no_table("no row")
        return _read(spark, paths).drop(self._error, *_RAW)


def live_from(spark: SparkSession, options: Mapping[str, str], bounds: Bounds) -> DataFrame | None:
    """What recordings have from bounds on, as a batch read with `options`; None: no recording is left that they choose.

    For a table of any kind: `bounds` are taken from one version of it, and the union with that version has each row once.
    Recordings that are in no bounds are read from their start.
    """
    with open_folder(
        chosen := ReadOptions.parse({name.lower(): value for name, value in options.items()}, streaming=False)
    ) as folder:
        left = [recording.recording_id for recording in select_recordings(folder, chosen, allow_none=True)]
    if not left:
        return None
    positions = {str(recording): bounds[recording] for recording in left if recording in bounds}
    starts = {"startingPositions": json.dumps(positions)} if positions else {}
    return spark.read.format("aeron").options(**{**options, **starts}).load()


def bounds_of(rows: pa.Table) -> dict[int, int]:
    """For each recording the end of its last row: what to store in the commit of a table of another kind."""
    return {recording: end for recording, (_, end) in _extents(rows.to_batches()).items()}


def rows_after(rows: pa.Table, bounds: Mapping[int, int | None]) -> pa.Table:
    """The rows that a table with these bounds does not have: those of each recording from its bound on.

    For a micro-batch that may have landed before, wholly or in part, by whatever checkpoint. Of a recording without a bound,
    or with None, all rows are new.
    """
    recordings, which = np.unique(rows["recording_id"].to_numpy(), return_inverse=True)
    starts = np.array([bounds.get(int(recording)) or 0 for recording in recordings], np.int64)
    return rows.filter(pa.array(rows["position"].to_numpy() >= starts[which]))


def _extents(batches: Iterable[pa.RecordBatch]) -> dict[int, tuple[int, int]]:
    """For each recording, where its first row begins and its last one ends."""
    found: dict[int, tuple[int, int]] = {}
    for batch in batches:
        grouped = pa.Table.from_batches([batch]).group_by("recording_id", use_threads=False)
        ends = grouped.aggregate([("position", "min"), ("next_position", "max")])
        for recording, first, end in zip(*(ends[name].to_pylist() for name in _EXTENT), strict=True):
            known = found.get(recording, (first, end))
            found[recording] = min(first, known[0]), max(end, known[1])
    return found


def _written(folder: Path) -> Iterator[pa.RecordBatch]:
    """The places of the rows in a folder of files."""
    files = [str(file) for file in folder.rglob("*.parquet")]
    return dataset.dataset(files).to_batches(columns=list(_PLACE)) if files else iter(())


def _chain(folders: Iterable[_Part]) -> list[_Part]:
    """From batch 0 on, each the widest that begins where the one before ends."""
    widest = {part.first: part for part in sorted(folders, key=lambda part: part.last)}
    chain: list[_Part] = []
    while (following := widest.get(chain[-1].last + 1 if chain else 0)) is not None:
        chain.append(following)
    return chain


def _bounds(parts: Iterable[_Part]) -> dict[int, int]:
    joined: dict[int, int] = {}
    for part in parts:
        for recording, end in part.bounds().items():
            joined[recording] = max(end, joined.get(recording, end))
    return joined


def _paths(parts: Sequence[_Part], *, is_dead: bool) -> list[str]:
    folders = [part.path / f"{_DEAD}={str(is_dead).lower()}" for part in parts]
    return [_uri(folder) for folder in folders if folder.is_dir()]


def _uri(path: Path) -> str:
    """For Spark, whose own default may be another file system."""
    return f"file://{path}"


def _read(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    return spark.read.option("mergeSchema", "true").parquet(*paths)


def _small(parts: Sequence[_Part], target_bytes: int) -> list[_Part]:
    """Those behind the last one that is large enough."""
    small: list[_Part] = []
    for part in reversed(parts):
        if part.size() >= target_bytes:
            break
        small.insert(0, part)
    return small


def _sync(folder: Path) -> None:
    """All of it on the disk before it gets its name: a machine that fails leaves a whole batch or none."""
    for path in (*folder.rglob("*"), folder):
        sync_path(path)

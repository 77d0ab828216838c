"""`scan`: recordings, or a live stream, as a table of Arrow.

A scan is a description: it holds nothing open, and each pass over it reads anew. It is a dataset of pyarrow, so that DuckDB,
Polars and pyarrow pass it the columns and the filter of their query. A filter narrows what is read (`pruning`) and selects
rows; both use the same expression.
"""

from __future__ import annotations

import functools
import itertools
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NoReturn, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import dataset, fs

from aeron_spark.archive.addresses import open_source, store_scheme
from aeron_spark.archive.ranges import Range
from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.search import tail_position
from aeron_spark.archive.segments import Extent
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.archive.time_text import parse_time_source
from aeron_spark.archive.times import UNITS_NS, time_ns
from aeron_spark.batch import DEFAULT_BYTES, DEFAULT_ROWS, Batches
from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.given import Given
from aeron_spark.sbe.field_times import FieldTimes
from aeron_spark.sbe.registry import Source as SbeSource
from aeron_spark.subscription import Image, Subscription
from aeron_spark.tables.clock import TIMESTAMP, Clock, both
from aeron_spark.tables.filters import NO_TIMES, checked
from aeron_spark.tables.merged import MEMORY_BYTES, Merged, Run, merge
from aeron_spark.tables.passes import (
    Bounds,
    OnProgress,
    Piece,
    Stop,
    followed,
    in_parallel,
    live,
    one_by_one,
    read_whole,
)
from aeron_spark.tables.payload import SbeColumns
from aeron_spark.tables.pruning import Borders, Facts, Known
from aeron_spark.tables.rows import Layout, RowMaker
from aeron_spark.types import Position

__all__ = ["Scan", "scan"]

#: What a thread reads at a time.
PIECE_BYTES = 16 << 20
#: The same of many recordings at once, at least.
MIN_PIECE_BYTES = 64 << 10
MAX_THREADS = 4
#: Pieces that are cut at a time.
MAX_CUTS = 64

#: A folder, a store's URI, an archive's control channel; or one that is open; or a live stream.
Source = str | os.PathLike[str] | RecordingSource | Subscription | Image


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What is scanned, and how."""

    source: Source
    aeron_dir: str | os.PathLike[str] | None
    recordings: tuple[int, ...] | None
    start: int | None
    end: int | None
    last: int | None
    follow: bool
    layout: Layout
    threads: int
    bounds: Bounds
    on_progress: OnProgress | None
    dictionaries: bool = False

    @property
    def is_live(self) -> bool:
        """It is a stream, not recordings."""
        return isinstance(self.source, Subscription | Image)

    @contextmanager
    def opened(self) -> Iterator[RecordingSource]:
        """The recordings; what was opened for this is closed."""
        source = self.source
        if isinstance(source, str | os.PathLike):
            with open_source(os.fspath(source), aeron_dir=self.aeron_dir) as found:
                yield found
        else:
            yield cast("RecordingSource", source)


def scan(
    source: Source,
    recordings: int | Sequence[int] | None = None,
    *,
    columns: Sequence[str] | None = None,
    filter: str | pc.Expression | None = None,  # noqa: A002 - as a dataset's
    start: int | None = None,
    end: int | None = None,
    last: int | None = None,
    timestamp: str = "index",
    time_unit: str = "ns",
    ascending: bool = False,
    sbe: SbeSource | Sequence[SbeSource] | None = None,
    message: str | None = None,
    sbe_options: Mapping[str, Any] | None = None,
    follow: bool = False,
    threads: int | None = None,
    batch_rows: int = DEFAULT_ROWS,
    batch_bytes: int = DEFAULT_BYTES,
    batch_seconds: float = 0.1,
    on_progress: OnProgress | None = None,
    aeron_dir: str | os.PathLike[str] | None = None,
) -> Scan:
    """A table of recorded or live messages, for pyarrow, pandas, Polars and DuckDB.

        messages = scan("recordings", filter="stream_id = 1001")
        table = messages.to_table(columns=["position", "value"])
        duckdb.sql("SELECT count(*) FROM messages WHERE position > 1000000")
        for batch in scan("recordings", 3, sbe="prices.xml", message="Quote"): ...

    `source`: an archive's folder, a store's URI (`s3://bucket/folder`), a running archive's control channel
    (`aeron:udp?endpoint=host:8010`, which replays to the driver of `aeron_dir`), an open `Folder`, `RemoteArchive` or
    `ObjectFolder`, or a `Subscription` or `Image`. `recordings`: ids, by default all. `start`, `end`: messages that begin at
    these positions of each recording or between; `last`: no more than the last so many of each that begin before `end`.
    `columns`: `recording_id`, `session_id`, `stream_id`, `position`, `next_position`, `term_id`, `term_offset`, `flags`,
    `reserved_value`, `timestamp`, `value`, and those of SBE. A column that is not asked for is not made.
    `filter`: an expression of `pyarrow.compute` over all columns, or text: `price > 10 and symbol = 'ABC'`. Recordings,
    positions and times outside of it are not read, messages of SBE templates outside of it not decoded.
    `timestamp`: what the column of that name (UTC, in `time_unit`: "ns" or "us") is: `index`, the time of the write by the
    archive's time index, null where it has no entry; `reserved(ns)` (us, ms), the reserved value; or `sbe:<field>`, with
    its unit behind it where the schema has none. `ascending=True` promises that reserved values or fields do not descend in
    a recording: then a filter by time reads only what it must, as it does with the index.
    `sbe`: schema, its path or its text, or several. Without `message` there is a struct for each message of the schema,
    and `sbe_template`; with it, its fields, and only its messages. A field hides a column with its name, as `timestamp`,
    which then is `message:timestamp`. `sbe_options`: those of `aeron_spark.sbe.Decoder`.
    A message that cannot be decoded raises DataLossError after the rows before it; see its text for other choices.
    `follow=True`: continues with what is recorded later, until each recording has stopped, or the pass is closed. A
    subscription ends with its last publisher, with `follow` only when closed. Live batches are collected for at most
    `batch_seconds`. All have at most `batch_rows` rows, and `batch_bytes` bytes of messages unless one message has more.
    `threads` read at a time in a folder, each no more than 16 MiB of it (default: one for each core, at most 4).
    `on_progress(bytes, of, rows)` is called after each such piece, by the thread that takes the batches.

    UsageError: a column, filter or option that is wrong, at once; an unknown recording, when a pass begins.
    """
    if isinstance(recordings, int):
        recordings = [recordings]
    clock_source = parse_time_source(timestamp, "timestamp")
    sbe_columns = None if sbe is None else SbeColumns(sbe, message, sbe_options or {})
    if sbe_columns is None and (message is not None or sbe_options or clock_source.kind == "sbe"):
        raise UsageError("message, sbe_options and timestamp='sbe:...' need a schema: sbe='prices.xml'")
    if threads is not None and threads < 1:
        raise UsageError(f"threads={threads} is below 1")
    if batch_rows < 1 or batch_bytes < 1 or batch_seconds <= 0:
        raise UsageError("batch_rows, batch_bytes and batch_seconds must be above 0")
    if last is not None and (last < 0 or follow):
        raise UsageError("last is a number from 0 on, and not for follow=True")
    field_times = None
    if sbe_columns is not None and clock_source.kind == "sbe":
        name, unit = clock_source.field, clock_source.unit
        field_times = FieldTimes(sbe_columns.decoder, sbe_columns.schemas, name, unit, name="timestamp")
    clock = Clock(clock_source, time_unit, field_times, is_ascending=ascending)
    is_live = isinstance(source, Subscription | Image)
    if is_live and (recordings is not None or start is not None or end is not None or last is not None):
        raise UsageError("recordings, start, end and last are of recordings, and this is a live stream")
    has_times = clock.kind != "index" or _is_local(source)
    plan = _Plan(
        source=source,
        aeron_dir=aeron_dir,
        recordings=None if recordings is None else tuple(dict.fromkeys(recordings)),
        start=start,
        end=end,
        last=last,
        follow=follow,
        layout=Layout(is_recorded=not is_live, clock=clock if has_times else None, sbe=sbe_columns),
        threads=threads or min(os.cpu_count() or 1, MAX_THREADS),
        bounds=Bounds(rows=batch_rows, bytes=batch_bytes, seconds=batch_seconds),
        on_progress=on_progress,
    )
    usual = [name for name in plan.layout.usual if name in plan.layout.schema.names]
    return Scan(plan, usual, None)._narrowed(columns, filter)


def _is_local(source: Source) -> bool:
    if isinstance(source, str | os.PathLike):
        address = os.fspath(source)
        return not address.startswith("aeron:") and store_scheme(address) is None
    return not isinstance(source, Subscription | Image) and source.is_local


class Scan(dataset.FileSystemDataset):  # type: ignore[misc]
    """Recordings, or a live stream, as a table: made by `scan`.

    It is a dataset of pyarrow: DuckDB, `polars.scan_pyarrow_dataset` and pyarrow push columns and filters down into it. It is
    an Arrow stream for everything else. Each pass reads anew and is independent of others, also in other threads.
    """

    def __init__(self, plan: _Plan, columns: Sequence[str], expression: pc.Expression | None) -> None:
        self._plan = plan
        self._columns = tuple(columns)
        self._expression = expression
        # Every method of the base that reads is replaced below. Code of C++ that takes the dataset behind it, as a union of
        # datasets does, finds one file, which is not there and whose name says what to do.
        super().__init__([_FORMAT.make_fragment(_NO_FILES, fs.LocalFileSystem())], self.schema, _FORMAT)

    def _narrowed(self, columns: Sequence[str] | None, given: str | pc.Expression | None) -> Scan:
        layout = self._plan.layout
        wanted = self._columns if columns is None else tuple(columns)
        if columns is not None:
            layout.check(wanted)
        expression = checked(given, layout.schema)
        if self._expression is not None:
            expression = self._expression if expression is None else self._expression & expression
        return Scan(self._plan, wanted, expression)

    # -- description -----------------------------------------------------------------------------------------------------

    @property
    def schema(self) -> pa.Schema:
        """Of the batches."""
        return self._plan.layout.schema_of(self._columns, dictionaries=self._plan.dictionaries)

    def own(self, column: str) -> str:
        """The name here of a column that is not of SBE: `message:<column>` where a field of the schema has its name."""
        return self._plan.layout.own(column)

    def select(self, columns: Sequence[str]) -> Scan:
        """The same rows with these columns."""
        return self._narrowed(columns, None)

    def filter(self, expression: str | pc.Expression) -> Scan:
        """Those of its rows that a filter selects."""
        return self._narrowed(None, expression)

    def with_progress(self, on_progress: OnProgress) -> Scan:
        """The same, whose passes call this after each piece."""
        return Scan(replace(self._plan, on_progress=on_progress), self._columns, self._expression)

    def ranges(self) -> list[Range]:
        """What a pass reads, as it is now: what lies outside is ruled out by the filter. None of a live stream."""
        if self._plan.is_live:
            return []
        rows = self._rows
        with self._plan.opened() as source:
            return [piece.part for piece in _spans(self._plan, source, rows)]

    def __repr__(self) -> str:
        where = "" if self._expression is None else f" where {self._expression}"
        return f"<Scan of {self._plan.source!r}: {', '.join(self._columns)}{where}>"

    # -- rows --------------------------------------------------------------------------------------------------------------

    def batches(
        self,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | None = None,  # noqa: A002 - as a dataset's
    ) -> Batches:
        """One pass, which `close` ends, also from another thread: then it gives no more batches, and is no error."""
        if columns is not None or filter is not None:
            return self._narrowed(columns, filter).batches()
        plan, rows, stop, held = self._plan, self._rows, Stop(), ExitStack()
        if plan.is_live:
            stream = cast("Subscription | Image", plan.source)
            made = live(stream, rows, plan.bounds, stop, ends=not plan.follow)
        else:
            try:
                source = held.enter_context(plan.opened())
                made = _recorded(plan, source, rows, stop)
            except BaseException:
                held.close()
                raise
        taken = _Pass(made, stop, held)
        return Batches(rows.schema, taken, taken.close)

    def by_time(self, since: datetime | int | None = None) -> Merged:
        """The rows of all recordings in one order, that of the scan's times (`timestamp=`): see `Merged`.

        A recording keeps its own order: a message that is earlier than one before it, or that has no time, counts as of the
        time before it. At equal times the recording with the lower id is first. `since` (ns since 1970-01-01 UTC, or a
        datetime): without the rows before that time, where what is before it need not be read. About 64 MiB are read ahead;
        with more than 500 recordings, a piece of 64 KiB of each. UsageError: a scan of a live stream, or with `follow`; a
        recording whose first messages have no time.
        """
        plan = self._plan
        if plan.is_live or plan.follow:
            raise UsageError(
                "only what is recorded can be put in the order of time: leave out follow, and name recordings"
            )
        if plan.layout.clock is None:
            raise UsageError(NO_TIMES)
        rows = RowMaker(plan.layout, self._columns, self._expression, merges=True)
        since_ns = None if since is None else time_ns(since)
        held = ExitStack()
        try:
            source = held.enter_context(plan.opened())
            spans = _spans(plan, source, rows)
            if since_ns is not None:
                spans = _since(spans, _spans(plan, source, _rows_from(plan.layout, since_ns)))
            made = merge(_runs(plan, source, rows, spans, held), max_rows=plan.bounds.rows)
        except BaseException:
            held.close()
            raise
        return Merged(self.schema, made, held.close, since_ns=since_ns)

    @functools.cached_property
    def _rows(self) -> RowMaker:
        plan = self._plan
        return RowMaker(plan.layout, self._columns, self._expression, dictionaries=plan.dictionaries)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.batches()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.batches().__arrow_c_stream__(requested_schema)

    def to_batches(self, **given: Any) -> Iterator[pa.RecordBatch]:
        """A pass, with the columns and the filter of `scanner`."""
        return self.batches(**_taken(given))

    def to_table(self, **given: Any) -> pa.Table:
        """All rows, with the columns and the filter of `scanner`."""
        if isinstance(given.get("columns"), dict):
            return self.scanner(**given).to_table()
        return self.batches(**_taken(given)).read_all()

    def to_reader(self) -> pa.RecordBatchReader:
        """A pass as a reader of pyarrow."""
        return pa.RecordBatchReader.from_stream(self.batches())

    def head(self, num_rows: int, **given: Any) -> pa.Table:
        """The first rows; reads little more than they take."""
        with self._alone().batches(**_taken(given)) as batches:
            found, left = [], num_rows
            while left > 0 and (batch := next(batches, None)) is not None:
                found.append(batch.slice(0, left))
                left -= batch.num_rows
            return pa.Table.from_batches(found, batches.schema)

    def count_rows(self, **given: Any) -> int:
        """Number of rows. Without SBE no message's bytes are copied."""
        taken = _taken(given)
        # A column that costs nothing more than any does.
        least = self.own("position")
        return sum(batch.num_rows for batch in self.batches([least], taken["filter"]))

    def scanner(
        self,
        columns: Sequence[str] | Mapping[str, pc.Expression] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - as a dataset's
        **_how: Any,
    ) -> dataset.Scanner:
        """A pass for pyarrow and what reads its datasets; options of how to read files have no effect."""
        made = dict(columns) if isinstance(columns, Mapping) else None
        batches = self._pass(None if columns is None or made is not None else list(columns), filter)
        # As an iterator: errors of a stream would lose their class.
        return dataset.Scanner.from_batches(Given(batches, batches.close), schema=batches.schema, columns=made)

    def _pass(self, columns: Sequence[str] | None, expression: pc.Expression | None) -> Batches:
        """A pass over columns; without one, rows are counted by one that costs little."""
        return self.batches(None if columns is None else columns or self._columns[:1], expression)

    def _alone(self) -> Scan:
        """Without reading ahead."""
        return Scan(replace(self._plan, threads=1), self._columns, self._expression)

    # -- what a dataset of files has -----------------------------------------------------------------------------------------

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise UsageError(_NO_FILES)

    get_fragments = _get_fragments = _scanner_options = replace_schema = _refuse
    take = sort_by = join = join_asof = _refuse
    __reduce__ = __setstate__ = _refuse

    @property
    def partition_expression(self) -> None:
        """None: a scan is no part of a dataset."""
        return


_NO_FILES = "a scan of recordings has no files and no index: take to_table() first, or scanner()"
_FORMAT = dataset.IpcFileFormat()


def _taken(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"columns": given.get("columns"), "filter": given.get("filter")}


class _Pass(Iterator[pa.RecordBatch]):
    """Batches, and what they are read from until they end; `close` waits for the batch that another thread takes."""

    def __init__(self, batches: Iterator[pa.RecordBatch], stop: Stop, held: ExitStack) -> None:
        self._batches = batches
        self._stop = stop
        self._held = held
        self._lock = threading.RLock()
        self._is_busy = False

    def __next__(self) -> pa.RecordBatch:
        with self._lock:
            if self._stop.is_set:
                raise StopIteration
            self._is_busy = True
            try:
                return next(self._batches)
            except BaseException:
                self._stop.set()
                raise
            finally:
                self._is_busy = False
                if self._stop.is_set:
                    self.close()

    def close(self) -> None:
        """End it; again is harmless."""
        self._stop.set()
        with self._lock:
            if not self._is_busy:
                cast("Any", self._batches).close()
                self._held.close()


def _recorded(plan: _Plan, source: RecordingSource, rows: RowMaker, stop: Stop) -> Iterator[pa.RecordBatch]:
    """The rows of a pass over recordings; what is wrong with the choice of them is an error here and now."""
    if plan.follow:
        chosen = _chosen(plan, source, rows)
        begins = {one.recording_id: _extent(plan, source, one)[0] for one in chosen}

        def selected() -> list[tuple[Recording, int]]:
            found = _chosen(plan, source, rows)
            return [(one, begins.get(one.recording_id, one.start_position)) for one in found]

        return followed(source, selected, rows, plan.bounds, stop, end=plan.end)
    spans = _spans(plan, source, rows)
    total = sum(piece.part.end - piece.part.start for piece in spans)
    done = count = 0

    def on_done(piece: Piece, rows_of_it: int) -> None:
        nonlocal done, count
        done, count = done + piece.part.end - piece.part.start, count + rows_of_it
        if plan.on_progress is not None:
            plan.on_progress(done, total, count)

    # Elsewhere the source itself fetches ahead, and limits who reads at the same time.
    if plan.threads == 1 or not source.is_local or total <= PIECE_BYTES:
        return one_by_one(source, spans, rows, plan.bounds, on_done)
    pieces = itertools.chain.from_iterable(_pieces(source, span, PIECE_BYTES) for span in spans)
    return in_parallel(source, pieces, rows, plan.bounds, on_done, threads=plan.threads, stop=stop)


def _rows_from(layout: Layout, since_ns: int) -> RowMaker:
    """What begins at or after a time: by the column's own unit, rounded down, so that no such message is left out."""
    assert layout.clock is not None  # noqa: S101 - by_time was asked
    kind = layout.clock.field.type
    when = pa.scalar(since_ns // UNITS_NS[kind.unit], kind)
    return RowMaker(layout, [], pc.field(layout.own(TIMESTAMP)) >= when)


def _since(spans: Sequence[Piece], later: Sequence[Piece]) -> list[Piece]:
    """The spans from the first on of what is later, in each recording: what is behind it counts as later, too."""
    first: dict[int, int] = {}
    for one in later:
        first.setdefault(one.recording.recording_id, one.part.start)
    found = []
    for one in spans:
        start = max(one.part.start, first.get(one.recording.recording_id, one.part.end))
        if start < one.part.end:
            found.append(replace(one, part=replace(one.part, start=start)))
    return found


def _runs(plan: _Plan, source: RecordingSource, rows: RowMaker, spans: Sequence[Piece], held: ExitStack) -> list[Run]:
    """What `merge` takes: each recording, read in pieces that share the memory."""
    of: dict[int, list[Piece]] = {}
    for span in spans:
        of.setdefault(span.recording.recording_id, []).append(span)
    target = min(max(MEMORY_BYTES // 2 // max(len(of), 1), MIN_PIECE_BYTES), PIECE_BYTES)
    pool = None
    if source.is_local and plan.threads > 1 and len(of) * 2 * MIN_PIECE_BYTES <= MEMORY_BYTES:
        pool = ThreadPoolExecutor(plan.threads, thread_name_prefix="aeron-merge")
        held.callback(pool.shutdown, wait=True, cancel_futures=True)

    def reads(pieces: list[Piece]) -> Iterator[Callable[[], tuple[list[pa.RecordBatch], Exception | None]]]:
        for span in pieces:
            for piece in _pieces(source, span, target):
                yield functools.partial(read_whole, source, piece, rows, plan.bounds)

    return [Run(number, one, reads(of[one]), pool) for number, one in enumerate(sorted(of))]


def _chosen(plan: _Plan, source: RecordingSource, rows: RowMaker) -> list[Recording]:
    """The recordings that the filter can select rows of. UsageError: an unknown one is named."""
    known = source.recordings() if plan.recordings is None else [source.recording(one) for one in plan.recordings]
    if not rows.narrowing & _OF_RECORDING.keys():
        return known
    facts = [both(_of_recording(plan.layout, one, rows.narrowing)) for one in known]
    return list(itertools.compress(known, rows.pruner.possible(facts)))


#: Columns that are the same for all messages of a recording.
_OF_RECORDING: dict[str, Callable[[Recording], int]] = {
    "recording_id": lambda one: one.recording_id,
    "stream_id": lambda one: one.stream_id,
}


def _of_recording(layout: Layout, recording: Recording, narrowing: Collection[str]) -> list[pc.Expression]:
    return [
        pc.field(layout.own(name)) == value(recording) for name, value in _OF_RECORDING.items() if name in narrowing
    ]


def _extent(plan: _Plan, source: RecordingSource, recording: Recording) -> tuple[int, int, Extent]:
    """Where reading a recording begins and ends, by the positions that were given, and what there is of it."""
    recording_id, extent = recording.recording_id, source.extent(recording.recording_id)
    first, limit = extent.start_position, extent.limit_position
    if (plan.start is not None or plan.end is not None) and (plan.recordings is None or len(plan.recordings) != 1):
        raise UsageError("start and end are positions of one recording: name it, recordings=<id>")
    start = first if plan.start is None else plan.start
    end = limit if plan.end is None else plan.end
    if not first <= start <= max(start, end) or (end > limit and not plan.follow) or start > end:
        raise UsageError(
            f"recording {recording_id} goes from {first} to {limit}: start {start} and end {end} must be in it, in this order"
        )
    if plan.last is not None:
        start = max(start, tail_position(source, recording_id, extent, plan.last, end=end))
    return start, max(start, end), extent


def _spans(plan: _Plan, source: RecordingSource, rows: RowMaker) -> list[Piece]:
    """What the filter does not rule out, in order."""
    found: list[Piece] = []
    for recording in _chosen(plan, source, rows):
        start, end, extent = _extent(plan, source, recording)
        recording_id, limit = recording.recording_id, extent.limit_position
        facts = _facts(plan.layout, source, recording, extent, rows.narrowing)
        if rows.narrowing & {"position", TIMESTAMP}:
            spans = rows.pruner.spans(start, end, facts)
        else:
            spans = rows.pruner.judged(start, end, facts)
        clock = plan.layout.clock if TIMESTAMP in rows.narrowing else None
        for span in spans:
            # What is read more is filtered, and no other part holds it.
            known = clock.known_start(source, recording, span.start) if clock and not span.is_whole else span.start
            part = Range(recording_id, max(start, known), span.end, limit)
            found.append(Piece(recording, part, is_filtered=not span.is_whole))
            start = span.end
    return found


def _facts(
    layout: Layout, source: RecordingSource, recording: Recording, extent: Extent, narrowing: Collection[str]
) -> Facts:
    """What is known of parts, of the filter's columns alone: Arrow takes time for each fact."""
    of_recording, place = _of_recording(layout, recording, narrowing), layout.own("position")
    position = pc.field(place)
    clock = layout.clock if TIMESTAMP in narrowing else None

    def facts(borders: Borders) -> Known:
        times = None if clock is None else clock.facts(source, recording, extent, borders, layout.own(TIMESTAMP))
        at = {} if times is None else dict(times.at)
        if "position" in narrowing:
            at[place] = pa.array(borders[:-1], pa.int64())

        def between(first: int, last: int) -> pc.Expression:
            found = [*of_recording]
            if "position" in narrowing:
                found += [position >= borders[first], position < borders[last]]
            if times is not None:
                found.append(times.between(first, last))
            return both(found)

        return Known(between, at)

    return facts


def _pieces(source: RecordingSource, whole: Piece, size: int) -> Iterator[Piece]:
    """A piece cut into what is read at a time, as it is needed."""
    part, term_length = whole.part, whole.recording.term_buffer_length
    stride = max(term_length, MAX_CUTS * size // term_length * term_length)
    start = part.start
    while start < part.end:
        end = min(part.end, start - start % term_length + stride)  # a term begins with a message
        try:
            starts = source.split(part.recording_id, start, end, size)
        except DataLossError:
            starts = [Position(start)]  # reading it tells, after the messages before
        for low, high in itertools.pairwise([*starts, end]):
            yield replace(whole, part=Range(part.recording_id, low, high, part.limit))
        start = end

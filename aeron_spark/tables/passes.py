"""One pass over a scan's pieces: in parallel with bounded memory, in their order; or following what grows.

A pass is an iterator of batches that another thread may end. It holds no more than a few pieces at a time, whatever the
recordings' size.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa

from aeron_spark.archive.ranges import Range
from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.segments import Choice, Folder
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.batch import DEFAULT_ROWS, joined
from aeron_spark.errors import AeronError, ClosedError, DataLossError
from aeron_spark.subscription import Image, Subscription
from aeron_spark.tables.rows import RowMaker
from aeron_spark.types import FRAME_ALIGNMENT

__all__ = [
    "MAX_MESSAGE_LENGTH",
    "Bounds",
    "OnProgress",
    "Piece",
    "Stop",
    "followed",
    "in_parallel",
    "live",
    "one_by_one",
    "read_piece",
    "read_whole",
]

#: The largest message (Spec: 02 §4).
MAX_MESSAGE_LENGTH = 16 << 20

#: How long a poll waits for a first message.
_IDLE_SECONDS = 0.1

#: Arguments: bytes of the recordings done, all of them, and rows so far.
OnProgress = Callable[[int, int, int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Rows and bytes of a batch at most, and for how many seconds a live one is collected."""

    rows: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Piece:
    """What is read at a time. `is_filtered` is False where the filter selects every message."""

    recording: Recording
    part: Range
    is_filtered: bool


#: Arguments: a piece that was read, and its rows.
OnDone = Callable[[Piece, int], object]


class Stop:
    """Ends a pass, also from another thread; `wait` returns True when it has to end."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """End it."""
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """Sleep, but not past the end."""
        return self._event.wait(seconds)

    @property
    def is_set(self) -> bool:
        """Whether it has to end."""
        return self._event.is_set()


def read_piece(source: RecordingSource, piece: Piece, rows: RowMaker, bounds: Bounds) -> Iterator[pa.RecordBatch]:
    """The rows of a piece."""
    for batch in _messages(source, piece, rows, rows.natives, bounds):
        yield from rows.make(source, piece.recording, batch, is_filtered=piece.is_filtered)


def read_whole(
    source: RecordingSource, piece: Piece, rows: RowMaker, bounds: Bounds, stop: Stop | None = None
) -> tuple[list[pa.RecordBatch], Exception | None]:
    """The rows of a piece, and the error that comes after them."""
    found, error = [], None
    try:
        for batch in read_piece(source, piece, rows, bounds):
            found.append(batch)
            if stop is not None and stop.is_set:
                break
    except AeronError as failure:
        error = failure
    return list(joined(found, max_rows=bounds.rows, max_bytes=bounds.bytes)), error


def _messages(
    source: RecordingSource, piece: Piece, rows: RowMaker, columns: Sequence[str], bounds: Bounds
) -> Iterator[pa.RecordBatch]:
    """A source's batches: `rows` makes its own of each before the next is asked for."""
    part = piece.part
    largest = min(piece.recording.term_buffer_length // 8, MAX_MESSAGE_LENGTH)
    span = min(part.limit, part.end + largest) - part.start
    with ExitStack() as held:
        choice = Choice(
            columns=list(dict.fromkeys(columns)),
            # A message has a frame of its own, so that n bytes hold no more than n / 32.
            row_capacity=min(bounds.rows, span // FRAME_ALIGNMENT + 1),
            byte_capacity=max(min(max(bounds.bytes, largest), span), 1),
        )
        if isinstance(source, Folder):  # others may make batches ahead
            memory = held.enter_context(rows.memory())
            batches = source.read(part.recording_id, part.start, part.end, limit=part.limit, memory=memory, **choice)
        else:
            batches = source.read(part.recording_id, part.start, part.end, limit=part.limit, **choice)
        yield from held.enter_context(batches)


def one_by_one(
    source: RecordingSource, pieces: Iterable[Piece], rows: RowMaker, bounds: Bounds, on_done: OnDone
) -> Iterator[pa.RecordBatch]:
    """The pieces' rows, as they are read: nothing is read ahead."""
    for piece in pieces:
        count = 0
        for batch in read_piece(source, piece, rows, bounds):
            count += batch.num_rows
            yield batch
        on_done(piece, count)


def in_parallel(
    source: RecordingSource,
    pieces: Iterable[Piece],
    rows: RowMaker,
    bounds: Bounds,
    on_done: OnDone,
    *,
    threads: int,
    stop: Stop,
) -> Iterator[pa.RecordBatch]:
    """The pieces' rows in order; pieces are read ahead, one more than there are threads."""
    left = iter(pieces)
    pending: deque[tuple[Piece, Future[tuple[list[pa.RecordBatch], Exception | None]]]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="aeron-scan")
    try:
        while True:
            for piece in itertools.islice(left, threads + 1 - len(pending)):
                pending.append((piece, pool.submit(read_whole, source, piece, rows, bounds, stop)))
            if not pending:
                return
            done, future = pending.popleft()
            batches, error = future.result()
            yield from batches
            if error is not None:
                raise error
            on_done(done, sum(batch.num_rows for batch in batches))
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def followed(
    source: RecordingSource,
    selected: Callable[[], list[tuple[Recording, int]]],
    rows: RowMaker,
    bounds: Bounds,
    stop: Stop,
    *,
    end: int | None,
) -> Iterator[pa.RecordBatch]:
    """The rows of recordings that grow, until each has stopped and was read to its end.

    With `end`, up to this position. `selected` gives the recordings as they are now, and where to begin with new ones.
    """
    reached: dict[int, int] = {}
    while not stop.is_set:
        source.refresh()
        is_active = grew = False
        for recording, begin in selected():
            recording_id = recording.recording_id
            extent = source.extent(recording_id)
            at = reached.setdefault(recording_id, begin)
            if not extent.start_position <= at <= extent.limit_position:
                raise DataLossError(
                    f"recording {recording_id} was read up to position {at}, but now it holds [{extent.start_position}, "
                    f"{extent.limit_position}): it was purged or truncated while it was followed; read it again"
                )
            limit = extent.limit_position
            to = limit if end is None else min(end, limit)
            is_active = is_active or (extent.is_active and (end is None or at < end))
            if at < to:
                # A message that is not whole yet is read the next time.
                piece = Piece(recording, Range(recording_id, at, to, limit), is_filtered=True)
                for batch in _messages(source, piece, rows, [*rows.natives, "next_position"], bounds):
                    grew = True
                    for made in rows.make(source, recording, batch, is_filtered=True):
                        yield made
                        if stop.is_set:
                            return
                    reached[recording_id] = batch.column("next_position")[-1].as_py()
                # A message lies in one term: of what begins before the last border of terms, nothing can come any more.
                reached[recording_id] = max(
                    reached[recording_id], min(to, limit - limit % recording.term_buffer_length)
                )
        if not grew and (not is_active or stop.wait(bounds.seconds)):
            return


def live(
    source: Subscription | Image,
    rows: RowMaker,
    bounds: Bounds,
    stop: Stop,
    *,
    ends: bool,
) -> Iterator[pa.RecordBatch]:
    """The messages of a subscription or an image as they come; `ends`: with the last publisher that was there."""
    seen = False
    while not stop.is_set:
        try:
            is_there = not source.is_ended if isinstance(source, Image) else source.is_connected
            taken = _collected(source, rows, bounds, stop)
        except ClosedError:
            if isinstance(source, Image):
                return  # it has ended, and all of it was taken
            raise
        seen = seen or is_there or isinstance(source, Image)
        for batch in taken:
            yield from rows.make(None, None, batch, is_filtered=True)
        if not taken and seen and not is_there and (ends or isinstance(source, Image)):
            return


def _collected(source: Subscription | Image, rows: RowMaker, bounds: Bounds, stop: Stop) -> list[pa.RecordBatch]:
    """What comes within the bounds, counted from the first message on; nothing after a tenth of a second without one."""
    found: list[pa.RecordBatch] = []
    count = size = 0
    deadline = time.monotonic() + _IDLE_SECONDS
    while count < bounds.rows and size < bounds.bytes and not stop.is_set and time.monotonic() < deadline:
        wait = min(deadline - time.monotonic(), _IDLE_SECONDS)
        try:
            batch = source.poll_batch(
                max(wait, 0.0),
                columns=rows.natives,
                row_capacity=min(bounds.rows, DEFAULT_ROWS),
                byte_capacity=MAX_MESSAGE_LENGTH,
            )
        except ClosedError:
            if not found:
                raise
            break  # these rows were taken from the stream; the next call raises
        if batch.num_rows:
            if not found:
                deadline = time.monotonic() + bounds.seconds
            found.append(batch)
            count, size = count + batch.num_rows, size + batch.nbytes
    return list(joined(found, max_rows=bounds.rows, max_bytes=bounds.bytes))

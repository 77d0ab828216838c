"""One pass over a scan's pieces: in parallel with bounded memory, in their order; or following what grows.

A pass is an iterator of batches that another thread may end. It holds no more than a few pieces at a time, whatever the
recordings' size.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from aeron_spark.archive.fingerprints import same_fingerprint
from aeron_spark.archive.ranges import Range
from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.segments import Choice, Extent, Folder
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.archive.timed import Timed
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


@dataclass(slots=True)
class _Place:
    """Up to where a followed recording was read."""

    at: int
    #: Fingerprint of the frame before it, as it was then.
    mark: int
    #: More may come.
    is_active: bool = True
    #: Where it has stopped, once it was read to its end.
    ended_at: int | None = None


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
    places: dict[int, _Place] = {}
    timed = None if rows.index_clock is None else Timed(source)
    while not stop.is_set:
        source.refresh()
        is_active = grew = False
        found = selected()
        _check_none_is_gone(places, [recording.recording_id for recording, _ in found])
        for recording, begin in found:
            recording_id = recording.recording_id
            if recording_id not in places:
                places[recording_id] = _Place(begin, _fingerprint(source, recording_id, begin))
            place = places[recording_id]
            if place.ended_at is not None and place.ended_at == recording.stop_position:
                continue  # it may go, also within this look
            at = place.at
            for batch in _read_on(source, recording, place, rows, bounds, timed=timed, end=end):
                yield batch
                if stop.is_set:
                    return
            is_active, grew = is_active or place.is_active, grew or place.at > at
        if not grew and (not is_active or stop.wait(bounds.seconds)):
            return


def _read_on(
    source: RecordingSource,
    recording: Recording,
    place: _Place,
    rows: RowMaker,
    bounds: Bounds,
    *,
    timed: Timed | None,
    end: int | None,
) -> Iterator[pa.RecordBatch]:
    """The rows from a place on, which is moved behind them."""
    recording_id, extent = recording.recording_id, source.extent(recording.recording_id)
    limit = extent.limit_position
    if not extent.start_position <= place.at <= limit:
        raise _replaced(place, recording_id, extent)
    to = limit if end is None else min(end, limit)
    if timed is not None and extent.is_active and place.at < to:
        to = timed.limit(recording_id, place.at, to)
    if place.at < to or (place.is_active and not extent.is_active):
        _check_same(source, place, recording_id)
    if place.at < to:
        # A message lies in one term: of what begins before the last border of terms, nothing can come any more.
        border = min(to, limit - limit % recording.term_buffer_length)
        mark_of_border = _fingerprint(source, recording_id, border)
        # A message that is not whole yet is read the next time.
        piece = Piece(recording, Range(recording_id, place.at, to, limit), is_filtered=True)
        for batch in _messages(source, piece, rows, [*rows.natives, "next_position"], bounds):
            at = batch.column("next_position")[-1].as_py()
            mark = _fingerprint(source, recording_id, at)
            _check_same(source, place, recording_id)  # the taker may have been busy since
            place.at, place.mark = at, mark
            yield from rows.make(source, recording, batch, is_filtered=True)
        if place.at < border:
            place.at, place.mark = border, mark_of_border
    place.is_active = extent.is_active and (end is None or place.at < end)
    place.ended_at = None if extent.is_active else limit


def _fingerprint(source: RecordingSource, recording_id: int, position: int) -> int:
    return int(source.fingerprints(np.array([recording_id]), np.array([position]))[0])


def _check_same(source: RecordingSource, place: _Place, recording_id: int) -> None:
    if not same_fingerprint(place.mark, _fingerprint(source, recording_id, place.at)):
        raise _replaced(place, recording_id, source.extent(recording_id))


def _replaced(place: _Place, recording_id: int, extent: Extent) -> DataLossError:
    return DataLossError(
        f"recording {recording_id} was read up to position {place.at}, but now it holds [{extent.start_position}, "
        f"{extent.limit_position}): it was purged or truncated while it was followed; read it again"
    )


def _check_none_is_gone(places: Mapping[int, _Place], found: Collection[int]) -> None:
    """No filter leaves out a recording that it selected before. One that had stopped was read to its end."""
    gone = [one for one, place in places.items() if place.is_active and one not in found]
    if gone:
        raise DataLossError(
            f"recording {gone[0]} was read up to position {places[gone[0]].at}, but now it is not there: it was purged while "
            f"it was followed, and what it held behind that position is lost"
        )


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
            if isinstance(source, Image) and (source._pointer is None or source.is_ended):
                return  # all of it was taken, or who made it has closed it
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

"""Metrics of a driver's directory: its own, its streams', channels' and clients', and those of archives and applications there.

A counter's key and label are taken apart once, and what they say is kept by their bytes for as long as scrapes find them. So a
scrape of 10,000 counters mostly reads numbers. Spec: 01 §6-9.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from aeron_spark._native._lib import ffi
from aeron_spark.counters import Counters, ErrorEntry
from aeron_spark.metrics.counter_types import (
    RANK_OF_OTHERS,
    RANK_OF_STREAMS,
    RECORDING_POSITION,
    STREAMS,
    CounterTypes,
    Fields,
    Series,
    ranks,
)
from aeron_spark.metrics.samples import Labels, Samples, cut, directory_label
from aeron_spark.streams import ROLES, StreamCounter, distances

_MS = 1e3
_BEHIND: Mapping[int, str] = {
    StreamCounter.SENDER_POSITION: "aeron_sender_behind_bytes",
    StreamCounter.RECEIVER_POSITION: "aeron_receiver_behind_bytes",
    StreamCounter.SUBSCRIBER_POSITION: "aeron_subscriber_behind_bytes",
}
_WINDOW: Mapping[int, str] = {
    StreamCounter.PUBLISHER_POSITION: "aeron_publisher_window_bytes",
    StreamCounter.SENDER_POSITION: "aeron_sender_window_bytes",
}
# How far a recorded stream goes: where it is published here, else as it is received.
_PUBLISHED = (StreamCounter.PUBLISHER_POSITION, StreamCounter.RECEIVER_HIGH_WATER_MARK)
_ERROR_CODE = re.compile(
    r"\((-?\d{1,10})\) |.*?errorCode=(-?\d{1,10})\b|(?:[\w$]+\.)*([\w$]+(?:Exception|Error|Event))\b"
)
_MAX_CODES = 64

_FIELDS = ["id", "type_id", "value", "registration_id", "reference_id", "key", "label", "owner_id"]
#: Fields of a C `as_counter_row` as NumPy reads them.
_ROW = np.dtype(
    {
        "names": _FIELDS,
        "formats": ["i4", "i4", "i8", "i8", "i8", "V112", "S381", "i8"],
        "offsets": [ffi.offsetof("as_counter_row", name) for name in _FIELDS],
        "itemsize": ffi.sizeof("as_counter_row"),
    }
)


class DriverMetrics:
    """The metrics of one directory, scrape after scrape. One thread."""

    def __init__(self, directory: str | os.PathLike[str], clock_s: Callable[[], float] = time.time) -> None:
        self.directory = Path(directory)
        self._dir = directory_label(directory)
        self._clock_s = clock_s
        self._types = CounterTypes(self._dir)
        self._known: dict[tuple[int, int, int, bytes, bytes], Series | None] = {}

    def collect(self, samples: Samples) -> bool:
        """Add what there is now; whether a live driver has the directory. Of a dead one only its heartbeat and errors.

        AeronError, OSError: no directory of a driver, or one that is damaged.
        """
        of = (self._dir,)
        with Counters(self.directory) as counters:
            info = counters.driver()
            if info.heartbeat_ms is not None:
                samples.add("aeron_driver_heartbeat_age_seconds", of, self._age(info.heartbeat_ms))
            add_errors(samples, "aeron_driver_logged_errors", self._dir, counters.errors())
            if not info.is_active:
                return False
            samples.add("aeron_driver_start_time_seconds", of, info.start_timestamp_ms / _MS)
            space = os.statvfs(self.directory)
            samples.add("aeron_driver_free_shared_memory_bytes", of, space.f_bavail * space.f_frsize)
            samples.add("aeron_driver_shared_memory_bytes", of, space.f_blocks * space.f_frsize)
            self._add_counters(samples, counters)
        return True

    def _age(self, time_ms: float) -> float:
        return max(0.0, self._clock_s() - time_ms / _MS)

    def _add_losses(self, samples: Samples, counters: Counters) -> None:
        found: dict[Labels, tuple[int, int]] = {}
        for loss in counters.losses():
            stream = (str(loss.stream_id), str(loss.session_id), cut(loss.channel))
            labels: Labels = (self._dir, *stream, cut(loss.source))
            gaps, lost = found.get(labels, (0, 0))
            found[labels] = gaps + loss.count, lost + loss.bytes_lost
        for labels, (gaps, lost) in found.items():
            samples.add("aeron_image_gaps", labels, gaps)
            samples.add("aeron_image_lost_bytes", labels, lost)

    def _add_counters(self, samples: Samples, counters: Counters) -> None:
        add, now_s, before = samples.add, self._clock_s(), self._known
        self._known = {}
        positions: list[tuple[Fields, Series]] = []
        ranked, left_out = counter_rows(counters, samples.limit, RANK_OF_OTHERS)
        samples.left_out += left_out
        for rank, rows in enumerate(ranked):
            for row in rows:
                counter_id, type_id, value, registration_id, _, key, label, _ = row
                at = (counter_id, type_id, registration_id, key, label)
                series = self._known[at] = before[at] if at in before else self._types.series(row)
                if series is None:
                    continue
                name, labels, divisor, is_heartbeat, stream, _ = series
                if stream is not None:
                    positions.append((row, series))
                if is_heartbeat:
                    add(name, labels, max(0.0, now_s - value / _MS))
                else:
                    add(name, labels, value if divisor == 1 else value / divisor)
            if rank == RANK_OF_STREAMS:
                _add_distances(samples, positions)
                self._add_losses(samples, counters)
        self._types.forget()


def counter_rows(counters: Counters, most: int, last_rank: int) -> tuple[list[list[Fields]], int]:
    """Counters up to a rank, for each rank by id, and how many there are beyond the `most` that matter most."""
    ranked: list[list[Fields]] = [[] for _ in range(last_rank + 1)]
    left_out = 0
    for block, count in counters.blocks():
        rows = np.frombuffer(ffi.buffer(block), _ROW, count)
        of = ranks(rows["type_id"])
        for rank, found in enumerate(ranked):
            own = rows[of == rank]
            found.extend(own[: most - len(found)].tolist())
            left_out += len(own)
    room = most
    for found in ranked:
        del found[room:]
        room -= len(found)
    return ranked, left_out - (most - room)


def _add_distances(samples: Samples, found: Iterable[tuple[Fields, Series]]) -> None:
    """How far each position of a stream is behind the one before it, and from its limit."""
    positions: dict[tuple[int, int], int] = {}
    published: dict[tuple[int, tuple[int, int]], list[int]] = {}
    for (_, type_id, value, *_), series in found:
        if type_id in STREAMS and type_id != StreamCounter.SUBSCRIBER_POSITION:
            positions[type_id, series.party_id] = value
        if type_id in _PUBLISHED and series.stream is not None:
            published.setdefault((type_id, series.stream), []).append(value)
    for (_, type_id, value, _, reference_id, *_), series in found:
        if type_id == RECORDING_POSITION and series.stream is not None:
            end = _published(published, series.stream)
            if end is not None:
                samples.add("aeron_recording_behind_bytes", series.labels, max(0, end - value))
        elif type_id in ROLES:
            party_id = reference_id if type_id == StreamCounter.SUBSCRIBER_POSITION else series.party_id
            behind, window = distances(positions, type_id, party_id, value)
            if behind is not None:
                samples.add(_BEHIND[type_id], series.labels, behind)
            if window is not None:
                samples.add(_WINDOW[type_id], series.labels, window)


def add_errors(samples: Samples, name: str, directory: str, entries: Iterable[ErrorEntry]) -> None:
    """The observations of a distinct error log by code."""
    by_code: dict[str, int] = {}
    for entry in entries:
        code = error_code(entry.text)
        if code not in by_code and len(by_code) >= _MAX_CODES:
            code = "other"
        by_code[code] = by_code.get(code, 0) + max(0, entry.count)
    for code, count in by_code.items():
        samples.add(name, (directory, code), count)


def error_code(text: str) -> str:
    """The number in an error's text, else its class in Java, else its severity."""
    found = _ERROR_CODE.match(text[:400].partition("\n")[0])
    if found:
        return next(one for one in found.groups() if one is not None)[:60]
    severity = text.partition(" - ")[0]
    return severity.lower() if severity in {"ERROR", "WARN"} else "other"


def _published(positions: Mapping[tuple[int, tuple[int, int]], list[int]], stream: tuple[int, int]) -> int | None:
    """How far a recorded stream goes; None where nobody knows, or several have its numbers."""
    found = next((positions[kind, stream] for kind in _PUBLISHED if (kind, stream) in positions), [])
    return found[0] if len(found) == 1 else None

"""Locates the messages of many payloads, in C. Spec: 10 §15; the structures are those of `as_sbe.h`."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from aeron_spark._native._lib import ffi, lib
from aeron_spark.sbe.framing import MESSAGES, Framing
from aeron_spark.sbe.run import pointer


@dataclass(frozen=True, slots=True)
class Frames:
    """Messages: start, end, their payload's index, errors (None: none), and the end of the bytes an error concerns."""

    starts: np.ndarray
    ends: np.ndarray
    payload: np.ndarray
    errors: np.ndarray | None
    stops: np.ndarray

    def take(self, wanted: np.ndarray | slice) -> Frames:
        """The selected messages."""
        errors = None if self.errors is None else self.errors[wanted]
        return Frames(self.starts[wanted], self.ends[wanted], self.payload[wanted], errors, self.stops[wanted])

    def halves(self) -> tuple[Frames, Frames]:
        """The first and the second half of the messages."""
        middle = len(self.starts) // 2
        return self.take(slice(middle)), self.take(slice(middle, None))


Consumed = Callable[[Any, int, int], tuple[int, int]]


def cut(
    framing: Framing, content: pa.Buffer | None, offsets: np.ndarray, skip: int, consumed: Consumed, *, header: int
) -> Frames:
    """The messages of payloads; payload i is `[offsets[i], offsets[i + 1])` of `content`.

    Each message has a header of `header` bytes. `consumed` returns error and length of the message at a start; only
    `messages` needs it.
    """
    starts, ends = np.ascontiguousarray(offsets[:-1]), np.ascontiguousarray(offsets[1:])
    if not framing.size:
        if skip:
            starts = np.minimum(starts + skip, ends)
        return Frames(starts, ends, _up_to(len(starts)), None, ends)
    if framing is MESSAGES:
        return _walked(content, np.minimum(starts + skip, ends), ends, consumed)
    return _framed(native(framing, skip), content, offsets, header)


_KEPT_NUMBERS = 1 << 18


def _up_to(count: int) -> np.ndarray:
    """Numbers from 0; not to be written to."""
    return _kept_numbers()[:count] if count <= _KEPT_NUMBERS else np.arange(count)


@functools.cache
def _kept_numbers() -> np.ndarray:
    """What nearly every batch needs, so that its memory's pages are touched only once."""
    numbers = np.arange(_KEPT_NUMBERS)
    numbers.flags.writeable = False
    return numbers


def _walked(content: pa.Buffer | None, starts: np.ndarray, ends: np.ndarray, consumed: Consumed) -> Frames:
    found: list[tuple[int, int, int]] = []
    for payload, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        at = start
        while at < end:
            error, length = consumed(content, at, end)
            stop = at + length if length and not error else end
            found.append((at, stop, payload))
            at = stop
    table = np.array(found, np.int64).reshape(-1, 3)
    starts, stops, payloads = (np.ascontiguousarray(table[:, index]) for index in range(3))
    return Frames(starts, stops, payloads, None, stops)


def native(framing: Framing, skip: int) -> Any:
    """The C structure."""
    made = ffi.new("as_sbe_framing *")
    made.payload_skip, made.packet_header = skip, framing.packet_header
    made.is_big_endian = framing.size.startswith(">")
    if framing.count:
        made.count.offset, made.count.size = framing.count_at, struct.calcsize(framing.count)
    made.size.offset, made.size.size = framing.size_at, struct.calcsize(framing.size)
    made.size_adds, made.skip = framing.size_adds, framing.skip
    made.mark_offset, made.mark_count = framing.mark_at, len(framing.marks)
    made.mark_is_of_packet = framing.mark_is_of_packet
    ffi.memmove(made.marks, b"".join(framing.marks), 2 * len(framing.marks))
    made.quiet_bytes = framing.quiet_bytes
    ffi.memmove(made.quiet_mark, framing.quiet_mark, len(framing.quiet_mark))
    return made


def _framed(framing: Any, content: pa.Buffer | None, offsets: np.ndarray, header: int) -> Frames:
    count = len(offsets) - 1
    bytes_at = ffi.cast("uint8_t *", content.address) if content is not None and content.size else ffi.NULL
    capacity = 2 * count + 64
    while True:
        starts, ends, payloads = (np.empty(capacity, np.int64) for _ in range(3))
        errors = np.empty(capacity, np.uint8)
        found = lib.as_sbe_frames(
            framing, bytes_at, pointer("int64_t *", offsets), count, capacity, pointer("int64_t *", starts),
            pointer("int64_t *", ends), pointer("int64_t *", payloads), pointer("uint8_t *", errors),
        )  # fmt: skip
        if found <= capacity:
            break
        capacity = found
    starts, ends, payloads, errors = starts[:found], ends[:found], payloads[:found], errors[:found]
    is_short = (ends - starts < header) & (errors == 0)
    if is_short.any():
        # A frame that can't hold a header is not a frame: its payload ends with that error, as in C.
        starts[is_short] -= framing.skip
        ends[is_short], errors[is_short] = starts[is_short], lib.AS_SBE_FRAME_SIZE
        keep = _up_to_first(is_short, payloads)
        starts, ends, payloads, errors = starts[keep], ends[keep], payloads[keep], errors[keep]
    stops = np.where(errors > 0, offsets[1:][payloads], ends) if errors.any() else ends
    return Frames(starts, ends, payloads, errors if errors.any() else None, stops)


def _up_to_first(is_last: np.ndarray, payloads: np.ndarray) -> np.ndarray:
    """Which messages are not after the first message of their payload that must be its last."""
    found = np.flatnonzero(is_last)
    those, at = np.unique(payloads[found], return_index=True)
    last = np.full(int(payloads[-1]) + 1, len(payloads))
    last[those] = found[at]
    keep: np.ndarray = np.arange(len(payloads)) <= last[payloads]
    return keep

"""Batches of captured packets as columns, the flows that they belong to, and what picks rows of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

#: Rows of columns: numbers, a mask, or a slice, which copies nothing.
Rows = np.ndarray | slice


@dataclass(frozen=True, slots=True)
class Packets:
    """Rows of packets: see `as_capture_rows`. `content` holds their bytes until the next batch is read."""

    content: np.ndarray
    time_ns: np.ndarray
    start: np.ndarray
    length: np.ndarray
    flow: np.ndarray
    kind: np.ndarray
    sequence: np.ndarray
    more: np.ndarray

    def take(self, rows: Rows) -> Packets:
        """These rows. Those of a slice are the batch's own, and good until the next one is read."""
        return Packets(self.content, *(getattr(self, one.name)[rows] for one in fields(self)[1:]))

    def __len__(self) -> int:
        return len(self.time_ns)


@dataclass(frozen=True, slots=True)
class Flow:
    """Addresses and ports of datagrams, or of one direction of a connection."""

    source: str
    target: str
    source_port: int
    target_port: int
    #: Of IP.
    number: int

    @property
    def protocol(self) -> str:
        """Name of the protocol; its number if it has none here."""
        return {17: "udp", 6: "tcp"}.get(self.number, str(self.number))

    @property
    def endpoint(self) -> str:
        """Where it goes to, as in a channel."""
        return _with_port(self.target, self.target_port)

    @property
    def origin(self) -> str:
        """Where it comes from."""
        return _with_port(self.source, self.source_port)


def _with_port(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def chosen(mask: np.ndarray) -> Rows:
    """The rows of a mask; a slice where it has all, as of most captures."""
    return slice(None) if mask.all() else mask


def among(numbers: np.ndarray, wanted: set[int]) -> Rows:
    """Which of the numbers are wanted."""
    return chosen(np.isin(numbers, np.fromiter(wanted, np.int64, len(wanted))))


def by_value(*columns: np.ndarray) -> Iterator[tuple[tuple[int, ...], Rows]]:
    """The combinations of values that there are, in their order, each with its rows in order."""
    if all((column == column[0]).all() for column in columns):
        yield tuple(int(column[0]) for column in columns), slice(None)
        return
    order = np.lexsort(columns[::-1])
    in_order = [column[order] for column in columns]
    cuts = np.flatnonzero(np.logical_or.reduce([column[1:] != column[:-1] for column in in_order])) + 1
    for rows in np.split(order, cuts):
        yield tuple(int(column[rows[0]]) for column in columns), rows


def gathered(content: np.ndarray, start: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Stretches one behind the other, and their bounds."""
    offsets = np.zeros(len(start) + 1, np.int64)
    np.cumsum(length, out=offsets[1:])
    view = memoryview(content.data)
    joined = b"".join([view[at : at + size] for at, size in zip(start.tolist(), length.tolist(), strict=True)])
    return np.frombuffer(joined, np.uint8), offsets

"""Counters, error log and loss report of a driver's directory, and counters that a client owns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.callback import Callbacks
from aeron_spark._native.check import c_path, check
from aeron_spark._native.handle import Handle
from aeron_spark.config import default_aeron_dir
from aeron_spark.errors import ClosedError
from aeron_spark.types import NULL_VALUE, CounterId, RegistrationId

_BLOCK_ROWS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterRow:
    """One allocated counter as it was when read."""

    counter_id: CounterId
    type_id: int
    value: int
    registration_id: RegistrationId
    owner_id: int
    reference_id: int
    key: bytes
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEntry:
    """One distinct error: how often, and when first and last (ms since the epoch)."""

    count: int
    first_ms: int
    last_ms: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LossEntry:
    """What one image of a network stream lost: gaps seen, their bytes, and when first and last (ms since the epoch)."""

    count: int
    bytes_lost: int
    first_ms: int
    last_ms: int
    session_id: int
    stream_id: int
    channel: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverInfo:
    """The driver of a directory. `heartbeat_ms` is None after an orderly end."""

    pid: int
    start_timestamp_ms: int
    heartbeat_ms: int | None
    client_liveness_timeout_ns: int
    cnc_version: int
    is_active: bool


class Counters(Handle):
    """Read-only view of a driver's directory; the driver need not live. Any thread.

    StorageError: no such directory; DataLossError: its files are of another version or damaged.
    """

    def __init__(self, aeron_dir: str | os.PathLike[str] | None = None) -> None:
        self.aeron_dir = Path(aeron_dir) if aeron_dir is not None else default_aeron_dir()
        out = ffi.new("as_inspector **")
        check(lib.as_inspector_open(c_path(self.aeron_dir), out))
        super().__init__(out[0], lib.as_inspector_close)

    def driver(self) -> DriverInfo:
        """Who runs the directory, and whether it lives."""
        raw = ffi.new("as_driver_info *")
        with self._use() as inspector:
            lib.as_inspector_driver_info(inspector, raw)
        return DriverInfo(
            pid=raw.pid,
            start_timestamp_ms=raw.start_timestamp_ms,
            heartbeat_ms=None if raw.heartbeat_ms == NULL_VALUE else raw.heartbeat_ms,
            client_liveness_timeout_ns=raw.client_liveness_timeout_ns,
            cnc_version=raw.cnc_version,
            is_active=raw.is_active,
        )

    def rows(self) -> list[CounterRow]:
        """Every allocated counter, by id."""
        return [_row(raw) for block, count in self.blocks() for raw in ffi.unpack(block, count)]

    def blocks(self) -> Iterator[tuple[Any, int]]:
        """Every allocated counter, as blocks of C `as_counter_row` and how many are in each.

        A block is valid until the next one.
        """
        block, next_id = ffi.new("as_counter_row[]", _BLOCK_ROWS), ffi.new("int32_t *")
        count = _BLOCK_ROWS
        while count == _BLOCK_ROWS:
            with self._use() as inspector:
                count = int(lib.as_inspector_counters(inspector, next_id, block, _BLOCK_ROWS))
            yield block, count

    def row(self, counter_id: int) -> CounterRow | None:
        """One counter, None if that id is not allocated."""
        raw = ffi.new("as_counter_row *")
        with self._use() as inspector:
            return _row(raw) if check(lib.as_inspector_counter(inspector, counter_id, raw)) else None

    def errors(self, since_ms: int = 0) -> list[ErrorEntry]:
        """Distinct errors of driver and archive last seen at or after `since_ms`."""
        found: list[ErrorEntry] = []

        def on_entry(count: int, first_ms: int, last_ms: int, text: Any, length: int) -> None:
            content = bytes(ffi.buffer(text, length)).decode("utf-8", "replace")
            found.append(ErrorEntry(count=count, first_ms=first_ms, last_ms=last_ms, text=content))

        callbacks = Callbacks(on_error_entry=on_entry)
        with self._use() as inspector:
            lib.as_inspector_errors(inspector, since_ms, lib.asp_on_error_entry, callbacks.context)
        callbacks.reraise()
        return found

    def losses(self) -> list[LossEntry]:
        """What network streams lost since the driver's start, by image."""
        found: list[LossEntry] = []

        def on_row(row: Any) -> None:
            found.append(
                LossEntry(
                    count=row.observation_count,
                    bytes_lost=row.total_bytes_lost,
                    first_ms=row.first_observation_ms,
                    last_ms=row.last_observation_ms,
                    session_id=row.session_id,
                    stream_id=row.stream_id,
                    channel=bytes(ffi.buffer(row.channel, row.channel_length)).decode("utf-8", "replace"),
                    source=bytes(ffi.buffer(row.source, row.source_length)).decode("utf-8", "replace"),
                )
            )

        callbacks = Callbacks(on_loss_row=on_row)
        with self._use() as inspector:
            check(lib.as_inspector_losses(inspector, lib.asp_on_loss_row, callbacks.context))
        callbacks.reraise()
        return found


class Counter(Handle):
    """A counter of a client; made by `Client.add_counter`, gone when closed. Any thread."""

    def __init__(self, client: Handle, pointer: Any) -> None:
        super().__init__(pointer, lib.as_counter_close, client, is_gone=lib.as_counter_is_closed)
        self.counter_id = CounterId(lib.as_counter_id(pointer))
        self.registration_id = RegistrationId(lib.as_counter_registration_id(pointer))

    @property
    def value(self) -> int:
        """Current value; ClosedError once closed."""
        with self._use() as counter:
            value = int(lib.as_counter_get(counter))
            self._refuse_gone(counter)
            return value

    @value.setter
    def value(self, value: int) -> None:
        with self._use() as counter:
            lib.as_counter_set(counter, value)
            self._refuse_gone(counter)

    def add(self, delta: int) -> int:
        """Add atomically and return the value before; ClosedError once closed."""
        with self._use() as counter:
            before = int(lib.as_counter_add(counter, delta))
            self._refuse_gone(counter)
            return before

    def _refuse_gone(self, pointer: Any) -> None:
        super()._refuse_gone(pointer)
        if lib.as_counter_is_closed(pointer):
            raise ClosedError(f"counter {self.counter_id} is closed: the driver has taken it back, add it again")


def request_termination(aeron_dir: str | os.PathLike[str], token: bytes = b"") -> None:
    """Ask a directory's driver to end. Its termination validator decides; there is no answer."""
    check(lib.as_request_driver_termination(c_path(aeron_dir), token, len(token)))


def _row(raw: Any) -> CounterRow:
    return CounterRow(
        counter_id=CounterId(raw.id),
        type_id=raw.type_id,
        value=raw.value,
        registration_id=RegistrationId(raw.registration_id),
        owner_id=raw.owner_id,
        reference_id=raw.reference_id,
        key=bytes(ffi.buffer(raw.key, raw.key_length)),
        label=bytes(ffi.buffer(raw.label, raw.label_length)).decode("utf-8", "replace"),
    )

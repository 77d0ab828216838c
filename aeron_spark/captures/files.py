"""Capture files as batches of packets: pcap and pcapng, also compressed, read by the C code of `as_capture.h`.

A batch has rows of arrays, one a packet, and the bytes that they point into. Memory is bounded by a piece of the file, whatever
is in it. Nothing is read twice, so a pipe will do. docs/decisions/48-captures-in-c.md tells why no library reads it.
"""

from __future__ import annotations

import io
import ipaddress
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.handle import Handle
from aeron_spark.captures.compressed import FAILURES, decompressed
from aeron_spark.captures.fragments import Fragments
from aeron_spark.captures.packets import Flow, Packets
from aeron_spark.errors import InternalError, StorageError, UsageError

UDP, TCP = lib.AS_CAPTURE_UDP, lib.AS_CAPTURE_TCP
CUT, OTHER, MALFORMED = lib.AS_CAPTURE_CUT, lib.AS_CAPTURE_OTHER, lib.AS_CAPTURE_MALFORMED

_PIECE = 8 << 20
_ROWS = 1 << 16


class CaptureFile(Handle):
    """An open capture file; `problems` tells what of it could not be read, once it was read."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.problems: list[str] = []
        self.incomplete_fragments = 0
        try:
            self._file = _Counted(self.path)
        except OSError as failure:
            raise StorageError(f"cannot read {path}: {failure.strerror}", code=failure.errno or 0) from None
        self._raw = io.BufferedReader(self._file)
        self._stream: Any = decompressed(self._raw)
        self._filled = 0
        pointer = lib.as_capture_open()
        if not pointer:
            self._raw.close()
            raise InternalError("out of memory for a capture")
        super().__init__(pointer, lib.as_capture_close)

    def close(self) -> None:
        """Close the file; again is harmless."""
        self._raw.close()
        super().close()

    @property
    def bytes_read(self) -> int:
        """Of the file, compressed as it is."""
        return self._file.bytes_read

    def flow(self, number: int) -> Flow:
        """The flow of a row."""
        with self._use() as capture:
            found = lib.as_capture_flow_at(capture, number)
            size = 16 if found.is_ipv6 else 4
            source, target = (
                str(ipaddress.ip_address(bytes(ffi.buffer(one, size)))) for one in (found.source, found.target)
            )
            return Flow(source, target, found.source_port, found.target_port, found.protocol)

    def batches(self, kind: int = UDP) -> Iterator[Packets]:
        """The packets in order, fragments of a kind put together.

        UsageError: the file is no capture; what is wrong later ends it, see `problems`.
        """
        buffer = np.empty(_PIECE + lib.AS_CAPTURE_MAX_BLOCK, np.uint8)
        columns = (np.int64, np.int64, np.int64, np.int32, np.uint8, np.uint32, np.uint32)
        arrays = [np.empty(_ROWS, kind) for kind in columns]
        rows = ffi.new("as_capture_rows *")
        for array, field in zip(arrays, fields(Packets)[1:], strict=True):
            setattr(rows, field.name, ffi.cast(f"{array.dtype.name}_t *", ffi.from_buffer(array)))
        fragments = Fragments(kind, self.flow, self._flow_of_ports)
        filled, is_last = 0, False
        while not is_last:
            got = self._fill(memoryview(buffer.data)[filled : filled + _PIECE])
            is_last, filled, at = got == 0, filled + got, 0
            while True:
                error, count, consumed = self._read(rows, buffer[at:filled], is_last=is_last)
                if count:
                    content = buffer[at:filled]
                    yield fragments.join(Packets(content, *(array[:count] for array in arrays)))
                at += consumed
                if error:
                    self._fail(error)
                    is_last = True
                    break
                if count < _ROWS:
                    break
            buffer[: filled - at] = buffer[at:filled].copy()
            filled -= at
        self.incomplete_fragments = fragments.incomplete
        self._tell_left_out()

    def _fill(self, room: memoryview) -> int:
        """Bytes that were read, 0 at the end; a file that can't be read further ends there, too."""
        done = 0
        try:
            while done < len(room) and (got := self._stream.readinto1(room[done:])):
                done += got
        except FAILURES as failure:
            where = (
                f"byte {self._filled + done:,}{'' if self._stream is self._raw else ' of what it holds decompressed'}"
            )
            self.problems.append(f"{self.path} can't be read further than {where}: {str(failure) or 'a read failed'}")
            self._stream = io.BytesIO()
        self._filled += done
        return done

    def _read(self, rows: Any, content: np.ndarray, *, is_last: bool) -> tuple[int, int, int]:
        counts = ffi.new("int64_t[2]")
        with self._use() as capture:
            error = lib.as_capture_read(
                capture, ffi.from_buffer("uint8_t[]", content), len(content), is_last, rows, _ROWS, counts, counts + 1
            )
        return int(error), int(counts[0]), int(counts[1])

    def _flow_of_ports(self, number: int, source_port: int, target_port: int) -> int:
        """Number of the flow between the same addresses with these ports; -1: there are too many."""
        with self._use() as capture:
            flow = ffi.new("as_capture_flow *", lib.as_capture_flow_at(capture, number)[0])
            flow.source_port, flow.target_port = source_port, target_port
            return int(lib.as_capture_flow_of(capture, flow))

    def _fail(self, error: int) -> None:
        path = self.path
        if error == lib.AS_CAPTURE_NO_CAPTURE:
            raise UsageError(
                "".join(self.problems) or f"{path} is no capture file: it begins as neither pcap nor pcapng does"
            )
        text = {
            lib.AS_CAPTURE_BAD_BLOCK: "is damaged: a packet or block in it has an impossible length or time",
            lib.AS_CAPTURE_TRUNCATED: "ends within a packet: it is truncated, or still being written",
            lib.AS_CAPTURE_TOO_MANY_INTERFACES: f"has more than {lib.AS_CAPTURE_MAX_INTERFACES} interfaces; make equal ones "
            "one, for example with mergecap -I all -w LESS FILE",
        }.get(error, "needs more memory than there is")
        if not self.problems:  # a read that failed ends it in a packet, too
            self.problems.append(f"{path} {text}")

    def _tell_left_out(self) -> None:
        with self._use() as capture:
            link, left_out = int(lib.as_capture_other_link(capture)), int(lib.as_capture_left_out(capture))
        if left_out:
            self.problems.append(
                f"{self.path}: {left_out:,} packets are of more than {lib.AS_CAPTURE_MAX_FLOWS:,} pairs of addresses and "
                "ports, and are left out; filter it first, for example with tcpdump -r FILE -w LESS port N"
            )
        if link >= 0:
            self.problems.append(
                f"{self.path} has packets of link type {link}, which is not one of Ethernet, Linux cooked, raw IP and "
                "loopback; they are left out: convert them, for example with editcap -T"
            )


class _Counted(io.FileIO):
    """Counts what is read, since a pipe has no position, and fills what it is given, since a pipe may give a byte first."""

    bytes_read = 0

    def readinto(self, room: Any) -> int:
        view, done = memoryview(room), 0
        while done < len(view) and (got := super().readinto(view[done:])):
            done += got
        self.bytes_read += done
        return done

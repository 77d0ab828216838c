"""What a driver of Aeron 1.53 refuses: every datagram that the driver under test sends is judged by it (Spec: 11 §2, §3; D15).

Written from the specification alone. `Judge.refusal(datagram)` gives the reason, None where the datagram is taken. A judge
learns the term length of a stream from its SETUPs, whoever sends them: what a status message or a NAK may say depends on it.
"""

from __future__ import annotations

import struct

PAD, DATA, NAK, STATUS, ERROR, SETUP, RTTM, RESOLUTION, RESPONSE_SETUP = 0, 1, 2, 3, 4, 5, 6, 7, 11
_SHORTEST = {NAK: 28, STATUS: 36, ERROR: 40, SETUP: 40, RTTM: 40, RESOLUTION: 22, RESPONSE_SETUP: 20}
_LONGEST_TERM = 1 << 30
_LONGEST_TEXT = 1023
_LARGEST_MTU = 65_504


def _on_grid(offset: int, term_length: int) -> bool:
    return 0 <= offset < term_length and offset % 32 == 0


class Judge:
    """Judges the datagrams of any number of streams."""

    def __init__(self) -> None:
        self._terms: dict[tuple[int, int], int] = {}
        self.pads = 0

    def learn(self, datagram: bytes) -> None:
        """Take a stream's term length from its SETUP, if this is one that can be."""
        if (
            len(datagram) >= _SHORTEST[SETUP]
            and struct.unpack_from("<H", datagram, 6)[0] == SETUP
            and not _setup(datagram)
        ):
            session_id, stream_id, _, _, term_length = struct.unpack_from("<5i", datagram, 12)
            self._terms[session_id, stream_id] = term_length

    def refusal(self, datagram: bytes) -> str | None:
        """Why a driver of 1.53 drops this as an invalid packet, None if it does not."""
        if len(datagram) < 8:
            return "shorter than any frame"
        length, version, _, kind = struct.unpack_from("<iBBH", datagram)
        if version != 0 or length < 0:
            return f"version {version}, length {length}"
        if kind in {DATA, PAD}:
            return self._data(datagram)
        if kind not in _SHORTEST:
            return f"unknown type {kind}"
        if len(datagram) < max(length, _SHORTEST[kind]):
            return f"type {kind}: {len(datagram)} bytes for a frame of {length}"
        self.learn(datagram)
        judges = {NAK: self._nak, STATUS: self._status, ERROR: _error, SETUP: _setup}
        return judges[kind](datagram) if kind in judges else None

    def _term(self, datagram: bytes, at: int) -> int:
        return self._terms.get(struct.unpack_from("<ii", datagram, at), _LONGEST_TERM)

    def _data(self, datagram: bytes) -> str | None:
        if len(datagram) < 32 or len(datagram) % 32 != 0:
            return f"data of {len(datagram)} bytes"
        term_length = self._term(datagram, 12)
        first: int = struct.unpack_from("<i", datagram, 8)[0]
        if not _on_grid(first, term_length):
            return f"data at {first} of a term of {term_length}"
        is_heartbeat = len(datagram) == 32 and datagram[:4] == bytes(4)
        return None if is_heartbeat else self._frames(datagram, first, term_length)

    def _frames(self, datagram: bytes, first: int, term_length: int) -> str | None:
        begin = at = kind = 0
        while len(datagram) - at >= 32:
            length, _, _, kind, offset = struct.unpack_from("<iBBHi", datagram, at)
            if length < 32 or kind not in {DATA, PAD} or offset != first + at:
                return f"byte {at}: type {kind} of {length} bytes that says it is at {offset}, not {first + at}"
            begin, at = at, at + ((length + 31) & ~31)
            if first + at > term_length:
                return f"a frame that ends at {first + at} of a term of {term_length}"
        self.pads += kind == PAD
        if len(datagram) not in ((at, begin + 32) if kind == PAD else (at,)):  # a padding travels without its body
            return f"{len(datagram)} bytes for frames of {at}"
        return None

    def _status(self, datagram: bytes) -> str | None:
        offset, window = struct.unpack_from("<ii", datagram, 20)
        term_length = self._term(datagram, 8)
        if not _on_grid(offset, term_length) or not 0 <= window <= term_length // 2:
            return f"a status message of {offset} with a window of {window} for terms of {term_length}"
        return None

    def _nak(self, datagram: bytes) -> str | None:
        offset, length = struct.unpack_from("<ii", datagram, 20)
        term_length = self._term(datagram, 8)
        if not _on_grid(offset, term_length) or length < 0 or offset + length > term_length:
            return f"a NAK of {length} at {offset} of a term of {term_length}"
        return None


def _error(datagram: bytes) -> str | None:
    frame_length: int = struct.unpack_from("<i", datagram)[0]
    length: int = struct.unpack_from("<i", datagram, 36)[0]
    if not 0 <= length <= _LONGEST_TEXT or length != frame_length - 40:
        return f"an error of {length} characters in a frame of {frame_length}"
    return None


def _setup(datagram: bytes) -> str | None:
    offset, _, _, _, _, term_length, mtu = struct.unpack_from("<7i", datagram, 8)
    is_term = 65_536 <= term_length <= _LONGEST_TERM and term_length.bit_count() == 1
    if not is_term or not _on_grid(offset, term_length) or not 32 <= mtu <= _LARGEST_MTU or mtu % 32 != 0:
        return f"a SETUP of offset {offset}, terms of {term_length}, MTU {mtu}"
    return None

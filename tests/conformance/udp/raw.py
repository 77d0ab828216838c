"""Aeron's frames and a raw UDP socket that plays another driver, written from the specification alone (Spec: 04 §1).

What it offers:

- `Data`, `Setup`, `Status`, `Nak`, `Rttm`, `Error`, `ResponseSetup`: each a frozen dataclass with the fields of its frame;
  `encode()` gives the bytes, `decode(bytes)` the frames of a datagram (several where data frames are packed).
- `Socket(host, port, join=group)`: a bound socket. `send(frame or bytes, to=...)`; `receive(timeout)` one datagram or None;
  `expect(Kind, where=..., timeout=...)` the first datagram with such a frame, others are passed over; `take(count)` the next
  ones, however long the machine takes; `collect(seconds)` all that come in that time; `drain()` all that are there;
  `silence(seconds, Kind)` asserts that no such frame comes.
- `Datagram.at` is the kernel's receive time in seconds: it says when the driver sent, however late the test came to look.
- `position(frame, ...)`, `aligned(length)`, `mean_interval(stamps)`.
"""

from __future__ import annotations

import itertools
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

from aeron_spark.closing import Closing
from tests.conformance.udp.judge import Judge
from tests.kit.ports import bind_free

PAD, DATA, NAK, STATUS, ERROR, SETUP, RTTM, RESPONSE_SETUP = 0, 1, 2, 3, 4, 5, 6, 11

UNFRAGMENTED = 0xC0
EOS_HEARTBEAT = 0xE0
REVOKED_HEARTBEAT = 0xF0
SEND_SETUP = 0x80
STATUS_EOS = 0x40
SETUP_GROUP = 0x40
SETUP_SEND_RESPONSE = 0x80
RTTM_REQUEST = 0x80
ERROR_HAS_TAG = 0x08
IMAGE_REJECTED = 13

DATA_HEADER = 32
TERM_LENGTH = 64 * 1024
MTU = 1408

Address = tuple[str, int]

_PREFIX = struct.Struct("<iBBH")
# Not among Python's names for socket options: the kernel's receive time as a timespec. Spec: socket(7).
_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("@qq")
_LONGEST = 65536


def aligned(length: int) -> int:
    """Length of a frame in the log: a multiple of 32."""
    return (length + 31) & ~31


def wrap32(value: int) -> int:
    """A term id as the signed 32 bits that it is."""
    return (value + 2**31) % 2**32 - 2**31


def position(initial_term_id: int, term_id: int, offset: int, term_length: int = TERM_LENGTH) -> int:
    """Stream position; term ids wrap."""
    return wrap32(term_id - initial_term_id) * term_length + offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What all frames have. `length` None means: the true one."""

    TYPE: ClassVar[int] = -1
    BODY: ClassVar[struct.Struct]
    FIELDS: ClassVar[tuple[str, ...]]

    flags: int = 0
    version: int = 0
    length: int | None = None

    def encode(self) -> bytes:
        """The frame's bytes."""
        body = self.BODY.pack(*(getattr(self, name) for name in self.FIELDS)) + self._tail()
        length = _PREFIX.size + len(body) if self.length is None else self.length
        return _PREFIX.pack(length, self.version, self.flags, self.TYPE) + body

    def _tail(self) -> bytes:
        return b""

    @classmethod
    def _decoded(cls, data: bytes, **more: Any) -> Self:
        length, version, flags, _ = _PREFIX.unpack_from(data)
        values = dict(zip(cls.FIELDS, cls.BODY.unpack_from(data, _PREFIX.size), strict=True))
        return cls(length=length, version=version, flags=flags, **values, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Data(Frame):
    """A data frame; with length 0 and no payload a heartbeat. Spec: 04 §1.4."""

    TYPE: ClassVar[int] = DATA
    BODY: ClassVar[struct.Struct] = struct.Struct("<iiiiq")
    FIELDS: ClassVar[tuple[str, ...]] = ("term_offset", "session_id", "stream_id", "term_id", "reserved")

    flags: int = UNFRAGMENTED
    term_offset: int = 0
    session_id: int
    stream_id: int
    term_id: int
    reserved: int = 0
    payload: bytes = b""

    def _tail(self) -> bytes:
        return self.payload + bytes(aligned(len(self.payload)) - len(self.payload))

    def encode(self) -> bytes:
        """The frame's bytes, padded to 32, its length without the padding."""
        length = DATA_HEADER + len(self.payload) if self.length is None else self.length
        return struct.pack("<i", length) + super(Data, self).encode()[4:]

    @property
    def is_heartbeat(self) -> bool:
        """Whether it carries nothing but the sender's position."""
        return self.length == 0

    @property
    def is_eos(self) -> bool:
        """Whether it ends the stream."""
        return bool(self.flags & 0x20)

    def position(self, initial_term_id: int, term_length: int = TERM_LENGTH) -> int:
        """Stream position of the frame's first byte."""
        return position(initial_term_id, self.term_id, self.term_offset, term_length)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pad(Data):
    """The rest of a term: 32 bytes on the wire, whatever its frame length."""

    TYPE: ClassVar[int] = PAD


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup(Frame):
    """Spec: 04 §1.6."""

    TYPE: ClassVar[int] = SETUP
    BODY: ClassVar[struct.Struct] = struct.Struct("<8i")
    FIELDS: ClassVar[tuple[str, ...]] = (
        "term_offset",
        "session_id",
        "stream_id",
        "initial_term_id",
        "active_term_id",
        "term_length",
        "mtu",
        "ttl",
    )

    term_offset: int = 0
    session_id: int
    stream_id: int
    initial_term_id: int
    active_term_id: int
    term_length: int = TERM_LENGTH
    mtu: int = MTU
    ttl: int = 0

    @property
    def position(self) -> int:
        """Stream position that the sender is at."""
        return position(self.initial_term_id, self.active_term_id, self.term_offset, self.term_length)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(Frame):
    """A status message; with a group tag 44 bytes. Spec: 04 §1.7."""

    TYPE: ClassVar[int] = STATUS
    BODY: ClassVar[struct.Struct] = struct.Struct("<5iq")
    FIELDS: ClassVar[tuple[str, ...]] = (
        "session_id",
        "stream_id",
        "term_id",
        "term_offset",
        "window",
        "receiver_id",
    )

    session_id: int = 0
    stream_id: int = 0
    term_id: int = 0
    term_offset: int = 0
    window: int = 0
    receiver_id: int = 1
    tag: int | None = None

    def _tail(self) -> bytes:
        return b"" if self.tag is None else struct.pack("<q", self.tag)

    def position(self, initial_term_id: int, term_length: int = TERM_LENGTH) -> int:
        """Consumption position."""
        return position(initial_term_id, self.term_id, self.term_offset, term_length)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nak(Frame):
    """Spec: 04 §1.8. `gap` is the length asked for."""

    TYPE: ClassVar[int] = NAK
    BODY: ClassVar[struct.Struct] = struct.Struct("<5i")
    FIELDS: ClassVar[tuple[str, ...]] = ("session_id", "stream_id", "term_id", "term_offset", "gap")

    session_id: int
    stream_id: int
    term_id: int
    term_offset: int
    gap: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rttm(Frame):
    """Spec: 04 §1.9."""

    TYPE: ClassVar[int] = RTTM
    BODY: ClassVar[struct.Struct] = struct.Struct("<iiqqq")
    FIELDS: ClassVar[tuple[str, ...]] = ("session_id", "stream_id", "echo", "delta", "receiver_id")

    session_id: int
    stream_id: int
    echo: int
    delta: int = 0
    receiver_id: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Error(Frame):
    """Spec: 04 §1.10."""

    TYPE: ClassVar[int] = ERROR
    BODY: ClassVar[struct.Struct] = struct.Struct("<iiqqii")
    FIELDS: ClassVar[tuple[str, ...]] = ("session_id", "stream_id", "receiver_id", "tag", "code", "text_length")

    session_id: int
    stream_id: int
    receiver_id: int = 1
    tag: int = -1
    code: int = IMAGE_REJECTED
    text_length: int = 0
    text: bytes = b""

    def encode(self) -> bytes:
        """The frame's bytes; a text length of 0 means: the true one."""
        stated = self if self.text_length or not self.text else replace(self, text_length=len(self.text))
        return super(Error, stated).encode()

    def _tail(self) -> bytes:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseSetup(Frame):
    """Spec: 04 §1.11."""

    TYPE: ClassVar[int] = RESPONSE_SETUP
    BODY: ClassVar[struct.Struct] = struct.Struct("<3i")
    FIELDS: ClassVar[tuple[str, ...]] = ("session_id", "stream_id", "response_session_id")

    session_id: int
    stream_id: int
    response_session_id: int


_KINDS: dict[int, type[Frame]] = {
    kind.TYPE: kind for kind in (Data, Pad, Setup, Status, Nak, Rttm, Error, ResponseSetup)
}


def decode(data: bytes) -> list[Frame]:
    """The frames of a datagram.

    Raises:
        AssertionError: A driver under test sent something that is none.
    """
    frames: list[Frame] = []
    at = 0
    while at < len(data):
        rest = data[at:]
        assert len(rest) >= _PREFIX.size, f"{len(rest)} bytes are no frame: {rest.hex()}"
        length, version, _, number = _PREFIX.unpack_from(rest)
        kind = _KINDS.get(number)
        assert kind is not None, f"unknown frame type {number}: {rest.hex()}"
        assert version == 0, f"frame version {version}: {rest.hex()}"
        more: dict[str, Any] = {}
        if number in (DATA, PAD):
            more = {"payload": rest[DATA_HEADER:length] if number == DATA else b""}
            at += aligned(length) if number == DATA and length else DATA_HEADER
        else:
            assert length == len(rest), f"frame length {length} in {len(rest)} bytes"
            if kind is Status and length == 44:
                more = {"tag": struct.unpack_from("<q", rest, 36)[0]}
            elif kind is Error:
                more = {"text": rest[40:]}
            at = len(data)
        frames.append(kind._decoded(rest, **more))
    return frames


@dataclass(frozen=True, slots=True, kw_only=True)
class Datagram:
    """One received datagram: its bytes, frames, sender and the time (s) at which the kernel took it in."""

    data: bytes
    source: Address
    at: float

    @property
    def frames(self) -> list[Frame]:
        """Its frames, the first of them in control datagrams the only one."""
        return decode(self.data)

    @property
    def frame(self) -> Any:
        """Its first frame."""
        return decode(self.data)[0]


FrameKind = TypeVar("FrameKind", bound=Frame)


class Socket(Closing):
    """A raw UDP socket in a driver's place. Sends go to `to`, by default to whom the last datagram came from.

    What comes is judged by what a driver of Aeron 1.53 refuses. Spec: 11 D15.
    """

    def __init__(
        self, host: str = "127.0.0.1", port: int = 0, *, to: Address | None = None, join: str | None = None
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2 * 1024 * 1024)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        if join is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.setsockopt(
                socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(join) + socket.inet_aton("127.0.0.1")
            )
            self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        if port:
            self._socket.bind((join or host, port))
        else:
            port = bind_free(self._socket, join or host)
        self.host = host
        self.port = port
        self.peer = to
        self._judge = Judge()

    @property
    def endpoint(self) -> str:
        """Its address as a channel writes it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def send(self, what: Frame | bytes | Sequence[Frame], to: Address | None = None) -> float:
        """Send one datagram, of several frames if they are given; returns when (s, the clock of `Datagram.at`)."""
        target = to or self.peer
        assert target is not None, "nobody to send to: nothing was received yet and no `to` was given"
        if isinstance(what, (Frame, bytes)):
            what = [what] if isinstance(what, Frame) else what
        data = what if isinstance(what, bytes) else b"".join(frame.encode() for frame in what)
        self._judge.learn(data)
        at = time.time()
        self._socket.sendto(data, target)
        return at

    def receive(self, timeout: float = 10.0) -> Datagram | None:
        """The next datagram, None if none comes in time."""
        ready, _, _ = select.select([self._socket], [], [], max(0.0, timeout))
        if not ready:
            return None
        data, ancillary, _, source = self._socket.recvmsg(_LONGEST, 256)
        seconds, nanoseconds = next(
            _TIMESPEC.unpack_from(value)
            for level, kind, value in ancillary
            if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS
        )
        self.peer = (source[0], source[1])
        refusal = self._judge.refusal(data)
        assert refusal is None, f"a driver of Aeron 1.53 takes no such datagram: {refusal}: {data[:64].hex()}"
        return Datagram(data=data, source=self.peer, at=seconds + nanoseconds / 1e9)

    def expect(
        self,
        kind: type[FrameKind],
        where: Callable[[FrameKind], bool] = lambda _: True,
        *,
        timeout: float = 10.0,
        passing: list[Datagram] | None = None,
    ) -> tuple[FrameKind, Datagram]:
        """The first frame of a kind that fits, and its datagram; what came before is passed over, into `passing`."""
        deadline = time.monotonic() + timeout
        passed = [] if passing is None else passing
        while (datagram := self.receive(deadline - time.monotonic())) is not None:
            for frame in datagram.frames:
                if type(frame) is kind and where(frame):
                    return frame, datagram
            passed.append(datagram)
        raise AssertionError(f"no fitting {kind.__name__} in {timeout} s; came: {[one.frame for one in passed][-20:]}")

    def take(self, count: int, timeout: float = 10.0) -> list[Datagram]:
        """The next datagrams, whatever they are; each may take that long."""
        found = []
        for _ in range(count):
            datagram = self.receive(timeout)
            assert datagram is not None, f"{len(found)} of {count} datagrams came: {[one.frame for one in found]}"
            found.append(datagram)
        return found

    def collect(self, seconds: float) -> list[Datagram]:
        """All datagrams that come from now on for a time, and those that are there already."""
        found = []
        deadline = time.monotonic() + seconds
        while (datagram := self.receive(deadline - time.monotonic())) is not None:
            found.append(datagram)
        return found

    def drain(self) -> list[Datagram]:
        """All datagrams that are there now."""
        return self.collect(0.0)

    def silence(self, seconds: float, *kinds: type[Frame]) -> list[Datagram]:
        """Assert that none of these kinds (of any, if none is named) comes for a time; returns what else came."""
        came = self.collect(seconds)
        wrong = [one.frame for one in came if not kinds or isinstance(one.frame, kinds)]
        assert not wrong, f"came in {seconds} s of silence: {wrong}"
        return came

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def intervals(stamps: Sequence[float]) -> list[float]:
    """Times between neighbours, in seconds."""
    return [after - before for before, after in itertools.pairwise(stamps)]


def assert_period(datagrams: Sequence[Datagram], period: float) -> None:
    """Datagrams come every `period` seconds.

    Half of the intervals are not shorter, strictly but for 10 ms. One of them may be: it follows a datagram that a busy machine
    sent late, after the clock was read for the next. Above, generously: half are shorter than twice the period, so that one of
    two or three may be one in which the machine stood still.
    """
    found = intervals([one.at for one in datagrams])
    assert len(found) >= 2, f"too few datagrams: {len(datagrams)}"
    shown = [round(one * 1000) for one in found]
    found.sort()
    assert found[len(found) // 2] >= period - 0.01, f"intervals in ms: {shown}"
    assert found[(len(found) - 1) // 2] <= 2 * period, f"intervals in ms: {shown}"
    assert min(found) >= period / 4, f"intervals in ms: {shown}"

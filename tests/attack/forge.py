"""What an attacker on another host has: sockets of that host, datagrams with any source address, streams made by hand.

    attacker = Attacker(host, rng, images)
    attacker.send(frame, to=(address, port))                       # from a socket of its own
    attacker.send(frame, to=..., source=("10.77.0.2", 4000))        # from whomever it likes
    control = attacker.stream(to=(address, port), stream_id=10)     # begun by a SETUP, goes on as status messages allow
    control.offer(message)

`Wire` shows what passes the interface of a host, for an attacker who stands on the way.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import select
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conformance.udp import raw
from tests.conformance.udp.raw import Address, Frame
from tests.kit.hosts import Host
from tests.kit.wait import DeadlineError, wait_until

_NAMESPACES = Path("/var/run/netns")
_CLONE_NEWNET = 0x40000000
_ETHERNET, _IP, _UDP = 14, 20, 8
TERM = 64 * 1024


@contextmanager
def network_of(host: Host) -> Iterator[None]:
    """Sockets that this thread makes meanwhile are the host's, and stay so."""
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(namespace: int) -> None:
        if libc.setns(namespace, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")

    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    its = os.open(_NAMESPACES / host.name, os.O_RDONLY)
    try:
        enter(its)
        try:
            yield
        finally:
            enter(own)
    finally:
        os.close(its)
        os.close(own)


class Attacker:
    """An attacker's access to a host's network; `rng` decides what it does. It counts what it sends."""

    def __init__(self, host: Host, rng: random.Random, images: Callable[[], set[int]]) -> None:
        self.host = host
        self.rng = rng
        self._images = images
        self.bytes = 0
        self.datagrams = 0
        with network_of(host):
            self._raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
            self._own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # Whoever is in this half of the network is here, so that answers arrive, as they would at a router.
        host.ip("route", "add", "local", "10.77.0.128/25", "dev", "lo")
        self._own.bind((host.address, 0))
        self.port: int = self._own.getsockname()[1]
        self._streams: list[Stream] = []

    def send(self, what: Frame | bytes, to: Address, source: Address | None = None) -> None:
        """One datagram, from an own socket or from `source`."""
        data = what if isinstance(what, bytes) else what.encode()
        self.count(data)
        if source is None:
            self._own.sendto(data, to)
            return
        udp = struct.pack(">4H", source[1], to[1], _UDP + len(data), 0)
        ip = struct.pack(
            ">BBHHHBBH4s4s",
            0x45,
            0,
            _IP + _UDP + len(data),
            0,
            0,
            64,
            socket.IPPROTO_UDP,
            0,
            socket.inet_aton(source[0]),
            socket.inet_aton(to[0]),
        )
        self._raw.sendto(ip + udp + data, (to[0], 0))

    def count(self, data: bytes) -> None:
        """A datagram was sent."""
        self.bytes += len(data)
        self.datagrams += 1

    def session_id(self) -> int:
        """Any session id."""
        return self.rng.randrange(-(2**31), 2**31)

    def await_images(self, sessions: Iterable[int], seconds: float) -> None:
        """Wait until the attacked driver has images of these sessions, or the time is up, as it may refuse some.

        An attacker would wait and hope; what the test knows of the driver only spares it the rest of that time.
        """
        wanted = set(sessions)
        with contextlib.suppress(DeadlineError):
            wait_until(lambda: wanted <= self._images(), seconds, "images of forged sessions")

    def neighbour(self) -> Address:
        """An unused address of the network, and an unused port."""
        return f"10.77.0.{self.rng.randrange(129, 250)}", self.rng.randrange(1024, 65536)

    def absent(self) -> Address:
        """The address of a host that does not exist, in the network of all."""
        return f"10.77.0.{self.rng.randrange(10, 128)}", self.rng.randrange(1024, 65536)

    def stream(self, to: Address, stream_id: int, *, source: Address | None = None) -> Stream:
        """A stream of its own, begun."""
        made = Stream(self, to, stream_id, source)
        self._streams.append(made)
        return made

    def close(self) -> None:
        """Close its sockets."""
        for stream in self._streams:
            stream.close()
        self._raw.close()
        self._own.close()


class Stream:
    """A publication made by hand. With a socket of its own it heeds status messages; from a forged source it hopes."""

    WINDOW = TERM // 2

    def __init__(self, attacker: Attacker, to: Address, stream_id: int, source: Address | None) -> None:
        self._attacker = attacker
        self._to = to
        self._source = source
        self.stream_id = stream_id
        self.session_id = attacker.session_id()
        self.term_id = attacker.session_id()
        self.position = 0
        self._taken = 0
        self._unheard: list[tuple[int, bytes]] = []
        self._is_refused = False
        with network_of(attacker.host):
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((attacker.host.address, 0))
        self._socket.setblocking(False)  # noqa: FBT003 - the system's own call
        self._begin()

    def close(self) -> None:
        """Say no more."""
        self._socket.close()

    def _send(self, data: bytes) -> None:
        if self._source is None:
            self._attacker.count(data)
            self._socket.sendto(data, self._to)
        else:
            self._attacker.send(data, self._to, self._source)

    def _setup(self) -> None:
        self._send(
            raw.Setup(
                session_id=self.session_id,
                stream_id=self.stream_id,
                initial_term_id=self.term_id,
                active_term_id=self.term_id,
                term_length=TERM,
            ).encode()
        )

    def _begin(self) -> None:
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            self._setup()
            if self._source is not None:
                self._attacker.await_images([self.session_id], 0.1)
                return
            if self._heard(0.05):
                return

    def _heard(self, seconds: float) -> bool:
        """Take in status messages for a time, or until one has come."""
        deadline = time.monotonic() + seconds
        found = False
        while select.select([self._socket], [], [], 0 if found else max(0.0, deadline - time.monotonic()))[0]:
            data = self._socket.recv(65536)
            if len(data) >= 36 and data[6] == raw.STATUS:
                status = raw.decode(data)[0]
                assert isinstance(status, raw.Status)
                self._taken = max(self._taken, status.position(self.term_id, TERM))
                self._unheard = [one for one in self._unheard if one[0] >= self._taken]
                found = True
        return found

    def frame(self, payload: bytes, flags: int = raw.UNFRAGMENTED) -> bytes:
        """The next frame of the stream."""
        if TERM - self.position % TERM < raw.aligned(len(payload) + raw.DATA_HEADER):
            left = TERM - self.position % TERM
            pad = raw.Pad(length=left, **self._at())
            self._push(pad.encode(), left)
        return raw.Data(flags=flags, payload=payload, **self._at()).encode()

    def _at(self) -> dict[str, int]:
        return {
            "session_id": self.session_id,
            "stream_id": self.stream_id,
            "term_id": raw.wrap32(self.term_id + self.position // TERM),
            "term_offset": self.position % TERM,
        }

    def _push(self, data: bytes, length: int) -> None:
        if self._source is None:
            # Who refused the stream once takes no more of it, and is sent the rest without a wait.
            waited = time.monotonic() + (0 if self._is_refused else 1)
            while (is_over := self.position + length > self._taken + self.WINDOW) and time.monotonic() < waited:
                if not self._heard(0.02):
                    for _, unheard in self._unheard[:20]:
                        self._send(unheard)
            self._is_refused = is_over
            self._unheard.append((self.position, data))
        self._send(data)
        self.position += length

    def offer(self, message: bytes, flags: int = raw.UNFRAGMENTED) -> None:
        """One frame with a message or a fragment of one."""
        data = self.frame(message, flags)
        self._push(data, raw.aligned(len(message) + raw.DATA_HEADER))

    def flush(self, seconds: float = 1.0) -> None:
        """Repeat until all was taken, or the time is up."""
        deadline = time.monotonic() + seconds
        while self._source is None and self._taken < self.position and time.monotonic() < deadline:
            if not self._heard(0.02):
                for _, unheard in self._unheard[:20]:
                    self._send(unheard)


class Wire:
    """Datagrams that pass a host's interface, both ways, with their addresses."""

    def __init__(self, host: Host) -> None:
        with network_of(host):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            self._socket.bind(("eth", 0))

    def find(self, kind: type[Frame], stream_id: int, timeout: float = 5.0) -> tuple[Frame, Address, Address]:
        """The next frame of a kind on a stream, from where it comes and where it goes.

        Raises:
            AssertionError: None passes in time.
        """
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                packet = self._socket.recv(65536)
            except TimeoutError:
                break
            if packet[12:14] != b"\x08\x00" or packet[_ETHERNET + 9] != socket.IPPROTO_UDP:
                continue
            source, to = (socket.inet_ntoa(packet[at : at + 4]) for at in (_ETHERNET + 12, _ETHERNET + 16))
            ports = struct.unpack_from(">HH", packet, _ETHERNET + _IP)
            payload = packet[_ETHERNET + _IP + _UDP :]
            # Data frames may lie behind each other in one datagram; the first says enough.
            if len(payload) < 8 or payload[6] != kind.TYPE:
                continue
            frame = kind._decoded(payload)
            if getattr(frame, "stream_id", None) == stream_id:
                return frame, (source, ports[0]), (to, ports[1])
        raise AssertionError(f"no {kind.__name__} of stream {stream_id} in {timeout} s")

    def close(self) -> None:
        """Look no more."""
        self._socket.close()

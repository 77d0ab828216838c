"""Inputs of `fuzz_driver_sequences`: the first ones, from which its corpus was grown, and those at the edges of what may pass.

    python -m tests.fuzz.seeds FOLDER          the first ones
    python -m tests.fuzz.seeds FOLDER edges    the edges: tests/fuzz/edges/driver_sequences holds them


Each opens publications and subscriptions, lets them meet, and then sends one kind of datagram, or does one kind of thing.
"""

from __future__ import annotations

import sys
from pathlib import Path

SLOTS = 8
FRAME, AGAIN, BYTES, PUBLICATION, SUBSCRIPTION, WEATHER, TIME = 0, 3, 5, 6, 7, 8, 9
SETUP, STATUS, NAK, RTTM, ERROR, RESPONSE, DATA = range(7)
KINDS = ("setup", "status", "nak", "rttm", "error", "response", "data")


def time(ms: int, cycles: int) -> bytes:
    """Cycles of so many milliseconds each."""
    return bytes([TIME, ms, cycles - 1])


def opened(slots: range = range(SLOTS)) -> bytes:
    """Both ends of these streams."""
    return b"".join(bytes([SUBSCRIPTION, at, PUBLICATION, at]) for at in slots) + time(20, 20)


def frame(kind: int, endpoint: int, source: int, how: int, fields: bytes) -> bytes:
    """A datagram made anew; `fields` are session, stream and what is chosen of the rest."""
    return bytes([FRAME, endpoint, source, kind | how]) + fields


def seeds() -> dict[str, bytes]:
    """Inputs by name."""
    publish = b"".join(bytes([PUBLICATION, at | 0x30, 100, 0, 200, 3]) for at in range(SLOTS))
    poll = b"".join(bytes([SUBSCRIPTION, at | 0x20]) for at in range(SLOTS))
    found = {
        "streams": opened() + (publish + poll + time(10, 4)) * 3,
        "weather": opened() + bytes([WEATHER, 200, 100, 100, 50, 50, 20]) + (publish + poll + time(20, 4)) * 3,
        "ends": opened()
        + publish
        + b"".join(bytes([PUBLICATION, at | 8 * (at & 1)]) for at in range(SLOTS))
        + time(250, 24)
        + poll,
        "rejects": opened() + publish + b"".join(bytes([SUBSCRIPTION, at | 8]) for at in range(SLOTS)) + time(250, 20),
        "destinations": opened(range(4, 5))
        + bytes([PUBLICATION, 4 | 0x20, SUBSCRIPTION, 4 | 16, 0])
        + publish
        + time(50, 10)
        + poll,
        "bytes": opened(range(2)) + b"".join(bytes([BYTES, at, 0, 8, 8, 0, 0, 0, 0, 0, 1, at]) for at in range(16)),
        "again": opened()
        + publish
        + b"".join(bytes([AGAIN, at * 17 % 256, at % 8, 8, 7]) for at in range(24))
        + time(50, 10),
        "changed": opened()
        + publish
        + b"".join(bytes([AGAIN, at * 13 % 256, 4 | at % 4, at, 1, 2, 3, 4]) for at in range(24)),
    }
    for kind, name in enumerate(KINDS):
        for how in (0, 16, 0x80):
            many = b"".join(
                frame(
                    kind,
                    endpoint,
                    2 * (endpoint & 1),
                    how,
                    bytes([endpoint % SLOTS, endpoint, 0, endpoint % 8, 130, 2, 64, 1]),
                )
                for endpoint in range(16)
            )
            found[f"{name}-{how}"] = opened() + publish + many + time(100, 10) + poll
    return found


def everywhere(kind: int, how: int, fields: bytes, source: int = 0) -> bytes:
    """A datagram to each socket that there may be."""
    return b"".join(frame(kind, endpoint, source, how, fields) for endpoint in range(24))


def edges() -> dict[str, bytes]:
    """Datagrams just beyond what may pass: the first streams are at the beginning of term 7, with terms of 64 KiB.

    The fields are as the target reads them: session, stream, then terms (0: term 7) and numbers. A number is 32 times its byte
    below 96, 128 to 159 lie about half a term, 160 stands before 16 bits that are multiplied by 32, 255 before 32 bits.
    """
    session, stranger = 0, 130
    half, quarter = 144, 160
    one = DATA | 1 << 3  # a frame; 4 << 3 more: of any length
    first, unreliable = opened(range(1)), opened(range(3, 4))
    message = (4000).to_bytes(2, "little")
    publish = bytes([PUBLICATION, 0x70]) + message * 4
    at = (1280).to_bytes(2, "little")  # where the eleventh message begins
    begun = bytes([stranger, 0, 0, 64])
    return {
        "window": first + everywhere(DATA, 3 << 3, bytes([session, 0, 0, half - 1, 0, 0, 0])) + time(1, 2),
        "window-far": first + everywhere(one, 0, bytes([session, 0, 1, half, 1])) + time(1, 2),
        "heartbeat": first + everywhere(DATA, 0, bytes([session, 0, 0, half + 1])) + time(1, 2),
        "join": first + everywhere(SETUP, 0, begun) + time(20, 3) + everywhere(one, 0, bytes([stranger, 0, 0, 32, 1])),
        "padding": first
        + everywhere(SETUP, 0, bytes([stranger, 0, 0, 98]))
        + time(20, 3)
        + everywhere(DATA, 5 << 3, bytes([stranger, 0, 0, 98, 200, half]))
        + time(20, 3),
        "filled": unreliable
        + everywhere(one, 0, bytes([3, 0, 0, 64, 1]))
        + time(20, 3)
        + everywhere(one, 0, bytes([3, 0, 0, 32, 1])),
        "limit": first + everywhere(STATUS, 0, bytes([session, 0, 0, 0, 255]) + b"\x00\xff\xff\x7f" + bytes([1, 0])),
        "ahead": first + everywhere(STATUS, 0, bytes([session, 0, 1, half + 1, 64, 1, 0])),
        "resend": first + everywhere(NAK, 0, bytes([session, 0, 0, 0, 96])),
        "unsent": first + publish * 4 + everywhere(NAK, 0, bytes([session, 0, 0, quarter]) + at + bytes([64])),
        "resent-late": first
        + (publish + bytes([SUBSCRIPTION, 0x60]) + time(1, 2)) * 5
        + everywhere(NAK, 0, bytes([session, 0, 0, 0, 64])),
        "destinations": opened(range(1, 2))
        + b"".join(
            frame(STATUS, endpoint, 4 * port, 0, bytes([1, 0, 0, 0, 64, 10 + port, 0]))
            for endpoint in range(12)
            for port in range(6)
        ),
        "terms": first
        + everywhere(SETUP, 16, bytes([stranger, 0, 0, 0, 255]) + (4 << 20).to_bytes(4, "little"))
        + time(20, 3),
    }


def main() -> None:
    """Write them."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (edges() if sys.argv[2:] == ["edges"] else seeds()).items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()

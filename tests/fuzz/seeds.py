"""First inputs of `fuzz_driver_sequences`, from which its corpus was grown: `python -m tests.fuzz.seeds FOLDER`.

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


def main() -> None:
    """Write them."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in seeds().items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()

"""A fixed moment of two drivers and two archives, for the screen of `top` and its picture.

As a program it shows the moment with `top`'s screen, anew after each end (`python -m tests.kit.live_scene show`), or it writes
the picture of the documentation and the screens that tests expect (`... write`). Seen: a stream that a slow reader blocks, one
over the network that flow control blocks, one without a reader, a disk that will be full, a driver that is gone, hostile texts.
"""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from aeron_spark.live.compare import facts
from aeron_spark.live.facts import Facts
from aeron_spark.live.snapshot import (
    ArchiveReading,
    Beat,
    Counted,
    DriverReading,
    Entry,
    Lost,
    Recorded,
    ServerState,
    Snapshot,
)
from aeron_spark.logs import LoggedError
from aeron_spark.streams import StreamCounter
from aeron_spark.top.screen import Screen
from aeron_spark.top.terminal import Terminal, run

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs/pictures/top.svg"
SCREENS = ROOT / "tests/python/screens"
#: Screens that tests expect: size, and the keys that lead there.
EXPECTED = {
    "streams": (100, 18, ""),
    "narrow": (40, 14, ""),
    "blocked": (100, 18, "\r"),
    "narrow-blocked": (40, 24, "\r"),
    "recordings": (120, 16, "2"),
    "servers": (120, 16, "3"),
    "clients": (80, 14, "4"),
    "errors": (80, 14, "5"),
    "error": (80, 16, "5\r"),
    "loss": (100, 14, "6"),
    "filtered": (80, 14, "/udp\r"),
    "sorted": (80, 14, "sr"),
    "keys": (80, 30, "?"),
}
NOON_MS = 1_764_072_000_000
UDP = "aeron:udp?endpoint=10.0.0.7:40123"
A, B, GONE = "/dev/shm/aeron-feed", "/dev/shm/aeron-risk", "/dev/shm/aeron-gone"  # noqa: S108
HOSTILE = "aeron:ipc?alias=\ufffd[2J\ufffd]0;owned\ufffd"


def publication(
    registration_id: int, stream_id: int, session_id: int, channel: str, at: dict[int, int]
) -> list[Counted]:
    """Counters of a publication, by type."""
    return [Counted(kind, value, stream_id, session_id, channel, registration_id, 0, 7) for kind, value in at.items()]


def subscriber(registration_id: int, of: int, stream: tuple[int, int, str], position: int, client: int) -> Counted:
    """The position of a subscriber of a publication or image."""
    kind = StreamCounter.SUBSCRIBER_POSITION
    return Counted(kind, position, stream[0], stream[1], stream[2], registration_id, of, client)


def _feed(step: int) -> tuple[Counted, ...]:
    """The driver of publishers, so many seconds on."""
    moved, sent = step * 25_000_000, 9_000_000 + step * 1_200_000
    ticks, orders = (1001, 5151, "aeron:ipc"), (1002, -77, UDP)
    return (
        # Blocked by a subscriber that stands still.
        *publication(21, *ticks, {StreamCounter.PUBLISHER_POSITION: 850_000_000, StreamCounter.PUBLISHER_LIMIT: 850_000_000}),
        subscriber(31, 21, ticks, 816_445_568, 8),
        subscriber(33, 21, ticks, 850_000_000, 9),
        # Flow control of a receiver on the other driver stops the sender.
        *publication(
            22, *orders,
            {
                StreamCounter.PUBLISHER_POSITION: 9_200_000 + step * 1_300_000, StreamCounter.PUBLISHER_LIMIT: 18_000_000,
                StreamCounter.SENDER_POSITION: sent, StreamCounter.SENDER_LIMIT: sent,
                StreamCounter.SENDER_BACK_PRESSURE: 412, StreamCounter.SENDER_NAKS_RECEIVED: 17,
            },
        ),
        # Goes well, and is recorded.
        *publication(
            23, 1003, 99, "aeron:ipc",
            {StreamCounter.PUBLISHER_POSITION: 2_000_000_000 + moved, StreamCounter.PUBLISHER_LIMIT: 2_067_000_000 + moved},
        ),
        subscriber(34, 23, (1003, 99, "aeron:ipc"), 1_999_990_000 + moved, 9),
        # Nobody reads, and the channel tries to write into the terminal.
        *publication(24, 1004, 12, HOSTILE, {StreamCounter.PUBLISHER_POSITION: 0, StreamCounter.PUBLISHER_LIMIT: 0}),
    )  # fmt: skip


def _risk(step: int) -> tuple[Counted, ...]:
    """The driver of the receiver."""
    stream = (1002, -77, UDP)
    at = 8_900_000 + step * 1_200_000
    return (
        *publication(
            51, *stream,
            {
                StreamCounter.RECEIVER_HIGH_WATER_MARK: at, StreamCounter.RECEIVER_POSITION: at - 4_096,
                StreamCounter.RECEIVER_NAKS_SENT: 17,
            },
        ),
        subscriber(61, 51, stream, at - 131_072, 5),
    )  # fmt: skip


def snapshot(step: int = 1) -> Snapshot:
    """The moment, so many seconds after the first."""
    driver = {"state": ServerState.ALIVE, "heartbeat_age_s": 0.4, "total_bytes": 16_000_000_000}
    feed = DriverReading(
        path=A, pid=4711, start_ms=NOON_MS - 7_500_000, free_bytes=12_300_000_000, **driver,
        counted=_feed(step),
        recorded=(Recorded("7", 4, 1003, 99, "aeron:ipc", 1_999_990_000 + step * 25_000_000),),
        clients=(Beat(7, "market-feed", 0.3), Beat(8, "slow-reader", 0.2), Beat(9, "archive", 0.8)),
        values={
            ("aeron_driver_sent_bytes", ""): 5e8 + step * 1.3e6, ("aeron_driver_received_bytes", ""): 1e6 + step * 2100,
            ("aeron_driver_slow_cycles", "sender"): 3,
        },
        archives={
            "7": {
                ("aeron_archive_written_bytes", ""): 2e9 + step * 25e6, ("aeron_archive_read_bytes", ""): 0.0 + step * 4e6,
                ("aeron_archive_recording_sessions", ""): 1, ("aeron_archive_replay_sessions", ""): 2,
                ("aeron_archive_control_sessions", ""): 3,
            }
        },
    )  # fmt: skip
    error = LoggedError(
        module="driver", directory=B, level="WARNING", message="io.aeron.exceptions.RegistrationException: \\u001b[31mno room",
        count=3 + 2 * step, first_ms=NOON_MS - 60_000, last_ms=NOON_MS - 1_000,
    )  # fmt: skip
    risk = DriverReading(
        path=B, pid=4712, start_ms=NOON_MS - 90_000, free_bytes=900_000_000, **driver,
        counted=_risk(step), clients=(Beat(5, "risk", 0.1),), errors=(error,),
        losses=(Lost(1002, -77, UDP, "10.0.0.3:51022", 9, 120_000 + step * 4_096, NOON_MS - 2_000),),
    )  # fmt: skip
    trouble = f"there is no cnc.dat in {GONE}; start a driver: aeron-spark driver --dir {GONE}"
    gone = DriverReading(path=GONE, state=ServerState.UNREADABLE, trouble=trouble)
    recorded = {"stream_id": 1003, "channel": "aeron:ipc"}
    archive = ArchiveReading(
        path="/data/archive", state=ServerState.ALIVE, pid=4713, start_ms=NOON_MS - 7_400_000, heartbeat_age_s=0.9,
        free_bytes=410_000_000_000, total_bytes=2_000_000_000_000, archive_id="7", aeron_dir=A, full_s=16_400.0,
        disk_bytes=1_200_000_000_000,
        entries=(
            Entry(recording_id=3, state="stopped", session_id=98, start_ms=NOON_MS - 90_000_000, stop_ms=NOON_MS - 9_000_000,
                  start_position=0, stop_position=640_000_000_000, **recorded),
            Entry(recording_id=4, state="active", session_id=99, start_ms=NOON_MS - 80_000, stop_ms=None,
                  start_position=0, stop_position=None, **recorded),
            Entry(recording_id=5, state="invalid", session_id=1, start_ms=NOON_MS - 95_000_000, stop_ms=NOON_MS - 94_000_000,
                  start_position=65_536, stop_position=131_072, **recorded),
        ),
    )  # fmt: skip
    return Snapshot(at_s=float(step), time_ms=NOON_MS + step * 1000, drivers=(feed, risk, gone), archives=(archive,))


def moment() -> Facts:
    """What there is, with rates."""
    return facts(snapshot(1), snapshot(0))


def many(count: int, step: int = 1) -> Snapshot:
    """A driver with so many streams, each with a publisher and two readers."""
    counted: list[Counted] = []
    for number in range(count):
        stream = (number + 1, number - 500, "aeron:ipc?alias=instrument")
        at = 1_000_000 + step * (1000 + number)
        positions = {StreamCounter.PUBLISHER_POSITION: at, StreamCounter.PUBLISHER_LIMIT: at + 65_536}
        counted += publication(10 + number, *stream, positions)
        counted += [
            subscriber(100_000 + 2 * number + each, 10 + number, stream, at - each * number, 8) for each in (0, 1)
        ]
    driver = replace(snapshot(step).drivers[0], counted=tuple(counted), recorded=(), archives={})
    return Snapshot(at_s=float(step), time_ms=NOON_MS, drivers=(driver,))


def frame(width: int, height: int, keys: str, shown: Facts) -> list[Text]:
    """The lines after some keys; Enter is the only one with a name."""
    screen = Screen(1)
    for key in keys:
        screen.lines(shown, width, height)
        screen.press("enter" if key == "\r" else key, shown)
    return screen.lines(shown, width, height)


def picture() -> str:
    """The screen as SVG, with the fonts of whoever looks at it."""
    console = Console(record=True, width=110, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in frame(110, 14, "", moment()):
        console.print(line, no_wrap=True, overflow="crop")
    form = CODE_FORMAT
    return console.export_svg(title="aeron-spark top", code_format=form, unique_id="top", font_aspect_ratio=0.61)


#: rich's own loads a font from elsewhere.
CODE_FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<title>aeron-spark top</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def write() -> None:
    """The picture and the screens."""
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(), "utf-8")
    SCREENS.mkdir(exist_ok=True)
    for name, (width, height, keys) in EXPECTED.items():
        lines = [line.plain.rstrip() for line in frame(width, height, keys, moment())]
        (SCREENS / f"{name}.txt").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write()
    else:
        while True:
            run(moment, 1, Terminal())

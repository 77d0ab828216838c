"""`aeron-spark archive replay`: one recording as a running archive replays it, or many in their own time with `--by`."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from aeron_spark.archive.addresses import open_source
from aeron_spark.archive.client import Archive
from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.replay import ReplayLength
from aeron_spark.archive.text_values import hex_text, json_lines
from aeron_spark.archive.time_text import parse_time_ns, parse_time_source
from aeron_spark.cli.archive_export import time_ns
from aeron_spark.cli.archive_session import add_running, connect, known, print_answer
from aeron_spark.cli.common import at_least, int32, print_json, recording_ids, standard_input, utc_time
from aeron_spark.cli.progress import Progress, number, size
from aeron_spark.cli.replay_keys import (
    COMMANDS,
    KEYS,
    commands_of_lines,
    is_in_foreground,
    keys_of_terminal,
    parse_speed,
)
from aeron_spark.client import Client
from aeron_spark.errors import UsageError
from aeron_spark.publication import Publication
from aeron_spark.small_files import create_file
from aeron_spark.tables import scan
from aeron_spark.tables.replay import Command, Replay, State, Summary
from aeron_spark.tables.shift import Shift
from aeron_spark.texts import harmless
from aeron_spark.timed import Spread

EXAMPLES = """\
  aeron-spark archive replay 3
  aeron-spark archive replay 3 --from 131072 --to 262144 --form hex
  aeron-spark archive replay 3 --follow --form raw --out messages.bin
  aeron-spark archive replay 3 --channel 'aeron:udp?endpoint=localhost:40123' --stream 1001
  aeron-spark archive replay recordings --by index --speed 10 --channel aeron:ipc
  aeron-spark archive replay recordings 3 4 --by reserved --speed max --own-channels --json
  aeron-spark archive replay recordings --by sent --sbe prices.xml --shift-to now --channel aeron:ipc --stream 7"""
_COLUMNS = ("position", "next_position", "reserved_value", "value")


def add_to(parts: Any) -> None:
    """Add the verb."""
    verb = add_running(
        parts,
        "replay",
        run,
        about="replay a recording to standard output, a file, or a channel; with --by, publish many in their own time",
        examples=EXAMPLES,
    )
    verb.add_argument(
        "words",
        metavar="RECORDING | SOURCE [RECORDING]",
        nargs="+",
        help="id of a recording of the running archive; with --by a SOURCE (an archive's folder, a store's folder, or a "
        "running archive's control channel) and ids of recordings (default: all)",
    )
    verb.add_argument("--channel", metavar="URI", help="channel to publish to")
    verb.add_argument(
        "--stream",
        metavar="ID",
        type=int32,
        help="stream of --channel; with --by it takes all recordings (default: its own)",
    )
    part = verb.add_argument_group("one recording, without --by")
    part.add_argument(
        "--from", dest="start", metavar="POSITION", type=at_least(0), help="begin here (default: the start)"
    )
    part.add_argument("--to", dest="end", metavar="POSITION", type=at_least(0), help="end here (default: the end now)")
    part.add_argument("--follow", action="store_true", help="go on with an active recording until it stops, or Ctrl-C")
    part.add_argument("--out", metavar="FILE", default="-", help="file to write (default: standard output)")
    part.add_argument(
        "--form",
        choices=("lines", "raw", "hex", "json"),
        default="lines",
        help="a line for each message (default), their bytes alone, hexadecimal lines, or JSON lines, as --json has it",
    )
    part = verb.add_argument_group("recordings in their own time, with --by")
    part.add_argument(
        "--by",
        metavar="TIME",
        help="a message's time: index, reserved, reserved(us), or an SBE field: FIELD, FIELD(us)",
    )
    part.add_argument(
        "--speed", metavar="N|max", default="1", help="times as fast as it was; max: without waits (default 1)"
    )
    part.add_argument(
        "--own-channels", action="store_true", help="publish each recording to the channel it was recorded from"
    )
    part.add_argument(
        "--from-time",
        metavar="TIME",
        type=time_ns,
        help="messages of this time or later: 2026-11-20T09:00 (local, or with zone), or ns since 1970",
    )
    part.add_argument("--to-time", metavar="TIME", type=time_ns, help="messages before it")
    part.add_argument(
        "--where",
        metavar="EXPRESSION",
        help="messages by columns and SBE fields, as of cat; times in UTC, or with zone",
    )
    part.add_argument("--sbe", metavar="X.xml", help="schema of the messages")
    part.add_argument("--loop", action="store_true", help="begin again at the end, until Ctrl-C or quit")
    part.add_argument(
        "--shift-to",
        metavar="TIME",
        help="move times in the messages, so that the first is now, or a time (UTC, or with zone): see --shift",
    )
    part.add_argument(
        "--shift",
        metavar="TIME",
        action="append",
        help="time to be moved by --shift-to: reserved, FIELD, FIELD(us); repeatable (default: that of --by)",
    )
    part.add_argument(
        "--commands",
        action="store_true",
        help=f"take commands from standard input: {COMMANDS}. TIME is UTC, or with zone. On a terminal: {KEYS}",
    )


def run(options: argparse.Namespace) -> int:
    """Replay in the form that was asked for."""
    return _run_one(options) if options.by is None else _run_timed(options)


# -- one recording, by the archive -----------------------------------------------------------------------------------------


def _run_one(options: argparse.Namespace) -> int:
    """Start a replay to a channel, or print one."""
    recording_id = _one_recording(options)
    if (options.channel is None) != (options.stream is None):
        raise UsageError("give --channel and --stream together")
    if options.follow and options.end is not None:
        raise UsageError("--follow has no end: leave out --to")
    with connect(options) as archive:
        known(archive, recording_id)
        length = _length(archive, recording_id, options)
        if options.channel is not None:
            session = archive.start_replay(
                recording_id, options.channel, options.stream, position=options.start, length=length
            )
            print_answer(options, {"replay_session_id": session}, f"replay session {session}")
            return 0
        if length == 0:
            return 0
        with (
            _output(options.out) as out,
            archive.replay(recording_id, position=options.start, length=length) as replay,
        ):
            progress = Progress("replayed", quiet=options.out == "-" and sys.stdout.isatty())
            with contextlib.suppress(KeyboardInterrupt):
                for batch in replay.batches(options.timeout, columns=_COLUMNS):
                    data = _text(batch, "json" if options.json else options.form)
                    out.write(data)
                    out.flush()
                    progress.add(batch.num_rows, batch.column("value").nbytes)
        progress.end()
    return 0


def _one_recording(options: argparse.Namespace) -> int:
    words = options.words
    if len(words) != 1 or not words[0].isdecimal():
        raise UsageError(
            f"{' '.join(words)!r} is no id of one recording of the running archive; to publish recordings of a folder in "
            f"their own time, say by which: --by index, --by reserved or --by FIELD"
        )
    _refuse(
        options,
        ("own_channels", "from_time", "to_time", "where", "sbe", "loop", "shift_to", "shift", "commands"),
        "needs",
    )
    return recording_ids(words)[0]


def _refuse(options: argparse.Namespace, names: Sequence[str], verb: str) -> None:
    for name in names:
        if getattr(options, name) not in {None, False} if not isinstance(getattr(options, name), list) else True:
            raise UsageError(f"--{name.replace('_', '-')} {verb} --by")


def _length(archive: Archive, recording_id: int, options: argparse.Namespace) -> int | ReplayLength:
    if options.follow:
        return ReplayLength.FOLLOW
    start = archive.start_position(recording_id) if options.start is None else options.start
    end = archive.max_recorded_position(recording_id) if options.end is None else options.end
    if end < start:
        raise UsageError(f"recording {recording_id}: nothing lies between {start} and {end}")
    return end - start


@contextlib.contextmanager
def _output(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        sys.stdout.flush()
        yield harmless(sys.stdout.buffer)
    else:
        with create_file(name) as file:
            yield file


def _text(batch: pa.RecordBatch, form: str) -> bytes:
    """A batch as the form wants it."""
    if form == "json":
        return bytes(json_lines(batch, list(_COLUMNS), value="base64"))
    if form == "raw":
        return b"".join(batch.column("value").to_pylist())
    lines = hex_text(batch.column("value")) if form == "hex" else batch.column("value")
    ends = "\n" if form == "hex" else b"\n"
    return b"".join(_bytes(line) + _bytes(ends) for line in lines.to_pylist())


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


# -- recordings in their own time ------------------------------------------------------------------------------------------


def _run_timed(options: argparse.Namespace) -> int:
    _check_timed(options)
    source, ids = options.words[0], recording_ids(options.words[1:])
    by = _source_text(options.by)
    shift, shift_to = _shift_of(options, by)
    with ExitStack() as held:
        opened = held.enter_context(open_source(source, aeron_dir=options.dir))
        recordings = [opened.recording(one) for one in ids] if ids else opened.recordings()
        if not recordings:
            raise UsageError(f"{source}: there is no recording")
        messages = scan(
            opened, [one.recording_id for one in recordings], timestamp=by, filter=options.where, sbe=options.sbe
        )
        for when, compare in ((options.from_time, pc.greater_equal), (options.to_time, pc.less)):
            if when is not None:
                messages = messages.filter(
                    compare(pc.field(messages.own("timestamp")), pa.scalar(when, pa.timestamp("ns", "UTC")))
                )
        speed = parse_speed(options.speed)
        client = held.enter_context(Client(options.dir, name="aeron-spark archive replay"))
        targets = _publications(options, client, recordings, held)
        replay = Replay(
            messages,
            targets.__getitem__,
            speed=speed,
            loop=options.loop,
            shift=shift,
            shift_to_ns=shift_to,
            wait_s=options.timeout,
            commands=held.enter_context(_commands(options)),
            on_progress=_shown(),
        )
        for publication in dict.fromkeys(targets.values()):
            publication.wait_connected(options.timeout or 1e9)
        summary = replay.run()
        if sys.stderr.isatty():
            print(file=sys.stderr)
        _print_summary(options, summary, targets)
    return 0


def _check_timed(options: argparse.Namespace) -> None:
    for name, usual in (("start", None), ("end", None), ("follow", False), ("out", "-"), ("form", "lines")):
        if getattr(options, name) != usual:
            flag = {"start": "from", "end": "to"}.get(name, name)
            raise UsageError(f"--{flag} is for one recording, without --by; by time choose --from-time and --to-time")
    if options.own_channels == (options.channel is not None):
        raise UsageError("say where to publish: --channel URI, or --own-channels for those that were recorded")
    if options.stream is not None and options.channel is None:
        raise UsageError("--stream is of --channel: give both")
    if options.shift and options.shift_to is None:
        raise UsageError("--shift needs --shift-to: now, or a time")


def _source_text(text: str) -> str:
    """The short forms of the command line: reserved, and a field's name."""
    if text == "reserved":
        return "reserved(ns)"
    return text if text == "index" or text.startswith(("reserved(", "sbe:")) else f"sbe:{text}"


def _shift_of(options: argparse.Namespace, by: str) -> tuple[Shift | None, Callable[[], int] | None]:
    if options.shift_to is None:
        return None, None
    names = [_source_text(name) for name in options.shift] if options.shift else [by]
    shift = Shift([parse_time_source(name, "--shift") for name in names], options.sbe)
    if options.shift_to == "now":
        return shift, time.time_ns
    when = parse_time_ns("--shift-to", options.shift_to)
    return shift, lambda: when


def _publications(
    options: argparse.Namespace, client: Client, recordings: Sequence[Recording], held: ExitStack
) -> dict[int, Publication]:
    """The publication of each recording: one for all with --stream, else one for each."""

    def added(channel: str, stream_id: int) -> Publication:
        return held.enter_context(client.add_exclusive_publication(channel, stream_id))

    if options.stream is not None:
        return dict.fromkeys((one.recording_id for one in recordings), added(options.channel, options.stream))
    return {
        one.recording_id: added(options.channel or one.original_channel.removeprefix("aeron-spy:"), one.stream_id)
        for one in recordings
    }


@contextlib.contextmanager
def _commands(options: argparse.Namespace) -> Iterator[Callable[[], Sequence[Command]]]:
    if options.commands:
        yield commands_of_lines(standard_input().fileno())
    elif sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty() and is_in_foreground(sys.stdin.fileno()):
        with keys_of_terminal(sys.stdin.fileno()) as keys:
            yield keys
    else:
        yield tuple


def _shown() -> Callable[[State], object]:
    """A line a second: on a terminal the same one; elsewhere only waits for subscribers, when they begin."""
    is_terminal = sys.stderr.isatty()
    shown_at, messages, waited_for = time.monotonic(), 0, ""

    def show(state: State) -> None:
        nonlocal shown_at, messages, waited_for
        now = time.monotonic()
        if not is_terminal:
            if state.waits_for and state.waits_for != waited_for:
                print(f"replay: waits for {state.waits_for}", file=sys.stderr, flush=True)
            waited_for = state.waits_for
        elif now - shown_at >= 1:
            rate = (state.messages - messages) / (now - shown_at)
            shown_at, messages = now, state.messages
            when = "" if state.time_ns is None else utc_time(state.time_ns, 10**9) + ", "
            how = "paused" if state.is_paused else f"speed {state.speed:g}".replace("inf", "max")
            waits = f", waits for {state.waits_for}" if state.waits_for else ""
            text = f"{when}{state.messages:,} messages, {number(rate)} a second, {how}{waits}"
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)

    return show


def _print_summary(options: argparse.Namespace, summary: Summary, targets: dict[int, Publication]) -> None:
    if options.json:
        print_json(
            {
                "ended": summary.ended,
                "messages": summary.messages,
                "bytes": summary.bytes,
                "seconds": round(summary.seconds, 3),
                "held_back_seconds": round(summary.held_seconds, 3),
                "rounds": summary.rounds,
                "shift_ns": summary.shift_ns,
                "publications": [
                    {
                        "channel": one.channel,
                        "stream_id": one.stream_id,
                        "session_id": one.session_id,
                        "recording_ids": [key for key, value in targets.items() if value is one],
                    }
                    for one in dict.fromkeys(targets.values())
                ],
                "interval_errors": _fields(summary.errors),
                "lateness": _fields(summary.lateness),
            }
        )
        return
    rate = number(summary.messages / max(summary.seconds, 1e-3))
    print(
        f"{summary.messages:,} messages, {size(summary.bytes)} in {summary.seconds:.1f} s, {rate} a second: {summary.ended}"
    )
    if summary.held_seconds:
        print(f"held back by subscribers for {summary.held_seconds:.1f} s")
    for what, spread in (("error of the intervals between messages", summary.errors), ("lateness", summary.lateness)):
        if spread.count:
            p50, p99 = ((spread.below_ns(part) or 0) / 1e3 for part in (0.5, 0.99))
            print(f"{what}: p50 below {p50:,.1f} us, p99 below {p99:,.1f} us, at most {spread.max_ns / 1e3:,.1f} us")


def _fields(spread: Spread) -> dict[str, object]:
    return {
        "count": spread.count,
        "p50_ns": spread.below_ns(0.5),
        "p99_ns": spread.below_ns(0.99),
        "p99_9_ns": spread.below_ns(0.999),
        "max_ns": spread.max_ns,
        "histogram": [[one.from_ns, one.to_ns, one.count] for one in spread.bins],
    }

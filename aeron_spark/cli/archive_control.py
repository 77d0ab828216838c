"""`aeron-spark archive record | start | stop | truncate | ...`: a running archive asked by hand."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable
from typing import Any

from aeron_spark.archive.client import Archive
from aeron_spark.archive.recordings import Recording
from aeron_spark.cli.archive_session import add_running, connect, known, print_answer
from aeron_spark.cli.common import at_least, int32, int64, print_json, seconds
from aeron_spark.cli.progress import Work
from aeron_spark.errors import PeerError, UsageError
from aeron_spark.types import FRAME_ALIGNMENT, RecordingSignal, Signal, SourceLocation

_POLL_S = 0.05


def add_to(parts: Any) -> None:
    """Add the verbs of a running archive."""
    record = add_running(
        parts,
        "record",
        run_record,
        about="record a channel and stream until Ctrl-C, --duration or --bytes, and print what was recorded",
        examples="""\
  aeron-spark archive record --channel 'aeron:udp?endpoint=localhost:40123' --stream 1001 --source remote
  aeron-spark archive record --channel aeron:ipc --stream 1001 --duration 60
  aeron-spark archive record --channel aeron:ipc --stream 1001 --extend 3""",
    )
    _add_stream(record, required=True)
    _add_source(record)
    record.add_argument("--extend", metavar="RECORDING", type=int64, help="go on with a stopped recording")
    record.add_argument("--duration", metavar="SECONDS", type=seconds, help="end after so long")
    record.add_argument("--bytes", metavar="N", type=at_least(1), help="end after so many bytes")
    record.add_argument("--auto-stop", action="store_true", help="end when the first publisher is gone")

    start = add_running(
        parts,
        "start",
        run_start,
        about="start recording a channel and stream, and return",
        examples="  aeron-spark archive start --channel aeron:ipc --stream 1001",
    )
    _add_stream(start, required=True)
    _add_source(start)
    start.add_argument("--extend", metavar="RECORDING", type=int64, help="go on with a stopped recording")
    start.add_argument("--auto-stop", action="store_true", help="end when the first publisher is gone")

    stop = add_running(
        parts,
        "stop",
        run_stop,
        about="stop recording a channel and stream as it was started, or one recording",
        examples="""\
  aeron-spark archive stop --channel aeron:ipc --stream 1001
  aeron-spark archive stop --recording 3""",
    )
    _add_stream(stop, required=False)
    stop.add_argument("--recording", metavar="RECORDING", type=int64, help="recording id")

    stop_replay = add_running(
        parts,
        "stop-replay",
        run_stop_replay,
        about="stop all replays of a recording, or one by its session",
        examples="  aeron-spark archive stop-replay 3",
    )
    stop_replay.add_argument("recording_id", metavar="RECORDING", type=int64, help="recording id")
    stop_replay.add_argument("--session", metavar="ID", type=int64, help="replay session id, as `replay` printed it")

    for name, phrase, about, position, deletes in _CHANGES:
        change = add_running(
            parts,
            name,
            run_change,
            about=about + ("; a dry run without --yes" if deletes else ""),
            examples=f"  aeron-spark archive {name} 3{' --to 131072' if position else ''}{' --yes' if deletes else ''}",
        )
        change.add_argument("recording_id", metavar="RECORDING", type=int64, help="recording id")
        if position:
            change.add_argument("--to", metavar="POSITION", type=int64, help=position)
            # Before it was named --to it stood behind the recording: taken until 0.2.
            change.add_argument("position", type=int64, nargs="?", help=argparse.SUPPRESS)
        if deletes:
            change.add_argument("--yes", action="store_true", help="do it; without, only print what would be done")
        change.set_defaults(
            change=name,
            phrase=phrase,
            **({} if position else {"to": None, "position": None}),
            **({} if deletes else {"yes": True}),
        )


# Verb, the words before "recording 3", what it does, what position it takes, whether it deletes.
_CHANGES = (
    ("truncate", "truncate", "make a stopped recording end at a position", "where it ends then", True),
    ("purge", "purge", "delete a stopped recording", "", True),
    (
        "purge-segments",
        "purge segments of",
        "make a recording start at a later segment and delete those before it",
        "where it starts then",
        True,
    ),
    (
        "detach",
        "detach segments of",
        "make a recording start at a later segment and keep the files of those before it",
        "where it starts then",
        False,
    ),
    (
        "delete-detached",
        "delete detached segments of",
        "delete the segment files before the recording's start",
        "",
        True,
    ),
    ("attach", "attach segments to", "make a recording start with the segment files that lie before it", "", False),
)


def _add_stream(part: argparse.ArgumentParser, *, required: bool) -> None:
    part.add_argument(
        "--channel", metavar="URI", required=required, help="channel: aeron:ipc, aeron:udp?endpoint=..., ..."
    )
    part.add_argument("--stream", metavar="ID", type=int32, required=required, help="stream id")


def _add_source(part: argparse.ArgumentParser) -> None:
    part.add_argument(
        "--source",
        choices=("local", "remote"),
        default="local",
        help="local (default): publishers on the archive's own driver, over UDP spied upon; remote: received from the network",
    )


def _source(options: argparse.Namespace) -> SourceLocation:
    return SourceLocation.LOCAL if options.source == "local" else SourceLocation.REMOTE


# -- recording -------------------------------------------------------------------------------------------------------------


class _Recordings:
    """What a subscription records: known from signals, measured by positions."""

    def __init__(self) -> None:
        self.begun: dict[int, int] = {}  # where each began
        self.ended: dict[int, int] = {}
        self.subscription_id: int | None = None
        self._early: list[Signal] = []

    def on_signal(self, signal: Signal) -> None:
        """Take a signal; those that come before the subscription's id is known wait."""
        if self.subscription_id is None:
            self._early.append(signal)
        elif signal.subscription_id == self.subscription_id:
            if signal.signal in {RecordingSignal.START, RecordingSignal.EXTEND}:
                self.begun[signal.recording_id] = signal.position
            elif signal.signal == RecordingSignal.STOP:
                self.ended[signal.recording_id] = signal.position

    def subscribed(self, subscription_id: int) -> None:
        """The request was answered."""
        self.subscription_id = subscription_id
        for signal in self._early:
            self.on_signal(signal)

    def measure(self, archive: Archive) -> int:
        """Bytes recorded so far."""
        return sum(self._position(archive, one) - start for one, start in self.begun.items())

    def _position(self, archive: Archive, recording_id: int) -> int:
        known = self.ended.get(recording_id)
        return archive.max_recorded_position(recording_id) if known is None else known


def run_record(options: argparse.Namespace) -> int:
    """Record until an end is reached, then stop and print each recording."""
    recordings = _Recordings()
    with connect(options, on_signal=recordings.on_signal) as archive:
        recordings.subscribed(_start(archive, options))
        work = Work("recorded", options.bytes or 0, quiet=options.json)
        deadline = None if options.duration is None else time.monotonic() + options.duration
        try:
            while True:
                archive.poll()
                work.at(recordings.measure(archive), len(recordings.begun))
                if _is_done(options, recordings, work.bytes, deadline):
                    break
                time.sleep(_POLL_S)
        except KeyboardInterrupt:
            pass
        work.end()
        _stop(archive, recordings, options)
        for recording_id, start in sorted(recordings.begun.items()):
            _print_recorded(archive, recording_id, start, options)
    if not recordings.begun:
        print(f"nothing was recorded: no publisher on {options.channel}, stream {options.stream}", file=sys.stderr)
    return 0 if recordings.begun else 1


def _start(archive: Archive, options: argparse.Namespace) -> int:
    if options.extend is None:
        return archive.start_recording(
            options.channel, options.stream, source=_source(options), auto_stop=options.auto_stop
        )
    return archive.extend_recording(
        options.extend, options.channel, options.stream, source=_source(options), auto_stop=options.auto_stop
    )


def _is_done(options: argparse.Namespace, recordings: _Recordings, done: int, deadline: float | None) -> bool:
    if deadline is not None and time.monotonic() >= deadline:
        return True
    if options.bytes is not None and done >= options.bytes:
        return True
    return options.auto_stop and bool(recordings.ended)


def _stop(archive: Archive, recordings: _Recordings, options: argparse.Namespace) -> None:
    """Stop, and wait until each recording has ended."""
    with contextlib.suppress(PeerError):  # with --auto-stop it may be gone
        archive.stop_recording_subscription(recordings.subscription_id or 0)
    deadline = time.monotonic() + options.timeout
    while recordings.begun.keys() - recordings.ended.keys() and time.monotonic() < deadline:
        archive.poll()
        time.sleep(_POLL_S / 10)


def _print_recorded(archive: Archive, recording_id: int, start: int, options: argparse.Namespace) -> None:
    end = archive.max_recorded_position(recording_id)
    if options.json:
        print_json({"recording_id": recording_id, "from_position": start, "to_position": end, "bytes": end - start})
    else:
        print(f"recording {recording_id}: {end - start:,} bytes, from {start} to {end}")


def run_start(options: argparse.Namespace) -> int:
    """Start a recording subscription; it outlives this session."""
    with connect(options) as archive:
        subscription_id = _start(archive, options)
    print_answer(options, {"subscription_id": subscription_id}, f"recording subscription {subscription_id}")
    return 0


def run_stop(options: argparse.Namespace) -> int:
    """Stop by channel and stream, or by recording."""
    by_stream = options.channel is not None and options.stream is not None
    if by_stream == (options.recording is not None):
        raise UsageError("give --channel and --stream, or --recording")
    with connect(options) as archive:
        if by_stream:
            archive.stop_recording(options.channel, options.stream)
        elif not archive.stop_recording_by_identity(options.recording):
            print(f"recording {options.recording} was not active", file=sys.stderr)
            return 1
    if options.json:
        print_json({"stopped": True})
    return 0


def run_stop_replay(options: argparse.Namespace) -> int:
    """Stop replays."""
    with connect(options) as archive:
        if options.session is None:
            archive.stop_all_replays(options.recording_id)
        else:
            archive.stop_replay(options.session)
    if options.json:
        print_json({"stopped": True})
    return 0


# -- changing --------------------------------------------------------------------------------------------------------------


def run_change(options: argparse.Namespace) -> int:
    """Truncate, purge, detach, attach and so on."""
    recording_id, position = options.recording_id, _position(options)
    at = 0 if position is None else position
    with connect(options) as archive:
        recording = known(archive, recording_id)
        _check_change(archive, recording, at, options)
        if not options.yes:
            target = "" if position is None else f" at position {position}"
            # The archive sees by the segment's bytes whether a frame begins somewhere; a client does not have them.
            ends = {recording.start_position, recording.stop_position}
            is_known = options.change != "truncate" or position in ends or position == recording.segment_base(at)
            condition = "" if is_known else ", if a frame begins there"
            print_answer(
                options,
                {"recording_id": recording_id, "to_position": position, "dry_run": True},
                f"would {options.phrase} {_named(recording)}{target}{condition}; --yes does it",
            )
            return 0
        calls: dict[str, Callable[[], int | None]] = {
            "truncate": lambda: archive.truncate_recording(recording_id, at),
            "purge": lambda: archive.purge_recording(recording_id),
            "purge-segments": lambda: archive.purge_segments(recording_id, at),
            "detach": lambda: archive.detach_segments(recording_id, at),
            "delete-detached": lambda: archive.delete_detached_segments(recording_id),
            "attach": lambda: archive.attach_segments(recording_id),
        }
        segments = calls[options.change]()
        changed = archive.recording(recording_id) or recording  # one that was purged is shown as it was
    files = "" if segments is None else f": {segments} segment files"
    print_answer(
        options, {"recording_id": recording_id, "segments": segments}, f"{options.change} of {_named(changed)}{files}"
    )
    return 0


def _position(options: argparse.Namespace) -> int | None:
    """Of --to, or as it was given before there was --to."""
    if options.to is not None and options.position is not None:
        raise UsageError(f"give the position once: --to {options.to}")
    position = options.position if options.to is None else options.to
    if position is None and options.change in {name for name, _, _, takes, _ in _CHANGES if takes}:
        raise UsageError(
            f"give the position: aeron-spark archive {options.change} {options.recording_id} --to POSITION"
        )
    return None if position is None else int(position)


def _named(recording: Recording) -> str:
    stop = "now, active" if recording.stop_position is None else recording.stop_position
    return f"recording {recording.recording_id} ({recording.start_position} to {stop})"


def _check_change(archive: Archive, recording: Recording, position: int, options: argparse.Namespace) -> None:
    """Refuse what the archive would: a dry run promises nothing that is refused then."""
    recording_id, start, stop = recording.recording_id, recording.start_position, recording.stop_position
    if options.change in {"truncate", "purge"} and stop is None:
        raise UsageError(
            f"recording {recording_id} is active: stop it first, aeron-spark archive stop --recording {recording_id}"
        )
    fits = stop is not None and start <= position <= stop and position % FRAME_ALIGNMENT == 0
    if options.change == "truncate" and not fits:
        raise UsageError(
            f"recording {recording_id} goes from {start} to {stop}: it can't be truncated at {position}, give a position "
            f"in it where a frame begins, a multiple of {FRAME_ALIGNMENT}"
        )
    if options.change in {"purge-segments", "detach"}:
        starts = recording.detachable(archive.max_recorded_position(recording_id) if stop is None else stop)
        if position not in starts:
            remedy = (
                f"give a position where one does, every {starts.step} from {starts[0]} to {starts[-1]}"
                if starts
                else "it has one segment, which stays; purge deletes a whole recording"
            )
            raise UsageError(f"no later segment of recording {recording_id} begins at {position}: {remedy}")

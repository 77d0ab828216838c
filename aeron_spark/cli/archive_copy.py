"""`aeron-spark archive replicate | update-channel | migrate-segments`: recordings copied and joined by a running archive."""

from __future__ import annotations

import argparse
import time
from typing import Any

from aeron_spark.archive.client import Archive
from aeron_spark.cli.archive_session import add_credentials, add_running, connect, credentials, known, print_answer
from aeron_spark.cli.common import at_least, int32, int64
from aeron_spark.cli.progress import Work
from aeron_spark.errors import AeronError
from aeron_spark.types import RecordingSignal, Signal

_POLL_S = 0.02


def add_to(parts: Any) -> None:
    """Add the verbs."""
    copy = add_running(
        parts,
        "replicate",
        run_replicate,
        about="have the archive copy a recording of another archive, and wait for it; an active one is followed until "
        "it stops, or Ctrl-C",
        examples="""\
  aeron-spark archive replicate 3 --source 'aeron:udp?endpoint=other:8010' \\
      --replication-channel 'aeron:udp?endpoint=this:0'
  aeron-spark archive replicate 3 --source 'aeron:udp?endpoint=other:8010' --recording 7 --to 131072
  aeron-spark archive replicate 3 --source 'aeron:udp?endpoint=other:8010' --live 'aeron:udp?endpoint=this:40123' \\
      --source-credentials-file other.secret""",
    )
    copy.add_argument("source_recording_id", metavar="RECORDING", type=int64, help="recording id in the other archive")
    copy.add_argument("--source", metavar="URI", required=True, help="the other archive's control channel")
    copy.add_argument("--source-stream", metavar="ID", type=int32, default=10, help="its stream (default 10)")
    copy.add_argument(
        "--source-response", metavar="URI", help="where the other archive answers (default: the archive's setting)"
    )
    add_credentials(copy, "source-", "the other archive")
    copy.add_argument("--recording", metavar="RECORDING", type=int64, help="a stopped recording to go on with")
    copy.add_argument("--to", dest="end", metavar="POSITION", type=at_least(0), help="how far to copy (default: all)")
    copy.add_argument("--live", metavar="URI", help="go on from this live stream once caught up, and return")
    copy.add_argument(
        "--replication-channel", metavar="URI", help="where the other replays to (default: the archive's setting)"
    )

    rename = add_running(
        parts,
        "update-channel",
        run_update_channel,
        about="change the channel that a recording is listed with",
        examples="  aeron-spark archive update-channel 3 'aeron:udp?endpoint=localhost:40123|alias=prices'",
    )
    rename.add_argument("recording_id", metavar="RECORDING", type=int64, help="recording id")
    rename.add_argument("channel", metavar="URI", help="the new channel")

    move = add_running(
        parts,
        "migrate-segments",
        run_migrate_segments,
        about="move all of a stopped recording before or behind another one that it meets; a dry run without --yes",
        examples="  aeron-spark archive migrate-segments 4 3 --yes",
    )
    move.add_argument("source_recording_id", metavar="FROM", type=int64, help="the recording that is empty then")
    move.add_argument("recording_id", metavar="TO", type=int64, help="the recording that gets its segments")
    move.add_argument("--yes", action="store_true", help="do it; without, only print what would be done")


# -- replicate -------------------------------------------------------------------------------------------------------------


class _Copy:
    """The progress of a replication by its signals; those that arrive before its id is known are queued."""

    def __init__(self) -> None:
        self.recording_id: int | None = None
        self.start: int | None = None  # where the first byte went
        self.is_synced = self.is_merged = self.is_ended = False
        self._replication_id: int | None = None
        self._early: list[Signal] = []

    def begun(self, replication_id: int) -> None:
        """The request was answered."""
        self._replication_id = replication_id
        for signal in self._early:
            self.on_signal(signal)

    def on_signal(self, signal: Signal) -> None:
        """Take a signal."""
        if self._replication_id is None:
            self._early.append(signal)
        elif signal.correlation_id == self._replication_id:
            if signal.signal == RecordingSignal.EXTEND and self.start is None:
                self.recording_id, self.start = signal.recording_id, signal.position
            self.is_synced = self.is_synced or signal.signal == RecordingSignal.SYNC
            self.is_merged = self.is_merged or signal.signal == RecordingSignal.MERGE
            self.is_ended = self.is_ended or signal.signal == RecordingSignal.REPLICATE_END


def run_replicate(options: argparse.Namespace) -> int:
    """Copy, and report progress; Ctrl-C ends the copy, which keeps what it has."""
    copy = _Copy()
    with connect(options, on_signal=copy.on_signal) as archive:
        goal = _goal(archive, options)
        replication_id = archive.replicate(
            options.source_recording_id,
            options.source,
            options.source_stream,
            recording_id=options.recording,
            stop_position=options.end,
            live_destination=options.live,
            replication_channel=options.replication_channel,
            response_channel=options.source_response,
            credentials=credentials(options, "source_") or b"",
        )
        copy.begun(replication_id)
        work: Work | None = None
        try:
            while not copy.is_ended and not copy.is_merged:
                archive.poll()
                if copy.recording_id is not None and copy.start is not None:
                    total = 0 if goal is None else max(goal - copy.start, 0)
                    work = work or Work("copied", total, quiet=options.json)
                    work.at(archive.max_recorded_position(copy.recording_id) - copy.start)
                time.sleep(_POLL_S)
        except KeyboardInterrupt:
            archive.try_stop_replication(replication_id)
        if work is not None:
            work.end()
        return _print_copy(archive, copy, options, goal)


def _goal(archive: Archive, options: argparse.Namespace) -> int | None:
    """Where the copy will end, as far as that is known: the source is asked where this machine reaches it by itself."""
    if options.end is not None:
        return int(options.end)
    if options.source_response is None:
        return None
    try:
        with Archive(
            archive.client,
            control_channel=options.source,
            control_stream_id=options.source_stream,
            response_channel=options.source_response,
            timeout=options.timeout,
            credentials=credentials(options, "source_"),
        ) as source:
            return source.max_recorded_position(options.source_recording_id)
    except AeronError:
        return None  # the replication itself reports what is wrong


def _print_copy(archive: Archive, copy: _Copy, options: argparse.Namespace, goal: int | None) -> int:
    if copy.recording_id is None or copy.start is None:
        print_answer(
            options,
            {"recording_id": None, "bytes": 0},
            "nothing was copied: the recording has nothing that is not here",
        )
        return 0
    end = archive.max_recorded_position(copy.recording_id)
    is_whole = copy.is_merged or copy.is_synced or goal is None or end >= goal
    # An archive does not tell why a replay broke off: its source may have died, or have cut the recording.
    is_short = copy.is_ended and not is_whole
    state = "merged with the live stream" if copy.is_merged else "whole" if copy.is_synced else "ended"
    if is_short:
        state = f"ended before {goal}, as far as the source went: see whether its archive is well, and run it again"
    print_answer(
        options,
        {
            "recording_id": copy.recording_id,
            "from_position": copy.start,
            "to_position": end,
            "bytes": end - copy.start,
            "synced": copy.is_synced,
            "merged": copy.is_merged,
        },
        f"recording {copy.recording_id}: {end - copy.start:,} bytes, from {copy.start} to {end}, {state}",
    )
    return 1 if is_short else 0


# -- update-channel, migrate-segments ----------------------------------------------------------------------------------------


def run_update_channel(options: argparse.Namespace) -> int:
    """Change the channel, and print the one before."""
    with connect(options) as archive:
        before = known(archive, options.recording_id)
        archive.update_channel(options.recording_id, options.channel)
        after = archive.recording(options.recording_id)
    channel = options.channel if after is None else after.original_channel
    print_answer(
        options,
        {"recording_id": options.recording_id, "channel": channel, "before": before.original_channel},
        f"recording {options.recording_id}: {channel}, was {before.original_channel}",
    )
    return 0


def run_migrate_segments(options: argparse.Namespace) -> int:
    """Move segments from one recording to the other."""
    with connect(options) as archive:
        about = []
        for recording_id in (options.source_recording_id, options.recording_id):
            recording = known(archive, recording_id)
            about.append(f"recording {recording_id} ({recording.start_position} to {recording.stop_position})")
        if not options.yes:
            print_answer(
                options,
                {
                    "recording_id": options.recording_id,
                    "source_recording_id": options.source_recording_id,
                    "dry_run": True,
                },
                f"would move all of {about[0]} to {about[1]}; --yes does it",
            )
            return 0
        count = archive.migrate_segments(options.source_recording_id, options.recording_id)
        start, stop = archive.start_position(options.recording_id), archive.stop_position(options.recording_id)
    print_answer(
        options,
        {"recording_id": options.recording_id, "segments": count, "start_position": start, "stop_position": stop},
        f"moved {count} segment files; recording {options.recording_id} goes from {start} to {stop}",
    )
    return 0

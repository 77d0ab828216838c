"""Selects the recordings of a query. Batch and stream planning share it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection

from aeron_spark.archive.recordings import Recording, is_ledger
from aeron_spark.archive.sources import RecordingSource
from aeron_spark.errors import UsageError
from aeron_spark.spark.access import open_recordings
from aeron_spark.spark.log import LOG, facts
from aeron_spark.spark.planning.offsets import recording_identity
from aeron_spark.spark.planning.options import ReadOptions
from aeron_spark.types import RecordChecksum

__all__ = [
    "CHECKSUMS",
    "check_asked_for",
    "identity_of",
    "is_chosen",
    "log_hidden",
    "open_folder",
    "select_recordings",
    "stays_chosen",
    "task_slots",
]

CHECKSUMS = {
    "auto": RecordChecksum.AUTO,
    "none": RecordChecksum.NONE,
    "crc-32": RecordChecksum.CRC_32,
    "crc-32c": RecordChecksum.CRC_32C,
}


def open_folder(options: ReadOptions) -> RecordingSource:
    """Opens the recordings by the options' access mode; the caller closes them."""
    opened = open_recordings(options.access, CHECKSUMS[options.record_checksum])
    if options.skip_corruption and not opened.has_segment_files:
        opened.close()
        raise UsageError(
            "onCorruption=skip cannot be given for replays: an archive that meets broken bytes ends them as if it had died or "
            "the network were cut; read by access=segments or from an object store, or leave onCorruption out"
        )
    return opened


def identity_of(recording: Recording) -> int:
    """See ``recording_identity``."""
    return recording_identity(
        recording_id=recording.recording_id,
        start_timestamp_ms=recording.start_timestamp_ms,
        initial_term_id=recording.initial_term_id,
        term_length=recording.term_buffer_length,
        segment_length=recording.segment_file_length,
        stream_id=recording.stream_id,
    )


def select_recordings(folder: RecordingSource, options: ReadOptions, *, allow_none: bool) -> list[Recording]:
    """Recordings by id, or by channel, stream and session, or all; in id order. UsageError names what there is instead.

    ``allow_none``: it is no error if they are not there, or not there any more.
    """
    wanted = _wanted_ids(options)
    if wanted is not None and not allow_none:
        return [folder.recording(recording_id) for recording_id in wanted]
    recordings = folder.recordings()
    chosen = [recording for recording in recordings if is_chosen(recording, options)]
    if not chosen and not allow_none:
        if not recordings:
            raise UsageError(f"archive folder {options.path} holds no recording yet")
        known = sorted(
            {f"{one.original_channel} stream {one.stream_id} session {one.session_id}" for one in recordings}
        )
        asked = {
            "channel": options.channel,
            "channelPattern": options.channel_pattern,
            "streamId": options.stream_id,
            "sessionId": options.session_id,
        }
        given = " ".join(f"{name}={value}" for name, value in asked.items() if value is not None)
        raise UsageError(f"no recording of {options.path} matches {given}; there are: {'; '.join(known[:20])}")
    return chosen


def log_hidden(folder: RecordingSource, options: ReadOptions) -> None:
    """Logs how many INVALID recordings a query over all recordings leaves out."""
    if _wanted_ids(options) is None and (hidden := folder.hidden_count()):
        LOG.warning(
            "%s: %d recordings are marked INVALID and left out; aeron-spark archive verify checks them",
            options.path, hidden, extra=facts(path=options.path, recordings=hidden),
        )  # fmt: skip


def _wanted_ids(options: ReadOptions) -> tuple[int, ...] | None:
    if options.segments is not None:
        return tuple(sorted({recording_id for recording_id, _ in options.segments}))
    return options.recording_ids


def is_chosen(recording: Recording, options: ReadOptions) -> bool:
    """By id, or by channel, stream and session."""
    return stays_chosen(recording, options) and _matches(recording, options)


def stays_chosen(recording: Recording, options: ReadOptions) -> bool:
    """By what never changes of a recording: its id and its stream."""
    wanted = _wanted_ids(options)
    if wanted is not None:
        return recording.recording_id in wanted
    return not is_ledger(recording) if options.stream_id is None else recording.stream_id == options.stream_id


def _matches(recording: Recording, options: ReadOptions) -> bool:
    """By what an extension or an update of the channel changes."""
    if options.session_id is not None and recording.session_id != options.session_id:
        return False
    names = (recording.original_channel, recording.stripped_channel)
    if options.channel_pattern is not None:
        return any(re.search(options.channel_pattern, name) for name in names)
    return options.channel is None or options.channel in (*names, *map(_without_session, names))


def _without_session(channel: str) -> str:
    """The channel that was meant, where one session of it was recorded."""
    media, _, query = channel.partition("?")
    params = [param for param in query.split("|") if param and not param.startswith("session-id=")]
    return f"{media}?{'|'.join(params)}" if params else media


def check_asked_for(options: ReadOptions, recording_ids: Collection[int]) -> None:
    """UsageError where a position is given for a recording that is not among those read."""
    for name, positions in (
        ("startingPositions", options.starting_positions),
        ("endingPositions", options.ending_positions),
    ):
        for recording_id, _ in positions.by_recording:
            if recording_id not in recording_ids:
                raise UsageError(
                    f"{name} names recording {recording_id}, which is not among the recordings read: "
                    f"{', '.join(map(str, sorted(recording_ids))) or 'none'}"
                )


def task_slots() -> int:
    """Task slots to plan for: Spark does not pass them to a source, so the planning machine's cores are used."""
    return len(os.sched_getaffinity(0))

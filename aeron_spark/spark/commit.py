"""The end of a batch of the exactly-once sink: makes sure that every range is recorded, then appends the ledger's entry.

Runs on the Spark driver, in a short-lived worker that knows nothing but the tasks' messages. See ``ledger`` for what an entry
means. Every step may be the last one; the comments say what is left then.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, cast

import numpy as np

from aeron_spark.archive.client import Archive
from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.segments import Folder
from aeron_spark.channel import ChannelUri
from aeron_spark.errors import DataLossError, PeerError, UsageError, WaitTimeoutError
from aeron_spark.publication import ExclusivePublication
from aeron_spark.spark.ledger import (
    LEDGER_CHANNEL,
    LEDGER_STREAM_ID,
    Entry,
    PublishedRange,
    encode_entry,
    entry_key,
    has_entry,
    is_ledger,
    joined,
)
from aeron_spark.spark.pool import open_archive
from aeron_spark.spark.publish import Published
from aeron_spark.spark.selection import identity_of
from aeron_spark.spark.write_options import WriteOptions

__all__ = ["commit_batch"]

T = TypeVar("T")
_POLL_SECONDS = 0.002


def commit_batch(messages: Sequence[object], options: WriteOptions, application: str) -> bool:
    """Appends the batch's entry unless it has one; returns whether it was appended.

    Raises where a range is not recorded (any more) or the archive does not answer; the batch then has no entry, or its entry
    stands and is found when the batch is run again.
    """
    published = [cast("Published", message) for message in messages]
    ranges = joined(part for message in published for part in message.ranges)
    if not ranges or options.record_to is None:
        return False
    query, batch = _same("batch", [(message.query, message.batch) for message in published])
    with _locked(options.record_to, options.publish_timeout):
        archive, archive_id = open_archive(options.record_to, options, application)
        with archive:
            if _same("archive", [message.archive_id for message in published if message.ranges]) != archive_id:
                raise UsageError(
                    f"the tasks recorded to another archive than {archive_id}, which owns {options.record_to} on the Spark "
                    f"driver's host: exactly-once needs one archive whose folder all of them see under this path"
                )
            check_recorded(archive, ranges, options)
            entry = Entry(query=query, batch=batch, written_ms=time.time_ns() // 1_000_000, ranges=ranges)
            return append(archive, entry, options.record_to, options)


def _same(what: str, values: Sequence[T]) -> T:
    first, *others = sorted(set(values), key=str)
    if others:
        raise UsageError(f"the tasks of one write name several of one {what}: {first}, {others[0]}")
    return first


@contextmanager
def _locked(folder: str, timeout: float) -> Iterator[None]:
    """Committers of one folder take turns; the lock goes with its holder. It spares waits, and nothing rests on it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                _late(deadline, f"another commit to {folder} has not ended within {timeout} s")
        yield
    finally:
        os.close(handle)


def check_recorded(archive: Archive, ranges: Sequence[PublishedRange], options: WriteOptions) -> None:
    """Every range lies below its recording's recorded position, and on the disk where that is asked."""
    for part in ranges:
        recording = archive.recording(part.recording_id)
        if recording is None or identity_of(recording) != part.identity:
            raise DataLossError(
                f"recording {part.recording_id} of {options.record_to}, which holds rows of this batch, is gone: the batch is "
                f"not committed and has to run again"
            )
        archive.wait_position(part.recording_id, part.end, timeout=options.publish_timeout)
        if part.begin < archive.start_position(part.recording_id):
            raise DataLossError(
                f"recording {part.recording_id} of {options.record_to} was purged before its batch was committed: the "
                f"batch has to run again, and retention to be longer"
            )
        _sync(options, recording, part.begin, part.end)


def append(archive: Archive, entry: Entry, folder: str, options: WriteOptions) -> bool:
    """Becomes the ledger's only writer, looks whether the entry is there, writes it. False: it was there."""
    deadline = time.monotonic() + options.publish_timeout
    ledger = _ledger(archive)
    publication = _extend(archive, ledger, deadline) if ledger is not None else None
    if ledger is None or publication is None:
        ledger, publication = _begin(archive, deadline)
    # The entries before this position are fixed: nobody else can write as long as this publication is open.
    with publication:
        if _has_entry(folder, entry):
            return False
        message = encode_entry(entry)
        publish_entry(publication, message, entry_key(entry.query, entry.batch), options)
        # From here on the entry counts, whatever becomes of this process.
        end = publication.position
        archive.wait_position(ledger.recording_id, end, timeout=options.publish_timeout)
    _sync(options, ledger, end - 1, end)
    return True


def publish_entry(publication: ExclusivePublication, message: bytes, key: int, options: WriteOptions) -> None:
    """The one message of a commit."""
    publication.offer_batch([message], reserved_values=np.array([key]), timeout=options.publish_timeout)


def _ledger(archive: Archive) -> Recording | None:
    found = archive.recordings(channel_fragment="", stream_id=LEDGER_STREAM_ID)
    return next((recording for recording in reversed(found) if is_ledger(recording)), None)


def _begin(archive: Archive, deadline: float) -> tuple[Recording, ExclusivePublication]:
    """A first recording, of this publication alone."""
    publication = archive.client.add_exclusive_publication(LEDGER_CHANNEL, LEDGER_STREAM_ID)
    try:
        archive.start_recording(_of_session(LEDGER_CHANNEL, publication), LEDGER_STREAM_ID, auto_stop=True)
        while (found := _ledger(archive)) is None:
            _late(deadline, "the archive began no ledger in time")
        _wait_active(archive, found, deadline)
    except BaseException:
        publication.close()
        raise
    return found, publication


def _extend(archive: Archive, ledger: Recording, deadline: float) -> ExclusivePublication:
    """A publication that goes on where the ledger ends.

    A committer that was killed holds the ledger until the driver misses it, 10 s by default: it is waited for. Whoever else
    extends it between our look and our request makes the archive refuse, and we look again.
    """
    while True:
        while (position := archive.stop_position(ledger.recording_id)) is None:
            _late(deadline, f"ledger recording {ledger.recording_id} is still written by another commit")
        term = ledger.term_buffer_length
        channel = ChannelUri.parse(LEDGER_CHANNEL).with_params(
            init_term_id=ledger.initial_term_id,
            term_id=ledger.term_id(position),
            term_offset=position % term,
            term_length=term,
            mtu=ledger.mtu_length,
        )
        publication = archive.client.add_exclusive_publication(channel, LEDGER_STREAM_ID)
        try:
            archive.extend_recording(
                ledger.recording_id, _of_session(LEDGER_CHANNEL, publication), LEDGER_STREAM_ID, auto_stop=True
            )
            _wait_active(archive, ledger, deadline)
        except PeerError:
            publication.close()
            _late(deadline, f"ledger recording {ledger.recording_id} cannot be extended")
        except BaseException:
            publication.close()
            raise
        else:
            return publication


def _of_session(channel: str, publication: ExclusivePublication) -> ChannelUri:
    return ChannelUri.parse(channel).with_params(session_id=publication.session_id)


def _wait_active(archive: Archive, ledger: Recording, deadline: float) -> None:
    while archive.recording_position(ledger.recording_id) is None:
        _late(deadline, f"ledger recording {ledger.recording_id} did not begin in time")


def _has_entry(path: str, entry: Entry) -> bool:
    with Folder(path) as folder:
        return has_entry(folder, entry.query, entry.batch)


def _sync(options: WriteOptions, recording: Recording, begin: int, end: int) -> None:
    """Puts a range on the disk: its segment files, and what says that they are there.

    The archive's own sync level may be lower than what this sink was asked for; syncing a file is not bound to who wrote it.
    """
    if options.sync_level == 0 or options.record_to is None:
        return
    sync = os.fdatasync if options.sync_level == 1 else os.fsync
    folder = Path(options.record_to)
    first, last = recording.segment_base(begin), recording.segment_base(end - 1)
    names = [f"{recording.recording_id}-{base}.rec" for base in range(first, last + 1, recording.segment_file_length)]
    for path in [*(folder / name for name in names), folder / "archive.catalog", folder]:
        handle = os.open(path, os.O_RDONLY)
        try:
            sync(handle)
        finally:
            os.close(handle)


def _late(deadline: float, what: str) -> None:
    if time.monotonic() >= deadline:
        raise WaitTimeoutError(what)
    time.sleep(_POLL_SECONDS)

"""The end of a batch of the exactly-once sink: makes sure that every range is recorded, then appends the ledger's entry.

Runs on the Spark driver, in a short-lived worker that knows nothing but the tasks' messages. The archive is one whose folder
is here, or one that is reached over the network only: then the ledger is published to it and read by replay. See ``ledger``
for what an entry means. A crash can follow each step; comments name what it leaves.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar, cast

import numpy as np

from aeron_spark.archive.client import Archive
from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.remote import RemoteArchive, answers_channel
from aeron_spark.archive.segments import Folder
from aeron_spark.channel import ChannelUri
from aeron_spark.errors import AeronError, DataLossError, PeerError, UsageError, WaitTimeoutError
from aeron_spark.publication import ExclusivePublication
from aeron_spark.small_files import sync_path
from aeron_spark.spark.ledger import (
    FRAME_HEADER_BYTES,
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
from aeron_spark.spark.planning.selection import identity_of
from aeron_spark.spark.writing.options import WriteOptions
from aeron_spark.spark.writing.publications import open_archive, source_of
from aeron_spark.spark.writing.publish import Published
from aeron_spark.types import SourceLocation

__all__ = ["commit_batch"]

T = TypeVar("T")
_POLL_SECONDS = 0.002
#: Parameters of the rows' channel that address the archive.
_ARCHIVE_ADDRESS = ("endpoint", "interface", "control", "control-mode", "ttl")


def commit_batch(messages: Sequence[object], options: WriteOptions, application: str) -> bool:
    """Appends the batch's entry unless it has one; returns whether it was appended.

    Raises where a range is not recorded (any more) or the archive does not answer; the batch then has no entry, or its entry
    stands and is found when the batch is run again.
    """
    published = [cast("Published", message) for message in messages]
    ranges = joined(part for message in published for part in message.ranges)
    if not ranges or options.archive is None:
        return False
    query, batch = _same("batch", [(message.query, message.batch) for message in published])
    with _locked(options.record_to, options.publish_timeout):
        archive, archive_id = open_archive(options, application)
        with archive:
            # A restarted archive may have another id, so ids are a hint only; facts of recordings distinguish them.
            others = {message.archive_id for message in published if message.ranges} - {archive_id}
            check_recorded(archive, ranges, options, others)
            entry = Entry(query=query, batch=batch, written_ms=time.time_ns() // 1_000_000, ranges=ranges)
            return append(archive, entry, options)


def _same(what: str, values: Sequence[T]) -> T:
    first, *others = sorted(set(values), key=str)
    if others:
        raise UsageError(f"the tasks of one write name several of one {what}: {first}, {others[0]}")
    return first


@contextmanager
def _locked(folder: str | None, timeout: float) -> Iterator[None]:
    """Committers of one folder take turns; the lock goes with its holder. It spares waits, and nothing rests on it."""
    if folder is None:
        yield
        return
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


def check_recorded(
    archive: Archive, ranges: Sequence[PublishedRange], options: WriteOptions, others: Collection[int | None] = ()
) -> None:
    """Every range lies below its recording's recorded position, and on the disk where that is asked.

    ``others`` are ids of archives that tasks knew and that this one has not.
    """
    for part in ranges:
        recording = archive.recording(part.recording_id)
        if recording is None or identity_of(recording) != part.identity:
            if others:
                raise UsageError(
                    f"tasks recorded to another archive than {options.archive} is to the Spark driver's host: exactly-once "
                    f"needs one archive that all of them find there (recording {part.recording_id} of theirs is not here)"
                )
            raise DataLossError(
                f"recording {part.recording_id} of {options.archive}, which holds rows of this batch, is gone: the batch is "
                f"not committed and has to run again"
            )
        archive.wait_position(part.recording_id, part.end, timeout=options.publish_timeout)
        if part.begin < archive.start_position(part.recording_id):
            raise DataLossError(
                f"recording {part.recording_id} of {options.archive} was purged before its batch was committed: the "
                f"batch has to run again, and retention to be longer"
            )
        _sync(options, recording, part.begin, part.end)


def append(archive: Archive, entry: Entry, options: WriteOptions) -> bool:
    """Becomes the ledger's only writer, checks whether the entry is there, and writes it if not. False: it was there."""
    deadline = time.monotonic() + options.publish_timeout
    ledger = _ledger(archive) or _begin(archive, options, deadline)
    publication = _extend(archive, ledger, options, deadline)
    # The entries before this position are fixed: nobody else can write as long as this publication is open.
    with publication, _stopped(archive, ledger.recording_id, options):
        if _has_entry(archive, entry, options):
            # Who wrote it may have died before it was on the disk.
            _sync(options, ledger, archive.start_position(ledger.recording_id), publication.position)
            return False
        message = encode_entry(entry, ledger.mtu_length - FRAME_HEADER_BYTES)
        publish_entry(publication, message, entry_key(entry.query, entry.batch), options)
        # From here on the entry counts, whatever becomes of this process.
        end = publication.position
        archive.wait_position(ledger.recording_id, end, timeout=options.publish_timeout)
        # A network that was cut for long may have let another committer write up to there.
        if options.record_to is None and not _has_entry(archive, entry, options):
            raise DataLossError(
                f"the entry of batch {entry.batch} did not reach the ledger, recording {ledger.recording_id} of "
                f"{options.archive}: the batch has to run again"
            )
    _sync(options, ledger, end - 1, end)
    return True


def publish_entry(publication: ExclusivePublication, message: bytes, key: int, options: WriteOptions) -> None:
    """The one message of a commit."""
    publication.offer_batch([message], reserved_values=np.array([key]), timeout=options.publish_timeout)


def _ledger(archive: Archive) -> Recording | None:
    """The recording that all committers extend: only an extension has one writer.

    Committers that find none begin one each. Of several it is the last that has entries, else the first.
    """
    found = [one for one in archive.recordings(channel_fragment="", stream_id=LEDGER_STREAM_ID) if is_ledger(one)]
    if len(found) <= 1:
        return found[0] if found else None
    ends = ((one, archive.max_recorded_position(one.recording_id)) for one in found)
    written = [one for one, end in ends if end > archive.start_position(one.recording_id)]
    return written[-1] if written else found[0]


def ledger_channel(options: WriteOptions) -> ChannelUri:
    """The ledger's own over IPC; over the network, to where the rows go, as the archive listens there."""
    ledger = ChannelUri.parse(LEDGER_CHANNEL)
    if source_of(options, options.channel) == SourceLocation.LOCAL:
        return ledger
    rows = ChannelUri.parse(options.channel)
    address = {name: value for name, value in rows.params.items() if name in _ARCHIVE_ADDRESS}
    return ChannelUri(media="udp", params={**address, **ledger.params})


@contextmanager
def _stopped(archive: Archive, recording_id: int, options: WriteOptions) -> Iterator[None]:
    """Over IPC the ledger's recording ends with its publication; over the network that takes a while, so this requests it."""
    try:
        yield
    finally:
        if options.record_to is None:
            # If the request fails, the next committer waits until the archive misses this one.
            with suppress(AeronError):
                archive.stop_recording_by_identity(recording_id)


def _begin(archive: Archive, options: WriteOptions, deadline: float) -> Recording:
    """Begins a recording without entries, and returns the one to extend."""
    channel = ledger_channel(options)
    with archive.client.add_exclusive_publication(channel, LEDGER_STREAM_ID) as publication:
        archive.start_recording(
            _of_session(channel, publication),
            LEDGER_STREAM_ID,
            source=source_of(options, options.channel),
            auto_stop=True,
        )
        left = max(deadline - time.monotonic(), 0.0)
        begun = archive.wait_recording("", LEDGER_STREAM_ID, publication.session_id, timeout=left)
        with _stopped(archive, begun, options):
            pass
    found = _ledger(archive)
    assert found is not None  # noqa: S101 - it is the one begun, or another
    return found


def _extend(archive: Archive, ledger: Recording, options: WriteOptions, deadline: float) -> ExclusivePublication:
    """A publication that goes on where the ledger ends.

    A committer that was killed holds the ledger until the driver misses it, 10 s by default: it is waited for. Whoever else
    extends it between our check and our request makes the archive refuse, and we check again.
    """
    while True:
        while (position := archive.stop_position(ledger.recording_id)) is None:
            _late(deadline, f"ledger recording {ledger.recording_id} is still written by another commit")
        term = ledger.term_buffer_length
        channel = ledger_channel(options).with_params(
            init_term_id=ledger.initial_term_id,
            term_id=ledger.term_id(position),
            term_offset=position % term,
            term_length=term,
            mtu=ledger.mtu_length,
        )
        publication = archive.client.add_exclusive_publication(channel, LEDGER_STREAM_ID)
        recorded = _of_session(ledger_channel(options), publication)
        try:
            archive.extend_recording(
                ledger.recording_id,
                recorded,
                LEDGER_STREAM_ID,
                source=source_of(options, options.channel),
                auto_stop=True,
            )
            if _is_recorded(archive, ledger, publication, deadline):
                return publication
            with suppress(AeronError):
                archive.stop_recording(recorded, LEDGER_STREAM_ID)
            publication.close()
        except PeerError:
            publication.close()
            _late(deadline, f"ledger recording {ledger.recording_id} cannot be extended")
        except BaseException:
            publication.close()
            raise


def _of_session(channel: ChannelUri, publication: ExclusivePublication) -> ChannelUri:
    return channel.with_params(session_id=publication.session_id)


def _is_recorded(archive: Archive, ledger: Recording, publication: ExclusivePublication, deadline: float) -> bool:
    """Waits until the recording goes on. False: with another committer's publication, whose request came at the same time."""
    while archive.recording_position(ledger.recording_id) is None:
        _late(deadline, f"ledger recording {ledger.recording_id} did not begin in time")
    now = archive.recording(ledger.recording_id)
    return now is not None and now.session_id == publication.session_id


def _has_entry(archive: Archive, entry: Entry, options: WriteOptions) -> bool:
    if options.record_to is not None:
        with Folder(options.record_to) as folder:
            return has_entry(folder, folder.recordings(), entry.query, entry.batch)
    assert options.control_channel is not None  # noqa: S101 - commit_batch() has seen that there is an archive
    found = archive.recordings(channel_fragment="", stream_id=LEDGER_STREAM_ID)
    with RemoteArchive(archive, answers_channel(options.control_channel)) as remote:
        return has_entry(remote, found, entry.query, entry.batch)


def _sync(options: WriteOptions, recording: Recording, begin: int, end: int) -> None:
    """Puts a range on the disk: its segment files, and the directory and catalog entries that refer to them.

    The archive's own sync level may be lower than what this sink was asked for; syncing a file is not bound to who wrote it.
    """
    if options.sync_level == 0 or options.record_to is None or begin == end:
        return
    folder = Path(options.record_to)
    first, last = recording.segment_base(begin), recording.segment_base(end - 1)
    names = [f"{recording.recording_id}-{base}.rec" for base in range(first, last + 1, recording.segment_file_length)]
    for path in [*(folder / name for name in names), folder / "archive.catalog", folder]:
        sync_path(path, is_data_only=options.sync_level == 1)


def _late(deadline: float, what: str) -> None:
    if time.monotonic() >= deadline:
        raise WaitTimeoutError(what)
    time.sleep(_POLL_SECONDS)

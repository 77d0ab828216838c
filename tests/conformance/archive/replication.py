"""Replications: requesting one, its events, and comparing two archives' bytes.

replication = replicate(session, source, recording_id)   # the replication's id: what is told comes on it
events = await_end(session, replication, stops=True)     # all of it, in order
same_bytes(source, recording_id, archive, events[0].recordingId, position)
"""

from __future__ import annotations

import struct
from typing import Any

from tests.conformance.archive import folder
from tests.conformance.archive.archive import CONTROL_STREAM, Archive
from tests.conformance.archive.codec import ERROR, REPLICATE_END, STOP, Message
from tests.conformance.archive.control import Session


def replicate(session: Session, source: Archive, recording_id: int, **fields: Any) -> int:
    """Ask for a recording of another archive, over its network control channel; the replication's id."""
    request = {
        "srcRecordingId": recording_id,
        "srcControlStreamId": CONTROL_STREAM,
        "srcControlChannel": source.control_channel,
        **fields,
    }
    return session.ok("ReplicateRequest2", **request)


def await_end(session: Session, replication: int, *, stops: bool = False) -> list[Message]:
    """All events of a replication up to its end; `stops`: and to the STOP of its recording.

    A destination that an earlier `expect` took out of the inbox is not in it.
    """
    events: list[Message] = []
    wanted = {REPLICATE_END, STOP} if stops else {REPLICATE_END}
    while wanted:
        event = session.next_of(replication, timeout=30)
        events.append(event)
        assert not stops or event.name != "ControlResponse" or event.code != ERROR or STOP not in wanted, event
        if event.name == "RecordingSignalEvent":
            wanted.discard(event.signal)
    return events


def same_bytes(source: Archive, original: int, archive: Archive, copy: int, stop: int) -> None:
    """Every byte of a recording's segment files, from its start to `stop`, is in the copy's as well."""
    assert _bytes(archive, copy, stop) == _bytes(source, original, stop)


def common_end(source: Archive, original: int, archive: Archive, copy: int, stop: int) -> int:
    """Position up to which a copy of `stop` bytes equals the recording, byte for byte."""
    wanted, found = _bytes(source, original, stop), _bytes(archive, copy, stop)
    position = 0
    while position < stop:
        (length,) = struct.unpack_from("<i", wanted, position)
        end = position + folder.aligned(length)
        if length <= 0 or end > stop or wanted[position:end] != found[position:end]:
            break
        position = end
    return position


def _bytes(archive: Archive, recording_id: int, stop: int) -> bytes:
    record = archive.catalog().of(recording_id)
    first = base = folder.segment_base(record, record.start_position)
    content = b""
    while base < stop:
        content += folder.segment_path(archive.archive_dir, recording_id, base).read_bytes()
        base += record.segment_length
    return content[record.start_position - first : stop - first]

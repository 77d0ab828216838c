"""Recordings that a test writes: messages in, an archive's folder and positions out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from aeron_spark.archive.segments import Folder
from aeron_spark.channel import ChannelUri
from aeron_spark.errors import UsageError
from aeron_spark.names import nearest
from aeron_spark.sbe.encoder import Encoder
from aeron_spark.sbe.registry import Source
from aeron_spark.testing.servers import Servers
from aeron_spark.testing.waiting import wait_until
from aeron_spark.types import Position, RecordingId, SessionId, StreamId

# Texts or bytes; rows of an SBE message; or Arrow columns: of that message, or `value` and maybe `reserved_value`.
Messages: TypeAlias = (
    Sequence[str]
    | Sequence[bytes]
    | Sequence[Mapping[str, Any]]
    | pa.Array
    | pa.ChunkedArray
    | pa.RecordBatch
    | pa.Table
)
TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A stopped recording. `positions` are where its messages begin, `end_position` where it ends: bytes of the stream."""

    recording_id: RecordingId
    stream_id: StreamId
    session_id: SessionId
    positions: tuple[Position, ...]
    end_position: Position


class RecordedFolder:
    """The folder of an archive, filled by `write`. `str` and `os.fspath` give its path, which goes when `servers` close.

    Thread rule: one thread at a time.
    """

    def __init__(self, servers: Servers) -> None:
        self.servers = servers

    @property
    def path(self) -> Path:
        """The archive's folder."""
        return self.servers.archive_dir

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def write(
        self,
        messages: Messages,
        *,
        stream_id: int = 1001,
        session_id: int | None = None,
        channel: str | ChannelUri = "aeron:ipc?term-length=1m",
        reserved_values: Sequence[int] | None = None,
        schema: Source | None = None,
        message: str | None = None,
        framing: str = "none",
    ) -> Written:
        """Publish messages, in order, as a recording of their own; it is stopped when this returns.

        `messages`: texts (UTF-8), bytes, an Arrow array of either, or an Arrow table with a column `value` and perhaps
        `reserved_value`. With an SBE `schema` and the name of its `message`: dicts, or an Arrow table of its fields, see
        `aeron_spark.sbe.Encoder`. `session_id` is the driver's choice unless it is given. A message is at most an eighth
        of the term length long.

        UsageError: messages that are none of these, or too long; WaitTimeoutError: driver or archive do not answer.
        """
        if (schema is None) != (message is None):
            raise UsageError(
                "give schema and message together, as in write(rows, schema='prices.xml', message='Quote')"
            )
        if schema is not None and message is not None:
            encoder = Encoder(schema, message, framing=framing)
            values: Any = encoder.encode(_rows(messages, encoder))
        else:
            values, reserved_values = _values(messages, reserved_values)
        uri = ChannelUri.parse(str(channel))
        if session_id is not None:
            uri = uri.with_params(session_id=session_id)
        return self._record(str(uri), stream_id, values, reserved_values)

    def _record(self, channel: str, stream_id: int, values: Any, reserved_values: Any) -> Written:
        archive = self.servers.archive
        with archive.add_recorded_exclusive_publication(channel, stream_id) as publication:
            publication.wait_connected(TIMEOUT_S)
            session_id = publication.session_id
            recording_id = archive.wait_recording("", stream_id, session_id, timeout=TIMEOUT_S)
            end = publication.offer_batch(values, reserved_values=reserved_values, timeout=TIMEOUT_S)
            archive.wait_position(recording_id, end, timeout=TIMEOUT_S)
        wait_until(
            lambda: archive.stop_position(recording_id) is not None, TIMEOUT_S, f"recording {recording_id} to stop"
        )
        with Folder(self.path) as folder:
            table = folder.read(recording_id, columns=["position"]).read_all()
        return Written(
            recording_id=recording_id,
            stream_id=StreamId(stream_id),
            session_id=session_id,
            positions=tuple(table["position"].to_pylist()),
            end_position=end,
        )

    def __repr__(self) -> str:
        return f"<RecordedFolder {self.path}>"


def _values(messages: Messages, reserved: Any) -> tuple[Any, Any]:
    """Messages as an Arrow array, and values of their reserved fields."""
    if isinstance(messages, (pa.Table, pa.RecordBatch)):
        names = messages.schema.names
        unknown = [name for name in names if name not in ("value", "reserved_value")]
        if unknown or "value" not in names:
            raise UsageError(
                f"a table of messages has the columns value and reserved_value, this one has {', '.join(names)}; "
                "select those, or give schema and message for fields of an SBE message"
            )
        if "reserved_value" in names and reserved is None:
            reserved = messages.column("reserved_value")
        return messages.column("value"), reserved
    if isinstance(messages, (pa.Array, pa.ChunkedArray)):
        return messages, reserved
    if isinstance(messages, (str, bytes)):
        raise UsageError("one message was given where a sequence of messages belongs: put it into a list")
    found = list(messages)
    wrong = next((one for one in found if not isinstance(one, (str, bytes, bytearray, memoryview))), None)
    if wrong is not None:
        raise UsageError(
            f"a message is text or bytes, not {type(wrong).__name__}: give schema and message to encode rows by SBE, "
            "or encode them, as by json.dumps"
        )
    return [one.encode() if isinstance(one, str) else one for one in found], reserved


def _rows(messages: Any, encoder: Encoder) -> pa.RecordBatch:
    """Rows of an SBE message as one batch, in the types of its fields."""
    if isinstance(messages, pa.RecordBatch):
        return messages
    if isinstance(messages, pa.Table):
        return pa.RecordBatch.from_pydict({name: messages[name].combine_chunks() for name in messages.schema.names})
    rows, message, fields = list(messages), encoder.message.name, encoder.arrow_schema
    if not all(isinstance(row, Mapping) for row in rows):
        raise UsageError(f"with schema and message, messages are dicts of the fields of {message}, or an Arrow table")
    used = dict.fromkeys(name for row in rows for name in row)
    for name in used:
        if name not in fields.names:
            known = ", ".join(fields.names)
            raise UsageError(f"{name!r} is no field of {message}, which has {known}{nearest(name, fields.names)}")
    try:
        return pa.RecordBatch.from_pylist(rows, schema=pa.schema([fields.field(name) for name in used]))
    except (pa.ArrowException, TypeError, ValueError) as failure:
        raise UsageError(f"rows do not fit message {message}: {failure}") from None

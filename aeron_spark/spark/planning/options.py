"""Option text to a frozen dataclass, checked before anything is opened; `write_options` has that of the sink.

Option names reach us lower-cased by Spark; errors show them as documented. An option nobody knows is an error that names
the nearest right one, because a silently ignored limit or start position is worse than a failed query.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import cast

from aeron_spark.archive.addresses import store_scheme
from aeron_spark.archive.time_text import TimeSource, parse_time_ns, parse_time_source
from aeron_spark.errors import UsageError
from aeron_spark.names import nearest
from aeron_spark.spark.access import AccessOptions
from aeron_spark.spark.features import ADMISSION_CONTROL, FILTER_PUSHDOWN
from aeron_spark.spark.planning import kafka_options
from aeron_spark.spark.planning.kafka_options import kafka_habit
from aeron_spark.spark.planning.sbe_options import SbeOptions, is_schema_text

__all__ = ["ReadOptions", "local_folder", "parse_bytes", "parse_duration_seconds"]

# A task holds a few batches at a time; Spark wants at most 2 GiB in a column.
MAX_BATCH_ROWS = 1 << 20
MAX_BATCH_BYTES = 1 << 30

EARLIEST = "earliest"
LATEST = "latest"
READ_UNCOMMITTED, READ_COMMITTED = "read_uncommitted", "read_committed"
POSITION, TIME = "position", "time"
ENGINES = AUTO, PYTHON, JVM = "auto", "python", "jvm"

# Spark adds these of its own accord, or users set them for Spark.
_SPARKS_OWN = frozenset({"checkpointlocation", "queryname", "paths", "__paths__"})

_SIZE_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}
_TIMES = {"": "1", "s": "1", "ms": "1e-3", "us": "1e-6", "ns": "1e-9", "m": "60", "min": "60", "h": "3600"}
_TIME_UNITS = {unit: Decimal(seconds) for unit, seconds in _TIMES.items()}
#: More, in nanoseconds, approaches the limits of 64 bits and of the system's own waits.
_MAX_SECONDS = 1 << 32
_CHECKSUMS = ("auto", "none", "crc-32", "crc-32c")
_SEGMENT = re.compile(r"(\d{1,19})-(\d{1,19})\.rec", re.ASCII)
_STREAMING_ONLY = ("maxBytesPerTrigger", "maxMessagesPerTrigger", "minBytesPerTrigger", "maxTriggerDelay")


def _option(documented: str) -> str:
    return documented.lower()


def _parse_unit(name: str, text: str, units: Mapping[str, int | Decimal], example: str) -> Decimal:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    if match is None or match.group(2).lower() not in units:
        raise UsageError(f"option {name}={text!r} is no number with a unit, write it like {example}")
    return Decimal(match.group(1)) * units[match.group(2).lower()]


def parse_bytes(name: str, text: str, most: int = 1 << 62) -> int:
    """Bytes from ``512``, ``64k``, ``16m`` or ``1g``; 1 to ``most``."""
    value = int(_parse_unit(name, text, _SIZE_UNITS, "64m"))
    if not 1 <= value <= most:
        raise UsageError(f"option {name}={text!r} must be at least 1 byte and at most {most}")
    return value


def local_folder(name: str, text: str) -> str:
    """Absolute path of a folder, given as a path or as Hadoop writes local ones (``file:/data``, ``file:///data``).

    Absolute, because the tasks of a cluster have other working directories than the planning process.
    """
    scheme, separator, rest = text.partition("://")
    if text.startswith("file:"):
        path = text.removeprefix("file:")
        path = "/" + path.lstrip("/") if path.startswith("/") else path
    elif separator and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme) and rest:
        raise UsageError(
            f"option {name}={text!r} must be a folder that every executor sees as a local path, not {scheme}:"
        )
    else:
        path = text
    return str(Path(path).absolute())


def parse_duration_seconds(name: str, text: str, *, may_be_zero: bool = False) -> float:
    """Seconds from ``5``, ``5s`` or ``500ms``; more than 0 unless that may be."""
    value = float(_parse_unit(name, text, _TIME_UNITS, "30s"))
    if value > _MAX_SECONDS or (value == 0 and not may_be_zero):
        least = "at least" if may_be_zero else "more than"
        raise UsageError(f"option {name}={text!r} must be {least} 0 and at most {_MAX_SECONDS} s")
    return value


def _parse_int(name: str, text: str, low: int, high: int) -> int:
    try:
        value = int(text.strip())
    except ValueError:
        raise UsageError(f"option {name}={text!r} is no whole number") from None
    if not low <= value <= high:
        raise UsageError(f"option {name}={text!r} is out of range, {low} to {high} is possible")
    return value


def _parse_bool(name: str, text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise UsageError(f"option {name}={text!r} must be true or false")
    return lowered == "true"


def _parse_ids(name: str, text: str) -> tuple[int, ...]:
    if not all(part.strip() for part in text.split(",")):
        raise UsageError(f"option {name}={text!r} must be ids with commas between, like 0,3")
    ids = tuple(_parse_int(name, part, 0, (1 << 63) - 1) for part in text.split(","))
    if len(set(ids)) != len(ids):
        raise UsageError(f"option {name}={text!r} names a recording twice")
    return tuple(sorted(ids))


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """Where to start or end: one word for all recordings, or a position each (the word then holds for the rest)."""

    word: str
    by_recording: tuple[tuple[int, int | str], ...] = ()

    def of(self, recording_id: int) -> int | str:
        """The position asked for a recording, or ``earliest`` / ``latest``."""
        for known_id, position in self.by_recording:
            if known_id == recording_id:
                return position
        return self.word


class _Pairs(list[tuple[str, object]]):
    """A JSON object with all its names, duplicates included."""


def _parse_positions(name: str, text: str, default_word: str) -> Positions:
    stripped = text.strip()
    if stripped.lower() in (EARLIEST, LATEST):
        return Positions(word=stripped.lower())
    example = '{"0": 4096}'
    try:
        parsed = json.loads(stripped, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        raise UsageError(f"option {name}={text[:200]!r} must be earliest, latest or JSON like {example}") from None
    if not isinstance(parsed, _Pairs) or not parsed:
        raise UsageError(f"option {name}={text!r} must be a JSON object of recording id to position, like {example}")
    by_recording: list[tuple[int, int | str]] = []
    for key, value in parsed:
        if re.fullmatch(r"\s*\d{1,19}\s*", key, re.ASCII) is None:
            raise UsageError(f"option {name}: {key!r} is no recording id, write it like {example}")
        recording_id = _parse_int(name, key, 0, (1 << 63) - 1)
        is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        if is_number or value in (EARLIEST, LATEST):
            by_recording.append((recording_id, cast("int | str", value)))
        else:
            raise UsageError(
                f"option {name}: position {value!r} of recording {key} must be earliest, latest or a number from 0"
            )
    if len(dict(by_recording)) < len(by_recording):
        raise UsageError(f"option {name}={text!r} names a recording twice")
    return Positions(word=default_word, by_recording=tuple(sorted(by_recording)))


class _Given:
    """The options as given, taken one by one, so that what is left over is unknown."""

    def __init__(self, options: Mapping[str, str], documented: Iterable[str], habits: Mapping[str, str]) -> None:
        self._documented = {_option(name): name for name in documented}
        self._values = {key.lower(): value for key, value in options.items()}
        for key in self._values:
            if key not in self._documented and key not in _SPARKS_OWN:
                hint = kafka_habit(key, habits) or nearest(key, self._documented.values())
                known = f". Known options: {', '.join(sorted(self._documented.values()))}"
                raise UsageError(f"unknown option {key!r}{hint or known}")

    def text(self, name: str) -> str | None:
        value = self._values.get(_option(name))
        if value is not None and value.strip() == "":
            raise UsageError(f"option {name} is empty: give a value, or leave the option out")
        return value

    def exclusive(self, *names: str) -> None:
        """At most one of these may be given."""
        both = [name for name in names if self.text(name) is not None]
        if len(both) > 1:
            raise UsageError(f"give {' or '.join(both)}, not both")

    def refuse(self, name: str, why: str) -> None:
        """The option has no meaning here."""
        if self.text(name) is not None:
            raise UsageError(f"option {name} cannot be given: {why}")

    def required(self, name: str, why: str) -> str:
        value = self.text(name)
        if value is None:
            raise UsageError(f"option {name} is missing: {why}")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What to read, from where to where, how much at a time. Positions are bytes of the recorded stream.

    Option names are the field names in camelCase (``load(path)`` sets ``path``). ``segments``: recording id and base position
    of each segment file, where such were given instead of a folder. Times in ns since 1970-01-01 UTC, delays in seconds.
    """

    path: str
    isolation: str
    segments: tuple[tuple[int, int], ...] | None
    aeron_dir: str | None
    access: AccessOptions
    engine: str
    recording_ids: tuple[int, ...] | None
    channel: str | None
    channel_pattern: str | None
    stream_id: int | None
    session_id: int | None
    starting_positions: Positions
    ending_positions: Positions
    starting_timestamp: int | None
    ending_timestamp: int | None
    timestamp_from: TimeSource
    columns: tuple[str, ...] | None
    payload: str
    sbe: SbeOptions | None
    tail: int | None
    record_checksum: str
    fail_on_data_loss: bool
    on_corruption: str
    filter_pushdown: bool
    partition_by: str
    max_bytes_per_trigger: int | None
    max_messages_per_trigger: int | None
    min_bytes_per_trigger: int | None
    max_trigger_delay: float
    min_partitions: int | None
    max_bytes_per_partition: int | None
    rows_per_batch: int
    #: None: as the engine that reads has it.
    bytes_per_batch: int | None

    NAMES = (
        "path",
        "isolation",
        "aeronDir",
        *AccessOptions.NAMES,
        "engine",
        "recordingIds",
        "channel",
        "channelPattern",
        "streamId",
        "sessionId",
        "startingPositions",
        "endingPositions",
        "startingTimestamp",
        "endingTimestamp",
        "timestampFrom",
        "columns",
        "payload",
        *SbeOptions.NAMES,
        "tail",
        "recordChecksum",
        "failOnDataLoss",
        "onCorruption",
        "filterPushdown",
        "maxBytesPerTrigger",
        "maxMessagesPerTrigger",
        "minBytesPerTrigger",
        "maxTriggerDelay",
        "partitionBy",
        "minPartitions",
        "maxBytesPerPartition",
        "rowsPerBatch",
        "bytesPerBatch",
    )

    @property
    def skip_corruption(self) -> bool:
        """Broken bytes are skipped."""
        return self.on_corruption == "skip"

    @classmethod
    def parse(cls, options: Mapping[str, str], *, streaming: bool | None) -> ReadOptions:
        """Checks everything that can be checked without opening the archive; raises UsageError.

        ``streaming`` is None where it is not known yet whether a batch or a stream is to be read.
        """
        given = _Given(options, cls.NAMES, kafka_options.READING)
        path, segments = _parse_path(given)
        aeron_dir = _optional_folder(given, "aeronDir")
        access = AccessOptions.parse(given, path=path, aeron_dir=aeron_dir)
        _check_together(given, is_of_files=segments is not None, streaming=streaming)
        filter_pushdown = _parse_bool("filterPushdown", given.text("filterPushdown") or "false")
        _check_offered(given, filter_pushdown=filter_pushdown, streaming=streaming)
        time_source = parse_time_source(given.text("timestampFrom") or "index", "option timestampFrom")
        schemas = _sbe_schemas(given)
        if time_source.kind == "sbe" and not schemas:
            raise UsageError(
                f"timestampFrom=sbe:{time_source.field} needs sbeSchema, the path or text of the schema's XML"
            )
        payload = _choice(given, "payload", ("binary", "string", "arrow", "sbe"))
        if payload == "sbe" and not schemas:
            raise UsageError("payload=sbe needs sbeSchema, the path or text of the schema's XML")
        sbe = SbeOptions.parse(given, schemas, is_payload=payload == "sbe", is_time_source=time_source.kind == "sbe")
        ids, pattern = given.text("recordingIds"), given.text("channelPattern")
        start, ending = given.text("startingPositions"), given.text("endingPositions")
        isolation = _choice(given, "isolation", (READ_UNCOMMITTED, READ_COMMITTED))
        ending_positions = _parse_positions("endingPositions", ending or LATEST, LATEST)
        if EARLIEST in (ending_positions.word, *(position for _, position in ending_positions.by_recording)):
            raise UsageError("endingPositions=earliest would read nothing, choose latest or positions")
        least, most = _optional_bytes(given, "minBytesPerTrigger"), _optional_bytes(given, "maxBytesPerTrigger")
        if least is not None and most is not None and least > most:
            raise UsageError(f"minBytesPerTrigger {least} is more than maxBytesPerTrigger {most}")
        delay = given.text("maxTriggerDelay")
        if delay is not None and least is None:
            raise UsageError("maxTriggerDelay is how long minBytesPerTrigger may wait: give both, or neither")
        return cls(
            path=path or access.control_channel or "",
            segments=segments,
            isolation=isolation,
            aeron_dir=aeron_dir,
            access=access,
            engine=_choice(given, "engine", ENGINES),
            recording_ids=None if ids is None else _parse_ids("recordingIds", ids),
            channel=given.text("channel"),
            channel_pattern=None if pattern is None else _parse_pattern("channelPattern", pattern),
            stream_id=_optional_int(given, "streamId", -(1 << 31), (1 << 31) - 1),
            session_id=_optional_int(given, "sessionId", -(1 << 31), (1 << 31) - 1),
            starting_positions=_parse_positions(
                "startingPositions", start or (LATEST if streaming else EARLIEST), EARLIEST
            ),
            ending_positions=ending_positions,
            starting_timestamp=_optional_time(given, "startingTimestamp"),
            ending_timestamp=_optional_time(given, "endingTimestamp"),
            timestamp_from=time_source,
            columns=_parse_columns(given),
            payload=payload,
            sbe=sbe,
            tail=_optional_int(given, "tail", 0, (1 << 63) - 1),
            record_checksum=_choice(given, "recordChecksum", _CHECKSUMS),
            fail_on_data_loss=_parse_bool("failOnDataLoss", given.text("failOnDataLoss") or "true"),
            filter_pushdown=filter_pushdown,
            partition_by=_choice(given, "partitionBy", (POSITION, TIME)),
            on_corruption=_choice(given, "onCorruption", ("fail", "skip", "strict")),
            max_bytes_per_trigger=most,
            max_messages_per_trigger=_optional_int(given, "maxMessagesPerTrigger", 1, (1 << 63) - 1),
            min_bytes_per_trigger=least,
            max_trigger_delay=parse_duration_seconds("maxTriggerDelay", delay or "15m"),
            min_partitions=_optional_int(given, "minPartitions", 1, 1 << 20),
            max_bytes_per_partition=_optional_bytes(given, "maxBytesPerPartition"),
            rows_per_batch=_optional_int(given, "rowsPerBatch", 1, MAX_BATCH_ROWS) or 16_384,
            bytes_per_batch=_optional_bytes(given, "bytesPerBatch", MAX_BATCH_BYTES),
        )


def _check_together(given: _Given, *, is_of_files: bool, streaming: bool | None) -> None:
    """Options that exclude each other, or have no meaning in a batch or a stream."""
    given.exclusive("recordingIds", "channel", "channelPattern")
    given.exclusive("recordingIds", "streamId")
    given.exclusive("recordingIds", "sessionId")
    given.exclusive("startingPositions", "startingTimestamp", "tail")
    given.exclusive("endingPositions", "endingTimestamp")
    for name in ("endingPositions", "endingTimestamp"):
        given.exclusive("tail", name)
    if is_of_files:
        for name in ("recordingIds", "channel", "channelPattern", "streamId", "sessionId", "tail"):
            given.refuse(name, "segment files are given, and only these are read: leave it out, or give the folder")
        if streaming:
            raise UsageError("a stream follows a folder, not a list of segment files: give the archive's folder")
    if streaming:
        for name in ("endingPositions", "endingTimestamp"):
            given.refuse(name, "it is for batch reads; stop a stream with trigger(availableNow=True)")
        given.refuse("filterPushdown", "it is for batch reads, Spark pushes no filters into streams")
        given.refuse("partitionBy", "it is for batch reads; a stream has what comes next, not what is earliest")
    if streaming is False:
        for name in _STREAMING_ONLY:
            given.refuse(name, "it is for streaming reads; a batch read takes all from its start to its end")


def _check_offered(given: _Given, *, filter_pushdown: bool, streaming: bool | None) -> None:
    """Options of what the running pyspark does not offer."""
    if filter_pushdown and not FILTER_PUSHDOWN.is_offered:
        given.refuse("filterPushdown", f"{FILTER_PUSHDOWN.lack}. Leave it out, and read less by options")
    if streaming and not ADMISSION_CONTROL.is_offered:
        for name in _STREAMING_ONLY:
            given.refuse(name, f"{ADMISSION_CONTROL.lack}. Leave it out: a micro-batch takes all there is")


def _parse_path(given: _Given) -> tuple[str | None, tuple[tuple[int, int], ...] | None]:
    """The folder, if one is given, or an object store's; and, where segment files are named instead, which."""
    listed, path = given.text("paths"), given.text("path")
    if listed is not None:
        texts = json.loads(listed)
    elif path is None or store_scheme(path, "option path") is not None:
        return path, None
    else:
        texts = [path]
    paths = [Path(local_folder("path", text)) for text in texts]
    if not all(_SEGMENT.fullmatch(path.name) for path in paths):
        if len(paths) > 1:
            raise UsageError(
                "several paths: one read takes one archive folder, or segment files <recording>-<position>.rec of one; "
                "read each folder and union the frames"
            )
        return str(paths[0]), None
    folders = sorted({str(path.parent) for path in paths})
    if len(folders) > 1:
        raise UsageError(f"the segment files lie in several folders ({', '.join(folders)}): read each, then union")
    names = [_SEGMENT.fullmatch(path.name) for path in paths]
    return folders[0], tuple(sorted({(int(name[1]), int(name[2])) for name in names if name is not None}))


def _parse_columns(given: _Given) -> tuple[str, ...] | None:
    text = given.text("columns")
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) != len(names):
        raise UsageError(f"option columns={text!r} must be different names with commas between")
    return names


def _parse_pattern(name: str, text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise UsageError(f"option {name}={text!r} is no regular expression: {error}") from None
    return text


def _sbe_schemas(given: _Given) -> tuple[str, ...]:
    """Paths of schemas; absolute, as tasks have other working directories. Or the text of one."""
    text = given.text("sbeSchema")
    if text is None:
        return ()
    is_text = is_schema_text(text.strip())
    return (text.strip(),) if is_text else tuple(local_folder("sbeSchema", one.strip()) for one in text.split(","))


def _optional_folder(given: _Given, name: str) -> str | None:
    text = given.text(name)
    return None if text is None else local_folder(name, text)


def _optional_bytes(given: _Given, name: str, most: int = 1 << 62) -> int | None:
    text = given.text(name)
    return None if text is None else parse_bytes(name, text, most)


def _optional_int(given: _Given, name: str, low: int, high: int) -> int | None:
    text = given.text(name)
    return None if text is None else _parse_int(name, text, low, high)


def _optional_time(given: _Given, name: str) -> int | None:
    text = given.text(name)
    return None if text is None else parse_time_ns(f"option {name}", text)


def _choice(given: _Given, name: str, choices: tuple[str, ...]) -> str:
    """The first choice is the default."""
    chosen = (given.text(name) or choices[0]).strip().lower()
    if chosen not in choices:
        raise UsageError(
            f"option {name}={chosen!r} is unknown, choose one of {', '.join(choices)}{nearest(chosen, choices)}"
        )
    return chosen

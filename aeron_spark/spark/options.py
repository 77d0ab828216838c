"""Option text to a frozen dataclass, checked before anything is opened; `write_options` has that of the sink.

Option names reach us lower-cased by Spark; errors show them as documented. An option nobody knows is an error that names
the nearest right one, because a silently ignored limit or start position is worse than a failed query.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from aeron_spark.errors import UsageError

__all__ = ["ReadOptions", "local_folder", "parse_bytes", "parse_duration_seconds"]

# A task holds a few batches at a time; Spark wants at most 2 GiB in a column.
MAX_BATCH_ROWS = 1 << 20
MAX_BATCH_BYTES = 1 << 30

EARLIEST = "earliest"
LATEST = "latest"
READ_UNCOMMITTED, READ_COMMITTED = "read_uncommitted", "read_committed"

# Spark adds these of its own accord, or users set them for Spark.
_SPARKS_OWN = frozenset({"checkpointlocation", "queryname", "__paths__"})

_SIZE_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}
_TIME_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "m": 60.0, "min": 60.0}
_CHECKSUMS = ("auto", "none", "crc-32", "crc-32c")


def _option(documented: str) -> str:
    return documented.lower()


def _parse_unit(name: str, text: str, units: Mapping[str, float], example: str) -> float:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
    if match is None or match.group(2).lower() not in units:
        raise UsageError(f"option {name}={text!r} is no number with a unit, write it like {example}")
    return float(match.group(1)) * units[match.group(2).lower()]


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


def parse_duration_seconds(name: str, text: str) -> float:
    """Seconds from ``5``, ``5s`` or ``500ms``; more than 0."""
    value = _parse_unit(name, text, _TIME_UNITS, "30s")
    if value <= 0:
        raise UsageError(f"option {name}={text!r} must be more than 0")
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
    ids = tuple(_parse_int(name, part, 0, (1 << 63) - 1) for part in text.split(","))
    if len(set(ids)) != len(ids):
        raise UsageError(f"option {name}={text!r} names a recording twice")
    return tuple(sorted(ids))


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """Where to start or end: one word for all recordings, or a position each (the word then holds for the rest)."""

    word: str
    by_recording: tuple[tuple[int, int], ...] = ()

    def of(self, recording_id: int) -> int | str:
        """The position asked for a recording, or ``earliest`` / ``latest``."""
        for known_id, position in self.by_recording:
            if known_id == recording_id:
                return position
        return self.word


def _parse_positions(name: str, text: str, default_word: str) -> Positions:
    stripped = text.strip()
    if stripped.lower() in (EARLIEST, LATEST):
        return Positions(word=stripped.lower())
    example = '{"0": 4096}'
    try:
        parsed = json.loads(stripped)
    except ValueError:
        raise UsageError(f"option {name}={text!r} must be earliest, latest or JSON like {example}") from None
    if not isinstance(parsed, dict) or not parsed:
        raise UsageError(f"option {name}={text!r} must be a JSON object of recording id to position, like {example}")
    by_recording = []
    for key, value in parsed.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise UsageError(f"option {name}: position {value!r} of recording {key} must be a whole number from 0 on")
        by_recording.append((_parse_int(name, key, 0, (1 << 63) - 1), value))
    return Positions(word=default_word, by_recording=tuple(sorted(by_recording)))


class _Given:
    """The options as given, taken one by one, so that what is left over is unknown."""

    def __init__(self, options: Mapping[str, str], documented: Iterable[str]) -> None:
        self._documented = {_option(name): name for name in documented}
        self._values = {key.lower(): value for key, value in options.items()}
        for key in self._values:
            if key not in self._documented and key not in _SPARKS_OWN:
                near = difflib.get_close_matches(key, self._documented, n=1, cutoff=0.5)
                hint = f", did you mean {self._documented[near[0]]}?" if near else ""
                known = ", ".join(sorted(self._documented.values()))
                raise UsageError(f"unknown option {key!r}{hint or '.'} Known options: {known}")

    def text(self, name: str) -> str | None:
        value = self._values.get(_option(name))
        if value is not None and value.strip() == "":
            raise UsageError(f"option {name} is empty: give a value, or leave the option out")
        return value

    def required(self, name: str, why: str) -> str:
        value = self.text(name)
        if value is None:
            raise UsageError(f"option {name} is missing: {why}")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What to read, from where to where, how much at a time. Positions are bytes of the recorded stream.

    Option names are the field names in camelCase (``load(path)`` sets ``path``).
    """

    path: str
    isolation: str
    aeron_dir: str | None
    recording_ids: tuple[int, ...] | None
    channel: str | None
    stream_id: int | None
    starting_positions: Positions
    ending_positions: Positions
    record_checksum: str
    max_bytes_per_trigger: int | None
    max_messages_per_trigger: int | None
    min_partitions: int | None
    max_bytes_per_partition: int | None
    rows_per_batch: int
    bytes_per_batch: int

    NAMES = (
        "path",
        "isolation",
        "aeronDir",
        "recordingIds",
        "channel",
        "streamId",
        "startingPositions",
        "endingPositions",
        "recordChecksum",
        "maxBytesPerTrigger",
        "maxMessagesPerTrigger",
        "minPartitions",
        "maxBytesPerPartition",
        "rowsPerBatch",
        "bytesPerBatch",
    )

    @classmethod
    def parse(cls, options: Mapping[str, str], *, streaming: bool | None) -> ReadOptions:
        """Checks everything that can be checked without opening the archive; raises UsageError.

        ``streaming`` is None where it is not known yet whether a batch or a stream is to be read.
        """
        if "paths" in {key.lower() for key in options}:
            raise UsageError("several paths: one read takes one archive folder, read each and union the frames")
        given = _Given(options, cls.NAMES)
        path = given.required("path", "give the archive's folder, as load(path) or option('path', ...)")
        recording_ids = given.text("recordingIds")
        channel = given.text("channel")
        stream_id = given.text("streamId")
        if recording_ids is not None and (channel is not None or stream_id is not None):
            raise UsageError("give recordingIds, or channel and streamId, not both")
        ending = given.text("endingPositions")
        if streaming and ending is not None:
            raise UsageError("endingPositions is for batch reads; stop a stream with trigger(availableNow=True)")
        if streaming is False:
            for name in ("maxBytesPerTrigger", "maxMessagesPerTrigger"):
                if given.text(name) is not None:
                    raise UsageError(
                        f"{name} is for streaming reads; a batch read takes [startingPositions, endingPositions)"
                    )
        checksum = (given.text("recordChecksum") or "auto").strip().lower()
        if checksum not in _CHECKSUMS:
            raise UsageError(f"option recordChecksum={checksum!r} is unknown, choose one of {', '.join(_CHECKSUMS)}")
        isolation = (given.text("isolation") or READ_UNCOMMITTED).strip().lower()
        if isolation not in (READ_UNCOMMITTED, READ_COMMITTED):
            raise UsageError(
                f"option isolation={isolation!r} is unknown, choose {READ_UNCOMMITTED} or {READ_COMMITTED}"
            )
        max_messages = given.text("maxMessagesPerTrigger")
        ending_positions = _parse_positions("endingPositions", ending or LATEST, LATEST)
        if ending_positions.word == EARLIEST:
            raise UsageError("endingPositions=earliest would read nothing, choose latest or positions")
        return cls(
            path=local_folder("path", path),
            isolation=isolation,
            aeron_dir=_optional_folder(given, "aeronDir"),
            recording_ids=None if recording_ids is None else _parse_ids("recordingIds", recording_ids),
            channel=channel,
            stream_id=None if stream_id is None else _parse_int("streamId", stream_id, -(1 << 31), (1 << 31) - 1),
            starting_positions=_parse_positions(
                "startingPositions", given.text("startingPositions") or (LATEST if streaming else EARLIEST), EARLIEST
            ),
            ending_positions=ending_positions,
            record_checksum=checksum,
            max_bytes_per_trigger=_optional_bytes(given, "maxBytesPerTrigger"),
            max_messages_per_trigger=None
            if max_messages is None
            else _parse_int("maxMessagesPerTrigger", max_messages, 1, (1 << 63) - 1),
            min_partitions=_optional_int(given, "minPartitions", 1, 1 << 20),
            max_bytes_per_partition=_optional_bytes(given, "maxBytesPerPartition"),
            rows_per_batch=_optional_int(given, "rowsPerBatch", 1, MAX_BATCH_ROWS) or 16_384,
            bytes_per_batch=_optional_bytes(given, "bytesPerBatch", MAX_BATCH_BYTES) or 8 << 20,
        )


def _optional_folder(given: _Given, name: str) -> str | None:
    text = given.text(name)
    return None if text is None else local_folder(name, text)


def _optional_bytes(given: _Given, name: str, most: int = 1 << 62) -> int | None:
    text = given.text(name)
    return None if text is None else parse_bytes(name, text, most)


def _optional_int(given: _Given, name: str, low: int, high: int) -> int | None:
    text = given.text(name)
    return None if text is None else _parse_int(name, text, low, high)

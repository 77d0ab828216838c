"""`aeron-spark archive`: run an archive, or look at the recordings of a folder."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib
import time
from collections.abc import Iterator
from typing import Any, NoReturn

from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.segments import Extent, Folder
from aeron_spark.archive.tools import Catalog, CatalogEntry, MarkFile, RecordingState, state_name, version_text
from aeron_spark.cli.common import add_dir, add_json, add_verb, int64, print_json, print_table, utc_time, with_times
from aeron_spark.cli.driver import add_settings, become
from aeron_spark.cli.progress import duration, size
from aeron_spark.errors import AeronError, DataLossError, PeerError

EXAMPLES = """\
  aeron-spark archive run --archive-dir recordings
  aeron-spark archive list recordings
  aeron-spark archive describe recordings 3 --json
  aeron-spark archive verify recordings --all-segments"""
DESCRIBE_EXAMPLES = """\
  aeron-spark archive describe recordings
  aeron-spark archive describe recordings --all
  aeron-spark archive describe recordings 3 --json"""

OWN = ("run", "list", "describe", "describe-all")
#: Modules of `aeron_spark.cli` with the other verbs, in the order of the help.
MODULES = {
    "archive_tools": (
        *("verify", "checksum", "compact", "delete-orphans", "delete-orphaned-segments", "migrate"),
        *("mark-invalid", "mark-valid", "count-entries", "pid", "errors", "dump"),
    ),
    "archive_export": ("export",),
    "archive_import": ("import",),
    "archive_control": (
        *("record", "start", "stop", "stop-replay", "truncate", "purge", "purge-segments", "detach"),
        *("delete-detached", "attach"),
    ),
    "archive_replay": ("replay",),
    "archive_copy": ("replicate", "update-channel", "migrate-segments"),
    "archive_retain": ("retain",),
    "archive_backup": ("backup", "restore"),
    "archive_user": ("user",),
    "archive_time": ("time", "index"),
}


def add_to(verbs: Any, used: str = "") -> None:
    """Add the verb and its own verbs; of the modules only that of `used`, where it is one of these verbs."""
    verb = add_verb(verbs, "archive", run, about="run an archive, or look at its recordings", examples=EXAMPLES)
    parts = verb.add_subparsers(title="verbs", dest="part", required=True, metavar="VERB")

    start = add_verb(
        parts, "run", run, about="run an archive with its media driver until Ctrl-C", examples=EXAMPLES.splitlines()[0]
    )
    start.add_argument("--archive-dir", metavar="DIR", required=True, help="folder of the recordings, made if absent")
    start.add_argument("--beside-driver", action="store_true", help="use the running driver of --dir, start none")
    add_dir(start)
    add_settings(start)

    listing = add_verb(
        parts,
        "list",
        list_recordings,
        about="recordings of a folder, also of a live archive",
        examples=EXAMPLES.splitlines()[1],
    )
    describing = add_verb(
        parts,
        "describe",
        describe,
        about="everything known about a folder, or about one recording in any state",
        examples=DESCRIBE_EXAMPLES,
    )
    all_of_it = add_verb(
        parts,
        "describe-all",
        describe,
        about="as describe --all: recordings in any state",
        examples="  aeron-spark archive describe-all recordings",
    )
    for part in (listing, describing, all_of_it):
        part.add_argument("path", metavar="PATH", help="the archive's folder")
        add_dir(part)
        add_json(part)
        part.set_defaults(recording_id=None, all=part is all_of_it)
    describing.add_argument("recording_id", metavar="RECORDING", type=int64, nargs="?", help="recording id")
    describing.add_argument("--all", action="store_true", help="recordings that are deleted or invalid, too")
    named = [module for module, names in MODULES.items() if used in names]
    for module in named or (() if used in OWN else MODULES):
        importlib.import_module(f"aeron_spark.cli.{module}").add_to(parts)


def run(options: argparse.Namespace) -> NoReturn:
    """Become the native archive."""
    become(
        "aeron-spark-archive",
        options,
        {
            "aeron.dir": options.dir,
            "aeron.archive.dir": options.archive_dir,
            "aeron.spark.archive.exit.when.idle": options.exit_when_idle,
        },
        arguments=["--beside-driver"] if options.beside_driver else [],
    )


def list_recordings(options: argparse.Namespace) -> int:
    """Print the recordings of a folder."""
    with Folder(options.path, aeron_dir=options.dir) as folder:
        known = [(recording, _extent(folder, recording)) for recording in folder.recordings()]
        if options.json:
            for recording, extent in known:
                print_json({**_as_json(recording, extent), **_pace(recording, extent)})
        else:
            print_table(_LIST_HEADERS, (_row(*pair) for pair in known))
    return 0


def describe(options: argparse.Namespace) -> int:
    """Print all about a folder, or all fields of one recording."""
    with Catalog(options.path) as catalog:
        entries = catalog.entries(options.recording_id)
        if options.recording_id is not None:
            return _describe_one(options, entries)
        _describe_folder(options, catalog)
        known = [entry for entry in entries if options.all or entry.state == RecordingState.VALID]
        if options.json:
            for entry in known:
                print_json({"kind": "recording", **_entry_fields(entry)})
        else:
            print_table(_ENTRY_HEADERS, (_entry_row(entry) for entry in known))
        damage = catalog.info().damage
    if damage and not options.json:
        print(damage)
    return 1 if damage else 0


def _describe_one(options: argparse.Namespace, entries: list[CatalogEntry]) -> int:
    for entry in entries:
        with contextlib.ExitStack() as stack:
            folder = None
            if entry.state == RecordingState.VALID:
                folder = stack.enter_context(Folder(options.path, aeron_dir=options.dir))
            extent = None if folder is None else _extent(folder, entry.recording)
            if options.json:
                print_json({**_entry_fields(entry), **_as_json(entry.recording, extent)})
            else:
                print_table(("field", "value"), _fields(folder, entry, extent))
    return 0


def _describe_folder(options: argparse.Namespace, catalog: Catalog) -> None:
    mark, info = catalog.mark(), catalog.info()
    if options.json:
        if mark is not None:
            print_json({"kind": "mark", **dataclasses.asdict(mark)})
        print_json({"kind": "catalog", **dataclasses.asdict(info)})
        return
    if mark is None:
        print("mark file: none")
    else:
        print_table(("mark file", str(mark.path)), _mark_fields(mark))
    print(
        f"Catalog capacity in bytes: {info.capacity} ({info.used} used), version {version_text(info.version)}, "
        f"alignment {info.alignment}, next recording id {info.next_recording_id}"
    )


def _mark_fields(mark: MarkFile) -> Iterator[tuple[str, str]]:
    ended = mark.activity_timestamp_ms is None
    yield "version", version_text(mark.version)
    yield "started", utc_time(mark.start_timestamp_ms)
    yield (
        "active",
        "ended in order"
        if ended
        else f"{utc_time(mark.activity_timestamp_ms or 0)}, {'live' if mark.is_live else 'died'}",
    )
    for name in (
        "pid",
        "archive_id",
        "control_stream_id",
        "local_control_stream_id",
        "events_stream_id",
        "header_length",
        "error_buffer_length",
        "control_channel",
        "local_control_channel",
        "events_channel",
        "aeron_dir",
    ):
        yield name, str(getattr(mark, name))


_ENTRY_HEADERS = (
    *("recording", "state", "stream", "session", "start", "stop", "started", "stopped"),
    *("segment", "term", "mtu", "initial term", "source", "channel"),
)


def _entry_row(entry: CatalogEntry) -> tuple[object, ...]:
    recording = entry.recording
    stopped = recording.stop_timestamp_ms
    return (
        recording.recording_id,
        state_name(entry.state),
        str(recording.stream_id),
        str(recording.session_id),
        recording.start_position,
        "-" if recording.stop_position is None else recording.stop_position,
        utc_time(recording.start_timestamp_ms),
        "-" if stopped is None else utc_time(stopped),
        recording.segment_file_length,
        recording.term_buffer_length,
        recording.mtu_length,
        str(recording.initial_term_id),
        recording.source_identity,
        recording.original_channel,
    )


def _entry_fields(entry: CatalogEntry) -> dict[str, object]:
    return {
        **dataclasses.asdict(entry.recording),
        "catalog_state": state_name(entry.state),
        "catalog_checksum": entry.checksum,
        "control_session_id": entry.control_session_id,
        "correlation_id": entry.correlation_id,
    }


def _as_json(recording: Recording, extent: Extent | None) -> dict[str, object]:
    limit = None if extent is None else extent.limit_position
    return {**dataclasses.asdict(recording), "limit_position": limit, "state": _state(recording, extent)}


def _extent(folder: Folder, recording: Recording) -> Extent | None:
    """How far it goes; None where the driver of a live archive can't be reached."""
    try:
        return folder.extent(recording.recording_id)
    except (PeerError, DataLossError):
        return None


def _state(recording: Recording, extent: Extent | None) -> str:
    if recording.stop_position is not None:
        return "stopped"
    if extent is None:
        return "unreachable"
    return "active" if extent.is_active else "unfinished"


_LIST_HEADERS = (
    *("recording", "stream", "session", "start", "end", "size", "began", "for", "rate", "state", "channel"),
)


def _pace(recording: Recording, extent: Extent | None) -> dict[str, float | None]:
    """Bytes, seconds and their ratio. When a recording ended whose archive died is not in the catalog."""
    count = None if extent is None else extent.limit_position - extent.start_position
    ended = recording.stop_timestamp_ms
    if ended is None and extent is not None and extent.is_active:
        ended = int(time.time() * 1000)
    seconds = None if ended is None else (ended - recording.start_timestamp_ms) / 1000
    rate = count / seconds if count is not None and seconds is not None and seconds > 0 else None
    return {"bytes": count, "seconds": seconds, "bytes_per_second": rate}


def _row(recording: Recording, extent: Extent | None) -> tuple[object, ...]:
    pace = _pace(recording, extent)
    count, seconds, rate = pace["bytes"], pace["seconds"], pace["bytes_per_second"]
    return (
        recording.recording_id,
        str(recording.stream_id),
        str(recording.session_id),
        recording.start_position,
        "-" if extent is None else extent.limit_position,
        "-" if count is None else size(count),
        utc_time(recording.start_timestamp_ms),
        "-" if seconds is None else duration(seconds),
        "-" if rate is None else f"{size(rate)}/s",
        _state(recording, extent),
        recording.original_channel,
    )


def _fields(folder: Folder | None, entry: CatalogEntry, extent: Extent | None) -> Iterator[tuple[str, str]]:
    for name, value in with_times(_entry_fields(entry), keeps_numbers=False).items():
        yield name, "-" if value is None else str(value)
    yield "limit_position", "-" if extent is None else str(extent.limit_position)
    yield "state", _state(entry.recording, extent)
    if folder is not None:
        yield "record_checksum", _checksum(folder, entry.recording.recording_id)


def _checksum(folder: Folder, recording_id: int) -> str:
    try:
        return folder.checksum(recording_id).name.lower().replace("_", "-")
    except AeronError as failure:
        return f"unknown: {failure}"

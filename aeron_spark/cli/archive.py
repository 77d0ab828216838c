"""`aeron-spark archive`: run an archive, or look at the recordings of a folder."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from typing import Any, NoReturn

from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.segments import Extent, Folder
from aeron_spark.cli.common import add_dir, add_json, add_verb, print_json, print_table
from aeron_spark.cli.driver import add_settings, become
from aeron_spark.errors import PeerError

EXAMPLES = """\
  aeron-spark archive run --archive-dir recordings
  aeron-spark archive list recordings
  aeron-spark archive describe recordings 3 --json"""


def add_to(verbs: Any) -> None:
    """Add the verb and its own verbs."""
    verb = add_verb(verbs, "archive", run, about="run an archive, or look at its recordings", examples=EXAMPLES)
    parts = verb.add_subparsers(title="verbs", dest="part", required=True, metavar="VERB")

    start = add_verb(
        parts, "run", run, about="run an archive with its media driver until Ctrl-C", examples=EXAMPLES.splitlines()[0]
    )
    start.add_argument("--archive-dir", metavar="DIR", required=True, help="folder of the recordings, made if absent")
    start.add_argument("--beside-driver", action="store_true", help="use the running driver of --dir, start none")
    add_dir(start)
    add_settings(start)

    for name, about, example in (
        ("list", "recordings of a folder, also of a live archive", EXAMPLES.splitlines()[1]),
        ("describe", "everything known about one recording", EXAMPLES.splitlines()[2]),
    ):
        part = add_verb(parts, name, list_recordings, about=about, examples=example)
        part.add_argument("path", metavar="PATH", help="the archive's folder")
        add_dir(part)
        add_json(part)
        part.set_defaults(recording_id=None, about_one=name == "describe")
        if name == "describe":
            part.add_argument("recording_id", metavar="RECORDING", type=int, help="recording id")


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
    """Print the recordings of a folder, or all fields of one."""
    with Folder(options.path, aeron_dir=options.dir) as folder:
        chosen = folder.recordings() if options.recording_id is None else [folder.recording(options.recording_id)]
        known = [(recording, _extent(folder, recording)) for recording in chosen]
        if options.json:
            for recording, extent in known:
                limit = None if extent is None else extent.limit_position
                print_json(
                    {**dataclasses.asdict(recording), "limit_position": limit, "state": _state(recording, extent)}
                )
        elif options.about_one:
            print_table(("field", "value"), _fields(folder, *known[0]))
        else:
            print_table(
                ("recording", "stream", "session", "start", "end", "state", "channel"), (_row(*pair) for pair in known)
            )
    return 0


def _extent(folder: Folder, recording: Recording) -> Extent | None:
    """How far it goes; None where the driver of a live archive can't be reached."""
    try:
        return folder.extent(recording.recording_id)
    except PeerError:
        return None


def _state(recording: Recording, extent: Extent | None) -> str:
    if recording.stop_position is not None:
        return "stopped"
    if extent is None:
        return "unreachable"
    return "active" if extent.is_active else "interrupted"


def _row(recording: Recording, extent: Extent | None) -> tuple[object, ...]:
    return (
        recording.recording_id,
        recording.stream_id,
        str(recording.session_id),
        recording.start_position,
        "-" if extent is None else extent.limit_position,
        _state(recording, extent),
        recording.original_channel,
    )


def _fields(folder: Folder, recording: Recording, extent: Extent | None) -> Iterator[tuple[str, str]]:
    for field in dataclasses.fields(recording):
        value = getattr(recording, field.name)
        yield field.name, "-" if value is None else str(value)
    yield "limit_position", "-" if extent is None else str(extent.limit_position)
    yield "state", _state(recording, extent)
    yield "record_checksum", folder.checksum(recording.recording_id).name.lower().replace("_", "-")

"""`aeron-spark archive verify | checksum | compact | ...`: what the stock ArchiveTool does, on folders of ours and of stock."""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from aeron_spark.archive.segment_files import Orphan, interrupted_move, orphans, segment_files
from aeron_spark.archive.segments import Folder
from aeron_spark.archive.tools import (
    Catalog,
    CatalogEntry,
    RecordingState,
    VerifyOutcome,
    VerifyReport,
    migrate,
    state_name,
    total_bytes,
)
from aeron_spark.cli.common import add_dir, add_json, add_verb, at_least, int64, observed, print_json
from aeron_spark.cli.progress import Work
from aeron_spark.counters import Counters
from aeron_spark.errors import AeronError, DataLossError, PeerError, UsageError
from aeron_spark.texts import escaped
from aeron_spark.types import RecordChecksum

CHECKSUMS = {
    "auto": RecordChecksum.AUTO,
    "none": RecordChecksum.NONE,
    **{
        name: kind
        for kind, names in {
            RecordChecksum.CRC_32: ("crc-32", "org.agrona.checksum.Crc32", "io.aeron.archive.checksum.Crc32"),
            RecordChecksum.CRC_32C: ("crc-32c", "org.agrona.checksum.Crc32c", "io.aeron.archive.checksum.Crc32c"),
        }.items()
        for name in names
    },
}
EXIT_FINE, EXIT_FINDINGS = 0, 1
_UNPRINTABLE = re.compile(r"[^ -~]")


def checksum_named(text: str) -> RecordChecksum:
    """Checksum of a stock class name or alias; for argparse."""
    for name, kind in CHECKSUMS.items():
        if text == name or text.lower() == name:
            return kind
    raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(CHECKSUMS)}")


def add_to(parts: Any) -> None:
    """Add the verbs of a folder."""
    verify = _add(
        parts,
        "verify",
        run_verify,
        about="hold recordings against their segment files; writes only with --repair. Exit code 1: something is wrong",
        examples="""\
  aeron-spark archive verify recordings
  aeron-spark archive verify recordings 3 --all-segments --checksum crc-32
  aeron-spark archive verify recordings --repair""",
        one=True,
    )
    _add_all_segments(verify)
    verify.add_argument(
        "--checksum",
        metavar="NAME",
        type=checksum_named,
        default=RecordChecksum.AUTO,
        help="auto (default: verify what the frames carry), none, crc-32, crc-32c, or a stock class name",
    )
    verify.add_argument(
        "--repair",
        action="store_true",
        help="store stop positions that were found, truncate incomplete last fragments, make good INVALID recordings VALID",
    )
    add_dir(verify)

    checksum = _add(
        parts,
        "checksum",
        run_checksum,
        about="compute the checksums of catalog and frames anew; a dry run without --yes",
        examples="""\
  aeron-spark archive checksum recordings --checksum crc-32
  aeron-spark archive checksum recordings 3 --checksum crc-32c --all-segments --yes""",
        one=True,
    )
    _add_all_segments(checksum)
    checksum.add_argument(
        "--checksum", metavar="NAME", type=checksum_named, required=True, help="crc-32, crc-32c, or a stock class name"
    )
    _add_yes(checksum)

    compact = _add(
        parts,
        "compact",
        run_compact,
        about="drop deleted and invalid recordings from the catalog, and their files; a dry run without --yes",
        examples="""\
  aeron-spark archive compact recordings
  aeron-spark archive compact recordings --yes""",
    )
    _add_yes(compact)

    deleting = _add(
        parts,
        "delete-orphans",
        run_delete_orphans,
        about="delete segment files that no recording uses; a dry run without --yes",
        examples="""\
  aeron-spark archive delete-orphans recordings
  aeron-spark archive delete-orphans recordings 3 --yes""",
        one=True,
        aliases=["delete-orphaned-segments"],
    )
    _add_yes(deleting)

    migrating = _add(
        parts,
        "migrate",
        run_migrate,
        about="bring a folder of an older storage version to the current one; a dry run without --yes. Work on a copy",
        examples="""\
  aeron-spark archive migrate recordings
  aeron-spark archive migrate recordings --yes""",
    )
    _add_yes(migrating)

    for name, state in (("mark-invalid", RecordingState.INVALID), ("mark-valid", RecordingState.VALID)):
        marking = _add(
            parts,
            name,
            run_mark,
            about=f"make a recording {state.name}: "
            + ("archives and readers pass it by" if state == RecordingState.INVALID else "it is listed again"),
            examples=f"  aeron-spark archive {name} recordings 3",
        )
        marking.add_argument("recording_id", metavar="RECORDING", type=int64, help="recording id")
        marking.set_defaults(state=state)

    _add(
        parts,
        "count-entries",
        run_count,
        about="number of valid recordings",
        examples="""\
  aeron-spark archive count-entries recordings
  aeron-spark archive count-entries recordings --json""",
    )
    _add(
        parts,
        "pid",
        run_pid,
        about="process id of the archive that owns or owned the folder",
        examples="  aeron-spark archive pid recordings",
    )
    errors = _add(
        parts,
        "errors",
        run_errors,
        about="errors that the archive and its driver logged; `unreadable` of --json explains why the driver's are missing",
        examples="  aeron-spark archive errors recordings",
    )
    add_dir(errors)

    dump = _add(
        parts,
        "dump",
        run_dump,
        about="frames of recordings, headers and bytes",
        examples="""\
  aeron-spark archive dump recordings 3
  aeron-spark archive dump recordings 3 --from 131072 --frames 5
  aeron-spark archive dump recordings --frames 0 --no-payload --json""",
        one=True,
    )
    dump.add_argument(
        "--from", dest="start", metavar="POSITION", type=at_least(0), help="frames that begin here or later"
    )
    dump.add_argument("--to", dest="end", metavar="POSITION", type=at_least(0), help="frames that begin before it")
    dump.add_argument(
        "--frames",
        metavar="N",
        type=at_least(0),
        default=100,
        help="so many of each recording (default 100; 0: all of them)",
    )
    dump.add_argument("--no-payload", action="store_true", help="headers only")
    add_dir(dump)


def _add(
    parts: Any,
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    about: str,
    examples: str,
    one: bool = False,
    aliases: Iterable[str] = (),
) -> argparse.ArgumentParser:
    part = add_verb(parts, name, run, about=about, examples=examples, aliases=aliases)
    part.add_argument("path", metavar="PATH", help="the archive's folder")
    if one:
        part.add_argument(
            "recording_id", metavar="RECORDING", type=int64, nargs="?", help="recording id (default: all)"
        )
    add_json(part)
    return part


def _add_all_segments(part: argparse.ArgumentParser) -> None:
    part.add_argument("-a", "--all-segments", action="store_true", help="all segments, not the last one alone")


def _add_yes(part: argparse.ArgumentParser) -> None:
    part.add_argument("--yes", action="store_true", help="do it; without, only print what would be done")


# -- verify ----------------------------------------------------------------------------------------------------------------


def run_verify(options: argparse.Namespace) -> int:
    """Verify one recording or all; a bad one does not end the run."""
    findings = 0
    with Catalog(options.path, writable=options.repair) as catalog:
        damage = catalog.info().damage
        entries = catalog.entries(options.recording_id)
        limits = _LiveLimits(options, catalog)
        work = Work("verified", total_bytes(entries, all_segments=options.all_segments), quiet=options.json)
        done = 0
        for entry in entries:
            try:
                report = catalog.verify(
                    entry,
                    all_segments=options.all_segments,
                    repair=options.repair,
                    checksum=options.checksum,
                    live_limit=limits.of(entry),
                    on_progress=work.from_here(done),
                )
            except (PeerError, DataLossError) as failure:
                report = _failed(str(failure))
            done += report.bytes
            work.at(done)
            findings += report.is_finding
            _print_report(entry, report, as_json=options.json)
        work.end()
        torn = _why_torn(options, limits) if findings or damage else ""
    for text in filter(None, (damage, torn)):
        _finding(text, as_json=options.json)
    return EXIT_FINDINGS if findings or damage else EXIT_FINE


def _why_torn(options: argparse.Namespace, limits: _LiveLimits) -> str:
    mark = limits.mark
    if options.repair or mark is None or mark.activity_timestamp_ms is None or limits.is_kept:
        return ""
    return (
        f"{options.path} is a copy that was made while its archive (pid {mark.pid}) ran, so that its files are of different "
        "instants, or the folder of an archive that was killed. A copy: take one that fits together, while that archive runs, "
        f"by aeron-spark archive backup; or keep what is whole: aeron-spark archive verify {options.path} --repair"
    )


class _LiveLimits:
    """How far the active recordings of a live archive go."""

    def __init__(self, options: argparse.Namespace, catalog: Catalog) -> None:
        self.mark = catalog.mark()
        self._options = options
        self._catalog = catalog

    @cached_property
    def is_kept(self) -> bool:
        """Whether an archive works on the folder; for a repair none may."""
        return not self._options.repair and self._catalog.is_kept()

    def of(self, entry: CatalogEntry) -> int | None:
        """Recorded position of an active recording, None of another."""
        if entry.recording.stop_position is not None or entry.state != RecordingState.VALID or not self.is_kept:
            return None
        with Folder(self._options.path, aeron_dir=self._options.dir) as folder:
            return folder.extent(entry.recording.recording_id).limit_position


def _failed(text: str) -> VerifyReport:
    return VerifyReport(
        outcome=VerifyOutcome.BAD,
        checksum=RecordChecksum.NONE,
        is_catalog_checksum_stale=False,
        stop_position=None,
        frames=0,
        bytes=0,
        text=text,
    )


def _print_report(entry: CatalogEntry, report: VerifyReport, *, as_json: bool) -> None:
    recording_id = entry.recording.recording_id
    if as_json:
        print_json(
            {
                "recording_id": recording_id,
                "state": state_name(entry.state),
                **dataclasses.asdict(report),
                "outcome": report.outcome.name,
                "checksum": _checksum_name(report.checksum),
            }
        )
        return
    words = {
        VerifyOutcome.OK: "OK",
        VerifyOutcome.SKIPPED: f"skipping: {state_name(entry.state)}",
        VerifyOutcome.REPAIRED: "OK, repaired",
    }
    word = words.get(report.outcome, "ERR")
    text = f": {report.text}" if report.text else ""
    remedy = " (--repair does it)" if report.outcome == VerifyOutcome.REPAIRABLE else ""
    print(f"(recordingId={recording_id}) {word}{text}{remedy}", flush=True)


def _checksum_name(checksum: RecordChecksum) -> str:
    return checksum.name.lower().replace("_", "-")


def _finding(text: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"finding": text})
    else:
        print(f"ERR: {text}", flush=True)


# -- writing ---------------------------------------------------------------------------------------------------------------


def run_checksum(options: argparse.Namespace) -> int:
    """Compute checksums anew; recordings whose frames can't be walked are reported and skipped."""
    if options.checksum in {RecordChecksum.AUTO, RecordChecksum.NONE}:
        raise UsageError("--checksum takes crc-32 or crc-32c, or the stock class names of these")
    findings = 0
    with Catalog(options.path, writable=options.yes) as catalog:
        entries = [entry for entry in catalog.entries(options.recording_id) if entry.state != RecordingState.DELETED]
        work = Work("checksums of", total_bytes(entries, all_segments=options.all_segments), quiet=options.json)
        done = 0
        for entry in entries:
            recording_id = entry.recording.recording_id
            try:
                report = catalog.checksum(
                    entry,
                    options.checksum,
                    all_segments=options.all_segments,
                    dry=not options.yes,
                    on_progress=work.from_here(done),
                )
            except DataLossError as failure:
                findings += 1
                _finding(f"(recordingId={recording_id}) {failure}", as_json=options.json)
                continue
            done += report.bytes
            work.at(done)
            if options.json:
                print_json({"recording_id": recording_id, **dataclasses.asdict(report), "done": options.yes})
            else:
                verb = "changed" if options.yes else "would change"
                print(f"(recordingId={recording_id}) {verb} {report.changed:,} of {report.frames:,} frames", flush=True)
        work.end()
    _print_dry_run(options)
    return EXIT_FINDINGS if findings else EXIT_FINE


def run_compact(options: argparse.Namespace) -> int:
    """Delete the files of recordings that are not valid, then their records."""
    with Catalog(options.path, writable=options.yes) as catalog:
        dropped = [entry for entry in catalog.entries() if entry.state != RecordingState.VALID]
        dropped_ids = {entry.recording.recording_id for entry in dropped}
        files = [file for file in segment_files(options.path) if file.recording_id in dropped_ids]
        deleted, reclaimed = len(dropped), sum(entry.length for entry in dropped)
        if not options.json:
            for entry in dropped:
                print(f"(recordingId={entry.recording.recording_id}) {state_name(entry.state)}")
            for file in files:
                print(f"{'deleting' if options.yes else 'would delete'} {file.path}")
        if options.yes:
            info = catalog.info()
            if info.damage:
                raise DataLossError(f"{info.damage}; a compaction would lose what can't be read")
            # Files first: a crash between leaves records without files, and the next run drops those.
            for file in files:
                file.path.unlink(missing_ok=True)
            deleted, reclaimed = catalog.compact()
    if options.json:
        print_json(
            {
                "deleted": deleted,
                "reclaimed": reclaimed,
                "files": [str(file.path) for file in files],
                "file_bytes": sum(file.size for file in files),
                "done": options.yes,
            }
        )
    elif options.yes:
        print(f"Compaction result: deleted {deleted} records and reclaimed {reclaimed} bytes")
    else:
        print(f"would delete {deleted} records and reclaim {reclaimed} bytes of the catalog, and {_size(files)}")
    _print_dry_run(options)
    return EXIT_FINE


def _size(files: Iterable[Any]) -> str:
    sizes = [file.size for file in files]
    return f"{len(sizes)} files of {sum(sizes):,} bytes"


def run_delete_orphans(options: argparse.Namespace) -> int:
    """Delete files that no recording uses."""
    with Catalog(options.path, writable=options.yes) as catalog:
        if damage := catalog.info().damage:
            raise DataLossError(f"{damage}; what belongs to no recording is unknown")
        if move := interrupted_move(options.path):
            raise UsageError(
                f"{move}: the archive died while it moved segments, and some have the name of the other recording: start the "
                f"archive, which takes that back or finishes it"
            )
        files = segment_files(options.path)
        if options.recording_id is not None:
            catalog.entries(options.recording_id)
            files = [file for file in files if file.recording_id == options.recording_id]
        found = orphans(catalog.entries(), files)
        for orphan in found:
            if options.yes and orphan.is_deletable:
                orphan.file.path.unlink(missing_ok=True)
            _print_orphan(orphan, options)
    if not options.json:
        deletable = [orphan.file for orphan in found if orphan.is_deletable]
        print(f"{'deleted' if options.yes else 'would delete'} {_size(deletable)}")
    _print_dry_run(options)
    return EXIT_FINE


def _print_orphan(orphan: Orphan, options: argparse.Namespace) -> None:
    if options.json:
        print_json(
            {
                "path": str(orphan.file.path),
                "recording_id": orphan.file.recording_id,
                "bytes": orphan.file.size,
                "reason": orphan.reason,
                "deletable": orphan.is_deletable,
                "done": options.yes and orphan.is_deletable,
            }
        )
        return
    done = "deleted" if options.yes else "would delete"
    verb = done if orphan.is_deletable else "left"
    print(f"{verb} {orphan.file.path}: {orphan.reason}")


def run_migrate(options: argparse.Namespace) -> int:
    """Run the steps from the folder's version to the current one."""
    texts: list[str] = []
    steps = migrate(options.path, dry=not options.yes, on_step=texts.append if options.json else print)
    if options.json:
        print_json({"steps": texts, "dry_run": not options.yes})
    elif steps == 0:
        print("nothing to migrate")
    else:
        _print_dry_run(options)
    return EXIT_FINE


def run_mark(options: argparse.Namespace) -> int:
    """Change a recording's state."""
    with Catalog(options.path, writable=True) as catalog:
        for entry in catalog.entries(options.recording_id):
            catalog.set_state(entry, options.state)
    if options.json:
        print_json({"recording_id": options.recording_id, "catalog_state": state_name(options.state)})
    else:
        print(f"(recordingId={options.recording_id}) changed state to {options.state.name}")
    return EXIT_FINE


def _print_dry_run(options: argparse.Namespace) -> None:
    if not options.yes and not getattr(options, "json", False):
        print("nothing was changed; --yes does it")


# -- reading ---------------------------------------------------------------------------------------------------------------


def run_count(options: argparse.Namespace) -> int:
    """Print the number of VALID recordings."""
    with Catalog(options.path) as catalog:
        states = [entry.state for entry in catalog.entries()]
        damage = catalog.info().damage
    if options.json:
        print_json({state.name.lower(): states.count(state) for state in RecordingState})
    else:
        print(states.count(RecordingState.VALID))
    if damage:
        print(escaped(damage), file=sys.stderr)
    return EXIT_FINDINGS if damage else EXIT_FINE


def run_pid(options: argparse.Namespace) -> int:
    """Print the archive's process id."""
    with Catalog(options.path) as catalog:
        mark = catalog.mark()
    if mark is None:
        raise DataLossError(f"{options.path} has no mark file: no archive ran on it, or the file was deleted")
    if options.json:
        print_json({"pid": mark.pid, "is_live": mark.is_live})
    else:
        print(mark.pid)
    return EXIT_FINE


def run_errors(options: argparse.Namespace) -> int:
    """Print the error logs of the archive and of its driver."""
    with Catalog(options.path) as catalog:
        mark = catalog.mark()
        logged = catalog.errors()
    aeron_dir = options.dir or (mark.aeron_dir if mark is not None else "")
    reason = ""
    try:
        with Counters(aeron_dir) as counters:
            driver = counters.errors()
    except AeronError as failure:
        driver, reason = [], str(failure)
    if options.json:
        for source, entries in (("archive", logged), ("driver", driver)):
            for entry in entries:
                print_json({"source": source, **dataclasses.asdict(entry)})
        if reason:
            # Without it a script would take a log that nobody read for one without errors.
            print_json({"source": "driver", "count": 0, "unreadable": reason})
        return EXIT_FINE
    for title, entries in (
        ("Archive error log:", logged),
        (f"Aeron driver error log (directory: {aeron_dir}):", driver),
    ):
        print(title)
        for entry in entries:
            print(observed(entry))
        print(
            f"{len(entries)} distinct errors observed."
            if not (reason and entries is driver)
            else f"not there: {reason}"
        )
    return EXIT_FINE


# -- dump ------------------------------------------------------------------------------------------------------------------


def run_dump(options: argparse.Namespace) -> int:
    """Print frames; a broken one ends its recording, not the run."""
    if options.recording_id is None and (options.start is not None or options.end is not None):
        raise UsageError("--from and --to are positions of one recording: name it")
    findings = 0
    with Catalog(options.path) as catalog, Folder(options.path, aeron_dir=options.dir) as folder:
        for entry in catalog.entries(options.recording_id):
            if not options.json:
                about = f"stream {entry.recording.stream_id}, {entry.recording.original_channel}"
                print(f"recording {entry.recording.recording_id}, {state_name(entry.state)}, {about}")
            if entry.state == RecordingState.DELETED:
                continue
            try:
                _dump_frames(catalog, folder, entry, options)
            except AeronError as failure:
                if options.recording_id is not None and isinstance(failure, UsageError):
                    raise
                findings += 1
                _finding(str(failure), as_json=options.json)
    return EXIT_FINDINGS if findings else EXIT_FINE


def _dump_frames(catalog: Catalog, folder: Folder, entry: CatalogEntry, options: argparse.Namespace) -> None:
    recording = entry.recording
    limit = recording.stop_position
    if limit is None:
        limit = folder.extent(recording.recording_id).limit_position
    start = recording.start_position if options.start is None else options.start
    end = limit if options.end is None else min(options.end, limit)
    if limit <= recording.start_position and not options.json:
        print("Recording is empty")
    shown = 0
    for frame in catalog.frames(entry, start, end, limit=limit):
        if options.frames and shown == options.frames:
            if not options.json:
                print(f"... --from {frame.position} goes on")
            return
        shown += 1
        fields = dataclasses.asdict(frame)
        payload = fields.pop("payload")
        if options.json:
            shown_payload = {} if options.no_payload else {"payload": payload.hex()}
            print_json({"recording_id": recording.recording_id, **fields, **shown_payload})
            continue
        print(
            f"Frame at position [{frame.position}] data at offset [{frame.position - frame.segment_base + 32}] "
            f"with length = {len(payload)}"
        )
        print(f"  {'PADDING FRAME' if frame.is_padding else 'DATA'} " + " ".join(f"{k}={v}" for k, v in fields.items()))
        if not options.no_payload:
            for at in range(0, len(payload), 16):
                part = payload[at : at + 16]
                text = _UNPRINTABLE.sub(".", part.decode("ascii", "replace"))
                print(f"  {at:08x}  {part.hex(' '):<47}  {text}")

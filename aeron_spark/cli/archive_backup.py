"""`aeron-spark archive backup | restore`: a consistent copy of a folder whose archive may run, and the way back."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import Any

from aeron_spark.archive.backup import backup
from aeron_spark.archive.backup_store import open_backup
from aeron_spark.archive.restore import restore
from aeron_spark.cli.archive_retain import size
from aeron_spark.cli.common import add_dir, add_json, add_verb, int64, print_json, utc_time
from aeron_spark.cli.progress import Work, duration
from aeron_spark.cli.progress import size as size_text
from aeron_spark.texts import escaped

BACKUP_EXAMPLES = """\
  aeron-spark archive backup recordings backup
  aeron-spark archive backup recordings s3://bucket/backup --rate 50m"""
RESTORE_EXAMPLES = """\
  aeron-spark archive restore backup recordings
  aeron-spark archive restore s3://bucket/backup recordings --recording 3 --recording 7"""


def add_to(parts: Any) -> None:
    """Add the verbs."""
    saving = add_verb(
        parts,
        "backup",
        run_backup,
        about="copy a folder consistently while its archive runs; next time, what changed. Exit code 1: segments are missing",
        examples=BACKUP_EXAMPLES,
    )
    saving.add_argument("path", metavar="FOLDER", help="the archive's folder")
    saving.add_argument(
        "target",
        metavar="DEST",
        help="where the backup lies: a folder, or a store's folder (s3://bucket/folder, also gs:, abfs:, hdfs:; credentials of "
        "the environment)",
    )
    add_dir(saving)

    putting = add_verb(
        parts,
        "restore",
        run_restore,
        about="put recordings of a backup into a folder on which no archive runs; no file there is overwritten",
        examples=RESTORE_EXAMPLES,
    )
    putting.add_argument("target", metavar="DEST", help="where the backup lies, as `backup` takes it")
    putting.add_argument("path", metavar="FOLDER", help="the archive's folder, made if absent")
    putting.add_argument(
        "--recording", metavar="ID", type=int64, action="append", default=[], help="this one; repeatable (default: all)"
    )
    for part in (saving, putting):
        part.add_argument(
            "--rate", metavar="SIZE", type=size, help="bytes a second at most: 500k, 50m (default: no bound)"
        )
        part.add_argument("--progress", action="store_true", help="report progress even without a terminal")
        add_json(part)


class _Shown:
    """Progress of a work whose size is known when it begins."""

    def __init__(self, what: str, options: argparse.Namespace) -> None:
        self._what, self._options = what, options
        self._work: Work | None = None
        self._total = -1

    def at(self, done: int, total: int) -> None:
        """Bytes done of so many; another total is the next round's."""
        if self._work is None or total != self._total:
            self.end()
            self._work, self._total = Work(self._what, total, always=self._options.progress), total
        self._work.at(done)

    def end(self) -> None:
        """Leave the last line."""
        if self._work is not None:
            self._work.end()


def run_backup(options: argparse.Namespace) -> int:
    """Copy what has changed, and print what the backup holds."""
    shown = _Shown("checked and copied", options)
    report = backup(
        options.path, open_backup(options.target), aeron_dir=options.dir, rate=_rate(options), on_progress=shown.at
    )
    shown.end()
    for name in report.kept:
        print(
            f"ERR: {escaped(name)} is missing in {options.path}; the backup keeps the one that it had", file=sys.stderr
        )
    for name in report.missing:
        print(f"ERR: {escaped(name)} is missing in {options.path}, and in the backup", file=sys.stderr)
    if report.kept:
        print(f"to put segments back: aeron-spark archive restore {options.target} {options.path}", file=sys.stderr)
    if options.json:
        print_json({"backup": options.target, **dataclasses.asdict(report)})
    else:
        print(
            f"{report.recordings:,} recordings, {report.files:,} files, {size_text(report.bytes)} in {options.target}: copied "
            f"{report.copied_files:,} files, {size_text(report.copied_bytes)} in {duration(report.seconds)}"
        )
    return 1 if report.kept or report.missing else 0


def run_restore(options: argparse.Namespace) -> int:
    """Put back, and print what was put back."""
    shown = _Shown("restored", options)
    report = restore(
        open_backup(options.target), options.path, options.recording, rate=_rate(options), on_progress=shown.at
    )
    shown.end()
    for name in report.missing:
        print(f"ERR: {escaped(name)} is missing in the backup", file=sys.stderr)
    if options.json:
        print_json({"folder": options.path, **dataclasses.asdict(report), "taken": utc_time(report.taken_ms)})
        return 1 if report.missing else 0
    print(
        f"{len(report.recordings):,} recordings as of {utc_time(report.taken_ms)}: {report.files:,} files, "
        f"{size_text(report.bytes)}, their digests compared, to {options.path}"
    )
    for recording_id in report.reopened:
        print(
            f"(recordingId={recording_id}) goes on behind the backup's end: aeron-spark archive verify {options.path} --repair "
            f"finds its end, as the next start of the archive does"
        )
    for recording_id in report.unknown:
        print(
            f"(recordingId={recording_id}) has segments in {options.path}, but is in no catalog: they stay as they are"
        )
    return 1 if report.missing else 0


def _rate(options: argparse.Namespace) -> int | None:
    return None if options.rate is None else max(int(options.rate), 1)

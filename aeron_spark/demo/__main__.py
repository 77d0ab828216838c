"""`python -m aeron_spark.demo`: the supervisor of the demonstration.

The work is done by a child (`work.py`), so that whatever happens to it, also Ctrl-C at any stage, every process it started
is ended and every folder removed. As child subreaper, this process inherits what is orphaned below it.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from aeron_spark import extras
from aeron_spark.demo import java
from aeron_spark.errors import AeronError

PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 20.0


def main() -> int:
    """Run the demonstration and clean up after it; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m aeron_spark.demo",
        description="Publish telemetry of this machine, record it, stream it with Spark, and replay the recording.",
    )
    parser.add_argument("--keep", action="store_true", help="keep the archive folder and the Aeron directory")
    parser.add_argument("--seconds", type=float, default=6.0, help="how long to stream (default 6)")
    options = parser.parse_args()
    if importlib.util.find_spec("pyspark") is None:
        print(f"aeron_spark demo: {extras.remedy('pyspark', 'spark')}", file=sys.stderr)
        return 1

    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    folder, aeron_dir = _make_directories()
    archive_dir = folder / "archive"
    code = 1
    try:
        code = 0 if _work(folder, aeron_dir, archive_dir, options.seconds) == 0 else 1
    except KeyboardInterrupt:
        print("\ninterrupted: cleaning up", flush=True)
        code = 130
    except AeronError as failure:
        print(f"aeron_spark demo: {failure}", file=sys.stderr)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        _end_descendants()
        if options.keep and archive_dir.exists():
            _keep(folder, archive_dir, aeron_dir)
        else:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(aeron_dir, ignore_errors=True)
    return code


def _make_directories() -> tuple[Path, Path]:
    """A folder for what is kept, and an Aeron directory of the same name, both of our own making.

    Others see the first's name, and could have made the second.
    """
    while True:
        folder = Path(tempfile.mkdtemp(prefix="aeron-spark-demo-"))
        aeron_dir = Path("/dev/shm") / folder.name  # noqa: S108 - where Aeron directories are
        try:
            aeron_dir.mkdir(0o700)
        except FileExistsError:
            folder.rmdir()
        else:
            return folder, aeron_dir


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _work(folder: Path, aeron_dir: Path, archive_dir: Path, seconds: float) -> int:
    (folder / "tmp").mkdir()
    environment = {
        # Spark asks for the machine's own name, which need not resolve.
        "SPARK_LOCAL_HOSTNAME": "localhost",
        **os.environ,
        **java.environment(folder),
        "TMPDIR": str(folder / "tmp"),
        "PYSPARK_PYTHON": sys.executable,
    }
    command = [sys.executable, "-m", "aeron_spark.demo.work", str(aeron_dir), str(archive_dir), str(seconds)]
    # Its own group: Ctrl-C at the terminal reaches it only through here. Spark and Java are talkative: what they print to
    # standard error is shown only when the work fails.
    with (folder / "log").open("wb") as log:
        worker = subprocess.Popen(  # noqa: S603 - our own module
            command, env=environment, cwd=folder, process_group=0, stdin=subprocess.DEVNULL, stderr=log
        )
    try:
        code = worker.wait()
    except KeyboardInterrupt:
        worker.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(GRACE_S)
        raise
    if code:
        lines = (folder / "log").read_text("utf-8", "replace").splitlines()
        print("\n".join(lines[-40:]), file=sys.stderr)
    return code


def _keep(folder: Path, archive_dir: Path, aeron_dir: Path) -> None:
    """Leave the two directories only, and print their paths."""
    for entry in folder.iterdir():
        if entry != archive_dir:
            shutil.rmtree(entry, ignore_errors=True)
    print(f"\narchive folder: {archive_dir}\nAeron directory: {aeron_dir}")


def _end_descendants() -> None:
    """End every process below this one: ask, then kill; reap them all."""
    for number, grace_s in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
        deadline = time.monotonic() + grace_s
        asked: set[int] = set()
        while time.monotonic() < deadline:
            _reap()
            running = _descendants(os.getpid())
            if not running:
                return
            for pid in running - asked:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            asked |= running
            time.sleep(0.02)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _descendants(pid: int) -> set[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text("ascii", "replace").rpartition(")")[2].split()[1]
                )
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found and child not in found}:
        found |= more
    return found - {pid}


if __name__ == "__main__":
    sys.exit(main())

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
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from aeron_spark import extras
from aeron_spark.demo import java
from aeron_spark.demo.page import PAGE, Command, page
from aeron_spark.demo.result import RESULT, Result
from aeron_spark.errors import AeronError, UsageError

PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 20.0


def main() -> int:
    """Run the demonstration and clean up after it; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m aeron_spark.demo",
        description="Publish telemetry of this machine, record it, stream it with Spark, and replay the recording.",
    )
    parser.add_argument(
        "--keep",
        metavar="DIR",
        type=Path,
        help="where to keep the recording and the page; what an earlier run kept there is replaced "
        "(default: a new folder below the temporary one)",
    )
    parser.add_argument("--no-keep", action="store_true", help="keep nothing")
    parser.add_argument("--seconds", type=float, default=6.0, help="how long to stream (default 6)")
    options = parser.parse_args()
    if importlib.util.find_spec("pyspark") is None:
        print(f"aeron_spark demo: {extras.remedy('pyspark', 'spark')}", file=sys.stderr)
        return 1

    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    code = 1
    folder = aeron_dir = None
    try:
        _check(options.keep)
        folder, aeron_dir = _make_directories()
        code = 0 if _work(folder, aeron_dir, options.seconds) == 0 else 1
        _end_descendants()
        if code == 0 and not options.no_keep:
            kept = folder if options.keep is None else options.keep.absolute()
            _keep(folder, kept)
            folder = None
    except KeyboardInterrupt:
        print("\ninterrupted: cleaning up", flush=True)
        code = 130
    except (AeronError, OSError) as failure:
        print(f"aeron_spark demo: {failure}", file=sys.stderr)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        _end_descendants()
        for made in filter(None, (folder, aeron_dir)):
            shutil.rmtree(made, ignore_errors=True)
    return code


def _check(keep: Path | None) -> None:
    """Refuse a folder whose content no run of ours made: it would be deleted."""
    if keep is not None and keep.exists():
        if not keep.is_dir():
            raise UsageError(f"{keep} is no folder: name another one by --keep")
        if any(keep.iterdir()) and not (keep / RESULT).exists():
            raise UsageError(
                f"{keep} holds what no earlier run kept there, and stays as it is: name another folder by --keep"
            )


def _make_directories() -> tuple[Path, Path]:
    """A folder for what is kept, and an Aeron directory of the same name, both of our own making.

    Others see the first's name, and could have made the second.
    """
    while True:
        folder = Path(tempfile.mkdtemp(prefix="aeron-spark-demo-"))
        aeron_dir = Path("/dev/shm") / folder.name  # noqa: S108 - where Aeron directories are
        try:
            aeron_dir.mkdir(0o700)
        except OSError as failure:
            folder.rmdir()
            if not isinstance(failure, FileExistsError):
                raise
        else:
            return folder, aeron_dir


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _work(folder: Path, aeron_dir: Path, seconds: float) -> int:
    (folder / "tmp").mkdir()
    environment = {
        # Spark asks for the machine's own name, which need not resolve.
        "SPARK_LOCAL_HOSTNAME": "localhost",
        **os.environ,
        **java.environment(folder),
        "TMPDIR": str(folder / "tmp"),
        "PYSPARK_PYTHON": sys.executable,
    }
    command = [sys.executable, "-m", "aeron_spark.demo.work", str(aeron_dir), str(folder / "archive"), str(seconds)]
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


_KEPT = ("archive", "java", RESULT)


def _keep(folder: Path, kept: Path) -> None:
    """Leave the recording, the page and a program to go on with, in `kept`, and print what to do with them."""
    if kept == folder:
        for entry in folder.iterdir():
            if entry.name not in _KEPT:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    else:
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for name in _KEPT:
            if (folder / name).exists():
                shutil.move(folder / name, kept / name)
        shutil.rmtree(folder)
    shutil.copy(Path(__file__).with_name("read.py"), kept / "read.py")
    commands = next_commands(_shown(kept))
    result = Result.from_json((kept / RESULT).read_text("utf-8"))
    (kept / PAGE).write_text(page(result, commands), "utf-8")
    size = sum(path.stat().st_blocks * 512 for path in kept.rglob("*"))
    print(f"\nThis picture as a page: {kept / PAGE}")
    print(f"Kept in {_shown(kept)}, {size / 1e6:.1f} MB; delete the folder when you are done. Three next commands:")
    for number, command in enumerate(commands, 1):
        print(f"\n{number}. {command.about}:\n   {command.line}")


def next_commands(kept: str) -> list[Command]:
    """What to type next, from where this runs, with the Python that runs it."""
    tools = shlex.quote(_shown(Path(sys.executable).parent))
    kept = shlex.quote(kept)
    return [
        Command(
            "See the recording: where it begins and ends, its size and rate",
            f"{tools}/aeron-spark archive list {kept}/archive",
        ),
        Command(
            "Look at its first messages, without Spark",
            f"{tools}/aeron-spark archive export {kept}/archive --to 2048 --out - --format jsonl --value utf8",
        ),
        Command(f"Query it with Spark; change the query in {kept}/read.py", f"{tools}/python {kept}/read.py"),
    ]


def _shown(path: Path) -> str:
    """As short as it works from here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


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

"""Runs a long command of the Makefile, and reports its steps in plain words, with the time since `make` began.

python build_steps.py BEGUN WHAT COMMAND...

BEGUN is that time in seconds since 1970, WHAT reads like "installing the build tools". For pip it reports what it fetches and
builds; whatever the command prints is shown if it fails.
"""

from __future__ import annotations

import queue
import re
import subprocess
import sys
import threading
import time

STILL_S = 5.0
"""How long a step may print nothing before a line says that it still runs."""
_FETCHED = re.compile(
    r"\s*(Downloading|Using cached) (?:\S*/)?(?P<name>[\w.]+)-(?P<version>\d[^-\s]*?)(?:-\S*|\.tar\.\w+|\.zip)"
    r" \((?P<size>[\d.]+ [MG]B)\)"
)
_BUILT = re.compile(r"\s*Building (?:wheel|editable) for (\S+) .*: started")
_INSTALLED = re.compile(r"Installing collected packages: (.+)")


def step_of(line: str) -> str | None:
    """What a line of pip's output means to a person; None: nothing. Packages below a megabyte are not worth a line."""
    if fetched := _FETCHED.match(line):
        verb = "fetching" if fetched[1] == "Downloading" else "taking from pip's cache"
        return f"{verb} {fetched['name']} {fetched['version']}, {fetched['size']}"
    if built := _BUILT.match(line):
        return (
            "building aeron_spark and its C code" if built[1] == "aeron-spark" else f"building the package {built[1]}"
        )
    if installed := _INSTALLED.match(line):
        names = installed[1].split(", ")
        return f"unpacking {names[0] if len(names) == 1 else f'{len(names)} packages'}"
    return None


def run(begun: float, what: str, command: list[str]) -> int:
    """The command's exit code."""
    printed_at = 0.0

    def report(text: str) -> None:
        nonlocal printed_at
        printed_at = time.monotonic()
        sys.stdout.write(f"[{max(0.0, time.time() - begun):3.0f} s] {text}\n")
        sys.stdout.flush()

    report(what)
    lines: queue.Queue[str | None] = queue.Queue()
    with subprocess.Popen(  # noqa: S603 - a command of the Makefile
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:

        def read() -> None:
            for line in process.stdout or ():
                lines.put(line)
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        printed: list[str] = []
        while True:
            try:
                line = lines.get(timeout=max(0.0, printed_at + STILL_S - time.monotonic()))
            except queue.Empty:
                line = ""
            if line is None:
                break
            printed.append(line)
            step = step_of(line)
            if step:
                what = step
                report(step)
            elif time.monotonic() - printed_at >= STILL_S:
                report(f"still {what}")
    if process.returncode:
        sys.stderr.writelines(printed)
    return process.returncode


if __name__ == "__main__":
    try:
        sys.exit(run(float(sys.argv[1]), sys.argv[2], sys.argv[3:]))
    except KeyboardInterrupt:
        sys.exit(130)

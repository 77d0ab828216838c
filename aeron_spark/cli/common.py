"""What the verbs share: options, tables, JSON, and looking at a driver's directory once or again and again."""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import re
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO, TypeVar

from aeron_spark.cli.parser import EXIT_CODES
from aeron_spark.config import default_aeron_dir
from aeron_spark.counters import Counters, DriverInfo, ErrorEntry
from aeron_spark.errors import AeronError, PeerError, StorageError, UsageError
from aeron_spark.texts import escaped

_T = TypeVar("_T")

_UNITS = {1000: "ms", 10**9: "ns"}
#: Fields that are times since 1970, and how many of their unit a second has.
_TIMES = {
    **dict.fromkeys(("start_timestamp_ms", "stop_timestamp_ms", "activity_timestamp_ms", "heartbeat_ms"), 1000),
    **dict.fromkeys(("first_ms", "last_ms", "time_ms"), 1000),
    **dict.fromkeys(("first_ns", "last_ns", "time_ns"), 10**9),
}

#: 31 years; the clocks that wait take no more than some hundred.
MOST_SECONDS = 10**9
_CLEAR = "\x1b[H\x1b[2J"
#: A number with thousands, decimals and a unit, or nothing known: such columns are set to the right.
_NUMBER = re.compile(r"[+-]?[\d,]+(\.\d+)?( (bytes|kB|MB|s)(/s)?)?|-|")


def add_verb(
    verbs: Any,
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    about: str,
    examples: str,
    aliases: Iterable[str] = (),
    codes: str = EXIT_CODES,
) -> argparse.ArgumentParser:
    """Add a verb whose help shows examples."""
    verb: argparse.ArgumentParser = verbs.add_parser(
        name,
        aliases=list(aliases),
        help=about,
        description=about,
        epilog=f"examples:\n{examples}\n\n{codes}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.set_defaults(run=run, command=verb.prog, failure_code=1)
    return verb


def add_counters_verb(
    verbs: Any, name: str, run: Callable[[argparse.Namespace], int], *, about: str, examples: str
) -> argparse.ArgumentParser:
    """Add a verb that shows what is in a driver's directory, with `show_counters` or `show_rows`."""
    verb = add_verb(verbs, name, run, about=about, examples=examples)
    add_dir(verb)
    add_json(verb)
    verb.add_argument(
        "--watch",
        metavar="SECONDS",
        type=seconds,
        nargs="?",
        const=1.0,
        help="print again every so often (default: every second), with rates, until Ctrl-C",
    )
    return verb


def add_dir(verb: argparse.ArgumentParser) -> None:
    """Option --dir, the Aeron directory."""
    verb.add_argument(
        "--dir", metavar="DIR", default=None, help=f"Aeron directory (default: AERON_DIR, here {default_aeron_dir()})"
    )


def whole(least: int, most: int) -> Callable[[str], int]:
    """A whole number within bounds; for argparse."""

    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"{text} is below {least}")
        if value > most:
            raise argparse.ArgumentTypeError(f"{text} is above {most}")
        return value

    return number


#: Stream ids.
int32 = whole(-(2**31), 2**31 - 1)
#: Positions, and ids of recordings and sessions.
int64 = whole(-(2**63), 2**63 - 1)


def at_least(least: int) -> Callable[[str], int]:
    """A whole number of 64 bits that is not below `least`; for argparse."""
    return whole(least, 2**63 - 1)


def seconds(text: str) -> float:
    """A duration that a wait can take, so no NaN; for argparse."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds") from None
    if not 0 <= value <= MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and {MOST_SECONDS} seconds")
    return value


def recording_ids(words: Sequence[str]) -> list[int]:
    """Ids of recordings that stand among other words. UsageError: a word is none."""
    try:
        return [int64(word) for word in words]
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"a recording is a number, like 3: {error}") from None


def standard_input() -> TextIO:
    """UsageError where the caller closed it."""
    if sys.stdin is None:
        raise UsageError("standard input is closed; pipe something in, or </dev/null")
    return sys.stdin


def add_json(verb: argparse.ArgumentParser) -> None:
    """Option --json."""
    verb.add_argument("--json", action="store_true", help="print JSON, one object a line")


def print_json(value: Any, *, file: TextIO | None = None) -> None:
    """One object on one line; what JSON has no form for is printed as text, and times since 1970 also as ISO 8601."""
    print(json.dumps(with_times(value) if isinstance(value, dict) else value, default=str), file=file)


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as their content; numbers to the right. Control characters of labels are escaped."""
    lines = [[f"{cell:,}" if isinstance(cell, int) else escaped(str(cell)) for cell in row] for row in (headers, *rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(headers))]
    numeric = [
        len(column) > 1 and all(_NUMBER.fullmatch(cell) for cell in column[1:]) for column in zip(*lines, strict=True)
    ]
    for line in lines:
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        )
        print("  ".join(cells).rstrip())


def observed(entry: ErrorEntry) -> str:
    """An entry of an error log. Other hosts write such texts: their lines are indented, control characters escaped."""
    times = f"from {utc_time(entry.first_ms)} to {utc_time(entry.last_ms)}"
    lines = (escaped(line.rstrip().expandtabs(4)) for line in entry.text.rstrip().split("\n"))
    return f"{entry.count:,} observations {times}:\n" + "\n".join(f"  {line}" for line in lines)


def utc_time(epoch: int, a_second: int = 1000) -> str:
    """ISO 8601 of milliseconds since 1970, or of what there are so many of in a second."""
    try:
        whole = datetime.fromtimestamp(epoch // a_second, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{epoch} {_UNITS[a_second]} since 1970"
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{epoch % a_second:0{len(str(a_second)) - 1}d}Z"


def with_times(fields: Mapping[str, Any], *, keeps_numbers: bool = True) -> dict[str, Any]:
    """Behind each number that is a time since 1970, or in its place, the same as ISO 8601, its name without the unit."""
    found: dict[str, Any] = {}
    for name, value in fields.items():
        if keeps_numbers or name not in _TIMES:
            found[name] = value
        if name in _TIMES:
            found[name[:-3]] = None if value is None else utc_time(value, _TIMES[name])
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What was read the last time, and how long ago."""

    value: Any
    seconds: float

    def rate(self, now: int, then: int | None) -> str:
        """Change a second as a table shows it; empty where nothing changed."""
        return "" if then is None or then == now else f"{round((now - then) / self.seconds):+,}"


#: What a column of a table shows of a row.
Cell = Callable[[Any], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A column that only --watch shows: the change of `figure` a second since the row with the same `key` was read."""

    figure: Callable[[Any], int]
    key: Callable[[Any], object]
    #: Figure before of a row that is new; None: it has no rate yet.
    at_first: int | None = None

    def since(self, before: Before) -> Cell:
        """The column, compared with what was read before."""
        then = {self.key(row): self.figure(row) for row in before.value}
        return lambda row: before.rate(self.figure(row), then.get(self.key(row), self.at_first))


def show_rows(
    options: argparse.Namespace,
    read: Callable[[Counters], list[Any]],
    columns: Mapping[str, Cell | Rate],
    *,
    as_json: Callable[[Any], Any] = dataclasses.asdict,
    counted: str | None = None,
) -> int:
    """`show_counters` as a table or as JSON; below the table, the number of rows with the words `counted`."""

    def show(rows: list[Any], before: Before | None) -> None:
        if options.json:
            for row in rows:
                print_json(as_json(row))
            return
        cells: dict[str, Cell] = {}
        for header, column in columns.items():
            if not isinstance(column, Rate):
                cells[header] = column
            elif before is not None:
                cells[header] = column.since(before)
        print_table(list(cells), ([cell(row) for cell in cells.values()] for row in rows))
        if counted is not None:
            print(f"{len(rows)} {counted}")

    return show_counters(options, read, show)


def show_counters(
    options: argparse.Namespace, read: Callable[[Counters], _T], show: Callable[[_T, Before | None], None]
) -> int:
    """Read a driver's directory and show it, once or until Ctrl-C.

    Each time the directory is opened anew, so a driver that was started again is followed, and has no rates yet. A directory
    whose driver is dead is shown, too; then raises PeerError.
    """
    if options.watch is not None and not options.watch > 0:
        raise UsageError(f"--watch takes a number of seconds above 0, not {options.watch}")
    before: Before | None = None
    started_ms = 0
    try:
        while True:
            with open_counters(options.dir) as counters:
                driver, value, at = counters.driver(), read(counters), time.monotonic()
                is_screen = options.watch is not None and not options.json and sys.stdout.isatty()
                with _screen() if is_screen else nullcontext():
                    if not options.json:
                        _head(counters.aeron_dir, driver, again=before is not None and not is_screen)
                    show(value, before if driver.start_timestamp_ms == started_ms else None)
                sys.stdout.flush()
                _check_alive(counters.aeron_dir, driver)
            if options.watch is None:
                return 0
            time.sleep(options.watch)
            before, started_ms = Before(value=value, seconds=time.monotonic() - at), driver.start_timestamp_ms
    except KeyboardInterrupt:
        return 0


def add_directories(verb: argparse.ArgumentParser) -> None:
    """Options that name any number of Aeron directories and archives' folders."""
    verb.add_argument(
        "--dir",
        metavar="DIR",
        action="append",
        help=f"Aeron directory; repeatable (default: AERON_DIR, here {default_aeron_dir()}, unless archives are named)",
    )
    verb.add_argument(
        "--archive-dir", metavar="FOLDER", action="append", default=[], help="folder of an archive; repeatable"
    )


def chosen_dirs(options: argparse.Namespace) -> list[str]:
    """Aeron directories of `add_directories`."""
    return options.dir or ([] if options.archive_dir else [default_aeron_dir()])


def open_counters(directory: str | None) -> Counters:
    """The counters of a directory, by default AERON_DIR. StorageError: none are there, with what to do."""
    try:
        return Counters(directory)
    except StorageError as error:
        where = shlex.quote(str(directory or default_aeron_dir()))
        raise StorageError(
            f"{error}; start a driver there (aeron-spark driver --dir {where}), or name the directory of a running one "
            f"with --dir or AERON_DIR{other_drivers()}",
            code=error.code,
        ) from None


def _directories_in(folder: Path) -> list[Path]:
    """Of drivers; none where the folder is gone, or somebody else's."""
    try:
        return [path.parent for path in folder.glob("*/cnc.dat")]
    except OSError:
        return []


def other_drivers() -> str:
    """Where drivers do live, as a hint."""
    found = []
    shared_memory = Path("/dev/shm")  # noqa: S108 - where drivers make their directories
    folders = [shared_memory, *shared_memory.glob("aeron-spark-*")]
    # One pattern for both would look into folders, and fail at one that somebody removes meanwhile.
    for path in sorted(path for folder in folders for path in _directories_in(folder)):
        try:
            with Counters(path) as counters:
                if counters.driver().is_active:
                    found.append(str(path))
        except AeronError:
            continue
    return f"; there are drivers in {', '.join(found)}" if found else ""


@contextmanager
def _screen() -> Iterator[None]:
    """What is printed replaces what the terminal shows; its head stays in sight, what does not fit is counted."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        yield
    columns, height = shutil.get_terminal_size()
    lines = printed.getvalue().splitlines()
    room = max(2, height - 1)
    if len(lines) > room:
        more = f"... {len(lines) - room + 1} more lines, aeron-spark top scrolls them"
        lines[room - 1 :] = [more]
    print(_CLEAR + "\n".join(line[:columns] for line in lines))


def _head(aeron_dir: Path, driver: DriverInfo, *, again: bool) -> None:
    if again:
        print()
    age = "ended" if driver.heartbeat_ms is None else f"{int(time.time() * 1000) - driver.heartbeat_ms} ms old"
    print(f"{aeron_dir}: driver pid {driver.pid}, {'alive' if driver.is_active else 'dead'}, heartbeat {age}")


def _check_alive(aeron_dir: Path, driver: DriverInfo) -> None:
    if driver.is_active:
        return
    last = "it ended in order" if driver.heartbeat_ms is None else f"last heartbeat {utc_time(driver.heartbeat_ms)}"
    raise PeerError(
        f"the driver of {aeron_dir} is gone ({last}), these are its last figures: start one there "
        f"(aeron-spark driver --dir {shlex.quote(str(aeron_dir))}), or name the directory of a running one with "
        f"--dir{other_drivers()}"
    )

"""The tree keeps to ARCHITECTURE.md: rooms include downward only, and no file calls a banned function.

Method: the files of the tree that git would not ignore are read as text. Rules of inclusion are data, in `rooms.txt`.
"""

from __future__ import annotations

import ast
import os
import re
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PUBLIC = "aeron_spark/"
INCLUDE_ROOTS = (Path("driver_native/src"), Path("archive/src"), Path("aeron_spark/_native/kernels"))
# The executable that serves a driver and an archive from one process is the place where the two meet.
EXTRA_PUBLIC = {Path("archive/src/server/main.c"): {"as_driver.h"}}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)

BANNED_CALLS = {
    "strcpy": "use memcpy with a checked length",
    "strcat": "use snprintf",
    "sprintf": "use snprintf",
    "vsprintf": "use vsnprintf",
    "gets": "use fgets",
    "atoi": "use strtol and check what it read",
    "atol": "use strtol and check what it read",
    "atoll": "use strtoll and check what it read",
    "alloca": "use a bounded array",
    "assert": "test what comes from outside; AS_ASSERT is for our own mistakes",
}
MEMORY_ORDER = re.compile(r"\b(?:__ATOMIC_\w+|__atomic_\w+|__sync_\w+|memory_order_\w+|stdatomic|_Atomic)\b")
UNSEEDED = re.compile(
    r"random\.(?!Random\()\w+\(.*|random\.Random\((?![A-Z_]+\)).*|(?:secrets|np\.random)\..*|os\.urandom.*"
)
C_SLEEP = re.compile(r"\b(?:sleep|usleep|nanosleep|clock_nanosleep|thrd_sleep)\s*\(")
# A job of Spark that imports nothing of the tests, and benchmarks and attacks, which pace their load.
MAY_SLEEP = (Path("tests/system/cluster/job.py"), Path("tests/bench"), Path("tests/attack"))
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|home|root|Users|mnt|tmp/work)/[\w.-]")
TEXT_SUFFIXES = frozenset(
    (".c", ".h", ".py", ".pyi", ".txt", ".md", ".toml", ".cmake", ".java", ".xml", ".yml", ".yaml", ".cfg", "")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """One line of rooms.txt."""

    name: str
    folders: tuple[Path, ...]
    may_include: frozenset[str]
    public_headers: frozenset[str]


@cache
def rooms() -> tuple[Room, ...]:
    """Return the rooms in their order, lowest first."""
    found = []
    for line in (ROOT / "tests/arch/rooms.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, folders, included, public = (field.strip() for field in line.split("|"))
            found.append(
                Room(
                    name=name,
                    folders=tuple(Path(folder) for folder in folders.split()),
                    may_include=frozenset(included.split()),
                    public_headers=frozenset(public.split()),
                )
            )
    return tuple(found)


@cache
def files() -> tuple[Path, ...]:
    """Return what belongs to the project, relative to its root: all that `.gitignore` does not name."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        here = Path(folder).relative_to(ROOT)
        folders[:] = [name for name in folders if name != ".git" and not _is_ignored(here / name, is_folder=True)]
        found += [here / name for name in names if name != ".git" and not _is_ignored(here / name, is_folder=False)]
    return tuple(sorted(found))


def _is_ignored(path: Path, *, is_folder: bool) -> bool:
    """Return what git would say of a path: a slash in front makes a pattern one of the root, one behind one of folders."""
    return any(
        fnmatch(f"/{path}" if pattern.startswith("/") else path.name, pattern.rstrip("/"))
        for pattern in _ignored()
        if is_folder or not pattern.endswith("/")
    )


@cache
def _ignored() -> tuple[str, ...]:
    return tuple((ROOT / ".gitignore").read_text("utf-8").split())


def c_files(*, under: tuple[str, ...] = ("driver_native", "archive", "tests/c", "aeron_spark")) -> list[Path]:
    """Return the C sources and headers below some folders."""
    return [path for path in files() if path.suffix in {".c", ".h"} and any(path.is_relative_to(top) for top in under)]


@cache
def text_of(path: Path) -> str:
    """Return a file's text; bytes that are none of UTF-8 are replaced."""
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def code_of(path: Path) -> str:
    """Return C text with comments and string literals blanked, line breaks kept."""
    return COMMENT_OR_TEXT.sub(lambda found: "\n" * found.group().count("\n"), text_of(path))


def room_of(path: Path) -> Room | None:
    """Return the room a file lies in."""
    return next((room for room in rooms() if any(path.is_relative_to(folder) for folder in room.folders)), None)


def resolve(path: Path, included: str) -> Path | None:
    """Return the file an #include of a source names, looking where the compiler would."""
    own_root = [root for root in INCLUDE_ROOTS if path.is_relative_to(root)]
    others = [root for root in INCLUDE_ROOTS if root not in own_root]
    for folder in [path.parent, *own_root, *others]:
        if (ROOT / folder / included).is_file():
            return folder / included
    return None


def test_there_is_something_to_check() -> None:
    """The rules below see the tree: an empty list would please them all."""
    assert len(c_files(under=("driver_native/src", "archive/src"))) > len(rooms())
    assert {room.name for path in c_files() if (room := room_of(path)) is not None} == {room.name for room in rooms()}


def test_rooms_include_downward_only() -> None:
    """Every #include of a room is allowed by rooms.txt."""
    wrong = []
    for path in c_files(under=("driver_native/src", "archive/src")):
        room = room_of(path)
        if room is None:
            wrong.append(f"{path}: lies in no room")
            continue
        public = room.public_headers | EXTRA_PUBLIC.get(path, set())
        for included in INCLUDE.findall(text_of(path)):
            if included.startswith(PUBLIC):
                if included.removeprefix(PUBLIC) not in public:
                    wrong.append(f"{path}: room {room.name} may not include {included}")
                continue
            target = resolve(path, included)
            other = room_of(target) if target is not None else None
            if other is None:
                wrong.append(f"{path}: {included} is not found in any room")
            elif other.name != room.name and other.name not in room.may_include:
                wrong.append(f"{path}: room {room.name} may not include {included} of room {other.name}")
    assert wrong == []


def test_rooms_name_only_rooms_below() -> None:
    """rooms.txt itself has no circle: a room includes rooms listed before it."""
    seen: set[str] = set()
    for room in rooms():
        assert room.may_include <= seen, f"{room.name} includes a room listed after it"
        assert all((ROOT / folder).is_dir() for folder in room.folders)
        seen.add(room.name)


@pytest.mark.parametrize("call", sorted(BANNED_CALLS))
def test_banned_calls_are_absent(call: str) -> None:
    """No C file calls a banned function."""
    pattern = re.compile(rf"(?<![\w.>]){call}\s*\(")
    assert [str(path) for path in c_files() if pattern.search(code_of(path))] == [], BANNED_CALLS[call]


def test_memory_orders_are_named_in_one_place() -> None:
    """Only base/atomic.h names memory orders and atomic builtins."""
    home = Path("driver_native/src/base/atomic.h")
    assert [str(path) for path in c_files() if path != home and MEMORY_ORDER.search(code_of(path))] == []


def calls_sleep(path: Path) -> bool:
    """Return whether a Python file calls something named sleep; text that holds such a call does not count."""
    return any(
        isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "sleep"
        for node in ast.walk(ast.parse(text_of(path)))
    )


def test_no_test_sleeps() -> None:
    """Tests wait for events with a deadline (`aeron_spark.testing.wait_until`)."""
    c_sleepers = [path for path in c_files(under=("tests",)) if C_SLEEP.search(code_of(path))]
    python = [path for path in files() if path.suffix == ".py" and path.is_relative_to("tests")]
    sleepers = [*c_sleepers, *(path for path in python if calls_sleep(path))]
    wrong = [str(path) for path in sleepers if not any(path.is_relative_to(allowed) for allowed in MAY_SLEEP)]
    assert wrong == []


def test_chance_is_the_seeds() -> None:
    """A test draws numbers from the fixtures that `--seed` repeats, or from a seed that is written down."""
    wrong = [
        f"{path}: {ast.unparse(node)}"
        for path in files()
        if path.name.startswith("test_") and path.suffix == ".py"
        for node in ast.walk(ast.parse(text_of(path)))
        if isinstance(node, ast.Call) and UNSEEDED.fullmatch(ast.unparse(node))
    ]
    assert wrong == []


def test_no_header_is_dead() -> None:
    """Every header is included by some other file, or is public."""
    headers = [path for path in c_files() if path.suffix == ".h" and path.parent.name != "aeron_spark"]
    included = {
        resolved
        for path in c_files()
        for name in INCLUDE.findall(text_of(path))
        for resolved in [resolve(path, name) or Path("tests/c") / name]
    }
    assert [str(path) for path in headers if path not in included] == []


def test_no_source_is_dead() -> None:
    """Every C source lies where a CMakeLists.txt globs or names it."""
    patterns = []
    for path in files():
        if path.name == "CMakeLists.txt":
            names = re.findall(r"(?<![\w/.-])(?:\$\{\w+\}/)?([\w*{}$/.-]+\.c)\b", text_of(path))
            names = [name.replace("${room}", "*") for name in names]
            patterns += [str(path.parent / name) if not name.startswith("tests/") else name for name in names]
    sources = [path for path in c_files() if path.suffix == ".c"]
    assert [str(path) for path in sources if not any(path.match(pattern) for pattern in patterns)] == []


def test_no_machine_paths() -> None:
    """Nothing committed names a place on somebody's machine."""
    wrong = [str(path) for path in files() if path.suffix in TEXT_SUFFIXES and MACHINE_PATH.search(text_of(path))]
    assert wrong == []

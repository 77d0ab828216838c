"""The C libraries as their users have them: installed from the build, linked by the programs of examples/c."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from aeron_spark import __version__
from tests.arch.test_must_use import PUBLIC, declared
from tests.kit import abi, require

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "native"
EXAMPLES = ROOT / "examples" / "c"
PAGE = (ROOT / "docs" / "c.md").read_text("utf-8")
LIBRARY = f"libaeron_spark.so.{__version__}"
MINOR = ".".join(__version__.split(".")[:2])
TOOLS = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
HEADERS = {path.name for path in PUBLIC if "kernels" not in path.parts}  # those are of Python's extension


def run(*command: object, cwd: Path | None = None, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "PATH": TOOLS, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def install(prefix: Path, *components: str) -> set[str]:
    """Install components of the build; the files, relative to the prefix."""
    for component in components:
        run("cmake", "--install", BUILD, "--prefix", prefix, "--component", component)
    return {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Installed, then moved: nothing may hold the path of its installation."""
    first = tmp_path_factory.mktemp("first") / "aeron"
    install(first, "library", "development", "executables")
    moved = tmp_path_factory.mktemp("moved") / "aeron"
    first.rename(moved)
    return moved


def test_each_component_has_its_files(tmp_path: Path) -> None:
    assert install(tmp_path / "l", "library") == {f"lib/{LIBRARY}", f"lib/libaeron_spark.so.{MINOR}"}
    assert install(tmp_path / "e", "executables") == {"bin/aeron-spark-driver", "bin/aeron-spark-archive"}
    development = install(tmp_path / "d", "development")
    assert {Path(name).name for name in development if name.startswith("include/aeron_spark/")} == HEADERS
    assert {name for name in development if name.startswith("lib/") and name.count("/") == 1} == {
        "lib/libaeron_spark.so",
        "lib/libaeron_spark.a",
    }
    assert "lib/pkgconfig/aeron_spark.pc" in development
    assert "lib/cmake/aeron_spark/aeron_sparkConfig.cmake" in development


def symbols(library: Path, *options: str) -> set[str]:
    listed = run("nm", "--defined-only", "--format=posix", *options, library).splitlines()
    return {line.split()[0] for line in listed if len(line.split()) > 2}


def test_exported_is_what_the_headers_declare(prefix: Path) -> None:
    told = {name for path in PUBLIC if path.name in HEADERS for _, name, _, _ in declared(path)}
    assert len(told) > 200
    assert symbols(prefix / "lib" / LIBRARY, "--dynamic") == told
    archive = symbols(prefix / "lib" / "libaeron_spark.a", "--extern-only")
    assert {name for name in archive if not name.startswith(("as_", "asi_"))} == set()
    assert told <= archive


def test_the_library_is_named_by_its_interface(prefix: Path) -> None:
    dynamic = run("readelf", "--dynamic", "--wide", prefix / "lib" / LIBRARY)
    assert re.findall(r"SONAME.*\[(.*)\]", dynamic) == [f"libaeron_spark.so.{MINOR}"]
    assert set(re.findall(r"NEEDED.*\[(.*?)\.so", dynamic)) <= {
        "libc",
        "libm",
        "libpthread",
        "libdl",
        "ld-linux-x86-64",
    }


def block(heading: str, replaced: Mapping[str, object]) -> str:
    """The commands of a section of the page, with folders of the test's own."""
    text = PAGE.split(f"## {heading}\n", 1)[1].split("```sh\n", 1)[1].split("```", 1)[0]
    for told, own in replaced.items():
        assert told in text, told
        text = text.replace(told, str(own))
    return f"set -euo pipefail\n{text}"


def test_the_page_installs_what_there_is() -> None:
    for option in re.findall(r"-D(AERON\w+)", PAGE):
        assert f"option({option} " in (ROOT / "CMakeLists.txt").read_text("utf-8"), option
    parts = re.findall(r"`(library|development|executables)`", PAGE)
    rules = (ROOT / "driver_native" / "cmake" / "libraries.cmake").read_text("utf-8")
    assert set(parts) == set(re.findall(r"COMPONENT (\w+)", rules))


def test_examples_record_and_read(prefix: Path, tmp_path: Path) -> None:
    """By find_package, then by FetchContent, as the page says it."""
    own = {"build/": f"{tmp_path}/"}
    out = run("bash", "-c", block("With find_package", {"/opt/aeron": prefix, **own}), cwd=ROOT)
    assert re.search(r": 1000 messages, \d+ bytes\n$", out)
    assert "libaeron_spark.so" in run("ldd", tmp_path / "record" / "record")
    out = run("bash", "-c", block("With FetchContent", own), cwd=ROOT, CMAKE_GENERATOR="Ninja")
    assert re.search(
        r"\nrecording 0: stream 1001 of aeron:ipc.*, 0 to \d+\n  first, at 0: message 0\n  1000 messages\n$", out
    )
    assert "libaeron_spark" not in run("ldd", tmp_path / "read" / "read")
    rules = tmp_path / "read" / "_deps" / "aeron_spark-build" / "cmake_install.cmake"
    assert "libaeron_spark" not in rules.read_text("utf-8"), "another project's installation is not ours to fill"


@pytest.mark.interop
def test_example_publishes_and_receives(prefix: Path, tmp_path: Path, aeron_dir: Path) -> None:
    """By pkg-config; and once more with the static library."""
    require.beyond("pkg-config")
    if shutil.which("pkg-config") is None:
        require.missing("no pkg-config: install pkgconf, for the C libraries")
    folder = tmp_path / "pkg_config"
    shutil.copytree(EXAMPLES / "pkg_config", folder)
    own = {"/opt/aeron": prefix, "/dev/shm/aeron-docs": aeron_dir, "examples/c/pkg_config": folder}  # noqa: S108
    out = run("bash", "-c", block("With pkg-config", own), cwd=ROOT).splitlines()
    assert [line.split(",")[0] for line in out if line.startswith("hello ")] == [f"hello {i}" for i in range(10)]
    search = {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    assert run("pkg-config", "--modversion", "aeron_spark", **search).strip() == __version__
    flags = run("pkg-config", "--static", "--cflags", "--libs", "aeron_spark", **search)
    run(
        "gcc",
        folder / "hello.c",
        "-o",
        tmp_path / "static",
        *flags.replace("-laeron_spark", "-l:libaeron_spark.a").split(),
    )


@pytest.mark.interop
def test_the_binary_interface_is_the_known_one(prefix: Path, tmp_path: Path) -> None:
    """An addition fails, too: whoever changes the interface sees it, and writes the new baseline."""
    require.beyond("abidiff")
    if shutil.which("abidiff") is None:
        require.missing("no abidiff: install abigail-tools, for the interface of the C library")
    if platform.machine() != "x86_64":
        pytest.skip("the baseline is of x86_64")
    now = tmp_path / "libaeron_spark.abi"
    abi.describe(prefix / "lib" / LIBRARY, prefix / "include", now)
    changed = abi.difference(now)
    assert changed == "", (
        f"on purpose? `make abi`; and, if a released one breaks, another version in VERSION\n{changed}"
    )

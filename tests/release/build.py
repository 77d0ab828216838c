"""`make release`: wheels and source archive of the commit into a folder, the same bytes each time.

python -m tests.release.build FOLDER [--only PLATFORM]...

Each file is built twice, from two exports of the commit at different paths; another hash is an error. One x86_64 machine
suffices: ziglang is the compiler, with the headers and libraries of each target. The jar in the wheels needs a JDK; another one
makes other bytes of it. SHA256SUMS and the release notes (the section
of CHANGELOG.md) lie beside the files. `check.py` checks what this makes.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "release"
#: What a wheel's name says of its platform, and how zig names the target.
TARGETS = {
    "manylinux_2_28_x86_64": "x86_64-linux-gnu.2.28",
    "manylinux_2_28_aarch64": "aarch64-linux-gnu.2.28",
    "musllinux_1_2_x86_64": "x86_64-linux-musl",
    "musllinux_1_2_aarch64": "aarch64-linux-musl",
}
#: What zig compiles of the targets' libraries serves all builds. Objects of two trees differ in their paths: each has its own.
ZIG_CACHE = {f"ZIG_{scope}_CACHE_DIR": str(ROOT / "build" / "zig") for scope in ("GLOBAL", "LOCAL")}
#: Of different length, so that a path that gets into a file changes its size.
EXPORTS = ("one", "the-other")


def git(*arguments: str) -> bytes:
    """What git answers of this repository."""
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True).stdout  # noqa: S607


def exported(folder: Path) -> Path:
    """The commit's files, without what is not committed."""
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(git("archive", "HEAD"))) as files:
        files.extraction_filter = lambda member, _: member
        files.extractall(folder)  # noqa: S202 - our own files
    return folder


def made(tree: Path, hook: str, settings: dict[str, str], platform: str = "") -> Path:
    """The file that the build backend makes of a tree: `hook` is build_wheel or build_sdist."""
    out = tree.parent / f"{tree.name}-made"
    environment = {
        **os.environ,
        "SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct").decode().strip(),
        **ZIG_CACHE,
        **({"_PYTHON_HOST_PLATFORM": platform} if platform else {}),
    }
    program = f"from scikit_build_core import build; print(build.{hook}({str(out)!r}, {settings!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{hook} {platform} in {tree} failed:\n{done.stdout}{done.stderr}")
    return out / done.stdout.splitlines()[-1]


def zig() -> Path:
    """The compiler's executable."""
    import ziglang  # of the extra `release`; TARGETS is for all

    return Path(ziglang.__file__).parent / "zig"


def wheel(tree: Path, platform: str) -> Path:
    """The wheel for a platform."""
    settings = {
        "build-dir": str(tree.parent / f"{tree.name}-{platform}"),
        "cmake.define.CMAKE_TOOLCHAIN_FILE": str(ROOT / "tests" / "release" / "zig.cmake"),
        "cmake.define.ZIG": str(zig()),
        "cmake.define.ZIG_TARGET": TARGETS[platform],
        "wheel.reproducible": "true",
    }
    return in_order(made(tree, "build_wheel", settings, platform))


def in_order(path: Path) -> Path:
    """The wheel with its files in the order of their names; the backend takes those of .dist-info as a folder lists them."""
    with zipfile.ZipFile(path) as packed:
        files = {info.filename: (info, packed.read(info)) for info in packed.infolist()}
    (record,) = [name for name in files if name.endswith(".dist-info/RECORD")]
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    names = sorted(files.keys() - {record}, key=lambda name: (".dist-info/" in name, name))
    for name in names:
        digest = urlsafe_b64encode(hashlib.sha256(files[name][1]).digest()).decode().rstrip("=")
        writer.writerow((name, f"sha256={digest}", len(files[name][1])))
    writer.writerow((record, "", ""))
    files[record] = (files[record][0], rows.getvalue().encode())
    with zipfile.ZipFile(path, "w") as packed:
        for name in (*names, record):
            packed.writestr(*files[name], compress_type=zipfile.ZIP_DEFLATED, compresslevel=9)
    return path


def sha256(path: Path) -> str:
    """Hash of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def notes(version: str) -> str:
    """The section of CHANGELOG.md on a version, with its heading."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    found = re.search(rf"^## {re.escape(version)} .*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit(f"CHANGELOG.md has no heading `## {version} (date)`: write what users get from this release")
    return found[0].strip() + "\n"


def main() -> None:
    """Build all, twice, and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the files go; what is there is removed")
    parser.add_argument("--only", action="append", choices=TARGETS, help="a platform of a wheel, instead of all")
    options = parser.parse_args()

    if changed := git("status", "--porcelain").decode():
        print(f"not committed, so not in the release:\n{changed}", end="")
    if shutil.which("javac") is None:
        raise SystemExit("no javac: the wheels hold a jar, install a JDK of Java 17")
    head = git("rev-parse", "HEAD")
    version = (ROOT / "VERSION").read_text("utf-8").strip()
    release_notes = notes(version)
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    trees = [exported(WORK / name) for name in EXPORTS]
    begun = datetime.now(tz=UTC)
    for what in ("sdist", *(options.only or TARGETS)):
        builds = [made(tree, "build_sdist", {}) if what == "sdist" else wheel(tree, what) for tree in trees]
        if git("rev-parse", "HEAD") != head:
            raise SystemExit("HEAD moved while its release was built: begin again")
        hashes = {sha256(build) for build in builds}
        if len(hashes) != 1:
            raise SystemExit(
                f"two builds of one commit differ: {' '.join(map(str, builds))}; compare them by diffoscope"
            )
        path = Path(shutil.copy(builds[0], options.folder))
        seconds = (datetime.now(tz=UTC) - begun).total_seconds()
        print(
            f"[{seconds:3.0f} s] {path.name}, {path.stat().st_size / 1e6:.2f} MB, twice sha256 {hashes.pop()}",
            flush=True,
        )
    files = sorted(options.folder.iterdir())
    (options.folder / "SHA256SUMS").write_text("".join(f"{sha256(path)}  {path.name}\n" for path in files))
    (options.folder / "RELEASE_NOTES.md").write_text(release_notes, "utf-8")


if __name__ == "__main__":
    main()

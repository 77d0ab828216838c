"""`make release`: checks the files that `build.py` made, each by the tool of its kind and by what this project promises of it.

python -m tests.release.check FOLDER
"""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

from elftools.elf.elffile import ELFFile

from tests.release.build import ROOT, TARGETS

MAX_BYTES = 6_000_000
BIN = Path(sys.executable).parent
EXTENSION = "aeron_spark/_native/_lib.abi3.so"
#: ELF files of a wheel, and the symbols that each exports.
EXPORTS = {EXTENSION: {"PyInit__lib"}, "aeron-spark-driver": set[str](), "aeron-spark-archive": set[str]()}
#: The jar of the engine in Spark's JVM is in each wheel; its library is for the wheel's platform.
JAR, JNI_LIBRARY = "aeron_spark/spark/aeron-spark.jar", "aeronspark/libaeron_spark_jni.so"
#: Only the libc, in the parts that glibc 2.28 has.
LIBRARIES = {
    "manylinux": {
        "libc.so.6",
        "libm.so.6",
        "libpthread.so.0",
        "libdl.so.2",
        "ld-linux-x86-64.so.2",
        "ld-linux-aarch64.so.1",
    },
    "musllinux": {"libc.so"},
}


def run(*command: str | Path) -> str:
    """Run a tool; what it prints is shown where it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return " ".join(done.stdout.split())


def check_platform(wheel: Path, platform: str) -> None:
    """What the wheel needs by auditwheel is not more than its name says."""
    said = run(BIN / "auditwheel", "show", "--ldpaths", "/nonexistent", wheel)  # not the libraries of this machine
    if platform.startswith("musllinux"):
        # auditwheel knows Alpine's file name of the libc alone. musl's loader takes any name that begins with "libc.".
        assert 'libraries are required by the wheel: { "libc.so": null }' in said, said
        return
    needed = re.search(r'platform tag: "(\w+?linux)_(\d+)_(\d+)_(\w+)"', said)
    named = re.fullmatch(r"(\w+?linux)_(\d+)_(\d+)_(\w+)", platform)
    assert needed, said
    assert named, said
    assert needed[1] == named[1], said
    assert needed[4] == named[4], said
    assert (int(needed[2]), int(needed[3])) <= (int(named[2]), int(named[3])), said


def check_elf(name: str, body: bytes, platform: str, exports: set[str]) -> None:
    """Stripped, for the machine, with hidden symbols, no library but the libc, no path of the machine that built it."""
    elf = ELFFile(BytesIO(body))
    assert {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64"}[elf["e_machine"]] in platform, name
    sections = {section.name: section for section in elf.iter_sections()}
    assert not [section for section in sections if section == ".symtab" or section.startswith(".debug")], name
    # Exported is what is defined, global and not hidden; an executable's own start and end are no interface.
    exported = {
        symbol.name
        for symbol in sections[".dynsym"].iter_symbols()
        if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] != "STB_LOCAL"
    }
    assert exported == exports, f"{name} exports {exported}"
    needed = {tag.needed for tag in sections[".dynamic"].iter_tags() if tag.entry.d_tag == "DT_NEEDED"}
    assert needed <= LIBRARIES[platform.partition("_")[0]], f"{name} needs {needed}"
    assert str(ROOT).encode() not in body, name


def check_wheel(wheel: Path) -> None:
    """All that is promised of a wheel."""
    platform = wheel.stem.rpartition("-")[2]
    assert platform in TARGETS, wheel.name
    assert "-cp311-abi3-" in wheel.name
    assert wheel.stat().st_size <= MAX_BYTES, f"{wheel.name}: {wheel.stat().st_size:,} bytes"
    run(BIN / "abi3audit", "--strict", wheel)
    check_platform(wheel, platform)
    version = (ROOT / "VERSION").read_text("utf-8").strip()
    with zipfile.ZipFile(wheel) as packed:
        modes = {info.filename: info.external_attr >> 16 for info in packed.infolist()}
        for name, exports in EXPORTS.items():
            (path,) = [path for path in modes if path.endswith(name)]
            check_elf(name, packed.read(path), platform, exports)
            assert name == EXTENSION or modes[path] & stat.S_IXOTH, f"{path} cannot be run"
        with zipfile.ZipFile(BytesIO(packed.read(JAR))) as jar:
            assert jar.read("aeronspark/version").decode() == version
            check_elf(JNI_LIBRARY, jar.read(JNI_LIBRARY), platform, {"JNI_OnLoad"})
        info = f"aeron_spark-{version}.dist-info"
        assert packed.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        (sbom,) = [path for path in modes if path.startswith(f"{info}/sboms/")]
        described = json.loads(packed.read(sbom))["metadata"]["component"]
        assert described["version"] == version
        assert not [path for path in modes if path.endswith((".c", ".h", ".in", "CMakeLists.txt", ".pyc"))]


def check_sdist(sdist: Path) -> None:
    """What a build needs is there; what only this repository needs is not."""
    with tarfile.open(sdist) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"CMakeLists.txt", "pyproject.toml", "LICENSE", "VERSION", "aeron_spark/_native/exports.map"} <= names
    assert not [name for name in names if name.startswith((".ci", "tests/", "build/"))]


def main() -> None:
    """Check all files of the folder."""
    folder = Path(sys.argv[1])
    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    run(BIN / "twine", "check", "--strict", *wheels, *sdists)
    for wheel in wheels:
        check_wheel(wheel)
    (sdist,) = sdists
    check_sdist(sdist)
    run("sh", "-c", f"cd '{folder}' && sha256sum --check --strict SHA256SUMS")
    print(f"{len(wheels)} wheels and the source archive passed twine, abi3audit, auditwheel and our own checks")


if __name__ == "__main__":
    main()

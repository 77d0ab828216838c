"""Runs a command as a unit of conf/systemd would: its system calls, address families, capabilities, umask and memory rule.

    python -m tests.kit.sandbox FOLDER              makes a folder for AERON_SPARK_BIN whose executables run like this
    python -I tests/kit/sandbox.py PLAN COMMAND...  is what they do

A call that the unit does not allow ends the process (SIGSYS), where systemd would answer EPERM: a test must see it.
The file system's rules are left out, as tests have folders of their own.
Needs Debian's systemd (systemd-analyze, for what its sets of calls are) and gcc (for the calls' numbers).
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import re
import shlex
import socket
import struct
import subprocess
import sys
from pathlib import Path

UNITS = Path(__file__).resolve().parents[2] / "conf" / "systemd"
PROGRAMS = ("aeron-spark-driver", "aeron-spark-archive")

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_KILL_PROCESS, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_PR_CAPBSET_DROP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _PR_SET_MDWE = 24, 22, 38, 65


def settings(unit: str) -> dict[str, list[str]]:
    """The settings of a unit's [Service] part, each with its values in order."""
    found: dict[str, list[str]] = {}
    part = (UNITS / f"{unit}.service").read_text("utf-8").split("[Service]")[1].split("[Install]")[0]
    for name, value in re.findall(r"^(\w+)=(.*)$", part, re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


def _members(name: str) -> set[str]:
    """The calls that a set (`@...`) stands for, or the call itself."""
    if not name.startswith("@"):
        return {name}
    listed = subprocess.run(
        ["systemd-analyze", "syscall-filter", name],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")[1:]
    words = [line.strip() for line in listed if line.strip() and not line.strip().startswith("#")]
    return set().union(*map(_members, words))


def allowed_calls(unit: str) -> set[str]:
    """The names of the system calls that the unit allows."""
    allowed: set[str] = set()
    for line in settings(unit)["SystemCallFilter"]:
        names = set().union(*map(_members, line.removeprefix("~").split()))
        allowed = allowed - names if line.startswith("~") else allowed | names
    return allowed


def _numbers() -> dict[str, int]:
    defines = subprocess.run(
        ["gcc", "-E", "-dM", "-include", "sys/syscall.h", "-xc", "/dev/null"],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return {name: int(number) for name, number in re.findall(r"^#define __NR_(\w+) (\d+)$", defines, re.MULTILINE)}


def plan(unit: str) -> dict[str, object]:
    """What a process needs to know to run as the unit: made once, as it takes other programs."""
    numbers, asked = _numbers(), settings(unit)
    return {
        "calls": sorted(numbers[name] for name in allowed_calls(unit) if name in numbers),
        "socket": numbers["socket"],
        "families": sorted(getattr(socket, name) for name in asked["RestrictAddressFamilies"][0].split()),
        "umask": int(asked["UMask"][0], 8),
        "no_writable_code": asked["MemoryDenyWriteExecute"] == ["yes"],
    }


def folder(where: Path, native: dict[str, Path]) -> Path:
    """A folder with an executable for each of ours that runs it as its unit; `native` are the real ones."""
    where.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        facts = where / f"{name}.json"
        facts.write_text(json.dumps(plan(name)), "utf-8")
        script = where / name
        words = [sys.executable, "-I", str(Path(__file__).resolve()), str(facts), str(native[name])]
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', "utf-8")
        script.chmod(0o755)
    return where


def _filter(facts: dict[str, object]) -> bytes:
    """The seccomp program: this architecture, these address families, these calls."""
    families, calls = facts["families"], facts["calls"]
    assert isinstance(families, list)
    assert isinstance(calls, list)

    def load(offset: int) -> bytes:
        return struct.pack("=HBBI", 0x20, 0, 0, offset)

    def unless_equal(value: int, skip: int) -> bytes:
        return struct.pack("=HBBI", 0x15, 0, skip, value)

    def answer(action: int) -> bytes:
        return struct.pack("=HBBI", 0x06, 0, 0, action)

    refused = answer(_ERRNO | 97)  # EAFNOSUPPORT, as systemd answers
    by_family = load(16) + b"".join(unless_equal(family, 1) + answer(_ALLOW) for family in families) + refused
    program = load(4)
    program += struct.pack("=HBBI", 0x15, 1, 0, _ARCHITECTURES[platform.machine()]) + answer(_KILL_PROCESS)
    program += load(0) + unless_equal(int(str(facts["socket"])), len(by_family) // 8) + by_family
    program += b"".join(unless_equal(call, 1) + answer(_ALLOW) for call in calls)
    return program + answer(_KILL_PROCESS)


def _enter(facts: dict[str, object]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    def prctl(option: int, *values: object) -> int:
        return int(libc.prctl(option, *values, *[ctypes.c_ulong(0)] * (4 - len(values))))

    for capability in range(64):
        prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability))  # those that are none, or not ours to drop, answer an error
    os.umask(int(str(facts["umask"])))
    program = ctypes.create_string_buffer(_filter(facts))
    length = (len(program) - 1) // 8
    header = ctypes.create_string_buffer(struct.pack("@HP", length, ctypes.addressof(program)))
    if prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1)) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    if facts["no_writable_code"]:
        prctl(_PR_SET_MDWE, ctypes.c_ulong(1))  # kernels before 6.3 have no such rule
    if prctl(_PR_SET_SECCOMP, ctypes.c_ulong(2), ctypes.byref(header)) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def main() -> None:
    facts, *command = sys.argv[1:]
    if not command:
        real = Path(sys.executable).parent
        folder(Path(facts).resolve(), {name: real / name for name in PROGRAMS})
        return
    _enter(json.loads(Path(facts).read_text("utf-8")))
    os.execv(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()

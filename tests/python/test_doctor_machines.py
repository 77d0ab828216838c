"""`aeron-spark doctor` and what servers take by default on machines that lack something."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from aeron_spark import doctor, doctor_facts
from aeron_spark.config import default_aeron_dir
from aeron_spark.doctor import Finding
from aeron_spark.ui.watch import Watch
from tests.kit import native
from tests.kit.cnc import PID_OFFSET


def test_what_lies_below_a_folder_that_may_not_be_searched(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "below").mkdir(parents=True)
    closed.chmod(0)
    given_up = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    below = str(closed / "below")
    command = [
        sys.executable,
        "-m",
        "aeron_spark",
        "doctor",
        "--json",
        "--dir",
        below,
        "-D",
        f"aeron.archive.dir={below}",
    ]
    done = subprocess.run([*given_up, *command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    found = [Finding(**json.loads(line)) for line in done.stdout.splitlines()]
    assert any(finding.about == "driver" and "Permission denied" in finding.text for finding in found)
    assert any(finding.about == "archive folder" and "Permission denied" in finding.text for finding in found)


def test_facts_of_odd_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A uid without a name; a link that leads nowhere; a Java that prints no UTF-8; endpoints that no resolver takes."""

    def nobody(uid: int) -> None:
        raise KeyError(uid)

    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_bytes(b"#!/bin/sh\nprintf 'openjdk version \"17\" \\377\\n' >&2\n")
    java.chmod(0o755)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "none")
    monkeypatch.setattr("pwd.getpwuid", nobody)
    monkeypatch.delenv("USER", raising=False)
    monkeypatch.delenv("AERON_DIR", raising=False)
    assert str(default_aeron_dir()) == "/dev/shm/aeron-default"  # noqa: S108 - as the C client names it
    for name in ("a..b", "a" * 70):
        defines = [f"aeron.archive.control.channel=aeron:udp?endpoint={name}:8010", f"aeron.archive.dir={link}"]
        facts = doctor_facts.gather(link, defines=defines, environment={"JAVA_HOME": str(tmp_path)})
        assert facts.user == "default"
        assert facts.java_version == 17
        assert doctor.check(facts)


@pytest.mark.parametrize(
    ("endpoint", "trouble"),
    [
        ("127.0.0.1:99999", "127.0.0.1:99999 has a port above 65535"),
        ("192.0.2.77:8010", "192.0.2.77:8010 is no address of this machine"),
        ("a..b:8010", "a..b:8010 has a name that cannot be resolved: "),
        ("nobody.invalid:8010", "nobody.invalid:8010 has a name that cannot be resolved: "),
        ("127.0.0.1:0", ""),
    ],
)
def test_an_endpoint_that_no_archive_can_have_is_not_called_in_use(endpoint: str, trouble: str) -> None:
    facts = doctor_facts.gather(defines=[f"aeron.archive.control.channel=aeron:udp?endpoint={endpoint}"])
    assert facts.archive_port_in_use == ""
    assert facts.archive_endpoint_trouble.startswith(trouble)
    assert bool(facts.archive_endpoint_trouble) == bool(trouble)


@pytest.mark.parametrize(("text", "length"), [("64k", 65536), ("16mb", 16 << 20), ("1G", 1 << 30), ("0", 0)])
def test_lengths_are_as_the_servers_take_them(text: str, length: int) -> None:
    assert doctor_facts.size("x", text) == length


def test_a_process_that_has_the_drivers_number_in_another_container_is_not_the_driver(aeron_dir: Path) -> None:
    """The container is played: the number in the file becomes that of a process that has nothing to do with it."""
    with native.driver(aeron_dir) as driver:
        assert [one.pid for one in doctor_facts.gather(aeron_dir).processes] == [driver.pid]
        with (aeron_dir / "cnc.dat").open("r+b") as file:
            file.seek(PID_OFFSET)
            file.write(os.getpid().to_bytes(8, "little"))
        facts = doctor_facts.gather(aeron_dir)
        assert facts.driver is not None
        assert (facts.driver.pid, facts.driver.is_active, facts.processes) == (os.getpid(), True, [])


def test_a_port_in_use_is_seen() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        channel = f"aeron:udp?endpoint=127.0.0.1:{taken.getsockname()[1]}"
        facts = doctor_facts.gather(defines=[f"aeron.archive.control.channel={channel}"])
    assert facts.archive_port_in_use == f"127.0.0.1:{channel.rpartition(':')[2]}"


def test_folders_that_may_not_be_searched(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    # Root may look everywhere, but for what it was told to give up.
    given_up = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    command = [sys.executable, "-m", "aeron_spark", "doctor", "--json", "--dir", str(closed)]
    done = subprocess.run(
        [*given_up, *command, "-D", f"aeron.archive.dir={closed}"], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    found = [Finding(**json.loads(line)) for line in done.stdout.splitlines()]
    for about in ("driver", "archive folder"):
        first = next(finding for finding in found if finding.about == about)
        assert "Permission denied" in first.text
        assert first.remedy.startswith(f"sudo -u {closed.owner()} aeron-spark ")


@pytest.mark.parametrize(
    ("look", "about"),
    [
        ("_driver", "driver"),
        ("_disk", "shared memory"),
        ("archive_facts", "archive folder"),
        ("java_version", "java"),
        ("_endpoint", "archive"),
        ("owner", "directory"),
        ("_directories", "directory"),
        ("_native_version", "versions"),
        ("misspelt", "settings"),
        ("_pyspark_version", "python"),
        ("credentials_facts", "credentials"),
        ("_processes", "open files"),
    ],
)
def test_what_one_part_raises_keeps_none_from_the_others(
    aeron_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str, about: str
) -> None:
    """The page answers with it, too: HTTP 500 was all that it said."""

    def fail(*_: object) -> None:
        raise ValueError("odd\x1b[2J")

    monkeypatch.setattr(doctor_facts, look, fail)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    seen = {one.about: one for one in Watch([str(aeron_dir)], []).findings()}
    assert (seen[about].level, seen[about].text) == ("error", "this could not be looked at: ValueError: odd\\u001b[2J")
    assert {"sockets", "threads", "limits"} <= seen.keys()


def test_a_part_that_failed_is_not_guessed(aeron_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Path) -> None:
        raise ValueError

    monkeypatch.setattr(doctor_facts, "_driver", fail)
    found = doctor.check(doctor_facts.gather(aeron_dir))
    assert [one.text for one in found if one.about == "driver"] == ["this could not be looked at: ValueError: "]


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to a user without a name")
def test_a_user_without_a_name_is_named_as_commands_take_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    os.chown(folder, 54321, -1)
    facts = doctor_facts.gather(folder)
    assert facts.dir_owner == "54321"
    (found,) = doctor.check_driver(replace(facts, driver_trouble="odd", dir_is_writable=False))
    assert found.remedy.startswith("sudo -u '#54321' aeron-spark doctor")

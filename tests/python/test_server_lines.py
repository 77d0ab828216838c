"""The service log: that servers start and are ready, each distinct error as it comes and then its count, why they end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import aeron_spark
from aeron_spark import Archive, Client, Counters, MediaDriver
from aeron_spark.errors import AeronError
from tests.kit import native
from tests.kit.manager import Manager
from tests.kit.processes import Process, driver_ready
from tests.kit.wait import wait_until

BAD_CHANNEL = "aeron:udp?endpoint=nowhere.invalid:40123"


def lines(text: str) -> list[str]:
    return text.splitlines()


def fail_to_publish(aeron_dir: Path) -> None:
    with Client(aeron_dir) as client, pytest.raises(AeronError):
        client.add_publication(BAD_CHANNEL, 7)


LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|WARNING|ERROR) (driver|archive): (.*)")


def log(process: Process) -> list[tuple[str, str, str]]:
    """Level, module and the rest of each line of standard error."""
    found = [LINE.fullmatch(line) for line in lines(process.stderr())]
    assert None not in found, process.stderr()
    return [(one[1], one[2], one[3]) for one in found if one is not None]


def errors(process: Process) -> list[str]:
    return [f"{module}: {text}" for level, module, text in log(process) if level == "ERROR"]


def test_a_driver_tells_its_life(aeron_dir: Path) -> None:
    driver = native.driver(aeron_dir)
    wait_until(lambda: "ready" in driver.stderr(), 10, "the line", state=driver.report)
    start, ready = log(driver)
    assert start[:2] == ready[:2] == ("INFO", "driver")
    assert start[2].startswith(f"starting version={aeron_spark.__version__} commit=")
    assert f" pid={driver.pid} dir={aeron_dir} settings=" in start[2]
    assert " aeron.threading.mode=SHARED" in start[2]
    assert "aeron.mtu.length" not in start[2], "only what differs from its default"
    assert ready[2] == f"ready pid={driver.pid} dir={aeron_dir} threads=SHARED"
    assert driver.stdout() == ""

    fail_to_publish(aeron_dir)
    (error,) = errors(driver)
    assert "nowhere.invalid" in error
    fail_to_publish(aeron_dir)
    with Counters(aeron_dir) as counters:
        (logged,) = counters.errors()
    assert logged.count == 2
    assert errors(driver)[0] == error

    assert driver.stop(signal.SIGINT) == signal.SIGINT
    assert lines(driver.stdout()) == ["Shutting down driver..."]
    assert log(driver)[-1] == ("INFO", "driver", "ended reason=SIGINT")


def test_an_error_that_goes_on_is_told_with_its_count(aeron_dir: Path) -> None:
    driver = native.driver(aeron_dir)
    for _ in range(5):
        fail_to_publish(aeron_dir)
    wait_until(lambda: len(errors(driver)) > 1, 30, "the count", state=driver.report)
    first, again = errors(driver)[:2]
    assert re.sub(r" code=\d+$", "", first) + " count=5" == again
    assert driver.stop() == signal.SIGTERM


def test_a_log_of_json_is_json_whatever_peers_say(aeron_dir: Path) -> None:
    command = [sys.executable, "-m", "aeron_spark", "driver", "--log-format", "json", "--dir", str(aeron_dir)]
    driver = Process("driver", [*command, "-D", "aeron.threading.mode=SHARED"])
    driver.wait_ready(driver_ready(driver, aeron_dir))
    with Client(aeron_dir) as client:
        for host in ('q"uo\\te', "l\ni\x1bne", "\u00fc\u20ac"):
            with pytest.raises(AeronError):
                client.add_publication(f"aeron:udp?endpoint={host}:40123", 7)
    assert driver.stop() == signal.SIGTERM
    events = [json.loads(line) for line in driver.stderr().split("\n")[:-1]]
    assert [one["message"] for one in events if one["level"] == "INFO"] == ["starting", "ready", "ended"]
    assert events[-1]["reason"] == "SIGTERM"
    assert len([one for one in events if one["level"] == "ERROR"]) >= 1
    assert all(one["module"] == "driver" and one["time"].endswith("Z") for one in events)


def test_a_driver_by_the_command_tells_the_same(aeron_dir: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "aeron_spark",
        "driver",
        "--dir",
        str(aeron_dir),
        "-D",
        "aeron.threading.mode=SHARED",
    ]
    driver = Process("driver", command)
    driver.wait_ready(driver_ready(driver, aeron_dir))
    fail_to_publish(aeron_dir)
    assert len(errors(driver)) == 1
    assert driver.stop() == signal.SIGTERM
    assert log(driver)[-1][2] == "ended reason=SIGTERM"


def test_a_driver_whose_reader_is_gone_goes_on(aeron_dir: Path) -> None:
    program, settings = native.executable("aeron-spark-driver"), f"-Daeron.dir={aeron_dir}"
    driver = Process("driver", ["bash", "-c", f"exec {program} {settings} > >(exec true) 2>&1"])
    driver.wait_ready(driver_ready(driver, aeron_dir))
    fail_to_publish(aeron_dir)
    fail_to_publish(aeron_dir)
    assert driver.stop() == signal.SIGTERM


def test_an_archive_tells_its_life(aeron_dir: Path, archive_dir: Path) -> None:
    with MediaDriver(aeron_dir, settings={"aeron.threading.mode": "SHARED"}):
        archive = native.archive(aeron_dir, archive_dir, {"aeron.spark.archive.max.control.sessions": "1"})
        wait_until(lambda: "ready" in archive.stderr(), 10, "the line", state=archive.report)
        start, ready = log(archive)
        assert start[2].startswith(f"starting version={aeron_spark.__version__} ")
        assert " aeron.spark.archive.max.control.sessions=1" in start[2]
        assert ready == (
            "INFO",
            "archive",
            (
                f'ready pid={archive.pid} folder={archive_dir} control="aeron:ipc?term-length=64k" stream=10 '
                f"driver=beside dir={aeron_dir}"
            ),
        )

        def refused() -> list[str]:
            """What the archive logged of it; nothing where the client's time was up before the archive heard of it."""
            with pytest.raises(AeronError):
                Archive(aeron_dir=aeron_dir, timeout=0.2)
            return [text for level, _, text in log(archive) if level != "INFO"]

        with Archive(aeron_dir=aeron_dir):
            refusals = wait_until(refused, 30, "the refusal", state=archive.report)
        assert re.sub(r" code=\d+$", "", refusals[0]) == "max control sessions reached 1: connect request dropped"
        assert archive.stop() == signal.SIGTERM
        assert lines(archive.stdout()) == ["Shutting down archive..."]
        assert log(archive)[-1] == ("INFO", "archive", "ended reason=SIGTERM")


@pytest.mark.parametrize("form", [["--log-format", "json"], ["--log-format=json"], ["-Daeron.spark.log.format=json"]])
def test_an_archive_logs_as_it_is_told(aeron_dir: Path, archive_dir: Path, form: list[str]) -> None:
    """With its own driver, whose errors have the same form."""
    program = native.executable("aeron-spark-archive")
    settings = ["-Daeron.archive.control.channel.enabled=false", "-Daeron.spark.archive.exit.when.idle=100ms"]
    where = [f"-Daeron.dir={aeron_dir}", f"-Daeron.archive.dir={archive_dir}", "-Daeron.threading.mode=SHARED"]
    archive = Process("archive", [program, *form, *settings, *where])
    assert archive.wait_end() == 0
    events = [json.loads(line) for line in lines(archive.stderr())]
    assert [(one["module"], one["message"]) for one in events] == [
        ("driver", "starting"),
        ("archive", "starting"),
        ("archive", "ready"),
        ("archive", "ended"),
    ]
    assert events[2]["stream"] == 10


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--log-format"], "ERROR: --log-format needs text or json\n"),
        (["--log-format", "xml"], "ERROR: --log-format needs text or json, not xml\n"),
        (["--log-level=loud"], "ERROR: --log-level needs info, warning, error or off, not loud\n"),
        (["--log-levels=off"], "unknown option --log-levels=off\n"),
    ],
)
def test_options_of_the_log_that_cannot_be(options: list[str], told: str) -> None:
    for name in ("aeron-spark-driver", "aeron-spark-archive"):
        done = subprocess.run(
            [str(native.executable(name)), *options], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 1
        assert done.stderr.startswith(told)


@pytest.mark.parametrize("option", ["-D", "--dir"])
def test_options_of_the_verbs_get_the_usage_of_the_servers(option: str) -> None:
    """`aeron-spark driver` takes `--dir DIR` and `-D NAME=VALUE`; the programs that it starts take `-Dname=value` alone."""
    for name in ("aeron-spark-driver", "aeron-spark-archive"):
        command = [str(native.executable(name)), option, "aeron.dir=/nowhere", "--check"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 1
        first, _, rest = done.stderr.partition("\n")
        assert first in (f"unknown option {option}", f"malformed define: {option}")
        assert "[-Dname=value]..." in rest


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    with Manager(tmp_path, monkeypatch) as made:
        yield made


def test_a_service_manager_hears_of_the_driver(aeron_dir: Path, manager: Manager) -> None:
    driver = native.driver(aeron_dir)
    assert manager.reports("READY=1") == [f"READY=1\nSTATUS=serves {aeron_dir}, threads SHARED"]
    with Client(aeron_dir):
        assert manager.reports("WATCHDOG=1") == ["WATCHDOG=1"]
    assert driver.stop() == signal.SIGTERM
    *reports, end = manager.reports("STOPPING=1")
    assert set(reports) <= {"WATCHDOG=1"}
    assert end == "STOPPING=1\nSTATUS=SIGTERM"


@pytest.mark.parametrize("mode", ["SHARED", "INVOKER"])
def test_a_service_manager_hears_of_the_archive(
    aeron_dir: Path, archive_dir: Path, manager: Manager, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MediaDriver(aeron_dir, settings={"aeron.threading.mode": "SHARED"}):
        archive = native.archive(aeron_dir, archive_dir, {"aeron.archive.threading.mode": mode})
        assert manager.reports("READY=1") == [f"READY=1\nSTATUS=records in {archive_dir}, driver in {aeron_dir}"]
        assert manager.reports("WATCHDOG=1") == ["WATCHDOG=1"]
        archive.stop()
        assert manager.reports("STOPPING=1")[-1] == "STOPPING=1\nSTATUS=SIGTERM"
        # A manager that is gone: the archive says so and works.
        monkeypatch.setenv("NOTIFY_SOCKET", str(archive_dir / "gone"))
        with native.archive(aeron_dir, archive_dir) as archive, Archive(aeron_dir=aeron_dir):
            told = [text for level, _, text in log(archive) if level == "WARNING"]
            assert told[0].startswith("cannot notify the service manager at NOTIFY_SOCKET=")


def check(name: str, *settings: str) -> tuple[int, str]:
    command = [str(native.executable(name)), "--check", *(f"-D{setting}" for setting in settings)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_a_probe_tells_a_live_server(aeron_dir: Path, archive_dir: Path) -> None:
    """What containers run as their probes: `--check`, with the settings of the server."""
    of_driver = ("aeron-spark-driver", f"aeron.dir={aeron_dir}")
    of_archive = ("aeron-spark-archive", f"aeron.archive.dir={archive_dir}")
    start = f"ERROR: check: no live driver in {aeron_dir}: none was started there"
    none = (1, f"{start}, or its heartbeat is older than 10000 ms\n")
    start = f"ERROR: check: no live archive in {archive_dir}: none was started there"
    no_archive = f"{start}, or its mark file is older than 10000 ms\n"
    assert check(*of_driver) == none
    assert check(*of_archive) == (1, no_archive)
    with native.driver(aeron_dir):
        assert check(*of_driver) == (0, f"aeron-spark-driver: alive in {aeron_dir}\n")
        with native.archive(aeron_dir, archive_dir):
            assert check(*of_archive) == (0, f"aeron-spark-archive: alive in {archive_dir}\n")
        assert check(*of_archive) == (1, no_archive)
    assert check(*of_driver) == none


def test_a_probe_tells_a_stopped_driver(aeron_dir: Path) -> None:
    with native.driver(aeron_dir) as driver:
        driver.pause()
        late = "aeron.driver.timeout=200"
        wait_until(lambda: check("aeron-spark-driver", f"aeron.dir={aeron_dir}", late)[0] == 1, 10, "an old heartbeat")
        driver.resume()


def test_an_archive_with_its_driver_tells_of_both(aeron_dir: Path, archive_dir: Path) -> None:
    settings = {
        "aeron.dir": str(aeron_dir),
        "aeron.archive.dir": str(archive_dir),
        "aeron.archive.control.channel.enabled": "false",
        "aeron.archive.threading.mode": "SHARED",
        "aeron.spark.archive.exit.when.idle": "5s",  # no pause of a busy machine before the client comes
    }
    command = [
        str(native.executable("aeron-spark-archive")),
        *(f"-D{name}={value}" for name, value in settings.items()),
    ]
    archive = Process("archive", command)
    archive.wait_ready(driver_ready(archive, aeron_dir))
    fail_to_publish(aeron_dir)
    assert archive.wait_end(timeout=60) == 0
    (error,) = errors(archive)
    assert error.startswith("driver: ")
    told = [f"{module}: {text}" for level, module, text in log(archive) if level == "INFO"]
    assert [one.partition(" ")[2].partition(" ")[0] for one in told] == ["starting", "starting", "ready", "ended"]
    assert told[0].startswith("driver: starting ")
    assert told[2].endswith(f"driver=own dir={aeron_dir}")
    assert told[3] == 'archive: ended reason="idle for aeron.spark.archive.exit.when.idle"'


def test_an_embedded_driver_says_nothing(aeron_dir: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with MediaDriver(aeron_dir, settings={"aeron.threading.mode": "SHARED"}):
        fail_to_publish(aeron_dir)
    assert capfd.readouterr() == ("", "")


def as_another_user(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run it so that root, too, may only do with files of others what anybody may."""
    given_up = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner,-chown"] if os.geteuid() == 0 else []
    return subprocess.run([*given_up, *command], capture_output=True, text=True, check=False, timeout=60)


def test_a_server_that_may_not_start_names_the_user_who_may(aeron_dir: Path, archive_dir: Path) -> None:
    me = archive_dir.owner()
    driver, archive = (str(native.executable(name)) for name in ("aeron-spark-driver", "aeron-spark-archive"))
    closed = archive_dir / "closed"
    closed.mkdir(mode=0o500)
    refused = as_another_user([driver, f"-Daeron.dir={closed}/driver"])
    assert refused.returncode == 1
    assert f"{closed}/driver: Permission denied" in refused.stderr
    assert f"  -> sudo -u {me} aeron-spark-driver -Daeron.dir={closed}/driver  # " in refused.stderr
    with MediaDriver(aeron_dir, settings={"aeron.threading.mode": "SHARED"}):
        command = [archive, "--beside-driver", f"-Daeron.dir={aeron_dir}", f"-Daeron.archive.dir={closed}"]
        refused = as_another_user(command)
    assert refused.returncode == 1
    assert f"{closed}/archive-mark.dat: Permission denied" in refused.stderr
    assert (
        f"  -> sudo -u {me} aeron-spark-archive --beside-driver -Daeron.dir={aeron_dir} -Daeron.archive.dir={closed}  # "
        in refused.stderr
    )


def test_an_archive_without_a_driver_says_how_to_start_one(aeron_dir: Path, archive_dir: Path) -> None:
    command = [str(native.executable("aeron-spark-archive")), "--beside-driver", "-Daeron.driver.timeout=100"]
    refused = as_another_user([*command, f"-Daeron.dir={aeron_dir}", f"-Daeron.archive.dir={archive_dir}"])
    assert refused.returncode == 1
    assert f"no live driver in {aeron_dir}" in refused.stderr
    assert f"  -> aeron-spark-driver -Daeron.dir={aeron_dir}  # " in refused.stderr

"""`aeron-spark logs`: what the distinct error logs of driver and archive hold, merged by time, new lines as they come.

Method: errors that a client provokes in real servers; texts as another process can write them.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from aeron_spark import Archive, Client, Counters, MediaDriver
from aeron_spark.cli.__main__ import main
from aeron_spark.cli.common import observed
from aeron_spark.counters import ErrorEntry
from aeron_spark.errors import AeronError
from aeron_spark.logs import ErrorLogs, LoggedError, facts, json_line, text_line, time_text
from aeron_spark.texts import escaped
from tests.kit import dirs, native
from tests.kit.processes import Process
from tests.kit.wait import wait_until

LINE = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (ERROR|WARNING) (driver|archive): (.*) count=(\d+) first=(\S+) dir=(\S+)"
)


def fail_to_publish(aeron_dir: Path, name: str) -> None:
    with Client(aeron_dir) as client, pytest.raises(AeronError):
        client.add_publication(f"aeron:udp?endpoint={name}.invalid:40123", 7)


def fail_to_log_in(aeron_dir: Path, archive_dir: Path) -> list[LoggedError]:
    """What the archive logged; nothing where the time was up before it heard of the client."""
    with pytest.raises(AeronError):
        Archive(aeron_dir=aeron_dir, timeout=0.2)
    return ErrorLogs(dirs=[], archive_dirs=[archive_dir]).read()


def test_driver_and_archive_by_time(aeron_dir: Path, archive_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (
        native.driver(aeron_dir),
        native.archive(aeron_dir, archive_dir, {"aeron.spark.archive.max.control.sessions": "1"}),
    ):
        fail_to_publish(aeron_dir, "first")
        with Archive(aeron_dir=aeron_dir):
            wait_until(lambda: fail_to_log_in(aeron_dir, archive_dir), 30, "the refusal")
        fail_to_publish(aeron_dir, "second")
        where = ["--dir", str(aeron_dir), "--archive-dir", str(archive_dir)]
        assert main(["logs", *where]) == 0
        found = [LINE.fullmatch(line) for line in capsys.readouterr().out.splitlines()]
        assert None not in found
        told = [one.groups() for one in found if one is not None]
        assert [one[2] for one in told] == ["driver", "archive", "driver"]
        assert [one[0] for one in told] == sorted(one[0] for one in told)
        assert "first.invalid" in told[0][3]
        assert told[1][3] == "max control sessions reached 1: connect request dropped"
        assert [one[6] for one in told] == [str(aeron_dir), str(archive_dir), str(aeron_dir)]
        assert main(["logs", *where, "--json"]) == 0
        events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [one["module"] for one in events] == ["driver", "archive", "driver"]
        assert list(events[0]) == ["time", "level", "module", "message", "count", "first", "dir"]
        assert main(["logs", "--archive-dir", str(archive_dir)]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 1


def test_following_tells_what_is_new_or_comes_again(aeron_dir: Path) -> None:
    with MediaDriver(aeron_dir, settings={"aeron.threading.mode": "SHARED"}):
        fail_to_publish(aeron_dir, "old")
        process = Process("logs", [sys.executable, "-m", "aeron_spark", "logs", "--follow", "--dir", str(aeron_dir)])

        def lines() -> list[str]:
            return process.stdout().splitlines()

        wait_until(lambda: len(lines()) == 1, 20, "what there was", state=process.report)
        fail_to_publish(aeron_dir, "new")
        wait_until(lambda: len(lines()) == 2, 20, "what came", state=process.report)
        fail_to_publish(aeron_dir, "old")
        wait_until(lambda: len(lines()) == 3, 20, "what came again", state=process.report)
        assert " count=1 " in lines()[0]
        assert "new.invalid" in lines()[1]
        assert "old.invalid" in lines()[2]
        assert " count=2 " in lines()[2]
        assert process.stop(signal.SIGINT) == 0


def test_following_reads_the_others_while_one_is_gone(aeron_dir: Path) -> None:
    shared = {"aeron.threading.mode": "SHARED"}
    with dirs.fresh("gone") as gone, MediaDriver(aeron_dir, settings=shared):
        command = [sys.executable, "-m", "aeron_spark", "logs", "--follow", "--dir", str(gone), "--dir", str(aeron_dir)]
        with MediaDriver(gone, settings=shared):
            fail_to_publish(gone, "old")
            process = Process("logs", command)
            wait_until(lambda: "old.invalid" in process.stdout(), 20, "what there was", state=process.report)
        shutil.rmtree(gone)
        fail_to_publish(aeron_dir, "meanwhile")
        wait_until(lambda: "meanwhile.invalid" in process.stdout(), 20, "the other's", state=process.report)
        lost = f"aeron-spark logs: {gone} cannot be read: "
        wait_until(lambda: lost in process.stderr(), 20, "which is gone", state=process.report)
        with MediaDriver(gone, settings=shared):
            fail_to_publish(gone, "again")
            wait_until(lambda: "again.invalid" in process.stdout(), 20, "the new log", state=process.report)
        assert process.stop(signal.SIGINT) == 0
        assert process.stderr().count(lost) <= 2, "once each time it goes"


def test_errors_that_left_a_log_are_forgotten(driver: MediaDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower of months keeps what the logs hold, not what they ever held."""
    held = [ErrorEntry(count=1, first_ms=1, last_ms=1, text="first")]
    monkeypatch.setattr(Counters, "errors", lambda _: held)
    logs = ErrorLogs(dirs=[driver.aeron_dir], archive_dirs=[])
    assert [one.message for one in logs.news()] == ["first"]
    assert logs.news() == []
    first = held.pop()
    assert logs.news() == []
    held.append(first)
    assert [one.message for one in logs.news()] == ["first"]


def test_errors_with_one_text_and_time_are_news_once(driver: MediaDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts come from other hosts: two whose lines differ in what is not shown."""
    held = [ErrorEntry(count=count, first_ms=1, last_ms=1, text=text) for count, text in ((1, "one"), (2, "one\n"))]
    monkeypatch.setattr(Counters, "errors", lambda _: held)
    logs = ErrorLogs(dirs=[driver.aeron_dir], archive_dirs=[])
    assert [one.count for one in logs.news()] == [1, 2]
    assert logs.news() == []


def test_a_directory_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "--dir", str(tmp_path / "none")]) == 1
    assert f"no driver's files in {tmp_path}/none" in capsys.readouterr().err


def test_texts_of_others_stay_in_their_line() -> None:
    error = LoggedError(
        module="driver",
        directory="/d d",
        level="ERROR",
        message='a\x1b[2J\r"\u2028\x9b',
        count=-1,
        first_ms=-(2**63),
        last_ms=2**63 - 1,
    )
    line = text_line(error)
    assert line.isprintable()
    assert line == (
        '9999-12-31T23:59:59.999Z ERROR driver: a\\u001b[2J\\u000d"\\u2028\\u009b '
        'count=-1 first=1970-01-01T00:00:00.000Z dir="/d d"'
    )
    assert json.loads(json_line(error))["message"] == error.message
    assert json_line(error).isprintable()


def test_texts_of_others_stay_below_their_head(capsys: pytest.CaptureFixture[str]) -> None:
    """`errors`, of a driver and of an archive."""
    text = "x\x1b[2J\x07\n9 observations:\r\n\tat there\n"
    print(observed(ErrorEntry(count=1, first_ms=0, last_ms=0, text=text)))
    head, *lines = capsys.readouterr().out.splitlines()
    assert head == "1 observations from 1970-01-01T00:00:00.000Z to 1970-01-01T00:00:00.000Z:"
    assert lines == ["  x\\u001b[2J\\u0007", "  9 observations:", "      at there"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [("", '""'), ("a=b", '"a=b"'), ("a b", '"a b"'), ('"', '"\\""'), (7, "7"), ("aeron:udp?x", "aeron:udp?x")],
)
def test_facts(value: object, shown: str) -> None:
    assert facts({"name": value}) == f"name={shown}"
    assert escaped("plain \u00fc") == "plain \u00fc"
    assert time_text(1795593647123) == "2026-11-25T08:00:47.123Z"

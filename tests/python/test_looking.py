"""Looking at a driver's directory with the console command: streams and backlog from counters, watching, dead drivers."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from aeron_spark import Client, MediaDriver
from aeron_spark.cli import backlog as backlog_verb
from aeron_spark.cli import common
from aeron_spark.cli.__main__ import main
from aeron_spark.cli.common import Before
from aeron_spark.counters import CounterRow
from aeron_spark.streams import StreamRow, backlog, streams
from aeron_spark.types import CounterId, RegistrationId
from tests.kit import native
from tests.kit.forged_counters import Forged, forged
from tests.kit.terminal import Terminal
from tests.kit.wait import wait_until

COMMAND = [sys.executable, "-m", "aeron_spark.cli"]
UDP = "aeron:udp?endpoint=localhost:20123"


def row(type_id: int, name: str, own: int, value: int, *, channel: str = UDP, reference: int = 0) -> CounterRow:
    """A counter of stream 7, session -3."""
    return CounterRow(
        counter_id=CounterId(0),
        type_id=type_id,
        value=value,
        registration_id=RegistrationId(own),
        owner_id=1,
        reference_id=reference,
        key=(struct.pack("<qiii", own, -3, 7, len(channel)) + channel.encode()).ljust(112, b"\0"),
        label=f"{name}: {own} -3 7 {channel}{' @64' if name == 'sub-pos' else ''}",
    )


PUBLISHED = [row(12, "pub-pos (exclusive)", 5, 1000), row(1, "pub-lmt", 5, 5000)]
SENT = [row(2, "snd-pos", 5, 900), row(9, "snd-lmt", 5, 2000), row(13, "snd-bpe", 5, 2)]
RECEIVED = [row(3, "rcv-hwm", 8, 800), row(5, "rcv-pos", 8, 700)]


def parties(rows: list[CounterRow]) -> list[tuple[str, int, int, int | None, int | None]]:
    return [(one.role, one.registration_id, one.position, one.behind, one.window) for one in backlog(rows)]


def test_streams_of_counters() -> None:
    found = streams([row(0, "Bytes sent", 0, 9), *SENT, row(4, "sub-pos", 6, 700, reference=8)])
    assert [(one.name, one.value) for one in found] == [
        ("snd-pos", 900),
        ("snd-lmt", 2000),
        ("snd-bpe", 2),
        ("sub-pos", 700),
    ]
    assert {(one.stream_id, one.session_id, one.channel) for one in found} == {(7, -3, UDP)}


def test_everybody_is_behind_the_one_before() -> None:
    spy = row(4, "sub-pos", 7, 100, channel=f"aeron-spy:{UDP}", reference=5)
    assert parties([*PUBLISHED, *SENT, *RECEIVED, row(4, "sub-pos", 6, 650, reference=8), spy]) == [
        ("publisher", 5, 1000, None, 4000),
        ("sender", 5, 900, 100, 1100),
        ("receiver", 8, 700, 100, None),
        ("subscriber", 7, 100, 800, None),
        ("subscriber", 6, 650, 150, None),
    ]


def test_over_ipc_a_subscriber_reads_what_is_published() -> None:
    assert parties([*PUBLISHED, row(4, "sub-pos", 6, 1000, reference=5)])[1] == ("subscriber", 6, 1000, 0, None)


def test_two_images_of_one_session_have_rates_of_their_own() -> None:
    """Of one subscription: both have its registration id."""
    both = [row(4, "sub-pos", 6, position, reference=image) for image, position in ((8, 1_000_000), (9, 1000))]
    shown: dict[str, Any] = {}
    with patch("aeron_spark.cli.backlog.show_rows", lambda *_: shown.update(_[2])):
        backlog_verb.run(Namespace())
    found = backlog(both)
    cell = shown["bytes a second"].since(Before(value=found, seconds=1))
    assert [cell(one) for one in found] == ["", ""], "both stand still"


def test_what_is_missing_or_runs_ahead_is_no_failure() -> None:
    assert parties([row(4, "sub-pos", 6, 650, reference=99)]) == [("subscriber", 6, 650, None, None)]
    assert parties([PUBLISHED[0]]) == [("publisher", 5, 1000, None, None)]
    assert parties([row(3, "rcv-hwm", 8, 600), RECEIVED[1]]) == [("receiver", 8, 700, 0, None)]


@pytest.mark.parametrize("label", ["", "nonsense", "a: b c d e", "\0" * 380, "x: 1 2"])
@pytest.mark.parametrize("key", [b"", b"\xff" * 112, b"\x01" * 15])
def test_hostile_counters_make_rows(label: str, key: bytes) -> None:
    hostile = CounterRow(
        counter_id=CounterId(0),
        type_id=5,
        value=1,
        registration_id=RegistrationId(1),
        owner_id=1,
        reference_id=0,
        key=key,
        label=label,
    )
    (found,) = streams([hostile])
    assert isinstance(found, StreamRow)
    assert len(backlog([hostile])) == 1


def test_a_live_stream(driver: MediaDriver, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    with (
        client.add_subscription("aeron:ipc", 10) as subscription,
        client.add_publication("aeron:ipc", 10) as publication,
    ):
        publication.wait_connected(10)
        publication.offer_batch([b"x" * 100] * 10)
        directory = ["--dir", str(driver.aeron_dir)]

        def rows() -> list[dict[str, object]]:
            assert main(["backlog", *directory, "--json"]) == 0
            return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

        # The driver samples the publisher's position once in a duty cycle.
        wait_until(lambda: rows()[0]["position"] == publication.position, 10, "a sample of the publisher's position")
        _, subscriber = rows()
        assert subscriber["behind"] == publication.position
        assert main(["backlog", *directory, "--stream", "10"]) == 0
        out = capsys.readouterr().out.splitlines()
        assert out[1].split() == [
            "stream",
            "session",
            "who",
            "id",
            "position",
            "bytes",
            "behind",
            "window",
            "left",
            "channel",
        ]
        assert len(out) == 4
        assert main(["streams", *directory, "--stream", "11"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 2
        assert main(["loss", *directory]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == "0 streams lost data."
        subscription.poll_batch(1)


@pytest.mark.parametrize("verb", ["stat", "errors", "backlog"])
def test_watching_ends_with_ctrl_c(verb: str, driver: MediaDriver, client: Client, tmp_path: Path) -> None:
    with (
        client.add_subscription("aeron:ipc", 10),
        client.add_publication("aeron:ipc", 10),
        (tmp_path / "out").open("w+b") as out,
    ):
        command = [*COMMAND, verb, "--dir", str(driver.aeron_dir), "--watch", "0.1"]
        watching = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE)
        # The head of the third look: the second was shown whole.
        wait_until(lambda: (tmp_path / "out").read_text().count("driver pid") > 2, 30, "three looks")
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=30)
        assert (watching.returncode, err) == (0, b"")
        if verb != "errors":
            assert "a second" in (tmp_path / "out").read_text()


def test_a_dead_driver_is_shown_and_is_a_failure(aeron_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    native.driver(aeron_dir).stop()
    assert main(["stat", "--dir", str(aeron_dir), "--match", "Bytes sent"]) == 1
    said = capsys.readouterr()
    assert "Bytes sent" in said.out
    assert f"the driver of {aeron_dir} is gone (it ended in order)" in said.err
    assert f"aeron-spark driver --dir {aeron_dir}" in said.err


def test_watching_tells_when_the_driver_goes(aeron_dir: Path) -> None:
    driver = native.driver(aeron_dir)
    command = [*COMMAND, "stat", "--dir", str(aeron_dir), "--watch", "0.1"]
    watching = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    driver.stop()
    _, err = watching.communicate(timeout=30)
    assert watching.returncode == 1
    assert "is gone" in err


def test_a_driver_that_was_started_again_has_no_rates_yet(
    aeron_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its counters have the numbers of the ones before, which had counted for longer."""
    drivers = [native.driver(aeron_dir)]
    with Client(aeron_dir) as client, client.add_publication("aeron:ipc", 10):
        pass

    def restart(_seconds: float) -> None:
        if len(drivers) > 1:
            raise KeyboardInterrupt
        drivers[0].stop()
        drivers.append(native.driver(aeron_dir))

    monkeypatch.setattr(common, "time", SimpleNamespace(time=time.time, monotonic=time.monotonic, sleep=restart))
    assert main(["stat", "--dir", str(aeron_dir), "--watch"]) == 0
    drivers[1].stop()
    looks = capsys.readouterr().out.split("\n\n")
    assert [f"driver pid {driver.pid}" in look for driver, look in zip(drivers, looks, strict=True)] == [True, True]
    assert "a second" not in looks[1]


def test_elsewhere_lives_a_driver(driver: MediaDriver, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["streams", "--dir", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert f"start a driver there (aeron-spark driver --dir {tmp_path})" in said
    assert f"there are drivers in {driver.aeron_dir}" in said or str(driver.aeron_dir) in said


def test_watching_needs_time(driver: MediaDriver, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stat", "--dir", str(driver.aeron_dir), "--watch", "0"]) == 2
    assert "a number of seconds above 0" in capsys.readouterr().err


READING = """
import sys
from aeron_spark.cli.__main__ import main
from aeron_spark.counters import Counters, request_termination
where = sys.argv[1]
print([main([verb, "--dir", where]) for verb in ("stat", "errors", "loss")])
with Counters(where) as counters:
    print("pid", counters.driver().pid)
request_termination(where)
"""


def test_who_may_only_read_sees_everything(driver: MediaDriver) -> None:
    """Who can't write directory and files gets counters, errors, losses and pid, and can't end the driver.

    Spec: 11 C5, D31.
    """
    # Root may write everything, but for what it was told to give up.
    given_up = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    modes = {path: path.stat().st_mode for path in (*driver.aeron_dir.glob("*.dat"), driver.aeron_dir)}
    try:
        for path in modes:
            path.chmod(0o555 if path.is_dir() else 0o444)
        command = [*given_up, sys.executable, "-c", READING, str(driver.aeron_dir)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert "Bytes sent" in done.stdout
    assert done.stdout.endswith(f"[0, 0, 0]\npid {driver.pid}\n"), done.stdout + done.stderr
    assert done.returncode == 1
    assert "Permission denied" in done.stderr.splitlines()[-1]
    assert not driver.wait_terminated(0)


def test_a_watched_table_keeps_its_head_and_its_columns(driver: MediaDriver) -> None:
    """On a terminal with fewer lines than there are counters; a label's escape sequences stay text."""
    hostile = Forged(type_id=2000, label=b"\x1b[2Jowned\x1b[1;1Hgone\r\n")
    with (
        forged(driver.aeron_dir, [hostile]),
        Terminal([*COMMAND, "stat", "--dir", driver.aeron_dir, "--watch", "0.2"], columns=100, lines=12) as terminal,
    ):
        for _ in range(2):  # at first, and again
            before = len(terminal.sent)
            lines = terminal.wait(
                lambda lines, before=before: len(terminal.sent) > before and "more lines" in lines[10],  # type: ignore[misc]
                "a frame",
            )
            assert f"{driver.aeron_dir}: driver pid" in lines[0]
            assert lines[1].split()[:2] == ["id", "value"]
        terminal.resize(100, 80)
        lines = terminal.wait_text("owned")
        assert f"{driver.aeron_dir}: driver pid" in lines[0]
        assert any("\\u001b[2Jowned\\u001b[1;1Hgone\\u000d" in line for line in lines)
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.wait_end() == 0

"""Goal: over UDP with loss, the stock tools and ours print the same, true figures on a directory, of ours or of a stock driver.

Method: a driver that loses a part of the data that comes in runs one stream, with a subscriber that has read some of it, and
refuses a command. When everything has arrived the figures stand still, and each stock tool is run as a process beside our
verb. What they print is compared with each other, and with the positions that the clients know.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from aeron_spark.cli.__main__ import main
from tests.kit import dirs, native, stock, stock_c
from tests.kit.cnc import Cnc
from tests.kit.ports import free_port
from tests.kit.wait import wait_until

TIMEOUT_MS = 20_000
STREAM = 1001
MESSAGES = 40
READ = 15
SIZES = [900]
POSITIONS = ("pub-pos", "snd-pos", "rcv-hwm", "rcv-pos")

LOSSY = {
    "aeron.udp.channel.incoming.interceptors": "loss",
    "aeron.udp.channel.transport.bindings.loss.args": "rate=0.2|seed=4711|recv-msg-mask=0x2",
}
LOSSY_JAVA = {
    "aeron.ReceiveChannelEndpoint.supplier": "io.aeron.driver.ext.DebugReceiveChannelEndpointSupplier",
    "aeron.debug.receive.data.loss.rate": "0.2",
    "aeron.debug.receive.data.loss.seed": "4711",
}
SETTINGS = {"aeron.term.buffer.length": "128k"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A directory with one stream at rest: what its clients know of it."""

    aeron_dir: Path
    channel: str
    session_id: int
    position: int
    read_position: int


@pytest.fixture(scope="module", params=["ours", "stock C", "stock Java"])
def stream(request: pytest.FixtureRequest, gateway: stock.Gateway) -> Iterator[Stream]:
    start: Callable[[Path], Any] = {
        "ours": lambda directory: native.driver(directory, {**SETTINGS, **LOSSY}),
        "stock C": lambda directory: stock_c.driver(directory, {**SETTINGS, **LOSSY}),
        "stock Java": lambda directory: stock.driver(directory, settings={**SETTINGS, **LOSSY_JAVA}),
    }[request.param]
    with dirs.fresh("lossy") as aeron_dir, start(aeron_dir):
        client = gateway.peer.client(str(aeron_dir))
        channel = f"aeron:udp?endpoint=localhost:{free_port()}"
        try:
            with stock.raises("RegistrationException", ""):
                client.publication("aeron:udp?endpoint=localhost:40123|mtu=17", STREAM)
            subscription = client.subscription(channel, STREAM)
            publication = client.publication(channel, STREAM)
            assert publication.awaitConnected(TIMEOUT_MS)
            reading = subscription.read(READ, None)
            publication.publish(STREAM, 0, MESSAGES, SIZES, TIMEOUT_MS)
            assert reading.awaitEnd(TIMEOUT_MS)
            position = publication.raw().position()
            cnc = Cnc(aeron_dir)
            # Each has an agent of its own that writes it, some only once in a duty cycle.
            wait_until(lambda: all(cnc.value_of(name) == position for name in POSITIONS), 20, "the stream to arrive")
            yield Stream(
                aeron_dir=aeron_dir,
                channel=channel,
                session_id=publication.raw().sessionId(),
                position=position,
                read_position=reading.position(),
            )
        finally:
            client.close()


def ours(verb: str, stream: Stream, *options: str) -> list[dict[str, Any]]:
    """What our verb says, as JSON."""
    out = StringIO()
    with redirect_stdout(out):
        assert main([verb, "--dir", str(stream.aeron_dir), "--json", *options]) == 0
    return [json.loads(line) for line in out.getvalue().splitlines()]


def theirs(name: str, stream: Stream, *options: str) -> str:
    """What a stock tool prints."""
    result = stock.driver_tool(name, stream.aeron_dir, *options)
    assert result.code == 0, result.out
    return result.out


def test_counters(stream: Stream) -> None:
    out = theirs("AeronStat", stream, "watch=false")
    shown = {
        label: int(value.replace(",", ""))
        for value, label in re.findall(r"^ *\d+: +(-?[\d,]+) - (.*)$", out, re.MULTILINE)
    }
    rows = {row["label"]: row for row in ours("stat", stream)}
    # A client completes the label of its heartbeat some time after the driver has made it.
    assert {label.partition(" name=")[0] for label in shown} == {label.partition(" name=")[0] for label in rows}
    steady = {label for label, row in rows.items() if row["type_id"] in {1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 14, 19, 20}}
    assert {label: shown[label] for label in steady} == {label: rows[label]["value"] for label in steady}

    def value(prefix: str) -> int:
        return next(shown[label] for label in shown if label.startswith(prefix))

    for name in POSITIONS:
        assert value(name) == stream.position
    assert value("sub-pos") == stream.read_position
    assert value("NAKs sent") == value("rcv-naks-sent") > 0
    assert value("NAKs received") == value("snd-naks-received") > 0
    assert value("Retransmits sent") > 0
    assert value("Retransmitted bytes") >= 960
    assert value("Loss gap fills") == 0
    assert value("Errors: ") == 1


def test_streams(stream: Stream) -> None:
    out = theirs("StreamStat", stream)
    shown = {
        (int(session), int(stream_id), channel, name, int(registration), int(value))
        for session, stream_id, channel, rest in re.findall(
            r"^sessionId=(-?\d+) streamId=(-?\d+) channel=(\S+) : (.*)$", out, re.MULTILINE
        )
        for name, registration, value in re.findall(r"(\S[^:]*):(-?\d+):(-?\d+)", rest)
    }
    assert shown
    keys = ("session_id", "stream_id", "channel", "name", "registration_id", "value")
    assert {tuple(row[key] for key in keys) for row in ours("streams", stream)} == shown


def test_backlog(stream: Stream) -> None:
    out = theirs("BacklogStat", stream)
    rows = {row["role"]: row for row in ours("backlog", stream, "--stream", str(STREAM))}
    assert set(rows) == {"publisher", "sender", "receiver", "subscriber"}
    publisher, sender, receiver, subscriber = (rows[role] for role in ("publisher", "sender", "receiver", "subscriber"))
    for wanted in (
        f"publisher {publisher['registration_id']} the last sampled position is {publisher['position']} (~",
        f"(~{publisher['window']} bytes before back-pressure)",
        f"sender {sender['registration_id']} has to send {sender['behind']} bytes (",
        f"({sender['window']} bytes remaining in the sender window)",
        f"receiver {receiver['registration_id']} is at position {receiver['position']}",
        f"subscriber {subscriber['registration_id']} has {subscriber['behind']} backlog bytes",
    ):
        assert wanted in out
    assert publisher["position"] == stream.position
    assert subscriber["behind"] == stream.position - stream.read_position > 0
    assert receiver["behind"] == sender["behind"] == 0


def test_losses(stream: Stream) -> None:
    out = theirs("LossStat", stream)
    shown = [line.split(",") for line in out.splitlines() if line and line[0].isdigit() and "," in line]
    (row,) = ours("loss", stream)
    assert "1 loss entries" in out
    assert [shown[0][index] for index in (0, 1, 4, 5, 6)] == [
        str(row["count"]),
        str(row["bytes_lost"]),
        str(stream.session_id),
        str(STREAM),
        stream.channel,
    ]
    assert shown[0][7] == row["source"]
    assert row["source"].startswith("127.0.0.1:")
    # Whole frames of one length were lost, each counted once however often it was asked for.
    assert row["bytes_lost"] % 960 == 0
    assert 0 < row["bytes_lost"] < stream.position
    assert 0 < row["first_ms"] <= row["last_ms"]


def test_publish_and_subscribe_by_hand(stream: Stream) -> None:
    options = ["--dir", str(stream.aeron_dir), "--stream", "2002", "--timeout", "30"]
    options += ["--channel", f"aeron:udp?endpoint=localhost:{free_port()}"]
    command = [sys.executable, "-m", "aeron_spark.cli"]
    lines = [f"line {number}" for number in range(1000)]
    subscriber = subprocess.Popen(
        [*command, "subscribe", *options, "--count", "1000"], stdout=subprocess.PIPE, text=True
    )
    publisher = subprocess.run(
        [*command, "publish", *options], input="\n".join(lines), text=True, timeout=60, check=False
    )
    output, _ = subscriber.communicate(timeout=60)
    assert (publisher.returncode, subscriber.returncode) == (0, 0)
    assert output.splitlines() == lines


def test_errors(stream: Stream) -> None:
    out = theirs("ErrorStat", stream)
    (entry,) = ours("errors", stream)
    assert "1 distinct errors observed" in out
    assert f"{entry['count']} observations from " in out
    assert entry["text"].splitlines()[0] in out
    assert "mtu" in entry["text"].lower()

"""Goal: a stock client replays over response channels, one replay after the other, and each of them begins.

Method: archive and client have a driver each and talk over UDP, as on two machines; both are under test, or one is a stock one
in Java or C. For each replay the stock client
makes a request publication of its own and closes it as soon as the archive has said OK: what the archive's driver has to say of
the response by then is all that the client's driver hears. `--subject stock` proves the test on stock servers.
"""

# ruff: noqa: PLR0917 - fixtures are arguments
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.archiving import Opened, record
from tests.kit import dirs, stock
from tests.kit.cnc import Cnc
from tests.kit.ports import free_port
from tests.kit.subject import Subject
from tests.kit.wait import wait_until

COUNT, REPLAYS = 10, 10  # messages that fit into a window, as nobody reads them
# The client's driver drops an ended publication with the next tick of its timer: 200 ms later it is gone.
SETTINGS = {"aeron.timer.interval": "20ms"}
RECEIVER_POSITION = 5  # type of counters. Spec: 01 §7


@pytest.fixture
def control() -> str:
    return f"aeron:udp?endpoint=127.0.0.1:{free_port()}"


@pytest.fixture(params=["subject-subject", "subject-java", "subject-c", "java-subject", "c-subject"])
def drivers(request: pytest.FixtureRequest, subject: Subject) -> tuple[Subject, Subject]:
    """The archive's driver and the client's."""
    kinds = {"subject": subject, "java": Subject(kind="stock"), "c": Subject(kind="stock-c")}
    of_archive, of_client = request.param.split("-")
    return kinds[of_archive], kinds[of_client]


@pytest.fixture
def archive_side(
    drivers: tuple[Subject, Subject], subject: Subject, aeron_dir: Path, archive_dir: Path, control: str
) -> Iterator[Path]:
    settings = {"aeron.archive.control.channel.enabled": "true", "aeron.archive.control.channel": control}
    with drivers[0].driver(aeron_dir), subject.archive(aeron_dir, archive_dir, settings):
        yield aeron_dir


@pytest.fixture
def client_side(drivers: tuple[Subject, Subject]) -> Iterator[Path]:
    with dirs.fresh("client") as aeron_dir, drivers[1].driver(aeron_dir, SETTINGS):
        yield aeron_dir


def received(aeron_dir: Path, port: int) -> list[int]:
    """Positions up to which the images of the response channel at this port came in."""
    counters = Cnc(aeron_dir).counters()
    return [
        one.value for one in counters if one.type_id == RECEIVER_POSITION and f"control=127.0.0.1:{port}|" in one.label
    ]


def test_replays_over_response_channels_all_begin(
    gateway: stock.Gateway, peer: Any, archive_side: Path, client_side: Path, control: str, stream: int, opened: Opened
) -> None:
    run = record(opened(peer.archiveClient(str(archive_side))), opened, stream, COUNT)
    client = gateway.jvm.io.aeron.archive.client
    context = client.AeronArchive.Context().aeronDirectoryName(str(client_side)).controlRequestChannel(control)
    archive = opened(client.AeronArchive.connect(context.controlResponseChannel("aeron:udp?endpoint=127.0.0.1:0")))
    for turn in range(REPLAYS):
        port = free_port()
        channel = f"aeron:udp?control=127.0.0.1:{port}|control-mode=response"
        subscription = opened(archive.context().aeron().addSubscription(channel, stream + turn))
        params = client.ReplayParams().position(0).length(run.position)
        params.subscriptionRegistrationId(subscription.registrationId())
        archive.startReplay(run.recording_id, channel, stream + turn, params)
        wait_until(
            lambda port=port: received(client_side, port) == [run.position],
            20,
            f"replay {turn} to come to its end",
            state=lambda port=port: received(client_side, port),
        )

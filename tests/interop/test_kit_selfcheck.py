"""Goal: the kit itself is right, so that a failure elsewhere is about the product.

Method: stock against stock, which must pass whatever state the product is in: publish, record, replay, verify, with
the payload rule computed twice (Python expects, Java publishes) and `cnc.dat` and the mark file read by the kit.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.archive.archive import Archive
from tests.conformance.archive.control import Session
from tests.kit import mark, stock, wait
from tests.kit.cnc import Cnc
from tests.kit.payload import expected

SIZES = [100, 1000, 3000, 8, 0, 5]
CHANNEL = "aeron:ipc?term-length=64k"


def test_the_release_on_the_class_path_is_the_one_reported(peer: Any) -> None:
    assert peer.version() == stock.version()


def test_publish_record_replay_verify_with_stock_peers(
    peer: Any, aeron_dir: Path, archive_dir: Path, opened: Callable[[Any], Any]
) -> None:
    settings = {**stock.DRIVER_SETTINGS, **stock.ARCHIVE_SETTINGS}
    server = opened(peer.archivingDriver(str(aeron_dir), str(archive_dir), settings))
    assert Cnc(aeron_dir).is_live()
    assert mark.is_live(archive_dir)

    archive = opened(peer.archiveClient(str(aeron_dir)))
    archive.startRecording(CHANNEL, 1001)
    reader = opened(archive.client().subscription(CHANNEL, 1001))
    publication = opened(archive.client().exclusivePublication(CHANNEL, 1001))
    assert publication.awaitConnected(5000)
    live = opened(reader.read(300, None))
    position = publication.publish(7, 0, 300, SIZES, 10_000)

    want = expected(7, 300, SIZES)
    assert live.awaitEnd(10_000)
    assert (live.count(), live.bytes(), live.crc()) == (
        want.count,
        want.length,
        want.crc,
    )

    wait.wait_until(
        lambda: Cnc(aeron_dir).value_of("rec-pos: 0 ") == position,
        10,
        "the recorded position",
        state=lambda: Cnc(aeron_dir).value_of("rec-pos: 0 "),
    )
    archive.raw().stopRecording(CHANNEL, 1001)
    wait.wait_until(lambda: archive.raw().getStopPosition(0) == position, 10, "the stop position")

    replay = archive.replay(0, 0, position, 2001)
    again = opened(replay.subscription().read(300, None))
    assert again.awaitEnd(10_000)
    assert (again.count(), again.bytes(), again.crc()) == (
        want.count,
        want.length,
        want.crc,
    )

    server.close()
    assert Cnc(aeron_dir).header() is None, "a stock driver deletes its directory where told so"
    verified = stock.archive_tool(archive_dir, "verify", "-a")
    assert verified.code == 0, verified.out
    assert "(recordingId=0) OK" in verified.out


def test_a_failed_wait_shows_the_archive() -> None:
    with (
        Archive(control=False, peer="stock-java") as archive,
        Session(archive) as session,
        pytest.raises(wait.DeadlineError, match=r"a RecordingSignalEvent(.|\n)*exit code: None\n--- stdout\nREADY"),
    ):
        session.expect("RecordingSignalEvent", timeout=0.01)

"""Messages longer than the receiver window (128 KiB) over UDP come in batches, whatever takes these.

Method: messages of 200,000 bytes alone, between short ones and behind each other; driver and archive of ours in this process.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeron_spark import Archive, ArchivingMediaDriver, Client, UsageError
from aeron_spark.archive import ReplayMerge
from aeron_spark.archive.remote import RemoteArchive
from aeron_spark.archive.replay import ReplayLength
from aeron_spark.tables import scan
from tests.kit.ports import free_port
from tests.kit.wait import wait_until
from tests.python.conftest import SETTINGS

LONG = 200_000
LENGTHS = [LONG, 10, LONG, LONG, 10, 5000]
MESSAGES = [bytes([number]) * length for number, length in enumerate(LENGTHS)]
STREAM = 1001


@pytest.fixture
def archive(aeron_dir: Path, archive_dir: Path) -> Iterator[Archive]:
    settings = {**SETTINGS, "aeron.archive.segment.file.length": "2m"}
    with ArchivingMediaDriver(archive_dir, aeron_dir, settings=settings), Archive(aeron_dir=aeron_dir) as made:
        yield made


def udp(port: int) -> str:
    return f"aeron:udp?endpoint=127.0.0.1:{port}"


def recorded(archive: Archive) -> tuple[int, int]:
    with archive.add_recorded_exclusive_publication("aeron:ipc?term-length=2m", STREAM) as publication:
        recording_id = archive.wait_recording("aeron:ipc", STREAM, publication.session_id)
        end = int(publication.offer_batch(MESSAGES))
        archive.wait_position(recording_id, end)
    return recording_id, end


@pytest.mark.parametrize("of_image", [False, True])
def test_a_subscription_and_its_image_give_them(client: Client, of_image: bool) -> None:
    channel = udp(free_port())
    with (
        client.add_subscription(channel, STREAM) as subscription,
        client.add_exclusive_publication(channel + "|term-length=2m", STREAM) as publication,
        subscription.wait_image(20) as image,
    ):
        source = image if of_image else subscription
        end = publication.offer_batch(MESSAGES)
        with pytest.raises(UsageError, match=r"position 0 of .* needs 200000 bytes"):
            wait_until(lambda: source.poll_batch(0.1, byte_capacity=LONG - 1).num_rows, 20, "the refusal")
        assert image.position == 0 <= image.flow_position
        got: list[bytes] = []
        wait_until(
            lambda: got.extend(source.poll_batch(0.1)["value"].to_pylist()) or len(got) >= len(MESSAGES),
            20,
            "the messages",
        )
        assert got == MESSAGES
        assert image.position == image.flow_position == end


def test_a_live_scan_gives_them(client: Client) -> None:
    channel = udp(free_port())
    with (
        client.add_subscription(channel, STREAM) as subscription,
        client.add_exclusive_publication(channel + "|term-length=2m", STREAM) as publication,
        subscription.wait_image(20) as image,
    ):
        publication.offer_batch(MESSAGES)
        batches = scan(image, columns=["value"], batch_seconds=0.01).batches()
        got: list[bytes] = []
        deadline = time.monotonic() + 20
        while len(got) < len(MESSAGES) and time.monotonic() < deadline:
            got += next(iter(batches))["value"].to_pylist()
        assert got == MESSAGES
        batches.close()


def test_replays_give_them(archive: Archive) -> None:
    recording_id, end = recorded(archive)
    replay = archive.replay(recording_id, udp(free_port()), STREAM, length=ReplayLength.CURRENT_END)
    with replay, replay.batches() as batches:
        rows = [row for batch in batches for row in batch.to_pylist()]
    assert [row["value"] for row in rows] == MESSAGES
    assert rows[-1]["next_position"] == end


def test_a_replay_over_ipc_with_a_smaller_window_is_refused(aeron_dir: Path, archive_dir: Path) -> None:
    """The archive sends blocks, here of 64 KiB, while its window is open; its end would come after its begin is taken."""
    settings = {
        **SETTINGS,
        "aeron.archive.segment.file.length": "2m",
        "aeron.archive.file.io.max.length": "64k",
        "aeron.ipc.publication.term.window.length": "64k",
    }
    with ArchivingMediaDriver(archive_dir, aeron_dir, settings=settings), Archive(aeron_dir=aeron_dir) as archive:
        recording_id, _ = recorded(archive)
        replay = archive.replay(recording_id, "aeron:ipc", STREAM + 1, length=ReplayLength.CURRENT_END)
        with (
            replay,
            replay.batches() as batches,
            pytest.raises(UsageError, match=r"position 0 of .* aeron\.ipc\.publication\.term\.window\.length"),
        ):
            list(batches)


@pytest.mark.parametrize("start", range(len(MESSAGES)))
def test_a_remote_archive_gives_them(archive: Archive, start: int) -> None:
    recording_id, end = recorded(archive)
    remote = RemoteArchive(archive, udp(0), stall_timeout=10)
    whole = [row for batch in remote.read(recording_id) for row in batch.to_pylist()]
    assert [row["value"] for row in whole] == MESSAGES
    begin, until = whole[start]["position"], whole[start]["next_position"]
    part = [row for batch in remote.read(recording_id, begin, until, limit=end) for row in batch.to_pylist()]
    assert part == [whole[start]]
    assert remote.begins_message(recording_id, begin)
    assert not remote.begins_message(recording_id, begin + 32)


def test_a_merge_gives_them(archive: Archive) -> None:
    port = free_port()
    channel = f"aeron:udp?control=127.0.0.1:{port}|control-mode=dynamic|term-length=2m|ssc=true"
    with archive.add_recorded_publication(channel, STREAM) as publication:
        session = f"session-id={publication.session_id}"
        recording_id = archive.wait_recording(f"127.0.0.1:{port}", STREAM, publication.session_id)
        archive.wait_position(recording_id, int(publication.offer_batch(MESSAGES)))
        with archive.client.add_subscription(f"aeron:udp?control-mode=manual|{session}", STREAM) as subscription:
            merge = ReplayMerge(
                archive,
                subscription,
                replay_channel=f"aeron:udp?{session}",
                replay_destination=udp(0),
                live_destination=f"{udp(0)}|control=127.0.0.1:{port}",
                recording_id=recording_id,
            )
            got: list[bytes] = []
            sent = list(MESSAGES)

            def merged() -> bool:
                got.extend(merge.poll_batch(0.05)["value"].to_pylist())
                if len(got) == len(sent) and not merge.is_merged:
                    publication.offer_batch([b"more"])
                    sent.append(b"more")
                return merge.is_merged

            wait_until(merged, 20, "the merge")
            publication.offer_batch(MESSAGES)
            sent.extend(MESSAGES)
            wait_until(
                lambda: got.extend(merge.poll_batch(0.05)["value"].to_pylist()) or len(got) >= len(sent),
                20,
                "what is published live",
            )
            assert got == sent
            merge.close()

"""Goal: `Archive`'s calls for replication and for response channels do what their docstrings say.

Method: the session's archive replicates its own recordings, over its network control channel where that matters.
"""

from __future__ import annotations

import pytest

from aeron_spark import Archive, ArchivingMediaDriver, PeerError, UsageError
from aeron_spark.archive.replay import Replay
from aeron_spark.types import RecordingSignal, Signal
from tests.kit.wait import wait_until
from tests.python.test_archive import record

MESSAGES = [b"one", b"two", b"three" * 500]
REPLICATION_CHANNEL = "aeron:udp?endpoint=127.0.0.1:0"


def messages(replay: Replay) -> list[bytes]:
    return [value for batch in replay.batches(20) for value in batch["value"].to_pylist()]


def test_a_recording_is_copied_continued_and_left_alone(servers: ArchivingMediaDriver) -> None:
    signals: list[Signal] = []
    with Archive(aeron_dir=servers.aeron_dir, on_signal=signals.append) as archive:
        source, _ = record(archive, MESSAGES)
        original = archive.recording(source)
        assert original is not None

        def ended(replication: int) -> Signal | None:
            archive.poll()
            mine = [it for it in signals if it.correlation_id == replication]
            return next((it for it in mine if it.signal == RecordingSignal.REPLICATE_END), None)

        replication = archive.replicate(
            source, "aeron:ipc", replication_channel=REPLICATION_CHANNEL, stop_position=64, file_io_max_length=65_536
        )
        copy = wait_until(lambda: ended(replication), 20, "the replication to end").recording_id
        wait_until(lambda: archive.stop_position(copy) == 64, 20, "the copy to stop")
        replication = archive.replicate(
            source,
            "aeron:ipc",
            recording_id=copy,
            replication_channel=REPLICATION_CHANNEL,
            response_channel="aeron:ipc",
        )
        wait_until(lambda: ended(replication), 20, "the replication to end")
        wait_until(lambda: archive.stop_position(copy) == original.stop_position, 20, "the copy to stop")
        with archive.replay(copy, "aeron:ipc", 301) as replay:
            assert messages(replay) == MESSAGES
        with pytest.raises(PeerError, match="unknown replication id"):
            archive.stop_replication(replication)
        assert archive.try_stop_replication(replication) is False


def test_what_can_not_be_replicated_is_refused(servers: ArchivingMediaDriver) -> None:
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        with pytest.raises(UsageError, match="can't be given together"):
            archive.replicate(0, "aeron:ipc", live_destination="aeron:udp?endpoint=localhost:1", session_id=3)
        with pytest.raises(UsageError, match="replication channel nonsense"):
            archive.replicate(0, "aeron:ipc", replication_channel="nonsense")
        with pytest.raises(PeerError, match="unknown destination recording id 987654"):
            archive.replicate(0, "aeron:ipc", recording_id=987_654, replication_channel=REPLICATION_CHANNEL)


def test_a_replay_answers_to_a_subscription(servers: ArchivingMediaDriver) -> None:
    channel = "aeron:ipc?control-mode=response|term-length=64k"
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        recording_id, _ = record(archive, MESSAGES)
        assert archive.replay_token(recording_id) != archive.replay_token(recording_id)
        with archive.replay(recording_id, channel, 302) as replay:
            assert messages(replay) == MESSAGES
        with archive.client.add_subscription(channel, 303) as subscription:
            session = archive.start_replay(recording_id, channel, 303, subscription=subscription)
            with Replay(subscription, session) as replay:
                assert messages(replay) == MESSAGES
        with pytest.raises(UsageError, match="answers to a subscription"):
            archive.start_replay(recording_id, channel, 304)
        with pytest.raises(UsageError, match="same medium"):
            archive.replay(recording_id, "aeron:udp?control-mode=response|control=127.0.0.1:24999", 305)

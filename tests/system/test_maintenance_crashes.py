"""The archive is killed with -9 while it truncates, purges, migrates and extends: the state is the one before or the one after.

An auditor knows which bytes each recording was acknowledged to hold, and reads all of them after each restart. Rounds by seed;
`MAINTENANCE_KILLS=100` makes more of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.conformance.archive.archive import Archive
from tests.conformance.archive.streams import Recorded, begin, extend_channel
from tests.system.models import BODY, CHANNEL, FRAME, SEGMENT, TERM, Killed, Model, read

KILLS = int(os.environ.get("MAINTENANCE_KILLS", "16"))
SETTINGS = {"aeron.client.liveness.timeout": "5s", "aeron.archive.threading.mode": "DEDICATED"}


class World(Killed):
    """The archive with a stream of its own."""

    def __init__(self, archive: Archive, stream: int) -> None:
        super().__init__(archive)
        self.stream = stream

    def record(self, start: int, segments: int, extra: int) -> int:
        """A stopped recording."""
        with begin(self.session, self.stream, channel=CHANNEL.format(start // TERM)) as run:
            stop = run.write(segments * SEGMENT // FRAME + extra, BODY)
            run.stop()
        self.models[run.recording_id] = Model(start, stop, [(start, run.key)])
        return run.recording_id

    def extend(self, recording_id: int) -> Recorded:
        """Begin to go on with a recording."""
        channel = extend_channel(self.session.descriptor(recording_id))
        return begin(self.session, self.stream, channel=channel, extend=recording_id, record_channel="aeron:ipc")

    def read(self) -> dict[int, tuple[int, int]]:
        """Every recording that is there, as [start, stop), read and compared."""
        return read(self.archive.archive_dir, self.models)


@pytest.fixture
def world() -> Iterator[World]:
    with ExitStack() as opened:
        made = World(opened.enter_context(Archive(SETTINGS, apart=True)), 1001)
        yield made
        made.session.close()


def test_killed_in_maintenance(world: World, rng: random.Random) -> None:
    for number in range(KILLS):
        # A publication that its dead subscriber still holds would be recorded as well.
        world.stream += 1
        first = world.record(0, 3, rng.randrange(1, 50))
        (truncate, purge, migrate, extend)[number % 4](world, first, rng)
        for left in list(world.read()):
            world.session.ok("PurgeRecordingRequest", recordingId=left)
        world.models.clear()


def truncate(world: World, recording_id: int, rng: random.Random) -> None:
    """The stop position is the old one or the new one; extended from there, only the new recording is added."""
    model = world.models[recording_id]
    stop = rng.randrange(0, model.stop, FRAME)
    world.session.request("TruncateRecordingRequest", recordingId=recording_id, position=stop)
    disturb(world, rng)
    begins, left = world.read()[recording_id]
    assert (begins, left) in {(0, model.stop), (0, stop)}
    model.stop = left
    extend(world, recording_id, rng)


def purge(world: World, recording_id: int, rng: random.Random) -> None:
    """The head exists or not, and so does the recording; the rest is whole."""
    model = world.models[recording_id]
    start = rng.choice([SEGMENT, 2 * SEGMENT, 3 * SEGMENT])
    world.session.request("PurgeSegmentsRequest", recordingId=recording_id, newStartPosition=start)
    disturb(world, rng)
    begins, stop = world.read()[recording_id]
    assert stop == model.stop
    assert begins in {0, start}
    world.session.request("PurgeRecordingRequest", recordingId=recording_id)
    disturb(world, rng)
    assert world.read().get(recording_id, (begins, stop)) == (begins, stop)


def migrate(world: World, recording_id: int, rng: random.Random) -> None:
    """The bytes of the source are its own, or the destination's, or for an instant both's; never lost."""
    world.session.ok("TruncateRecordingRequest", recordingId=recording_id, position=2 * SEGMENT)
    source = world.models[recording_id]
    source.stop = 2 * SEGMENT
    other = world.record(2 * SEGMENT, 1, 5)
    target = world.models[other]
    target.parts.insert(0, source.parts[0])
    # Sent behind the deletion of the truncated tail, which it may have to wait for.
    world.session.request("MigrateSegmentsRequest", srcRecordingId=recording_id, dstRecordingId=other)
    disturb(world, rng)
    found = world.read()
    assert found[other][1] == target.stop
    assert (found[recording_id], found[other][0]) in {
        ((0, 2 * SEGMENT), 2 * SEGMENT),
        ((0, 2 * SEGMENT), 0),
        ((0, 0), 0),
    }


def extend(world: World, recording_id: int, rng: random.Random) -> None:
    """All that was acknowledged as recorded is there, and nothing else."""
    model = world.models[recording_id]
    run = world.extend(recording_id)
    try:
        acknowledged = run.write(rng.randrange(1, 200), BODY)
        published = run.publish(rng.randrange(1, 20), BODY)
        world.restart()
    finally:
        run.close()
    model.parts.append((model.stop, run.key))
    _, stop = world.read()[recording_id]
    assert acknowledged <= stop <= published
    model.stop = stop


def disturb(world: World, rng: random.Random) -> None:
    """Kill the archive some requests later: at once, or when it has answered."""
    for _ in range(rng.randrange(3)):
        world.session.barrier()
    world.restart()

"""Source and destination of a replication are killed with -9 while a recording grows: both keep what they acknowledged.

An auditor knows what the source acknowledged as recorded and what the destination acknowledged as copied, and reads every
message of both after each restart; then the copy goes on from where it is, up to the source's end. Rounds by seed;
`make crash-archive` makes a hundred of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from tests.conformance.archive.archive import Archive, await_value
from tests.conformance.archive.codec import EXTEND
from tests.conformance.archive.replication import await_end, replicate
from tests.conformance.archive.streams import Recorded, begin
from tests.kit.wait import wait_until
from tests.system.models import BODY, CHANNEL, Killed, Model, read

KILLS = int(os.environ.get("REPLICATION_KILLS", "6"))
ROUND = 10
# Both notice soon what is gone.
SETTINGS = {
    "aeron.client.liveness.timeout": "1s",
    "aeron.image.liveness.timeout": "1s",
    "aeron.archive.message.timeout": "2s",
    "aeron.archive.threading.mode": "DEDICATED",
}


class End(Killed):
    """Source or destination."""

    def position(self, recording_id: int) -> int:
        """The recorded position, or where the recording stopped."""
        return self.session.ok("MaxRecordedPositionRequest", recordingId=recording_id)


@dataclass(slots=True)
class Told:
    """What was acknowledged at the kill; `copy` is -1 before the destination has reported its id."""

    recorded: int
    replication: int = -1
    copied: int = 0
    copy: int = -1


@pytest.fixture
def ends() -> Iterator[tuple[End, End]]:
    with ExitStack() as opened:
        made = [
            End(opened.enter_context(Archive({**SETTINGS, "aeron.archive.id": str(80 + index)}, apart=True)))
            for index in range(2)
        ]
        yield made[0], made[1]
        for end in made:
            end.session.close()


@pytest.mark.parametrize("first", range(0, KILLS, ROUND))
def test_killed_while_replicating(ends: tuple[End, End], rng: random.Random, first: int) -> None:
    source, destination = ends
    for number in range(first, min(first + ROUND, KILLS)):
        run = begin(source.session, 1001 + number, channel=CHANNEL.format(0))
        source.models[run.recording_id] = model = Model(0, 0, [(0, run.key)])
        victims = [(source,), (destination,), (destination, source)][number % 3]
        with run:
            told = copy_for_a_while(source, destination, run, rng)
            for victim in victims:
                victim.restart()
            model.stop = run.position
            if source not in victims:
                assert run.await_recorded() == run.position
                run.stop()
        stop = read(source.archive.archive_dir, source.models)[run.recording_id][1]
        assert told.recorded <= stop <= model.stop
        if destination not in victims:
            await_end(destination.session, told.replication)  # it misses the source
        copied = look_at_copy(destination, model, told)
        print(f"kill {number + 1}: told {told}, source has {stop}, copy {copied}")
        await_copied(source, destination, run.recording_id, stop)
        for end in ends:
            for left in read(end.archive.archive_dir, end.models):
                end.session.ok("PurgeRecordingRequest", recordingId=left)
            end.models.clear()


def copy_for_a_while(source: End, destination: End, run: Recorded, rng: random.Random) -> Told:
    """Begin a copy of an active recording, and leave it at any point."""
    told = Told(run.write(rng.randrange(1, 400), BODY))
    told.replication = replicate(destination.session, source.archive, run.recording_id)
    if rng.random() < 0.8:
        told.copy = destination.session.signal(EXTEND).recordingId
        for _ in range(rng.randrange(4)):
            told.recorded = run.write(rng.randrange(1, 100), BODY)
            told.copied = destination.position(told.copy)
    run.publish(rng.randrange(1, 20), BODY)
    return told


def look_at_copy(destination: End, model: Model, told: Told) -> int:
    """The copy's data: whole messages of the source, at least the reported and at most the published ones."""
    session = destination.session
    listed, _ = session.descriptors("ListRecordingsRequest", fromRecordingId=0, recordCount=10)
    ids = {it.recordingId for it in listed}
    assert told.copy in {-1, *ids}
    assert len(ids) <= 1
    for copy in ids:
        wait_until(lambda copy=copy: session.ok("StopPositionRequest", recordingId=copy) >= 0, 20, "the copy to end")
        destination.models[copy] = model
        _, copied = read(destination.archive.archive_dir, destination.models)[copy]
        assert told.copied <= copied <= model.stop
        return copied
    return 0


def await_copied(source: End, destination: End, recording_id: int, stop: int) -> None:
    """The copy continues, or begins, and becomes equal to the source."""
    known = next(iter(destination.models), -1)
    replication = replicate(destination.session, source.archive, recording_id, dstRecordingId=known)
    first = await_end(destination.session, replication)[0]
    copy = first.recordingId if known < 0 else known
    destination.models[copy] = source.models[recording_id]
    session = destination.session
    await_value(lambda: session.ok("StopPositionRequest", recordingId=copy), stop, "the end of the copy", timeout=20)
    assert read(destination.archive.archive_dir, destination.models) == {copy: (0, stop)}

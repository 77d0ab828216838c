"""Goal: retention deletes what its policy says and nothing else, and names the replay that holds a segment back.

Method: the plan is pure and judged on made-up recordings; deletion is watched on an archive of ours with segments of 64 KiB.
"""

from __future__ import annotations

import json
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from aeron_spark import (
    Archive,
    ArchiveServer,
    ArchivingMediaDriver,
    ExclusivePublication,
    MediaDriver,
    UsageError,
)
from aeron_spark.archive.recordings import Recording
from aeron_spark.archive.retain import Action, Kept, Policy, Segment, apply, inventory, plan
from aeron_spark.archive.segments import Folder
from aeron_spark.cli.__main__ import main
from aeron_spark.cli.archive_retain import duration, size
from aeron_spark.types import Position, RecordingId, SessionId, StreamId
from tests.kit.processes import Process
from tests.kit.wait import wait_until
from tests.python.conftest import SETTINGS, Run

S = 65_536
NOW_MS = 1_000_000_000


def kept(recording_id: int, ages_s: list[float], *, active: bool = False, stream: int = 7, start: int = 0) -> Kept:
    """A recording whose segments were written so long ago, full but for the last."""
    first = start // S * S
    limit = first + len(ages_s) * S - 96 if ages_s else start
    recording = Recording(
        recording_id=RecordingId(recording_id),
        start_timestamp_ms=0,
        stop_timestamp_ms=None if active else NOW_MS - round(1000 * (ages_s or [0])[-1]),
        start_position=Position(start),
        stop_position=None if active else Position(limit),
        initial_term_id=0,
        segment_file_length=S,
        term_buffer_length=S,
        mtu_length=1408,
        session_id=SessionId(1),
        stream_id=StreamId(stream),
        stripped_channel="aeron:ipc",
        original_channel="aeron:ipc",
        source_identity="aeron:ipc",
    )
    segments = (
        Segment(base=first + index * S, bytes=1000, written_ms=NOW_MS - round(1000 * age))
        for index, age in enumerate(ages_s)
    )
    return Kept(recording=recording, limit=limit, segments=tuple(segments))


def planned(policy: Policy, *recordings: Kept) -> dict[int, tuple[int | None, int]]:
    return {
        action.recording_id: (action.new_start, action.segments) for action in plan(policy, recordings, now_ms=NOW_MS)
    }


def test_older_than() -> None:
    policy = Policy(older_than_s=50)
    assert planned(policy, kept(0, [90, 60, 40, 30])) == {0: (2 * S, 2)}
    assert planned(policy, kept(0, [90, 60])) == {0: (None, 2)}
    assert planned(policy, kept(0, [90, 60], active=True)) == {0: (S, 1)}
    assert planned(policy, kept(0, [90], active=True)) == {}
    assert planned(policy, kept(0, [40, 90])) == {}  # only from the start on
    assert planned(policy, kept(0, [90, 40], start=S + 4096)) == {0: (2 * S, 1)}
    assert planned(policy, kept(0, [])) == {}
    old_and_empty = kept(0, [])
    old_and_empty = replace(old_and_empty, recording=replace(old_and_empty.recording, stop_timestamp_ms=1))
    assert planned(policy, old_and_empty) == {0: (None, 0)}


def test_max_bytes_takes_the_oldest_first() -> None:
    recordings = [kept(0, [90, 50, 30]), kept(1, [80, 70], active=True), kept(2, [60])]
    assert planned(Policy(max_bytes=6000), *recordings) == {}
    assert planned(Policy(max_bytes=5999), *recordings) == {0: (S, 1)}
    assert planned(Policy(max_bytes=4000), *recordings) == {0: (S, 1), 1: (S, 1)}
    assert planned(Policy(max_bytes=3000), *recordings) == {0: (S, 1), 1: (S, 1), 2: (None, 1)}
    # What is active stays, whatever the bound.
    assert planned(Policy(max_bytes=0), *recordings) == {0: (None, 3), 1: (S, 1), 2: (None, 1)}


def test_keep_recordings_counts_by_stream() -> None:
    recordings = [kept(0, [9]), kept(1, [8]), kept(2, [7], stream=8), kept(3, [6]), kept(4, [5], active=True)]
    assert planned(Policy(keep_recordings=2), *recordings) == {0: (None, 1), 1: (None, 1)}
    assert planned(Policy(keep_recordings=0), *recordings) == {0: (None, 1), 1: (None, 1), 2: (None, 1), 3: (None, 1)}


def test_the_ledger_of_exactly_once_writes_stays() -> None:
    aged = kept(0, [90, 60, 40])
    ledger = replace(
        aged,
        recording=replace(
            aged.recording, stream_id=StreamId(0x41534C45), original_channel="aeron:ipc?alias=aeron-spark-ledger"
        ),
    )
    old_and_empty = replace(ledger, segments=(), recording=replace(ledger.recording, stop_timestamp_ms=1))
    other = replace(ledger, recording=replace(ledger.recording, original_channel="aeron:ipc"))
    for policy in (Policy(older_than_s=1), Policy(max_bytes=0), Policy(keep_recordings=0)):
        assert planned(policy, ledger) == {}
        assert planned(policy, old_and_empty) == {}
        assert planned(policy, other) == {0: (None, 3)}, "only the alias and the stream together make it one"


def test_bounds_together_and_random(rng: random.Random) -> None:
    for _ in range(200):
        recordings = [
            kept(
                number,
                sorted((rng.uniform(0, 100) for _ in range(rng.randrange(5))), reverse=True),
                active=rng.random() < 0.3,
                stream=rng.randrange(3),
            )
            for number in range(rng.randrange(6))
        ]
        policy = Policy(
            older_than_s=rng.uniform(0, 100), max_bytes=rng.randrange(20_000), keep_recordings=rng.randrange(4)
        )
        by_id = {one.recording.recording_id: one for one in recordings}
        actions = plan(policy, recordings, now_ms=NOW_MS)
        used = sum(segment.bytes for one in recordings for segment in one.segments) - sum(
            action.bytes for action in actions
        )
        for action in actions:
            one = by_id[RecordingId(action.recording_id)]
            assert not (one.is_active and action.segments >= len(one.segments))
            assert action.new_start == (
                None if action.segments == len(one.segments) else one.segments[action.segments].base
            )
        freed = {action.recording_id: action.segments for action in actions}
        left = [
            segment
            for one in recordings
            for segment in one.segments[freed.get(one.recording.recording_id, 0) : len(one.segments) - one.is_active]
        ]
        assert used <= (policy.max_bytes or 0) or not left


@pytest.mark.parametrize("age", ["7", "0", "1.5"])
def test_an_age_wants_its_unit(age: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever means days would delete all that is older than seconds."""
    with pytest.raises(SystemExit) as ended:
        main(["archive", "retain", str(tmp_path), "--older-than", age, "--yes"])
    assert ended.value.code == 2
    assert f"'{age}' is a time without a unit: write 90s, 10m, 12h, 7d or 4w" in capsys.readouterr().err


def test_policies_and_units() -> None:
    for bad in ({}, {"max_bytes": -1}, {"older_than_s": -0.5}):
        with pytest.raises(UsageError):
            Policy(**bad)  # type: ignore[arg-type]
    assert [duration(text) for text in ("90", "90s", "1.5m", "12h", "7d", "4w")] == [
        90,
        90,
        90,
        43_200,
        604_800,
        2_419_200,
    ]
    assert [size(text) for text in ("1000", "64k", "500m", "10G")] == [1000, 65_536, 524_288_000, 10_737_418_240]
    for wrong in ("", "x", "1y", "-1"):
        with pytest.raises(Exception, match="write"):
            duration(wrong)
        with pytest.raises(Exception, match="write"):
            size(wrong)


@pytest.fixture
def run(run: Run) -> Run:
    return partial(run, "retain")


def stopped_recording(archive: Archive, stream: int, segments: int) -> int:
    """A recording of so many full segments of 128 KiB, and a bit."""
    with active_recording(archive, stream, segments) as recording_id:
        archive.stop_recording("aeron:ipc", stream)
        wait_until(lambda: archive.stop_position(recording_id) is not None, 10, "the recording to stop")
        return recording_id


@contextmanager
def active_recording(archive: Archive, stream: int, segments: int) -> Iterator[int]:
    """The same, active meanwhile."""
    archive.start_recording("aeron:ipc", stream)
    with archive.client.add_exclusive_publication("aeron:ipc", stream) as publication:
        yield _fill(archive, stream, segments, publication)


def _fill(archive: Archive, stream: int, segments: int, publication: ExclusivePublication) -> int:
    recording_id = archive.wait_recording("aeron:ipc", stream, publication.session_id)
    while publication.position < segments * 2 * S + 1000:
        publication.offer_batch([bytes(1000)] * 10)
    archive.wait_position(recording_id, publication.position)
    return recording_id


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.rec")}


def test_a_running_archive_deletes(servers: ArchivingMediaDriver, archive: Archive, run: Run) -> None:
    stopped = stopped_recording(archive, 7, 2)
    folder = servers.archive_dir
    with active_recording(archive, 8, 2) as active:
        before = names(folder)
        code, out = run(folder, "--older-than", "0s")
        assert (code, names(folder)) == (0, before)
        assert f"(recordingId={stopped}) would delete all of it" in out
        assert f"(recordingId={active}) would delete 2 segments up to position {4 * S}" in out
        assert run(folder, "--older-than", "1d", "--yes") == (0, "")
        code, out = run(folder, "--older-than", "0s", "--yes")
        assert code == 0, out
        wait_until(
            lambda: names(folder) == {f"{active}-{4 * S}.rec"}, 10, "the segments to go", state=lambda: names(folder)
        )
        assert archive.recording(stopped) is None
        assert archive.start_position(active) == 4 * S
        assert archive.recording_position(active) is not None


def test_a_replay_holds_its_segment_back(servers: ArchivingMediaDriver, archive: Archive, run: Run) -> None:
    recording_id = stopped_recording(archive, 7, 3)
    folder = servers.archive_dir
    # A replay that stands in the second segment: nobody takes its messages.
    with archive.replay(recording_id, position=2 * S) as replay, replay.wait_image():
        code, out = run(folder, "--keep-recordings", 0, "--yes", "--json")
        (row,) = (json.loads(line) for line in out.splitlines())
        assert code == 1
        assert (row["done"], row["deleted_segments"]) == (False, 1)
        assert "replay in progress" in row["held_back_by"]
        assert f"sessionId={replay.session_id}" in row["held_back_by"]
        wait_until(lambda: f"{recording_id}-0.rec" not in names(folder), 10, "the segment before the replay to go")
        assert f"{recording_id}-{2 * S}.rec" in names(folder)
    wait_until(lambda: run(folder, "--keep-recordings", 0, "--yes")[0] == 0, 10, "the replay to end")
    wait_until(lambda: names(folder) == set(), 10, "all segments to go", state=lambda: names(folder))


def _extend(archive: Archive, recording_id: int, stream: int) -> int:
    """Goes on with a stopped recording by ten messages and stops it again; its new end."""
    recording = archive.recording(recording_id)
    assert recording is not None
    assert recording.stop_position is not None
    terms, offset = divmod(recording.stop_position, recording.term_buffer_length)
    channel = (
        f"aeron:ipc?init-term-id={recording.initial_term_id}|term-id={recording.initial_term_id + terms}"
        f"|term-offset={offset}|term-length={recording.term_buffer_length}|mtu={recording.mtu_length}"
    )
    subscription = archive.extend_recording(recording_id, "aeron:ipc", stream)
    with archive.client.add_exclusive_publication(channel, stream) as publication:
        publication.wait_connected(10)
        end = publication.offer_batch([bytes(1000)] * 10)
        archive.wait_position(recording_id, end)
    archive.stop_recording_subscription(subscription)
    wait_until(lambda: archive.stop_position(recording_id) == end, 10, "the recording to stop again")
    return end


def test_what_was_extended_since_the_plan_stays(servers: ArchivingMediaDriver, archive: Archive) -> None:
    extended, other = stopped_recording(archive, 7, 2), stopped_recording(archive, 8, 0)
    with Folder(servers.archive_dir) as folder:
        actions = plan(Policy(older_than_s=0), inventory(folder), now_ms=2**42)
    assert [(action.recording_id, action.new_start) for action in actions] == [(extended, None), (other, None)]
    end = _extend(archive, extended, 7)
    done = {one.action.recording_id: one for one in apply(archive, actions)}
    assert done[extended].held == "it was extended after the plan was made; the next run decides"
    assert (done[extended].deleted, done[other].held) == (0, "")
    assert (archive.start_position(extended), archive.stop_position(extended)) == (0, end)
    assert archive.recording(other) is None
    # Not by its head either: after a truncation the same segments would hold new data.
    (part,) = apply(archive, [replace(actions[0], new_start=2 * S)])
    assert part.held
    assert archive.start_position(extended) == 0


def test_without_a_running_archive(servers: ArchivingMediaDriver, archive: Archive, run: Run) -> None:
    stopped_recording(archive, 7, 1)
    folder = servers.archive_dir
    archive.close()
    servers.close()
    assert run(folder, "--older-than", "0s")[0] == 0
    code, out = run(folder, "--older-than", "0s", "--yes")
    assert code == 2
    assert "no live archive owns" in out
    code, out = run(folder)
    assert (code, "needs a bound" in out) == (2, True)


def test_a_running_policy(servers: ArchivingMediaDriver, archive: Archive) -> None:
    folder = servers.archive_dir
    command = [sys.executable, "-m", "aeron_spark.cli", "archive", "retain", str(folder)]
    policy = Process("retention", [*command, "--keep-recordings", "1", "--every", "0.05s", "--yes"])
    kept_id = -1
    for _ in range(3):
        kept_id = stopped_recording(archive, 7, 0)
    wait_until(
        lambda: [recording.recording_id for recording in archive.recordings()] == [kept_id],
        20,
        "all but the newest recording to go",
        state=policy.report,
    )
    assert policy.stop(signal.SIGINT) == 0, policy.report()
    assert "recordings of its channel and stream" in policy.stdout()


def test_the_archives_own_policy_does_what_the_command_would(
    servers: ArchivingMediaDriver, archive: Archive, run: Run, rng: random.Random
) -> None:
    for number in range(5):
        stopped_recording(archive, 7 + number % 2, rng.randrange(4))
    folder = servers.archive_dir
    used = sum(path.stat().st_blocks * 512 for path in folder.glob("*.rec"))
    bounds = {"max-bytes": rng.randrange(used), "keep-recordings": rng.randrange(1, 4)}
    _, out = run(folder, *(word for name, value in bounds.items() for word in (f"--{name}", value)), "--json")
    for action in map(json.loads, out.splitlines()):
        assert not action["done"]
    expected = {recording.recording_id: recording.start_position for recording in archive.recordings()}
    for action in map(json.loads, out.splitlines()):
        if action["new_start_position"] is None:
            del expected[action["recording_id"]]
        else:
            expected[action["recording_id"]] = action["new_start_position"]
    archive.close()
    servers.close()
    settings = {f"aeron.spark.archive.retain.{name.replace('-', '.')}": value for name, value in bounds.items()}
    with (
        MediaDriver(servers.aeron_dir, settings=SETTINGS) as driver,
        ArchiveServer(folder, driver.aeron_dir, settings={**SETTINGS, **settings}),
        Archive(aeron_dir=driver.aeron_dir) as again,
    ):
        wait_until(
            lambda: {recording.recording_id: recording.start_position for recording in again.recordings()} == expected,
            20,
            "the archive's policy to do what was planned",
            state=lambda: (bounds, expected, [(one.recording_id, one.start_position) for one in again.recordings()]),
        )


def test_actions_are_told_with_their_reason() -> None:
    actions = plan(Policy(older_than_s=50), [kept(3, [90, 40])], now_ms=NOW_MS)
    assert actions == [
        Action(
            recording_id=3,
            new_start=S,
            segments=1,
            bytes=1000,
            reason="written more than 50 s ago",
            stopped_ms=NOW_MS - 40_000,
        )
    ]

"""Positions by time and times by position, beside a live archive, by Python and by the console command."""

from __future__ import annotations

import json
import random
import time
from bisect import bisect_left
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from aeron_spark import Archive, ArchivingMediaDriver, Folder, UsageError
from aeron_spark.cli.__main__ import main
from tests.kit.wait import wait_until
from tests.python.test_archive import CHANNEL, STREAM, record

LOOKUPS = 1000
INTERVAL_NS = 10_000_000


def positions(folder: Folder, recording_id: int) -> list[int]:
    """Where the messages begin."""
    found: list[int] = []
    for batch in folder.read(recording_id, columns=["position"]):
        found += batch.column("position").to_pylist()
    return found


def test_a_thousand_times_against_the_publishers_log(servers: ArchivingMediaDriver, rng: random.Random) -> None:
    before: list[int] = []  # the publisher's clock just before each message
    after: list[int] = []  # and once the archive said that it is recorded
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        archive.start_recording(CHANNEL, STREAM)
        with archive.client.add_exclusive_publication(CHANNEL, STREAM) as publication:
            publication.wait_connected(10)
            recording_id = archive.wait_recording("archived", STREAM, publication.session_id)
            for _ in range(300):
                count = rng.choice([1, 1, 1, 2, 5, 100])
                before += [time.time_ns()] * count
                end = publication.offer_batch([bytes(1000)] * count)
                archive.wait_position(recording_id, end)
                after += [time.time_ns()] * count
            archive.stop_recording(CHANNEL, STREAM)
        with Folder(servers.archive_dir) as folder:
            wait_until(lambda: not folder.extent(recording_id).is_active, 10, "the recording stopped")
            limit = folder.extent(recording_id).limit_position
            begins = positions(folder, recording_id)
            assert len(begins) == len(before)
            for _ in range(LOOKUPS):
                when = rng.randrange(before[0] - 10**6, after[-1] + 10**6)
                first = bisect_left(before, when)
                found = folder.position_at(recording_id, when)
                assert not found.is_rebuilt
                # Never late: the archive wrote a message no earlier than it was sent.
                assert found.position <= (begins[first] if first < len(begins) else limit)
                # Early by an interval at most: what surely was written before that interval is left out.
                surely = bisect_left(after, when - INTERVAL_NS)
                assert bisect_left(begins, found.position) >= surely
            times = folder.times_at(recording_id, [begin + 31 for begin in begins])
            assert times.type == pa.timestamp("ns", "UTC")
            told = times.cast(pa.int64()).to_pylist()
            assert told == sorted(told)
            assert all(sent - INTERVAL_NS < at <= done for sent, at, done in zip(before, told, after, strict=True))
            assert folder.time_at(recording_id, begins[7] + 31) == told[7]


def test_exact_by_reserved_value(servers: ArchivingMediaDriver, rng: random.Random) -> None:
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        archive.start_recording(CHANNEL, STREAM)
        with archive.client.add_exclusive_publication(CHANNEL, STREAM) as publication:
            publication.wait_connected(10)
            recording_id = archive.wait_recording("archived", STREAM, publication.session_id)
            stamps: list[int] = []
            for _ in range(50):
                stamps += [time.time_ns() // 1000] * 10
                end = publication.offer_batch([bytes(100)] * 10, reserved_values=stamps[-10:])
            archive.wait_position(recording_id, end)
            archive.stop_recording(CHANNEL, STREAM)
        with Folder(servers.archive_dir) as folder:
            wait_until(lambda: not folder.extent(recording_id).is_active, 10, "the recording stopped")
            begins = positions(folder, recording_id)
            for _ in range(100):
                when = rng.randrange(stamps[0] * 1000 - 1000, stamps[-1] * 1000 + 2000)
                found = folder.position_at_reserved(recording_id, when, unit="us")
                first = bisect_left([stamp * 1000 for stamp in stamps], when)
                assert found == (begins[first] if first < len(stamps) else end)
            with pytest.raises(UsageError, match="unit 's'"):
                folder.position_at_reserved(recording_id, 0, unit="s")


def test_what_is_asked_wrongly(servers: ArchivingMediaDriver) -> None:
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        recording_id, end = record(archive, [b"x"] * 3)
    with Folder(servers.archive_dir) as folder:
        with pytest.raises(UsageError, match="146 years"):
            folder.position_at(recording_id, 2**63)
        with pytest.raises(UsageError, match="unknown recording id: 77"):
            folder.position_at(77, 0)
        with pytest.raises(UsageError, match="null"):
            folder.times_at(recording_id, pa.array([None], pa.int64()))
        assert len(folder.times_at(recording_id, [])) == 0
        assert folder.position_at(recording_id, datetime(1971, 1, 1, tzinfo=UTC)).position == 0
        wait_until(lambda: not folder.extent(recording_id).is_active, 10, "the recording stopped")
        assert folder.position_at(recording_id, time.time_ns() + 10**12).position == end


def test_by_the_console(servers: ArchivingMediaDriver, capsys: pytest.CaptureFixture[str]) -> None:
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        recording_id, end = record(archive, [b"x" * 100] * 10)
    path, chosen = str(servers.archive_dir), str(recording_id)
    with Folder(path) as folder:
        wait_until(lambda: not folder.extent(recording_id).is_active, 10, "the recording stopped")

    def ask(*arguments: str) -> dict[str, object]:
        assert main(["archive", *arguments, "--json"]) == 0
        answer: dict[str, object] = json.loads(capsys.readouterr().out)
        return answer

    info = ask("index", "describe", path, chosen)
    assert info["is_believed"]
    assert info["indexed_bytes"] == end
    assert ask("time", path, chosen, "2001-01-01") == {"recording_id": recording_id, "position": 0, "is_rebuilt": False}
    assert ask("time", path, chosen, str(time.time_ns()))["position"] == end
    assert ask("time", path, chosen, "--position", "0")["time_ns"] == info["first_ns"]
    assert ask("time", path, chosen, "0", "--reserved", "ns")["position"] == 0
    for outside in (-1, end, end + 32):
        assert main(["archive", "time", path, chosen, "--position", str(outside)]) == 2
        assert f"goes from 0 to {end}: nothing was written at --position {outside}" in capsys.readouterr().err
    assert main(["archive", "time", path, chosen, "2001-01-01T00:00:00Z"]) == 0
    assert capsys.readouterr().out == "0\n"

    index = Path(path) / f"{recording_id}.time-index"
    index.unlink()
    assert not ask("index", "describe", path, chosen)["exists"]
    assert ask("time", path, chosen, "2001-01-01")["is_rebuilt"]
    assert ask("index", "rebuild", path)["rebuilt_count"] == 1
    assert index.stat().st_size == 96
    assert main(["archive", "index", "describe", path]) == 0
    assert "good" in capsys.readouterr().out
    for wrong in (
        ["time", path, chosen],
        ["time", path, chosen, "noon"],
        ["time", path, chosen, "²"],
        ["time", path, chosen, "0001-01-01T00:00+14:00"],
        ["time", path, chosen, "1", "--position", "1"],
    ):
        assert main(["archive", *wrong]) == 2
        assert "time" in capsys.readouterr().err.lower()

"""How far messages of growing recordings have times of the time index: what the archive says, and who waits for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from aeron_spark.archive import timed
from aeron_spark.archive.segments import Folder
from aeron_spark.archive.timed import SLACK_SECONDS, Timed
from aeron_spark.archive.times import TimeReach
from aeron_spark.errors import DataLossError
from aeron_spark.testing import Servers
from aeron_spark.types import Position
from tests.kit.wait import wait_until

INTERVAL = "aeron.spark.archive.time.index.interval"
SWITCH = "aeron.spark.archive.time.index"


@pytest.mark.parametrize(
    ("settings", "interval"), [({INTERVAL: "3600s"}, 3600.0), ({INTERVAL: "1us"}, 0.001), ({SWITCH: "false"}, 0.0)]
)
def test_an_active_recording_says_from_its_first_byte_on_whether_entries_come(
    settings: dict[str, str], interval: float
) -> None:
    with Servers(settings=settings) as servers:
        archive = servers.archive
        with archive.add_recorded_exclusive_publication("aeron:ipc?term-length=64k", 5) as publication:
            recording_id = archive.wait_recording("", 5, publication.session_id)
            end = publication.offer_batch([b"a"])
            archive.wait_position(recording_id, end)
            with Folder(servers.archive_dir, aeron_dir=servers.aeron_dir) as folder:
                reach = folder.time_reach(recording_id)
                assert reach.interval == interval
                assert reach.position == {3600.0: 0, 0.0: end}.get(interval, reach.position)
        wait_until(lambda: archive.stop_position(recording_id) is not None, 20, "the recording to stop")
        with Folder(servers.archive_dir, aeron_dir=servers.aeron_dir) as folder:
            assert folder.time_reach(recording_id) == TimeReach(position=Position(end), interval=0.0)
            expected = 1 if SWITCH in settings else 0
            assert folder.index_times_at(recording_id, [end - 1]).null_count == expected


class Owing:
    """A source whose index has entries up to a position, and messages of 100 bytes."""

    def __init__(self) -> None:
        self.reach, self.is_damaged = 250, False

    def time_reach(self, _: int) -> TimeReach:
        return TimeReach(position=Position(self.reach), interval=5.0)

    def advance(self, _: int, start: int, limit: int) -> int:
        if self.is_damaged:
            raise DataLossError("damaged")
        return start + (limit - start) // 100 * 100


def test_what_the_archive_owes_is_waited_for_by_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(timed, "time", SimpleNamespace(monotonic=lambda: now[0]))
    source: Any = Owing()
    limits = Timed(source)
    assert limits.limit(0, 0, 200) == 200
    assert limits.limit(0, 0, 400) == 200
    now[0] += 10 + 9.9
    assert limits.limit(0, 200, 400) == 200, "an archive whose disk stalls counts as alive for 10 s"
    source.reach = 350  # it writes one
    now[0] += 10 + SLACK_SECONDS
    assert limits.limit(0, 200, 400) == 300
    now[0] += 10 + SLACK_SECONDS + 0.1
    assert limits.limit(0, 300, 400) == 400
    assert limits.limit(0, 400, 500) == 500, "another wait for the same entry"
    assert limits.limit(1, 400, 500) == 400
    source.is_damaged = True
    assert limits.limit(1, 400, 500) == 500, "who reads has the error"

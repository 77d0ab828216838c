"""Which files of an archive's folder belong to a recording, by their names alone: what belongs to none may be deleted.

Spec: 06 §1.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from aeron_spark.archive.segment_files import orphans, segment_base, segment_files
from aeron_spark.archive.times import time_ns
from aeron_spark.archive.tools import CatalogEntry, RecordingState
from aeron_spark.errors import UsageError
from aeron_spark.types import Position
from tests.spark.test_snapshot import recording

TERM, SEGMENT = 64 << 10, 128 << 10
START = 5 * TERM + 640
#: Segments count from the term in which the recording begins.
FIRST = 5 * TERM


def entry(
    number: int, *, stop: int | None = FIRST + 3 * SEGMENT, state: RecordingState = RecordingState.VALID
) -> CatalogEntry:
    stop_position = None if stop is None else Position(stop)
    one = recording(number, start_position=Position(START), stop_position=stop_position, segment_file_length=SEGMENT)
    return CatalogEntry(
        index=number, recording=one, state=state, checksum=0, control_session_id=0, correlation_id=0, offset=0, length=0
    )


@pytest.mark.parametrize(
    ("position", "base"),
    [
        (START, FIRST),
        (FIRST + SEGMENT - 1, FIRST),
        (FIRST + SEGMENT, FIRST + SEGMENT),
        (FIRST + 3 * SEGMENT + 1, FIRST + 3 * SEGMENT),
    ],
)
def test_segments_count_from_the_term_of_the_start(position: int, base: int) -> None:
    one = entry(0).recording
    assert segment_base(one, position) == base
    assert one.segment_base(position) == base, "as C has it"


def test_what_belongs_to_nothing(tmp_path: Path) -> None:
    names = {
        f"0-{FIRST}.rec": None,
        f"0-{FIRST + 3 * SEGMENT}.rec": None,
        f"0-{FIRST - SEGMENT}.rec": "before the start position",
        f"0-{FIRST + 4 * SEGMENT}.rec": "behind the stop position",
        "0-x.rec": "its name has no position",
        f"0-{FIRST}.rec.del": "left over from a deletion",
        "0.time-index": None,
        f"1-{FIRST + 9 * SEGMENT}.rec": None,
        f"2-{FIRST}.rec": "the recording is deleted",
        "2.time-index": "time index of a recording that is gone",
        "7-0.rec": "the catalog has no such recording",
        "7.time-index": "time index of a recording that is gone",
        "archive.catalog": None,
        "0-0.rec.txt": None,
    }
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / "8-0.rec").mkdir()
    entries = [entry(0), entry(1, stop=None), entry(2, state=RecordingState.DELETED)]
    found = {one.file.path.name: one for one in orphans(entries, segment_files(tmp_path))}
    assert found.keys() == {name for name, reason in names.items() if reason is not None}
    assert all(one.reason.startswith(str(names[name])) for name, one in found.items())
    assert {name for name, one in found.items() if not one.is_deletable} == {"7-0.rec"}, "it may be all that is left"


def test_times_in_nanoseconds() -> None:
    moment = datetime(2026, 1, 31, 14, 30, 0, 123456, tzinfo=UTC)
    assert time_ns(moment) == 1_769_869_800_123_456_000
    assert time_ns(moment.astimezone(timezone(timedelta(hours=2)))) == time_ns(moment)
    assert time_ns(datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)) == -1000
    assert time_ns(5) == 5
    for far in (2**62, -(2**62)):
        with pytest.raises(UsageError, match="146 years"):
            time_ns(far)

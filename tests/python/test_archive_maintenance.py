"""Goal: the maintenance calls of `Archive` do on our archive what their docstrings say.

Method: the story of `tests.kit.maintenance`, which the interop tests tell to a stock archive; and arithmetic by hand.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from aeron_spark import Archive, ArchivingMediaDriver, UsageError
from tests.kit.maintenance import SEGMENT, Story
from tests.python.conftest import SETTINGS
from tests.python.test_archive import record


def test_every_maintenance_call(servers: ArchivingMediaDriver) -> None:
    Story(servers.aeron_dir, servers.archive_dir, stream=1).tell()


def test_segments_of_a_recording_that_begins_within_a_term(servers: ArchivingMediaDriver) -> None:
    with Archive(aeron_dir=servers.aeron_dir) as archive:
        recording_id, _ = record(archive, [b"x"])
        found = archive.recording(recording_id)
        assert found is not None
    found = replace(found, start_position=65_536 + 96, stop_position=65_536 + 3 * SEGMENT, initial_term_id=2**31 - 1)
    assert found.segment_base(65_536 + 96) == 65_536
    assert found.segment_base(65_536 + SEGMENT - 32) == 65_536
    assert list(found.detachable()) == [65_536 + n * SEGMENT for n in (1, 2, 3)]
    assert list(found.detachable(65_536 + SEGMENT - 32)) == []
    assert found.term_id(65_536) == -(2**31)
    with pytest.raises(UsageError, match="is active"):
        replace(found, stop_position=None).detachable()


def test_an_id_with_segments_is_not_given_again(aeron_dir: Path, archive_dir: Path) -> None:
    """The catalog was lost after an orderly end: what it named may be all that is left."""
    with ArchivingMediaDriver(archive_dir, aeron_dir, settings=SETTINGS), Archive(aeron_dir=aeron_dir) as archive:
        first, _ = record(archive, [b"precious"])
    segment = archive_dir / f"{first}-0.rec"
    held = segment.read_bytes()
    (archive_dir / "archive.catalog").unlink()
    with ArchivingMediaDriver(archive_dir, aeron_dir, settings=SETTINGS), Archive(aeron_dir=aeron_dir) as archive:
        second, _ = record(archive, [b"another"])
    assert second == first + 1
    assert segment.read_bytes() == held

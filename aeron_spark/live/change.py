"""What the same servers had in the snapshot before, and rates since then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from aeron_spark.live.snapshot import Counted, Recorded, Server, Snapshot

_T = TypeVar("_T", bound=Server)
_LEAST_SECONDS = 0.001


class Change:
    """What the same servers had before."""

    def __init__(self, now: Snapshot, before: Snapshot | None) -> None:
        elapsed = 0.0 if before is None else now.at_s - before.at_s
        self.seconds = elapsed if elapsed >= _LEAST_SECONDS else None
        self.drivers = _same(now.drivers, before.drivers if before is not None else ())
        self.archives = _same(now.archives, before.archives if before is not None else ())
        self._positions = {
            _counted_key(path, one): one.value for path, was in self.drivers.items() for one in was.counted
        }
        self._recorded = {
            (path, one.archive_id, one.recording_id): one.position
            for path, was in self.drivers.items()
            for one in was.recorded
        }

    def rate(self, now: float, then: float | None) -> float | None:
        """A second; None where it is not known."""
        if self.seconds is None or then is None or now < then:
            return None
        return (now - then) / self.seconds

    def position_rate(self, path: str, one: Counted) -> float | None:
        """Of a party of a stream."""
        return self.rate(one.value, self._positions.get(_counted_key(path, one)))

    def recorded_rate(self, path: str, one: Recorded) -> float | None:
        """Of an active recording."""
        return self.rate(one.position, self._recorded.get((path, one.archive_id, one.recording_id)))


def _same(now: Iterable[_T], before: Iterable[_T]) -> dict[str, _T]:
    started = {one.path: one.start_ms for one in now}
    return {one.path: one for one in before if one.start_ms is not None and started.get(one.path) == one.start_ms}


def _counted_key(path: str, one: Counted) -> tuple[str, int, int, int, int]:
    return path, one.type_id, one.registration_id, one.reference_id, one.session_id

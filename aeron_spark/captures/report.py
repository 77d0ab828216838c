"""What an import tells: recordings, gaps, and what is wrong in the capture. Lists are bounded, counts are not."""

from __future__ import annotations

from dataclasses import dataclass, field

_MOST_TOLD = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A recording that was made."""

    recording_id: int
    stream_id: int
    session_id: int
    channel: str
    source: str
    start_position: int
    stop_position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Bytes of a stream that the capture does not have: positions, or bytes of a connection."""

    stream: str
    start: int
    end: int


@dataclass(slots=True)
class Log:
    """Collects it."""

    imported: int = 0
    repeated: int = 0
    gap_count: int = 0
    recordings: list[Imported] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def gap(self, stream: str, start: int, end: int) -> None:
        """Tell of missing bytes."""
        self.gap_count += 1
        if len(self.gaps) < _MOST_TOLD:
            self.gaps.append(Gap(stream=stream, start=start, end=end))

    def problem(self, text: str) -> None:
        """Tell of something that is wrong."""
        if len(self.problems) < _MOST_TOLD:
            self.problems.append(text)

    def problem_once(self, text: str) -> None:
        """Tell of something that will come again."""
        if text not in self.problems:
            self.problem(text)

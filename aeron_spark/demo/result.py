"""What a run of the demonstration found; as JSON it is handed from the worker to the supervisor, and kept."""

from __future__ import annotations

import dataclasses
import json
import statistics
from dataclasses import dataclass
from typing import Self

RESULT = "result.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A moment of the run, in seconds since the feed began.

    `rate` is the messages a second of the query's last micro-batch, 0 before its first one; `behind` is its lag in seconds.
    """

    seconds: float
    published: int
    rate: float
    behind: float


@dataclass(frozen=True, slots=True)
class Device:
    """A device of this machine, and what it did."""

    kind: str
    name: str
    messages: int
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A run that ended well."""

    machine: str
    spark: str
    began: str
    rows: int
    replay_seconds: float
    devices: list[Device]
    samples: list[Sample]

    @property
    def behind(self) -> float:
        """Median of the seconds that the query was behind, from its first micro-batch on."""
        return statistics.median([sample.behind for sample in self.samples if sample.rate] or [0.0])

    @property
    def published_rate(self) -> float:
        """Messages published a second, over the whole run."""
        last = self.samples[-1]
        return last.published / last.seconds

    def to_json(self) -> str:
        """One object."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote."""
        fields = json.loads(text)
        return cls(
            **{
                **fields,
                "devices": [Device(**one) for one in fields["devices"]],
                "samples": [Sample(**one) for one in fields["samples"]],
            }
        )

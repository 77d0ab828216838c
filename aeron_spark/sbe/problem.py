"""Errors and warnings about a schema. Spec: 10 §12."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aeron_spark.errors import AeronError


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: its kind (`SCHEMA_TYPE`, ..., or `WARNING`), its place, and what to change."""

    kind: str
    file: str
    line: int
    path: str
    text: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.kind}: {self.path + ': ' if self.path else ''}{self.text}"


class SchemaError(AeronError):
    """An SBE schema that can't be used; `problems` holds every finding, errors first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    @property
    def kind(self) -> str:
        """Kind of the first error."""
        return self.problems[0].kind

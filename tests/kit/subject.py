"""The driver and the archive under test: ours, or with `pytest --subject stock` the stock ones; `stock-c`: its driver in C.

The stock ones prove the tests: what fails against them too is a wrong test, not a wrong product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.kit import native, stock, stock_c
from tests.kit.processes import Process


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Starts the servers under test, ready, with settings by their stock names."""

    kind: str

    @property
    def is_stock(self) -> bool:
        """Whether it is not ours."""
        return self.kind != "ours"

    @property
    def is_java(self) -> bool:
        """Whether the driver is the one in Java, which knows nothing of what the drivers in C have besides."""
        return self.kind == "stock"

    def driver(
        self, aeron_dir: Path, settings: Mapping[str, str] | None = None, *, prefix: Sequence[str] = ()
    ) -> Process:
        """A driver in `aeron_dir`, by a command behind `prefix`."""
        if self.is_java:
            return stock.driver(aeron_dir, settings=settings, prefix=prefix)
        if self.is_stock:
            return stock_c.driver(aeron_dir, settings, prefix=prefix)
        return native.driver(aeron_dir, settings, prefix=prefix)

    def archive(self, aeron_dir: Path, archive_dir: Path, settings: Mapping[str, str] | None = None) -> Process:
        """An archive on `archive_dir`, beside the driver of `aeron_dir`."""
        if self.is_stock:
            return stock.archive(aeron_dir, archive_dir, settings=settings)
        return native.archive(aeron_dir, archive_dir, settings)

    @property
    def allow_termination(self) -> Mapping[str, str]:
        """The setting that lets a client end the driver: a name in C, a class in Java."""
        value = "io.aeron.driver.DefaultAllowTerminationValidator" if self.is_java else "allow"
        return {"aeron.driver.termination.validator": value}

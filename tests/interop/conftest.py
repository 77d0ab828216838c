"""Fixtures of the interop tests: servers shared by a file, and what a test opens through the gateway is closed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.kit import dirs
from tests.kit.subject import Subject

_stream_ids = itertools.count(1001)


@pytest.fixture
def opened() -> Iterator[Callable[[Any], Any]]:
    """`opened(x)` returns x and closes it after the test, the last one first."""
    with ExitStack() as stack:

        def register(resource: Any) -> Any:
            stack.callback(resource.close)
            return resource

        yield register


@pytest.fixture
def stream() -> int:
    """A stream id that no other test uses, so that tests can share a driver."""
    return next(_stream_ids)


@pytest.fixture(scope="module")
def driver_dir(subject: Subject) -> Iterator[Path]:
    """The directory of a driver under test which all tests of a file share."""
    with dirs.fresh("shared") as aeron_dir, subject.driver(aeron_dir):
        yield aeron_dir


@pytest.fixture
def client(peer: Any, driver_dir: Path, opened: Callable[[Any], Any]) -> Any:
    """A stock client of the shared driver."""
    return opened(peer.client(str(driver_dir)))

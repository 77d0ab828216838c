"""Fixtures of the archive scenarios: the archive under test, sessions, and unused stream ids."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from tests.conformance.archive.archive import IMPATIENT, PEER, Archive
from tests.conformance.archive.control import Session

Archives = Callable[[Mapping[str, str]], Archive]

_streams = itertools.count(5001)


def pytest_report_header() -> str:
    """Say who is tested."""
    return f"archive scenarios against: {PEER}"


@pytest.fixture(scope="package")
def archives() -> Iterator[Archives]:
    """The archive with certain settings; one process for each set of them, ended with the package: each costs 3 % of a core."""
    with ExitStack() as opened:
        running: dict[tuple[tuple[str, str], ...], Archive] = {}

        def archive(settings: Mapping[str, str]) -> Archive:
            key = tuple(sorted(settings.items()))
            if key not in running:
                running[key] = opened.enter_context(Archive(settings))
            return running[key]

        yield archive


@pytest.fixture(scope="package")
def archive(archives: Archives) -> Archive:
    """The archive with the settings that most scenarios have."""
    return archives({})


@pytest.fixture(scope="package")
def impatient(archives: Archives) -> Archive:
    """The archive whose timeouts are 0.6 s."""
    return archives(IMPATIENT)


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """What is entered here is closed after the test, the last one first."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def session(archive: Archive, opened: ExitStack) -> Session:
    """A control session of its own with the shared archive."""
    return opened.enter_context(Session(archive))


@pytest.fixture
def sessions(archive: Archive, opened: ExitStack) -> Callable[..., Session]:
    """Opens sessions as `Session` does, by default with the shared archive; closed after the test."""

    def session(of: Archive | None = None, **options: Any) -> Session:
        return opened.enter_context(Session(of or archive, **options))

    return session


@pytest.fixture
def stream() -> int:
    """A stream id that no other test uses."""
    return next(_streams)


@pytest.fixture
def streams() -> Callable[[], int]:
    """As `stream`, for tests that need several."""
    return lambda: next(_streams)

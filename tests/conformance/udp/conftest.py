"""Fixtures of the socket scenarios: the driver under test and raw sockets."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from tests.conformance.udp import raw
from tests.conformance.udp.driver import PEER, Driver
from tests.conformance.udp.receiving import Source, Subscribing
from tests.kit import dirs
from tests.kit.ports import free_port

Drivers = Callable[[Mapping[str, str]], Driver]
Open = Callable[..., raw.Socket]
Subscribe = Callable[..., tuple[Subscribing, Source]]

_streams = itertools.count(5001)


def pytest_report_header() -> str:
    """Say who is tested."""
    return f"socket scenarios against: {PEER}"


@pytest.fixture(scope="package")
def drivers() -> Iterator[Drivers]:
    """The driver with certain settings; one process for each set of them, ended with the package: each costs 3 % of a core."""
    with ExitStack() as opened:
        running: dict[tuple[tuple[str, str], ...], Driver] = {}

        def driver(settings: Mapping[str, str]) -> Driver:
            key = tuple(sorted(settings.items()))
            if key not in running:
                running[key] = Driver(opened.enter_context(dirs.fresh("udp")), settings)
                opened.callback(running[key].close)
            return running[key]

        yield driver


@pytest.fixture(scope="package")
def driver(drivers: Drivers) -> Driver:
    """The driver with the settings that most scenarios have: the defaults, with fast conductor timers."""
    return drivers({})


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """What is entered here is closed after the test."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def q(opened: ExitStack) -> raw.Socket:
    """A raw socket that plays the other driver."""
    return opened.enter_context(raw.Socket())


@pytest.fixture
def sockets(opened: ExitStack) -> Open:
    """Opens raw sockets as `raw.Socket` does; closed after the test."""
    return lambda *arguments, **options: opened.enter_context(raw.Socket(*arguments, **options))


@pytest.fixture
def p(opened: ExitStack) -> raw.Socket:
    """A raw socket that plays a publisher's driver."""
    return opened.enter_context(raw.Socket())


def subscribing(
    opened: ExitStack, driver: Driver, p: raw.Socket, params: str = "", **options: Any
) -> tuple[Subscribing, Source]:
    """A subscription of a driver on a port and stream of its own, and P's stream to it; closed with `opened`."""
    port, stream_id = free_port(), next(_streams)
    channel = f"aeron:udp?endpoint=127.0.0.1:{port}{params}"
    subscription = opened.enter_context(Subscribing(driver, channel, stream_id))
    return subscription, Source(p, ("127.0.0.1", port), stream_id, **options)


@pytest.fixture
def subscribe(opened: ExitStack) -> Subscribe:
    """`subscribing`, closed after the test."""
    return functools.partial(subscribing, opened)

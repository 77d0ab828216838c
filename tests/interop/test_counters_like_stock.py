"""Goal: given the same commands, our driver and a stock one make the same counters: types, keys, labels, owners and ids.

Method: a stock client gives the same commands to one of each, channels of every kind among them. What each directory holds
then is listed by the kit's own reader, with what must differ (session ids, ports that the system chose, commits) put away.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit import dirs, native, stock, stock_c
from tests.kit.cnc import Cnc, Counter
from tests.kit.ports import free_port
from tests.kit.wait import wait_until

SETTINGS = {"aeron.term.buffer.length": "128k", "aeron.timer.interval": "100ms"}
STREAM_TYPES = frozenset({1, 2, 3, 4, 5, 9, 10, 12, 13, 17, 19, 20})
# Its values do not move while nothing is published: statuses, positions, counts of what never happened.
STEADY_TYPES = frozenset({2, 3, 4, 5, 6, 7, 12, 13, 14, 17, 18, 19, 20})


def commands(client: Any, cnc: Cnc, ports: list[int], opened: Callable[[Any], Any]) -> None:
    """Channels of every kind, one by one; images are waited for, because they take registration ids, too."""
    expected = 0

    def images(more: int) -> None:
        nonlocal expected
        expected += more
        wait_until(lambda: images_of(cnc.counters()) == expected, 20, f"{expected} images")

    def sub(channel: str, stream: int, more: int = 0) -> Any:
        subscription = opened(client.subscription(channel, stream))
        images(more)
        return subscription

    def pub(channel: str, stream: int, more: int = 0, *, exclusive: bool = False) -> Any:
        add = client.exclusivePublication if exclusive else client.publication
        publication = opened(add(channel, stream))
        images(more)
        return publication

    one, group, control, four, five, six, seven = ports
    multicast = f"aeron:udp?endpoint=224.20.30.39:{group}|interface=localhost"
    sub(f"aeron:udp?endpoint=localhost:{one}|alias=s", 1001)
    pub(f"aeron:udp?endpoint=localhost:{one}|alias=p", 1001, 1)
    sub(f"aeron-spy:aeron:udp?endpoint=localhost:{one}|alias=spy", 1001, 1)
    sub(f"{multicast}|alias=m", 1002)
    pub(f"{multicast}|fc=min", 1002, 1)
    pub(f"aeron:udp?control-mode=dynamic|control=localhost:{control}|alias=mdc", 1004, exclusive=True)
    sub(f"aeron:udp?endpoint=localhost:{four}|control=localhost:{control}|control-mode=dynamic", 1004, 1)
    sub("aeron:udp?control-mode=manual|alias=mds", 1005).raw().addDestination(f"aeron:udp?endpoint=localhost:{five}")
    pub("aeron:udp?control-mode=manual|alias=mdc", 1006).raw().addDestination(f"aeron:udp?endpoint=localhost:{six}")
    sub(f"aeron:udp?endpoint=localhost:{seven}|cc=cubic", 1007)
    pub(f"aeron:udp?endpoint=localhost:{seven}|init-term-id=5|term-id=6|term-offset=64|term-length=64k", 1007, 1)
    sub("aeron:udp?endpoint=localhost:0", 1008)
    sub("aeron:ipc", 1009)
    pub("aeron:ipc?alias=" + "y" * 400, 1009, 1)
    pub("aeron:ipc", 1009, 1, exclusive=True)


def images_of(counters: list[Counter]) -> int:
    return sum(counter.type_id == 4 for counter in counters)


def listed(aeron_dir: Path, counters: list[Counter]) -> list[tuple[Any, ...]]:
    """What must be equal of each counter."""
    assert aeron_dir.exists()
    return [
        (
            counter.type_id,
            plain_label(counter),
            plain_key(counter),
            counter.registration_id,
            counter.owner_id,
            counter.reference_id,
            counter.value if counter.type_id in STEADY_TYPES else None,
        )
        for counter in counters
    ]


def plain_label(counter: Counter) -> str:
    label = re.sub(r"version=\S+ commit=\S*", "version", counter.label)
    if counter.type_id in STREAM_TYPES:
        session = struct.unpack_from("<i", counter.key, 8)[0]
        label = label.replace(f" {session} ", " session ", 1)
    if counter.type_id in {6, 14}:  # bound to a port that the system chose
        label = re.sub(r"(?<=[\d\]]):\d+$", ":port", label)
    if counter.type_id == 7:
        label = re.sub(r"(?<=localhost:0 127\.0\.0\.1):\d+$", ":port", label)
    if counter.type_id == 14:
        label = re.sub(r"sockaddr: \d+ ", "sockaddr: id ", label)
    if counter.type_id == 18:  # the one in Java ends it with a space
        label = label.rstrip()
    if counter.type_id == 11:  # the client's own words may come later
        label = label.partition(" name=")[0]
    # Where a label is cut depends on how long the session's number is.
    return label[:360]


def plain_key(counter: Counter) -> tuple[Any, ...]:
    if counter.type_id in STREAM_TYPES:
        registration, _, stream, length = struct.unpack_from("<qiii", counter.key)
        return registration, stream, length, counter.key[20 : 20 + length]
    if counter.type_id in {6, 7, 18}:
        (length,) = struct.unpack_from("<i", counter.key)
        return length, counter.key[4 : 4 + length]
    if counter.type_id == 14:
        _, length = struct.unpack_from("<ii", counter.key)
        host = counter.key[8 : 8 + length].rpartition(b":")[0]
        return (host,)
    if counter.type_id in {0, 21}:
        return struct.unpack_from("<i", counter.key)
    return struct.unpack_from("<q", counter.key)


@contextmanager
def resources() -> Iterator[Callable[[Any], Any]]:
    kept: list[Any] = []

    def opened(resource: Any) -> Any:
        kept.append(resource)
        return resource

    try:
        yield opened
    finally:
        for resource in reversed(kept):
            resource.close()


def counters_of(start: Callable[[Path], Any], peer: Any, ports: list[int]) -> list[tuple[Any, ...]]:
    with dirs.fresh("counters") as aeron_dir, start(aeron_dir), resources() as opened:
        client = opened(peer.client(str(aeron_dir)))
        cnc = Cnc(aeron_dir)
        commands(client, cnc, ports, opened)
        wait_until(
            lambda: (
                {
                    counter.value
                    for counter in cnc.counters()
                    if counter.label.startswith(("mdc-num-dest", "fc-receivers"))
                }
                == {1}
            ),
            20,
            "destinations and receivers",
        )
        return listed(aeron_dir, cnc.counters())


@pytest.mark.parametrize("kind", ["C", "Java"])
def test_the_same_commands_make_the_same_counters(kind: str, peer: Any) -> None:
    ports = [free_port() for _ in range(7)]
    theirs: dict[str, Callable[[Path], Any]] = {
        "C": lambda directory: stock_c.driver(directory, SETTINGS),
        "Java": lambda directory: stock.driver(directory, settings=SETTINGS),
    }
    stocks = counters_of(theirs[kind], peer, ports)
    ours = counters_of(lambda directory: native.driver(directory, SETTINGS), peer, ports)
    if kind == "Java":  # names a resolver that has no name; older releases name the last system counter otherwise
        stocks[25], stocks[45] = ours[25], ours[45]
    assert sorted(ours, key=repr) == sorted(stocks, key=repr)
    if kind == "C":  # the ids, too; the one in Java makes some in another order
        assert ours == stocks


def test_labels_carry_the_release_and_our_commit() -> None:
    with dirs.fresh("labels") as aeron_dir, native.driver(aeron_dir):
        labels = [counter.label for counter in Cnc(aeron_dir).counters()]
    release = r"version=1\.52\.0 commit=[0-9a-f]{10}(\+\w+)?"
    assert re.fullmatch(f"Errors: {release}", labels[15])
    assert re.fullmatch(f"Aeron software: {release}", labels[34])

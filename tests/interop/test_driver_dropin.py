"""Goal: a suite that launches the stock driver's executable can launch ours, and sees no difference.

Method: what such a harness relies on, and nothing else: the executable without arguments, all settings by their stock names in
the environment; standard error and the distinct error log empty at the end of every test, save where a test awaits an error;
counters found by type id and label. `--subject stock-c` proves that the stock driver in C does as told here.
"""

# ruff: noqa: PLR0917 - fixtures are arguments
from __future__ import annotations

import mmap
import re
import signal
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.interop.test_driver_behaviour import channels, connected, transfer
from tests.kit import dirs, native, service_log, stock, stock_c
from tests.kit.cnc import HEADER_LENGTH, VALUE_LENGTH, Cnc
from tests.kit.ports import free_port, free_range
from tests.kit.processes import Process, driver_ready
from tests.kit.subject import Subject
from tests.kit.wait import wait_until

TIMEOUT_MS = 20_000

# What a harness sets for all its drivers.
COMMON = {
    "AERON_TERM_BUFFER_LENGTH": "65536",
    "AERON_IPC_TERM_BUFFER_LENGTH": "65536",
    "AERON_THREADING_MODE": "SHARED",
    "AERON_SHARED_IDLE_STRATEGY": "yield",
    "AERON_TIMER_INTERVAL": "50ms",
    "AERON_IMAGE_LIVENESS_TIMEOUT": "5s",
    "AERON_PUBLICATION_LINGER_TIMEOUT": "200ms",
    "AERON_CLIENT_LIVENESS_TIMEOUT": "5s",
    "AERON_DRIVER_TERMINATION_VALIDATOR": "allow",
    "AERON_PRINT_CONFIGURATION": "false",
}
ERRORS, RESOLUTION_CHANGES = "Errors", "Resolution changes"
NAME_ENTRY, SYSTEM = 2001, 0

Opened = Callable[[Any], Any]


@dataclass(slots=True, kw_only=True)
class Driver:
    """A driver that was launched, and whether its test awaits errors in its log."""

    directory: Path
    process: Process
    awaits_errors: bool = False

    def counters(self) -> Cnc:
        """Its counters, as a file."""
        return Cnc(self.directory)

    def system(self, label: str) -> int:
        """The value of a system counter."""
        return next(c.value for c in self.counters().counters() if c.type_id == SYSTEM and c.label.startswith(label))


Launch = Callable[..., Driver]


@pytest.fixture
def launch(subject: Subject) -> Iterator[Launch]:
    """`launch(NAME=value, ...)` starts the executable in a directory of its own, with that in its environment."""
    if subject.is_java:
        pytest.skip("the stock driver in Java takes no settings from the environment")
    executable = (
        stock_c.programs_or_skip() / "stock-c-driver" if subject.is_stock else native.executable("aeron-spark-driver")
    )
    with ExitStack() as stack:
        drivers = []

        def start(settings: Mapping[str, str] | None = None) -> Driver:
            directory = stack.enter_context(dirs.fresh("dropin"))
            environment = {**COMMON, "AERON_DIR": str(directory), **(settings or {})}
            process = Process("driver", [executable], env=environment)
            stack.callback(process.kill)
            process.wait_ready(driver_ready(process, directory))
            drivers.append(Driver(directory=directory, process=process))
            return drivers[-1]

        yield start
        for driver in drivers:
            code = driver.process.stop()
            assert code in {0, signal.SIGTERM}, driver.process.report()
            if not driver.awaits_errors:
                assert not service_log.problems(driver.process.stderr()), driver.process.report()
                assert not driver.counters().errors()


@pytest.fixture
def connect(peer: Any, opened: Opened) -> Callable[[Driver], Any]:
    """`connect(driver)` is a stock client of it."""

    def connected_to(driver: Driver) -> Any:
        return opened(peer.client(str(driver.directory)))

    return connected_to


def exchange(client: Any, stream: int, opened: Opened, kind: str = "unicast", more: str = "", count: int = 300) -> None:
    """A stream of a kind of channel within one driver, all bytes compared."""
    publish_to, subscribe_to, send_to, receive_from = channels(kind)
    subscription = opened(client.subscription(subscribe_to, stream))
    for destination in receive_from:
        subscription.raw().addDestination(destination)
    reading = opened(subscription.read(count, None))
    publication = opened(client.exclusivePublication(publish_to + more, stream))
    for destination in send_to:
        publication.raw().addDestination(destination)
    transfer(connected(publication), [reading], stream, count)


# -- start, end, threads -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["DEDICATED", "SHARED_NETWORK", "SHARED"])
def test_every_threading_mode_serves_and_ends_by_command(
    launch: Launch, connect: Any, peer: Any, stream: int, opened: Opened, mode: str
) -> None:
    driver = launch({"AERON_THREADING_MODE": mode})
    client = connect(driver)
    for kind in ("ipc", "unicast", "multicast", "dynamic", "spy"):
        exchange(client, stream, opened, kind)
    assert peer.requestTermination(str(driver.directory), "")
    assert driver.process.wait_end(timeout=10) == 0


def test_a_request_to_end_is_refused_where_not_allowed(
    launch: Launch, connect: Any, peer: Any, stream: int, opened: Opened
) -> None:
    driver = launch({"AERON_DRIVER_TERMINATION_VALIDATOR": "deny"})
    assert peer.requestTermination(str(driver.directory), "")
    exchange(connect(driver), stream, opened)
    assert driver.process.returncode is None


@pytest.mark.parametrize("idle", ["noop", "spin", "yield", "backoff", "sleep-ns", "sleep-ms"])
def test_idle_strategies_by_their_short_names(
    launch: Launch, connect: Any, subject: Subject, stream: int, opened: Opened, idle: str
) -> None:
    if subject.is_stock and idle == "sleep-ms":
        return  # An alias of the driver in Java: a suite for both sets it, ours knows it.
    names = ("CONDUCTOR", "SENDER", "RECEIVER", "SHARED", "SHAREDNETWORK")
    driver = launch({"AERON_THREADING_MODE": "DEDICATED", **{f"AERON_{name}_IDLE_STRATEGY": idle for name in names}})
    exchange(connect(driver), stream, opened, count=100)


def test_several_drivers_side_by_side(launch: Launch, connect: Any, stream: int, opened: Opened) -> None:
    clients = [connect(launch()) for _ in range(3)]
    endpoint = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    multicast = f"aeron:udp?endpoint=224.20.30.47:{free_port()}|interface=127.0.0.1"
    unicast = opened(opened(clients[1].subscription(endpoint, stream)).read(300, None))
    group = [opened(opened(one.subscription(multicast, stream)).read(300, None)) for one in clients[1:]]
    transfer(connected(opened(clients[0].exclusivePublication(endpoint, stream))), [unicast], stream)
    to_all = opened(clients[0].exclusivePublication(f"{multicast}|fc=min,g:/2", stream))
    transfer(connected(to_all), group, stream)


def test_settings_of_the_directory(launch: Launch, subject: Subject) -> None:
    driver = launch({"AERON_DIR_DELETE_ON_SHUTDOWN": "1", "AERON_DIR_DELETE_ON_START": "true"})
    assert driver.process.stop() in {0, signal.SIGTERM}
    assert not driver.directory.exists()
    driver.directory.mkdir()
    restarted = launch({"AERON_DIR_WARN_IF_EXISTS": "false"})
    assert {path.name for path in restarted.directory.iterdir()} >= {
        "cnc.dat",
        "loss-report.dat",
        "publications",
        "images",
    }
    driver.awaits_errors = True  # there is nothing left to look at


def test_lengths_and_timeouts_reach_the_clients(launch: Launch, connect: Any, stream: int, opened: Opened) -> None:
    driver = launch(
        {
            "AERON_TERM_BUFFER_LENGTH": "128k",
            "AERON_IPC_TERM_BUFFER_LENGTH": "256k",
            "AERON_MTU_LENGTH": "4096",
            "AERON_IPC_MTU_LENGTH": "8192",
            "AERON_COUNTERS_BUFFER_LENGTH": "2m",
            "AERON_CLIENT_LIVENESS_TIMEOUT": "7s",
        }
    )
    header = driver.counters().header()
    assert header is not None
    assert header.counters_values_length == 2 * 1024 * 1024
    assert header.client_liveness_ns == 7_000_000_000
    client = connect(driver)
    over_udp = opened(client.publication(f"aeron:udp?endpoint=127.0.0.1:{free_port()}", stream)).raw()
    over_ipc = opened(client.publication("aeron:ipc", stream)).raw()
    assert (over_udp.termBufferLength(), over_udp.maxPayloadLength()) == (128 * 1024, 4096 - 32)
    assert (over_ipc.termBufferLength(), over_ipc.maxPayloadLength()) == (256 * 1024, 8192 - 32)


# -- suppliers ---------------------------------------------------------------------------------------------------------

FLOWS = [
    ("UNICAST", "unicast_max"),
    ("UNICAST", "aeron_unicast_flow_control_strategy_supplier"),
    ("MULTICAST", "multicast_max"),
    ("MULTICAST", "multicast_min"),
    ("MULTICAST", "multicast_tagged"),
    ("MULTICAST", "aeron_max_multicast_flow_control_strategy_supplier"),
    ("MULTICAST", "aeron_min_flow_control_strategy_supplier"),
    ("MULTICAST", "aeron_tagged_flow_control_strategy_supplier"),
]


@pytest.mark.parametrize(("cast", "supplier"), FLOWS)
def test_flow_control_by_the_names_of_suppliers(
    launch: Launch, connect: Any, stream: int, opened: Opened, cast: str, supplier: str
) -> None:
    driver = launch(
        {
            f"AERON_{cast}_FLOWCONTROL_SUPPLIER": supplier,
            "AERON_FLOW_CONTROL_GROUP_TAG": "77",
            "AERON_FLOW_CONTROL_GROUP_MIN_SIZE": "1",
            "AERON_RECEIVER_GROUP_TAG": "77",
        }
    )
    exchange(connect(driver), stream, opened, cast.lower())
    assert driver.counters().value_of("fc-receivers") == (None if "max" in supplier or cast == "UNICAST" else 1)


@pytest.mark.parametrize("supplier", ["default", "static", "cubic"])
@pytest.mark.parametrize("measures", ["true", "false"])
def test_congestion_control_by_the_names_of_suppliers(
    launch: Launch, connect: Any, stream: int, opened: Opened, supplier: str, measures: str
) -> None:
    driver = launch(
        {
            "AERON_CONGESTIONCONTROL_SUPPLIER": supplier,
            "AERON_CUBICCONGESTIONCONTROL_MEASURERTT": measures,
            "AERON_CUBICCONGESTIONCONTROL_INITIALRTT": "50us",
            "AERON_CUBICCONGESTIONCONTROL_TCPMODE": "false",
        }
    )
    exchange(connect(driver), stream, opened)
    assert (driver.counters().value_of("rcv-cc-cubic-wnd") is not None) == (supplier == "cubic")


def set_counter(driver: Driver, counter_id: int, value: int) -> None:
    """What a harness does from outside to choose a name's host."""
    header = driver.counters().header()
    assert header is not None
    values = HEADER_LENGTH + header.to_driver_length + header.to_clients_length + header.counters_metadata_length
    with (driver.directory / "cnc.dat").open("r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        struct.pack_into("<q", view, values + counter_id * VALUE_LENGTH, value)


def test_names_by_a_table_that_the_harness_turns_over(
    launch: Launch, connect: Any, stream: int, opened: Opened
) -> None:
    port = free_port()
    rows = f"first,127.0.0.1,127.0.0.2|whole,127.0.0.1:{port},127.0.0.2:{port}"
    driver = launch(
        {
            "AERON_NAME_RESOLVER_SUPPLIER": "csv_table",
            "AERON_NAME_RESOLVER_INIT_ARGS": rows,
            "AERON_DRIVER_RERESOLUTION_CHECK_INTERVAL": "200ms",
        }
    )
    entries = {c.label: c for c in driver.counters().counters() if c.type_id == NAME_ENTRY}
    assert set(entries) == {
        "NameEntry{name='first', initialResolutionHost='127.0.0.1', reResolutionHost='127.0.0.2'}",
        f"NameEntry{{name='whole', initialResolutionHost='127.0.0.1:{port}', reResolutionHost='127.0.0.2:{port}'}}",
    }
    client = connect(driver)
    subscription = client.subscription(f"aeron:udp?endpoint=127.0.0.1:{port}", stream)
    publication = connected(opened(client.exclusivePublication(f"aeron:udp?endpoint=first:{port}", stream)))
    subscription.close()
    elsewhere = opened(client.subscription(f"aeron:udp?endpoint=127.0.0.2:{port}", stream))
    wait_until(lambda: not publication.raw().isConnected(), 20, "the publication to be alone")
    set_counter(driver, next(c.id for label, c in entries.items() if "'first'" in label), 1)
    reading = opened(elsewhere.read(300, None))
    transfer(connected(publication), [reading], stream)
    wait_until(lambda: driver.system(RESOLUTION_CHANGES) >= 1, 10, "the change to be counted")


def test_a_name_whose_lookup_is_made_to_fail(launch: Launch, connect: Any, stream: int) -> None:
    driver = launch(
        {
            "AERON_NAME_RESOLVER_SUPPLIER": "csv_table",
            "AERON_NAME_RESOLVER_INIT_ARGS": "here,127.0.0.1,127.0.0.2",
        }
    )
    driver.awaits_errors = True
    set_counter(driver, next(c.id for c in driver.counters().counters() if c.type_id == NAME_ENTRY), -1)
    with stock.raises("RegistrationException", r"here.*\(forced\)|\(forced\)"):
        connect(driver).publication(f"aeron:udp?endpoint=here:{free_port()}", stream)
    assert any("(forced)" in error for error in driver.counters().errors())


# -- loss --------------------------------------------------------------------------------------------------------------

# Streams of the test begin at term 7, so that a generator can name a place in them.
LOSSES = {
    "loss": {"AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS": "rate=0.1|seed=4711|recv-msg-mask=0xf"},
    "fixed-loss": {"AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS": "term-id=7|term-offset=2048|length=8192"},
    "multi-gap-loss": {
        "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MULTI_GAP_LOSS_ARGS": (
            "term-id=7|gap-radix=8192|gap-length=1408|total-gaps=5"
        )
    },
}
AT_TERM_7 = "|init-term-id=7|term-id=7|term-offset=0|term-length=64k"


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("way", ["INCOMING", "OUTGOING"])
def test_what_a_loss_generator_loses_is_made_good(
    launch: Launch, connect: Any, subject: Subject, stream: int, opened: Opened, kind: str, way: str
) -> None:
    if subject.is_stock and way == "OUTGOING":
        return  # Spec: 05 §10: the stock driver crashes.
    driver = launch({f"AERON_UDP_CHANNEL_{way}_INTERCEPTORS": kind, **LOSSES[kind]})
    exchange(connect(driver), stream, opened, "unicast", AT_TERM_7, count=1000)
    assert driver.system("NAKs sent") > 0
    assert driver.system("Retransmits sent") > 0


def test_what_an_unreliable_subscriber_lost_stays_lost(
    launch: Launch, connect: Any, stream: int, opened: Opened
) -> None:
    driver = launch({"AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS": "fixed-loss", **LOSSES["fixed-loss"]})
    client = connect(driver)
    endpoint = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    subscription = opened(client.subscription(f"{endpoint}|reliable=false", stream))
    publication = connected(opened(client.exclusivePublication(endpoint + AT_TERM_7, stream)))
    # 30 frames of 1,056 bytes, and of those that touch 2,048..10,239 one at least is lost.
    reading = opened(subscription.read(30, None))
    end = publication.publish(stream, 0, 30, [1024], TIMEOUT_MS)
    wait_until(lambda: reading.seenPosition() == end, 20, "the reader to come to the end", state=reading.seenPosition)
    assert reading.seen() < 30
    assert driver.system("Loss gap fills") > 0
    assert driver.system("Retransmits sent") == 0


# -- counters and labels -----------------------------------------------------------------------------------------------


def test_version_and_commit_stand_in_the_labels_that_carry_them(launch: Launch) -> None:
    labels = [c.label for c in launch().counters().counters() if c.type_id == SYSTEM]
    for beginning in ("Errors: version=", "Aeron software: version="):
        found = next(label for label in labels if label.startswith(beginning))
        assert re.fullmatch(rf"{beginning}1\.52\.\d+ commit=\S+", found), found


def test_counters_are_found_by_type_and_label(launch: Launch, connect: Any, stream: int, opened: Opened) -> None:
    client = connect(launch())
    endpoint = f"127.0.0.1:{free_port()}"
    channel = f"aeron:udp?endpoint={endpoint}"
    subscription = opened(client.subscription(channel, stream))
    publication = connected(opened(client.exclusivePublication(channel, stream)))
    wait_until(subscription.image, 10, "the image")
    raw = publication.raw()
    stem = f"{raw.registrationId()} {raw.sessionId()} {stream} {channel}"
    image = f"{subscription.image().correlationId()} {raw.sessionId()} {stream} {channel}"
    reader = f"{subscription.raw().registrationId()} {raw.sessionId()} {stream} {channel}"
    wanted = {
        1: f"pub-lmt: {stem}",
        2: f"snd-pos: {stem}",
        3: f"rcv-hwm: {image}",
        4: f"sub-pos: {reader} @0",
        5: f"rcv-pos: {image}",
        6: f"snd-channel: {channel} 127.0.0.1:0",
        7: f"rcv-channel: {channel}",
        9: f"snd-lmt: {stem}",
        12: f"pub-pos (exclusive): {stem}",
        13: f"snd-bpe: {stem}",
    }
    lines = [line.split("|", 6) for line in client.counters()]
    found = {int(line[1]): line[6] for line in lines if f" {stream} {channel}" in line[6] or channel in line[6]}
    assert {kind: found.get(kind, "")[: len(text)] for kind, text in wanted.items() if kind != 6} == {
        kind: text for kind, text in wanted.items() if kind != 6
    }
    assert found[6].startswith(f"snd-channel: {channel}")


# -- limits ------------------------------------------------------------------------------------------------------------


def test_ports_of_a_range(launch: Launch, connect: Any, stream: int, opened: Opened) -> None:
    first = free_range(5)
    driver = launch(
        {
            "AERON_RECEIVER_WILDCARD_PORT_RANGE": f"{first} {first + 2}",
            "AERON_SENDER_WILDCARD_PORT_RANGE": f"{first + 3} {first + 4}",
        }
    )
    driver.awaits_errors = True
    client = connect(driver)
    wildcard = "aeron:udp?endpoint=127.0.0.1:0"
    subscriptions = [opened(client.subscription(wildcard, stream)) for _ in range(3)]
    resolved = [wait_until(one.raw().resolvedEndpoint, 10, "its port") for one in subscriptions]
    assert sorted(resolved) == [f"127.0.0.1:{first + index}" for index in range(3)]
    with stock.raises("RegistrationException", "no available ports in range"):
        client.subscription(wildcard, stream)
    subscriptions[1].raw().close()
    again = wait_until(lambda: add_again(client, wildcard, stream), 20, "the port to be free again")
    assert wait_until(opened(again).raw().resolvedEndpoint, 10, "its port") == resolved[1]
    control = "aeron:udp?control=127.0.0.1:0|control-mode=dynamic"
    publication = opened(client.exclusivePublication(control, stream))
    address = wait_until(lambda: list(publication.raw().localSocketAddresses()), 10, "its port")[0]
    assert address in {f"127.0.0.1:{first + 3}", f"127.0.0.1:{first + 4}"}


def add_again(client: Any, channel: str, stream: int) -> Any:
    """A subscription, or None while it is refused."""
    try:
        return client.subscription(channel, stream)
    except Py4JJavaError:
        return None


def test_a_stream_has_no_more_sessions_than_allowed(launch: Launch, connect: Any, stream: int, opened: Opened) -> None:
    driver = launch({"AERON_DRIVER_STREAM_SESSION_LIMIT": "2"})
    driver.awaits_errors = True
    client = connect(driver)
    channel = f"aeron:udp?endpoint=127.0.0.1:{free_port()}"
    subscription = opened(client.subscription(channel, stream))
    for _ in range(3):
        opened(client.exclusivePublication(channel, stream))
    wait_until(lambda: any("session limit" in error for error in driver.counters().errors()), 20, "the refusal")
    assert subscription.raw().imageCount() <= 2
    wait_until(lambda: subscription.raw().imageCount() == 2, 20, "the two that may be")


def test_cycles_over_their_threshold_are_counted(launch: Launch, connect: Any, stream: int, opened: Opened) -> None:
    agents = ("CONDUCTOR", "SENDER", "RECEIVER")
    driver = launch({f"AERON_DRIVER_{agent}_CYCLE_THRESHOLD": "1ns" for agent in agents})
    exchange(connect(driver), stream, opened)
    for agent in agents:
        name = agent.capitalize()
        count = partial(driver.system, f"{name} work cycle exceeded threshold")
        wait_until(count, 10, f"long cycles of {name}")
        label = next(c.label for c in driver.counters().counters() if c.label.startswith(f"{name} work cycle exceeded"))
        assert "threshold=1ns" in label
        assert driver.system(f"{name} max cycle time") > 0


def test_client_errors_are_told_and_logged_as_they_are(launch: Launch, connect: Any, stream: int) -> None:
    driver = launch()
    driver.awaits_errors = True
    client = connect(driver)
    for channel in ("aeron:udp?endpoint=127.0.0.1:0", "aeron:udp?endpoint=no.such.host.invalid:1", "aeron:udp?mtu=1k"):
        with stock.raises("RegistrationException", ""):
            client.publication(channel, stream)
    assert driver.system(ERRORS) == len(driver.counters().errors()) == 3

"""Goal: what our driver refuses, it refuses as the stock drivers do: with the same code, in the same words.

Method: the commands of provocations.py, one by one, to a stock driver and to ours, by a client made by hand. A stock text
counts line by line, without the function and line of its source: ours must hold each. What is otherwise on purpose is in a
table here with its reason; a row of it that is not needed any more is an error. What the driver in C does not answer is
compared with the one in Java.
"""

from __future__ import annotations

import functools
import re
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.udp import raw
from tests.interop.provocations import PROVOCATIONS, Command, Provocation, sub, unsub
from tests.kit import commands, dirs, native, stock, stock_c
from tests.kit.cnc import Cnc
from tests.kit.commands import HandMadeClient
from tests.kit.ports import bind_free, free_port
from tests.kit.wait import wait_until

# No client is dropped for its silence while this runs.
SETTINGS = {
    "aeron.client.liveness.timeout": "300s",
    "aeron.publication.unblock.timeout": "600s",
    "aeron.timer.interval": "100ms",
    "aeron.term.buffer.length": "128k",
}
Start = Callable[[Path], Any]
# Failures to send come into the log at any time: what a command alone writes there is known by its words.
EVENTS = "onPublicationError"
# Numbers that stand for nothing else in a text.
FIRST_ID, FIRST_TAG, FIRST_STREAM = 4_000_000_000_000, 5_000_000_000, 1_600_000_000

# Rows (names, as a pattern of all of it) in which ours differs from the driver in C, and why.
DIFFERENCES = {
    r"(pub|sub|dest|undest|rdest|unrdest) aeron:udp": "what is missing is named, as in Java: an address, not the scheme",
    r"pub aeron:ipc[x:]": "its second line says 'failed to parse channel URI' of IPC publications alone",
    r"(pub|sub) aeron:udp\?p0=.*": "a channel has at most 64 parameters here",
    r"sub aeron-spy:aeron-spy:.*": "the text has the channel as it was given, with both prefixes",
    r"(pub|sub) endpoint=127\.0\.0\.1:(99999999)?": "the text has the port, not the address, where the port is no number",
    r"(pub|sub) .*interface=\[::1": "the text names the missing bracket, not a host '[:'",
    r"(pub|sub) .*tags=\{tag\}x": "a tag is a number to its end, as in Java",
    r"(pub|sub) (so-sndbuf|so-rcvbuf|rcv-wnd)=(8g|9+)": "refused, as in Java: the one in C cuts it to 32 bits",
    r"(pub|sub) nak-delay=.*|pub gtag=.*|pub (ipc )?linger=5m": "refused, as in Java: the one in C takes it for absent",
    r"(pub|sub) session-id= 5": "refused, as in Java: a number begins with a digit or its sign",
    r"(pub|sub) channel-(rcv|snd)-ts-offset=abc": "the parameter is named: the one in C says media-rcv-ts-offset",
    r"pub (ipc )?init-term-id=1\|term-id=2\|term-offset=x": "the text has 'as int64_t', as for other numbers",
    r"pub (ipc )?init-term-id=2\|term-id=1\|term-offset=0": "the term id is named so: the one in C calls it an offset",
    r"pub (ipc )?init-term-id=1\|term-id=2\|term-offset=-32": "the text has the offset as it was given, not modulo 2^64",
    r"pub ipc session-id=tag:1|xpub aeron:ipc\?session-id=5.*": "a tag is looked up among IPC publications, as in Java",
    r"pub unicast fc=min,rrwm:0": "of unicast flow control the multiple counts, so it is checked",
    r"pub (multicast|mdc) fc=tagged,g:x(/1)?": "a group tag is a number, as in Java: the one in C takes 0",
    r"pub .* then .*so-sndbuf=\{sndbuf\}": "what the socket has is what was asked for: the one in C compares what channels say",
    r"sub .*so-rcvbuf=256k then aeron:udp\?endpoint=127\.0\.0\.1:\{a\}": "who names no length takes what is there, as in Java",
    r"(dest|undest) .*:00": "port 00 is port 0",
    r"unrdest .*ats=true": "what could not be added is refused",
    r"reject of (none|none, long|an ipc publication, long|a network publication)": "code and words of Java: the one in C says "
    "EAGAIN for 11, and reason_text",
    r"a counter (without a label|with a negative key length)": "refused, as in Java: the one in C reads past its end",
}
# The driver in C leaves these without an answer; what ours says otherwise than the one in Java, and why.
UNLIKE_JAVA = {
    r"undest_by_id of .*": "the words, and for a channel without manual control the code, of other commands about destinations",
    r"a (publication|subscription) with too long a length|a rejection .*": "what is too short is named",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a driver said to a command: errors as (names the command, code, text); and what it logged of one it took."""

    refused: tuple[tuple[bool, int, str], ...]
    accepted: bool
    logged: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Of all rows with one driver, and how many errors it counted meanwhile; failures to send may be among them."""

    rows: dict[str, Outcome]
    counted: int


class Driver:
    """A driver and what is the same for all of its rows."""

    def __init__(self, aeron_dir: Path, names: Mapping[str, int]) -> None:
        self.aeron_dir, self.names = aeron_dir, names
        self.cnc = Cnc(aeron_dir)

    def provoke(self, index: int, row: Provocation) -> Outcome:
        """The row's commands by a client of its own; the outcome of the last."""
        names = {**self.names, **ports_of(row), "tag": FIRST_TAG + index}
        with HandMadeClient(self.aeron_dir, first_id=FIRST_ID) as client:
            for number, command in enumerate(row.before):
                names[str(number)] = give(client, command, names, FIRST_STREAM + index)
            before = (
                [one.error for one in client.until_answered() if one.type_id == commands.ERROR] if row.before else []
            )
            assert not before, f"{row.name}: what should be there was refused: {before}"
            asked = give(client, row.command, names, FIRST_STREAM + index)
            answers = client.until_answered()
            ids = {str(value): f"<{name}>" for name, value in {**names, "client": client.client_id}.items()}
        refused = [message for message in answers if message.type_id == commands.ERROR]
        logged = () if refused else tuple(plain(text, ids) for text in self.cnc.errors() if text.startswith(EVENTS))
        return Outcome(
            refused=tuple((one.correlation_id == asked, one.error[0], plain(one.error[1], ids)) for one in refused),
            accepted=any(one.correlation_id == asked for one in answers if one.type_id != commands.ERROR),
            logged=logged,
        )


@functools.cache
def ports_of(row: Provocation) -> dict[str, int]:
    """Those that the row names, the same for every driver, and of no other row: a port may stay taken for a while."""
    channels = " ".join(command.channel or "" for command in (*row.before, row.command))
    return {name: free_port() for name in ("a", "b", "c") if f"{{{name}}}" in channels}


def give(client: HandMadeClient, command: Command, names: Mapping[str, int], stream: int) -> int:
    correlation_id = client.next_id()
    head = struct.pack("<qq", client.client_id, correlation_id)
    client.send(command.type_id, head + command.body(dict(names), stream))
    return correlation_id


def plain(text: str, ids: Mapping[str, str]) -> str:
    """The text without what must differ: ids, counters' ids, descriptors, numbers of chance."""
    text = re.sub(r"\d+", lambda number: ids.get(number[0], number[0]), text)
    text = re.sub(r"failed to bind\(\d+,", "failed to bind(fd,", text)
    text = re.sub(r"correlation_id=\d+", "correlation_id=<id>", text)
    text = re.sub(r"counterId=\d+", "counterId=<id>", text)
    return re.sub(r"existing=-?\d{5,} requested=1\b", "existing=<random> requested=1", text)


def lines_of(text: str) -> list[str]:
    """The lines of a stock text that say something, without what errno says, which may be that all is well."""
    bare = (re.sub(r"^\[\w+, [\w.]+:\d+\] ", "", line) for line in text.splitlines())
    said = (re.sub(r"(?: due to)?: (?:Success|Numerical result out of range)$", "", line).strip() for line in bare)
    return [line for line in said if line and not line.startswith("unicast bind, affinity=")]


def differences(theirs: Outcome, ours: Outcome) -> list[str]:
    """What a client, or a reader of the error log, would see otherwise."""
    if [one[:2] for one in theirs.refused] != [one[:2] for one in ours.refused] or theirs.accepted != ours.accepted:
        return [f"theirs: {theirs}", f"ours: {ours}"]
    found = []
    for their, our in zip(theirs.refused, ours.refused, strict=True):
        found += [f"missing: {line!r} in {our[2]!r}" for line in lines_of(their[2]) if line not in our[2]]
    return found + [f"not logged: {text!r} but {ours.logged}" for text in theirs.logged if text not in ours.logged]


def outcomes(start: Start, rows: tuple[Provocation, ...] = PROVOCATIONS) -> Outcomes:
    """Of the rows, with one driver."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken,
        dirs.fresh("refusals") as aeron_dir,
        start(aeron_dir),
    ):
        names = {"used": bind_free(taken, "127.0.0.1"), "sndbuf": taken.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)}
        driver = Driver(aeron_dir, names)
        before = driver.cnc.value_of("Errors") or 0
        found = {row.name: driver.provoke(index, row) for index, row in enumerate(rows)}
        return Outcomes(rows=found, counted=(driver.cnc.value_of("Errors") or 0) - before)


def pattern_of(name: str, table: Mapping[str, str]) -> str | None:
    """The table's pattern that fits the row."""
    return next((pattern for pattern in table if re.fullmatch(pattern, name)), None)


def check(found: Mapping[str, list[str]], table: Mapping[str, str]) -> None:
    """Rows that differ are in the table, and the table has no others."""
    excused = {name: pattern_of(name, table) for name, different in found.items() if different}
    unexpected = [f"{name}:\n  " + "\n  ".join(found[name]) for name, pattern in excused.items() if pattern is None]
    assert not unexpected, "\n".join(unexpected)
    assert set(excused.values()) == set(table), "a reason of the table excuses nothing any more"


@pytest.fixture(scope="module")
def ours() -> Outcomes:
    return outcomes(lambda aeron_dir: native.driver(aeron_dir, SETTINGS))


@pytest.fixture(scope="module")
def theirs_in_c() -> Outcomes:
    return outcomes(lambda aeron_dir: stock_c.driver(aeron_dir, SETTINGS))


def is_unanswered(outcome: Outcome) -> bool:
    return not outcome.accepted and not outcome.refused


def test_refusals_are_those_of_the_driver_in_c(ours: Outcomes, theirs_in_c: Outcomes) -> None:
    found = {
        name: differences(theirs, ours.rows[name])
        for name, theirs in theirs_in_c.rows.items()
        if not is_unanswered(theirs)
    }
    assert sum(bool(theirs.refused) for theirs in theirs_in_c.rows.values()) > 400
    check(found, DIFFERENCES)


def test_what_the_driver_in_c_does_not_answer_is_refused_as_in_java(ours: Outcomes, theirs_in_c: Outcomes) -> None:
    rows = tuple(row for row in PROVOCATIONS if is_unanswered(theirs_in_c.rows[row.name]))
    assert len(rows) > 8
    java = outcomes(lambda aeron_dir: stock.driver(aeron_dir, settings=SETTINGS), rows)
    found = {}
    for name, theirs in java.rows.items():
        words = tuple((own, code, text.removeprefix("ERROR - ")) for own, code, text in theirs.refused)
        found[name] = differences(replace(theirs, refused=words, logged=()), ours.rows[name])
    check(found, UNLIKE_JAVA)


def test_every_refusal_is_counted(ours: Outcomes) -> None:
    assert ours.counted >= sum(bool(outcome.refused) for outcome in ours.rows.values())


# SETUP frames that get no image, by what is wrong with them: the mtu, and words that every driver logs; those that no stream
# can have are invalid packets from Aeron 1.53 on, and with ours, and fill no error log.
WINDOW, STREAM = 4096, 1001
BAD_SETUPS = {
    "an mtu beyond the window": (2 * WINDOW, f"mtuLength={2 * WINDOW} > initialWindowLength={WINDOW}", False),
    "an mtu that is not aligned": (1409, "mtuLength", True),
    "an mtu of nothing": (0, "mtuLength", True),
}


@pytest.mark.parametrize("kind", ["ours", "C", "Java"])
def test_setups_that_get_no_image_are_logged(kind: str) -> None:
    start: dict[str, Start] = {
        "ours": lambda aeron_dir: native.driver(aeron_dir, SETTINGS),
        "C": lambda aeron_dir: stock_c.driver(aeron_dir, SETTINGS),
        "Java": lambda aeron_dir: stock.driver(aeron_dir, settings=SETTINGS),
    }
    port = free_port()
    with dirs.fresh("setups") as aeron_dir, start[kind](aeron_dir), HandMadeClient(aeron_dir) as client:
        give(client, sub(f"aeron:udp?endpoint=127.0.0.1:{port}|rcv-wnd={WINDOW}"), {}, STREAM)
        assert client.until_answered()
        cnc = Cnc(aeron_dir)
        with raw.Socket() as peer:
            for session, (name, (mtu, words, is_of_no_stream)) in enumerate(BAD_SETUPS.items()):
                before, invalid = len(cnc.errors()), cnc.value_of("Invalid packets")
                frame = raw.Setup(session_id=session, stream_id=STREAM, initial_term_id=7, active_term_id=7, mtu=mtu)
                peer.send(frame, to=("127.0.0.1", port))
                if kind == "ours" and is_of_no_stream:
                    wait_until(lambda: cnc.value_of("Invalid packets") > invalid, 20, f"{name} to be counted")  # noqa: B023
                    assert len(cnc.errors()) == before
                    continue
                wait_until(lambda: len(cnc.errors()) > before, 20, f"{name} to be logged")  # noqa: B023 - called at once
                assert words in cnc.errors()[before]


@pytest.mark.parametrize("kind", ["ours", "C"])
def test_an_endpoint_that_closes_is_to_be_asked_for_again_and_no_error(kind: str) -> None:
    start: dict[str, Start] = {
        "ours": lambda aeron_dir: native.driver(aeron_dir, SETTINGS),
        "C": lambda aeron_dir: stock_c.driver(aeron_dir, SETTINGS),
    }
    with dirs.fresh("closing") as aeron_dir, start[kind](aeron_dir), HandMadeClient(aeron_dir) as client:

        def refused() -> list[tuple[int, str]]:
            channel = sub(f"aeron:udp?endpoint=127.0.0.1:{free_port()}")
            added = give(client, channel, {}, 1001)
            give(client, unsub(added), {}, 1001)
            give(client, channel, {}, 1001)
            return [message.error for message in client.until_answered() if message.type_id == commands.ERROR]

        code, text = wait_until(refused, 20, "the endpoint to be found closing")[0]
        assert code == 10
        assert "receive_channel_endpoint found in CLOSING state, please retry" in text
        assert Cnc(aeron_dir).value_of("Errors") == 0

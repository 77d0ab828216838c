"""The tables of the live screen: what a row is, its columns, and what its detail says. Pure data and functions over facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aeron_spark.live.facts import Client, Error, Facts, Flow, Loss, Party, Recording, ServerFact, Stream
from aeron_spark.live.snapshot import ServerState
from aeron_spark.top.amounts import amount, moment, span

_SOON_S = 86400
_LITTLE_SHARE = 0.1
#: Row of a detail: a label and its text.
Line = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`width` 0: what is left over, at least `least`. `order` sorts; rows where it is None come last."""

    title: str
    width: int
    show: Callable[[Any], str]
    order: Callable[[Any], Any]
    least: int = 0
    is_number: bool = False
    #: Sorting by it begins with the greatest.
    greatest_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A table. A narrow terminal shows the first `columns`, as many as fit. `by` is what it is sorted by at first."""

    title: str
    short: str
    by: str
    rows: Callable[[Facts], Sequence[Any]]
    columns: Sequence[Column]
    #: Colour of a row; empty for none.
    colour: Callable[[Any], str]
    detail: Callable[[Any, Facts], Iterable[Line]]
    empty: str


def _text(title: str, width: int, of: Callable[[Any], str]) -> Column:
    return Column(title=title, width=width, show=of, order=lambda row: of(row).lower())


def _rest(title: str, least: int, of: Callable[[Any], str]) -> Column:
    return Column(title=title, width=0, least=least, show=of, order=lambda row: of(row).lower())


def _number(title: str, width: int, of: Callable[[Any], float | None], show: Callable[[Any], str] = amount) -> Column:
    return Column(
        title=title, width=width, show=lambda row: show(of(row)), order=of, is_number=True, greatest_first=True
    )


def _id(title: str, width: int, of: Callable[[Any], int | None]) -> Column:
    return Column(
        title=title,
        width=width,
        show=lambda row: "-" if of(row) is None else str(of(row)),
        order=of,
        is_number=True,
    )


_FLOWS = list(Flow)
_STATES = [ServerState.UNREADABLE, ServerState.DEAD, ServerState.ENDED, ServerState.ALIVE]


def _stream_colour(row: Stream) -> str:
    return {Flow.BLOCKED: "red", Flow.SLOW: "yellow", Flow.NO_READER: "cyan"}.get(row.flow, "")


def _server_colour(row: ServerFact) -> str:
    if row.state in {ServerState.UNREADABLE, ServerState.DEAD}:
        return "red"
    is_short = bool(row.total_bytes) and (row.free_bytes or 0) < _LITTLE_SHARE * (row.total_bytes or 0)
    return "yellow" if is_short or row.new_errors or (row.full_s is not None and row.full_s < _SOON_S) else ""


def _whole(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _party_text(party: Party) -> str:
    found = [f"at {party.position:,}"]
    if party.rate is not None:
        found.append(f"{amount(party.rate)} B/s")
    if party.behind is not None:
        found.append(f"{party.behind:,} behind")
    if party.window is not None:
        found.append(f"{party.window:,} left")
    return ", ".join(found)


def _depth(parties: Sequence[Party], party: Party) -> int:
    depth = 0
    while party.after is not None:
        party, depth = parties[party.after], depth + 1
    return depth


def _stream_detail(row: Stream, facts: Facts) -> Iterable[Line]:
    yield "stream", f"{row.stream_id}, session {row.session_id}"
    yield "channel", row.channel
    yield "directory", row.directory
    yield "state", f"{row.flow}{f': {row.holder} holds back {row.held}' if row.holder else ''}"
    yield "rate", f"{amount(row.rate)} B/s at position {row.position:,}"
    yield "behind", f"{_whole(row.behind)} bytes"
    yield "NAKs", f"{row.naks:,}"
    yield "sender", f"{row.back_pressure:,} times stopped at its limit"
    for recording in facts.recordings:
        if recording.stream == row.key:
            yield "recording", f"{recording.recording_id} in {recording.archive}, {_whole(recording.behind)} behind"
    yield "", ""
    for party in row.parties:
        yield f"{'  ' * _depth(row.parties, party)}{party.name}", _party_text(party)


def _recording_detail(row: Recording, _: Facts) -> Iterable[Line]:
    yield "recording", f"{row.recording_id}, {row.state}"
    yield "archive", f"{row.archive}{f' (id {row.archive_id})' if row.archive_id else ''}"
    yield "stream", f"{'-' if row.stream_id is None else row.stream_id}, session {row.session_id}"
    yield "channel", row.channel
    yield "begin", moment(row.start_ms)
    yield "end", moment(row.stop_ms)
    yield "positions", f"{_whole(row.start_position)} to {_whole(row.position)}"
    yield "length", f"{_whole(row.length)} bytes"
    yield "rate", f"{amount(row.rate)} B/s"
    yield "behind", f"{_whole(row.behind)} bytes published and not recorded"


def _server_detail(row: ServerFact, _: Facts) -> Iterable[Line]:
    yield row.kind, f"{row.path}{f' (archive id {row.archive_id})' if row.archive_id else ''}"
    yield "state", f"{row.state}{f': {row.trouble}' if row.trouble else ''}"
    yield "process", f"{'-' if row.pid is None else row.pid}, up {span(row.up_s)}"
    yield "heartbeat", f"{span(row.heartbeat_age_s)} ago" if row.heartbeat_age_s is not None else "-"
    yield "free", f"{amount(row.free_bytes)} of {amount(row.total_bytes)} bytes"
    if row.kind == "archive":
        yield "full in", span(row.full_s)
        yield "on disk", f"{amount(row.disk_bytes)} bytes"
        yield "written", f"{amount(row.in_rate)} B/s by {_whole(row.recordings)} recordings"
        yield "read", f"{amount(row.out_rate)} B/s by {_whole(row.replays)} replays"
        yield "sessions", _whole(row.sessions)
    else:
        yield "received", f"{amount(row.in_rate)} B/s"
        yield "sent", f"{amount(row.out_rate)} B/s"
    yield "errors", f"{row.errors:,}, {row.new_errors:,} new"
    yield "stalls", f"{row.stalls:,} duty cycles above their threshold"


def _client_detail(row: Client, facts: Facts) -> Iterable[Line]:
    yield "client", f"{row.client_id} {row.name}"
    yield "directory", row.directory
    yield "heartbeat", f"{span(row.age_s)} ago"
    yield "", ""
    for stream in facts.streams:
        for party in stream.parties:
            if (party.client_id, party.directory) == (row.client_id, row.directory) and party.client:
                yield f"{party.role} {party.registration_id}", f"stream {stream.stream_id}, {_party_text(party)}"


def _error_detail(row: Error, _: Facts) -> Iterable[Line]:
    yield row.level.lower(), f"of the {row.module} in {row.directory}"
    yield "count", f"{row.count:,}, {row.new:,} new"
    yield "first", moment(row.first_ms)
    yield "last", moment(row.last_ms)
    yield "text", row.message


def _loss_detail(row: Loss, _: Facts) -> Iterable[Line]:
    yield "stream", f"{row.stream_id}, session {row.session_id}"
    yield "channel", row.channel
    yield "source", row.source
    yield "directory", row.directory
    yield "lost", f"{row.lost_bytes:,} bytes in {row.gaps:,} gaps, {row.new_bytes:,} new; most came again"
    yield "last", moment(row.last_ms)


VIEWS: Mapping[str, View] = {
    "1": View(
        title="streams",
        short="str",
        by="state",
        rows=lambda facts: facts.streams,
        columns=(
            _id("stream", 7, lambda row: row.stream_id),
            _number("B/s", 6, lambda row: row.rate),
            _number("behind", 6, lambda row: row.behind),
            Column(title="state", width=9, show=lambda row: str(row.flow), order=lambda row: _FLOWS.index(row.flow)),
            _rest("held back by", 28, lambda row: row.holder),
            _rest("channel", 20, lambda row: row.channel),
            _id("session", 11, lambda row: row.session_id),
            _number("NAKs", 6, lambda row: row.naks),
            _number("readers", 7, lambda row: sum(party.role == "subscriber" for party in row.parties)),
            _text("directory", 24, lambda row: row.directory),
        ),
        colour=_stream_colour,
        detail=_stream_detail,
        empty="no streams",
    ),
    "2": View(
        title="recordings",
        short="rec",
        by="state",
        rows=lambda facts: facts.recordings,
        columns=(
            _id("id", 6, lambda row: row.recording_id),
            _text("state", 10, lambda row: row.state),
            _number("B/s", 6, lambda row: row.rate),
            _number("bytes", 6, lambda row: row.length),
            _id("stream", 7, lambda row: row.stream_id),
            _number("behind", 6, lambda row: row.behind),
            _rest("channel", 20, lambda row: row.channel),
            Column(
                title="begin",
                width=19,
                show=lambda row: moment(row.start_ms),
                order=lambda row: row.start_ms,
                greatest_first=True,
            ),
            _id("session", 11, lambda row: row.session_id),
            _text("archive", 24, lambda row: row.archive),
        ),
        colour=lambda row: {"active": "", "stopped": "bright_black"}.get(row.state, "red"),
        detail=_recording_detail,
        empty="no recordings: name the folder of an archive with --archive-dir to see those that ended",
    ),
    "3": View(
        title="servers",
        short="srv",
        by="state",
        rows=lambda facts: facts.servers,
        columns=(
            _text("kind", 7, lambda row: row.kind),
            Column(
                title="state", width=10, show=lambda row: str(row.state), order=lambda row: _STATES.index(row.state)
            ),
            _rest("path", 30, lambda row: row.path),
            _number("free", 6, lambda row: row.free_bytes),
            _number("full in", 7, lambda row: row.full_s, span),
            _number("in B/s", 6, lambda row: row.in_rate),
            _number("out B/s", 7, lambda row: row.out_rate),
            _number("errors", 6, lambda row: row.errors),
            _number("records", 7, lambda row: row.recordings),
            _number("replays", 7, lambda row: row.replays),
            _number("stalls", 6, lambda row: row.stalls),
            _number("up", 7, lambda row: row.up_s, span),
            _id("pid", 8, lambda row: row.pid),
            _rest("trouble", 24, lambda row: row.trouble),
        ),
        colour=_server_colour,
        detail=_server_detail,
        empty="no servers",
    ),
    "4": View(
        title="clients",
        short="cli",
        by="behind",
        rows=lambda facts: facts.clients,
        columns=(
            _id("id", 8, lambda row: row.client_id),
            _rest("name", 10, lambda row: row.name),
            _number("pubs", 5, lambda row: row.publications),
            _number("subs", 5, lambda row: row.subscribers),
            _number("behind", 6, lambda row: row.behind),
            _number("heartbeat", 9, lambda row: row.age_s, span),
            _text("directory", 24, lambda row: row.directory),
        ),
        colour=lambda _: "",
        detail=_client_detail,
        empty="no clients",
    ),
    "5": View(
        title="errors",
        short="err",
        by="last",
        rows=lambda facts: facts.errors,
        columns=(
            Column(
                title="last",
                width=8,
                show=lambda row: moment(row.last_ms, "%H:%M:%S"),
                order=lambda row: row.last_ms,
                greatest_first=True,
            ),
            _number("count", 6, lambda row: row.count),
            _rest("text", 16, lambda row: row.message),
            _text("of", 7, lambda row: row.module),
            _number("new", 6, lambda row: row.new),
            _text("level", 7, lambda row: row.level),
            _text("directory", 24, lambda row: row.directory),
        ),
        colour=lambda row: "red" if row.new else "",
        detail=_error_detail,
        empty="no errors",
    ),
    "6": View(
        title="loss",
        short="loss",
        by="new B",
        rows=lambda facts: facts.losses,
        columns=(
            _id("stream", 7, lambda row: row.stream_id),
            _number("lost B", 6, lambda row: row.lost_bytes),
            _number("gaps", 6, lambda row: row.gaps),
            _number("new B", 6, lambda row: row.new_bytes),
            _text("source", 22, lambda row: row.source),
            _rest("channel", 20, lambda row: row.channel),
            _id("session", 11, lambda row: row.session_id),
            _text("directory", 24, lambda row: row.directory),
        ),
        colour=lambda row: "yellow" if row.new_bytes else "",
        detail=_loss_detail,
        empty="no loss",
    ),
}

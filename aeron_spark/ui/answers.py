"""Facts as the page shows them: a window of the streams or recordings, in the order and with the filter that it asks for.

Figures are made text here, since JavaScript has no integers of 64 bits. Every list is bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from aeron_spark.errors import UsageError
from aeron_spark.live.facts import Facts, Flow, Party, Recording, ServerFact, Stream
from aeron_spark.top.amounts import amount, moment, span

__all__ = ["MAX_WINDOW", "Window", "overview", "recordings", "stream", "streams", "whole"]

MAX_WINDOW = 100
MAX_PARTIES = 8
MAX_ALL_PARTIES = 500
MAX_ROWS = 200
_MAX_FILTER = 200
_MAX_NUMBER = 2**63 - 1
_FLOWS = list(Flow)
_T = TypeVar("_T", Stream, Recording)

_STREAM_ORDERS: Mapping[str, Callable[[Stream], Any]] = {
    "worst": lambda one: (_FLOWS.index(one.flow), one.stream_id, one.key),
    "rate": lambda one: (-(one.rate or 0), one.stream_id, one.key),
    "behind": lambda one: (-(one.behind or 0), one.stream_id, one.key),
    "id": lambda one: (one.stream_id, one.session_id, one.key),
}
_RECORDING_ORDERS: Mapping[str, Callable[[Recording], Any]] = {
    "newest": lambda one: (-(one.start_ms or 0), -one.recording_id, one.key),
    "id": lambda one: (one.archive, one.recording_id),
    "length": lambda one: (-(one.length or 0), one.key),
    "rate": lambda one: (-(one.rate or 0), one.key),
}


def whole(name: str, text: str, most: int = _MAX_NUMBER) -> int:
    """A number of a question. UsageError: it is none, or too large."""
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_MAX_NUMBER)) and int(text) <= most):
        raise UsageError(f"{name} is a whole number from 0 to {most}")
    return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The rows that a page shows: `count` from `start` on, of those that have `filter` in a text, in an `order`."""

    start: int
    count: int
    filter: str
    order: str

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Window:
        """By the query of a question. UsageError."""
        text = query.get("filter", "")
        if len(text) > _MAX_FILTER:
            raise UsageError(f"a filter has at most {_MAX_FILTER} characters")
        return cls(
            start=whole("start", query.get("start", "0")),
            count=whole("count", query.get("count", "20"), MAX_WINDOW),
            filter=text.strip().lower(),
            order=query.get("order", ""),
        )

    def rows(
        self, all_rows: Sequence[_T], orders: Mapping[str, Callable[[_T], Any]], texts: Callable[[_T], str]
    ) -> tuple[int, list[_T]]:
        """How many there are, and the ones to show."""
        if self.order and self.order not in orders:
            raise UsageError(f"order is one of {', '.join(orders)}")
        found = [one for one in all_rows if not self.filter or self.filter in texts(one).lower()]
        found.sort(key=orders[self.order] if self.order else next(iter(orders.values())))
        return len(found), found[self.start : self.start + self.count]


def overview(facts: Facts, archives: Sequence[str]) -> dict[str, Any]:
    """The servers with their disks, the errors, and how many of what there are."""
    flows = [one.flow for one in facts.streams]
    return {
        **_head(facts),
        "archives": list(archives),
        "streams": len(flows),
        "flows": {flow: flows.count(flow) for flow in Flow},
        "recordings": len(facts.recordings),
        "active": sum(one.state == "active" for one in facts.recordings),
        "servers": [_server(one) for one in facts.servers[:MAX_ROWS]],
        "errors": [
            {
                "module": one.module,
                "directory": one.directory,
                "level": one.level,
                "message": one.message,
                "count": f"{one.count:,}",
                "new": one.new,
                "last": moment(one.last_ms),
            }
            for one in sorted(facts.errors, key=lambda each: -each.last_ms)[:MAX_ROWS]
        ],
        "left_out": dict(
            +Counter(facts.left_out)
            + Counter(
                {name: len(rows) - MAX_ROWS for name, rows in (("servers", facts.servers), ("errors", facts.errors))}
            )
        ),
    }


def streams(facts: Facts, window: Window) -> dict[str, Any]:
    """A window of the streams, each with its first parties."""
    total, rows = window.rows(
        facts.streams,
        _STREAM_ORDERS,
        _stream_text,
    )
    return {**_head(facts), "total": total, "rows": [_stream(one, MAX_PARTIES) for one in rows]}


def _stream_text(one: Stream) -> str:
    """What a filter looks at."""
    clients = (party.client for party in one.parties[:MAX_PARTIES])
    ids = (str(one.stream_id), str(one.session_id))
    return " ".join((*ids, one.channel, one.flow, one.directory, one.holder, *clients))


def stream(facts: Facts, key: str) -> dict[str, Any]:
    """All of one stream. UsageError: it is not there any more."""
    for one in facts.streams:
        if one.key == key:
            return {**_head(facts), **_stream(one, MAX_ALL_PARTIES)}
    raise UsageError("this stream is not there any more")


def recordings(facts: Facts, window: Window, archives: Sequence[str]) -> dict[str, Any]:
    """A window of the recordings, and the time that all of them span."""
    total, rows = window.rows(
        facts.recordings,
        _RECORDING_ORDERS,
        lambda one: f"{one.recording_id} {one.stream_id} {one.session_id} {one.channel} {one.state} {one.archive}",
    )
    starts = [one.start_ms for one in facts.recordings if one.start_ms is not None]
    ends = [one.stop_ms for one in facts.recordings if one.stop_ms is not None]
    return {
        **_head(facts),
        "total": total,
        "from_ms": min(starts, default=facts.time_ms),
        "to_ms": max([*ends, *starts, facts.time_ms]),
        "rows": [_recording(one, archives) for one in rows],
    }


def _head(facts: Facts) -> dict[str, Any]:
    return {"time": moment(facts.time_ms), "time_ms": facts.time_ms, "seconds": facts.seconds}


def _stream(one: Stream, most: int) -> dict[str, Any]:
    return {
        "key": one.key,
        "directory": one.directory,
        "stream_id": one.stream_id,
        "session_id": one.session_id,
        "channel": one.channel,
        "position": f"{one.position:,}",
        "rate": amount(one.rate),
        "behind": amount(one.behind),
        "flow": one.flow,
        "holder": one.holder,
        "held": one.held,
        "naks": f"{one.naks:,}",
        "back_pressure": f"{one.back_pressure:,}",
        "recordings": list(one.recordings[:most]),
        "parties": [_party(party) for party in one.parties[:most]],
        "more": max(0, len(one.parties) - most),
    }


def _party(one: Party) -> dict[str, Any]:
    return {
        "role": one.role,
        "id": str(one.registration_id),
        "name": one.name,
        "client": one.client,
        "directory": one.directory,
        "after": one.after,
        "position": f"{one.position:,}",
        "rate": amount(one.rate),
        "behind": amount(one.behind),
        "window": amount(one.window),
    }


def _recording(one: Recording, archives: Sequence[str]) -> dict[str, Any]:
    return {
        "key": one.key,
        "archive": archives.index(one.archive) if one.archive in archives else None,
        "folder": one.archive,
        "recording_id": str(one.recording_id),
        "state": one.state,
        "stream_id": one.stream_id,
        "session_id": one.session_id,
        "channel": one.channel,
        "start": moment(one.start_ms),
        "stop": moment(one.stop_ms),
        "start_ms": one.start_ms,
        "stop_ms": one.stop_ms,
        "length": amount(one.length),
        "rate": amount(one.rate),
        "behind": amount(one.behind),
    }


def _server(one: ServerFact) -> dict[str, Any]:
    free, total = one.free_bytes, one.total_bytes
    return {
        "kind": one.kind,
        "path": one.path,
        "archive_id": one.archive_id,
        "state": one.state,
        "trouble": one.trouble,
        "pid": one.pid,
        "up": span(one.up_s),
        "free": amount(free),
        "total": amount(total),
        "used_share": None if free is None or not total else max(0.0, min(1.0, 1 - free / total)),
        "disk": amount(one.disk_bytes),
        "full_in": span(one.full_s),
        "is_filling": one.full_s is not None,
        "in_rate": amount(one.in_rate),
        "out_rate": amount(one.out_rate),
        "errors": f"{one.errors:,}",
        "stalls": f"{one.stalls:,}",
        "replays": one.replays,
    }

"""Lag of a streaming query: computed from its progress, or from two offsets.

Spark's progress of this source holds where the last micro-batch ended (``endOffset``) and how far the recordings go
(``latestOffset``). Bytes behind are exact from that; messages and seconds need the archive's folder. With
``isolation=read_committed`` both are of the ledger, and the latter holds the ranges that lie between them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from aeron_spark.archive.recordings import is_ledger
from aeron_spark.archive.segments import Folder
from aeron_spark.errors import AeronError, UsageError
from aeron_spark.spark.log import LOG
from aeron_spark.spark.planning.options import local_folder
from aeron_spark.spark.planning.selection import identity_of

__all__ = ["Lag", "lag", "source_metrics", "total"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """What a query has not read yet, of one recording or of all of a source.

    None is not known, and not 0. Without a folder, and of committed rows, ``bytes`` is None where the progress has no latest
    offset: of the micro-batch that a restarted query runs again. With a folder it is then what the recordings that the query
    knows have by now. ``messages`` (but of committed rows) and ``seconds`` are None without a folder. ``seconds`` lie
    between the writes of the first unread byte and of the last one, at most an interval of the time index wrong; None where a
    recording has no index. Of several recordings the sum of bytes and messages, the most of seconds.
    """

    bytes: int | None
    messages: int | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        parts = ["an unknown number of bytes" if self.bytes is None else f"{self.bytes:,} bytes"]
        if self.messages is not None:
            parts.append(f"{self.messages:,} messages")
        if self.seconds is not None:
            parts.append(f"{self.seconds:.3f} s")
        return ", ".join(parts)


def lag(progress: Any, folder: str | Path | None = None, *, aeron_dir: str | Path | None = None) -> dict[int, Lag]:
    """Lag of each recording in a query's progress: ``query.lastProgress``, its JSON, or that of a listener's event.

    With the archive's ``folder``, messages are counted and times looked up, which reads what is behind: use it now
    and then; its path is written as for ``load``. Recordings whose bytes are gone have no messages and seconds. Empty for a
    query without a source of ours, and for None, which ``query.lastProgress`` is until the first micro-batch has ended.
    UsageError for what is no progress.
    """
    sources = _sources(progress)
    unknown: dict[int, tuple[int, int]] = {}
    behind: dict[int, tuple[int, int]] = {}
    committed: dict[int, _Committed] = {}
    for source in sources:
        end, latest = _positions(source, "endOffset"), _positions(source, "latestOffset")
        if end is None:
            continue
        if latest is None:
            # Spark asks for no latest offset where it runs a micro-batch again.
            identities = _section(source, "endOffset", "archive")
            unknown |= {key: (position, identities.get(key, 0)) for key, position in end.items()}
            continue
        if "behind" in _parsed(source, "latestOffset"):
            committed.update(_committed(source, end))
            continue
        starts = _section(source, "latestOffset", "starts")
        for recording_id, position in latest.items():
            behind[recording_id] = (end.get(recording_id, starts.get(recording_id, position)), position)
    found = dict.fromkeys(unknown, Lag(bytes=None))
    found |= {key: Lag(bytes=max(0, high - low)) for key, (low, high) in behind.items()}
    found |= {key: Lag(bytes=part.bytes, messages=part.messages) for key, part in committed.items()}
    if folder is not None:
        with Folder(local_folder("folder", str(folder)), aeron_dir=aeron_dir) as opened:
            behind |= _by_the_folder(opened, unknown)
            found |= {key: _measured(opened, key, low, high) for key, (low, high) in behind.items()}
            for key, part in committed.items():
                found[key] = replace(
                    found[key], seconds=_seconds(opened, key, part.begin, part.end) if part.bytes else 0.0
                )
    return dict(sorted(found.items()))


def total(lags: Mapping[int, Lag]) -> Lag:
    """All recordings together: what is not known of one of them is not known of all, and of none nothing is known."""
    size, messages, seconds = (
        _known([getattr(one, name) for one in lags.values()]) for name in ("bytes", "messages", "seconds")
    )
    return Lag(
        bytes=None if size is None else sum(size),
        messages=None if messages is None else sum(messages),
        seconds=None if seconds is None else max(seconds),
    )


def source_metrics(end: Mapping[str, Any], latest: Mapping[str, Any]) -> dict[str, str]:
    """The lag as the metrics of a source in Spark's progress, as Kafka's are. None where it is not known: it ends no query."""
    try:
        lags = lag({"sources": [{"endOffset": end, "latestOffset": latest}]})
    except AeronError as error:
        LOG.warning("the lag of a query is unknown: %s", error)
        return {}
    sizes = _known([one.bytes for one in lags.values()])
    found = {"recordings": len(lags)}
    if sizes is not None:
        found |= {"bytesBehindLatest": sum(sizes), "maxBytesBehindLatest": max(sizes)}
    return {name: str(value) for name, value in found.items()}


def _known(values: list[Any]) -> list[Any] | None:
    """The values; None if there are none, or one is not known."""
    return values if values and None not in values else None


def _by_the_folder(folder: Folder, ends: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Where recordings are read up to and where they end now; not those of a ledger, or of another archive."""
    if not ends:
        return {}
    known = {one.recording_id: one for one in folder.recordings() if one.recording_id in ends and not is_ledger(one)}
    return {
        key: (ends[key][0], folder.extent(key).limit_position)
        for key, recording in known.items()
        if identity_of(recording) == ends[key][1]
    }


def _measured(folder: Folder, recording_id: int, low: int, high: int) -> Lag:
    size = max(0, high - low)
    if size == 0:
        return Lag(bytes=0, messages=0, seconds=0.0)
    try:
        batches = folder.read(recording_id, low, high, limit=high, columns=("position",))
        messages = sum(batch.num_rows for batch in batches)
    except AeronError:
        return Lag(bytes=size)
    return Lag(bytes=size, messages=messages, seconds=_seconds(folder, recording_id, low, high))


def _seconds(folder: Folder, recording_id: int, low: int, high: int) -> float | None:
    try:
        first, last = folder.index_times_at(recording_id, [low, high - 1]).cast(pa.int64()).to_pylist()
    except AeronError:
        return None
    return None if first is None or last is None else max(0, last - first) / 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class _Committed:
    """What was committed of a recording and not read yet; it lies in [begin, end)."""

    bytes: int
    messages: int
    begin: int
    end: int


def _committed(source: Any, end: dict[int, int]) -> dict[int, _Committed]:
    behind = _parsed(source, "latestOffset")["behind"]
    if {int(key): position for key, position in behind["after"].items()} != end:
        raise UsageError(
            "the progress of a query with isolation=read_committed has its lag at its own endOffset only: pass it unchanged"
        )
    return {int(key): _Committed(**numbers) for key, numbers in behind["ranges"].items()}


def _sources(progress: Any) -> Iterable[Any]:
    if progress is None:
        return ()
    try:
        given = json.loads(progress) if isinstance(progress, str) else progress
        found: Iterable[Any] = given["sources"] if isinstance(given, Mapping) else given.sources
    except (ValueError, KeyError, AttributeError):
        raise UsageError(
            f"{type(progress).__name__} without sources is no progress: give query.lastProgress, its JSON, or event.progress"
        ) from None
    return found


def _parsed(source: Any, name: str) -> Mapping[str, Any]:
    """An offset of ours, however Spark's face hands it on: text or objects."""
    given = source.get(name) if isinstance(source, Mapping) else getattr(source, name)
    try:
        parsed = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        return {}
    return parsed if isinstance(parsed, Mapping) and "archive" in parsed else {}


def _section(source: Any, offset: str, name: str) -> dict[int, int]:
    return {int(key): int(value) for key, value in _parsed(source, offset).get(name, {}).items()}


def _positions(source: Any, offset: str) -> dict[int, int] | None:
    return _section(source, offset, "positions") if _parsed(source, offset) else None

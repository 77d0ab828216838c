"""The messages of one payload, one at a time."""

from __future__ import annotations

from collections.abc import Iterator

from aeron_spark.errors import UsageError
from aeron_spark.sbe.framing import MESSAGES, Framing, frames, named
from aeron_spark.sbe.model import Schema
from aeron_spark.sbe.walk import MAX_ENTRIES, Decoded, DecodeError, Walker

__all__ = ["decode"]


def decode(
    schema: Schema, payload: bytes | memoryview, *, framing: str = "none", skip: int = 0, max_entries: int = MAX_ENTRIES
) -> Iterator[Decoded | DecodeError]:
    """The messages of a payload, in order; a message that can't be decoded yields its error.

    `skip`: bytes at the payload's beginning that belong to neither the framing nor a message. `max_entries` bounds a
    message's entries that take no bytes. After an error, decoding
    continues where the framing gives the next message's begin; otherwise the error is last. UsageError: an unknown
    framing, a negative skip.
    """
    how = named(framing)
    if skip < 0:
        raise UsageError(f"skip={skip} is below 0")
    return _decoded(
        how, Walker(schema, max_entries=max_entries), memoryview(payload).cast("B")[skip:], schema.header.composite.size
    )


def _decoded(how: Framing, walker: Walker, view: memoryview, header: int) -> Iterator[Decoded | DecodeError]:
    try:
        for start, end in _bounds(how, walker, view, header):
            try:
                yield walker.decode(view, start, end)
            except DecodeError as failure:
                yield failure
                if how is MESSAGES:
                    return
    except DecodeError as failure:
        yield failure


def _bounds(how: Framing, walker: Walker, view: memoryview, header: int) -> Iterator[tuple[int, int]]:
    if how is not MESSAGES:
        yield from frames(how, view, header)
        return
    at = 0
    while at < len(view):
        yield at, len(view)
        at += walker.decode(view, at).consumed

"""A message as defined by an earlier version of its schema. Spec: 10 §10, §16."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from aeron_spark.errors import UsageError
from aeron_spark.sbe.model import Block, Message, Schema

_B = TypeVar("_B", bound=Block)


def of_version(schema: Schema, message: Message, version: int) -> Message:
    """The message without elements added after a version.

    UsageError: the message was added later itself, or the version is unknown.
    """
    if not 0 <= version <= schema.version:
        raise UsageError(f"version={version} is not one of the schema's, 0 to {schema.version}")
    if message.since > version:
        raise UsageError(f"version={version}: message {message.name} came with version {message.since}")
    if schema.header.block_length is None and version != schema.version:
        raise UsageError(f"version={version}: the header has no block length, so only {schema.version} can be read")
    return _block(message, version)


def _block(block: _B, version: int) -> _B:
    there = tuple(one for one in block.fields if one.since <= version or one.presence == "constant")
    newer = [one.offset for one in block.fields if one.since > version and one.presence != "constant"]
    # A block ended where the first later field begins; padding that existed before that stays.
    end = max((one.offset + one.size for one in there), default=0)
    return replace(
        block,
        fields=there,
        groups=tuple(_block(one, version) for one in block.groups if one.since <= version),
        data=tuple(one for one in block.data if one.since <= version),
        block_length=max(end, min(newer)) if newer else block.block_length,
    )

"""The messages of one schema or several, and their selection by header. Spec: 10 §5."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from aeron_spark._native._lib import ffi, lib
from aeron_spark._native.check import check
from aeron_spark.errors import UsageError
from aeron_spark.names import nearest
from aeron_spark.sbe.model import Header, Message, Role, Schema
from aeron_spark.sbe.packets import Frames
from aeron_spark.sbe.plan import Plan
from aeron_spark.sbe.run import pointer
from aeron_spark.sbe.schema import load, parse

Source = Schema | str | Path
MAX_TABLE = 1 << 16
"""Template ids below it are looked up directly."""


def schema_of(given: Source, header_type: str | None = None, header_map: dict[str, str] | None = None) -> Schema:
    """A schema from an already loaded one, a file, or text."""
    if isinstance(given, Schema):
        if header_type is not None or header_map:
            raise UsageError("header_type and header_map are for schemas that are still to be read: give them to load")
        return given
    if isinstance(given, str) and given.lstrip("\ufeff \t\r\n").startswith("<"):
        return parse(given, header_type=header_type, header_map=header_map)
    return load(Path(given), header_type=header_type, header_map=header_map)


class Registry:
    """Messages by name. A name in more than one of several schemas gets the schema's id as a suffix: `Quote_100`."""

    def __init__(self, schemas: Sequence[Schema]) -> None:
        self.schemas = tuple(schemas)
        if not self.schemas:
            raise UsageError("there is no schema")
        self._check_headers()
        every = [(schema, one) for schema in self.schemas for one in schema.messages.values()]
        uses = Counter(one.name for _, one in every)
        self.messages: dict[str, tuple[Schema, Message]] = {
            one.name if uses[one.name] == 1 else f"{one.name}_{schema.id}": (schema, one) for schema, one in every
        }
        if len(self.messages) < len(every):
            raise UsageError("two messages have the same name, with their schema's id behind it, too")
        self._tables = [
            _Table({one.id: number for number, (of, one) in enumerate(self.messages.values()) if of is schema})
            for schema in self.schemas
        ]
        self._by_template = _plan_of(self.schemas[0], self.schemas[0].header.template_id)
        self._by_schema = _plan_of(self.schemas[0], self.schemas[0].header.schema_id) if len(self.schemas) > 1 else None

    def _check_headers(self) -> None:
        ids = [one.id for one in self.schemas]
        if len(set(ids)) < len(ids):
            raise UsageError(f"two schemas have the same id; there are {', '.join(map(str, ids))}")
        first = self.schemas[0]
        for one in self.schemas[1:]:
            if one.is_big_endian != first.is_big_endian or _shape(one.header) != _shape(first.header):
                raise UsageError(
                    f"schemas {first.id} and {one.id}: the headers differ, so nothing tells which schema a message is of"
                )
        if len(ids) > 1 and first.header.schema_id is None:
            raise UsageError("the header has no schema id, so nothing tells which of the schemas a message is of")

    def find(self, name: str) -> tuple[Schema, Message]:
        """The message with a name; UsageError lists the names."""
        if name not in self.messages:
            closest = nearest(name, self.messages)
            raise UsageError(f"there is no message '{name}' in the schema; it has {', '.join(self.messages)}{closest}")
        return self.messages[name]

    def template_ids(self, content: pa.Buffer | None, found: Frames) -> np.ndarray:
        """Template ids from the headers; -1 where there is none."""
        return _numbers(self._by_template, content, found)

    def numbers(self, content: pa.Buffer | None, found: Frames) -> np.ndarray:
        """Number of each message's definition among `messages`; -1 if there is none."""
        ids = self.template_ids(content, found)
        if self._by_schema is None:
            return self._tables[0](ids)
        schema_ids = self.schema_ids(content, found)
        numbers = np.full(len(ids), -1, np.int64)
        for schema, table in zip(self.schemas, self._tables, strict=True):
            is_of = schema_ids == schema.id
            numbers[is_of] = table(ids[is_of])
        return numbers

    def schema_ids(self, content: pa.Buffer | None, found: Frames) -> np.ndarray:
        """Schema ids from the headers, if there are several schemas."""
        assert self._by_schema is not None  # noqa: S101 - asked for with several schemas only
        return _numbers(self._by_schema, content, found)


class _Table:
    """Maps template ids to numbers, others to -1."""

    def __init__(self, numbers: dict[int, int]) -> None:
        self._ids = np.array(sorted(numbers), np.int64)
        self._numbers = np.array([*(numbers[one] for one in sorted(numbers)), -1], np.int64)
        self._direct: np.ndarray | None = None
        if numbers and self._ids[-1] < MAX_TABLE:
            self._direct = np.full(int(self._ids[-1]) + 2, -1, np.int64)
            self._direct[self._ids] = self._numbers[:-1]

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        # Most batches hold messages of one template.
        if len(ids) > 1 and (ids == ids[0]).all():
            return np.full(len(ids), self(ids[:1])[0])
        if self._direct is not None:
            # Ids below 0 or beyond the table map to its last item, which is -1.
            found: np.ndarray = self._direct[np.minimum(ids.view(np.uint64), len(self._direct) - 1)]
            return found
        at = np.searchsorted(self._ids, ids)
        is_one = np.append(self._ids, -1)[at] == ids
        return np.where(is_one, self._numbers[at], -1)


def _shape(header: Header) -> tuple[Any, ...]:
    """The properties that schemas must share so that the ids can be read before the schema is known."""
    return header.composite.size, _place(header.template_id), _place(header.schema_id)


def _place(role: Role | None) -> tuple[Any, ...] | None:
    return None if role is None else (role.offset, role.primitive, role.constant)


def _plan_of(schema: Schema, role: Role | None) -> Any:
    """A plan with which C reads the role of a header."""
    plan = ffi.new("as_sbe_plan *")
    Plan.put_header(plan, schema)
    if role is not None:
        Plan.put_role(plan.template_id, role, 0)
    return plan


def _numbers(plan: Any, content: pa.Buffer | None, found: Frames) -> np.ndarray:
    ids = np.full(len(found.starts), -1, np.int64)
    if len(ids) and content is not None:
        check(
            lib.as_sbe_template_ids(
                plan, ffi.cast("uint8_t *", content.address), pointer("int64_t *", found.starts),
                pointer("int64_t *", found.ends), len(ids), pointer("int64_t *", ids),
            )
        )  # fmt: skip
    return ids

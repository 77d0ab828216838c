"""SBE messages of a scan as columns: a schema's messages as structs, or one message's fields."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aeron_spark.errors import DataLossError, UsageError
from aeron_spark.sbe.decoder import ERROR, ERROR_AT, RAW, SCHEMA_ID, TEMPLATE, TEMPLATE_ID, Decoder, Rows
from aeron_spark.sbe.registry import Registry, Source, schema_of

__all__ = ["Decoded", "SbeColumns"]

ERROR_COLUMNS = (ERROR, ERROR_AT, RAW)
#: Options of a scan that select and lay out messages; the others are those of `sbe.Options`.
_OF_SCHEMA = ("header_type", "header_map")


@dataclass(frozen=True, slots=True)
class Decoded:
    """Columns, the message of each row, and the error that ends them: what is before `failed_message` is right.

    `is_one_each`: each message has a row, in their order; False: that is to be seen from `messages`. `failure` makes the
    error; its argument says where the message is.
    """

    batch: pa.RecordBatch
    messages: np.ndarray
    failure: Callable[[str], DataLossError] | None = None
    failed_message: int = 0
    is_one_each: bool = False


class SbeColumns:
    """Decodes the messages of a scan.

    `on_error`: `fail` raises at the first message that cannot be decoded, after the rows before it; `null` and `drop` as
    the decoder's. Messages of other templates than `message` have no row.
    """

    def __init__(self, schema: Source | Sequence[Source], message: str | None, options: Mapping[str, Any]) -> None:
        given = dict(options)
        of_schema = {name: given.pop(name) for name in _OF_SCHEMA if name in given}
        sources = cast("list[Source]", list(schema) if isinstance(schema, (list, tuple)) else [schema])
        self.schemas = [schema_of(one, of_schema.get("header_type"), of_schema.get("header_map")) for one in sources]
        self._registry = Registry(self.schemas)
        self._message = message
        self._on_error = str(given.pop("on_error", "fail"))
        if self._on_error not in {"fail", "null", "drop"}:
            raise UsageError(f"on_error={self._on_error!r} is none of fail, null, drop")
        self._options = {"others": "skip", **given}
        self._whole = self.decoder(message, None)
        self._decoder_of: dict[frozenset[str], Decoder] = {}
        hidden = ERROR_COLUMNS if self._on_error != "null" else ()
        self.schema = pa.schema([field for field in self._whole.arrow_schema if field.name not in hidden])
        #: Each message is one row, whatever it is, so that without a column of its own nothing is decoded.
        self.is_row_per_message = (
            message is None
            and self._on_error != "drop"
            and given.get("framing", "none") == "none"
            and not given.get("explode")
        )
        self._has_one_per_message = given.get("framing", "none") == "none" and not given.get("skip")

    def decoder(self, message: str | None, columns: Sequence[str] | None, **others: Any) -> Decoder:
        """A decoder by the options."""
        options = {**self._options, "on_error": "null", **others}
        if message is None:
            options["others"] = "error"
        return Decoder(self.schemas, message, columns=columns, **options)

    def decode(self, values: pa.Array, wanted: Collection[str]) -> Iterator[Decoded]:
        """Rows of binary messages with at least the wanted columns, in parts; a failure ends them."""
        key = frozenset(wanted)
        decoder = self._decoder_of.get(key)
        if decoder is None:
            names = [name for name in self.schema.names if name in key]
            decoder = self._decoder_of[key] = self.decoder(self._message, [*names, *_missing(names)])
        for rows in decoder.decode_parts(values):
            found = self._decoded(rows)
            yield found
            if found.failure is not None:
                return

    def _decoded(self, rows: Rows) -> Decoded:
        batch, messages = rows.batch, rows.payload
        errors = batch.column(ERROR)
        if errors.null_count < len(errors) and self._on_error != "null":
            bad = np.asarray(errors.is_valid())
            if self._on_error == "drop":
                batch, messages = batch.filter(pa.array(~bad)), messages[~bad]
            else:
                row = int(np.flatnonzero(bad)[0])
                failure = _failure(f"{errors[row].as_py()} at offset {batch.column(ERROR_AT)[row].as_py()}")
                return Decoded(batch.slice(0, row), messages[:row], failure, int(messages[row]))
        elif rows.lost and self._on_error == "fail":
            first = int(messages[0]) if len(messages) else 0  # one without entries has no row
            return Decoded(batch.slice(0, 0), messages[:0], _lost(rows.lost), first)
        return Decoded(batch, messages, is_one_each=rows.is_one_each and messages is rows.payload)

    def possible_templates(self, possible: Callable[[Sequence[pc.Expression]], list[bool]]) -> np.ndarray | None:
        """Which templates a filter can select rows of, by their number, unknown ones last; None: all of them."""
        if self._message is not None or not self._has_one_per_message or TEMPLATE not in self.schema.names:
            return None
        facts = []
        for name, (schema, message) in self._registry.messages.items():
            fact = (pc.field(TEMPLATE) == name) & (pc.field(TEMPLATE_ID) == message.id)
            facts.append(fact & (pc.field(SCHEMA_ID) == schema.id) if len(self.schemas) > 1 else fact)
        found = np.array(possible([*facts, pc.field(TEMPLATE).is_null()]))
        return None if found.all() else found

    def of_templates(self, values: pa.Array, templates: np.ndarray) -> np.ndarray:
        """Which messages are of those templates."""
        found: np.ndarray = templates[self._whole.template_numbers(values)]
        return found


def _missing(names: Sequence[str]) -> list[str]:
    return [name for name in (ERROR, ERROR_AT) if name not in names]


def _failure(reason: str) -> Callable[[str], DataLossError]:
    return lambda where: DataLossError(
        f"{where} cannot be decoded by the SBE schema: {reason}. "
        f"sbe_options={{'on_error': 'null'}} gives it as nulls with the reason in {ERROR}, 'drop' leaves it out"
    )


def _lost(count: int) -> Callable[[str], DataLossError]:
    return lambda where: DataLossError(
        f"{where}, or one soon after it: {count} values do not fit the types of their columns. Choose other types by "
        f"sbe_options (uint64, decimals, ...); {{'on_error': 'null'}} and 'drop' make such a value null"
    )

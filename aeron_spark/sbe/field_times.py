"""The time in a field of SBE messages, over whole batches; for whoever sorts or selects messages by their own time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aeron_spark.errors import UsageError
from aeron_spark.sbe.decoder import Decoder
from aeron_spark.sbe.model import Schema
from aeron_spark.sbe.registry import Registry
from aeron_spark.sbe.values import NANOSECONDS

__all__ = ["FieldTimes"]

_LATEST = np.iinfo(np.int64).max


class FieldTimes:
    """The time in one field of each message: of any template that has the field, null for the others.

    Where a payload holds several messages it is the earliest. `decoder_of(message, columns, **options)` makes a decoder of
    the user's choices; `name` is what texts call the choice of this field.
    """

    def __init__(
        self, decoder_of: Callable[..., Decoder], schemas: Sequence[Schema], field: str, unit: str, *, name: str
    ) -> None:
        self._field = field
        self._unit = unit
        self._name = name
        having = [
            title for title, (_, message) in Registry(schemas).messages.items()
            if any(one.name == field for one in message.fields)
        ]  # fmt: skip
        if not having:
            raise UsageError(f"{name}=sbe:{field}: no message of the SBE schema has a field {field!r}")
        self._decoders: list[Decoder] = [
            decoder_of(
                one, [field], explode=None, others="skip", on_error="drop", spark=False,
                timestamps="exact", uint64="long", enums="names", sets="names",
            )
            for one in having
        ]  # fmt: skip
        for decoder in self._decoders:
            self._as_ns(decoder.decode(pa.array([], pa.binary())).column(field))

    def __call__(self, values: pa.BinaryArray) -> pa.Array:
        """Timestamps in ns."""
        found = np.full(len(values), _LATEST, np.int64)
        is_there = np.zeros(len(values), bool)
        for decoder in self._decoders:
            for rows in decoder.decode_parts(values):
                times = self._as_ns(rows.batch.column(self._field))
                payloads = rows.payload[np.asarray(times.is_valid())]
                np.minimum.at(found, payloads, np.asarray(times.drop_null()))
                is_there[payloads] = True
        return pa.array(np.where(is_there, found, 0), pa.int64(), mask=~is_there)

    def _as_ns(self, column: pa.Array) -> pa.Array:
        """Whole nanoseconds; what does not fit in 64 bits is null."""
        if pa.types.is_timestamp(column.type):
            factor = NANOSECONDS[column.type.unit]
        elif pa.types.is_integer(column.type):
            if not self._unit:
                raise UsageError(
                    f"{self._name}=sbe:{self._field}: the schema does not name the field's unit, "
                    f"write sbe:{self._field}(ns), (us), (ms) or (s)"
                )
            factor = NANOSECONDS[self._unit]
        else:
            raise UsageError(f"{self._name}=sbe:{self._field}: the field is {column.type}, not a time or a number")
        numbers = column.cast(pa.int64())
        most = ((1 << 63) - 1) // factor
        is_possible = pc.and_(pc.less_equal(numbers, most), pc.greater_equal(numbers, -most))
        return pc.multiply(pc.if_else(is_possible, numbers, pa.scalar(None, pa.int64())), factor)

"""The time in a field of SBE messages, as the options name it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aeron_spark.spark.planning.options import ReadOptions

if TYPE_CHECKING:
    from aeron_spark.sbe.decoder import Decoder
    from aeron_spark.sbe.field_times import FieldTimes

__all__ = ["times_of"]


def times_of(options: ReadOptions) -> FieldTimes | None:
    """Makes the times of messages, where the options name an SBE field for them."""
    source, sbe = options.timestamp_from, options.sbe
    if source.kind != "sbe" or sbe is None:
        return None
    from aeron_spark.sbe.field_times import FieldTimes

    schemas = sbe.load()

    def decoder_of(message: str, columns: Sequence[str], **others: Any) -> Decoder:
        return sbe.decoder(schemas, columns, message=message, **others)

    return FieldTimes(decoder_of, schemas, source.field, source.unit, name="timestampFrom")

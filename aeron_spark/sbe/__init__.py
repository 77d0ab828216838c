"""Simple Binary Encoding: reads schemas, and decodes and encodes messages.

Whole batches to Arrow columns:

    decoder = Decoder("prices.xml", message="Quote", framing="cme-udp")
    batch = decoder.decode(payloads)

One message at a time:

    for message in decode(load("prices.xml"), payload, framing="cme-udp"):
        print(message.message.name, message.values)

The names are loaded at their first use: a Spark session's first query waits for what its planner loads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aeron_spark.later import loaded_later

if TYPE_CHECKING:
    from aeron_spark.sbe.decoder import Decoder, Rows
    from aeron_spark.sbe.encoder import Encoder
    from aeron_spark.sbe.framing import FRAMINGS
    from aeron_spark.sbe.model import Message, Schema
    from aeron_spark.sbe.options import Options
    from aeron_spark.sbe.payloads import decode
    from aeron_spark.sbe.problem import Problem, SchemaError
    from aeron_spark.sbe.schema import check, load, parse
    from aeron_spark.sbe.walk import Decoded, DecodeError, Walker

__all__ = [
    "FRAMINGS",
    "DecodeError",
    "Decoded",
    "Decoder",
    "Encoder",
    "Message",
    "Options",
    "Problem",
    "Rows",
    "Schema",
    "SchemaError",
    "Walker",
    "check",
    "decode",
    "load",
    "parse",
]


__getattr__, __dir__ = loaded_later(
    __name__,
    {
        "decoder": ("Decoder", "Rows"),
        "encoder": ("Encoder",),
        "framing": ("FRAMINGS",),
        "model": ("Message", "Schema"),
        "options": ("Options",),
        "payloads": ("decode",),
        "problem": ("Problem", "SchemaError"),
        "schema": ("check", "load", "parse"),
        "walk": ("DecodeError", "Decoded", "Walker"),
    },
)

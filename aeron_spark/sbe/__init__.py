"""Simple Binary Encoding: reads schemas, and decodes and encodes messages.

Whole batches to Arrow columns:

    decoder = Decoder("prices.xml", message="Quote", framing="cme-udp")
    batch = decoder.decode(payloads)

One message at a time:

    for message in decode(load("prices.xml"), payload, framing="cme-udp"):
        print(message.message.name, message.values)

The names are loaded at their first use: Spark plans each query in a new process, mostly without SBE.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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


_MODULES = {
    "decoder": ("Decoder", "Rows"),
    "encoder": ("Encoder",),
    "framing": ("FRAMINGS",),
    "model": ("Message", "Schema"),
    "options": ("Options",),
    "payloads": ("decode",),
    "problem": ("Problem", "SchemaError"),
    "schema": ("check", "load", "parse"),
    "walk": ("DecodeError", "Decoded", "Walker"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Schemas and rows of chance, within what the rules allow."""

from __future__ import annotations

import random
import string
from typing import Any

import pyarrow as pa

from aeron_spark.sbe.model import PRIMITIVES

NUMBERS = [name for name in PRIMITIVES if name != "char"]
HEADERS = {
    "plain": [("blockLength", "uint16"), ("templateId", "uint16"), ("schemaId", "uint16"), ("version", "uint16")],
    "short": [("blockLength", "uint16"), ("templateId", "uint8"), ("schemaId", "uint8"), ("version", "uint16")],
    "turned": [
        ("version", "uint8"),
        ("schemaId", "uint16"),
        ("templateId", "uint32"),
        ("blockLength", "uint16"),
        ("more", "int64"),
    ],
}


def _composite(name: str, members: list[tuple[str, str]], rest: str = "") -> str:
    inside = "".join(f'<type name="{one}" primitiveType="{kind}"/>' for one, kind in members)
    return f'<composite name="{name}">{inside}{rest}</composite>'


TYPES = (
    _composite("size", [("blockLength", "uint16"), ("numInGroup", "uint8")])
    + _composite("wide", [("numInGroup", "uint16"), ("blockLength", "uint8"), ("pad", "uint32")])
    + _composite(
        "text8",
        [("length", "uint8")],
        '<type name="varData" primitiveType="uint8" length="0" characterEncoding="UTF-8"/>',
    )
    + _composite("bytes16", [("length", "uint16")], '<type name="varData" primitiveType="uint8" length="0"/>')
    + _composite(
        "price", [("mantissa", "int64")], '<type name="exponent" primitiveType="int8" presence="constant">-4</type>'
    )
    + _composite("pair", [("a", "uint16"), ("b", "double")])
    + '<enum name="side" encodingType="uint8">'
    + '<validValue name="Buy">1</validValue><validValue name="Sell">2</validValue></enum>'
    + '<enum name="kind" encodingType="char"><validValue name="A">a</validValue><validValue name="B">b</validValue></enum>'
    + '<set name="flags" encodingType="uint16"><choice name="x">0</choice><choice name="y">15</choice></set>'
    + '<type name="name" primitiveType="char" length="6"/><type name="key" primitiveType="uint8" length="5"/>'
    + '<type name="three" primitiveType="int32" length="3"/>'
)
KINDS = [*NUMBERS, "price", "pair", "side", "kind", "flags", "name", "key", "three"]


class Schema:
    """A schema's text, and rows for its message `M`."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._number = 0
        self.is_big_endian = rng.random() < 0.5
        header = _composite("messageHeader", HEADERS[rng.choice(list(HEADERS))])
        body, self._tree = self._block(0)
        order = "bigEndian" if self.is_big_endian else "littleEndian"
        self.text = (
            f'<messageSchema id="9" version="3" byteOrder="{order}"><types>{header}{TYPES}</types>'
            f'<message name="M" id="77">{body}</message></messageSchema>'
        )

    def _next(self) -> str:
        self._number += 1
        return f"f{self._number}"

    def _block(self, depth: int) -> tuple[str, list[tuple[str, str, Any]]]:
        rng, text, tree = self._rng, "", []
        for _ in range(rng.randint(1, 7)):
            name, kind = self._next(), rng.choice(KINDS)
            is_optional = kind in NUMBERS and rng.random() < 0.4
            presence = "optional" if is_optional else "required"
            text += f'<field name="{name}" id="{self._number}" type="{kind}" presence="{presence}"/>'
            tree.append((name, "optional" if is_optional else "field", kind))
        for _ in range(rng.randint(0, 2) if depth < 3 else 0):
            name, number = self._next(), self._number
            inside, inner = self._block(depth + 1)
            text += (
                f'<group name="{name}" id="{number}" dimensionType="{rng.choice(("size", "wide"))}">{inside}</group>'
            )
            tree.append((name, "group", inner))
        for _ in range(rng.randint(0, 2)):
            name, kind = self._next(), rng.choice(("text8", "bytes16"))
            text += f'<data name="{name}" id="{self._number}" type="{kind}"/>'
            tree.append((name, "data", kind))
        return text, tree

    def row(self) -> dict[str, Any]:
        """Values by name."""
        return self._row(self._tree)

    def _row(self, tree: list[tuple[str, str, Any]]) -> dict[str, Any]:
        rng, made = self._rng, {}
        for name, role, kind in tree:
            if role == "group":
                made[name] = [self._row(kind) for _ in range(rng.choice((0, 1, 2, 5)))]
            elif role == "data":
                length = rng.choice((0, 1, 30, 200))
                made[name] = _text(rng, length // 3) if kind == "text8" else rng.randbytes(length)
            elif role == "optional" and rng.random() < 0.3:
                made[name] = None
            else:
                made[name] = _value(rng, kind)
        return made


def _text(rng: random.Random, length: int) -> str:
    return "".join(rng.choice(string.ascii_letters + "äß€") for _ in range(length))


def _number(rng: random.Random, kind: str) -> Any:
    primitive = PRIMITIVES[kind]
    if primitive.is_float:
        return float(rng.randint(-(2**20), 2**20)) / 8
    low, high = int(primitive.low), int(primitive.high)
    return rng.choice((low, high, max(low, min(high, 0)), rng.randint(low, high)))


def _value(rng: random.Random, kind: str) -> Any:  # noqa: PLR0911 - a table of kinds
    match kind:
        case "price":
            return _decimal(rng.randint(-(2**62), 2**62))
        case "pair":
            return {"a": _number(rng, "uint16"), "b": _number(rng, "double")}
        case "side":
            return rng.choice(("Buy", "Sell", None))
        case "kind":
            return rng.choice(("A", "B", None))
        case "flags":
            return [one for one in ("x", "y") if rng.random() < 0.5]
        case "name":
            return "".join(rng.choice(string.ascii_letters) for _ in range(rng.randint(0, 6)))
        case "key":
            return rng.randbytes(5)
        case "three":
            return [_number(rng, "int32") for _ in range(3)]
        case _:
            return _number(rng, kind)


def _decimal(mantissa: int) -> Any:
    return pa.scalar(mantissa, pa.decimal128(38, 0)).as_py().scaleb(-4)

"""How values become columns, and how messages that can't be decoded are handled. Spec: 10 §13, §14."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aeron_spark.errors import UsageError
from aeron_spark.names import nearest
from aeron_spark.sbe.walk import MAX_ENTRIES

CHOICES: Mapping[str, tuple[str, ...]] = {
    "on_error": ("null", "drop", "fail"),
    "others": ("error", "skip"),
    "uint64": ("decimal", "long", "bits"),
    "enums": ("names", "values", "bool"),
    "unknown_enum": ("text", "null", "error"),
    "sets": ("names", "bits", "struct"),
    "timestamps": ("exact", "us", "long"),
    "chars": ("text", "trim", "binary"),
    "byte_arrays": ("binary", "array"),
    "bad_text": ("replace", "null", "error"),
    "month_years": ("struct", "text"),
    "constants": ("keep", "drop"),
}
UNITS = ("s", "ms", "us", "ns")
DECIMALS = ("exact", "double", "parts")
MAX_DIGITS = 38


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How columns are made; the first choice of each is the default.

    `on_error`: a message that can't be decoded becomes a row of nulls with `sbe_error`, `sbe_error_at` and the bytes in
    `sbe_raw` (`null`), is counted without a row (`drop`), or raises (`fail`). `others`: a message of another template
    of the schema is such an error (`error`), or has no row (`skip`).
    `uint64`: `decimal128(20, 0)`, `long` (above 2^63-1: null, counted), or its `bits` as a signed number.
    `enums`: names, wire values, or `bool` for the enums that are boolean. `unknown_enum`: a value without a name is its
    number as text, null and counted, or makes its message an error (`BAD_ENUM`).
    `sets`: lists of names, the bits as a number, or a struct of booleans.
    `decimals`: `exact` (decimal128 if the exponent is constant, else its parts), `double` (rounded correctly), `parts`
    (mantissa and exponent), or `decimal(p,s)` (this type for all; a value that would lose digits is null, counted).
    With `double` and `decimal(p,s)` a field that names another field as its exponent is combined with it, too.
    `timestamps`: with the wire's precision, microseconds rounded down, or the raw number. `chars`: text of char arrays,
    without trailing spaces, or bytes. `byte_arrays`: of int8 and uint8, as bytes or as lists. `bad_text`: bytes that
    are invalid in the charset become U+FFFD, make the text null, counted, or make their message an error (`BAD_TEXT`).
    `constants`: columns for them, or none.
    `empty_as_null`: names of data whose empty values are null. `times`: fields that are timestamps without such a
    `semanticType`, with their unit (`{"sentAt": "ns"}`). `month_years`: MonthYear as struct, or in FIX notation
    (`202601`, `20260131`, `202601w2`). `header`: a struct `sbe_header` of all members of the message's header.
    `drop_deprecated`: no columns of deprecated elements.
    `strict_blocks`: a field that a message's version has but its block cuts off is an error, not a null.
    `max_entries`: maximum number of entries of a message that take no bytes.
    `spark`: only types that Spark has: no dictionaries, times of day as numbers, timestamps in microseconds.
    """

    on_error: str = "null"
    others: str = "error"
    uint64: str = "decimal"
    enums: str = "names"
    unknown_enum: str = "text"
    sets: str = "names"
    decimals: str = "exact"
    timestamps: str = "exact"
    chars: str = "text"
    byte_arrays: str = "binary"
    bad_text: str = "replace"
    month_years: str = "struct"
    constants: str = "keep"
    empty_as_null: tuple[str, ...] = ()
    times: tuple[tuple[str, str], ...] = ()
    header: bool = False
    drop_deprecated: bool = False
    strict_blocks: bool = False
    max_entries: int = MAX_ENTRIES
    spark: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Options by name; lists and mappings for those with several values. UsageError names an unknown option."""
        for name in given:
            if name not in cls.__dataclass_fields__:
                known = ", ".join(cls.__dataclass_fields__)
                raise UsageError(
                    f"there is no option '{name}'; there are {known}{nearest(name, cls.__dataclass_fields__)}"
                )
        times = dict(given.get("times", ()))
        return cls(**{**given, "empty_as_null": tuple(given.get("empty_as_null", ())), "times": tuple(times.items())})

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise UsageError(f"{name}='{value}' is not one of {', '.join(choices)}{nearest(str(value), choices)}")
        for field, unit in self.times:
            if unit not in UNITS:
                raise UsageError(f"times: the unit '{unit}' of {field} is not one of {', '.join(UNITS)}")
        if self.max_entries < 1:
            raise UsageError(f"max_entries={self.max_entries} is below 1")
        if self.decimals not in DECIMALS and self.decimal is None:
            raise UsageError(
                f"decimals='{self.decimals}' is not one of {', '.join(DECIMALS)}, decimal(p,s) with p up to 38"
            )

    @property
    def decimal(self) -> tuple[int, int] | None:
        """Digits and scale of `decimal(p,s)`."""
        found = re.fullmatch(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)", self.decimals)
        if not found:
            return None
        digits, scale = int(found[1]), int(found[2])
        return (digits, scale) if 0 < digits <= MAX_DIGITS and scale <= digits else None

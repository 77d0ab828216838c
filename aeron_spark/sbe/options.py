"""What values become in columns, and what becomes of messages that can't be decoded. Spec: 10 §13, §14."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from aeron_spark.errors import UsageError

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
    "constants": ("keep", "drop"),
}
DECIMALS = ("exact", "double", "parts")
MAX_DIGITS = 38


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How columns are made; the first choice of each is the default.

    `on_error`: a message that can't be decoded is a row of nulls with `sbe_error`, `sbe_error_at` and the bytes in
    `sbe_raw` (`null`), no row but counted (`drop`), or an exception (`fail`). `others`: a message of another template of the
    schema is such an error (`error`), or no row (`skip`).
    `uint64`: `decimal128(20, 0)`, `long` (above 2^63-1: null, counted), or its `bits` as a signed number.
    `enums`: names, wire values, or `bool` for the enums that are one. `unknown_enum`: a value without a name is its number as
    text, null and counted, or an error. `sets`: lists of names, the bits as a number, or a struct of booleans.
    `decimals`: `exact` (decimal128 where the exponent is constant, else its parts), `double` (rounded correctly), `parts`
    (mantissa and exponent), or `decimal(p,s)` (all of this one type; what would lose digits is null, counted). With `double`
    and `decimal(p,s)` a field that names another one as its exponent is folded, too.
    `timestamps`: as exact as on the wire, microseconds rounded down, or the raw number. `chars`: text of char arrays, without
    the spaces at its end, or bytes. `byte_arrays`: of int8 and uint8, as bytes or as lists. `bad_text`: bytes that the charset
    does not have are U+FFFD, make the text null, counted, or an error. `constants`: columns for them, or none.
    `empty_as_null`: names of data whose empty values are null. `drop_deprecated`: no columns of deprecated elements.
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
    constants: str = "keep"
    empty_as_null: tuple[str, ...] = ()
    drop_deprecated: bool = False
    spark: bool = False

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise UsageError(f"{name}='{value}' is not one of {', '.join(choices)}")
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

"""Errors and warnings collected while a schema is read, and the checks of single attributes."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from aeron_spark.sbe.model import PRIMITIVES, Presence, Primitive, Raw
from aeron_spark.sbe.problem import Problem
from aeron_spark.sbe.xml import Element

MAX_COUNT = 2**31 - 1
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = frozenset(
    (
        "char",
        "const",
        "default",
        "double",
        "enum",
        "float",
        "int",
        "interface",
        "long",
        "namespace",
        "private",
        "public",
        "static",
        "struct",
        "switch",
        "this",
        "void",
    )
)
_SHOWN = 40


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def unsigned(text: str) -> int | None:
    """A number from 0 to 2^32-1; None: the text is not one."""
    digits = text.lstrip("0") or text[-1:]
    if not digits.isascii() or not digits.isdigit() or len(digits) > 10 or int(digits) > 2**32 - 1:  # noqa: PLR2004
        return None
    return int(digits)


class RefusedError(Exception):
    """An error was recorded after which this element can't be processed further."""


class Findings:
    """Collects all errors, so that a schema can be fixed in one pass."""

    def __init__(self) -> None:
        self.errors: list[Problem] = []
        self.warnings: list[Problem] = []
        self._path: list[str] = []

    @contextmanager
    def inside(self, kind: str, name: str) -> Iterator[None]:
        """Assigns findings in the body to this element."""
        self._path.append(f"{kind}[{name}]")
        try:
            yield
        finally:
            self._path.pop()

    def error(self, kind: str, element: Element, text: str) -> None:
        """Record an error."""
        self.errors.append(Problem(kind, element.file, element.line, "/".join(self._path), text))

    def refuse(self, kind: str, element: Element, text: str) -> RefusedError:
        """Record an error; returns the exception to raise."""
        self.error(kind, element, text)
        return RefusedError()

    def warn(self, element: Element, text: str) -> None:
        """Record a warning."""
        self.warnings.append(Problem("WARNING", element.file, element.line, "/".join(self._path), text))

    def text(self, element: Element, name: str) -> str:
        """A required attribute."""
        value = element.attributes.get(name, "").strip()
        if not value:
            raise self.refuse("SCHEMA_ATTR", element, f"<{element.name}> lacks the attribute {name}")
        return value

    def name(self, element: Element) -> str:
        """The name attribute."""
        name = self.text(element, "name")
        if not _NAME.fullmatch(name) or keyword.iskeyword(name) or name in _KEYWORDS:
            self.warn(element, f"the name '{_short(name)}' is none in most languages")
        return name

    def number(self, element: Element, name: str, default: int | None = None) -> int:
        """An unsigned number; without a default it is required."""
        if default is not None and name not in element.attributes:
            return default
        value = self.text(element, name)
        number = unsigned(value)
        if number is None:
            raise self.refuse("SCHEMA_ATTR", element, f"{name}='{_short(value)}' is not a number from 0 to 4294967295")
        return number

    def presence(self, element: Element, default: Presence) -> Presence:
        """The presence attribute."""
        match element.attributes.get("presence", default).strip():
            case "required":
                return "required"
            case "optional":
                return "optional"
            case "constant":
                return "constant"
            case other:
                raise self.refuse("SCHEMA_ATTR", element, f"presence='{other}' is not required, optional or constant")

    def primitive(self, element: Element, name: str) -> Primitive:
        """An attribute that names a primitive type."""
        given = self.text(element, name)
        if given not in PRIMITIVES:
            raise self.refuse("SCHEMA_TYPE", element, f"{name}='{given}' is not one of {' '.join(PRIMITIVES)}")
        return PRIMITIVES[given]

    def value(self, element: Element, kind: str, primitive: Primitive, given: str) -> Raw:
        """A value of a primitive in the schema's notation: a character for char, else a number."""
        if primitive.is_char:
            if len(given) != 1:
                raise self.refuse(kind, element, f"'{_short(given)}' is not one character, which a char is")
            return ord(given)
        # Python's own notation is wider: it accepts digits of other scripts, and underscores between digits.
        if primitive.is_float and given.isascii() and "_" not in given:
            with suppress(ValueError):
                return float(given)
        if not primitive.is_float and _INTEGER.fullmatch(given):
            return int(given)
        raise self.refuse(kind, element, f"'{_short(given)}' is not a number, which {primitive.name} wants")

    def value_of(self, element: Element, name: str, kind: str, primitive: Primitive) -> Raw:
        """An attribute that is a value of a primitive."""
        given = element.attributes[name]
        return self.value(element, kind, primitive, given if primitive.is_char else given.strip())

    def limits(self, element: Element, primitive: Primitive) -> None:
        """Check the minValue and maxValue attributes: a decoder ignores them, but they must be valid values."""
        for name in ("minValue", "maxValue"):
            if name in element.attributes:
                limit = self.value_of(element, name, "SCHEMA_ATTR", primitive)
                if not primitive.fits(limit):
                    self.warn(
                        element, f"{name}='{_short(element.attributes[name])}' does not fit into {primitive.name}"
                    )

    def null_value(self, element: Element, primitive: Primitive, default: Raw) -> Raw:
        """The nullValue attribute; one that the wire can't carry is reported and ignored (Spec: 10 §3.1)."""
        if "nullValue" not in element.attributes:
            return default
        null = self.value_of(element, "nullValue", "SCHEMA_ATTR", primitive)
        given = element.attributes["nullValue"].strip()
        if not primitive.fits(null) or (abs(null) == math.inf and "inf" not in given.lower()):
            self.warn(element, f"nullValue='{_short(given)}' does not fit into {primitive.name}: {default} is taken")
            return default
        return null

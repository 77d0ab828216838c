"""Errors and warnings gathered while a schema is read, and the checks of single attributes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aeron_spark.sbe.model import PRIMITIVES, Presence, Primitive, Raw
from aeron_spark.sbe.problem import Problem
from aeron_spark.sbe.xml import Element

MAX_COUNT = 2**31 - 1


class RefusedError(Exception):
    """An error was noted that leaves nothing to go on with at this place."""


class Findings:
    """Every error is gathered, so that a schema is mended in one go."""

    def __init__(self) -> None:
        self.errors: list[Problem] = []
        self.warnings: list[Problem] = []
        self._path: list[str] = []

    @contextmanager
    def inside(self, kind: str, name: str) -> Iterator[None]:
        """Findings in the body are of this element."""
        self._path.append(f"{kind}[{name}]")
        try:
            yield
        finally:
            self._path.pop()

    def error(self, kind: str, element: Element, text: str) -> None:
        """Note an error."""
        self.errors.append(Problem(kind, element.file, element.line, "/".join(self._path), text))

    def refuse(self, kind: str, element: Element, text: str) -> RefusedError:
        """Note an error; to be raised."""
        self.error(kind, element, text)
        return RefusedError()

    def warn(self, element: Element, text: str) -> None:
        """Note what is odd."""
        self.warnings.append(Problem("WARNING", element.file, element.line, "/".join(self._path), text))

    def text(self, element: Element, name: str) -> str:
        """A required attribute."""
        value = element.attributes.get(name, "").strip()
        if not value:
            raise self.refuse("SCHEMA_ATTR", element, f"<{element.name}> lacks the attribute {name}")
        return value

    def number(self, element: Element, name: str, default: int | None = None) -> int:
        """An unsigned number; without a default it is required."""
        if default is not None and name not in element.attributes:
            return default
        value = self.text(element, name)
        if not value.isascii() or not value.isdigit() or int(value) > 2**32 - 1:
            raise self.refuse("SCHEMA_ATTR", element, f"{name}='{value}' is not a number from 0 to 4294967295")
        return int(value)

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
        """A value of a primitive as the schema writes it: a character for char, else a number."""
        if primitive.is_char:
            if len(given) != 1:
                raise self.refuse(kind, element, f"'{given}' is not one character, which a char is")
            return ord(given)
        try:
            return float(given) if primitive.is_float else int(given)
        except ValueError:
            raise self.refuse(kind, element, f"'{given}' is not a number, which {primitive.name} wants") from None

    def null_value(self, element: Element, primitive: Primitive, default: Raw) -> Raw:
        """The nullValue attribute; one that the wire can't carry is told and left (Spec: 10 §3.1)."""
        if "nullValue" not in element.attributes:
            return default
        given = element.attributes["nullValue"]
        if not primitive.is_char:
            given = given.strip()
        null = self.value(element, "SCHEMA_ATTR", primitive, given)
        if not primitive.fits(null):
            self.warn(element, f"nullValue='{given}' does not fit into {primitive.name}: {default} is taken")
            return default
        return null

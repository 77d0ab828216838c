"""Schema files as elements with line numbers.

Elements and attributes are known by their local names, whatever their namespace (Spec: 10 §2.1). A schema may come from
anybody: no DTD, no entities, no network, and includes stay in the folder of the file that was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from aeron_spark.sbe.problem import Problem, SchemaError

MAX_DEPTH = 8
MAX_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class Element:
    """One element: local names, attributes, text without comments, and where it stands."""

    name: str
    attributes: dict[str, str]
    file: str
    line: int
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def named(self, *names: str) -> Iterator[Element]:
        """Children of these local names."""
        return (child for child in self.children if child.name in names)


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _attributes(pairs: dict[str, str]) -> dict[str, str]:
    # An attribute without prefix is the standard's; one of a foreign namespace is kept where it clashes with none.
    own = {name: value for name, value in pairs.items() if ":" not in name and name != "xmlns"}
    foreign = {_local(name): value for name, value in pairs.items() if ":" in name and not name.startswith("xmlns:")}
    return foreign | own


class _Reader:
    def __init__(self, file: str) -> None:
        self.file = file
        self.root = Element("", {}, file, 0)
        self._open: list[Element] = []
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._doctype

    def read(self, content: bytes) -> Element:
        try:
            self._parser.Parse(content, True)  # noqa: FBT003 - that it is the last of it
        except expat.ExpatError as failure:
            text = f"not well-formed: {expat.errors.messages[failure.code]}"
            raise SchemaError([Problem("SCHEMA_XML", self.file, failure.lineno, "", text)]) from None
        return self.root

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        element = Element(_local(name), _attributes(attributes), self.file, self._parser.CurrentLineNumber)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def _end(self, _name: str) -> None:
        self._open.pop()

    def _characters(self, text: str) -> None:
        if self._open:
            self._open[-1].text += text

    def _doctype(self, *_: object) -> None:
        text = "a document type declaration is not accepted; take it out"
        raise SchemaError([Problem("SCHEMA_XML", self.file, self._parser.CurrentLineNumber, "", text)])


def _include(element: Element, folder: Path, opened: tuple[Path, ...]) -> Element:
    def refuse(text: str) -> SchemaError:
        return SchemaError([Problem("SCHEMA_INCLUDE", element.file, element.line, "include", text)])

    href = element.attributes.get("href", "")
    if not href or "://" in href or href.startswith(("/", "file:")):
        raise refuse(f"href='{href}' is not a file name relative to this one")
    path = (Path(element.file).parent / href).resolve()
    if not path.is_relative_to(folder):
        raise refuse(f"href='{href}' leads out of the schema's folder {folder}")
    if path in opened:
        raise refuse(f"href='{href}' includes itself: " + " > ".join(one.name for one in (*opened, path)))
    if len(opened) >= MAX_DEPTH:
        raise refuse(f"includes are nested more than {MAX_DEPTH} deep")
    if not path.is_file():
        raise refuse(f"href='{href}': there is no file {path}")
    return _load(path, folder, opened)


def _resolve(element: Element, folder: Path, opened: tuple[Path, ...]) -> None:
    resolved: list[Element] = []
    for child in element.children:
        if child.name == "include":
            included = _include(child, folder, opened)
            resolved.extend(included.children if included.name == "messageSchema" else [included])
        else:
            resolved.append(child)
    element.children = resolved


def _load(path: Path, folder: Path, opened: tuple[Path, ...]) -> Element:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SchemaError([Problem("SCHEMA_XML", str(path), 0, "", f"more than {MAX_BYTES} bytes")])
        content = path.read_bytes()
    except OSError as failure:
        raise SchemaError([Problem("SCHEMA_XML", str(path), 0, "", failure.strerror or str(failure))]) from None
    root = _Reader(str(path)).read(content)
    _resolve(root, folder, (*opened, path))
    return root


def load(path: Path) -> Element:
    """The root of a schema file, its includes in their places."""
    path = path.resolve()
    root = _load(path, path.parent, ())
    if root.name != "messageSchema":
        raise SchemaError(
            [Problem("SCHEMA_XML", str(path), root.line, "", f"root <{root.name}> is not a messageSchema")]
        )
    return root


def parse(text: str | bytes, name: str = "<schema>") -> Element:
    """The root of a schema given as text, which can include nothing."""
    root = _Reader(name).read(text.encode() if isinstance(text, str) else text)
    for child in root.named("include"):
        raise SchemaError(
            [Problem("SCHEMA_INCLUDE", name, child.line, "include", "a schema given as text has no folder")]
        )
    if root.name != "messageSchema":
        raise SchemaError([Problem("SCHEMA_XML", name, root.line, "", f"root <{root.name}> is not a messageSchema")])
    return root

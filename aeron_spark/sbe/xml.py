"""Reads schema files as elements with line numbers.

Elements and attributes are identified by their local names, whatever their namespace (Spec: 10 §2.1). A schema is
untrusted input: no DTD that declares or fetches anything, no entities, no network access, and includes stay in the
folder of the requested file.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from aeron_spark.sbe.problem import Problem, SchemaError

MAX_DEPTH = 8
MAX_BYTES = 64 * 1024 * 1024
MAX_FILES = 256
MAX_NESTED = 64
MAX_PARTS = 500_000
"""Limit of a file's elements and attributes: each is an object of some hundred bytes."""
MAX_TEXT = 100
LEAVES = ("message", "group", "composite", "enum", "set")
"""Elements in which an include is not allowed."""
XINCLUDE = "http://www.w3.org/2001/XInclude"


@dataclass(slots=True)
class Element:
    """One element: local names, attributes, text without comments, and its place.

    `foreign`: attributes of other namespaces, which have no meaning in the standard.
    """

    name: str
    attributes: dict[str, str]
    file: str
    line: int
    foreign: dict[str, str] = field(default_factory=dict)
    is_include: bool = False
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def named(self, *names: str) -> Iterator[Element]:
        """Children with these local names."""
        return (child for child in self.children if child.name in names)


def trimmed(text: str, *, is_char: bool = False) -> str:
    """The text without surrounding white space, which is XML layout. For a char, a lone space is the value."""
    return text if is_char and text == " " else text.strip(" \t\r\n")


def _local(name: str) -> str:
    return name.rpartition(":")[2]


class _Reader:
    def __init__(self, file: str, encoding: str | None = None) -> None:
        self.file = file
        self.root = Element("", {}, file, 0)
        self._open: list[Element] = []
        self._count = 0
        # For each open element, the namespaces of the prefixes in scope.
        self._scopes: list[dict[str, str]] = [{"xi": XINCLUDE}]
        self._parser = expat.ParserCreate(encoding)
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
        except (LookupError, ValueError) as failure:
            text = f"its encoding can't be read ({failure}); save it as UTF-8"
            raise self._refused("SCHEMA_XML", text) from None
        return self.root

    def _refused(self, kind: str, text: str) -> SchemaError:
        return SchemaError([Problem(kind, self.file, self._parser.CurrentLineNumber, "", text)])

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= MAX_NESTED:
            raise self._refused("SCHEMA_XML", f"elements are nested more than {MAX_NESTED} deep")
        self._count += 1 + len(attributes)
        if self._count > MAX_PARTS:
            raise self._refused("SCHEMA_XML", f"there are more than {MAX_PARTS} elements and attributes")
        declared = {
            key.partition(":")[2]: uri for key, uri in attributes.items() if key == "xmlns" or key.startswith("xmlns:")
        }
        scope = self._scopes[-1] | declared if declared else self._scopes[-1]
        element = Element(_local(name), {}, self.file, self._parser.CurrentLineNumber)
        for key, value in attributes.items():
            if ":" not in key:
                element.attributes[key] = value
            elif not key.startswith("xmlns:"):
                element.foreign[_local(key)] = value
        element.is_include = element.name == "include" and scope.get(name.rpartition(":")[0]) == XINCLUDE
        if self._open:
            parent = self._open[-1]
            if element.is_include and parent.name in LEAVES:
                raise self._refused(
                    "SCHEMA_INCLUDE", f"an include stands in messageSchema or types, not in {parent.name}"
                )
            parent.children.append(element)
        else:
            self.root = element
        self._open.append(element)
        self._scopes.append(scope)

    def _end(self, _name: str) -> None:
        self._open.pop()
        self._scopes.pop()

    def _characters(self, text: str) -> None:
        if self._open:
            self._open[-1].text += text

    def _doctype(self, name: str, system_id: str | None, public_id: str | None, has_subset: int) -> None:
        # Without either it declares nothing. All of B3's published schemas begin with `<!DOCTYPE xml>`.
        if has_subset or system_id is not None or public_id is not None:
            what = "declarations" if has_subset else "an external identifier"
            raise self._refused(
                "SCHEMA_XML",
                f"the document type <!DOCTYPE {_short(name)} ...> has {what}, which is not accepted; take it out",
            )


class _Loader:
    """A schema's files, which are all in its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = 0
        self._bytes = 0

    def load(self, path: Path, opened: tuple[Path, ...]) -> Element:
        self._files += 1
        try:
            found = path.stat()
            if not stat.S_ISREG(found.st_mode):
                raise SchemaError([Problem("SCHEMA_XML", str(path), 0, "", "is no regular file")])
            self._bytes += found.st_size
            if self._bytes > MAX_BYTES:
                text = f"the schema has more than {MAX_BYTES} bytes, with what it includes"
                raise SchemaError([Problem("SCHEMA_XML", str(path), 0, "", text)])
            content = path.read_bytes()
        except OSError as failure:
            raise SchemaError([Problem("SCHEMA_XML", str(path), 0, "", failure.strerror or str(failure))]) from None
        root = _Reader(str(path)).read(content)
        self._resolve(root, (*opened, path))
        return root

    def _resolve(self, element: Element, opened: tuple[Path, ...]) -> None:
        resolved: list[Element] = []
        for child in element.children:
            if child.is_include:
                included = self._include(child, opened)
                resolved.extend(_content(included, element))
            else:
                if child.name == "types":
                    self._resolve(child, opened)
                resolved.append(child)
        element.children = resolved

    def _include(self, element: Element, opened: tuple[Path, ...]) -> Element:
        def refuse(text: str) -> SchemaError:
            return SchemaError([Problem("SCHEMA_INCLUDE", element.file, element.line, "include", text)])

        href = element.attributes.get("href", "")
        if not href or "://" in href or href.startswith(("/", "file:")):
            raise refuse(f"href='{href}' is not a file name relative to this one")
        try:
            path = (Path(element.file).parent / href).resolve()
            is_file = path.is_file()
        except (OSError, RuntimeError, ValueError) as failure:
            raise refuse(f"href='{_short(href)}' can't be followed: {_reason(failure)}") from None
        if not path.is_relative_to(self._folder):
            raise refuse(f"href='{href}' leads out of the schema's folder {self._folder}")
        if path in opened:
            raise refuse(f"href='{href}' includes itself: " + " > ".join(one.name for one in (*opened, path)))
        if len(opened) >= MAX_DEPTH:
            raise refuse(f"includes are nested more than {MAX_DEPTH} deep")
        if self._files >= MAX_FILES:
            raise refuse(f"the schema includes more than {MAX_FILES - 1} files; include each of them once")
        if not is_file:
            raise refuse(f"href='{href}': there is no file {path}")
        return self.load(path, opened)


def _short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "..."


def _reason(failure: Exception) -> str:
    text = failure.strerror if isinstance(failure, OSError) and failure.strerror else str(failure)
    return _short(text)


def _content(included: Element, parent: Element) -> list[Element]:
    """The elements that replace an include in the parent."""
    if included.name == parent.name or (included.name == "messageSchema" and parent.name != "types"):
        return included.children
    if included.name == "messageSchema":
        return [one for types in included.named("types") for one in types.children]
    return [included]


def _check_root(root: Element) -> Element:
    if root.name != "messageSchema":
        text = f"root <{root.name}> is not a messageSchema"
        raise SchemaError([Problem("SCHEMA_XML", root.file, root.line, "", text)])
    return root


def load(path: Path) -> Element:
    """The root of a schema file, with its includes replaced."""
    try:
        path = path.resolve()
    except (OSError, RuntimeError, ValueError) as failure:
        raise SchemaError([Problem("SCHEMA_XML", _short(str(path)), 0, "", _reason(failure))]) from None
    return _check_root(_Loader(path.parent).load(path, ()))


def parse(text: str | bytes, name: str = "<schema>") -> Element:
    """The root of a schema given as text, which can't include files. A `str`'s declared encoding is ignored."""
    if isinstance(text, str):
        try:
            content = text.encode()
        except UnicodeEncodeError as failure:
            line = text.count("\n", 0, failure.start) + 1
            raise SchemaError([Problem("SCHEMA_XML", name, line, "", f"no text: {failure}")]) from None
        root = _Reader(name, "utf-8").read(content)
    else:
        root = _Reader(name).read(text)
    for parent in (root, *root.named("types")):
        for child in parent.children:
            if child.is_include:
                why = "a schema given as text has no folder"
                raise SchemaError([Problem("SCHEMA_INCLUDE", name, child.line, "include", why)])
    return _check_root(root)

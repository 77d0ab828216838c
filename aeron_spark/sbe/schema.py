"""Reads a schema: XML to the resolved model. Spec: 10 §2, §4, §12."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from aeron_spark.errors import UsageError
from aeron_spark.names import nearest
from aeron_spark.sbe import xml
from aeron_spark.sbe.findings import MAX_COUNT, Findings, RefusedError, unsigned
from aeron_spark.sbe.model import Composite, Data, Enum, Field, Group, Message, Presence, Raw, Scalar, Schema, Set, Type
from aeron_spark.sbe.problem import Problem, SchemaError
from aeron_spark.sbe.types import HEADER_COUNTS, HEADER_ROLES, Types
from aeron_spark.sbe.xml import Element

MEMBERS = ("field", "group", "data")
MAX_NESTED_GROUPS = 16
"""Arrow's columns nest at most 64 deep; a group takes two levels."""
_T = TypeVar("_T", Field, Group, Data)


class _Blocks:
    """Messages, and the groups in them."""

    def __init__(self, types: Types, findings: Findings) -> None:
        self._types = types
        self._findings = findings
        self._nested = 0

    def message(self, element: Element) -> Message:
        findings = self._findings
        name = findings.name(element)
        with findings.inside("message", name):
            fields, groups, data, block_length = self._members(element)
            return Message(
                name=name, id=findings.number(element, "id"), block_length=block_length, since=self._types.since(element),
                deprecated=findings.number(element, "deprecated", 0), semantic_type=element.attributes.get("semanticType", ""),
                fields=fields, groups=groups, data=data,
            )  # fmt: skip

    def _members(self, element: Element) -> tuple[tuple[Field, ...], tuple[Group, ...], tuple[Data, ...], int]:
        self._check_order(element)
        end = 0
        fields: list[Field] = []
        for child in element.named("field"):
            field = self._take(child, self._reader(functools.partial(self._field, end=end), child))
            if field is not None:
                fields.append(field)
                end = field.offset + field.size
        groups = [self._take(child, self._reader(self._group, child)) for child in element.named("group")]
        data = [self._take(child, self._reader(self._data, child)) for child in element.named("data")]
        declared = self._findings.number(element, "blockLength", 0)
        if declared and declared < end:
            self._findings.error(
                "SCHEMA_BLOCK", element, f"blockLength {declared} is less than the {end} bytes of its fields"
            )
        if max(declared, end) > MAX_COUNT:
            self._findings.error(
                "SCHEMA_BLOCK", element, f"a block of {max(declared, end)} bytes; at most {MAX_COUNT} can be"
            )
        return tuple(fields), tuple(filter(None, groups)), tuple(filter(None, data)), max(declared, end)

    @staticmethod
    def _reader(read: Callable[[Element, str], _T], element: Element) -> Callable[[str], _T]:
        return lambda name: read(element, name)

    def _take(self, element: Element, read: Callable[[str], _T]) -> _T | None:
        try:
            name = self._findings.name(element)
            with self._findings.inside(element.name, name):
                return read(name)
        except RefusedError:
            return None

    def _check_order(self, element: Element) -> None:
        findings = self._findings
        rank = 0
        names: dict[str, Element] = {}
        ids: dict[str, Element] = {}
        for child in element.named(*MEMBERS):
            if MEMBERS.index(child.name) < rank:
                findings.error(
                    "SCHEMA_ORDER",
                    child,
                    f"<{child.name}> stands behind a <{MEMBERS[rank]}>: fields, groups, then data",
                )
            rank = max(rank, MEMBERS.index(child.name))
            for attribute, seen in (("name", names), ("id", ids)):
                given = child.attributes.get(attribute, "").strip()
                number = unsigned(given) if attribute == "id" else None
                given = given if number is None else str(number)
                if given and seen.setdefault(given, child) is not child:
                    findings.error(
                        "SCHEMA_DUPLICATE", child, f"{attribute} '{given}' is that of line {seen[given].line}, too"
                    )

    # -- field -------------------------------------------------------------------------------------------------------------

    def _field(self, element: Element, name: str, *, end: int) -> Field:
        findings = self._findings
        field_id = findings.number(element, "id")
        found = self._types.find(findings.text(element, "type"), element)
        presence = self._presence(element, found)
        semantic = element.attributes.get("semanticType", "")
        if semantic and found.semantic_type and semantic.lower() != found.semantic_type.lower():
            findings.warn(element, f"semanticType {semantic} is not its type's, {found.semantic_type}")
        constant = self._constant(element, found) if presence == "constant" else None
        offset = findings.number(element, "offset", 0)
        if "offset" in element.attributes and offset == 0 and end > 0 and constant is None:
            findings.warn(element, f"offset 0 behind other fields is taken as not given: the field is at {end}")
        offset = offset or end
        if offset < end:
            findings.error("SCHEMA_OFFSET", element, f"offset {offset} is before {end}, where the field before it ends")
        null = found.null if isinstance(found, (Scalar, Enum)) else 0
        return Field(
            name=name, id=field_id, offset=offset, type=found, presence=presence,
            since=max(self._types.since(element), found.since), null=null, constant=constant,
            semantic_type=semantic or found.semantic_type, time_unit=element.attributes.get("timeUnit", ""),
            epoch=element.attributes.get("epoch", ""), deprecated=findings.number(element, "deprecated", 0),
            attributes=element.foreign | element.attributes,
        )  # fmt: skip

    def _presence(self, element: Element, found: Type) -> Presence:
        of_type: Presence = found.presence if isinstance(found, Scalar) else "required"
        presence = self._findings.presence(element, of_type)
        if presence != of_type and isinstance(found, Scalar):
            if of_type == "constant":
                self._findings.warn(element, "its type is constant, and so is the field")
                return "constant"
            if of_type == "optional" and presence == "required":
                self._findings.warn(element, "required, though its type is optional: the null value is a value")
        return presence

    def _constant(self, element: Element, found: Type) -> Raw | str:
        reference = element.attributes.get("valueRef", "").strip()
        match found:
            case Enum():
                if not reference:
                    raise self._findings.refuse("SCHEMA_CONST", element, "a constant enum needs a valueRef")
                self._types.referenced(element, reference, None, found)
                return reference.partition(".")[2]
            case Scalar():
                if reference:
                    raw = self._types.referenced(element, reference, found.primitive)
                    return chr(raw) if found.is_text else raw
                if found.constant is None:
                    raise self._findings.refuse(
                        "SCHEMA_CONST", element, f"constant, but its type {found.name} has no value"
                    )
                return found.constant
            case Composite() | Set():
                raise self._findings.refuse("SCHEMA_CONST", element, "a composite or a set can't be constant")

    # -- group and data ------------------------------------------------------------------------------------------------------

    def _group(self, element: Element, name: str) -> Group:
        findings = self._findings
        if self._nested >= MAX_NESTED_GROUPS:
            raise findings.refuse("SCHEMA_ORDER", element, f"groups are nested more than {MAX_NESTED_GROUPS} deep")
        group_id = findings.number(element, "id")
        dimension = self._types.dimension(element.attributes.get("dimensionType", "groupSizeEncoding").strip(), element)
        self._nested += 1
        try:
            fields, groups, data, block_length = self._members(element)
        finally:
            self._nested -= 1
        return Group(
            name=name, id=group_id, dimension=dimension, block_length=block_length, since=self._types.since(element),
            deprecated=findings.number(element, "deprecated", 0), semantic_type=element.attributes.get("semanticType", ""),
            fields=fields, groups=groups, data=data,
        )  # fmt: skip

    def _data(self, element: Element, name: str) -> Data:
        findings = self._findings
        data_id = findings.number(element, "id")
        length, offset, charset = self._types.var_data(findings.text(element, "type"), element)
        if findings.presence(element, "required") != "required":
            findings.warn(element, "presence of data is not a thing of the wire: empty stays empty")
        return Data(
            name=name, id=data_id, length=length, data_offset=offset, charset=charset, since=self._types.since(element),
            semantic_type=element.attributes.get("semanticType", ""), deprecated=findings.number(element, "deprecated", 0),
        )  # fmt: skip


def _messages(root: Element, blocks: _Blocks, findings: Findings) -> dict[int, Message]:
    messages: dict[int, Message] = {}
    names: dict[str, Element] = {}
    for element in root.named("message"):
        try:
            message = blocks.message(element)
        except RefusedError:
            continue
        if message.id in messages:
            findings.error(
                "SCHEMA_DUPLICATE", element, f"template id {message.id} is that of {messages[message.id].name}, too"
            )
        elif names.setdefault(message.name, element) is not element:
            findings.error(
                "SCHEMA_DUPLICATE", element, f"the name {message.name} stands in line {names[message.name].line}, too"
            )
        messages.setdefault(message.id, message)
    if not messages and not findings.errors:
        findings.warn(root, "there is no message in it")
    return messages


def _read(root: Element, header_type: str | None, renames: Mapping[str, str]) -> tuple[Schema, tuple[Problem, ...]]:
    for role in renames:
        if role not in (*HEADER_ROLES, *HEADER_COUNTS):
            roles = ", ".join((*HEADER_ROLES, *HEADER_COUNTS))
            raise UsageError(f"header map: '{role}' is none of {roles}{nearest(role, (*HEADER_ROLES, *HEADER_COUNTS))}")
    findings = Findings()
    schema: Schema | None = None
    try:
        schema_id = findings.number(root, "id")
        version = findings.number(root, "version", 0)
        order = root.attributes.get("byteOrder", "littleEndian").strip()
        if order not in ("littleEndian", "bigEndian"):
            raise findings.refuse("SCHEMA_ATTR", root, f"byteOrder='{order}' is not littleEndian or bigEndian")
        types = Types(root.named("types"), version, findings)
        known = types.all()
        messages = _messages(root, _Blocks(types, findings), findings)
        header_name = header_type or root.attributes.get("headerType", "messageHeader").strip()
        schema = Schema(
            package=root.attributes.get("package", ""), id=schema_id, version=version,
            semantic_version=root.attributes.get("semanticVersion", ""), description=root.attributes.get("description", ""),
            is_big_endian=order == "bigEndian",
            header=types.header(
                header_name, root, renames, is_chosen=header_type is not None, has_messages=bool(messages)
            ),
            types=known, messages=messages,
        )  # fmt: skip
    except RefusedError:
        pass
    if findings.errors or schema is None:
        raise SchemaError([*findings.errors, *findings.warnings])
    return schema, tuple(findings.warnings)


def check(
    source: str | os.PathLike[str], *, header_type: str | None = None, header_map: Mapping[str, str] | None = None
) -> tuple[Schema, tuple[Problem, ...]]:
    """The schema in a file, and its warnings. SchemaError: it can't be used."""
    return _read(xml.load(Path(source)), header_type, header_map or {})


def load(
    source: str | os.PathLike[str], *, header_type: str | None = None, header_map: Mapping[str, str] | None = None
) -> Schema:
    """The schema in an XML file, with its includes.

    `header_type` names the composite that is the header on the wire if the schema names another one; `header_map` gives
    the names of its members (`{"templateId": "messageTypeId"}`). SchemaError: the file can't be read or the schema
    can't be used.
    """
    return check(source, header_type=header_type, header_map=header_map)[0]


def parse(text: str | bytes, *, header_type: str | None = None, header_map: Mapping[str, str] | None = None) -> Schema:
    """As `load`, for a schema given as text."""
    return _read(xml.parse(text), header_type, header_map or {})[0]

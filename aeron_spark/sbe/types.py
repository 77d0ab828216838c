"""Resolves the `types` of a schema. Spec: 10 §2.2, §3, §12."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping
from dataclasses import replace

from aeron_spark.sbe.findings import MAX_COUNT, Findings, RefusedError
from aeron_spark.sbe.model import (
    PRIMITIVES,
    Composite,
    Dimension,
    Enum,
    Header,
    Member,
    Primitive,
    Raw,
    Role,
    Scalar,
    Set,
    Type,
)
from aeron_spark.sbe.xml import Element, trimmed

KINDS = ("type", "composite", "enum", "set")
HEADER_ROLES = ("templateId", "blockLength", "schemaId", "version")
HEADER_COUNTS = ("numGroups", "numVarDataFields")


DATA_NAMES = ("varData", "data")
# Python's names for text transformations, which no wire format uses as a charset.
_NO_CHARSETS = ("idna", "punycode", "unicode-escape", "raw-unicode-escape")
MAX_NESTED_COMPOSITES = 16
MAX_LEAVES = 10_000
"""Limit of a composite's members, nested composites included: references multiply them."""
MAX_REFERENCES = 64


def _is_charset(name: str) -> bool:
    try:
        # Encoding a text distinguishes a charset from the codecs of bytes and of text to text, such as hex and rot13.
        "".encode(name)
        return codecs.lookup(name).name not in _NO_CHARSETS
    except (LookupError, ValueError):
        return False


def _standard_header(name: str) -> Header:
    of = PRIMITIVES["uint16"]
    roles = Role(0, of, None), Role(2, of, None), Role(4, of, None), Role(6, of, None)
    names = ("blockLength", "templateId", "schemaId", "version")
    members = (
        Member(one, role.offset, Scalar(of.name, of, null=of.null)) for one, role in zip(names, roles, strict=True)
    )
    return Header(Composite(name, tuple(members), 8), *roles, None, None)


def _signature(element: Element) -> tuple[object, ...]:
    """The properties that two definitions must share to be equal."""
    attributes = {
        name: trimmed(value, is_char=True) for name, value in element.attributes.items() if name != "description"
    }
    text = trimmed(element.text, is_char=True)
    return element.name, sorted(attributes.items()), text, [_signature(one) for one in element.children]


class Types:
    """Types by name: resolved when needed, so that references may point forward."""

    def __init__(self, sections: Iterable[Element], version: int, findings: Findings) -> None:
        self._findings = findings
        self._version = version
        self._elements: dict[str, Element] = {}
        self._resolved: dict[str, Type | None] = {}
        self._resolving: list[str] = []
        for section in sections:
            for element in section.named(*KINDS):
                self._take(element)

    def _take(self, element: Element) -> None:
        try:
            name = self._findings.name(element)
        except RefusedError:
            return
        if name in PRIMITIVES and element.attributes.get("primitiveType", "").strip() != name:
            self._findings.warn(element, f"{name} is defined as something else than the primitive type of that name")
        known = self._elements.setdefault(name, element)
        if known is not element and _signature(known) != _signature(element):
            with self._findings.inside(element.name, name):
                self._findings.error("SCHEMA_DUPLICATE", element, f"defined otherwise in line {known.line}")

    def all(self) -> Mapping[str, Type]:
        """Every resolved type except the primitive ones."""
        for name, element in self._elements.items():
            try:
                self.find(name, element)
            except RefusedError:
                continue
        return {name: one for name, one in self._resolved.items() if one is not None and name in self._elements}

    def find(self, name: str, user: Element) -> Type:
        """The type with a name; `user` is the element that refers to it."""
        if name in self._resolving:
            steps = " > ".join((*self._resolving[self._resolving.index(name) :], name))
            raise self._findings.refuse("SCHEMA_CYCLE", user, f"contains itself: {steps}")
        if name not in self._resolved:
            element = self._elements.get(name)
            if element is None:
                if name not in PRIMITIVES:
                    raise self._findings.refuse("SCHEMA_TYPE", user, f"there is no type '{name}'")
                self._resolved[name] = Scalar(name, PRIMITIVES[name], null=PRIMITIVES[name].null)
            else:
                if len(self._resolving) >= MAX_REFERENCES:
                    raise self._findings.refuse(
                        "SCHEMA_TYPE", user, f"types refer to one another more than {MAX_REFERENCES} deep"
                    )
                self._resolved[name] = None
                self._resolving.append(name)
                try:
                    self._resolved[name] = self._read(element)
                finally:
                    self._resolving.pop()
        found = self._resolved[name]
        if found is None:
            raise RefusedError  # its own errors were recorded
        return found

    def _read(self, element: Element) -> Type:
        name = self._findings.text(element, "name")
        with self._findings.inside(element.name, name):
            since = self.since(element)
            deprecated = self._findings.number(element, "deprecated", 0)
            semantic = element.attributes.get("semanticType", "")
            match element.name:
                case "type":
                    return self._scalar(element, name, since, deprecated, semantic)
                case "enum":
                    return self._enum(element, name, since, deprecated, semantic)
                case "set":
                    return self._set(element, name, since, deprecated, semantic)
                case _:
                    members, size = self._members(element)
                    inner = [one.type for one in members if isinstance(one.type, Composite)]
                    composite = Composite(
                        name, members, size, semantic, since, deprecated,
                        depth=1 + max((one.depth for one in inner), default=0),
                        leaves=len(members) - len(inner) + sum(one.leaves for one in inner),
                    )  # fmt: skip
                    self._check_shape(element, composite)
                    return composite

    def since(self, element: Element) -> int:
        """The sinceVersion attribute."""
        since = self._findings.number(element, "sinceVersion", 0)
        if since > self._version:
            self._findings.error(
                "SCHEMA_VERSION", element, f"sinceVersion {since} is newer than the schema's version {self._version}"
            )
        return since

    # -- type ------------------------------------------------------------------------------------------------------------

    def _scalar(self, element: Element, name: str, since: int, deprecated: int, semantic: str) -> Scalar:
        findings = self._findings
        primitive = findings.primitive(element, "primitiveType")
        presence = findings.presence(element, "required")
        length = findings.number(element, "length", 1)
        charset = element.attributes.get("characterEncoding", "US-ASCII" if primitive.is_char else "").strip()
        is_data = length == 0 or (length == 1 and name in DATA_NAMES)
        if charset and (primitive.is_char or is_data):
            self._check_charset(element, charset, is_wide_fine=is_data)
        findings.limits(element, primitive)
        if length * primitive.size > MAX_COUNT:
            raise findings.refuse(
                "SCHEMA_ATTR", element, f"length={length} makes it longer than {MAX_COUNT} bytes, the most there can be"
            )
        null = findings.null_value(element, primitive, primitive.null)
        if "nullValue" in element.attributes and presence == "required":
            findings.warn(element, "nullValue of a required type: it counts where a field makes it optional")
        constant = None
        if presence == "constant":
            constant = self._constant(element, primitive, length if "length" in element.attributes else None)
            length = len(constant) if isinstance(constant, str) else 1
        return Scalar(
            name=name, primitive=primitive, length=length, presence=presence, null=null, constant=constant, charset=charset,
            semantic_type=semantic, since=since, deprecated=deprecated, description=element.attributes.get("description", ""),
        )  # fmt: skip

    def _check_charset(self, element: Element, charset: str, *, is_wide_fine: bool) -> None:
        if not _is_charset(charset):
            self._findings.error("SCHEMA_CHARSET", element, f"characterEncoding='{charset}' is not known")
        elif codecs.lookup(charset).name.startswith(("utf-16", "utf-32")) and not is_wide_fine:
            self._findings.error(
                "SCHEMA_CHARSET", element, f"{charset} is for variable data, not for arrays of fixed length"
            )

    def _constant(self, element: Element, primitive: Primitive, length: int | None) -> Raw | str:
        findings = self._findings
        reference = element.attributes.get("valueRef", "").strip()
        if reference:
            raw = self.referenced(element, reference, primitive)
            return chr(raw) if primitive.is_char else raw
        text = trimmed(element.text, is_char=primitive.is_char)
        if not text:
            raise findings.refuse(
                "SCHEMA_CONST", element, "a constant needs its value as the element's text, or a valueRef"
            )
        if primitive.is_char:
            if length is not None and len(text) > length:
                raise findings.refuse("SCHEMA_CONST", element, f"the constant '{text}' is longer than length={length}")
            return text
        value = findings.value(element, "SCHEMA_CONST", primitive, text)
        if not primitive.fits(value):
            raise findings.refuse("SCHEMA_CONST", element, f"the constant {text} does not fit into {primitive.name}")
        return value

    def referenced(
        self, element: Element, reference: str, primitive: Primitive | None, enum: Enum | None = None
    ) -> int:
        """The raw value of a valueRef "Enum.Name"; of `primitive`, and of `enum` if that is given."""
        findings = self._findings
        enum_name, dot, value_name = reference.partition(".")
        if not dot or enum_name not in self._elements:
            raise findings.refuse("SCHEMA_CONST", element, f"valueRef='{reference}' names no enum's value (Enum.Name)")
        found = self.find(enum_name, element)
        if not isinstance(found, Enum) or (enum is not None and found is not enum):
            raise findings.refuse("SCHEMA_CONST", element, f"valueRef='{reference}' is not of the field's enum")
        if primitive is not None and found.primitive is not primitive:
            raise findings.refuse(
                "SCHEMA_CONST", element, f"valueRef='{reference}' is a {found.primitive.name}, not a {primitive.name}"
            )
        for name, raw in found.values:
            if name == value_name:
                return raw
        raise findings.refuse(
            "SCHEMA_CONST", element, f"valueRef='{reference}': {enum_name} has no value '{value_name}'"
        )

    # -- enum and set ------------------------------------------------------------------------------------------------------

    def _encoding(self, element: Element) -> Scalar:
        name = self._findings.text(element, "encodingType")
        found = self.find(name, element)
        if (
            not isinstance(found, Scalar)
            or found.length != 1
            or found.primitive.is_float
            or found.presence == "constant"
        ):
            raise self._findings.refuse(
                "SCHEMA_TYPE", element, f"encodingType='{name}' is not a single integer or char"
            )
        return found

    def _enum(self, element: Element, name: str, since: int, deprecated: int, semantic: str) -> Enum:
        findings = self._findings
        encoding = self._encoding(element)
        primitive = encoding.primitive
        null = findings.null_value(element, primitive, encoding.null)
        values: dict[str, int] = {}
        seen: set[int] = set()
        for child in element.named("validValue"):
            try:
                value_name = findings.name(child)
                text = trimmed(child.text, is_char=primitive.is_char)
                if not text:
                    raise findings.refuse("SCHEMA_ENUM", child, f"{value_name} has no value")
                raw = int(findings.value(child, "SCHEMA_ENUM", primitive, text))
            except RefusedError:
                continue
            self.since(child)
            if raw == null:
                findings.warn(
                    child, f"{value_name}={text} is the enum's null value: it is decoded as null, not as a name"
                )
            elif not primitive.low <= raw <= primitive.high:
                findings.error(
                    "SCHEMA_ENUM",
                    child,
                    f"{value_name}={text} is not in {primitive.name}'s range, {primitive.low} to {primitive.high}, "
                    f"and not the null value, {null}",
                )
            if value_name in values:
                findings.error("SCHEMA_DUPLICATE", child, f"{value_name} stands there twice")
            elif raw in seen:
                findings.warn(child, f"{value_name}={text}: another name comes first for this value")
            values.setdefault(value_name, raw)
            seen.add(raw)
        return Enum(name, primitive, null, tuple(values.items()), semantic, since, deprecated)

    def _set(self, element: Element, name: str, since: int, deprecated: int, semantic: str) -> Set:
        findings = self._findings
        primitive = self._encoding(element).primitive
        if not primitive.is_unsigned:
            raise findings.refuse(
                "SCHEMA_TYPE", element, f"a set can't be encoded as {primitive.name}; take an unsigned integer"
            )
        choices: dict[str, int] = {}
        for child in element.named("choice"):
            try:
                choice_name = findings.name(child)
                text = trimmed(child.text)
                bit = int(findings.value(child, "SCHEMA_ENUM", PRIMITIVES["int64"], text))
            except RefusedError:
                continue
            self.since(child)
            if not 0 <= bit < 8 * primitive.size:
                findings.error("SCHEMA_ENUM", child, f"bit {bit} of {choice_name} is not in a {primitive.name}")
            elif choice_name in choices:
                findings.error("SCHEMA_DUPLICATE", child, f"{choice_name} stands there twice")
            choices.setdefault(choice_name, bit)
        return Set(name, primitive, tuple(choices.items()), semantic, since, deprecated)

    # -- composite -----------------------------------------------------------------------------------------------------------

    def _members(self, element: Element) -> tuple[tuple[Member, ...], int]:
        findings = self._findings
        members: dict[str, Member] = {}
        end = 0
        for child in element.children:
            if child.name in ("data", "group"):
                findings.error("SCHEMA_ORDER", child, f"<{child.name}> can't be in a composite")
            if child.name not in (*KINDS, "ref"):
                continue
            try:
                name = findings.name(child)
                if child.name == "ref":
                    self.since(child)
                    found = self.find(findings.text(child, "type"), child)
                else:
                    found = self._read(child)
                offset = findings.number(child, "offset", 0) or end
            except RefusedError:
                continue
            member = Member(name, offset, found)
            if name in members:
                findings.error("SCHEMA_DUPLICATE", child, f"the member {name} stands there twice")
            elif offset < end:
                findings.error(
                    "SCHEMA_OFFSET", child, f"{name} at offset {offset} begins before {end}, where the last member ends"
                )
            members.setdefault(name, member)
            end = end if member.is_constant else offset + found.size
        return tuple(members.values()), end

    def _check_shape(self, element: Element, made: Composite) -> None:
        if made.depth > MAX_NESTED_COMPOSITES:
            raise self._findings.refuse(
                "SCHEMA_TYPE", element, f"composites are nested more than {MAX_NESTED_COMPOSITES} deep"
            )
        if made.leaves > MAX_LEAVES:
            raise self._findings.refuse(
                "SCHEMA_TYPE",
                element,
                f"{made.leaves} members, with those of inner composites; at most {MAX_LEAVES} can be",
            )
        if made.size > MAX_COUNT:
            raise self._findings.refuse(
                "SCHEMA_OFFSET", element, f"a composite of {made.size} bytes; at most {MAX_COUNT} can be"
            )

    # -- composites with a role ------------------------------------------------------------------------------------------------

    def composite(self, name: str, user: Element) -> Composite:
        """A type that must be a composite."""
        found = self.find(name, user)
        if not isinstance(found, Composite):
            raise self._findings.refuse("SCHEMA_TYPE", user, f"'{name}' is not a composite")
        return found

    def header(
        self, name: str, root: Element, renames: Mapping[str, str], *, is_chosen: bool, has_messages: bool
    ) -> Header:
        """The message header. One that the user chose may lack all roles except the template id (Spec: 10 §5).

        A schema without messages, for inclusion by others, needs no header.
        """
        findings = self._findings
        if name not in self._elements:
            if has_messages or is_chosen:
                raise findings.refuse("SCHEMA_HEADER", root, f"there is no composite '{name}' for the message header")
            return _standard_header(name)
        composite = self.composite(name, root)

        def find(role: str) -> Role | None:
            return self._role("SCHEMA_HEADER", composite, renames.get(role, role), root)

        template_id, *others = (find(role) for role in HEADER_ROLES)
        for role, found in zip(HEADER_ROLES, (template_id, *others), strict=True):
            if found is None and (role == "templateId" or not is_chosen):
                members = ", ".join(one.name for one in composite.members)
                findings.error(
                    "SCHEMA_HEADER",
                    root,
                    f"the message header '{name}' has no member {renames.get(role, role)}, but {members}: say by a header map "
                    f"which of them is its {role}",
                )
            elif found is not None and found.constant is None and found.primitive.name != "uint16":
                findings.warn(root, f"member {role} of '{name}' is a {found.primitive.name}, not a uint16")
        block_length, schema_id, version = others
        if block_length is not None and not block_length.primitive.is_unsigned:
            findings.error("SCHEMA_HEADER", root, f"member blockLength of '{name}' is signed")
        if template_id is None:
            raise RefusedError
        return Header(composite, block_length, template_id, schema_id, version, *map(find, HEADER_COUNTS))

    def dimension(self, name: str, user: Element) -> Dimension:
        """A group's header."""
        findings = self._findings
        composite = self.composite(name, user)
        block_length, count, num_groups, num_data = (
            self._role("SCHEMA_DIMENSION", composite, role, user)
            for role in ("blockLength", "numInGroup", "numGroups", "numVarDataFields")
        )
        if block_length is None or count is None:
            raise findings.refuse("SCHEMA_DIMENSION", user, f"'{name}' lacks blockLength or numInGroup")
        if not block_length.primitive.is_unsigned:
            findings.error("SCHEMA_DIMENSION", user, f"blockLength of '{name}' is signed")
        count = self._bounded("SCHEMA_DIMENSION", name, "numInGroup", count, user)
        return Dimension(composite.size, block_length, count, num_groups, num_data)

    def _role(self, kind: str, composite: Composite, name: str, user: Element) -> Role | None:
        """A member that is read as a number; None if no member has the name."""
        member = composite.member(name)
        if member is None:
            return None
        found = member.type
        if not isinstance(found, Scalar) or found.length != 1 or found.primitive.is_float:
            raise self._findings.refuse(kind, user, f"member {name} of '{composite.name}' is not an integer")
        constant = found.constant if isinstance(found.constant, int) else None
        if member.is_constant and constant is None:
            raise self._findings.refuse(kind, user, f"member {name} of '{composite.name}' is not a number")
        return Role(member.offset, found.primitive, constant)

    def _bounded(self, kind: str, composite: str, name: str, role: Role, user: Element) -> Role:
        """A count or length with its minValue and maxValue."""
        findings = self._findings
        element = next(
            (one for one in self._elements[composite].named("type", "ref") if one.attributes.get("name") == name), user
        )
        if element.name == "ref":
            element = self._elements.get(element.attributes.get("type", ""), element)
        given = {
            bound: int(findings.value(element, kind, PRIMITIVES["int64"], element.attributes[bound].strip()))
            for bound in ("minValue", "maxValue")
            if bound in element.attributes
        }
        low, high = given.get("minValue", 0), given.get("maxValue")
        if not role.primitive.is_unsigned and (kind == "SCHEMA_DATA" or given.get("minValue", -1) < 0):
            findings.error(kind, user, f"{name} of '{composite}' is signed")
        elif high is None and low > role.primitive.high:
            findings.error(kind, user, f"{name} of '{composite}': minValue={low} is more than {role.primitive.high}")
        elif high is not None and (high < low or high > MAX_COUNT or not role.primitive.fits(high)):
            findings.error(kind, user, f"{name} of '{composite}': maxValue={high} is not from {low} to {MAX_COUNT}")
        elif high is None and role.primitive.low == 0 and role.primitive.high > MAX_COUNT:
            findings.warn(user, f"{name} of '{composite}' has no maxValue: {MAX_COUNT} is taken")
        return replace(role, least=low, most=min(int(role.primitive.high), MAX_COUNT) if high is None else high)

    def var_data(self, name: str, user: Element) -> tuple[Role, int, str]:
        """Parts of a composite for variable data: the length, the offset of the bytes, the charset (empty: bytes)."""
        findings = self._findings
        composite = self.composite(name, user)
        length = self._role("SCHEMA_DATA", composite, "length", user)
        open_ended = [one for one in composite.members if isinstance(one.type, Scalar) and one.type.length == 0]
        content = composite.member("varData", "data") or (open_ended[0] if len(open_ended) == 1 else None)
        if length is None or content is None:
            raise findings.refuse("SCHEMA_DATA", user, f"'{name}' lacks length or varData")
        if not isinstance(content.type, Scalar) or content.type.primitive.size != 1:
            raise findings.refuse("SCHEMA_DATA", user, f"{content.name} of '{name}' is not made of char, uint8 or int8")
        length = self._bounded("SCHEMA_DATA", name, "length", length, user)
        charset = content.type.charset
        if charset and not _is_charset(charset):
            raise findings.refuse("SCHEMA_CHARSET", user, f"characterEncoding='{charset}' of '{name}' is not known")
        return length, content.offset, charset

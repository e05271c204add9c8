"""The keywords of the subset: what each demands of its argument, and what it adds to its node."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Callable, Optional

from .formats import FORMATS
from .patterns import PatternError, parse
from .schema_limits import (
    DIALECT,
    MAX_ALL_POSITIONS,
    MAX_ANNOTATION,
    MAX_BRANCHES,
    MAX_ENUM,
    MAX_NAMES,
    MAX_PATTERNS,
    MAX_REFS,
    MAX_URI,
)
from .schema_node import KINDS, Node, scalar
from .schema_problems import SchemaError, escape
from .wire import strictjson

if TYPE_CHECKING:
    from .schema_compile import Builder

WIDGETS = ("text", "password", "number", "checkbox", "select", "radio", "list", "date-time", "path", "secret")
REDACTIONS = ("full", "hash", "prefix")

OF_VALUE = 0
"""A subschema of a part of the value."""
IN_PLACE = 1
"""One that meets the same value."""

DEFINITION = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


class Reader:
    """Reads the keywords of one subschema into its node."""

    def __init__(self, builder: Builder, node: Node, value: dict[str, Any], path: str, base: str, part: int, depth: int) -> None:
        self.builder = builder
        self.node = node
        self.value = value
        self.path = path
        self.base = base
        self.part = part
        self.depth = depth

    def wrong(self, keyword: str, message: str, code: str = "subset.value") -> SchemaError:
        return SchemaError(f"{self.path}/{escape(keyword)}", code, message)

    def sub(self, value: Any, place: int, *names: str) -> Node:
        path = "".join(f"/{escape(n)}" for n in names)
        return self.builder.schema(value, self.path + path, self.base, place, self.depth + 1)

    def keyword(self, name: str, value: Any) -> None:
        read = _READERS.get(name)
        if read is not None:
            read(self, name, value)
        elif name.startswith("x-"):
            self.annotation(name, value)
        else:
            raise self.wrong(name, "is not a keyword of the subset", "subset.keyword")

    def together(self, place: int) -> None:
        """Checks what keywords ask of each other."""
        node, value = self.node, self.value
        additional = value.get("additionalProperties")
        if "object" in node.types and "additionalProperties" not in value:
            raise SchemaError(
                self.path, "subset.open", 'an object has "additionalProperties": false, or a schema for its members if it is a map'
            )
        if place == OF_VALUE and not node.types and node.object and "$ref" not in value:
            raise SchemaError(
                self.path, "subset.open", "a schema about objects has a type, so that it is known what else there may be"
            )
        if "properties" in value and "additionalProperties" in value and additional is not False:
            raise self.wrong("additionalProperties", "must be false beside properties: an object is a record or a map", "subset.open")
        if ("then" in value or "else" in value) and "if" not in value:
            raise SchemaError(self.path, "subset.keyword", "then and else stand beside if")
        if node.unique and (node.items is None or not node.items.types or node.items.types & {"object", "array", "number"}):
            raise self.wrong("uniqueItems", "needs items with a type of its own that is none of object, array and number")
        if len({*node.properties, *node.required, *node.dependent, *(n for v in node.dependent.values() for n in v)}) > MAX_NAMES:
            raise SchemaError(self.path, "subset.limit", f"names more than {MAX_NAMES} members")

    def boolean(self, name: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self.wrong(name, "must be true or false")
        return value

    def integer(self, name: str, value: Any, least: int = 0) -> int:
        if type(value) is not int or value < least:
            raise self.wrong(name, f"must be an integer from {least}, written without fraction or exponent")
        return value

    def branches(self, name: str, value: Any, place: int) -> list[Node]:
        if not isinstance(value, list) or not value:
            raise self.wrong(name, "must be an array of at least one schema")
        if len(value) > MAX_BRANCHES:
            raise self.wrong(name, f"has {len(value)} schemas, at most {MAX_BRANCHES}", "subset.limit")
        return [self.sub(v, place, name, str(i)) for i, v in enumerate(value)]

    def members(self, name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong(name, "must be an object")
        return value

    def name_list(self, name: str, value: Any) -> list[str]:
        if not isinstance(value, list) or any(not isinstance(n, str) for n in value):
            raise self.wrong(name, "must be an array of names")
        if len(set(value)) != len(value):
            raise self.wrong(name, "has a name twice")
        return value

    # One method for each kind of keyword.

    def schema_dialect(self, name: str, value: Any) -> None:
        if value != DIALECT:
            raise self.wrong(name, f'must be "{DIALECT}"', "subset.id")
        if self.base != self.path:
            raise self.wrong(name, "stands only beside an $id", "subset.id")

    def nothing(self, name: str, value: Any) -> None:
        """Judged elsewhere."""

    def reference(self, name: str, value: Any) -> None:
        if not isinstance(value, str) or len(value) > MAX_URI:
            raise self.wrong(name, f"must be a string of at most {MAX_URI} bytes")
        if len(self.builder.references) >= MAX_REFS:
            raise self.wrong(name, f"more than {MAX_REFS} references", "subset.limit")
        self.builder.references.append((self.path, self.base, value, self.node))

    def definitions(self, name: str, value: Any) -> None:
        if self.path != self.base:
            raise self.wrong(name, "only the root and what has an $id have $defs", "subset.keyword")
        for key, inner in self.members(name, value).items():
            if not DEFINITION.fullmatch(key):
                raise SchemaError(
                    f"{self.path}/$defs/{escape(key)}", "subset.value", "the name must match ^[A-Za-z][A-Za-z0-9_.-]{0,63}$"
                )
            self.sub(inner, OF_VALUE, name, key)

    def words(self, name: str, value: Any) -> None:
        if not isinstance(value, str) or len(value.encode()) > MAX_ANNOTATION:
            raise self.wrong(name, f"must be a string of at most {MAX_ANNOTATION} bytes")

    def flag(self, name: str, value: Any) -> None:
        self.boolean(name, value)

    def default(self, name: str, value: Any) -> None:
        self.builder.defaults.append((self.path, self.node, value))

    def examples(self, name: str, value: Any) -> None:
        if not isinstance(value, list):
            raise self.wrong(name, "must be an array")

    def type(self, name: str, value: Any) -> None:
        names = value if isinstance(value, list) else [value]
        if not names:
            raise self.wrong(name, "must have at least one type")
        for i, one in enumerate(names):
            if not isinstance(one, str) or one not in KINDS:
                raise self.wrong(name, f"must be one of {', '.join(KINDS)}, or an array of them")
            if one in names[:i]:
                raise self.wrong(name, f"has {one} twice")
        self.node.types = frozenset(names)

    def enum(self, name: str, value: Any) -> None:
        values = [value] if name == "const" else value
        if not isinstance(values, list) or not values:
            raise self.wrong(name, "must be an array of at least one value")
        if len(values) > MAX_ENUM:
            raise self.wrong(name, f"has {len(values)} values, at most {MAX_ENUM}", "subset.limit")
        keys = []
        for one in values:
            if isinstance(one, (dict, list)):
                raise self.wrong(name, "values are strings, numbers, true, false and null")
            key = scalar(one)
            if key in keys:
                raise self.wrong(name, "has a value twice")
            keys.append(key)
        listed = frozenset(keys)
        self.node.enum = listed if self.node.enum is None else self.node.enum & listed
        allowed = ", ".join(strictjson.dumps(v) for v in values)
        self.node.allowed = allowed if len(allowed.encode()) <= 256 else f"{len(self.node.enum)} values that the schema lists"

    def bound(self, name: str, value: Any) -> None:
        if type(value) not in (int, float):
            raise self.wrong(name, "must be a number within -(2^53-1) to 2^53-1")
        self.node.number.append((name, value))

    def multiple_of(self, name: str, value: Any) -> None:
        self.node.multiple = self.integer(name, value, 1)

    def length(self, name: str, value: Any) -> None:
        self.node.text = True
        setattr(self.node, "least_length" if name == "minLength" else "most_length", self.integer(name, value))

    def pattern(self, name: str, value: Any) -> None:
        if not isinstance(value, str):
            raise self.wrong(name, "must be a string")
        try:
            pattern = parse(value)
        except PatternError as fault:
            raise self.wrong(name, str(fault), "subset.pattern") from None
        self.builder.patterns += 1
        self.builder.positions += pattern.positions
        if self.builder.patterns > MAX_PATTERNS:
            raise self.wrong(name, f"more than {MAX_PATTERNS} patterns", "subset.limit")
        if self.builder.positions > MAX_ALL_POSITIONS:
            raise self.wrong(
                name, f"all patterns together, with their repeats written out, have more than {MAX_ALL_POSITIONS} characters", "subset.limit"
            )
        self.node.text, self.node.pattern = True, pattern

    def formatted(self, name: str, value: Any) -> None:
        if not isinstance(value, str) or value not in FORMATS:
            raise self.wrong(name, "must be one of base64url, date-time, decimal, int64, uri and uuid")
        self.node.text, self.node.format = True, value

    def item(self, name: str, value: Any) -> None:
        self.node.array, self.node.items = True, self.sub(value, OF_VALUE, name)

    def prefix(self, name: str, value: Any) -> None:
        self.node.array, self.node.prefix = True, self.branches(name, value, OF_VALUE)

    def elements(self, name: str, value: Any) -> None:
        self.node.array = True
        setattr(self.node, "least_items" if name == "minItems" else "most_items", self.integer(name, value))

    def unique(self, name: str, value: Any) -> None:
        self.node.array, self.node.unique = True, self.boolean(name, value)

    def properties(self, name: str, value: Any) -> None:
        self.node.object = True
        for key, inner in self.members(name, value).items():
            self.node.properties[key] = self.sub(inner, OF_VALUE, name, key)

    def required(self, name: str, value: Any) -> None:
        self.node.object, self.node.required = True, self.name_list(name, value)

    def dependent(self, name: str, value: Any) -> None:
        self.node.object = True
        for key, inner in self.members(name, value).items():
            self.node.dependent[key] = self.name_list(name, inner)

    def additional(self, name: str, value: Any) -> None:
        self.node.object, self.node.additional = True, self.sub(value, OF_VALUE, name)

    def names(self, name: str, value: Any) -> None:
        self.node.object, self.node.names = True, self.sub(value, IN_PLACE, name)

    def count(self, name: str, value: Any) -> None:
        self.node.object = True
        setattr(self.node, "least_members" if name == "minProperties" else "most_members", self.integer(name, value))

    def every(self, name: str, value: Any) -> None:
        self.node.all_of += self.branches(name, value, self.part)

    def any(self, name: str, value: Any) -> None:
        self.node.any_of = self.branches(name, value, self.part)

    def one(self, name: str, value: Any) -> None:
        self.node.one_of = self.branches(name, value, self.part)

    def excluded(self, name: str, value: Any) -> None:
        self.node.excluded = self.sub(value, self.part, name)

    def condition(self, name: str, value: Any) -> None:
        slot = {"if": "condition", "then": "then", "else": "otherwise"}[name]
        setattr(self.node, slot, self.sub(value, self.part, name))

    def annotation(self, name: str, value: Any) -> None:
        """The annotations that a settings page and the host know; others are refused."""
        code = "subset.annotation"
        if name == "x-ui:widget":
            if not isinstance(value, str) or value not in WIDGETS:
                raise self.wrong(name, f"must be one of {', '.join(WIDGETS)}", code)
        elif name in ("x-ui:group", "x-ui:placeholder"):
            if not isinstance(value, str) or not 1 <= len(value.encode()) <= 256:
                raise self.wrong(name, "must be a string of 1 to 256 bytes", code)
        elif name == "x-ui:order":
            if type(value) is not int or abs(value) > 999_999_999:
                raise self.wrong(name, "must be an integer of at most nine digits", code)
        elif name in ("x-ui:multiline", "x-secretRefAllowed"):
            if not isinstance(value, bool):
                raise self.wrong(name, "must be true or false", code)
            if name == "x-secretRefAllowed" and value and not _secret_reference(self.value):
                raise self.wrong(
                    name,
                    "stands in the schema of a reference: type object, additionalProperties false, required and only property secretRef,"
                    " whose schema is such a record with the strings provider, name and, if at all, version",
                    code,
                )
        elif name == "x-redact":
            if not isinstance(value, str) or value not in REDACTIONS:
                raise self.wrong(name, f"must be one of {', '.join(REDACTIONS)}", code)
            self.node.redact = True
        else:
            raise self.wrong(name, "is not an annotation of the subset", code)


_READERS: dict[str, Callable[[Reader, str, Any], None]] = {
    "$schema": Reader.schema_dialect,
    "$id": Reader.nothing,
    "$ref": Reader.reference,
    "$defs": Reader.definitions,
    "title": Reader.words,
    "description": Reader.words,
    "$comment": Reader.words,
    "deprecated": Reader.flag,
    "readOnly": Reader.flag,
    "writeOnly": Reader.flag,
    "default": Reader.default,
    "examples": Reader.examples,
    "type": Reader.type,
    "enum": Reader.enum,
    "const": Reader.enum,
    "minimum": Reader.bound,
    "maximum": Reader.bound,
    "exclusiveMinimum": Reader.bound,
    "exclusiveMaximum": Reader.bound,
    "multipleOf": Reader.multiple_of,
    "minLength": Reader.length,
    "maxLength": Reader.length,
    "pattern": Reader.pattern,
    "format": Reader.formatted,
    "items": Reader.item,
    "prefixItems": Reader.prefix,
    "minItems": Reader.elements,
    "maxItems": Reader.elements,
    "uniqueItems": Reader.unique,
    "properties": Reader.properties,
    "required": Reader.required,
    "dependentRequired": Reader.dependent,
    "additionalProperties": Reader.additional,
    "propertyNames": Reader.names,
    "minProperties": Reader.count,
    "maxProperties": Reader.count,
    "allOf": Reader.every,
    "anyOf": Reader.any,
    "oneOf": Reader.one,
    "not": Reader.excluded,
    "if": Reader.condition,
    "then": Reader.condition,
    "else": Reader.condition,
}
"""The keywords of the subset, and what reads them."""


def _record(schema: Any, required: tuple[str, ...], optional: tuple[str, ...]) -> Optional[dict[str, Any]]:
    """The properties of a schema of a closed object with exactly these members; None if it is none."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or schema.get("additionalProperties") is not False:
        return None
    properties, names = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or not isinstance(names, list) or len(names) != len(required):
        return None
    if any(n not in required for n in names) or any(n not in required + optional for n in properties):
        return None
    return properties if all(n in properties for n in required) else None


def _secret_reference(schema: dict[str, Any]) -> bool:
    """Whether a schema is that of {"secretRef": {"provider", "name", "version"?}}, and no value beside it."""
    outer = _record(schema, ("secretRef",), ())
    inner = _record(outer["secretRef"], ("provider", "name"), ("version",)) if outer is not None else None
    return inner is not None and all(isinstance(v, dict) and v.get("type") == "string" for v in inner.values())

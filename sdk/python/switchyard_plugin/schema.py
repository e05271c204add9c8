"""The subset of JSON Schema 2020-12 in which packages describe their settings and payloads.

A document is compiled once, strictly: a keyword that the subset lacks, a reference
out of the document, a pattern that other languages read otherwise are refused then.
Validation is bounded and repeats no value: its messages may be sent and logged.
docs/schema-subset.md has the rules; the host applies the same.
"""

from __future__ import annotations

import re
from typing import Any, Callable, NamedTuple, Optional

from .formats import FORMATS, uri
from .patterns import Pattern, PatternError, parse
from .wire import codes, jcs, strictjson

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_NESTING = 32
"""Subschemas inside each other."""
MAX_SUBSCHEMAS = 2000
MAX_REFS = 500
MAX_BRANCHES = 64
"""Schemas of one allOf, anyOf, oneOf or prefixItems."""
MAX_IN_PLACE = 256
"""Subschemas that one value meets, through $ref and all alternatives."""
MAX_NAMES = 512
"""Names of one object: properties and required together."""
MAX_ENUM = 1000
MAX_PATTERNS = 200
MAX_ALL_POSITIONS = 16_384
"""Characters that all patterns together can match, with repeats written out."""
MAX_URI = 512
MAX_ANNOTATION = 4096
MAX_PROBLEMS = 20
"""Problems that are told; the rest is left out."""
BASE_WORK = 100_000
WORK_PER_BYTE = 4
"""A validation may cost BASE_WORK steps and so many for each byte of the value."""

WORK_LIMIT = "schema.limit"

WIDGETS = ("text", "password", "number", "checkbox", "select", "radio", "list", "date-time", "path", "secret")
REDACTIONS = ("full", "hash", "prefix")


class Problem(NamedTuple):
    """One rule that a value breaks: where (JSON Pointer), its code, and words that repeat no value."""

    path: str
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.path} {self.message}" if self.path else self.message


class SchemaError(ValueError):
    """A document that is not of the subset; path is a JSON Pointer into it, code says which kind of rule it breaks."""

    def __init__(self, path: str, code: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.code = code


_KINDS = ("null", "boolean", "object", "array", "number", "integer", "string")
_TYPES: dict[type, str] = {type(None): "null", bool: "boolean", dict: "object", list: "array", str: "string"}
_definition = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


def escape(name: str) -> str:
    """Makes a member name a token of a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def _cut(name: str) -> str:
    return name if len(name) <= 64 else name[:64] + "…"


def _shown(name: str) -> str:
    """A member's name in a message: quoted, cut, with what cannot be seen as escapes."""
    quoted = strictjson.dumps(_cut(name))
    return quoted if quoted.isprintable() else "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in quoted)


class _Node:
    """One compiled subschema. A new one takes everything."""

    __slots__ = (
        "path", "never", "types", "enum", "allowed", "number", "multiple", "text", "least_length", "most_length",
        "pattern", "matcher", "format", "array", "prefix", "items", "least_items", "most_items", "unique", "object",
        "properties", "required", "dependent", "additional", "names", "least_members", "most_members",
        "all_of", "any_of", "one_of", "excluded", "condition", "then", "otherwise", "redact", "combined",
    )  # fmt: skip

    def __init__(self, path: str) -> None:
        self.path = path
        self.never = False
        self.types: frozenset[str] = frozenset()
        self.enum: Optional[frozenset[tuple[str, Any]]] = None
        self.allowed = ""
        self.number: list[tuple[str, float]] = []
        self.multiple = 0
        self.text = False
        self.least_length = 0
        self.most_length = -1
        self.pattern: Optional[Pattern] = None
        self.matcher: Optional[re.Pattern[str]] = None
        self.format: Optional[str] = None
        self.array = False
        self.prefix: list[_Node] = []
        self.items: Optional[_Node] = None
        self.least_items = 0
        self.most_items = -1
        self.unique = False
        self.object = False
        self.properties: dict[str, _Node] = {}
        self.required: list[str] = []
        self.dependent: dict[str, list[str]] = {}
        self.additional: Optional[_Node] = None
        self.names: Optional[_Node] = None
        self.least_members = 0
        self.most_members = -1
        self.all_of: list[_Node] = []
        self.any_of: list[_Node] = []
        self.one_of: list[_Node] = []
        self.excluded: Optional[_Node] = None
        self.condition: Optional[_Node] = None
        self.then: Optional[_Node] = None
        self.otherwise: Optional[_Node] = None
        self.redact = False
        self.combined = False

    def in_place(self) -> "list[_Node]":
        """The subschemas that meet the same value."""
        more = [n for n in (self.excluded, self.condition, self.then, self.otherwise) if n is not None]
        return self.all_of + self.any_of + self.one_of + more


class Schema:
    """One compiled document."""

    def __init__(self, document: Any) -> None:
        """Compiles a document that strictjson.loads has read. Raises SchemaError for the first fault."""
        builder = _Builder(document)
        self.id: str = builder.id
        self.document: dict[str, Any] = document
        self._root = builder.root

    def validate(self, value: Any, size: int = strictjson.MAX_STRING) -> list[Problem]:
        """Returns the rules that a value breaks, at most MAX_PROBLEMS. size is that of its JSON in bytes, for the bound on work."""
        run = _Run(BASE_WORK + WORK_PER_BYTE * size)
        run.value(self._root, value)
        return run.problems

    def defaults(self) -> dict[str, Any]:
        """Returns the defaults of the root's properties; they are for readers and never on the wire."""
        properties = self.document.get("properties", {})
        return {name: sub["default"] for name, sub in properties.items() if isinstance(sub, dict) and "default" in sub}


def load(data: bytes) -> Schema:
    """Reads and compiles a document. Raises strictjson.StrictError or SchemaError."""
    return Schema(strictjson.loads(data))


# Compiling.

_OF_VALUE = 0
_IN_PLACE = 1


class _Builder:
    """Compiles one document."""

    def __init__(self, document: Any) -> None:
        if not isinstance(document, dict):
            raise SchemaError("", "subset.json", "is not one JSON object")
        if document.get("$schema") != DIALECT:
            raise SchemaError("/$schema", "subset.id", f'must be "{DIALECT}"')
        if "$id" not in document:
            raise SchemaError("/$id", "subset.id", "is required: a manifest refers to the schema by it")
        self.nodes: dict[str, _Node] = {}
        self.resources: dict[str, str] = {}
        self.references: list[tuple[str, str, str, _Node]] = []
        self.defaults: list[tuple[str, _Node, Any]] = []
        self.patterns = 0
        self.positions = 0
        self.root = self.schema(document, "", "", _OF_VALUE, 0)
        self.id: str = document["$id"]
        self.link()
        for path, node, value in self.defaults:
            run = _Run(BASE_WORK)
            run.value(node, value)
            if run.problems:
                raise SchemaError(f"{path}/default", "subset.default", f"is refused by its own schema: {run.problems[0]}")

    def schema(self, value: Any, path: str, base: str, place: int, depth: int) -> _Node:
        node = _Node(path)
        if len(self.nodes) >= MAX_SUBSCHEMAS:
            raise SchemaError(path, "subset.limit", f"more than {MAX_SUBSCHEMAS} subschemas")
        if depth > MAX_NESTING:
            raise SchemaError(path, "subset.limit", f"more than {MAX_NESTING} subschemas inside each other")
        self.nodes[path] = node
        if value is True:
            return node
        if value is False:
            node.never = True
            return node
        if not isinstance(value, dict):
            raise SchemaError(path, "subset.value", "a schema is an object, true or false")
        if "$id" in value:
            base = path
            self.identity(value["$id"], path)
        part = _IN_PLACE if "type" in value or "$ref" in value else place
        reader = _Reader(self, node, value, path, base, part, depth)
        for name, argument in value.items():
            reader.keyword(name, argument)
        reader.together(place)
        return node

    def identity(self, name: Any, path: str) -> None:
        if path and (path.count("/") != 2 or not path.startswith("/$defs/")):
            raise SchemaError(f"{path}/$id", "subset.id", "only the root and the entries of its $defs have an $id")
        if not isinstance(name, str) or len(name) > MAX_URI or "#" in name or not uri(name):
            raise SchemaError(f"{path}/$id", "subset.id", f"must be a URI with a scheme and without fragment, of at most {MAX_URI} bytes")
        if name in self.resources:
            raise SchemaError(f"{path}/$id", "subset.id", "occurs twice")
        self.resources[name] = path

    def link(self) -> None:
        """Resolves the references, refuses circles, and bounds how many subschemas one value meets."""
        for path, base, target, node in self.references:
            node.all_of.insert(0, self.resolve(f"{path}/$ref", base, target))
        costs: dict[str, int] = {}
        for path in sorted(self.nodes):
            if self.cost(self.nodes[path], costs) > MAX_IN_PLACE:
                raise SchemaError(
                    path, "subset.limit", f"one value meets more than {MAX_IN_PLACE} subschemas here, through references and alternatives"
                )
        for node in self.nodes.values():
            node.combined = bool(node.in_place())

    def cost(self, node: _Node, costs: dict[str, int]) -> int:
        known = costs.get(node.path)
        if known == -1:
            raise SchemaError(node.path, "subset.ref", "refers to itself without going down into the value")
        if known is not None:
            return known
        costs[node.path] = -1
        total = 1 + sum(self.cost(n, costs) for n in node.in_place())
        costs[node.path] = min(total, MAX_IN_PLACE + 1)
        return costs[node.path]

    def resolve(self, path: str, base: str, target: str) -> _Node:
        name, _, fragment = target.partition("#")
        if name:
            if name not in self.resources:
                raise SchemaError(path, "subset.ref", "refers to what is not in this document; bundle it under $defs with its $id")
            base = self.resources[name]
        if not fragment:
            if not target:
                raise SchemaError(path, "subset.ref", 'must not be empty; the whole document is "#"')
            return self.nodes[base]
        definition = fragment.removeprefix("/$defs/")
        if definition == fragment or not _definition.fullmatch(definition):
            raise SchemaError(path, "subset.ref", 'must be "#", "#/$defs/NAME", an $id of this document, or an $id with "#/$defs/NAME"')
        place = f"{base}/$defs/{definition}"
        if place not in self.nodes:
            raise SchemaError(path, "subset.ref", f"refers to nothing: there is no {place}")
        if place in self.resources.values():
            raise SchemaError(path, "subset.ref", "what has an $id is referred to by it")
        return self.nodes[place]


class _Reader:
    """Reads the keywords of one subschema into its node."""

    def __init__(self, builder: _Builder, node: _Node, value: dict[str, Any], path: str, base: str, part: int, depth: int) -> None:
        self.builder = builder
        self.node = node
        self.value = value
        self.path = path
        self.base = base
        self.part = part
        self.depth = depth

    def wrong(self, keyword: str, message: str, code: str = "subset.value") -> SchemaError:
        return SchemaError(f"{self.path}/{escape(keyword)}", code, message)

    def sub(self, value: Any, place: int, *names: str) -> _Node:
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
        if place == _OF_VALUE and not node.types and node.object and "$ref" not in value:
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

    def branches(self, name: str, value: Any, place: int) -> list[_Node]:
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
            if not _definition.fullmatch(key):
                raise SchemaError(
                    f"{self.path}/$defs/{escape(key)}", "subset.value", "the name must match ^[A-Za-z][A-Za-z0-9_.-]{0,63}$"
                )
            self.sub(inner, _OF_VALUE, name, key)

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
            if not isinstance(one, str) or one not in _KINDS:
                raise self.wrong(name, f"must be one of {', '.join(_KINDS)}, or an array of them")
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
            key = _scalar(one)
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
        self.node.array, self.node.items = True, self.sub(value, _OF_VALUE, name)

    def prefix(self, name: str, value: Any) -> None:
        self.node.array, self.node.prefix = True, self.branches(name, value, _OF_VALUE)

    def elements(self, name: str, value: Any) -> None:
        self.node.array = True
        setattr(self.node, "least_items" if name == "minItems" else "most_items", self.integer(name, value))

    def unique(self, name: str, value: Any) -> None:
        self.node.array, self.node.unique = True, self.boolean(name, value)

    def properties(self, name: str, value: Any) -> None:
        self.node.object = True
        for key, inner in self.members(name, value).items():
            self.node.properties[key] = self.sub(inner, _OF_VALUE, name, key)

    def required(self, name: str, value: Any) -> None:
        self.node.object, self.node.required = True, self.name_list(name, value)

    def dependent(self, name: str, value: Any) -> None:
        self.node.object = True
        for key, inner in self.members(name, value).items():
            self.node.dependent[key] = self.name_list(name, inner)

    def additional(self, name: str, value: Any) -> None:
        self.node.object, self.node.additional = True, self.sub(value, _OF_VALUE, name)

    def names(self, name: str, value: Any) -> None:
        self.node.object, self.node.names = True, self.sub(value, _IN_PLACE, name)

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


_READERS: dict[str, Callable[[_Reader, str, Any], None]] = {
    "$schema": _Reader.schema_dialect,
    "$id": _Reader.nothing,
    "$ref": _Reader.reference,
    "$defs": _Reader.definitions,
    "title": _Reader.words,
    "description": _Reader.words,
    "$comment": _Reader.words,
    "deprecated": _Reader.flag,
    "readOnly": _Reader.flag,
    "writeOnly": _Reader.flag,
    "default": _Reader.default,
    "examples": _Reader.examples,
    "type": _Reader.type,
    "enum": _Reader.enum,
    "const": _Reader.enum,
    "minimum": _Reader.bound,
    "maximum": _Reader.bound,
    "exclusiveMinimum": _Reader.bound,
    "exclusiveMaximum": _Reader.bound,
    "multipleOf": _Reader.multiple_of,
    "minLength": _Reader.length,
    "maxLength": _Reader.length,
    "pattern": _Reader.pattern,
    "format": _Reader.formatted,
    "items": _Reader.item,
    "prefixItems": _Reader.prefix,
    "minItems": _Reader.elements,
    "maxItems": _Reader.elements,
    "uniqueItems": _Reader.unique,
    "properties": _Reader.properties,
    "required": _Reader.required,
    "dependentRequired": _Reader.dependent,
    "additionalProperties": _Reader.additional,
    "propertyNames": _Reader.names,
    "minProperties": _Reader.count,
    "maxProperties": _Reader.count,
    "allOf": _Reader.every,
    "anyOf": _Reader.any,
    "oneOf": _Reader.one,
    "not": _Reader.excluded,
    "if": _Reader.condition,
    "then": _Reader.condition,
    "else": _Reader.condition,
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


def _scalar(value: Any) -> tuple[str, Any]:
    """Equal for scalars that are equal in every language: true is not 1, 1.0 is."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return type(value).__name__, value
    return "number", float(value)


# Validating.


class _Stop(Exception):
    """Nothing more is judged."""


class _Run:
    """One validation."""

    __slots__ = ("problems", "_path", "_redacted", "_quiet", "_left")

    def __init__(self, work: int) -> None:
        self.problems: list[Problem] = []
        self._path: list[str | int] = []
        self._redacted = -1
        self._quiet = 0
        self._left = work

    def pointer(self) -> str:
        path = self._path if self._redacted < 0 else self._path[: self._redacted]
        return "".join(f"/{escape(_cut(p)) if isinstance(p, str) else p}" for p in path)

    def fail(self, message: str, code: str = codes.SCHEMA_MISMATCH) -> bool:
        if not self._quiet:
            self.problems.append(Problem(self.pointer(), code, message))
        return False

    def value(self, node: _Node, value: Any) -> bool:
        """Judges a value and tells its faults, unless it is inside an alternative. Whether it holds."""
        try:
            return self.judge(node, value)
        except _Stop:
            return False

    def judge(self, node: _Node, value: Any) -> bool:
        self._left -= 1
        if self._left < 0:
            problem = Problem(self.pointer(), WORK_LIMIT, "costs too much work to check: the schema's alternatives multiply on it")
            self.problems = [*self.problems[: MAX_PROBLEMS - 1], problem]
            raise _Stop
        if len(self.problems) >= MAX_PROBLEMS:
            raise _Stop
        if node.redact and self._redacted < 0:
            self._redacted = len(self._path)
            try:
                return self._judge(node, value)
            finally:
                self._redacted = -1
        return self._judge(node, value)

    def _judge(self, node: _Node, value: Any) -> bool:
        if node.never:
            return self.fail("must not be there")
        kind = type(value)
        if kind is str:
            good = self.text(node, value)
        elif kind is dict:
            good = self.object(node, value)
        elif kind is list:
            good = self.array(node, value)
        elif kind is bool or value is None:
            good = self.typed(node, _TYPES[kind]) and self.listed(node, value)
        else:
            good = self.number(node, value)
        if not node.combined or not good and self._quiet:
            return good
        return self.combined(node, value) and good

    def typed(self, node: _Node, kind: str) -> bool:
        if not node.types or kind in node.types:
            return True
        return self.fail(f"must be {' or '.join(k for k in _KINDS if k in node.types)}")

    def listed(self, node: _Node, value: Any) -> bool:
        if node.enum is None or not isinstance(value, (dict, list)) and _scalar(value) in node.enum:
            return True
        return self.fail(f"must be one of {node.allowed}")

    def number(self, node: _Node, value: int | float) -> bool:
        if node.types and "number" not in node.types:
            if "integer" not in node.types or value != int(value):
                return self.typed(node, "none")
        good = self.listed(node, value)
        for name, bound in node.number:
            if name == "minimum" and value < bound:
                good = self.fail(f"must be at least {_plain(bound)}")
            elif name == "maximum" and value > bound:
                good = self.fail(f"must be at most {_plain(bound)}")
            elif name == "exclusiveMinimum" and value <= bound:
                good = self.fail(f"must be more than {_plain(bound)}")
            elif name == "exclusiveMaximum" and value >= bound:
                good = self.fail(f"must be less than {_plain(bound)}")
        if node.multiple and value % node.multiple:
            good = self.fail(f"must be a multiple of {node.multiple}")
        return good

    def text(self, node: _Node, value: str) -> bool:
        if not self.typed(node, "string"):
            return False
        if not node.text:
            return node.enum is None or self.listed(node, value)
        good = self.listed(node, value)
        if len(value) < node.least_length:
            good = self.fail(f"must have at least {_characters(node.least_length)}")
        if 0 <= node.most_length < len(value):
            good = self.fail(f"must have at most {_characters(node.most_length)}")
        if node.format is not None and not FORMATS[node.format](value):
            good = self.fail(f"is not of the format {node.format}")
        if node.pattern is not None and (good or not self._quiet):
            if node.matcher is None:
                node.matcher = node.pattern.compile()
            self._left -= len(value) // 2
            if node.matcher.fullmatch(value) is None:
                good = self.fail(f"must match {node.pattern.source}")
        return good

    def array(self, node: _Node, value: list[Any]) -> bool:
        if not self.typed(node, "array"):
            return False
        good = self.listed(node, value)
        if not node.array:
            return good
        seen: set[tuple[str, Any]] = set()
        self._path.append(0)
        for i, item in enumerate(value):
            self._path[-1] = i
            one = node.prefix[i] if i < len(node.prefix) else node.items
            held = one is None or self.judge(one, item)
            good = good and held
            if node.unique and held:
                key = _scalar(item)
                if key in seen:
                    good = self.fail("is there twice")
                seen.add(key)
            if not good and self._quiet:
                break
        self._path.pop()
        if len(value) < node.least_items:
            good = self.fail(f"must have at least {node.least_items} elements")
        if 0 <= node.most_items < len(value):
            good = self.fail(f"must have at most {node.most_items} elements")
        return good

    def object(self, node: _Node, value: dict[str, Any]) -> bool:
        if not self.typed(node, "object"):
            return False
        good = self.listed(node, value)
        if not node.object:
            return good
        path = self._path
        path.append("")
        for name, item in value.items():
            path[-1] = name
            if node.names is not None and not self.holds(node.names, name):
                good = self.fail("the member's name is not allowed")
            inner = node.properties.get(name)
            if inner is None:
                inner = node.additional
                if inner is not None and inner.never:
                    # In what is redacted the name is not told: names can be data.
                    told = "has an unknown member" if self._redacted >= 0 else f"unknown member {_shown(name)}"
                    good = self.fail(told, codes.SCHEMA_UNKNOWN_MEMBER)
                    inner = None
            if inner is not None and not self.judge(inner, item):
                good = False
            if not good and self._quiet:
                break
        path.pop()
        for name in node.required:
            if name not in value:
                good = self.fail(f"the member {_shown(name)} is required")
        for name, others in node.dependent.items():
            if name in value:
                for other in others:
                    if other not in value:
                        good = self.fail(f"the member {_shown(other)} is required beside {_shown(name)}")
        if len(value) < node.least_members:
            good = self.fail(f"must have at least {node.least_members} members")
        if 0 <= node.most_members < len(value):
            good = self.fail(f"must have at most {node.most_members} members")
        return good

    def holds(self, node: _Node, value: Any) -> bool:
        """Whether the value passes, and tells nothing."""
        path = self._path
        self._path = list(path)
        self._quiet += 1
        try:
            return self.judge(node, value)
        finally:
            self._quiet -= 1
            self._path = path

    def count(self, nodes: list[_Node], value: Any, enough: int) -> int:
        held = 0
        for node in nodes:
            if self.holds(node, value):
                held += 1
                if held == enough:
                    break
        return held

    def combined(self, node: _Node, value: Any) -> bool:
        """Judges the value by the subschemas that meet the same value."""
        good = True
        for one in node.all_of:
            if not self.judge(one, value):
                good = False
                if self._quiet:
                    return False
        if node.any_of and not self.count(node.any_of, value, 1):
            good = self.fail(f"matches none of the {len(node.any_of)} alternatives")
        if node.one_of:
            held = self.count(node.one_of, value, 2)
            if held != 1:
                good = self.fail(f"matches {'more than one' if held else 'none'} of the {len(node.one_of)} alternatives")
        if node.excluded is not None and self.holds(node.excluded, value):
            good = self.fail("is of the form that is excluded")
        if node.condition is not None and (node.then is not None or node.otherwise is not None):
            branch = node.then if self.holds(node.condition, value) else node.otherwise
            if branch is not None and not self.judge(branch, value):
                good = False
        return good


def _plain(number: float) -> str:
    return jcs.number(float(number))


def _characters(count: int) -> str:
    return "1 character" if count == 1 else f"{count} characters"

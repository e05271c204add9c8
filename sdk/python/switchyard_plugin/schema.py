"""The subset of JSON Schema 2020-12 that package schemas may use, and its validation.

A document is compiled once, strictly: a keyword that the subset lacks, a reference
out of the document, a pattern that other languages read otherwise are refused then.
Validation quotes no value: its messages may be sent and logged.
docs/schema-subset.md has the rules.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Iterable, NamedTuple, Optional

from .formats import FORMATS, uri
from .patterns import PatternError, translate
from .wire import codes, jcs, strictjson

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_PROBLEMS = 16
"""Validation stops after so many problems."""
MAX_SCHEMA_DEPTH = 32
"""Subschemas inside each other."""


class Problem(NamedTuple):
    """One rule that a value breaks: where (JSON Pointer), its code, and words that quote no value."""

    path: str
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.path} {self.message}" if self.path else self.message


class SchemaError(ValueError):
    """A schema that is not of the subset; path is a JSON Pointer into its document."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path or '/'}: {message}")
        self.path = path


Check = Callable[[Any, str, list[Problem]], None]

_annotations = frozenset(
    ["$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"]
)
_own = frozenset(["x-ui:widget", "x-ui:group", "x-ui:order", "x-ui:placeholder", "x-ui:multiline", "x-secretRefAllowed", "x-redact"])
_types: dict[str, Callable[[Any], bool]] = {
    "object": lambda v: type(v) is dict,
    "array": lambda v: type(v) is list,
    "string": lambda v: type(v) is str,
    "boolean": lambda v: type(v) is bool,
    "null": lambda v: v is None,
    "number": lambda v: type(v) is int or type(v) is float,
    "integer": lambda v: type(v) is int or type(v) is float and v.is_integer(),
}


def escape(name: str) -> str:
    """Makes a member name a token of a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")


class Schema:
    """One compiled document."""

    def __init__(self, document: Any) -> None:
        """Compiles a document that strictjson.loads has read. Raises SchemaError."""
        if not isinstance(document, dict):
            raise SchemaError("", "a package's schema must be an object")
        for name, wanted in (("$schema", DIALECT), ("$id", None)):
            if name not in document:
                raise SchemaError("", f"{name} is required at the root")
            if wanted is not None and document[name] != wanted:
                raise SchemaError(f"/{name}", f"must be {wanted}")
        if not isinstance(document["$id"], str) or not uri(document["$id"]) or "#" in document["$id"]:
            raise SchemaError("/$id", "must be a URI with a scheme and without a fragment")
        self.id: str = document["$id"]
        self.document = document
        self._compiled: dict[str, Optional[Check]] = {}
        self._edges: dict[str, list[str]] = {}
        self._resources: dict[str, str] = {}
        self._find(document, "", 0)
        self._root = self._compile(document, "")
        self._check_loops()

    def validate(self, value: Any) -> list[Problem]:
        """Returns the rules that a value breaks, at most MAX_PROBLEMS."""
        problems: list[Problem] = []
        self._root(value, "", problems)
        return problems

    def defaults(self) -> dict[str, Any]:
        """Returns the defaults of the root's properties; they are for readers and never on the wire."""
        properties = self.document.get("properties", {})
        return {name: sub["default"] for name, sub in properties.items() if isinstance(sub, dict) and "default" in sub}

    # Where embedded resources are, and that nothing is too deep.
    def _find(self, schema: Any, path: str, depth: int) -> None:
        if depth > MAX_SCHEMA_DEPTH:
            raise SchemaError(path, f"more than {MAX_SCHEMA_DEPTH} subschemas inside each other")
        if not isinstance(schema, dict):
            return
        if "$id" in schema:
            name = schema["$id"]
            if not isinstance(name, str) or not uri(name) or "#" in name:
                raise SchemaError(f"{path}/$id", "must be a URI with a scheme and without a fragment")
            if name in self._resources:
                raise SchemaError(f"{path}/$id", "occurs twice")
            self._resources[name] = path
        for at, sub in _children(schema, path):
            self._find(sub, at, depth + 1)

    def _resolve(self, reference: str, at: str) -> str:
        base, _, fragment = reference.partition("#")
        if base:
            if base not in self._resources:
                raise SchemaError(at, "refers to a schema that is not in this document")
            path = self._resources[base]
        else:
            inside = [p for p in self._resources.values() if at.startswith(p + "/") or p == ""]
            path = max(inside, key=len)
        if fragment and not fragment.startswith("/"):
            raise SchemaError(at, "must be a URI, or # and a JSON Pointer")
        return path + fragment

    def _at(self, path: str, reference: str) -> Any:
        node: Any = self.document
        for token in path.split("/")[1:]:
            token = token.replace("~1", "/").replace("~0", "~")
            try:
                node = node[int(token)] if isinstance(node, list) else node[token]
            except (KeyError, IndexError, ValueError, TypeError):
                raise SchemaError(reference, "refers to nothing") from None
        return node

    def _check_loops(self) -> None:
        """Refuses references that lead back to themselves without a step into the value."""
        for start in self._edges:
            seen: set[str] = set()
            stack = [start]
            while stack:
                for target in self._edges.get(stack.pop(), ()):
                    if target == start:
                        raise SchemaError(start, "refers to itself without a step into the value")
                    if target not in seen:
                        seen.add(target)
                        stack.append(target)

    def _compile(self, schema: Any, path: str) -> Check:
        if path in self._compiled:
            done = self._compiled[path]
            if done is not None:
                return done
            # Being compiled: a recursive reference, resolved when it is used.
            return lambda value, at, problems: self._compiled[path](value, at, problems)  # type: ignore[misc]
        self._compiled[path] = None
        check = self._build(schema, path)
        self._compiled[path] = check
        return check

    def _build(self, schema: Any, path: str) -> Check:
        if schema is True:
            return lambda value, at, problems: None
        if schema is False:
            return lambda value, at, problems: problems.append(Problem(at, codes.SCHEMA_MISMATCH, "must not be there"))
        if not isinstance(schema, dict):
            raise SchemaError(path, "must be an object or a boolean")
        checks: list[Check] = []
        for keyword, argument in schema.items():
            if keyword in _KEYWORDS:
                made = _KEYWORDS[keyword](self, argument, f"{path}/{escape(keyword)}", schema)
                if made is not None:
                    checks.append(made)
            elif keyword not in _annotations and keyword not in _own:
                raise SchemaError(f"{path}/{escape(keyword)}", "this keyword is not in the subset")
        if "x-redact" in schema and schema["x-redact"] not in ("full", "hash", "prefix"):
            raise SchemaError(f"{path}/x-redact", "must be full, hash or prefix")
        if len(checks) == 1:
            return checks[0]
        if len(checks) == 2:
            first, second = checks

            def both(value: Any, at: str, problems: list[Problem]) -> None:
                first(value, at, problems)
                second(value, at, problems)

            return both
        every = tuple(checks)

        def check(value: Any, at: str, problems: list[Problem]) -> None:
            for one in every:
                if len(problems) >= MAX_PROBLEMS:
                    return
                one(value, at, problems)

        return check

    def _in_place(self, path: str, target: str) -> None:
        """Notes that a schema applies another to the same value."""
        self._edges.setdefault(path, []).append(target)


def _children(schema: dict[str, Any], path: str) -> Iterable[tuple[str, Any]]:
    for keyword in ("properties", "$defs", "dependentSchemas"):
        named = schema.get(keyword)
        if isinstance(named, dict):
            for name, sub in named.items():
                yield f"{path}/{keyword}/{escape(name)}", sub
    for keyword in ("additionalProperties", "propertyNames", "items", "contains", "not", "if", "then", "else"):
        if keyword in schema:
            yield f"{path}/{keyword}", schema[keyword]
    for keyword in ("allOf", "anyOf", "oneOf", "prefixItems"):
        listed = schema.get(keyword)
        if isinstance(listed, list):
            for i, sub in enumerate(listed):
                yield f"{path}/{keyword}/{i}", sub


def _miss(message: str) -> tuple[str, str]:
    return codes.SCHEMA_MISMATCH, message


def _type(_: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Check:
    names = argument if isinstance(argument, list) else [argument]
    if not names or any(not isinstance(n, str) or n not in _types for n in names) or len(set(names)) != len(names):
        raise SchemaError(path, "must be a type, or an array of different ones")
    tests = [_types[n] for n in names]
    miss = _miss(f"must be {'an' if names[0][0] in 'aeio' else 'a'} {' or '.join(names)}".replace("a null", "null"))
    if len(tests) == 1:
        test = tests[0]

        def single(value: Any, at: str, problems: list[Problem]) -> None:
            if not test(value):
                problems.append(Problem(at, *miss))

        return single

    def check(value: Any, at: str, problems: list[Problem]) -> None:
        if not any(test(value) for test in tests):
            problems.append(Problem(at, *miss))

    return check


def _key(value: Any) -> bytes:
    """Equal for values that JSON Schema calls equal."""
    return jcs.canonical(value)


def _enum(_: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Check:
    if not isinstance(argument, list) or not argument:
        raise SchemaError(path, "must be an array with at least one element")
    allowed = {_key(v) for v in argument}
    texts = frozenset(v for v in argument if type(v) is str)
    miss = _miss("must be one of the values that the schema lists")

    def check(value: Any, at: str, problems: list[Problem]) -> None:
        if value not in texts if type(value) is str else _key(value) not in allowed:
            problems.append(Problem(at, *miss))

    return check


def _const(_: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Check:
    allowed = _key(argument)
    miss = _miss("must be the value that the schema names")

    def check(value: Any, at: str, problems: list[Problem]) -> None:
        if _key(value) != allowed:
            problems.append(Problem(at, *miss))

    return check


def _object(self: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Optional[Check]:
    """properties and additionalProperties, whichever comes first."""
    here = path.rpartition("/")[0]
    if path.endswith("/additionalProperties") and "properties" in schema:
        return None
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise SchemaError(f"{here}/properties", "must be an object")
    known = {n: self._compile(s, f"{here}/properties/{escape(n)}") for n, s in properties.items()}
    rest = schema.get("additionalProperties", True)
    other = None if rest is True or rest is False else self._compile(rest, f"{here}/additionalProperties")
    closed = rest is False

    def check(value: Any, at: str, problems: list[Problem]) -> None:
        if type(value) is not dict:
            return
        for name, item in value.items():
            one = known.get(name)
            if one is not None:
                one(item, f"{at}/{escape(name)}", problems)
            elif closed:
                # The name is foreign text: it says where, and is no part of the words.
                problems.append(Problem(f"{at}/{escape(name)}", codes.SCHEMA_UNKNOWN_MEMBER, "is not a member that the schema has"))
            elif other is not None:
                other(item, f"{at}/{escape(name)}", problems)
            if len(problems) >= MAX_PROBLEMS:
                return

    return check


def _names(argument: Any, path: str) -> list[str]:
    if not isinstance(argument, list) or any(not isinstance(n, str) for n in argument) or len(set(argument)) != len(argument):
        raise SchemaError(path, "must be an array of different names")
    return argument


def _required(_: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Check:
    names = _names(argument, path)

    def check(value: Any, at: str, problems: list[Problem]) -> None:
        if type(value) is dict:
            for name in names:
                if name not in value:
                    problems.append(Problem(f"{at}/{escape(name)}", codes.SCHEMA_MISMATCH, "is required"))

    return check


def _dependent(_: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Check:
    if not isinstance(argument, dict):
        raise SchemaError(path, "must be an object")
    needs = {n: _names(v, f"{path}/{escape(n)}") for n, v in argument.items()}

    def check(value: Any, at: str, problems: list[Problem]) -> None:
        if type(value) is dict:
            for name, wanted in needs.items():
                if name in value:
                    for other in wanted:
                        if other not in value:
                            problems.append(Problem(f"{at}/{escape(other)}", codes.SCHEMA_MISMATCH, "is required beside another member"))

    return check


def _property_names(self: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Check:
    one = self._compile(argument, path)

    def check(value: Any, at: str, problems: list[Problem]) -> None:
        if type(value) is dict:
            for name in value:
                found: list[Problem] = []
                one(name, "", found)
                if found:
                    problems.append(Problem(f"{at}/{escape(name)}", codes.SCHEMA_MISMATCH, "has a name that the schema forbids"))

    return check


def _items(self: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Check:
    one = self._compile(argument, path)
    prefix = schema.get("prefixItems")
    skip = len(prefix) if isinstance(prefix, list) else 0

    def check(value: Any, at: str, problems: list[Problem]) -> None:
        if type(value) is list:
            for i in range(skip, len(value)):
                one(value[i], f"{at}/{i}", problems)
                if len(problems) >= MAX_PROBLEMS:
                    return

    return check


def _prefix_items(self: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Check:
    if not isinstance(argument, list) or not argument:
        raise SchemaError(path, "must be an array with at least one schema")
    each = [self._compile(s, f"{path}/{i}") for i, s in enumerate(argument)]

    def check(value: Any, at: str, problems: list[Problem]) -> None:
        if type(value) is list:
            for i, (one, item) in enumerate(zip(each, value)):
                one(item, f"{at}/{i}", problems)

    return check


def _unique(_: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Optional[Check]:
    if not isinstance(argument, bool):
        raise SchemaError(path, "must be a boolean")
    if not argument:
        return None

    def check(value: Any, at: str, problems: list[Problem]) -> None:
        if type(value) is list and len({_key(v) for v in value}) != len(value):
            problems.append(Problem(at, codes.SCHEMA_MISMATCH, "must not have an element twice"))

    return check


def _bound(measure: str, kind: Callable[[Any], bool], size: Callable[[Any], Any], words: str, whole: bool) -> Callable[..., Check]:
    low = measure.startswith(("min", "exclusiveMin"))
    exclusive = measure.startswith("exclusive")

    def make(_: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Check:
        if type(argument) is float and whole and argument.is_integer():
            argument = int(argument)
        if whole and (type(argument) is not int or argument < 0) or type(argument) not in (int, float):
            raise SchemaError(path, "must be a number of elements" if whole else "must be a number")
        miss = _miss(words.format(argument))

        def check(value: Any, at: str, problems: list[Problem]) -> None:
            if kind(value):
                n = size(value)
                if (n < argument if low else n > argument) or exclusive and n == argument:
                    problems.append(Problem(at, *miss))

        return check

    return make


def _multiple(_: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Check:
    if not _types["integer"](argument) or argument <= 0:
        raise SchemaError(path, "must be an integer above 0")
    step = int(argument)

    def check(value: Any, at: str, problems: list[Problem]) -> None:
        if _types["number"](value) and (not _types["integer"](value) or int(value) % step):
            problems.append(Problem(at, codes.SCHEMA_MISMATCH, f"must be a multiple of {step}"))

    return check


def _pattern(_: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Check:
    if not isinstance(argument, str):
        raise SchemaError(path, "must be a string")
    try:
        translated = translate(argument)
    except PatternError as fault:
        raise SchemaError(path, str(fault)) from None
    search: Optional[Callable[[str], Any]] = None

    def check(value: Any, at: str, problems: list[Problem]) -> None:
        nonlocal search
        if type(value) is str:
            if search is None:
                search = re.compile(translated, re.ASCII).search
            if search(value) is None:
                problems.append(Problem(at, codes.SCHEMA_MISMATCH, "must match the pattern that the schema has"))

    return check


def _format(_: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Check:
    test = FORMATS.get(argument) if isinstance(argument, str) else None
    if test is None:
        raise SchemaError(path, "this format is not in the subset")

    def check(value: Any, at: str, problems: list[Problem]) -> None:
        if type(value) is str and not test(value):
            problems.append(Problem(at, codes.SCHEMA_MISMATCH, f"must have the format {argument}"))

    return check


def _ref(self: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Check:
    if not isinstance(argument, str):
        raise SchemaError(path, "must be a string")
    target = self._resolve(argument, path)
    self._in_place(path.rpartition("/")[0], target)
    return self._compile(self._at(target, path), target)


def _subschemas(self: Schema, argument: Any, path: str) -> list[Check]:
    if not isinstance(argument, list) or not argument:
        raise SchemaError(path, "must be an array with at least one schema")
    for i in range(len(argument)):
        self._in_place(path.rpartition("/")[0], f"{path}/{i}")
    return [self._compile(s, f"{path}/{i}") for i, s in enumerate(argument)]


def _all_of(self: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Check:
    each = _subschemas(self, argument, path)

    def check(value: Any, at: str, problems: list[Problem]) -> None:
        for one in each:
            one(value, at, problems)

    return check


def _holds(one: Check, value: Any) -> bool:
    found: list[Problem] = []
    one(value, "", found)
    return not found


def _any_of(self: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Check:
    each = _subschemas(self, argument, path)

    def check(value: Any, at: str, problems: list[Problem]) -> None:
        if not any(_holds(one, value) for one in each):
            problems.append(Problem(at, codes.SCHEMA_MISMATCH, "must be of one of the forms that the schema has"))

    return check


def _one_of(self: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Check:
    each = _subschemas(self, argument, path)

    def check(value: Any, at: str, problems: list[Problem]) -> None:
        if sum(_holds(one, value) for one in each) != 1:
            problems.append(Problem(at, codes.SCHEMA_MISMATCH, "must be of exactly one of the forms that the schema has"))

    return check


def _not(self: Schema, argument: Any, path: str, schema: dict[str, Any]) -> Check:
    self._in_place(path.rpartition("/")[0], path)
    one = self._compile(argument, path)

    def check(value: Any, at: str, problems: list[Problem]) -> None:
        if _holds(one, value):
            problems.append(Problem(at, codes.SCHEMA_MISMATCH, "must not be of the form that the schema forbids"))

    return check


def _defs(self: Schema, argument: Any, path: str, schema: dict[str, Any]) -> None:
    if not isinstance(argument, dict):
        raise SchemaError(path, "must be an object")
    for name, sub in argument.items():
        self._compile(sub, f"{path}/{escape(name)}")


def _anything(self: Schema, argument: Any, path: str, schema: dict[str, Any]) -> None:
    return None


_KEYWORDS: dict[str, Callable[[Schema, Any, str, dict[str, Any]], Optional[Check]]] = {
    "$id": _anything,
    "$schema": _anything,
    "$defs": _defs,
    "$ref": _ref,
    "type": _type,
    "enum": _enum,
    "const": _const,
    "properties": _object,
    "additionalProperties": _object,
    "propertyNames": _property_names,
    "required": _required,
    "dependentRequired": _dependent,
    "minProperties": _bound("minProperties", _types["object"], len, "must have at least {} members", True),
    "maxProperties": _bound("maxProperties", _types["object"], len, "must have at most {} members", True),
    "items": _items,
    "prefixItems": _prefix_items,
    "minItems": _bound("minItems", _types["array"], len, "must have at least {} elements", True),
    "maxItems": _bound("maxItems", _types["array"], len, "must have at most {} elements", True),
    "uniqueItems": _unique,
    "minLength": _bound("minLength", _types["string"], len, "must have at least {} characters", True),
    "maxLength": _bound("maxLength", _types["string"], len, "must have at most {} characters", True),
    "pattern": _pattern,
    "format": _format,
    "minimum": _bound("minimum", _types["number"], float, "must be at least {}", False),
    "maximum": _bound("maximum", _types["number"], float, "must be at most {}", False),
    "exclusiveMinimum": _bound("exclusiveMinimum", _types["number"], float, "must be above {}", False),
    "exclusiveMaximum": _bound("exclusiveMaximum", _types["number"], float, "must be below {}", False),
    "multipleOf": _multiple,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
}
"""The keywords that assert something, and what compiles them."""


def load(data: bytes) -> Schema:
    """Reads and compiles a document. Raises strictjson.StrictError or SchemaError."""
    return Schema(strictjson.loads(data))

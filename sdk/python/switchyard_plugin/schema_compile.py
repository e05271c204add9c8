"""Compiles a document of the subset: reads every subschema, resolves references, refuses circles and what costs too much."""

from __future__ import annotations

from typing import Any

from .formats import uri
from .schema_keywords import DEFINITION, IN_PLACE, OF_VALUE, Reader
from .schema_limits import BASE_WORK, DIALECT, MAX_IN_PLACE, MAX_NESTING, MAX_SUBSCHEMAS, MAX_URI
from .schema_node import Node
from .schema_problems import SchemaError
from .schema_validate import Run


class Builder:
    """Compiles one document."""

    def __init__(self, document: Any) -> None:
        if not isinstance(document, dict):
            raise SchemaError("", "subset.json", "is not one JSON object")
        if document.get("$schema") != DIALECT:
            raise SchemaError("/$schema", "subset.id", f'must be "{DIALECT}"')
        if "$id" not in document:
            raise SchemaError("/$id", "subset.id", "is required: a manifest refers to the schema by it")
        self.nodes: dict[str, Node] = {}
        self.resources: dict[str, str] = {}
        self.references: list[tuple[str, str, str, Node]] = []
        self.defaults: list[tuple[str, Node, Any]] = []
        self.patterns = 0
        self.positions = 0
        self.root = self.schema(document, "", "", OF_VALUE, 0)
        self.id: str = document["$id"]
        self.link()
        for path, node, value in self.defaults:
            run = Run(BASE_WORK)
            run.value(node, value)
            if run.problems:
                raise SchemaError(f"{path}/default", "subset.default", f"is refused by its own schema: {run.problems[0]}")

    def schema(self, value: Any, path: str, base: str, place: int, depth: int) -> Node:
        node = Node(path)
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
        part = IN_PLACE if "type" in value or "$ref" in value else place
        reader = Reader(self, node, value, path, base, part, depth)
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

    def cost(self, node: Node, costs: dict[str, int]) -> int:
        known = costs.get(node.path)
        if known == -1:
            raise SchemaError(node.path, "subset.ref", "refers to itself without going down into the value")
        if known is not None:
            return known
        costs[node.path] = -1
        total = 1 + sum(self.cost(n, costs) for n in node.in_place())
        costs[node.path] = min(total, MAX_IN_PLACE + 1)
        return costs[node.path]

    def resolve(self, path: str, base: str, target: str) -> Node:
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
        if definition == fragment or not DEFINITION.fullmatch(definition):
            raise SchemaError(path, "subset.ref", 'must be "#", "#/$defs/NAME", an $id of this document, or an $id with "#/$defs/NAME"')
        place = f"{base}/$defs/{definition}"
        if place not in self.nodes:
            raise SchemaError(path, "subset.ref", f"refers to nothing: there is no {place}")
        if place in self.resources.values():
            raise SchemaError(path, "subset.ref", "what has an $id is referred to by it")
        return self.nodes[place]

"""A compiled schema: one node for each subschema, with everything that validation asks of it."""

from __future__ import annotations

import re
from typing import Any, Optional

from .patterns import Pattern

KINDS = ("null", "boolean", "object", "array", "number", "integer", "string")


class Node:
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
        self.prefix: list[Node] = []
        self.items: Optional[Node] = None
        self.least_items = 0
        self.most_items = -1
        self.unique = False
        self.object = False
        self.properties: dict[str, Node] = {}
        self.required: list[str] = []
        self.dependent: dict[str, list[str]] = {}
        self.additional: Optional[Node] = None
        self.names: Optional[Node] = None
        self.least_members = 0
        self.most_members = -1
        self.all_of: list[Node] = []
        self.any_of: list[Node] = []
        self.one_of: list[Node] = []
        self.excluded: Optional[Node] = None
        self.condition: Optional[Node] = None
        self.then: Optional[Node] = None
        self.otherwise: Optional[Node] = None
        self.redact = False
        self.combined = False

    def in_place(self) -> "list[Node]":
        """The subschemas that meet the same value."""
        more = [n for n in (self.excluded, self.condition, self.then, self.otherwise) if n is not None]
        return self.all_of + self.any_of + self.one_of + more


def scalar(value: Any) -> tuple[str, Any]:
    """Equal for scalars that are equal in every language: true is not 1, 1.0 is."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return type(value).__name__, value
    return "number", float(value)

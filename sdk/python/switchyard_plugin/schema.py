"""The subset of JSON Schema 2020-12 in which packages describe their settings and payloads.

A document is compiled once, strictly: a keyword that the subset lacks, a reference
out of the document, a pattern that other languages read otherwise are refused then.
Validation is bounded and repeats no value: its messages may be sent and logged.
docs/schema-subset.md has the rules; the host applies the same.

schema_compile and schema_keywords make a tree of schema_node's of a document,
schema_validate judges values by it.
"""

from __future__ import annotations

from typing import Any

from .schema_compile import Builder
from .schema_limits import BASE_WORK, MAX_PROBLEMS, WORK_LIMIT, WORK_PER_BYTE
from .schema_problems import Problem, SchemaError
from .schema_validate import Run
from .wire import strictjson

__all__ = ["MAX_PROBLEMS", "WORK_LIMIT", "Problem", "Schema", "SchemaError", "load"]


class Schema:
    """One compiled document."""

    def __init__(self, document: Any) -> None:
        """Compiles a document that strictjson.loads has read. Raises SchemaError for the first fault."""
        builder = Builder(document)
        self.id: str = builder.id
        self.document: dict[str, Any] = document
        self._root = builder.root

    def validate(self, value: Any, size: int = strictjson.MAX_STRING) -> list[Problem]:
        """Returns the rules that a value breaks, at most MAX_PROBLEMS. size is that of its JSON in bytes, for the bound on work."""
        run = Run(BASE_WORK + WORK_PER_BYTE * size)
        run.value(self._root, value)
        return run.problems

    def defaults(self) -> dict[str, Any]:
        """Returns the defaults of the root's properties; they are for readers and never on the wire."""
        properties = self.document.get("properties", {})
        return {name: sub["default"] for name, sub in properties.items() if isinstance(sub, dict) and "default" in sub}


def load(data: bytes) -> Schema:
    """Reads and compiles a document. Raises strictjson.StrictError or SchemaError."""
    return Schema(strictjson.loads(data))

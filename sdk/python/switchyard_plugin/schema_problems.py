"""What is wrong with a schema or a value, and how it is told: without repeating the value."""

from __future__ import annotations

from dataclasses import dataclass

from .wire import strictjson


@dataclass(frozen=True)
class Problem:
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


def escape(name: str) -> str:
    """Makes a member name a token of a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def cut(name: str) -> str:
    return name if len(name) <= 64 else name[:64] + "…"


def shown(name: str) -> str:
    """A member's name in a message: quoted, cut, with what cannot be seen as escapes."""
    quoted = strictjson.dumps(cut(name))
    return quoted if quoted.isprintable() else "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in quoted)

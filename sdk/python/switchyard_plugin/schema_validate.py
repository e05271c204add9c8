"""Judges a value by a compiled schema, in bounded work, and tells what is wrong with it."""

from __future__ import annotations

from typing import Any

from .formats import FORMATS
from .schema_limits import MAX_PROBLEMS, WORK_LIMIT
from .schema_node import KINDS, Node, scalar
from .schema_problems import Problem, cut, escape, shown
from .wire import codes, jcs

_TYPES: dict[type, str] = {type(None): "null", bool: "boolean", dict: "object", list: "array", str: "string"}


class _Stop(Exception):
    """Nothing more is judged."""


class Run:
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
        return "".join(f"/{escape(cut(p)) if isinstance(p, str) else p}" for p in path)

    def fail(self, message: str, code: str = codes.SCHEMA_MISMATCH) -> bool:
        if not self._quiet:
            self.problems.append(Problem(self.pointer(), code, message))
        return False

    def value(self, node: Node, value: Any) -> bool:
        """Judges a value and tells its faults, unless it is inside an alternative. Whether it holds."""
        try:
            return self.judge(node, value)
        except _Stop:
            return False

    def judge(self, node: Node, value: Any) -> bool:
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

    def _judge(self, node: Node, value: Any) -> bool:
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

    def typed(self, node: Node, kind: str) -> bool:
        if not node.types or kind in node.types:
            return True
        return self.fail(f"must be {' or '.join(k for k in KINDS if k in node.types)}")

    def listed(self, node: Node, value: Any) -> bool:
        if node.enum is None or not isinstance(value, (dict, list)) and scalar(value) in node.enum:
            return True
        return self.fail(f"must be one of {node.allowed}")

    def number(self, node: Node, value: int | float) -> bool:
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

    def text(self, node: Node, value: str) -> bool:
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

    def array(self, node: Node, value: list[Any]) -> bool:
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
                key = scalar(item)
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

    def object(self, node: Node, value: dict[str, Any]) -> bool:
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
                    told = "has an unknown member" if self._redacted >= 0 else f"unknown member {shown(name)}"
                    good = self.fail(told, codes.SCHEMA_UNKNOWN_MEMBER)
                    inner = None
            if inner is not None and not self.judge(inner, item):
                good = False
            if not good and self._quiet:
                break
        path.pop()
        for name in node.required:
            if name not in value:
                good = self.fail(f"the member {shown(name)} is required")
        for name, others in node.dependent.items():
            if name in value:
                for other in others:
                    if other not in value:
                        good = self.fail(f"the member {shown(other)} is required beside {shown(name)}")
        if len(value) < node.least_members:
            good = self.fail(f"must have at least {node.least_members} members")
        if 0 <= node.most_members < len(value):
            good = self.fail(f"must have at most {node.most_members} members")
        return good

    def holds(self, node: Node, value: Any) -> bool:
        """Whether the value passes, and tells nothing."""
        path = self._path
        self._path = list(path)
        self._quiet += 1
        try:
            return self.judge(node, value)
        finally:
            self._quiet -= 1
            self._path = path

    def count(self, nodes: list[Node], value: Any, enough: int) -> int:
        held = 0
        for node in nodes:
            if self.holds(node, value):
                held += 1
                if held == enough:
                    break
        return held

    def combined(self, node: Node, value: Any) -> bool:
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

"""Regular expressions of package schemas, in the part that RE2, Python and .NET read alike.

A pattern of that part means the same everywhere: no flags, text is Unicode, classes
such as \\d are ASCII, ^ and $ are the ends of the text, a dot is anything but a
line feed. It is translated into a pattern of Python's re that means exactly this.
What lies outside of that part is refused, not guessed at.
"""

from __future__ import annotations

import re

MAX_PATTERN = 1024
"""Characters of a pattern."""
MAX_REPEAT = 1000
"""The largest bound of a repetition, and of nested ones multiplied."""

_literal_escapes = frozenset("\\.+*?()|[]{}^$/-")
_controls = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_space = r"\t\n\f\r "


class PatternError(ValueError):
    """A pattern that is not of the common part."""


def translate(pattern: str) -> str:
    """Returns the pattern for re.compile(…, re.ASCII). Raises PatternError."""
    if len(pattern) > MAX_PATTERN:
        raise PatternError(f"has more than {MAX_PATTERN} characters")
    return _Reader(pattern).all()


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.depth = 0

    def all(self) -> str:
        out, _ = self.alternatives()
        if self.at < len(self.text):
            raise PatternError("closes a group that is not open")
        return out

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def alternatives(self) -> tuple[str, int]:
        """Reads up to the end of the group; the number is the largest product of bounds in it."""
        self.depth += 1
        if self.depth > 32:
            raise PatternError("nests groups more than 32 deep")
        out: list[str] = []
        product = 1
        while self.peek() not in ("", ")"):
            if self.peek() == "|":
                self.at += 1
                out.append("|")
                continue
            atom, inner, repeats = self.atom()
            quantifier, factor = self.quantifier() if repeats else ("", 1)
            if inner * factor > MAX_REPEAT:
                raise PatternError(f"repeats more than {MAX_REPEAT} times")
            product = max(product, inner * factor)
            out.append(atom + quantifier)
            if self.peek() and self.peek() in "*+?{":
                raise PatternError("repeats what cannot be repeated")
        self.depth -= 1
        return "".join(out), product

    def atom(self) -> tuple[str, int, bool]:
        """Reads one atom: its translation, its product of bounds, whether it may be repeated."""
        c = self.peek()
        self.at += 1
        if c == "(":
            if self.peek() == "?":
                if self.text[self.at : self.at + 2] != "?:":
                    raise PatternError("has a group other than (…) and (?:…)")
                self.at += 2
            inner, product = self.alternatives()
            if self.peek() != ")":
                raise PatternError("does not close a group")
            self.at += 1
            return f"(?:{inner})", product, True
        if c == "[":
            return self.char_class(), 1, True
        if c == "^":
            return r"\A", 1, False
        if c == "$":
            return r"\Z", 1, False
        if c == ".":
            return ".", 1, True
        if c == "\\":
            return self.escape(in_class=False), 1, self.text[self.at - 1] not in "bB"
        if c in "*+?{}]":
            raise PatternError(f"has an unescaped {c}")
        return re.escape(c), 1, True

    def escape(self, in_class: bool) -> str:
        c = self.peek()
        self.at += 1
        if c and c in _literal_escapes:
            return re.escape(c)
        if c in _controls:
            return re.escape(_controls[c])
        if c and c in "dwDW":
            return "\\" + c
        if c == "s":
            return _space if in_class else f"[{_space}]"
        if c == "S":
            return r"\S\x0b" if in_class else f"[^{_space}]"
        if c and c in "bB" and not in_class:
            return "\\" + c
        if c == "x":
            digits = self.text[self.at : self.at + 2]
            if re.fullmatch("[0-9A-Fa-f]{2}", digits):
                self.at += 2
                return "\\x" + digits
        raise PatternError("has an escape that is not of the common part")

    def char_class(self) -> str:
        out = ["["]
        if self.peek() == "^":
            self.at += 1
            out.append("^")
        start = len(out)
        while True:
            c = self.peek()
            if c == "":
                raise PatternError("does not close a class")
            if c == "]":
                self.at += 1
                if len(out) == start:
                    raise PatternError("has an empty class")
                return "".join(out) + "]"
            low, single = self.class_atom()
            out.append(low)
            if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] != "]":
                self.at += 1
                if self.peek() == "":
                    raise PatternError("does not close a class")
                high, also_single = self.class_atom()
                if not single or not also_single:
                    raise PatternError("has a range whose end is no character")
                out.append("-" + high)

    def class_atom(self) -> tuple[str, bool]:
        c = self.peek()
        self.at += 1
        if c == "\\":
            name = self.peek()
            return self.escape(in_class=True), name not in tuple("dDwWsS")
        if c == "[":
            raise PatternError("has an unescaped [ in a class")
        return re.escape(c), True

    def quantifier(self) -> tuple[str, int]:
        c = self.peek()
        if c == "" or c not in "*+?{":
            return "", 1
        self.at += 1
        factor = 1
        if c == "{":
            match = re.compile(r"([0-9]{1,4})(?:(,)([0-9]{1,4})?)?\}").match(self.text, self.at)
            if match is None:
                raise PatternError("has an unescaped {")
            self.at = match.end()
            low = int(match[1])
            high = int(match[3]) if match[3] else low
            if high < low:
                raise PatternError("has a repetition whose bounds are reversed")
            factor = max(high, low, 1)
            c = "{" + match[0]
        if self.peek() == "?":
            self.at += 1
            c += "?"
        return c, factor

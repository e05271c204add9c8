"""Regular expressions of package schemas, in the part that RE2, Python and .NET read alike.

A pattern is about the whole string: it begins with ^ and ends with $. It has
literals, escapes of single characters, classes of them, groups and greedy repeats. What
other languages read otherwise (\\d, ., look-around, lazy repeats and more) is refused, not
guessed at, and so is what an engine that tries one way after the other would need
long for: see ambiguity. docs/schema-subset.md, section "Patterns".
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

MAX_PATTERN = 512
"""Characters of a pattern."""
MAX_REPEAT = 1000
"""The largest bound of a repeat, and of nested ones multiplied."""
MAX_POSITIONS = 512
"""Characters that a pattern can match, with repeats written out."""
MAX_GROUPS = 32
"""Groups inside each other."""

Span = tuple[int, int]


class PatternError(ValueError):
    """Where a pattern leaves the common part; at counts the characters before the fault."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(f"character {at + 1}: {message}")
        self.at = at


class Expression(NamedTuple):
    """A parsed pattern or a part of one: a class (c), a sequence (.), alternatives (|) or a repeat (*)."""

    op: str
    at: int
    parts: tuple["Expression", ...] = ()
    spans: tuple[Span, ...] = ()
    least: int = 1
    most: int = 1
    """-1: without bound."""
    empty: bool = False
    repeats: int = 1
    """The product of the bounds of nested repeats."""

    def size(self) -> int:
        """The positions with repeats written out, at most MAX_POSITIONS + 1."""
        if self.op == "c":
            return 1
        if self.op == "*":
            return min(self.parts[0].size() * max(self.least, self.most, 1), MAX_POSITIONS + 1)
        return min(sum(p.size() for p in self.parts), MAX_POSITIONS + 1)


class Pattern(NamedTuple):
    """A pattern of the common part. positions counts what it can match with repeats written out."""

    source: str
    translated: str
    positions: int

    def compile(self) -> re.Pattern[str]:
        """Returns it for fullmatch."""
        return re.compile(self.translated)


def parse(pattern: str) -> Pattern:
    """Reads a pattern. Raises PatternError."""
    parser = _Parser(pattern)
    expression, translated = parser.parse()
    positions = expression.size()
    if positions > MAX_POSITIONS:
        raise PatternError(0, f"with its repeats written out it has more than {MAX_POSITIONS} characters")
    if positions > 64 or _loops(expression):
        from .ambiguity import check

        check(expression)
    return Pattern(pattern, translated, positions)


def _loops(expression: Expression) -> bool:
    """Whether there is more than one way at some place. A short pattern without needs no closer look."""
    return expression.op in "|*" or any(_loops(p) for p in expression.parts)


def normalize(spans: list[Span], negated: bool) -> tuple[Span, ...]:
    """Returns sorted spans that do not touch, or what lies between them."""
    merged: list[Span] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    if not negated:
        return tuple(merged)
    rest: list[Span] = []
    after = 0
    for low, high in merged:
        if low > after:
            rest.append((after, low - 1))
        after = high + 1
    rest.append((after, 0x10FFFF))
    return tuple(rest)



class _Parser:
    """pattern = "^" sequence "$"; alternatives stand in groups."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def peek(self, ahead: int = 0) -> str:
        return self.text[self.at + ahead : self.at + ahead + 1]

    def parse(self) -> tuple[Expression, str]:
        if len(self.text) > MAX_PATTERN:
            raise PatternError(0, f"a pattern has at most {MAX_PATTERN} characters, not {len(self.text)}")
        if self.peek() != "^":
            raise PatternError(0, 'a pattern begins with "^" and ends with "$": it is about the whole string')
        self.at += 1
        expression, out = self.sequence(top=True)
        if self.peek() == "|":
            raise PatternError(self.at, 'alternatives stand in a group: "^(a|b)$"')
        if self.peek() == ")":
            raise PatternError(self.at, '")" without "("; the character itself is "\\)"')
        if self.peek() != "$" or self.at != len(self.text) - 1:
            raise PatternError(self.at, 'a pattern begins with "^" and ends with "$", and has neither elsewhere')
        if expression.repeats > MAX_REPEAT:
            raise PatternError(0, f"repeats inside each other come to more than {MAX_REPEAT}")
        return expression, out

    def alternation(self) -> tuple[Expression, str]:
        start = self.at
        parts, texts = [], []
        while True:
            part, text = self.sequence(top=False)
            parts.append(part)
            texts.append(text)
            if self.peek() != "|":
                break
            self.at += 1
        whole = Expression("|", start, tuple(parts), empty=any(p.empty for p in parts), repeats=max(p.repeats for p in parts))
        return whole, "|".join(texts)

    def sequence(self, top: bool) -> tuple[Expression, str]:
        start = self.at
        parts, texts = [], []
        while self.peek() not in ("", "|", ")", "$"):
            part, text = self.repeated()
            parts.append(part)
            texts.append(text)
        if not parts and not top:
            raise PatternError(self.at, 'an alternative is empty; write "?" after the group')
        repeats = max((p.repeats for p in parts), default=1)
        return Expression(".", start, tuple(parts), empty=all(p.empty for p in parts), repeats=repeats), "".join(texts)

    def repeated(self) -> tuple[Expression, str]:
        start = self.at
        negated = self.peek() == "[" and self.peek(1) == "^"
        atom, text = self.atom()
        after = self.at
        bounds: Optional[tuple[int, int]] = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}.get(self.peek())
        if bounds is not None:
            self.at += 1
        elif self.peek() == "{":
            bounds = self.bounds()
        if negated and (bounds is None or bounds[1] >= 0 or bounds[0] > 1):
            raise PatternError(
                start,
                'a negated class is followed by "*" or "+": alone or counted it means something else where characters are counted as UTF-16',
            )
        if bounds is None:
            return atom, text
        if self.peek() and self.peek() in "*+?{":
            raise PatternError(self.at, "a repeat follows a repeat (lazy and possessive ones are not in the subset)")
        if atom.empty:
            raise PatternError(after, "a repeat of what can be empty")
        least, most = bounds
        if most == 0:
            raise PatternError(after, "a repeat of at most 0")
        repeats = min(atom.repeats * max(least, most, 1), MAX_REPEAT + 1)
        whole = Expression("*", after, (atom,), (), least, most, least == 0, repeats)
        return whole, text + self.text[after : self.at]

    def bounds(self) -> tuple[int, int]:
        start = self.at
        match = re.compile(r"\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\}").match(self.text, start)
        if match is None:
            raise PatternError(start, 'a repeat is {n}, {n,} or {n,m}; the character itself is "\\{"')
        self.at = match.end()
        # More digits than these are more than any bound.
        least = int(match[1][:5])
        most = int(match[3][:5]) if match[3] else -1 if match[2] else least
        if least > MAX_REPEAT or most > MAX_REPEAT:
            raise PatternError(start, f"a repeat of more than {MAX_REPEAT}")
        if 0 <= most < least:
            raise PatternError(start, "a repeat whose bounds are the wrong way round")
        return least, most

    def atom(self) -> tuple[Expression, str]:
        start = self.at
        c = self.peek()
        if c == "(":
            self.at += 1
            if self.peek() == "?":
                if self.peek(1) != ":":
                    raise PatternError(start, 'only "(…)" and "(?:…)" are groups here: no names, flags, look-around or atomic groups')
                self.at += 2
            self.depth += 1
            if self.depth > MAX_GROUPS:
                raise PatternError(start, f"more than {MAX_GROUPS} groups inside each other")
            inner, text = self.alternation()
            if self.peek() != ")":
                raise PatternError(start, '"(" without ")"; the character itself is "\\("')
            self.at += 1
            self.depth -= 1
            return inner, f"(?:{text})"
        if c == "[":
            return self.char_class()
        if c == "\\":
            code = self.escape()
            return Expression("c", start, spans=((code, code),)), re.escape(chr(code))
        if c == ".":
            raise PatternError(start, '"." leaves out other characters in each language; write a class, or "\\." for the character itself')
        if c in "*+?{":
            raise PatternError(start, "a repeat follows nothing")
        if c in "]}^":
            raise PatternError(start, f'"{c}" stands for itself only as "\\{c}"')
        self.literal(c)
        self.at += 1
        return Expression("c", start, spans=((ord(c), ord(c)),)), re.escape(c)

    def literal(self, c: str) -> None:
        """Refuses characters that count as two in UTF-16, and those that nobody sees."""
        code = ord(c)
        if code < 0x20 or 0x7F <= code <= 0x9F or code in (0x2028, 0x2029, 0xFEFF):
            raise PatternError(self.at, f"the control or invisible character U+{code:04X}; of ASCII write the escape")
        if code > 0xFFFF or code == 0xFFFD:
            raise PatternError(self.at, f"the character U+{code:04X}, which is not one character in every language")

    def escape(self) -> int:
        """Reads a backslash and what follows: one character."""
        start = self.at
        self.at += 1
        c = self.peek()
        if c == "":
            raise PatternError(start, "ends after a backslash")
        self.at += 1
        if " " < c < "\x80" and c != "_" and not c.isalnum():
            return ord(c)
        if c in "nrtfv":
            return ord({"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}[c])
        if c == "x":
            digits = self.text[self.at : self.at + 2]
            if not re.fullmatch("[0-9A-Fa-f]{2}", digits):
                raise PatternError(start, '"\\x" has two hexadecimal digits')
            self.at += 2
            return int(digits, 16)
        if c in "dDwWsSbB":
            raise PatternError(start, f'"\\{c}" means other characters in each language; write the class, as [0-9]')
        if c in "pP":
            raise PatternError(start, f'"\\{c}" is not known in every language; write the class')
        if c in "0123456789":
            raise PatternError(start, "a backreference, or an octal escape")
        raise PatternError(start, "an escape that is not in the subset")

    def char_class(self) -> tuple[Expression, str]:
        start = self.at
        self.at += 1
        negated = self.peek() == "^"
        if negated:
            self.at += 1
        spans: list[Span] = []
        while self.peek() != "]":
            low = high = self.member(start)
            if self.peek() == "-":
                here = self.at
                self.at += 1
                high = self.member(start)
                if high < low:
                    raise PatternError(here, "a range that is the wrong way round")
                if low < 0xD800 and high > 0xDFFF:
                    raise PatternError(here, "a range across the surrogates, which UTF-16 does not tell from characters")
            spans.append((low, high))
        if not spans:
            raise PatternError(start, 'an empty class; "]" in a class is "\\]"')
        self.at += 1
        body = "".join(_escaped(a) if a == b else f"{_escaped(a)}-{_escaped(b)}" for a, b in spans)
        return Expression("c", start, spans=normalize(spans, negated)), f"[{'^' if negated else ''}{body}]"

    def member(self, opened: int) -> int:
        c = self.peek()
        if c == "":
            raise PatternError(opened, '"[" without "]"')
        if c == "\\":
            return self.escape()
        if c in "[]-^&~|":
            raise PatternError(self.at, f'in a class "{c}" stands for itself only as "\\{c}"')
        self.literal(c)
        self.at += 1
        return ord(c)


def _escaped(code: int) -> str:
    """A character as it stands in a class of Python's re."""
    c = chr(code)
    return "\\" + c if c.isascii() and not c.isalnum() and c.isprintable() and c != " " else c

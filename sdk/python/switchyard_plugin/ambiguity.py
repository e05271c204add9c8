"""Which patterns an engine that tries one way after the other reads in little time.

Inside a repeat without bound the next character must decide how to go on;
elsewhere the same characters may be read in at most MAX_WAYS ways. Then no engine takes
more than the string's length times MAX_WAYS steps. Sets of positions and of classes
are integers, one bit a member.
"""

from __future__ import annotations

from typing import Iterator, NamedTuple

from .patterns import Expression, PatternError, Span

MAX_CLASSES = 64
"""Different characters and classes of a pattern."""
MAX_WAYS = 64
"""Ways in which the same characters can be read at the same time."""

_UNDECIDED = (
    "inside a repeat without bound the next character must decide how to go on; bound the repeat, or make the classes disjoint"
)


class _Part(NamedTuple):
    """What an expression adds to the automaton: the positions that can be first and last."""

    first: int
    last: int
    empty: bool


def _each(members: int) -> Iterator[int]:
    while members:
        low = members & -members
        yield low.bit_length() - 1
        members ^= low


def _overlap(a: tuple[Span, ...], b: tuple[Span, ...]) -> bool:
    return any(low <= other_high and other_low <= high for low, high in a for other_low, other_high in b)


class _Automaton:
    """Position i reads one character of its class and may be followed by those in follow[i]."""

    def __init__(self) -> None:
        self.classes: list[tuple[Span, ...]] = []
        self.known: dict[tuple[Span, ...], int] = {}
        self.class_of: list[int] = []
        self.at: list[int] = []
        self.follow: list[int] = []
        self.twice: list[int] = []

    def add(self, e: Expression) -> _Part:
        if e.op == "c":
            number = self.known.setdefault(e.spans, len(self.classes))
            if number == len(self.classes):
                self.classes.append(e.spans)
            self.class_of.append(number)
            self.at.append(e.at)
            self.follow.append(0)
            bit = 1 << len(self.follow) - 1
            return _Part(bit, bit, False)
        if e.op == ".":
            whole = _Part(0, 0, True)
            for inner in e.parts:
                whole = self.then(whole, self.add(inner))
            return whole
        if e.op == "|":
            first = last = 0
            empty = False
            for inner in e.parts:
                part = self.add(inner)
                first |= part.first
                last |= part.last
                empty = empty or part.empty
            return _Part(first, last, empty)
        return self.repeat(e)

    def then(self, p: _Part, q: _Part) -> _Part:
        for i in _each(p.last):
            self.follow[i] |= q.first
        return _Part(p.first | (q.first if p.empty else 0), q.last | (p.last if q.empty else 0), p.empty and q.empty)

    def repeat(self, e: Expression) -> _Part:
        """Writes a repeat out: e{2,4} as ee(e(e)?)?, e{2,} as ee+."""
        inner = e.parts[0]
        if e.most < 0:
            part = self.add(inner)
            for i in _each(part.last):
                if self.follow[i] & part.first:
                    self.twice.append(i)
                self.follow[i] |= part.first
            part = part._replace(empty=e.least == 0)
            for _ in range(e.least - 1):
                part = self.then(self.add(inner), part)
            return part
        part = _Part(0, 0, True)
        for i in range(e.most):
            part = self.then(self.add(inner), part)._replace(empty=i < e.most - e.least)
        return part


def check(expression: Expression) -> None:
    """Raises PatternError for a pattern that can take long."""
    a = _Automaton()
    whole = a.add(expression)
    if len(a.classes) > MAX_CLASSES:
        raise PatternError(0, f"more than {MAX_CLASSES} different characters and classes")
    overlap = [sum(1 << j for j, d in enumerate(a.classes) if _overlap(c, d)) for c in a.classes]
    reach = list(a.follow)
    for k, _ in enumerate(reach):
        for i, _ in enumerate(reach):
            if reach[i] >> k & 1:
                reach[i] |= reach[k]
    if a.twice:
        raise PatternError(a.at[a.twice[0]], _UNDECIDED)
    for p, follow in enumerate(a.follow):
        seen = twice = looping = 0
        for q in _each(follow):
            bit = 1 << a.class_of[q]
            twice |= seen & bit
            seen |= bit
            if reach[q] >> p & 1:
                looping |= bit
        for c in _each(looping):
            if twice >> c & 1 or overlap[c] & seen & ~(1 << c):
                raise PatternError(a.at[p], _UNDECIDED)
    if _ways(a, reach, overlap, whole.first) > MAX_WAYS:
        raise PatternError(
            0,
            f"the same characters can be read in more than {MAX_WAYS} ways; make the classes that follow each other disjoint",
        )


def _ways(a: _Automaton, reach: list[int], overlap: list[int], start: int) -> int:
    """The most ways in which the same characters can be read from here on, at most MAX_WAYS + 1."""
    ways = [0] * len(reach)

    def of(follow: int, inside: int) -> int:
        sums = [0] * len(a.classes)
        for q in _each(follow):
            # Positions of the loop that is being looked at do not leave it.
            if inside >= 0 and reach[q] >> inside & 1:
                continue
            sums[a.class_of[q]] = min(sums[a.class_of[q]] + ways[q], MAX_WAYS + 1)
        return min(max((sum(sums[d] for d in _each(o)) for o in overlap), default=0), MAX_WAYS + 1)

    # A position's ways need those after it: visited from the end, without recursion.
    todo = [(start, -1)]
    order: list[int] = []
    seen = 0
    while todo:
        follow, _ = todo.pop()
        for q in _each(follow & ~seen):
            seen |= 1 << q
            order.append(q)
            todo.append((a.follow[q], q))
    done = 0

    def ready(q: int, loop: int) -> bool:
        need = 0
        for r in _each(loop):
            need |= a.follow[r]
        return not need & ~loop & ~done

    waiting = order[::-1]
    while waiting:
        left = []
        for q in waiting:
            if done >> q & 1:
                continue
            loop = 1 << q
            if reach[q] >> q & 1:
                loop = sum(1 << r for r in _each(reach[q]) if reach[r] >> q & 1)
            if not ready(q, loop):
                left.append(q)
                continue
            most = 1
            for r in _each(loop):
                most = max(most, of(a.follow[r], r))
            for r in _each(loop):
                ways[r] = most
            done |= loop
        waiting = left
    return of(start, -1)

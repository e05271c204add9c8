"""Identifiers that were seen, as many as there is memory set aside for."""

from __future__ import annotations

from collections import OrderedDict
from typing import Optional

REMEMBERED = 65_536
"""Identifiers of frames and of ended requests that are remembered."""


class Recent:
    """The newest identifiers of an endless sequence, in bounded memory."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Optional[str]] = OrderedDict()

    def add(self, name: str, note: Optional[str] = None) -> bool:
        """Remembers a name with a note, and reports whether it was not known."""
        if name in self._known:
            return False
        self._known[name] = note
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return True

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def note(self, name: str) -> Optional[str]:
        """The note to a name; None where there is none."""
        return self._known.get(name)

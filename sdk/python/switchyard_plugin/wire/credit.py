"""Credit: what the receiver of a stream allowed its sender and the sender has not used."""

from __future__ import annotations


class Credit:
    """Items, and bytes as the frames' lengths count them. It begins with none."""

    __slots__ = ("items", "bytes", "_widest", "_overdrawn")

    def __init__(self) -> None:
        self.items = 0
        self.bytes = 0
        self._widest = 0
        self._overdrawn = False

    def grant(self, items: int, size: int) -> None:
        """Adds to the credit."""
        self.items += items
        self.bytes += size
        self._widest = max(self._widest, size)
        if self.items >= 0 and self.bytes >= 0:
            self._overdrawn = False

    def covers(self, size: int) -> bool:
        """Reports whether an item whose frame has size bytes may be sent."""
        return self.items >= 1 and self.bytes >= size

    def too_large(self, size: int) -> bool:
        """Reports whether an item is larger than every grant so far: waiting could be for ever.

        Before the first grant of bytes nothing is.
        """
        return 0 < self._widest < size

    def take(self, size: int) -> None:
        """Uses credit for an item that covers() allowed."""
        self.items -= 1
        self.bytes -= size

    def receive(self, size: int) -> bool:
        """Charges an item that has arrived and reports whether its sender was allowed it.

        One item that the credit does not cover is tolerated, because it may have been
        on its way; the next is not, until grants have made up for it.
        """
        covered = self.covers(size)
        if not covered and self._overdrawn:
            return False
        self._overdrawn = not covered
        self.items -= 1
        self.bytes -= size
        return True

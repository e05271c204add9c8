"""Why a frame, an envelope or a body is refused."""

from __future__ import annotations


class Fault(Exception):
    """A broken rule: its code, where (a JSON Pointer, "" outside of a body), and words that quote no value."""

    def __init__(self, code: str, message: str, path: str = "") -> None:
        super().__init__(f"{path} {message}" if path else message)
        self.code = code
        self.path = path

"""Frames: a length as uint32, big-endian, and as many bytes of JSON."""

from __future__ import annotations

from typing import Iterator

from . import DEFAULT_MAX_FRAME, MAX_MAX_FRAME, codes
from .fault import Fault

HEADER_SIZE = 4


def encode(frame: bytes, limit: int = DEFAULT_MAX_FRAME) -> bytes:
    """Returns a frame with its length before it. Raises a Fault with frame.invalid or frame.too_large."""
    _check_size(len(frame), limit)
    return len(frame).to_bytes(HEADER_SIZE, "big") + frame


def _check_size(size: int, limit: int) -> None:
    if size == 0:
        raise Fault(codes.FRAME_INVALID, "a frame of no bytes")
    if size > MAX_MAX_FRAME:
        raise Fault(codes.FRAME_INVALID, "a frame with a negative length")
    if size > limit:
        raise Fault(codes.FRAME_TOO_LARGE, f"a frame of {size} bytes, more than {limit}")


class FrameReader:
    """Cuts what arrives into frames, in memory bounded by the limit and one chunk more.

    limit may be changed at any time and holds for the frames that were not taken yet.
    """

    def __init__(self) -> None:
        self.limit = DEFAULT_MAX_FRAME
        self._buffer = bytearray()
        self._at = 0

    def feed(self, data: bytes) -> None:
        """Adds bytes that have arrived."""
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data

    def frames(self) -> Iterator[bytes]:
        """Takes the complete frames, one by one. Raises a Fault, after which nothing more can be read."""
        while True:
            frame = self.next()
            if frame is None:
                return
            yield frame

    def next(self) -> bytes | None:
        """Takes the next complete frame; None if it has not arrived as a whole."""
        start = self._at + HEADER_SIZE
        if len(self._buffer) < start:
            return None
        size = int.from_bytes(self._buffer[self._at : start], "big")
        _check_size(size, self.limit)
        if len(self._buffer) < start + size:
            return None
        self._at = start + size
        return bytes(self._buffer[start : self._at])

    def end(self) -> None:
        """Says that the stream has ended. Raises a Fault with frame.invalid if that is inside a frame."""
        if len(self._buffer) > self._at:
            raise Fault(codes.FRAME_INVALID, "the stream ends inside a frame")

"""The byte stream of a session: standard input and output, or a Unix socket.

The protocol is kept out of everybody else's reach: once a transport is open,
descriptor 1 and sys.stdout are standard error, and descriptor 0 is empty. What a
handler prints is a log line and not a broken session.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections import deque
from typing import Callable, Optional

ENV_PROTOCOL = "SWITCHYARD_PLUGIN_PROTOCOL"
"""The environment variable that names the protocol which the host speaks."""
ENV_STATE = "SWITCHYARD_PLUGIN_STATE"
"""The one that names a private directory which outlives the process."""
ENV_SOCKET = "SWITCHYARD_PLUGIN_SOCKET"
"""The one that names the host's Unix socket, if frames go over one."""
CHUNK = 256 << 10
"""Bytes of one read."""
HIGH_WATER = 1 << 20
"""Bytes that wait to be written, from which on writers wait and nothing more is read."""

Received = Callable[[bytes], None]
Ended = Callable[[Optional[OSError]], None]


class Transport:
    """A pair of descriptors, not blocking, on the running event loop.

    received is called with what arrives and ended once at its end. write never
    waits: it keeps what the other side does not take yet; drain() waits until that
    is little again, and reading stops meanwhile, so that memory stays bounded.
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes | memoryview] = deque()
        self._size = 0
        self._scheduled = False
        self._writing = False
        self._paused = False
        self._broken: Optional[OSError] = None
        self._room: list[asyncio.Future[None]] = []
        self._received: Received = lambda data: None
        self._ended: Ended = lambda fault: None
        self._reading = False

    def start(self, received: Received, ended: Ended) -> None:
        """Begins to read."""
        self._received, self._ended = received, ended
        for fd in {self._read_fd, self._write_fd}:
            os.set_blocking(fd, False)
        if stat.S_ISREG(os.fstat(self._read_fd).st_mode):
            self._loop.call_soon(self._read_file)
            return
        self._reading = True
        self._loop.add_reader(self._read_fd, self._readable)

    def _read_file(self) -> None:
        # A regular file cannot be waited for, and need not be.
        while data := os.read(self._read_fd, CHUNK):
            self._received(data)
        self._ended(None)

    def _readable(self) -> None:
        try:
            data = os.read(self._read_fd, CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as fault:
            self.stop_reading()
            self._ended(fault)
            return
        if data:
            self._received(data)
        else:
            self.stop_reading()
            self._ended(None)

    def stop_reading(self) -> None:
        """Reads nothing more."""
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._read_fd)

    def write(self, data: bytes) -> None:
        """Sends data after what was written before. What is written in one step of the loop goes out together."""
        if self._broken is not None:
            return
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= HIGH_WATER:
            self.flush()
        elif not self._scheduled and not self._writing:
            self._scheduled = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Sends what can be sent now."""
        self._scheduled = False
        while self._waiting:
            if len(self._waiting) > 1:
                data: bytes | memoryview = b"".join(self._waiting)
                self._waiting.clear()
                self._waiting.append(data)
            data = self._waiting[0]
            try:
                sent = os.write(self._write_fd, data)
            except (BlockingIOError, InterruptedError):
                break
            except OSError as fault:
                self._broken = fault
                self._waiting.clear()
                self._size = 0
                break
            self._size -= sent
            if sent == len(data):
                self._waiting.popleft()
            else:
                self._waiting[0] = memoryview(data)[sent:]
        self._wait_for_room(bool(self._waiting))

    def _wait_for_room(self, needed: bool) -> None:
        if needed != self._writing:
            self._writing = needed
            if needed:
                self._loop.add_writer(self._write_fd, self.flush)
            else:
                self._loop.remove_writer(self._write_fd)
        if self._size >= HIGH_WATER and self._reading and not self._paused:
            self._paused = True
            self._loop.remove_reader(self._read_fd)
        elif self._size < HIGH_WATER:
            if self._paused:
                self._paused = False
                if self._reading:
                    self._loop.add_reader(self._read_fd, self._readable)
            for waiter in self._room:
                if not waiter.done():
                    waiter.set_result(None)
            self._room.clear()

    @property
    def full(self) -> bool:
        """Whether writers should wait."""
        return self._size >= HIGH_WATER

    async def drain(self) -> None:
        """Waits while the transport is full."""
        while self._size >= HIGH_WATER:
            waiter = self._loop.create_future()
            self._room.append(waiter)
            await waiter

    async def finish(self, seconds: float) -> None:
        """Sends what is left, for so long at most."""
        end = self._loop.time() + seconds
        self.flush()
        while self._waiting and self._loop.time() < end:
            await asyncio.sleep(0.005)
            self.flush()

    def close(self) -> None:
        """Lets go of the descriptors without closing them: the process ends next."""
        self.stop_reading()
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._write_fd)


def take_stdio() -> tuple[int, int]:
    """Takes standard input and output for the protocol and returns their new descriptors.

    From then on descriptor 0 is empty, descriptor 1 and sys.stdout are standard error.
    """
    sys.stdout.flush()
    read_fd, write_fd = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return read_fd, write_fd


def connect_unix(path: str) -> int:
    """Connects to the host's socket and returns the descriptor. Raises OSError."""
    import socket

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(path)
    return connection.detach()

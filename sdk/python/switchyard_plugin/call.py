"""The call protocol switchyard.plugin/v1 from the plugin's side: inspect a project and operate on it.

The host starts the plugin anew for every call. docs/protocol-call.md has the rules;
requests are answered one after the other, each with one line.

call_server serves a connection, call_read reads requests, call_write renders answers.
"""

from __future__ import annotations

import asyncio
import signal
from typing import Awaitable, Callable, Optional, TypeVar

from .call_errors import CallManifestError
from .call_manifest import parse_manifest
from .call_models import HealthResult, InspectRequest, InspectResult, OperateRequest, OperateResult
from .call_server import Server
from .call_words import CAPABILITY_INSPECT, CAPABILITY_OPERATE, MANIFEST_FILE, MAX_MANIFEST_BYTES, PROTOCOL
from .transport import Transport, take_stdio

HealthHandler = Callable[[], Awaitable[HealthResult]]
InspectHandler = Callable[[InspectRequest], Awaitable[InspectResult]]
OperateHandler = Callable[[OperateRequest], Awaitable[OperateResult]]
H = TypeVar("H", bound=HealthHandler)
I = TypeVar("I", bound=InspectHandler)
O = TypeVar("O", bound=OperateHandler)


class CallPlugin:
    """A plugin of the call protocol.

        plugin = CallPlugin()

        @plugin.inspect
        async def inspect(request: InspectRequest) -> InspectResult:
            ...

    manifest is the text of plugin.json, by default that of the working directory.
    """

    PROTOCOL = PROTOCOL

    def __init__(self, manifest: bytes | None = None) -> None:
        if manifest is None:
            try:
                with open(MANIFEST_FILE, "rb") as file:
                    manifest = file.read(MAX_MANIFEST_BYTES + 1)
            except OSError as fault:
                raise CallManifestError(f"{MANIFEST_FILE}: {fault.strerror}") from None
        self.manifest = parse_manifest(manifest)
        self._health: Optional[HealthHandler] = None
        self._inspect: Optional[InspectHandler] = None
        self._operate: Optional[OperateHandler] = None

    def health(self, handler: H) -> H:
        """Registers the answer to plugin.health; without it the plugin is healthy."""
        self._health = handler
        return handler

    def inspect(self, handler: I) -> I:
        """Registers the handler of project.inspect."""
        self._inspect = handler
        return handler

    def operate(self, handler: O) -> O:
        """Registers the handler of project.operate."""
        self._operate = handler
        return handler

    def check(self) -> None:
        """Raises ValueError if the manifest declares what has no handler."""
        for capability, handler in ((CAPABILITY_INSPECT, self._inspect), (CAPABILITY_OPERATE, self._operate)):
            if capability in self.manifest["capabilities"] and handler is None:
                raise ValueError(f"the manifest declares {capability}, and it has no handler")

    def run(self) -> int:
        """Serves standard input and output, and returns the exit status once the host has closed the input."""
        self.check()
        read_fd, write_fd = take_stdio()
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(self._run(read_fd, write_fd))

    async def _run(self, read_fd: int, write_fd: int) -> int:
        return await self.serve(Transport(read_fd, write_fd), signals=True)

    async def serve(self, transport: Transport, *, signals: bool = False) -> int:
        """Serves one connection and returns the exit status of the process."""
        self.check()
        server = Server(self, transport)
        if signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, server.terminate)
        return await server.serve()

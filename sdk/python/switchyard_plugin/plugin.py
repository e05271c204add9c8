"""A session plugin: a package, and the handlers of its operations."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Optional, TypeVar, Union

from .models import HealthReport
from .operation import Operation
from .package import Package
from .receipts import ReceiptStore
from .report import log, log_exception
from .transport import ENV_SOCKET, ENV_STATE, Transport, connect_unix, take_stdio
from .wire.ids import utc_now
from .wire.shapes import HEALTH_STATUSES

if TYPE_CHECKING:
    from .connection import Connection
    from .manifest import OperationSpec

PROTOCOL = "session/1"
"""What SWITCHYARD_PLUGIN_PROTOCOL says for this protocol."""

Handler = Callable[[Operation], Any]
"""async def handler(op) -> result, or an async generator function whose items are the response stream."""
SettingsValidator = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Returns the settings as the plugin uses them, or raises SettingsError."""
HealthHandler = Callable[[], Awaitable[HealthReport]]

H = TypeVar("H", bound=Handler)
S = TypeVar("S", bound=SettingsValidator)
A = TypeVar("A", bound=HealthHandler)
I = TypeVar("I", bound=Callable[[dict[str, Any]], Awaitable[None]])


class HandlerError(ValueError):
    """Handlers that do not fit the manifest."""


class SessionPlugin:
    """A plugin of the session protocol.

        plugin = SessionPlugin(Package.load())

        @plugin.operation("catalog.index", "start")
        async def start(op: Operation) -> dict[str, object]:
            ...

    Every operation of the manifest needs a handler. store is where receipts are kept:
    by default below the directory that SWITCHYARD_PLUGIN_STATE names.
    """

    PROTOCOL = PROTOCOL

    def __init__(self, package: Union[Package, str, None] = None, *, store: Optional[ReceiptStore] = None) -> None:
        self.package = package if isinstance(package, Package) else Package.load(package or ".")
        state = os.environ.get(ENV_STATE)
        self.store = store if store is not None else ReceiptStore(state) if state else None
        self.streams = any(o.streams_request or o.streams_response for c in self.package.manifest.capabilities for o in c.operations)
        self._handlers: dict[tuple[str, str], Handler] = {}
        self._settings_validator: Optional[SettingsValidator] = None
        self._health_handler: Optional[HealthHandler] = None
        self._started: Optional[Callable[[dict[str, Any]], Awaitable[None]]] = None
        self._report = HealthReport("healthy", utc_now())
        self._connection: Optional["Connection"] = None

    # Registration.

    def operation(self, capability_id: str, name: str) -> Callable[[H], H]:
        """Registers the handler of an operation. One that the manifest lacks is registered and never called."""

        def register(handler: H) -> H:
            self.handle(capability_id, name, handler)
            return handler

        return register

    def handle(self, capability_id: str, name: str, handler: Handler) -> None:
        """Registers the handler of an operation. Raises HandlerError for a second one."""
        if (capability_id, name) in self._handlers:
            raise HandlerError(f"{capability_id}/{name} has a handler already")
        self._handlers[capability_id, name] = handler

    def settings(self, validator: S) -> S:
        """Registers the plugin's own check of settings, which runs after that of the settings schema."""
        self._settings_validator = validator
        return validator

    def health(self, handler: A) -> A:
        """Registers what answers a health check; without it the last set_health does."""
        self._health_handler = handler
        return handler

    def started(self, handler: I) -> I:
        """Registers what is to be done once the settings are known and before the first request."""
        self._started = handler
        return handler

    def set_health(self, status: str, message: Optional[str] = None) -> None:
        """Says how the plugin is now, and tells hosts that watch: healthy, degraded or unhealthy."""
        if status not in HEALTH_STATUSES:
            raise ValueError(f"a status is one of {', '.join(HEALTH_STATUSES)}")
        if (status, message) == (self._report.status, self._report.message):
            return
        self._report = HealthReport(status, utc_now(), message)
        if self._connection is not None:
            self._connection.health_changed(self._report)

    def check(self) -> None:
        """Raises HandlerError if an operation of the manifest has no handler."""
        for capability in self.package.manifest.capabilities:
            for spec in capability.operations:
                if (spec.capability_id, spec.name) not in self._handlers:
                    raise HandlerError(f"the manifest declares {spec.capability_id}/{spec.name}, and it has no handler")

    # Running.

    async def serve(self, transport: Transport) -> int:
        """Serves one session and returns the exit status of the process."""
        from .connection import Connection

        self.check()
        connection = Connection(self, transport)
        self._connection = connection
        try:
            return await connection.serve()
        finally:
            self._connection = None

    def run(self) -> int:
        """Serves the host that started this process, and returns the exit status when the session has ended."""
        self.check()
        path = os.environ.get(ENV_SOCKET)
        read_fd, write_fd = take_stdio()
        if path:
            try:
                read_fd = write_fd = connect_unix(path)
            except OSError as fault:
                log(f"the host's socket: {fault.strerror}")
                return 1
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(self._run(read_fd, write_fd))

    async def _run(self, read_fd: int, write_fd: int) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._terminate)
        return await self.serve(Transport(read_fd, write_fd))

    def _terminate(self) -> None:
        if self._connection is not None:
            self._connection.leave("the process was asked to terminate")

    # What a connection asks.

    def _handler(self, spec: "OperationSpec") -> Handler:
        return self._handlers[spec.capability_id, spec.name]

    async def _validate_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        if self._settings_validator is None:
            return settings
        return await self._settings_validator(settings)

    async def _initialize(self, connection: "Connection") -> HealthReport:
        if self._started is not None:
            await self._started(dict(connection.settings))
        return self._report

    async def _health(self) -> HealthReport:
        if self._health_handler is None:
            return self._report
        try:
            return await self._health_handler()
        except Exception as fault:
            log_exception("the health handler", fault, debug=False)
            return HealthReport("unhealthy", utc_now(), "the plugin's own check of its health failed")

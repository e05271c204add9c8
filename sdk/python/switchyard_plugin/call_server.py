"""One connection of the call protocol: a request, an answer, the next."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Optional

from .call_errors import CallError
from .call_models import HealthResult, InspectRequest, OperateRequest, Project
from .call_read import Lines, Wrong, filled_text, members_of, read_project, read_request, string, strings
from .call_words import (
    APPLICATION,
    BAD_PARAMS,
    CAPABILITY_INSPECT,
    CAPABILITY_OPERATE,
    INTERNAL,
    MALFORMED,
    MAX_MESSAGE_BYTES,
    METHOD_HEALTH,
    METHOD_INITIALIZE,
    NEEDS,
    NOT_GRANTED,
    PROTOCOL,
    PROTOCOL_MISMATCH,
    SCOPE_FILES_READ,
    STATE,
    UNKNOWN_METHOD,
)
from .call_write import failure, render_health, render_inspection, render_operation, valid
from .report import log
from .transport import Transport
from .wire import strictjson

if TYPE_CHECKING:
    from .call import CallPlugin


class Server:
    """One connection."""

    def __init__(self, plugin: CallPlugin, transport: Transport) -> None:
        self.plugin = plugin
        self.manifest = plugin.manifest
        self.transport = transport
        self.initialized = False
        self.grants: tuple[str, ...] = ()
        self._lines = Lines()
        self._pending: deque[Any] = deque()
        self._arrived = asyncio.Event()
        self._ended = False
        self._stopped = False
        self._task: Optional[asyncio.Task[Any]] = None
        self._begun = False

    async def serve(self) -> int:
        self.transport.start(self._received, self._input_ended)
        while not self._stopped:
            while not self._pending:
                if self._ended or self._stopped:
                    await self.transport.finish(1.0)
                    return 1 if self._stopped else 0
                self._arrived.clear()
                await self._arrived.wait()
            self.transport.write(await self._answer(self._pending.popleft()) + b"\n")
            await self.transport.drain()
        await self.transport.finish(1.0)
        return 1

    def _received(self, data: bytes) -> None:
        self._pending.extend(self._lines.feed(data))
        self._arrived.set()

    def _input_ended(self, failure: Optional[OSError]) -> None:
        self._pending.extend(self._lines.end())
        self._ended = True
        self._arrived.set()
        self._cancel()

    def terminate(self) -> None:
        """The process was asked to end: the running call is cancelled and may still answer."""
        self._stopped = True
        self._arrived.set()
        self._cancel()

    def _cancel(self) -> None:
        if self._task is not None and self._begun:
            self._task.cancel()

    async def _answer(self, line: Any) -> bytes:
        try:
            number, method, params, has_params = read_request(line)
        except Wrong as fault:
            return failure("null", MALFORMED, f"malformed request: {fault}")
        try:
            result = await self._dispatch(method, params, has_params)
            text = f'{{"jsonrpc":"2.0","id":{number},"result":{result}}}'.encode()
            if len(text) > MAX_MESSAGE_BYTES:
                raise CallError(f"the handler returned an invalid result: a response of {len(text)} bytes", INTERNAL)
            return text
        except CallError as fault:
            return failure(number, fault.code, str(fault))

    async def _dispatch(self, method: str, params: Any, has_params: bool) -> str:
        if method == METHOD_INITIALIZE:
            return self._initialize(params, has_params)
        if not self.initialized:
            raise CallError("initialize must be called first", STATE)
        if method == METHOD_HEALTH:
            members_of(params, has_params, {})
            result = await self._call(method, self.plugin._health or _healthy)
            return valid(render_health, result)
        if method == CAPABILITY_INSPECT:
            self._allowed(CAPABILITY_INSPECT)
            found = members_of(params, has_params, {"project": read_project})
            self._may_have_root(found["project"])
            handler = self.plugin._inspect
            assert handler is not None
            asked = InspectRequest(found["project"], self.grants)
            return valid(render_inspection, await self._call(method, lambda: handler(asked)))
        if method == CAPABILITY_OPERATE:
            self._allowed(CAPABILITY_OPERATE)
            found = members_of(params, has_params, {"project": read_project, "action": filled_text, "input": lambda value, at: value})
            self._may_have_root(found["project"])
            operate = self.plugin._operate
            assert operate is not None
            wanted = OperateRequest(found["project"], found["action"], found["input"], self.grants)
            return valid(render_operation, await self._call(method, lambda: operate(wanted)))
        raise CallError(f"unknown method {strictjson.quote(method)}", UNKNOWN_METHOD)

    def _initialize(self, params: Any, has_params: bool) -> str:
        if self.initialized:
            raise CallError("initialize was called already", STATE)
        found = members_of(params, has_params, {"protocolVersion": string, "hostVersion": string, "grantedScopes": strings})
        if found["protocolVersion"] != PROTOCOL:
            raise CallError(f"this plugin speaks {PROTOCOL}, not {strictjson.quote(found['protocolVersion'])}", PROTOCOL_MISMATCH)
        scopes: list[str] = found["grantedScopes"]
        for i, scope in enumerate(scopes):
            if scope in scopes[:i]:
                raise CallError(f"params.grantedScopes[{i}] occurs twice", BAD_PARAMS)
            if scope not in self.manifest["requestedScopes"]:
                raise CallError(f"the scope {strictjson.quote(scope)} was never requested", NOT_GRANTED)
        self.initialized, self.grants = True, tuple(scopes)
        identity = {n: v for n, v in self.manifest.items() if n not in ("executable", "arguments")}
        return strictjson.dumps({"protocolVersion": PROTOCOL, "plugin": identity, "grantedScopes": scopes})

    def _allowed(self, capability: str) -> None:
        if capability not in self.manifest["capabilities"]:
            raise CallError(f"the capability {capability} is not declared", NOT_GRANTED)
        if NEEDS[capability] not in self.grants:
            raise CallError(f"{capability} needs the scope {NEEDS[capability]}, which is not granted", NOT_GRANTED)

    def _may_have_root(self, project: Project) -> None:
        if project.root is not None and SCOPE_FILES_READ not in self.grants:
            raise CallError(f"a project root needs the scope {SCOPE_FILES_READ}, which is not granted", NOT_GRANTED)

    async def _call(self, method: str, handler: Callable[[], Awaitable[Any]]) -> Any:
        """Runs one handler as a task, which the end of the input cancels."""

        async def begin() -> Any:
            self._begun = True
            return await handler()

        self._begun = False
        self._task = asyncio.get_running_loop().create_task(begin())
        # Its first step is taken whatever has arrived meanwhile: quick handlers answer even if the input ended at once.
        await asyncio.sleep(0)
        if (self._ended and not self._pending or self._stopped) and not self._task.done():
            self._task.cancel()
        try:
            await asyncio.wait([self._task])
            return self._task.result()
        except asyncio.CancelledError:
            raise CallError("the call was cancelled", APPLICATION) from None
        except CallError as fault:
            if fault.code not in (APPLICATION, BAD_PARAMS, NOT_GRANTED):
                raise CallError(f"the handler returned an error with the reserved code {fault.code}", INTERNAL) from None
            raise
        except Exception:
            import traceback

            log(f"{self.manifest['id']}: the handler of {method} failed")
            traceback.print_exc()
            raise CallError("the handler failed", INTERNAL) from None
        finally:
            self._task = None


async def _healthy() -> HealthResult:
    return HealthResult("healthy")

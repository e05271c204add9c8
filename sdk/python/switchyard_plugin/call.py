"""The call protocol switchyard.plugin/v1 from the plugin's side: inspect a project and operate on it.

The host starts the plugin anew for every call. docs/protocol-call.md has the rules;
requests are answered one after the other, each with one line.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Awaitable, Callable, Optional, TypeVar

from .report import log
from .transport import Transport, take_stdio
from .wire import strictjson
from .wire.ids import utc_now

PROTOCOL = "switchyard.plugin/v1"
MANIFEST_VERSION = "switchyard.plugin-manifest/v1"
MANIFEST_FILE = "plugin.json"
MAX_MANIFEST_BYTES = 64 << 10
MAX_MESSAGE_BYTES = 1 << 20
"""Bytes of one request or response, without its line feed."""
MAX_ERROR_BYTES = 1024
"""Bytes of the message of an error."""

SCOPE_METADATA_READ = "project.metadata.read"
SCOPE_FILES_READ = "project.files.read"
SCOPE_OPERATE = "project.operate"
SCOPES = (SCOPE_METADATA_READ, SCOPE_FILES_READ, SCOPE_OPERATE)
CAPABILITY_INSPECT = "project.inspect"
CAPABILITY_OPERATE = "project.operate"

METHOD_INITIALIZE = "initialize"
METHOD_HEALTH = "plugin.health"

OPERATE_STATUSES = ("succeeded", "partially_succeeded", "failed")

MALFORMED = -32700
UNKNOWN_METHOD = -32601
BAD_PARAMS = -32602
INTERNAL = -32603
APPLICATION = -32000
PROTOCOL_MISMATCH = -32001
STATE = -32002
NOT_GRANTED = -32003

_MEANINGS = {
    MALFORMED: "malformed request",
    UNKNOWN_METHOD: "unknown method",
    BAD_PARAMS: "bad parameters",
    INTERNAL: "the handler failed",
    APPLICATION: "the plugin reported an error",
    PROTOCOL_MISMATCH: "protocol mismatch",
    STATE: "not initialized, or initialized already",
    NOT_GRANTED: "capability or scope not granted",
}
_NEEDS = {CAPABILITY_INSPECT: SCOPE_METADATA_READ, CAPABILITY_OPERATE: SCOPE_OPERATE}


class CallError(Exception):
    """An error that a handler answers with: of the plugin's own, unless code says otherwise."""

    def __init__(self, message: str, code: int = APPLICATION) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def bad_input(message: str) -> CallError:
    """The error for an input that an action cannot take."""
    return CallError(message, BAD_PARAMS)


def unknown_action(action: str) -> CallError:
    """The error for an action that the plugin does not offer."""
    return bad_input(f"unknown action {strictjson.quote(action)}")


def not_granted(scope: str) -> CallError:
    """The error for work that needs a scope which was withheld."""
    return CallError(f"the scope {scope} is not granted", NOT_GRANTED)


@dataclass(frozen=True)
class Project:
    """What the host tells about a project; root is None unless project.files.read was granted."""

    id: str
    display_name: str
    root: Optional[str] = None


@dataclass(frozen=True)
class HealthResult:
    """The answer to plugin.health: healthy, degraded or unhealthy; checked now unless it says when."""

    status: str
    message: str = ""
    checked_at: Optional[datetime] = None


@dataclass(frozen=True)
class InspectRequest:
    """Asks what the plugin sees in a project."""

    project: Project
    granted_scopes: tuple[str, ...]

    def granted(self, scope: str) -> bool:
        """Whether the host granted a scope to this process."""
        return scope in self.granted_scopes


@dataclass(frozen=True)
class OperateRequest:
    """Asks for one action; input is any JSON value."""

    project: Project
    action: str
    input: Any
    granted_scopes: tuple[str, ...]

    def granted(self, scope: str) -> bool:
        """Whether the host granted a scope to this process."""
        return scope in self.granted_scopes


@dataclass(frozen=True)
class Fact:
    """One thing that the plugin found out. Only value and warning may be blank."""

    id: str
    label: str
    value: str
    source: str
    warning: str = ""


@dataclass(frozen=True)
class Action:
    """Something that the plugin offers to do through project.operate; risk is free text."""

    id: str
    name: str
    description: str
    risk: str


@dataclass(frozen=True)
class InspectResult:
    """The answer to project.inspect."""

    summary: str
    facts: tuple[Fact, ...] | list[Fact] = ()
    actions: tuple[Action, ...] | list[Action] = ()
    warnings: tuple[str, ...] | list[str] = ()
    observed_at: Optional[datetime] = None


@dataclass(frozen=True)
class OperateResult:
    """The answer to project.operate: status is succeeded, partially_succeeded or failed; output is any JSON value, {} where there is nothing to say."""

    status: str
    summary: str
    output: Any = field(default_factory=dict)


class CallManifestError(ValueError):
    """A manifest of the call protocol that breaks a rule."""


class _Wrong(Exception):
    """What is wrong with the members of a request; the message may be sent."""


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
        server = _Server(self, transport)
        if signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, server.terminate)
        return await server.serve()


_TOO_LONG = object()


class _Lines:
    """Cuts what arrives into lines in bounded memory; a line that is too long is _TOO_LONG."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[Any]:
        out: list[Any] = []
        self._buffer += data
        while True:
            end = self._buffer.find(b"\n")
            if end < 0:
                break
            out.append(_TOO_LONG if self._skipping or end > MAX_MESSAGE_BYTES else bytes(self._buffer[:end]))
            self._skipping = False
            del self._buffer[: end + 1]
        if len(self._buffer) > MAX_MESSAGE_BYTES:
            self._skipping = True
            self._buffer.clear()
        return out

    def end(self) -> list[Any]:
        if self._skipping:
            return [_TOO_LONG]
        return [bytes(self._buffer)] if self._buffer else []


class _Server:
    """One connection."""

    def __init__(self, plugin: CallPlugin, transport: Transport) -> None:
        self.plugin = plugin
        self.manifest = plugin.manifest
        self.transport = transport
        self.initialized = False
        self.grants: tuple[str, ...] = ()
        self._lines = _Lines()
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
            number, method, params, has_params = _request(line)
        except _Wrong as fault:
            return _failure("null", MALFORMED, f"malformed request: {fault}")
        try:
            result = await self._dispatch(method, params, has_params)
            text = f'{{"jsonrpc":"2.0","id":{number},"result":{result}}}'.encode()
            if len(text) > MAX_MESSAGE_BYTES:
                raise CallError(f"the handler returned an invalid result: a response of {len(text)} bytes", INTERNAL)
            return text
        except CallError as fault:
            return _failure(number, fault.code, str(fault))

    async def _dispatch(self, method: str, params: Any, has_params: bool) -> str:
        if method == METHOD_INITIALIZE:
            return self._initialize(params, has_params)
        if not self.initialized:
            raise CallError("initialize must be called first", STATE)
        if method == METHOD_HEALTH:
            _members(params, has_params, {})
            result = await self._call(method, self.plugin._health or _healthy)
            return _valid(_health, result)
        if method == CAPABILITY_INSPECT:
            self._allowed(CAPABILITY_INSPECT)
            found = _members(params, has_params, {"project": _project})
            self._may_have_root(found["project"])
            handler = self.plugin._inspect
            assert handler is not None
            asked = InspectRequest(found["project"], self.grants)
            return _valid(_inspection, await self._call(method, lambda: handler(asked)))
        if method == CAPABILITY_OPERATE:
            self._allowed(CAPABILITY_OPERATE)
            found = _members(params, has_params, {"project": _project, "action": _text, "input": lambda value, at: value})
            self._may_have_root(found["project"])
            operate = self.plugin._operate
            assert operate is not None
            wanted = OperateRequest(found["project"], found["action"], found["input"], self.grants)
            return _valid(_operation, await self._call(method, lambda: operate(wanted)))
        raise CallError(f"unknown method {strictjson.quote(method)}", UNKNOWN_METHOD)

    def _initialize(self, params: Any, has_params: bool) -> str:
        if self.initialized:
            raise CallError("initialize was called already", STATE)
        found = _members(params, has_params, {"protocolVersion": _string, "hostVersion": _string, "grantedScopes": _strings})
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
        if _NEEDS[capability] not in self.grants:
            raise CallError(f"{capability} needs the scope {_NEEDS[capability]}, which is not granted", NOT_GRANTED)

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


def _request(line: Any) -> tuple[str, str, Any, bool]:
    """Reads a line as a request: its id as JSON, method, params. Raises _Wrong."""
    if line is _TOO_LONG:
        raise _Wrong(f"more than {MAX_MESSAGE_BYTES} bytes")
    try:
        members = strictjson.loads(line)
    except strictjson.StrictError as fault:
        raise _Wrong(str(fault)) from None
    has_params = isinstance(members, dict) and "params" in members
    wanted = {"jsonrpc": _string, "id": _integer, "method": _text}
    if has_params:
        wanted["params"] = lambda value, at: value
    found = _object(members, "", wanted)
    if found["jsonrpc"] != "2.0":
        raise _Wrong('jsonrpc must be "2.0"')
    # -0 is the one integer that is not written as it was read.
    number = str(found["id"])
    if found["id"] == 0 and re.search(rb'"id"[ \t\r\n]*:[ \t\r\n]*-0', line):
        number = "-0"
    return number, found["method"], found.get("params"), has_params


def _failure(number: str, code: int, message: str) -> bytes:
    message = strictjson.cut(strictjson.clean(message.strip()), MAX_ERROR_BYTES).strip() or _MEANINGS[code]
    return f'{{"jsonrpc":"2.0","id":{number},"error":{{"code":{code},"message":{strictjson.dumps(message)}}}}}'.encode()


# Reading.

Check = Callable[[Any, str], Any]


def _object(value: Any, at: str, wanted: dict[str, Check], optional: str = "") -> dict[str, Any]:
    if type(value) is not dict:
        raise _Wrong(f"{at + ' ' if at else ''}must be an object")
    prefix = f"{at}." if at else ""
    found = {}
    for name, item in value.items():
        if name not in wanted:
            raise _Wrong(f"{at + ' ' if at else ''}has the unknown member {strictjson.quote(name)}")
        found[name] = wanted[name](item, prefix + name)
    for name in wanted:
        if name not in found and name != optional:
            raise _Wrong(f"{prefix}{name} is required")
    return found


def _members(params: Any, has_params: bool, wanted: dict[str, Check]) -> dict[str, Any]:
    if not has_params:
        raise CallError("params is required", BAD_PARAMS)
    try:
        return _object(params, "", wanted)
    except _Wrong as fault:
        raise CallError(f"params: {fault}", BAD_PARAMS) from None


def _string(value: Any, at: str) -> str:
    if type(value) is not str:
        raise _Wrong(f"{at} must be a string")
    return value


def _text(value: Any, at: str) -> str:
    if not _string(value, at).strip():
        raise _Wrong(f"{at} must not be blank")
    return str(value)


def _integer(value: Any, at: str) -> int:
    if type(value) is not int:
        raise _Wrong(f"{at} must be an integer")
    return value


def _strings(value: Any, at: str) -> list[str]:
    if type(value) is not list:
        raise _Wrong(f"{at} must be an array")
    return [_string(item, f"{at}[{i}]") for i, item in enumerate(value)]


def _root(value: Any, at: str) -> str:
    if not os.path.isabs(_text(value, at)):
        raise _Wrong(f"{at} must be an absolute path")
    return str(value)


def _project(value: Any, at: str) -> Project:
    found = _object(value, at, {"id": _text, "displayName": _string, "root": _root}, optional="root")
    return Project(found["id"], found["displayName"], found.get("root"))


def parse_manifest(document: bytes) -> dict[str, Any]:
    """Reads a plugin.json of the call protocol. Raises CallManifestError."""
    if len(document) > MAX_MANIFEST_BYTES:
        raise CallManifestError(f"{MANIFEST_FILE}: more than {MAX_MANIFEST_BYTES} bytes")
    try:
        found = _object(
            strictjson.loads(document),
            "",
            {
                "schemaVersion": _string,
                "id": _string,
                "name": _text,
                "version": _text,
                "protocolVersion": _string,
                "executable": _text,
                "arguments": _strings,
                "capabilities": _strings,
                "requestedScopes": _strings,
            },
        )
        _check_manifest(found)
    except (strictjson.StrictError, _Wrong) as fault:
        raise CallManifestError(f"{MANIFEST_FILE}: {fault}") from None
    order = ("schemaVersion", "id", "name", "version", "protocolVersion", "executable", "arguments", "capabilities", "requestedScopes")
    return {name: found[name] for name in order}


def _check_manifest(found: dict[str, Any]) -> None:
    for name, wanted in (("schemaVersion", MANIFEST_VERSION), ("protocolVersion", PROTOCOL)):
        if found[name] != wanted:
            raise _Wrong(f'{name} must be "{wanted}"')
    if not re.fullmatch(r"[a-z][a-z0-9.-]{0,63}", found["id"]):
        raise _Wrong("id must match ^[a-z][a-z0-9.-]{0,63}$")
    for name, least, most, known in (
        ("capabilities", 1, 16, (CAPABILITY_INSPECT, CAPABILITY_OPERATE)),
        ("requestedScopes", 0, 16, SCOPES),
    ):
        values = found[name]
        if not least <= len(values) <= most or len(set(values)) != len(values) or any(v not in known for v in values):
            raise _Wrong(f"{name} must be {least} to {most} different ones of {', '.join(known)}")
    for capability in found["capabilities"]:
        if _NEEDS[capability] not in found["requestedScopes"]:
            raise _Wrong(f"{capability} needs {_NEEDS[capability]} among requestedScopes")


# Writing: what a handler returned, as it may be sent.


def _valid(render: Callable[[Any], dict[str, Any]], result: Any) -> str:
    try:
        text, _ = strictjson.check(render(result))
        return text
    except (strictjson.StrictError, _Wrong, AttributeError, TypeError) as fault:
        raise CallError(f"the handler returned an invalid result: {fault}", INTERNAL) from None


def _filled(text: str, at: str) -> str:
    if not text.strip():
        raise _Wrong(f"{at} must not be blank")
    return strictjson.clean(text)


def _moment(at: Optional[datetime]) -> str:
    moment = (at or utc_now()).astimezone(timezone.utc).replace(tzinfo=None)
    return moment.isoformat(timespec="microseconds" if moment.microsecond else "seconds") + "Z"


def _health(result: HealthResult) -> dict[str, Any]:
    if result.status not in ("healthy", "degraded", "unhealthy"):
        raise _Wrong("status must be healthy, degraded or unhealthy")
    message = {"message": strictjson.clean(result.message)} if result.message else {}
    return {"status": result.status, **message, "checkedAt": _moment(result.checked_at)}


def _inspection(result: InspectResult) -> dict[str, Any]:
    facts = []
    for i, fact in enumerate(result.facts):
        at = f"facts[{i}]."
        warning = {"warning": strictjson.clean(fact.warning)} if fact.warning else {}
        facts.append(
            {
                "id": _filled(fact.id, at + "id"),
                "label": _filled(fact.label, at + "label"),
                "value": strictjson.clean(fact.value),
                "source": _filled(fact.source, at + "source"),
                **warning,
            }
        )
    actions = []
    for i, action in enumerate(result.actions):
        at = f"actions[{i}]."
        if any(action.id == a["id"] for a in actions):
            raise _Wrong(f"{at}id occurs twice")
        actions.append(
            {
                "id": _filled(action.id, at + "id"),
                "name": _filled(action.name, at + "name"),
                "description": _filled(action.description, at + "description"),
                "risk": _filled(action.risk, at + "risk"),
            }
        )
    return {
        "summary": _filled(result.summary, "summary"),
        "facts": facts,
        "actions": actions,
        "warnings": [strictjson.clean(w) for w in result.warnings],
        "observedAt": _moment(result.observed_at),
    }


def _operation(result: OperateResult) -> dict[str, Any]:
    if result.status not in OPERATE_STATUSES:
        raise _Wrong("status must be succeeded, partially_succeeded or failed")
    return {
        "status": result.status,
        "summary": _filled(result.summary, "summary"),
        "output": result.output,
    }

"""A host for the tests of plugin authors: it speaks the session protocol to a plugin in the same process, or to a command.

    async with Host.of(plugin) as host:
        await host.open(settings={"greeting": "hello"})
        outcome = await host.call("catalog.index", "start", {"mode": "full"})
        assert outcome.payload == {"indexed": 3}

It reads what the plugin sends as strictly as a real host, and checks payloads
against no schema: that is the plugin's side of the test.
"""

from __future__ import annotations

import asyncio
import os
import socket
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, AsyncIterator, Iterable, Mapping, Optional

from .models import Grant, Limits, OperationReceipt
from .plugin import SessionPlugin
from .transport import Transport
from .wire import DEFAULT_MAX_FRAME, features, jcs, shapes, strictjson
from .wire.credit import Credit
from .wire.envelope import MESSAGE_TYPES, Envelope, Writer, scan
from .wire.frames import FrameReader, encode
from .wire.ids import format_timestamp, uuid7

TIMEOUT = 10.0
"""Seconds after which an answer is missed."""


class ProtocolViolation(AssertionError):
    """The plugin broke a rule of the protocol, or ended the session."""


@dataclass(frozen=True)
class Outcome:
    """How a request ended: kind is response, error or cancelled."""

    kind: str
    payload: Any = None
    error: Optional[dict[str, Any]] = None
    receipt: Optional[OperationReceipt] = None
    items: tuple[Any, ...] = ()
    progress: tuple[dict[str, Any], ...] = ()

    @property
    def code(self) -> Optional[str]:
        """The code of the error, if it is one."""
        return self.error["code"] if self.error is not None else None


@dataclass
class Call:
    """One request that is running."""

    host: "Host"
    request_id: str
    operation_id: str
    streams: bool
    items: list[Any] = field(default_factory=list)
    progress: list[dict[str, Any]] = field(default_factory=list)
    credit: Credit = field(default_factory=Credit)
    """What the plugin allows of the request stream."""
    credit_for_items: Credit = field(default_factory=Credit)
    """What the plugin has left of the response stream."""
    cancel_acknowledged: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _outcome: Optional[Outcome] = None
    _sent: int = 0
    _sent_bytes: int = 0
    _received_bytes: int = 0
    _auto: bool = True

    async def _wait(self, what: Any) -> None:
        async with asyncio.timeout(self.host.timeout):
            while not what():
                self.host.check()
                self._changed.clear()
                await self._changed.wait()

    async def outcome(self) -> Outcome:
        """Waits for the end."""
        await self._wait(lambda: self._outcome is not None)
        assert self._outcome is not None
        return self._outcome

    async def wait_for_progress(self, count: int = 1) -> None:
        """Waits until so many progress updates have come, or the end."""
        await self._wait(lambda: len(self.progress) >= count or self._outcome is not None)

    async def wait_for_items(self, count: int) -> None:
        """Waits until so many items have come, or the end."""
        await self._wait(lambda: len(self.items) >= count or self._outcome is not None)

    def cancel(self, reason: str = "the test wants it") -> None:
        """Asks the operation to stop."""
        self.host.send("cancel", {"requestId": self.request_id, "reason": reason})

    def grant(self, items: int, size: int) -> None:
        """Gives credit for the response stream."""
        self.host.send("flow", {"requestId": self.request_id, "creditItems": items, "creditBytes": size})

    async def send_item(self, payload: Any) -> None:
        """Sends an item of the request stream; waits for credit."""
        body = {"requestId": self.request_id, "operationId": self.operation_id, "index": self._sent, "payload": payload}
        size = len(self.host.encode("streamItem", body))
        await self._wait(lambda: self.credit.covers(size) or self._outcome is not None)
        self.credit.take(size)
        self._sent_bytes += self.host.send("streamItem", body)
        self._sent += 1

    def end_items(self) -> None:
        """Ends the request stream."""
        self.host.send(
            "streamEnd",
            {"requestId": self.request_id, "operationId": self.operation_id, "itemCount": self._sent, "byteCount": self._sent_bytes},
        )


class Host:
    """The host's side of one session."""

    def __init__(self, read_fd: int, write_fd: int, timeout: float = TIMEOUT) -> None:
        self.timeout = timeout
        self.frames: list[Envelope] = []
        """Every frame of the plugin, in order."""
        self.exit_status: Optional[int] = None
        self._fds = (read_fd, write_fd)
        self._plugin: Optional[SessionPlugin] = None
        self._plugin_fd = -1
        self._command: Optional[list[str]] = None
        self._environment: Mapping[str, str] = {}
        self._directory: Optional[str] = None
        self._process: Optional[asyncio.subprocess.Process] = None
        self._serving: Optional[asyncio.Task[int]] = None
        self._reader = FrameReader()
        self._writer = Writer("1.2")
        self._calls: dict[str, Call] = {}
        self._arrived = asyncio.Event()
        self._fault: Optional[BaseException] = None
        self._ended = False
        self._sequence = 0

    @classmethod
    def of(cls, plugin: SessionPlugin, timeout: float = TIMEOUT) -> "Host":
        """A host of a plugin that runs in this process."""
        ours, theirs = socket.socketpair()
        host = cls(ours.fileno(), ours.detach(), timeout)
        host._plugin, host._plugin_fd = plugin, theirs.detach()
        return host

    @classmethod
    def of_command(
        cls, command: Iterable[str], *, directory: str, state: str, environment: Optional[Mapping[str, str]] = None, timeout: float = TIMEOUT
    ) -> "Host":
        """A host of a plugin that runs as a process, in its package's directory."""
        host = cls(-1, -1, timeout)
        host._command = list(command)
        host._directory = directory
        base = {n: os.environ[n] for n in ("PATH", "TMPDIR", "LANG") if n in os.environ}
        host._environment = {
            **base,
            "SWITCHYARD_PLUGIN_PROTOCOL": "session/1",
            "SWITCHYARD_PLUGIN_STATE": state,
            **(environment or {}),
        }
        return host

    async def __aenter__(self) -> "Host":
        if self._plugin is not None:
            self._serving = asyncio.get_running_loop().create_task(self._plugin.serve(Transport(self._plugin_fd, self._plugin_fd)))
        elif self._command is not None:
            theirs_in, ours_out = os.pipe()
            ours_in, theirs_out = os.pipe()
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=theirs_in, stdout=theirs_out, cwd=self._directory, env=dict(self._environment)
            )
            os.close(theirs_in)
            os.close(theirs_out)
            self._fds = (ours_in, ours_out)
        self._transport = Transport(*self._fds)
        self._transport.start(self._received, self._closed)
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def close(self) -> Optional[int]:
        """Closes the host's end, waits for the plugin's, and returns its exit status."""
        if self._ended and self.exit_status is not None:
            return self.exit_status
        await self._transport.finish(1.0)
        self._transport.close()
        for fd in set(self._fds):
            os.close(fd)
        self._ended = True
        try:
            async with asyncio.timeout(self.timeout):
                if self._serving is not None:
                    self.exit_status = await self._serving
                    os.close(self._plugin_fd)
                elif self._process is not None:
                    self.exit_status = await self._process.wait()
        except TimeoutError:
            if self._process is not None:
                self._process.kill()
                await self._process.wait()
            raise ProtocolViolation("the plugin did not end") from None
        return self.exit_status

    # Frames.

    def encode(self, kind: str, body: Any, cause: Optional[str] = None) -> bytes:
        """Returns the JSON of a frame that send would send."""
        return self._writer.encode(kind, strictjson.dumps(body), cause)

    def send(self, kind: str, body: Any, cause: Optional[str] = None) -> int:
        """Sends a message and returns the length of its frame."""
        frame = self.encode(kind, body, cause)
        self._writer.commit()
        self._transport.write(encode(frame))
        return len(frame)

    def send_raw(self, data: bytes) -> None:
        """Sends bytes as they are."""
        self._transport.write(data)

    def check(self) -> None:
        """Raises ProtocolViolation if the plugin has broken a rule or is gone."""
        if self._fault is not None:
            raise ProtocolViolation(f"the plugin broke the protocol: {self._fault}") from self._fault
        if self._ended:
            raise ProtocolViolation("the plugin ended the session")

    def _closed(self, failure: Optional[OSError]) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        self._arrived.set()
        for call in self._calls.values():
            call._changed.set()

    def _received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            for frame in self._reader.frames():
                self._take(scan(frame))
        except Exception as fault:
            self._fault = fault
        self._wake()

    def _take(self, envelope: Envelope) -> None:
        if envelope.sequence != self._sequence + 1:
            raise ProtocolViolation("the plugin's sequence does not rise by one")
        self._sequence = envelope.sequence
        if MESSAGE_TYPES[envelope.type][0] == "host":
            raise ProtocolViolation(f"{envelope.type} from a plugin")
        body = shapes.check(envelope.type, envelope.body)
        self.frames.append(envelope._replace(body=body))
        call = self._calls.get(body["requestId"]) if envelope.type != "receipt" and body.get("requestId") else None
        if call is None:
            return
        if call._outcome is not None and envelope.type != "cancelAck":
            raise ProtocolViolation(f"{envelope.type} after the end of its request")
        if envelope.type == "progress":
            call.progress.append(body)
        elif envelope.type == "streamItem":
            if body["index"] != len(call.items):
                raise ProtocolViolation("an item out of its order")
            if not call.credit_for_items.receive(envelope.size):
                raise ProtocolViolation("an item beyond the credit")
            call.items.append(body["payload"])
            call._received_bytes += envelope.size
            if call._auto:
                call.credit_for_items.grant(1, envelope.size)
                call.grant(1, envelope.size)
        elif envelope.type == "streamEnd":
            if (body["itemCount"], body["byteCount"]) != (len(call.items), call._received_bytes):
                raise ProtocolViolation("streamEnd counts other items or bytes than were sent")
        elif envelope.type == "flow":
            call.credit.grant(body["creditItems"], body["creditBytes"])
        elif envelope.type == "cancelAck":
            call.cancel_acknowledged = True
        elif envelope.type in ("response", "error", "cancelled"):
            call._outcome = Outcome(
                envelope.type,
                body.get("payload"),
                body if envelope.type == "error" else None,
                receipt(body["receipt"]) if "receipt" in body else None,
                tuple(call.items),
                tuple(call.progress),
            )

    async def receive(self, kind: str, after: int = 0) -> Envelope:
        """Waits for the first frame of a type, from a place in frames on."""
        async with asyncio.timeout(self.timeout):
            while True:
                for envelope in self.frames[after:]:
                    if envelope.type == kind:
                        return envelope
                self.check()
                self._arrived.clear()
                await self._arrived.wait()

    async def ask(self, kind: str, body: Any, answer: str) -> dict[str, Any]:
        """Sends a message and returns the body of what answers it; an error that answers is raised as ProtocolViolation."""
        frame = self.encode(kind, body)
        message_id = scan(frame).message_id
        self._writer.commit()
        self._transport.write(encode(frame))
        async with asyncio.timeout(self.timeout):
            while True:
                for envelope in self.frames:
                    if envelope.causation_id == message_id:
                        if envelope.type != answer:
                            raise ProtocolViolation(f"{envelope.type} answers {kind}: {envelope.body}")
                        return dict(envelope.body)
                self.check()
                self._arrived.clear()
                await self._arrived.wait()

    # A session.

    async def open(
        self,
        *,
        settings: Optional[Mapping[str, Any]] = None,
        grants: Iterable[Grant] = (),
        limits: Limits = Limits(60_000, 10_000, 16),
        accepted_classes: Iterable[str] = ("public", "internal"),
        min_version: str = "1.0",
        max_version: str = "1.2",
        requires: Iterable[str] = (),
        supports: Iterable[str] = tuple(features.FEATURES),
        max_frame_bytes: int = DEFAULT_MAX_FRAME,
    ) -> dict[str, Any]:
        """Negotiates and initializes; returns initAck."""
        acknowledged = await self.hello(min_version, max_version, requires, supports, max_frame_bytes)
        version = features.parse_version(acknowledged["protocolVersion"])
        assert version is not None
        self._writer.use(version)
        chosen = dict(settings or {})
        body = {
            "instanceId": uuid7(),
            "grants": [
                {
                    "permissionsGrantId": g.permissions_grant_id,
                    "permissionId": g.permission_id,
                    "scope": g.scope,
                    **({"expiresAtUtc": format_timestamp(g.expires_at_utc)} if g.expires_at_utc else {}),
                }
                for g in grants
            ],
            "settings": chosen,
            "settingsDigest": jcs.digest(chosen),
            "limits": {
                "requestTimeoutMs": limits.request_timeout_ms,
                "heartbeatIntervalMs": limits.heartbeat_interval_ms,
                "maxInFlight": limits.max_in_flight,
            },
            "acceptedClasses": list(accepted_classes),
        }
        return await self.ask("init", body, "initAck")

    async def hello(
        self, min_version: str, max_version: str, requires: Iterable[str], supports: Iterable[str], max_frame_bytes: int
    ) -> dict[str, Any]:
        """Negotiates only; returns helloAck."""
        self._writer.version = max_version
        return await self.ask(
            "hello",
            {
                "hostVersion": "test",
                "protocol": {"min": min_version, "max": max_version},
                "requires": list(requires),
                "supports": list(supports),
                "codecs": ["json"],
                "maxFrameBytes": max_frame_bytes,
            },
            "helloAck",
        )

    def start(
        self,
        capability: str,
        operation: str,
        payload: Any = None,
        *,
        version: str = "1.0",
        idempotency_key: Optional[str] = None,
        attempt: int = 1,
        deadline: Optional[datetime] = None,
        grant_id: Optional[str] = None,
        payload_class: str = "internal",
        request_stream: bool = False,
        response_stream: bool = False,
        credit_items: int = 16,
        credit_bytes: int = 1 << 20,
        replenish: bool = True,
        operation_id: Optional[str] = None,
        **more: Any,
    ) -> Call:
        """Sends a request and returns the running call. With replenish, credit is given again as items come."""
        call = Call(self, uuid7(), operation_id or uuid7(), response_stream, _auto=replenish)
        body: dict[str, Any] = {
            "requestId": call.request_id,
            "operationId": call.operation_id,
            "idempotencyKey": idempotency_key,
            "attempt": attempt,
            "deadlineUtc": format_timestamp(deadline) if deadline else None,
            "capabilityId": capability,
            "operationName": operation,
            "operationVersion": version,
            "permissionsGrantId": grant_id,
            "payloadClass": payload_class,
            "payload": payload,
            **more,
        }
        if request_stream or response_stream:
            body["stream"] = {}
            if request_stream:
                body["stream"]["request"] = True
            if response_stream:
                body["stream"].update(response=True, initialCreditItems=credit_items, initialCreditBytes=credit_bytes)
                call.credit_for_items.grant(credit_items, credit_bytes)
        self._calls[call.request_id] = call
        self.send("request", body)
        return call

    async def call(self, capability: str, operation: str, payload: Any = None, **options: Any) -> Outcome:
        """Makes a request and waits for its end; see start for the options."""
        return await self.start(capability, operation, payload, **options).outcome()

    async def stream(self, capability: str, operation: str, payload: Any = None, **options: Any) -> AsyncIterator[Any]:
        """Makes a request and yields the items of its response stream. Raises ProtocolViolation if it does not end well."""
        call = self.start(capability, operation, payload, response_stream=True, **options)
        at = 0
        while True:
            await call.wait_for_items(at + 1)
            while at < len(call.items):
                yield call.items[at]
                at += 1
            if call._outcome is not None:
                if call._outcome.kind != "response":
                    raise ProtocolViolation(f"the stream ended with {call._outcome.error or call._outcome.kind}")
                return

    async def validate_settings(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Asks the plugin about settings; returns settingsValidated."""
        return await self.ask("settingsValidate", {"settings": dict(settings)}, "settingsValidated")

    async def health(self, watch: bool = False) -> dict[str, Any]:
        """Asks the plugin how it is; returns health."""
        return await self.ask("healthCheck", {"watch": watch}, "health")

    async def drain(self, grace_ms: int = 1000) -> Optional[int]:
        """Says goAway, closes the host's end once nothing runs, and returns the plugin's exit status."""
        self.send("goAway", {"lastAcceptedSequence": self._sequence, "reason": "the test ends", "graceMs": grace_ms})
        for call in list(self._calls.values()):
            await call.outcome()
        return await self.close()


def receipt(body: Mapping[str, Any]) -> OperationReceipt:
    """Returns a receipt of the wire as the model."""
    return OperationReceipt(
        receipt_id=body["receiptId"],
        plugin_id=body["pluginId"],
        publisher_id=body["publisherId"],
        package_version=body["packageVersion"],
        manifest_digest=body["manifestDigest"],
        capability_id=body["capabilityId"],
        operation_name=body["operationName"],
        operation_version=body["operationVersion"],
        operation_id=body["operationId"],
        idempotency_key=body["idempotencyKey"],
        attempt=body["attempt"],
        execution_state=body["executionState"],
        effect_state=body["effectState"],
        started_at_utc=body["startedAtUtc"],
        issued_at_utc=body["issuedAtUtc"],
        request_digest=body["requestDigest"],
        result_digest=body["resultDigest"],
        item_count=body["itemCount"],
        byte_count=body["byteCount"],
        error_code=body["errorCode"],
        expires_at_utc=body["expiresAtUtc"],
    )

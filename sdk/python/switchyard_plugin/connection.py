"""One session from the plugin's side: its frames, its state, its end.

Everything happens on one event loop. A frame is handled as it arrives and never
waits; handlers are tasks. What ends the connection is in one place (_break), and so
is what ends a request (requests.finish). How it opens is in opening.py, what comes
for a request that runs in inflight.py.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Mapping, Optional

from . import inflight, opening, requests
from .models import Grant, HealthReport, Limits, PluginError
from .recent import Recent
from .report import bounded, error_body, log, log_exception
from .schema import Schema
from .transport import Transport
from .wire import DEFAULT_MAX_FRAME, codes, features, shapes, strictjson
from .wire.envelope import MESSAGE_TYPES, Envelope, EnvelopeFault, Writer, scan
from .wire.fault import Fault
from .wire.frames import HEADER_SIZE, FrameReader
from .wire.ids import format_timestamp
from .wire.states import CONNECTION

if TYPE_CHECKING:
    from .operation import Operation
    from .plugin import SessionPlugin

ENDING = 2.0
"""Seconds that cancelled handlers and unsent frames have when the connection ends."""


class Connection:
    """A session of a plugin with its host over a transport."""

    def __init__(self, plugin: "SessionPlugin", transport: Transport) -> None:
        self.plugin = plugin
        self.transport = transport
        self.loop = asyncio.get_running_loop()
        self.settings: Mapping[str, Any] = {}
        self.grants: tuple[Grant, ...] = ()
        self.limits = Limits(1, 1, 1)
        self.accepted_classes: frozenset[str] = frozenset()
        self.max_frame = DEFAULT_MAX_FRAME
        self.active: dict[str, "Operation"] = {}
        self.ended = Recent()
        manifest = plugin.package.manifest
        lowest, highest = features.parse_version(manifest.protocol_min_version), features.parse_version(manifest.protocol_max_version)
        assert lowest is not None and highest is not None
        self._offer = features.plugin_offer(
            lowest, highest, manifest.features, streams=plugin.streams, requires_heartbeat=manifest.requires_heartbeat
        )
        self._writer = Writer(features.format_version(self._offer.max_version))
        self._reader = FrameReader()
        self._state = CONNECTION.start()
        self._version: Optional[features.Version] = None
        self._features: frozenset[str] = frozenset()
        self._sequence = 0
        self._messages = Recent()
        self._watches: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._grace: Optional[asyncio.TimerHandle] = None
        self._grace_ms = 0
        self._leaving = False
        self._initializing = False
        self._mute = False
        self._done: asyncio.Future[int] = self.loop.create_future()
        self._handlers = {
            "hello": partial(opening.hello, self),
            "init": partial(opening.init, self),
            "settingsValidate": partial(opening.settings_validate, self),
            "request": self._request,
            "error": self._error,
            "streamItem": partial(inflight.stream_item, self),
            "streamEnd": partial(inflight.stream_end, self),
            "flow": partial(inflight.flow, self),
            "cancel": partial(inflight.cancel, self),
            "healthCheck": self._health_check,
            "heartbeat": self._heartbeat,
            "heartbeatAck": self._heartbeat_ack,
            "receiptQuery": self._receipt_query,
            "goAway": self._go_away,
        }

    async def serve(self) -> int:
        """Runs the session to its end and returns the exit status of the process."""
        self._state.move("CONNECTING")
        self.transport.start(self._received, self._stream_ended)
        status = await self._done
        self._stop_reading()
        for operation in list(self.active.values()):
            operation._stop_timers()
            operation._cancel()
        running = [t for t in self._tasks if not t.done()]
        if running:
            await asyncio.wait(running, timeout=ENDING)
        await self.transport.finish(ENDING / 2)
        self.transport.close()
        return status

    # What other parts of the SDK use.

    def enabled(self, feature: str) -> bool:
        """Whether both sides agreed on a feature."""
        return feature in self._features

    def schema(self, uri: str) -> Schema:
        """A schema of the package."""
        return self.plugin.package.schemas[uri]

    def encode(self, kind: str, body: str, cause: Optional[str], trace: Optional[str]) -> bytes:
        """Returns the JSON of the next frame. It must be sent with send_frame before another is encoded, or dropped."""
        return self._writer.encode(kind, body, cause, trace)

    def send_frame(self, frame: bytes) -> None:
        """Sends what encode returned, unless the session is over."""
        if self._mute:
            return
        self._writer.commit()
        self.transport.write(len(frame).to_bytes(HEADER_SIZE, "big") + frame)

    def send(self, kind: str, body: str, cause: Optional[str] = None, trace: Optional[str] = None) -> bool:
        """Sends a message; body is JSON. Returns False, and sends nothing, if it does not fit into a frame."""
        frame = self._writer.encode(kind, body, cause, trace)
        if len(frame) > self.max_frame:
            return False
        self.send_frame(frame)
        return True

    def start(self, coroutine: Any) -> "asyncio.Task[None]":
        """Runs a task of this session."""
        task: asyncio.Task[None] = self.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def request_ended(self, operation: "Operation") -> None:
        """Says that a request is terminal."""
        request_id = operation.context.request_id
        self.active.pop(request_id, None)
        self.ended.add(request_id, operation.context.trace_id)
        if self._leaving and not self.active:
            self._finish(0)

    def health_changed(self, report: HealthReport) -> None:
        """Tells those who watch."""
        for message_id in self._watches:
            self.send("health", _health(report), message_id)

    def leave(self, reason: str, grace_ms: int = 2000) -> None:
        """Announces the end: nothing new is accepted, what runs is cancelled, then the process ends."""
        if self._leaving or self._state.state not in ("READY", "DRAINING"):
            self._finish(0)
            return
        self._leaving = True
        body = {"lastAcceptedSequence": self._sequence, "reason": reason, "graceMs": grace_ms}
        self.send("goAway", strictjson.dumps(body))
        if self._state.state == "READY":
            self._state.move("DRAINING")
        self._cancel_all()
        if not self.active:
            self._finish(0)
        else:
            self.loop.call_later(grace_ms / 1000, self._finish, 0)

    # The stream.

    def _received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while not self._done.done():
                frame = self._reader.next()
                if frame is None:
                    return
                self._take(frame)
        except Fault as fault:
            self._break(fault)
        except Exception as fault:
            log_exception("the SDK", fault, debug=False)
            self._break(Fault(codes.INTERNAL, "the plugin's side of the session failed"))

    def _stop_reading(self) -> None:
        self.transport.stop_reading()

    def _stream_ended(self, failure: Optional[OSError]) -> None:
        if self._done.done():
            return
        try:
            self._reader.end()
        except Fault as fault:
            self._break(fault)
            return
        if failure is not None:
            log(f"the host is gone: {failure.strerror}")
        if failure is None and self._state.state == "DRAINING" and self.active:
            # The host has said that it goes; what runs has its grace all the same.
            self._leaving = True
            grace = min(self._grace_ms / 1000, ENDING)
            self.loop.call_later(grace, self._cancel_all)
            self.loop.call_later(grace + ENDING / 4, self._finish, 0)
            return
        self._state.move("CLOSED" if self._state.state in ("READY", "DRAINING") else "FAILED")
        self._finish(0 if failure is None else 1)

    def _finish(self, status: int) -> None:
        if not self._done.done():
            self._done.set_result(status)

    def _break(self, fault: Fault, message_id: Optional[str] = None, extra: Optional[dict[str, Any]] = None) -> None:
        """Ends the connection for a fault that is fatal, after one frame that says why."""
        if self._done.done():
            return
        if message_id is None and isinstance(fault, EnvelopeFault):
            message_id = fault.message_id
        body = error_body(fault.code, str(fault), blame=codes.blame(fault.code, "host"), severity="fatal")
        body.update(extra or {})
        self.send("error", strictjson.dumps(body), message_id)
        self._mute = True
        self._state.move("FAILED")
        log(f"{fault.code}: {fault}")
        self._finish(1)

    def _take(self, frame: bytes) -> None:
        """Handles one frame. Raises a Fault that ends the connection."""
        envelope = scan(frame)
        try:
            if envelope.sequence <= self._sequence or self._sequence == 0 and envelope.sequence != 1:
                raise Fault(codes.SEQUENCE_VIOLATION, "the sequence does not begin with 1 and rise")
            if not self._messages.add(envelope.message_id):
                raise Fault(codes.ENVELOPE_INVALID, "the messageId was used before")
            self._admit(envelope)
            self._sequence = envelope.sequence
            try:
                body = shapes.check(envelope.type, envelope.body)
            except Fault as fault:
                self._body_fault(envelope, fault)
                return
            self._handlers[envelope.type](envelope, body)
        except Fault as fault:
            if isinstance(fault, features.Disagreement):
                opening.disagree(self, envelope, fault)
            else:
                self._break(fault, envelope.message_id)

    def _admit(self, envelope: Envelope) -> None:
        """Holds a message to the state that the connection is in. Raises a Fault."""
        state, kind = self._state.state, envelope.type
        sender, feature = MESSAGE_TYPES[kind]
        if sender == "plugin":
            raise Fault(codes.STATE_VIOLATION, f"{kind} is sent by plugins")
        if state == "CONNECTING":
            if kind not in ("hello", "error"):
                raise Fault(codes.STATE_VIOLATION, f"{kind} before hello")
            return
        if envelope.version != self._version:
            raise Fault(codes.ENVELOPE_INVALID, "protocolVersion is not the one that was agreed on")
        opening = ("init", "error", "goAway", "heartbeat")
        if kind == "hello" or (kind not in opening if state == "INITIALIZING" else kind == "init"):
            raise Fault(codes.STATE_VIOLATION, f"{kind} does not belong here")
        if kind == "init" and self._initializing:
            raise Fault(codes.STATE_VIOLATION, "init was sent before")
        if feature and feature not in self._features:
            raise Fault(codes.STATE_VIOLATION, f"{kind} needs {feature}, which is not enabled")

    def _body_fault(self, envelope: Envelope, fault: Fault) -> None:
        """Answers a message whose body is wrong: that concerns its request, if it names one."""
        request_id, operation_id = shapes.ids(envelope.body)
        if envelope.type in ("hello", "init"):
            self._break(fault, envelope.message_id)
            return
        operation = self.active.get(request_id) if request_id else None
        if operation is not None and envelope.type != "request":
            operation._abort(requests.host_error(fault))
            return
        if envelope.type != "request" and request_id is not None:
            if request_id in self.ended:
                log(f"a late {envelope.type} was ignored")
                return
            raise Fault(codes.STATE_VIOLATION, "the request was never made")
        body = error_body(fault.code, str(fault), blame="host", request_id=request_id, operation_id=operation_id)
        if request_id is not None:
            self.ended.add(request_id, envelope.trace_id)
        self.send("error", strictjson.dumps(body), envelope.message_id, envelope.trace_id)

    # Requests.

    def _request(self, envelope: Envelope, body: dict[str, Any]) -> None:
        request_id = body["requestId"]
        if request_id in self.active or request_id in self.ended:
            raise Fault(codes.STATE_VIOLATION, "the requestId was used before")
        requests.admit(self, envelope, body, draining=self._state.state == "DRAINING")

    def _known(self, body: dict[str, Any], kind: str) -> Optional["Operation"]:
        """Returns the request that a frame belongs to; None, and a line in the log, if it has ended."""
        request_id = body["requestId"]
        operation = self.active.get(request_id)
        if operation is None:
            if request_id not in self.ended:
                raise Fault(codes.STATE_VIOLATION, "the request was never made")
            if kind != "flow":  # credit that was on its way is in order
                log(f"a late {kind} was ignored")
        return operation

    def _error(self, envelope: Envelope, body: dict[str, Any]) -> None:
        """The host ends a request early, or the connection."""
        if body["requestId"] is not None:
            operation = self._known(body, "error")
            if operation is not None:
                error = PluginError(codes.INTERNAL, "the host ended the request")
                operation._abort(error)
            return
        if body["severity"] == "fatal" or codes.fatal(body["code"]):
            log(f"the host ended the session: {body['code']}")
            self._mute = True
            self._state.move("FAILED")
            self._finish(1)

    # The rest.

    def _health_check(self, envelope: Envelope, body: dict[str, Any]) -> None:
        if body["watch"]:
            if not self.enabled(features.HEALTH_WATCH):
                raise Fault(codes.STATE_VIOLATION, "watch needs health.watch.v1, which is not enabled")
            self._watches = [envelope.message_id]
        self.start(self._answer_health(envelope))

    async def _answer_health(self, envelope: Envelope) -> None:
        report = await self.plugin._health()
        self.send("health", _health(report), envelope.message_id, envelope.trace_id)

    def _heartbeat(self, envelope: Envelope, body: dict[str, Any]) -> None:
        self.send("heartbeatAck", strictjson.dumps({"nonce": body["nonce"]}), envelope.message_id, envelope.trace_id)

    def _heartbeat_ack(self, envelope: Envelope, body: dict[str, Any]) -> None:
        log("a heartbeatAck that nobody asked for was ignored")

    def _receipt_query(self, envelope: Envelope, body: dict[str, Any]) -> None:
        try:
            receipt = self.plugin.store.find(body) if self.plugin.store is not None else None
        except OSError as fault:
            log(f"receipts: {fault}")
            error = error_body(codes.INTERNAL, "the receipts cannot be read", blame="plugin")
            self.send("error", strictjson.dumps(error), envelope.message_id, envelope.trace_id)
            return
        if receipt is None:
            error = error_body(codes.NOT_FOUND, "there is no such receipt", blame="caller")
            self.send("error", strictjson.dumps(error), envelope.message_id, envelope.trace_id)
        else:
            self.send("receipt", strictjson.dumps(receipt), envelope.message_id, envelope.trace_id)

    def _go_away(self, envelope: Envelope, body: dict[str, Any]) -> None:
        if self._state.state == "READY":
            self._state.move("DRAINING")
        self._grace_ms = body["graceMs"]
        if self._grace is None and self.active:
            self._grace = self.loop.call_later(body["graceMs"] / 1000, self._cancel_all)

    def _cancel_all(self) -> None:
        for operation in list(self.active.values()):
            if operation._cancellation.state == "NONE":
                operation._cancellation.move("REQUESTED")
                if operation._state.state in ("RUNNING", "STREAMING"):
                    operation._state.move("CANCELLING")
                operation._cancel()


def _health(report: HealthReport) -> str:
    body = {"status": report.status}
    if report.message:
        body["message"] = bounded(report.message)
    body["updatedAtUtc"] = format_timestamp(report.updated_at_utc)
    return strictjson.dumps(body)

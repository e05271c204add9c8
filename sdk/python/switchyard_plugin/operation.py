"""What a handler works with: one attempt at one operation."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, AsyncIterator, Iterable, Mapping, Optional

from .models import Grant, Limits, OperationContext, PluginError, ProgressUpdate
from .report import hide
from .wire import MAX_MESSAGE, PROGRESS_PER_SECOND, codes, strictjson
from .wire.credit import Credit
from .wire.fault import Fault
from .wire.ids import utc_now
from .wire.shapes import EFFECT_STATES
from .wire.states import CANCELLATION, OPERATION

if TYPE_CHECKING:
    from .connection import Connection
    from .manifest import OperationSpec
    from .schema import Problem, Schema

WINDOW_ITEMS = 64
"""Items of a request stream that the host may send before any was read."""
PROGRESS_EVERY = 1 / (PROGRESS_PER_SECOND - 2)
"""Seconds between two updates: in any second there is a frame to spare for the one that is held when the operation ends."""
YIELD_EVERY = 32
"""Items that are sent before the event loop gets a turn."""


class ResultError(PluginError):
    """A result or an item of the plugin's own that its schema, or the protocol, forbids."""


class Operation:
    """One attempt at one operation, as its handler sees it.

    payload is the request's payload (None for a request stream), context what the
    host says of it, settings the settings in force, items the request stream.
    """

    def __init__(
        self,
        connection: "Connection",
        spec: "OperationSpec",
        context: OperationContext,
        payload: Any,
        secrets: Mapping[str, str],
        message_id: str,
    ) -> None:
        self.payload = payload
        self.context = context
        self.settings: Mapping[str, Any] = connection.settings
        self._connection = connection
        self._spec = spec
        self._secrets = secrets
        self._message_id = message_id
        self._ids = f'{{"requestId":"{context.request_id}","operationId":"{context.operation_id}",'
        self._state = OPERATION.start()
        self._cancellation = CANCELLATION.start()
        self._effect: Optional[str] = None
        self._unexpected = False
        self._failure: Optional[PluginError] = None
        self._deadline_passed = False
        self._task: Optional[asyncio.Task[None]] = None
        self._started = False
        self._cancelled = False
        self._timer: Optional[asyncio.TimerHandle] = None
        # The response stream.
        self._credit = Credit()
        self._more_credit = asyncio.Event()
        self._sent_items = 0
        self._sent_bytes = 0
        # The request stream.
        self._inbound = _Inbound(self) if spec.streams_request else None
        # Progress.
        self._next_progress = 0.0
        self._held_progress: Optional[str] = None
        self._progress_timer: Optional[asyncio.TimerHandle] = None

    # What a handler asks and tells.

    @property
    def items(self) -> AsyncIterator[Any]:
        """The items of the request stream, each checked against the request schema, as they come.

        The host sends more only as they are read. Raises PluginError for an operation
        without a request stream.
        """
        if self._inbound is None:
            raise PluginError(codes.INTERNAL, "the operation has no request stream")
        return self._inbound

    @property
    def secrets(self) -> tuple[str, ...]:
        """The places in the settings for which the host gave a secret, as JSON Pointers."""
        return tuple(self._secrets)

    def secret(self, pointer: str) -> str:
        """Returns the secret for a place in the settings. Raises PluginError with secret.unresolved."""
        try:
            return self._secrets[pointer]
        except KeyError:
            raise PluginError(codes.SECRET_UNRESOLVED, f"the host gave no secret for {pointer}") from None

    @property
    def limits(self) -> Limits:
        """What the host holds the plugin to."""
        return self._connection.limits

    @property
    def grants(self) -> tuple[Grant, ...]:
        """The permissions that are granted now."""
        now = utc_now()
        return tuple(g for g in self._connection.grants if g.expires_at_utc is None or g.expires_at_utc > now)

    def grant(self, permission_id: str) -> Grant:
        """Returns the grant of a permission. Raises PluginError with permission_denied or grant.expired."""
        expired = False
        now = utc_now()
        for grant in self._connection.grants:
            if grant.permission_id == permission_id:
                if grant.expires_at_utc is None or grant.expires_at_utc > now:
                    return grant
                expired = True
        if expired:
            raise PluginError(codes.GRANT_EXPIRED, f"the grant of the permission {permission_id} has expired")
        raise PluginError(codes.PERMISSION_DENIED, f"the permission {permission_id} is not granted")

    def effect(self, state: str) -> None:
        """Declares what the operation has changed outside of the process, before it ends.

        One of none, committed, partial, rolled_back, unknown; the last one counts. An
        operation that declares nothing has changed nothing, or, where it ended with an
        exception that is no PluginError, nobody knows.
        """
        if state not in EFFECT_STATES:
            raise ValueError(f"an effect is one of {', '.join(EFFECT_STATES)}")
        self._effect = state

    def progress(self, update: ProgressUpdate) -> None:
        """Tells how far the operation is. At most 20 a second are sent; of more the newest wins, and the last is not lost."""
        text = _progress(update, self._secrets.values())
        if not self._connection.enabled("progress.v1") or self._finished:
            return
        loop = self._connection.loop
        now = loop.time()
        if now >= self._next_progress:
            self._send_progress(text)
        else:
            self._held_progress = text
            if self._progress_timer is None:
                self._progress_timer = loop.call_at(self._next_progress, self._release_progress)

    async def send(self, item: Any) -> None:
        """Sends one item of the response stream; waits until the host has room for it.

        Raises PluginError for an item that the response schema forbids or that no
        credit can cover; the operation then fails with it.
        """
        if not self._spec.streams_response:
            raise self._fail(ResultError(codes.INTERNAL, "the operation has no response stream"))
        text = self._result(item)
        body = f'{self._ids}"index":{self._sent_items},"payload":{text}}}'
        connection = self._connection
        while True:
            frame = connection.encode("streamItem", body, None, self.context.trace_id)
            size = len(frame)
            if size > connection.max_frame:
                raise self._fail(ResultError(codes.RESOURCE_EXHAUSTED, "an item does not fit into a frame"))
            if self._credit.covers(size):
                break
            if self._credit.too_large(size):
                raise self._fail(ResultError(codes.RESOURCE_EXHAUSTED, "an item is larger than any credit that the host gave"))
            self._more_credit.clear()
            await self._more_credit.wait()
        self._credit.take(size)
        if self._sent_items == 0:
            self._stream()
        connection.send_frame(frame)
        self._sent_items += 1
        self._sent_bytes += size
        if connection.transport.full:
            await connection.transport.drain()
        elif self._sent_items % YIELD_EVERY == 0:
            await asyncio.sleep(0)

    # What the connection does with it.

    @property
    def _finished(self) -> bool:
        return self._state.state in ("COMPLETED", "FAILED", "CANCELLED", "TERMINAL")

    def _stream(self) -> None:
        if self._state.state == "RUNNING":
            self._state.move("STREAMING")

    def _result(self, value: Any) -> str:
        """Returns a result or an item as JSON, checked. Raises ResultError."""
        try:
            text, read = strictjson.check(value)
        except strictjson.StrictError as fault:
            raise self._fail(ResultError(codes.INTERNAL, f"the handler returned no JSON: {fault}")) from None
        problems = self._connection.schema(self._spec.response_schema).validate(read, len(text))
        if problems:
            raise self._fail(result_error(problems[0]))
        return text

    def _fail(self, error: PluginError) -> PluginError:
        """Makes the operation fail with this, whatever its handler does next."""
        if self._failure is None:
            self._failure = error
        return error

    def _abort(self, error: PluginError) -> None:
        """Fails the operation for what the host sent."""
        self._fail(error)
        self._cancel()

    def _cancel(self) -> None:
        """Cancels the handler, once: a second time would break into its cleanup."""
        if not self._cancelled:
            self._cancelled = True
            # A task that has not begun would end without a trace; it looks by itself.
            if self._task is not None and self._started:
                self._task.cancel()

    def _send_progress(self, text: str) -> None:
        self._next_progress = self._connection.loop.time() + PROGRESS_EVERY
        self._connection.send("progress", self._ids + text, None, self.context.trace_id)

    def _release_progress(self) -> None:
        self._progress_timer = None
        text, self._held_progress = self._held_progress, None
        if text is not None and not self._finished:
            self._send_progress(text)

    def _flush_progress(self) -> None:
        """Sends the update that is held, before the terminal frame."""
        text, self._held_progress = self._held_progress, None
        if text is not None:
            self._send_progress(text)

    def _stop_timers(self) -> None:
        for timer in (self._timer, self._progress_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._progress_timer = None


def result_error(problem: "Problem") -> ResultError:
    """The error for a result or item that the plugin's own schema forbids."""
    error = ResultError(problem.code, f"the plugin's result is not what its schema says: {problem}")
    error.blame_domain = "plugin"
    return error


def _progress(update: ProgressUpdate, secrets: Iterable[str]) -> str:
    percent, current, total = update.percent_completed, update.current, update.total
    if percent is not None and not 0 <= percent <= 100:
        raise ValueError("percent_completed is 0 to 100")
    message = strictjson.clean(hide(update.message, secrets))[:MAX_MESSAGE]
    parts = [f'"message":{strictjson.dumps(message)}']
    if percent is not None:
        parts.append(f'"percentCompleted":{strictjson.dumps(percent)}')
    for name, number in (("current", current), ("total", total)):
        if number is not None:
            if type(number) is not int or not 0 <= number <= strictjson.MAX_NUMBER:
                raise ValueError(f"{name} is an integer from 0 on")
            parts.append(f'"{name}":{number}')
    return ",".join(parts) + "}"


class _Inbound(AsyncIterator[Any]):
    """The request stream: items that have arrived, and the credit for more."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._queue: deque[tuple[Any, int]] = deque()
        self._arrived = asyncio.Event()
        self._ended = False
        self._credit = Credit()
        self._window_bytes = operation._connection.max_frame
        self._used_items = 0
        self._used_bytes = 0
        self._count = 0
        self._bytes = 0

    def open(self) -> None:
        """Gives the first credit."""
        self._grant(WINDOW_ITEMS, self._window_bytes)

    def _grant(self, items: int, size: int) -> None:
        self._credit.grant(items, size)
        context = self._operation.context
        self._operation._connection.send(
            "flow", f'{{"requestId":"{context.request_id}","creditItems":{items},"creditBytes":{size}}}', None, context.trace_id
        )

    def receive(self, body: dict[str, Any], size: int, schema: "Schema") -> None:
        """Takes an item of the host. Raises PluginError or Fault for one that it must not send."""
        if self._ended:
            raise PluginError(codes.INVALID_ARGUMENT, "an item after the end of the stream")
        if not self._credit.receive(size):
            raise PluginError(codes.FLOW_CONTROL_VIOLATION, "items beyond the credit that was given")
        if body["index"] != self._count:
            raise PluginError(codes.INVALID_ARGUMENT, "an item out of its order")
        problems = schema.validate(body["payload"], size)
        if problems:
            raise Fault(problems[0].code, problems[0].message, f"/payload{problems[0].path}")
        self._count += 1
        self._bytes += size
        self._operation._stream()
        self._queue.append((body["payload"], size))
        self._arrived.set()

    def end(self, body: dict[str, Any]) -> None:
        """Takes the end of the stream. Raises PluginError if it does not count what was sent."""
        if self._ended:
            raise PluginError(codes.INVALID_ARGUMENT, "the stream has ended before")
        if (body["itemCount"], body["byteCount"]) != (self._count, self._bytes):
            raise PluginError(codes.INVALID_ARGUMENT, "the end of the stream counts other items or bytes than were sent")
        self._ended = True
        self._arrived.set()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        while not self._queue:
            if self._ended:
                raise StopAsyncIteration
            if self._used_items:
                self._replenish()
            self._arrived.clear()
            await self._arrived.wait()
        item, size = self._queue.popleft()
        self._used_items += 1
        self._used_bytes += size
        if self._used_items * 2 >= WINDOW_ITEMS or self._used_bytes * 2 >= self._window_bytes:
            self._replenish()
        return item

    def _replenish(self) -> None:
        if not self._ended and not self._operation._finished:
            self._grant(self._used_items, self._used_bytes)
        self._used_items = self._used_bytes = 0

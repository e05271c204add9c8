"""What the host sends to a request that runs: the items and the end of its stream, credit, cancellation.

The functions handle one message each of the connection c; a message for a request
that was never made raises a Fault, which ends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import requests
from .models import PluginError
from .wire import codes
from .wire.envelope import Envelope
from .wire.fault import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from .connection import Connection
    from .operation import Operation, _Inbound


def stream_item(c: "Connection", envelope: Envelope, body: dict[str, Any]) -> None:
    """An item of the request stream."""
    _to_stream(c, body, "streamItem", lambda o, stream: stream.receive(body, envelope.size, c.schema(o._spec.request_schema)))


def stream_end(c: "Connection", envelope: Envelope, body: dict[str, Any]) -> None:
    """The end of the request stream."""
    _to_stream(c, body, "streamEnd", lambda o, stream: stream.end(body))


def _to_stream(c: "Connection", body: dict[str, Any], kind: str, give: Callable[["Operation", "_Inbound"], None]) -> None:
    """Gives a message to the request stream that it is of. What is wrong with it ends the request."""
    operation = c._known(body, kind)
    if operation is None:
        return
    try:
        if operation._inbound is None:
            raise Fault(codes.INVALID_ARGUMENT, "the operation has no request stream")
        give(operation, operation._inbound)
    except (PluginError, Fault) as fault:
        operation._abort(requests.host_error(fault))


def flow(c: "Connection", envelope: Envelope, body: dict[str, Any]) -> None:
    """Credit for the response stream."""
    operation = c._known(body, "flow")
    if operation is None:
        return
    if not operation._spec.streams_response:
        operation._abort(requests.host_error(Fault(codes.INVALID_ARGUMENT, "the operation has no response stream")))
        return
    operation._credit.grant(body["creditItems"], body["creditBytes"])
    operation._more_credit.set()


def cancel(c: "Connection", envelope: Envelope, body: dict[str, Any]) -> None:
    """Acknowledges, and cancels the handler once."""
    operation = c._known(body, "cancel")
    trace = operation.context.trace_id if operation is not None else c.ended.note(body["requestId"])
    c.send("cancelAck", f'{{"requestId":"{body["requestId"]}"}}', envelope.message_id, trace)
    if operation is not None and operation._cancellation.state == "NONE":
        operation._cancellation.move("REQUESTED")
        operation._cancellation.move("ACKNOWLEDGED")
        if operation._state.state in ("RUNNING", "STREAMING"):
            operation._state.move("CANCELLING")
        operation._cancel()

"""The life of a request: admitted in a fixed order, run as a task, ended once.

admit() is the order of the decisions: what is refused never reaches a handler.
finish() makes the one terminal frame, after the receipt is on the disk.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, Optional, Union

from . import receipts
from .models import OperationContext, PluginError
from .operation import Operation
from .report import error_body, hide, log, log_exception
from .wire import codes, jcs, shapes, strictjson
from .wire.envelope import Envelope
from .wire.fault import Fault
from .wire.ids import format_timestamp, parse_timestamp, utc_now, uuid7

if TYPE_CHECKING:
    from .connection import Connection
    from .manifest import OperationSpec

PRIVATE = frozenset(["sensitive", "secret", "regulated"])
"""Payload classes that need a granted bounded.private-data."""


def host_error(fault: Union[Fault, PluginError]) -> PluginError:
    """The error of a request for which what the host sent is to blame."""
    error = PluginError(fault.code, str(fault))
    error.blame_domain = codes.blame(fault.code, "host")
    return error


def _refuse(code: str, message: str) -> PluginError:
    return host_error(Fault(code, message))


def admit(connection: "Connection", envelope: Envelope, body: dict[str, Any], *, draining: bool) -> None:
    """Starts a request, or answers it with an error."""
    try:
        spec = _declared(connection, body, draining)
        _permitted(connection, body)
        deadline = parse_timestamp(body["deadlineUtc"]) if body["deadlineUtc"] is not None else None
        if deadline is not None and deadline <= utc_now():
            raise PluginError(codes.DEADLINE_EXCEEDED, "the deadline has passed before the operation began")
        _streams(connection, body, spec)
        payload = body["payload"]
        if not spec.streams_request:
            problems = connection.schema(spec.request_schema).validate(payload, envelope.size)
            if problems:
                raise Fault(problems[0].code, problems[0].message, f"/payload{problems[0].path}")
        elif payload is not None:
            raise Fault(codes.SCHEMA_MISMATCH, "must be null: the operation has a request stream", "/payload")
    except (Fault, PluginError) as fault:
        _answer_error(connection, envelope, body, fault if isinstance(fault, PluginError) else host_error(fault))
        connection.ended.add(body["requestId"], envelope.trace_id)
        return
    context = OperationContext(
        request_id=body["requestId"],
        operation_id=body["operationId"],
        idempotency_key=body["idempotencyKey"],
        attempt=body["attempt"],
        deadline_utc=deadline,
        trace_id=envelope.trace_id,
        capability_id=spec.capability_id,
        operation_name=spec.name,
        operation_version=spec.operation_version,
        payload_class=body["payloadClass"],
        permissions_grant_id=body["permissionsGrantId"],
        diagnostic_policy=body.get("diagnosticPolicy", "safe-default"),
        retention=body.get("retention", "short"),
    )
    operation = Operation(connection, spec, context, payload, body.get("secrets", {}), envelope.message_id)
    operation._state.move("VALIDATING")
    run = _Run(connection, operation)
    if not run.claim():
        return
    connection.active[context.request_id] = operation
    operation._state.move("RUNNING")
    # Clock steps must not move a deadline: what is left of it now counts on the monotonic clock.
    seconds = connection.limits.request_timeout_ms / 1000
    if deadline is not None:
        seconds = min(seconds, max(0.0, (deadline - utc_now()).total_seconds()))
    operation._timer = connection.loop.call_later(seconds, _deadline, operation)
    if spec.streams_response:
        stream = body["stream"]
        operation._credit.grant(stream["initialCreditItems"], stream["initialCreditBytes"])
    if operation._inbound is not None:
        operation._inbound.open()
    operation._task = connection.start(run.run())


def _deadline(operation: Operation) -> None:
    operation._timer = None
    operation._deadline_passed = True
    if operation._state.state in ("RUNNING", "STREAMING"):
        operation._state.move("CANCELLING")
    operation._cancel()


def _declared(connection: "Connection", body: dict[str, Any], draining: bool) -> "OperationSpec":
    if draining:
        raise _refuse(codes.UNAVAILABLE, "the session is ending")
    if len(connection.active) >= connection.limits.max_in_flight:
        raise _refuse(codes.RESOURCE_EXHAUSTED, "more requests at once than maxInFlight")
    spec = connection.plugin.package.manifest.operation(body["capabilityId"], body["operationName"])
    if spec is None:
        raise _refuse(codes.UNKNOWN_OPERATION, "the manifest has no such operation")
    if body["operationVersion"] != spec.operation_version:
        raise _refuse(codes.UNSUPPORTED_OPERATION_VERSION, f"the operation has the version {spec.operation_version}")
    for element in (f"operation:{spec.capability_id}/{spec.name}", f"capability:{spec.capability_id}"):
        for deprecation in connection.plugin.package.manifest.deprecations:
            if deprecation["element"] == element and parse_timestamp(deprecation["sunsetAfter"]) <= utc_now():
                raise _refuse(codes.DEPRECATED_SUNSET, f"{element} ended on {deprecation['sunsetAfter']}")
    return spec


def _permitted(connection: "Connection", body: dict[str, Any]) -> None:
    now = utc_now()
    live = [g for g in connection.grants if g.expires_at_utc is None or g.expires_at_utc > now]
    grant_id = body["permissionsGrantId"]
    if grant_id is not None and not any(g.permissions_grant_id == grant_id for g in live):
        if any(g.permissions_grant_id == grant_id for g in connection.grants):
            raise _refuse(codes.GRANT_EXPIRED, "the grant of the request has expired")
        raise _refuse(codes.PERMISSION_DENIED, "the grant of the request is none of the session's")
    kind = body["payloadClass"]
    if kind not in connection.accepted_classes or kind not in connection.plugin.package.manifest.accepted_classes:
        raise _refuse(codes.PAYLOAD_CLASS_DENIED, f"payloads of the class {kind} are not accepted")
    if kind in PRIVATE and not any(g.scope == "bounded.private-data" for g in live):
        raise _refuse(codes.PAYLOAD_CLASS_DENIED, f"payloads of the class {kind} need bounded.private-data, which is not granted")


def _streams(connection: "Connection", body: dict[str, Any], spec: "OperationSpec") -> None:
    stream = body.get("stream", {})
    if (stream.get("request", False), stream.get("response", False)) != (spec.streams_request, spec.streams_response):
        raise _refuse(codes.INVALID_ARGUMENT, "stream is not what the manifest says of the operation")
    credits = [n in stream for n in ("initialCreditItems", "initialCreditBytes")]
    if credits != [spec.streams_response] * 2:
        raise _refuse(codes.INVALID_ARGUMENT, "stream must have initialCreditItems and initialCreditBytes if the response streams, and only then")
    if "stream" in body and not (spec.streams_request or spec.streams_response):
        raise _refuse(codes.INVALID_ARGUMENT, "stream must be absent where nothing streams")
    if "secrets" in body and not connection.enabled("secrets.inject.v1"):
        raise _refuse(codes.INVALID_ARGUMENT, "secrets need secrets.inject.v1, which is not enabled")


def _answer_error(connection: "Connection", envelope: Envelope, body: dict[str, Any], error: PluginError) -> None:
    text = strictjson.dumps(_error(connection, error, body["requestId"], body["operationId"], None))
    connection.send("error", text, envelope.message_id, envelope.trace_id)


def _error(
    connection: "Connection", error: PluginError, request_id: str, operation_id: str, receipt: Optional[dict[str, Any]]
) -> dict[str, Any]:
    blame = error.blame_domain or codes.blame(error.code, "plugin")
    body = error_body(
        error.code, str(error), blame=blame, retryable=error.retryable, request_id=request_id, operation_id=operation_id
    )
    if error.details is not None:
        body["details"] = error.details
    if receipt is not None and connection.enabled("receipt.v1"):
        body["receipt"] = receipt
    if error.existing_operation_id is not None:
        body["existingOperationId"] = error.existing_operation_id
    return body


class _Run:
    """One request that was admitted."""

    def __init__(self, connection: "Connection", operation: Operation) -> None:
        self.connection = connection
        self.operation = operation
        self.claimed: Optional[receipts.Claim] = None
        self.draft: Optional[dict[str, Any]] = None

    def claim(self) -> bool:
        """Claims the operation's effect where it is deduplicated or recorded. False: it is answered already."""
        operation, connection = self.operation, self.connection
        context, spec = operation.context, operation._spec
        if not spec.receipts:
            return True
        manifest = connection.plugin.package.manifest
        now = utc_now()
        self.draft = {
            "receiptSchemaVersion": shapes.RECEIPT_SCHEMA_VERSION,
            "receiptId": uuid7(),
            "pluginId": manifest.plugin_id,
            "publisherId": manifest.publisher_id,
            "packageVersion": manifest.package_version,
            "manifestDigest": manifest.manifest_digest,
            "capabilityId": spec.capability_id,
            "operationName": spec.name,
            "operationVersion": spec.operation_version,
            "operationId": context.operation_id,
            "idempotencyKey": context.idempotency_key,
            "attempt": context.attempt,
            "executionState": "in_progress",
            "effectState": "unknown",
            "startedAtUtc": format_timestamp(now),
            "issuedAtUtc": format_timestamp(now),
            "requestDigest": receipts.request_digest(spec.capability_id, spec.name, spec.operation_version, operation.payload),
            "resultDigest": None,
            "itemCount": 0,
            "byteCount": 0,
            "errorCode": None,
            "expiresAtUtc": receipts.expiry(context.retention, now),
        }
        store = connection.plugin.store
        try:
            if store is None:
                raise PluginError(codes.FAILED_PRECONDITION, "the plugin has no directory for receipts")
            found = store.claim(self.draft)
        except OSError as fault:
            log(f"receipts: {fault}")
            self._refused(PluginError(codes.INTERNAL, "the receipt cannot be written"))
            return False
        except PluginError as fault:
            self._refused(fault)
            return False
        if isinstance(found, receipts.Record):
            self._replay(found)
            return False
        self.claimed = found
        return True

    def _refused(self, error: PluginError) -> None:
        operation = self.operation
        operation._state.move("FAILED")
        self._send_error(error, error.receipt)

    def _replay(self, record: receipts.Record) -> None:
        """Tells the end of an earlier attempt under the new requestId."""
        operation = self.operation
        if record.error is not None:
            operation._state.move("FAILED")
            error = PluginError(record.error["code"], record.error["message"], record.error["retryable"])
            self._send_error(error, record.receipt)
        else:
            operation._state.move("RUNNING")
            if operation._spec.streams_response:
                self.connection.send("streamEnd", f'{operation._ids}"itemCount":0,"byteCount":0}}', None, operation.context.trace_id)
            elif record.result is None:
                operation._state.move("FAILED")
                self._send_error(
                    PluginError(codes.FAILED_PRECONDITION, "the operation has completed, and its result was not kept"), record.receipt
                )
                return
            operation._state.move("COMPLETED")
            self._send_response(record.result or "null", record.receipt)

    async def run(self) -> None:
        """Runs the handler and ends the request."""
        operation = self.operation
        operation._started = True
        try:
            text, error, cancelled = await self._call()
            self._finish(text, error, cancelled)
        except Exception as fault:
            log_exception("the SDK", fault, debug=False)
            if not operation._finished:
                operation._state.move("FAILED")
            if operation._state.state != "TERMINAL":
                self._send_error(PluginError(codes.INTERNAL, "the plugin's side of the request failed"), None)
        finally:
            operation._stop_timers()
            if self.claimed is not None:
                self.claimed.release()
            if operation._state.state != "TERMINAL":
                self.connection.request_ended(operation)

    async def _call(self) -> tuple[Optional[str], Optional[PluginError], bool]:
        """Returns the result as JSON, or the error, or that the operation was cancelled."""
        operation = self.operation
        try:
            if operation._cancelled:
                raise asyncio.CancelledError
            value = await self._handle()
            if operation._spec.streams_response:
                if value is not None:
                    raise operation._fail(PluginError(codes.INTERNAL, "the handler of a response stream returned a result"))
                text = "null"
            else:
                text = operation._result(value)
        except asyncio.CancelledError:
            if operation._failure is not None:
                return None, operation._failure, False
            if operation._cancelled:
                return None, None, True
            operation._unexpected = True
            return None, PluginError(codes.INTERNAL, "the handler was cancelled by itself"), False
        except PluginError as fault:
            error = operation._failure or fault
            if fault.effect in shapes.EFFECT_STATES:
                operation.effect(fault.effect)
            elif fault.effect is not None:
                operation._unexpected = True
            return None, self._fit(error), False
        except Exception as fault:
            operation._unexpected = True
            if operation._failure is not None:
                return None, operation._failure, False
            debug = operation.context.diagnostic_policy == "explicit-debug"
            name = f"{operation._spec.capability_id}/{operation._spec.name}"
            log_exception(f"the handler of {name}", fault, debug=debug, hidden=operation._secrets.values())
            return None, PluginError(codes.INTERNAL, "the handler failed"), False
        if operation._failure is not None:
            return None, operation._failure, False
        return text, None, False

    async def _handle(self) -> Any:
        operation = self.operation
        made = self.connection.plugin._handler(operation._spec)(operation)
        if not inspect.isasyncgen(made):
            return await made
        step = made.__anext__()
        try:
            while True:
                try:
                    item = await step
                except StopAsyncIteration:
                    return None
                try:
                    await operation.send(item)
                except BaseException as fault:
                    # It is raised where the generator yielded, so that its own cleanup sees what happened.
                    step = made.athrow(fault)
                else:
                    step = made.__anext__()
        finally:
            await made.aclose()

    def _fit(self, error: PluginError) -> PluginError:
        """Returns an error of a handler as it may be sent: with a code that is its to use and without secrets."""
        rule = codes.CODES.get(error.code)
        if rule is None or rule.fatal or rule.code == codes.FLOW_CONTROL_VIOLATION and error.blame_domain is None:
            return PluginError(codes.INTERNAL, "the handler failed with a code that is not its to use")
        secrets = self.operation._secrets.values()
        fit = PluginError(error.code, hide(str(error), secrets), error.retryable)
        fit.blame_domain = error.blame_domain
        if error.details is not None:
            try:
                text, details = strictjson.check(error.details)
            except strictjson.StrictError:
                return fit
            if isinstance(details, dict) and not any(s and s in text for s in secrets):
                fit.details = details
        return fit

    def _finish(self, text: Optional[str], error: Optional[PluginError], cancelled: bool) -> None:
        """Writes the receipt, then sends the terminal frame."""
        operation = self.operation
        context = operation.context
        if text is not None and not operation._spec.streams_response and len(text) > self.connection.max_frame:
            text, error = None, PluginError(codes.RESOURCE_EXHAUSTED, "the result does not fit into a frame")
        if operation._deadline_passed:
            text, cancelled, error = None, False, PluginError(codes.DEADLINE_EXCEEDED, "the deadline has passed")
        if cancelled and operation._state.state in ("RUNNING", "STREAMING"):
            operation._state.move("CANCELLING")
        operation._flush_progress()
        operation._state.move("CANCELLED" if cancelled else "FAILED" if error is not None else "COMPLETED")
        if operation._cancellation.state != "RESOLVED":
            operation._cancellation.move("RESOLVED")
        if operation._spec.streams_response and text is not None:
            self.connection.send(
                "streamEnd",
                f'{operation._ids}"itemCount":{operation._sent_items},"byteCount":{operation._sent_bytes}}}',
                None,
                context.trace_id,
            )
        receipt = None
        if self.draft is not None and self.claimed is not None:
            receipt = self._receipt(text, error, cancelled)
            keep = text if text is not None and context.retention != "none" and not operation._spec.streams_response else None
            kept_error = None
            if error is not None:
                kept_error = {"code": error.code, "message": str(error)[:4096], "retryable": error.retryable}
            try:
                self.claimed.write(receipts.Record(receipt, keep, kept_error))
            except OSError as fault:
                log(f"receipts: {fault}")
                receipt = None
                text, cancelled = None, False
                error = PluginError(codes.INTERNAL, "the operation has ended, and its receipt cannot be written")
            self.claimed.release()
        if cancelled:
            member = self._receipt_member(receipt)
            body = f'{operation._ids[:-1]}{member}}}'
            self.connection.send("cancelled", body, operation._message_id, context.trace_id)
            self._terminal()
        elif error is not None:
            self._send_error(error, receipt)
        else:
            assert text is not None
            self._send_response(text, receipt)

    def _receipt(self, text: Optional[str], error: Optional[PluginError], cancelled: bool) -> dict[str, Any]:
        operation = self.operation
        assert self.draft is not None
        streams = operation._spec.streams_response
        digest = None
        if text is not None and not streams:
            digest = jcs.digest(strictjson.loads(text.encode()))
        inbound = operation._inbound
        return {
            **self.draft,
            "executionState": "cancelled" if cancelled else "failed" if error is not None else "completed",
            "effectState": operation._effect or ("unknown" if operation._unexpected else "none"),
            "issuedAtUtc": format_timestamp(utc_now()),
            "resultDigest": digest,
            "itemCount": operation._sent_items if streams else inbound._count if inbound is not None else 0,
            "byteCount": operation._sent_bytes if streams else inbound._bytes if inbound is not None else 0,
            "errorCode": error.code if error is not None else None,
        }

    def _receipt_member(self, receipt: Optional[dict[str, Any]]) -> str:
        if receipt is None or not self.connection.enabled("receipt.v1"):
            return ""
        return f',"receipt":{strictjson.dumps(receipt)}'

    def _send_response(self, text: str, receipt: Optional[dict[str, Any]]) -> None:
        operation = self.operation
        body = f'{operation._ids}"payloadClass":"{operation.context.payload_class}","payload":{text}{self._receipt_member(receipt)}}}'
        if not self.connection.send("response", body, operation._message_id, operation.context.trace_id):
            self._send_error(PluginError(codes.RESOURCE_EXHAUSTED, "the result does not fit into a frame"), receipt)
            return
        self._terminal()

    def _send_error(self, error: PluginError, receipt: Optional[dict[str, Any]]) -> None:
        operation = self.operation
        context = operation.context
        body = _error(self.connection, error, context.request_id, context.operation_id, receipt)
        self.connection.send("error", strictjson.dumps(body), operation._message_id, context.trace_id)
        self._terminal()

    def _terminal(self) -> None:
        self.operation._state.move("TERMINAL")
        self.connection.request_ended(self.operation)

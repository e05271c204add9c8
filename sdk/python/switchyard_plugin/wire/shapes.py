"""The bodies of all messages as data, and the strict check of a body against its shape.

A shape lists the members of an object and what each may be. A body is checked
after its envelope was read; a fault concerns that message only.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Iterable, Optional

from . import MAX_IDEMPOTENCY_KEY, MAX_MAX_FRAME, MAX_MESSAGE, MIN_MAX_FRAME, codes, strictjson
from .fault import Fault
from .features import parse_version
from .ids import is_uuid, parse_timestamp

Check = Callable[[Any, str], Any]
"""Returns the value as it is to be used, or raises a Fault for the value at that JSON Pointer."""


def _mismatch(path: str, rule: str) -> Fault:
    return Fault(codes.SCHEMA_MISMATCH, rule, path)


class Shape:
    """An object with exactly these members; those in optional may be absent."""

    __slots__ = ("members", "optional", "_required")

    def __init__(self, members: dict[str, Check], optional: str = "") -> None:
        self.members = members
        self.optional = frozenset(optional.split())
        self._required = [name for name in members if name not in self.optional]

    def __call__(self, value: Any, path: str = "") -> dict[str, Any]:
        if type(value) is not dict:
            raise _mismatch(path, "must be an object")
        out = {}
        for name, item in value.items():
            check = self.members.get(name)
            if check is None:
                raise Fault(codes.SCHEMA_UNKNOWN_MEMBER, f"has the unknown member {strictjson.quote(name)}", path)
            out[name] = check(item, f"{path}/{name}")
        if len(out) < len(self.members):
            for name in self._required:
                if name not in out:
                    raise _mismatch(f"{path}/{name}", "is required")
        return out


def anything(value: Any, path: str) -> Any:
    """Any JSON."""
    return value


def boolean(value: Any, path: str) -> bool:
    """true or false."""
    if value is not True and value is not False:
        raise _mismatch(path, "must be a boolean")
    return bool(value)


def integer(least: int = 0, most: int = strictjson.MAX_NUMBER) -> Check:
    """An integral number between two bounds."""

    def check(value: Any, path: str) -> int:
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int or not least <= value <= most:
            raise _mismatch(path, f"must be an integer from {least} to {most}")
        return value

    return check


def percent(value: Any, path: str) -> float:
    """A number from 0 to 100."""
    if type(value) not in (int, float) or not 0 <= value <= 100:
        raise _mismatch(path, "must be a number from 0 to 100")
    return value


def text(least: int = 0, most: int = MAX_MESSAGE) -> Check:
    """A string of so many characters."""

    def check(value: Any, path: str) -> str:
        if type(value) is not str or not least <= len(value) <= most:
            raise _mismatch(path, f"must be a string of {least} to {most} characters")
        return value

    return check


def matching(pattern: str, rule: str) -> Check:
    """A string that matches as a whole."""
    match = re.compile(pattern).fullmatch

    def check(value: Any, path: str) -> str:
        if type(value) is not str or match(value) is None:
            raise _mismatch(path, f"must be {rule}")
        return value

    return check


def one_of(*values: str) -> Check:
    """One string of a closed set."""
    closed = frozenset(values)

    def check(value: Any, path: str) -> str:
        if type(value) is not str or value not in closed:
            raise _mismatch(path, f"must be one of {', '.join(values)}")
        return value

    return check


def nullable(check: Check) -> Check:
    """null, or what check takes."""
    return lambda value, path: None if value is None else check(value, path)


def array(check: Check, most: int, unique: bool = False) -> Check:
    """An array of at most so many elements."""

    def walk(value: Any, path: str) -> list[Any]:
        if type(value) is not list or len(value) > most:
            raise _mismatch(path, f"must be an array of at most {most} elements")
        out = [check(item, f"{path}/{i}") for i, item in enumerate(value)]
        if unique and len(set(out)) != len(out):
            raise _mismatch(path, "must not have an element twice")
        return out

    return walk


def uuid(value: Any, path: str) -> str:
    """A UUID; it is compared in lower case."""
    if type(value) is not str or not is_uuid(value):
        raise _mismatch(path, "must be a UUID")
    return value.lower()


def timestamp(value: Any, path: str) -> str:
    """An RFC 3339 time in UTC."""
    try:
        parse_timestamp(value)
    except (TypeError, ValueError):
        raise _mismatch(path, "must be a time as 2006-01-02T15:04:05.999999Z") from None
    return str(value)


def version(value: Any, path: str) -> str:
    """MAJOR.MINOR."""
    if type(value) is not str or parse_version(value) is None:
        raise _mismatch(path, 'must be a version as "1.0"')
    return value


def _secrets(value: Any, path: str) -> dict[str, str]:
    """A map from JSON Pointers to strings. A fault names no member: a sender might have exchanged the two."""
    if type(value) is not dict or any(type(v) is not str or n[:1] not in ("", "/") for n, v in value.items()):
        raise _mismatch(path, "must map JSON Pointers to strings")
    return value


def free_object(value: Any, path: str) -> dict[str, Any]:
    """An object with whatever members."""
    if type(value) is not dict:
        raise _mismatch(path, "must be an object")
    return value


PAYLOAD_CLASSES = ("public", "internal", "sensitive", "secret", "regulated")
EFFECT_STATES = ("none", "committed", "partial", "rolled_back", "unknown")
EXECUTION_STATES = ("completed", "failed", "cancelled", "in_progress", "abandoned")
BLAME_DOMAINS = ("caller", "host", "plugin", "transport", "environment")
SEVERITIES = ("info", "warning", "error", "fatal")
HEALTH_STATUSES = ("healthy", "degraded", "unhealthy")
DIAGNOSTIC_POLICIES = ("safe-default", "safe-plus-hashes", "explicit-debug")
RETENTIONS = ("none", "ephemeral", "short", "audit")

_count = integer()
_name = matching(r"[a-z][a-z0-9._-]{1,63}", "a name as catalog.index")
_token = _name
_digest = matching(r"sha256:[0-9a-f]{64}", '"sha256:" and 64 lower-case hexadecimal digits')
_class = one_of(*PAYLOAD_CLASSES)
_key = text(1, MAX_IDEMPOTENCY_KEY)
_identifier = text(1, 128)
_short = text(1, 256)
_frame_size = integer(MIN_MAX_FRAME, MAX_MAX_FRAME)
_tokens = array(_token, 256, unique=True)
_code = one_of(*codes.CODES)

RECEIPT_SCHEMA_VERSION = "urn:switchyard:receipt:1"

RECEIPT = Shape(
    {
        "receiptSchemaVersion": one_of(RECEIPT_SCHEMA_VERSION),
        "receiptId": uuid,
        "pluginId": _short,
        "publisherId": _short,
        "packageVersion": _short,
        "manifestDigest": _digest,
        "capabilityId": _name,
        "operationName": _name,
        "operationVersion": version,
        "operationId": uuid,
        "idempotencyKey": nullable(_key),
        "attempt": integer(1),
        "executionState": one_of(*EXECUTION_STATES),
        "effectState": one_of(*EFFECT_STATES),
        "startedAtUtc": timestamp,
        "issuedAtUtc": timestamp,
        "requestDigest": _digest,
        "resultDigest": nullable(_digest),
        "itemCount": _count,
        "byteCount": _count,
        "errorCode": nullable(_code),
        "expiresAtUtc": timestamp,
    }
)

DEPRECATION = Shape(
    {
        "element": _short,
        "deprecatedSince": _short,
        "sunsetAfter": _short,
        "replacement": _short,
        "behaviorAfterSunset": one_of("error"),
    },
    optional="replacement",
)

_grant = Shape(
    {"permissionsGrantId": _identifier, "permissionId": _name, "scope": _name, "expiresAtUtc": timestamp},
    optional="expiresAtUtc",
)

SHAPES: dict[str, Shape] = {
    "hello": Shape(
        {
            "hostVersion": _identifier,
            "protocol": Shape({"min": version, "max": version}),
            "requires": _tokens,
            "supports": _tokens,
            "codecs": array(text(1, 64), 16, unique=True),
            "maxFrameBytes": _frame_size,
        }
    ),
    "helloAck": Shape(
        {
            "protocolVersion": version,
            "enabledFeatures": _tokens,
            "requires": _tokens,
            "codec": text(1, 64),
            "maxFrameBytes": _frame_size,
            "manifestDigest": _digest,
            "plugin": Shape({"pluginId": _short, "publisherId": _short, "packageVersion": _short}),
            "deprecations": array(DEPRECATION, 1024),
        }
    ),
    "init": Shape(
        {
            "instanceId": _identifier,
            "grants": array(_grant, 256),
            "settings": free_object,
            "settingsDigest": _digest,
            "limits": Shape({"requestTimeoutMs": integer(1), "heartbeatIntervalMs": integer(1), "maxInFlight": integer(1)}),
            "acceptedClasses": array(_class, len(PAYLOAD_CLASSES), unique=True),
        }
    ),
    "initAck": Shape(
        {
            "status": one_of("ready", "degraded"),
            "message": text(),
            "capabilities": array(
                Shape(
                    {
                        "id": _name,
                        "version": _short,
                        "operations": array(Shape({"name": _name, "operationVersion": version}), 1024),
                    }
                ),
                1024,
            ),
        },
        optional="message",
    ),
    "settingsValidate": Shape({"settings": free_object}),
    "settingsValidated": Shape(
        {
            "valid": boolean,
            "normalized": free_object,
            "problems": array(Shape({"path": text(), "message": text()}), 1024),
        },
        optional="normalized",
    ),
    "request": Shape(
        {
            "requestId": uuid,
            "operationId": uuid,
            "idempotencyKey": nullable(_key),
            "attempt": integer(1),
            "deadlineUtc": nullable(timestamp),
            "capabilityId": _name,
            "operationName": _name,
            "operationVersion": version,
            "permissionsGrantId": nullable(_identifier),
            "payloadClass": _class,
            "payload": anything,
            "stream": Shape(
                {"request": boolean, "response": boolean, "initialCreditItems": _count, "initialCreditBytes": _count},
                optional="request response initialCreditItems initialCreditBytes",
            ),
            "diagnosticPolicy": one_of(*DIAGNOSTIC_POLICIES),
            "retention": one_of(*RETENTIONS),
            "secrets": _secrets,
        },
        optional="stream diagnosticPolicy retention secrets",
    ),
    "response": Shape(
        {"requestId": uuid, "operationId": uuid, "payloadClass": _class, "payload": anything, "receipt": RECEIPT},
        optional="receipt",
    ),
    "error": Shape(
        {
            "code": _code,
            "message": text(),
            "retryable": boolean,
            "blameDomain": one_of(*BLAME_DOMAINS),
            "severity": one_of(*SEVERITIES),
            "requestId": nullable(uuid),
            "operationId": nullable(uuid),
            "details": free_object,
            "receipt": RECEIPT,
            "existingOperationId": uuid,
            "supportedProtocol": Shape({"min": version, "max": version}),
            "recommendedProtocolVersion": version,
        },
        optional="details receipt existingOperationId supportedProtocol recommendedProtocolVersion",
    ),
    "progress": Shape(
        {
            "requestId": uuid,
            "operationId": uuid,
            "message": text(),
            "percentCompleted": percent,
            "current": _count,
            "total": _count,
        },
        optional="percentCompleted current total",
    ),
    "streamItem": Shape({"requestId": uuid, "operationId": uuid, "index": _count, "payload": anything}),
    "streamEnd": Shape({"requestId": uuid, "operationId": uuid, "itemCount": _count, "byteCount": _count}),
    "flow": Shape({"requestId": uuid, "creditItems": _count, "creditBytes": _count}),
    "cancel": Shape({"requestId": uuid, "reason": text()}),
    "cancelAck": Shape({"requestId": uuid}),
    "cancelled": Shape({"requestId": uuid, "operationId": uuid, "receipt": RECEIPT}, optional="receipt"),
    "healthCheck": Shape({"watch": boolean}),
    "health": Shape({"status": one_of(*HEALTH_STATUSES), "message": text(), "updatedAtUtc": timestamp}, optional="message"),
    "heartbeat": Shape({"nonce": _identifier}),
    "heartbeatAck": Shape({"nonce": _identifier}),
    "receiptQuery": Shape(
        {"receiptId": uuid, "pluginId": _short, "capabilityId": _name, "operationName": _name, "idempotencyKey": _key},
        optional="receiptId pluginId capabilityId operationName idempotencyKey",
    ),
    "receipt": RECEIPT,
    "goAway": Shape({"lastAcceptedSequence": _count, "reason": text(), "graceMs": _count}),
}
"""The body of every message type."""

_by_id = frozenset(["receiptId"])
_by_tuple = frozenset(["pluginId", "capabilityId", "operationName", "idempotencyKey"])


def check(kind: str, body: Any) -> dict[str, Any]:
    """Returns a body as it is to be used. Raises a Fault with schema.mismatch or schema.unknown_member."""
    members = SHAPES[kind](body, "")
    if kind == "receiptQuery" and frozenset(members) not in (_by_id, _by_tuple):
        raise _mismatch("", "must have receiptId alone, or pluginId, capabilityId, operationName and idempotencyKey")
    return members


def ids(body: Any) -> tuple[Optional[str], Optional[str]]:
    """Returns the requestId and operationId of a body as far as it has them, whatever else is wrong with it."""
    if not isinstance(body, dict):
        return None, None
    found = (body.get(name) for name in ("requestId", "operationId"))
    first, second = (i.lower() if isinstance(i, str) and is_uuid(i) else None for i in found)
    return first, second


def names(kinds: Iterable[str]) -> list[str]:
    """Returns the members of the bodies of some message types, for documents and tests."""
    return [f"{kind}.{member}" for kind in kinds for member in SHAPES[kind].members]

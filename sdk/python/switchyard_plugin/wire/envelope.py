"""Envelopes: the eight base members of every message and the one body beside them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Optional

from . import MAX_EXTENSIONS, codes, strictjson
from .fault import Fault
from .features import Version, format_version, parse_version
from .ids import is_uuid, parse_timestamp, timestamp_now, uuid7

MESSAGE_TYPES: dict[str, tuple[str, str]] = {
    "hello": ("host", ""),
    "helloAck": ("plugin", ""),
    "init": ("host", ""),
    "initAck": ("plugin", ""),
    "settingsValidate": ("host", "settings.validate.v1"),
    "settingsValidated": ("plugin", "settings.validate.v1"),
    "request": ("host", ""),
    "response": ("plugin", ""),
    "error": ("either", ""),
    "progress": ("plugin", "progress.v1"),
    "streamItem": ("either", "flow.credit.v1"),
    "streamEnd": ("either", "flow.credit.v1"),
    "flow": ("either", "flow.credit.v1"),
    "cancel": ("host", "cancel.v1"),
    "cancelAck": ("plugin", "cancel.v1"),
    "cancelled": ("plugin", "cancel.v1"),
    "healthCheck": ("host", ""),
    "health": ("plugin", ""),
    "heartbeat": ("either", "heartbeat.v1"),
    "heartbeatAck": ("either", "heartbeat.v1"),
    "receiptQuery": ("host", "receipt.v1"),
    "receipt": ("plugin", "receipt.v1"),
    "goAway": ("either", ""),
}
"""Every message type: who may send it ("host", "plugin" or "either") and the feature without which nobody may."""

BASE_MEMBERS = ("protocolVersion", "messageType", "messageId", "sequence", "timestampUtc", "traceId", "causationId", "extensions")

_trace = re.compile(r"[0-9a-fA-F]{32}")
_namespace = re.compile(r"[a-z0-9]+(?:\.[a-z0-9-]+)+")


class Envelope(NamedTuple):
    """One message. size is the length N of its frame in bytes."""

    version: Version
    type: str
    message_id: str
    sequence: int
    timestamp_utc: str
    trace_id: Optional[str]
    causation_id: Optional[str]
    extensions: dict[str, Any]
    body: Any
    size: int


class EnvelopeFault(Fault):
    """A frame that ends the connection, and its messageId where that could be read."""

    def __init__(self, code: str, message: str, message_id: Optional[str] = None) -> None:
        super().__init__(code, message)
        self.message_id = message_id


def scan(frame: bytes) -> Envelope:
    """Reads the JSON of one frame.

    Raises EnvelopeFault: a code of the value rules, which hold for the whole frame, or
    envelope.invalid. The body is only known to be JSON.
    """
    try:
        members = strictjson.loads(frame)
    except strictjson.StrictError as fault:
        raise EnvelopeFault(fault.code, str(fault)) from None
    if not isinstance(members, dict):
        raise EnvelopeFault(codes.ENVELOPE_INVALID, "a message must be an object")
    message_id = members.get("messageId")
    if not isinstance(message_id, str) or not is_uuid(message_id):
        raise _invalid("messageId must be a UUID", None)
    message_id = message_id.lower()
    kind = members.get("messageType")
    if not isinstance(kind, str) or kind not in MESSAGE_TYPES:
        raise _invalid("messageType is not known", message_id)
    if len(members) != len(BASE_MEMBERS) + 1 or kind not in members:
        raise _wrong_members(members, kind, message_id)
    try:
        spelt, sequence, timestamp = members["protocolVersion"], members["sequence"], members["timestampUtc"]
        trace, cause, extensions = members["traceId"], members["causationId"], members["extensions"]
    except KeyError:
        raise _wrong_members(members, kind, message_id) from None
    version = parse_version(spelt) if isinstance(spelt, str) else None
    if version is None:
        raise _invalid('protocolVersion must be a version as "1.0"', message_id)
    if type(sequence) is not int or sequence < 1:
        raise _invalid("sequence must be an integer from 1 on", message_id)
    try:
        parse_timestamp(timestamp)
    except (TypeError, ValueError):
        raise _invalid("timestampUtc must be a time as 2006-01-02T15:04:05.999999Z", message_id) from None
    if trace is not None and not (isinstance(trace, str) and _trace.fullmatch(trace)):
        raise _invalid("traceId must be 32 hexadecimal digits or null", message_id)
    if cause is not None:
        if not isinstance(cause, str) or not is_uuid(cause):
            raise _invalid("causationId must be a UUID or null", message_id)
        cause = cause.lower()
    if not isinstance(extensions, dict):
        raise _invalid("extensions must be an object", message_id)
    if extensions:
        if not all(_namespace.fullmatch(name) for name in extensions):
            raise _invalid("the names in extensions must be reverse-DNS namespaces as com.example.trace", message_id)
        if len(frame) > MAX_EXTENSIONS and _member_size(frame, "extensions") > MAX_EXTENSIONS:
            raise _invalid(f"extensions has more than {MAX_EXTENSIONS} bytes", message_id)
    return Envelope(version, kind, message_id, sequence, timestamp, trace, cause, extensions, members[kind], len(frame))


def _invalid(message: str, message_id: Optional[str]) -> EnvelopeFault:
    return EnvelopeFault(codes.ENVELOPE_INVALID, message, message_id)


def _wrong_members(members: dict[str, Any], kind: str, message_id: str) -> EnvelopeFault:
    for name in (*BASE_MEMBERS, kind):
        if name not in members:
            return _invalid(f"{name} is required", message_id)
    unknown = next(name for name in members if name != kind and name not in BASE_MEMBERS)
    return _invalid(f"the unknown member {strictjson.quote(unknown)} in a message of type {kind}", message_id)


def _member_size(frame: bytes, name: str) -> int:
    """The bytes that a member of a sound frame takes as it was sent."""
    import json

    decoder, space, text = json.JSONDecoder(), " \t\r\n", frame.decode()
    at = text.index("{") + 1
    while True:
        while text[at] in space or text[at] == ",":
            at += 1
        found, at = decoder.raw_decode(text, at)
        while text[at] in space or text[at] == ":":
            at += 1
        start = at
        _, at = decoder.raw_decode(text, at)
        if found == name:
            return len(text[start:at].encode())
        while text[at] in space:
            at += 1


class Writer:
    """Makes the envelopes of one sender: identifiers of its own, a sequence that rises by one."""

    __slots__ = ("version", "sequence")

    def __init__(self, version: str) -> None:
        self.version = version
        self.sequence = 0

    def encode(self, kind: str, body: str, cause: Optional[str] = None, trace: Optional[str] = None) -> bytes:
        """Returns the JSON of a frame; body is JSON. The sequence goes on only with commit()."""
        trace_id = f'"{trace}"' if trace else "null"
        causation = f'"{cause}"' if cause else "null"
        return (
            f'{{"protocolVersion":"{self.version}","messageType":"{kind}","messageId":"{uuid7()}","sequence":{self.sequence + 1},'
            f'"timestampUtc":"{timestamp_now()}","traceId":{trace_id},"causationId":{causation},"{kind}":{body},"extensions":{{}}}}'
        ).encode()

    def commit(self) -> None:
        """Counts the frame that encode() returned as sent."""
        self.sequence += 1

    def use(self, version: Version) -> None:
        """Writes this version from now on."""
        self.version = format_version(version)

"""The codes of error frames, and what the protocol says of each."""

from __future__ import annotations

from typing import NamedTuple

UNSUPPORTED_PROTOCOL = "unsupported_protocol"
MISSING_REQUIRED_FEATURE = "missing_required_feature"
IDENTITY_MISMATCH = "identity.mismatch"
FRAME_INVALID = "frame.invalid"
FRAME_TOO_LARGE = "frame.too_large"
ENVELOPE_INVALID = "envelope.invalid"
SEQUENCE_VIOLATION = "sequence.violation"
STATE_VIOLATION = "state.violation"
JSON_SYNTAX = "json.syntax"
JSON_DUPLICATE_NAME = "json.duplicate_name"
JSON_INVALID_UNICODE = "json.invalid_unicode"
JSON_LIMIT = "json.limit"
JSON_NUMBER = "json.number"
FLOW_CONTROL_VIOLATION = "flow_control_violation"
INVALID_ARGUMENT = "invalid_argument"
SCHEMA_MISMATCH = "schema.mismatch"
SCHEMA_UNKNOWN_MEMBER = "schema.unknown_member"
UNKNOWN_OPERATION = "unknown_operation"
UNSUPPORTED_OPERATION_VERSION = "unsupported_operation_version"
DEPRECATED_SUNSET = "deprecated.sunset"
PERMISSION_DENIED = "permission_denied"
GRANT_EXPIRED = "grant.expired"
UNTRUSTED = "untrusted"
FINGERPRINT_CHANGED = "fingerprint.changed"
REVOKED = "revoked"
PROJECT_UNTRUSTED = "project.untrusted"
PAYLOAD_CLASS_DENIED = "payload_class.denied"
FAILED_PRECONDITION = "failed_precondition"
NOT_FOUND = "not_found"
ALREADY_EXISTS = "already_exists"
CONFLICT = "conflict"
RESOURCE_EXHAUSTED = "resource_exhausted"
UNAVAILABLE = "unavailable"
DEADLINE_EXCEEDED = "deadline_exceeded"
SECRET_UNRESOLVED = "secret.unresolved"
PLUGIN_CRASHED = "plugin.crashed"
PLUGIN_TIMEOUT = "plugin.timeout"
PLUGIN_MALFORMED = "plugin.malformed"
INTERNAL = "internal"

SENDER = "sender"
"""In CODES only: the blame is the host's or the plugin's, whoever sent what is refused."""

RETRY_NO = "no"
RETRY_YES = "yes"
RETRY_IDEMPOTENT = "if idempotent"


class CodeRule(NamedTuple):
    """What the protocol says of one code. A fatal one ends the connection."""

    code: str
    retry: str
    fatal: bool
    blame: str


CODES: dict[str, CodeRule] = {
    rule.code: rule
    for rule in (
        [CodeRule(c, RETRY_NO, True, "plugin") for c in (UNSUPPORTED_PROTOCOL, MISSING_REQUIRED_FEATURE, IDENTITY_MISMATCH)]
        + [
            CodeRule(c, RETRY_NO, True, SENDER)
            for c in (
                FRAME_INVALID, FRAME_TOO_LARGE, ENVELOPE_INVALID, SEQUENCE_VIOLATION, STATE_VIOLATION,
                JSON_SYNTAX, JSON_DUPLICATE_NAME, JSON_INVALID_UNICODE, JSON_LIMIT, JSON_NUMBER,
            )
        ]
        + [
            CodeRule(c, RETRY_NO, False, SENDER)
            for c in (
                FLOW_CONTROL_VIOLATION, INVALID_ARGUMENT, SCHEMA_MISMATCH, SCHEMA_UNKNOWN_MEMBER,
                UNKNOWN_OPERATION, UNSUPPORTED_OPERATION_VERSION, DEPRECATED_SUNSET,
            )
        ]
        + [
            CodeRule(c, RETRY_NO, False, "host")
            for c in (
                PERMISSION_DENIED, GRANT_EXPIRED, UNTRUSTED, FINGERPRINT_CHANGED, REVOKED, PROJECT_UNTRUSTED, PAYLOAD_CLASS_DENIED,
            )
        ]
        + [CodeRule(c, RETRY_NO, False, "caller") for c in (FAILED_PRECONDITION, NOT_FOUND, ALREADY_EXISTS)]
        + [CodeRule(CONFLICT, RETRY_YES, False, "caller")]
        + [CodeRule(c, RETRY_YES, False, "environment") for c in (RESOURCE_EXHAUSTED, UNAVAILABLE, DEADLINE_EXCEEDED)]
        + [CodeRule(SECRET_UNRESOLVED, RETRY_NO, False, "environment")]
        + [CodeRule(c, RETRY_IDEMPOTENT, False, "plugin") for c in (PLUGIN_CRASHED, PLUGIN_TIMEOUT, PLUGIN_MALFORMED)]
        + [CodeRule(INTERNAL, RETRY_NO, False, "plugin")]
    )
}  # fmt: skip
"""Every code, in the order of the protocol's page."""


def blame(code: str, sender: str) -> str:
    """Returns whose fault a code is when sender ("host" or "plugin") sent what is refused for it."""
    rule = CODES.get(code)
    return sender if rule is None or rule.blame == SENDER else rule.blame


def retryable(code: str, idempotent: bool = False) -> bool:
    """Reports whether a request that failed with code may be sent again by what the protocol says."""
    rule = CODES.get(code)
    return rule is not None and (rule.retry == RETRY_YES or rule.retry == RETRY_IDEMPOTENT and idempotent)


def fatal(code: str) -> bool:
    """Reports whether an error with this code ends the connection."""
    rule = CODES.get(code)
    return rule is not None and rule.fatal

"""The models that plugin code works with. They are the same in every SDK, in each language's casing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

from .wire import codes
from .wire.ids import format_timestamp
from .wire.shapes import EFFECT_STATES


def format_time(moment: datetime) -> str:
    """Writes a time as the session protocol does."""
    return format_timestamp(moment)


@dataclass(frozen=True)
class OperationContext:
    """What the host says of one attempt at an operation."""

    request_id: str
    operation_id: str
    idempotency_key: Optional[str]
    attempt: int
    deadline_utc: Optional[datetime]
    trace_id: Optional[str]
    capability_id: str
    operation_name: str
    operation_version: str
    payload_class: str
    permissions_grant_id: Optional[str]
    diagnostic_policy: str
    retention: str


@dataclass(frozen=True)
class ProgressUpdate:
    """How far an operation is. percent_completed is 0 to 100."""

    message: str
    percent_completed: Optional[float] = None
    current: Optional[int] = None
    total: Optional[int] = None


@dataclass(frozen=True)
class HealthReport:
    """How the plugin is: status is healthy, degraded or unhealthy."""

    status: str
    updated_at_utc: datetime
    message: Optional[str] = None


@dataclass(frozen=True)
class SettingsProblem:
    """What is wrong with the settings at one place, a JSON Pointer. The message quotes no value."""

    path: str
    message: str


@dataclass(frozen=True)
class Grant:
    """One permission that the user gave."""

    permissions_grant_id: str
    permission_id: str
    scope: str
    expires_at_utc: Optional[datetime] = None


@dataclass(frozen=True)
class Limits:
    """What the host holds the plugin to."""

    request_timeout_ms: int
    heartbeat_interval_ms: int
    max_in_flight: int


@dataclass(frozen=True)
class OperationReceipt:
    """The durable record of one operation: digests, counts and states, never data."""

    receipt_id: str
    plugin_id: str
    publisher_id: str
    package_version: str
    manifest_digest: str
    capability_id: str
    operation_name: str
    operation_version: str
    operation_id: str
    idempotency_key: Optional[str]
    attempt: int
    execution_state: str
    effect_state: str
    started_at_utc: str
    issued_at_utc: str
    request_digest: str
    result_digest: Optional[str]
    item_count: int
    byte_count: int
    error_code: Optional[str]
    expires_at_utc: str


class PluginError(Exception):
    """An error that plugin code ends an operation with.

    The message goes to the host and into logs: it must hold nothing private. code
    is one of the protocol's (wire.codes); those that end a connection are the SDK's
    own. effect, if given, is declared as by Operation.effect.
    """

    def __init__(
        self,
        code: str,
        message: str,
        retryable: Optional[bool] = None,
        *,
        effect: Optional[str] = None,
        details: Optional[dict[str, Any]] = None,
    ) -> None:
        super().__init__(message)
        if effect is not None and effect not in EFFECT_STATES:
            raise ValueError(f"an effect is one of {', '.join(EFFECT_STATES)}")
        self.code = code
        self.message = message
        self.retryable = codes.retryable(code) if retryable is None else retryable
        self.effect = effect
        self.details = details
        self.receipt: Optional[dict[str, Any]] = None
        self.existing_operation_id: Optional[str] = None
        self.blame_domain: Optional[str] = None


class SettingsError(Exception):
    """Raised by a settings validator: what is wrong with the settings."""

    def __init__(self, *problems: SettingsProblem) -> None:
        super().__init__("; ".join(f"{p.path} {p.message}" for p in problems))
        self.problems = problems

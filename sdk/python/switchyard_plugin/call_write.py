"""Writes the answers of the call protocol: what a handler returned, as it may be sent."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, Callable, Optional

from .call_errors import CallError
from .call_models import HealthResult, InspectResult, OperateResult
from .call_read import Wrong
from .call_words import (
    APPLICATION,
    BAD_PARAMS,
    INTERNAL,
    MALFORMED,
    MAX_ERROR_BYTES,
    NOT_GRANTED,
    OPERATE_STATUSES,
    PROTOCOL_MISMATCH,
    STATE,
    UNKNOWN_METHOD,
)
from .wire import strictjson
from .wire.ids import utc_now

MEANINGS = {
    MALFORMED: "malformed request",
    UNKNOWN_METHOD: "unknown method",
    BAD_PARAMS: "bad parameters",
    INTERNAL: "the handler failed",
    APPLICATION: "the plugin reported an error",
    PROTOCOL_MISMATCH: "protocol mismatch",
    STATE: "not initialized, or initialized already",
    NOT_GRANTED: "capability or scope not granted",
}


def failure(number: str, code: int, message: str) -> bytes:
    message = strictjson.cut(strictjson.clean(message.strip()), MAX_ERROR_BYTES).strip() or MEANINGS[code]
    return f'{{"jsonrpc":"2.0","id":{number},"error":{{"code":{code},"message":{strictjson.dumps(message)}}}}}'.encode()


def valid(render: Callable[[Any], dict[str, Any]], result: Any) -> str:
    try:
        text, _ = strictjson.check(render(result))
        return text
    except (strictjson.StrictError, Wrong, AttributeError, TypeError) as fault:
        raise CallError(f"the handler returned an invalid result: {fault}", INTERNAL) from None


def _filled(text: str, at: str) -> str:
    if not text.strip():
        raise Wrong(f"{at} must not be blank")
    return strictjson.clean(text)


def _moment(at: Optional[datetime]) -> str:
    moment = (at or utc_now()).astimezone(timezone.utc).replace(tzinfo=None)
    return moment.isoformat(timespec="microseconds" if moment.microsecond else "seconds") + "Z"


def render_health(result: HealthResult) -> dict[str, Any]:
    if result.status not in ("healthy", "degraded", "unhealthy"):
        raise Wrong("status must be healthy, degraded or unhealthy")
    message = {"message": strictjson.clean(result.message)} if result.message else {}
    return {"status": result.status, **message, "checkedAt": _moment(result.checked_at)}


def render_inspection(result: InspectResult) -> dict[str, Any]:
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
            raise Wrong(f"{at}id occurs twice")
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


def render_operation(result: OperateResult) -> dict[str, Any]:
    if result.status not in OPERATE_STATUSES:
        raise Wrong("status must be succeeded, partially_succeeded or failed")
    return {
        "status": result.status,
        "summary": _filled(result.summary, "summary"),
        "output": result.output,
    }

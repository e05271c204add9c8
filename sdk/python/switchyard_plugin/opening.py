"""How a session begins: the version and the features, the settings, what the plugin can do.

The functions handle one message each of the connection c, as connection.py does
the others; what they raise as a Fault ends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from .models import Grant, HealthReport, Limits, SettingsError
from .report import bounded, error_body, log_exception
from .wire import codes, features, jcs, strictjson
from .wire.envelope import Envelope
from .wire.fault import Fault
from .wire.ids import parse_timestamp, utc_now

if TYPE_CHECKING:
    from .connection import Connection


def hello(c: "Connection", envelope: Envelope, body: dict[str, Any]) -> None:
    """Agrees on a version and features, and answers with helloAck."""
    lowest, highest = features.parse_version(body["protocol"]["min"]), features.parse_version(body["protocol"]["max"])
    assert lowest is not None and highest is not None
    c._state.move("NEGOTIATING")
    host = features.Offer(lowest, highest, body["requires"], body["supports"], body["codecs"], body["maxFrameBytes"])
    agreed = features.negotiate(host, c._offer)
    c._version = agreed.version
    c._features = frozenset(agreed.features)
    c._writer.use(agreed.version)
    manifest = c.plugin.package.manifest
    deprecations = [{n: v for n, v in d.items() if v is not None} for d in manifest.deprecations]
    answer = {
        "protocolVersion": features.format_version(agreed.version),
        "enabledFeatures": list(agreed.features),
        "requires": list(c._offer.requires),
        "codec": agreed.codec,
        "maxFrameBytes": agreed.max_frame_bytes,
        "manifestDigest": manifest.manifest_digest,
        "plugin": {
            "pluginId": manifest.plugin_id,
            "publisherId": manifest.publisher_id,
            "packageVersion": manifest.package_version,
        },
        "deprecations": deprecations,
    }
    c.send("helloAck", strictjson.dumps(answer), envelope.message_id, envelope.trace_id)
    c.max_frame = c._reader.limit = agreed.max_frame_bytes
    c._state.move("INITIALIZING")


def disagree(c: "Connection", envelope: Envelope, fault: features.Disagreement) -> None:
    """Ends the connection and says which versions the plugin speaks."""
    extra: dict[str, Any] = {
        "supportedProtocol": {
            "min": features.format_version(fault.min_version),
            "max": features.format_version(fault.max_version),
        }
    }
    if fault.recommended is not None:
        extra["recommendedProtocolVersion"] = features.format_version(fault.recommended)
    c._break(fault, envelope.message_id, extra)


def init(c: "Connection", envelope: Envelope, body: dict[str, Any]) -> None:
    """Takes grants, limits and settings; initAck follows when the plugin has started."""
    if jcs.digest(body["settings"]) != body["settingsDigest"]:
        raise Fault(codes.INVALID_ARGUMENT, "settingsDigest is not the digest of settings")
    c.grants = tuple(
        Grant(
            g["permissionsGrantId"],
            g["permissionId"],
            g["scope"],
            parse_timestamp(g["expiresAtUtc"]) if "expiresAtUtc" in g else None,
        )
        for g in body["grants"]
    )
    limits = body["limits"]
    c.limits = Limits(limits["requestTimeoutMs"], limits["heartbeatIntervalMs"], limits["maxInFlight"])
    c.accepted_classes = frozenset(body["acceptedClasses"])
    c._initializing = True
    c.start(_initialize(c, envelope, body["settings"]))


async def _initialize(c: "Connection", envelope: Envelope, settings: dict[str, Any]) -> None:
    report = HealthReport("healthy", utc_now())
    try:
        normalized, problems = await _validate(c, settings)
        if normalized is not None:
            c.settings = normalized
            report = await c.plugin._initialize(c)
    except Exception as fault:
        log_exception("checking the settings", fault, debug=False)
        c._break(Fault(codes.INTERNAL, "the plugin's own check of the settings failed"), envelope.message_id)
        return
    if problems:
        first = problems[0]
        c._break(Fault(first["code"], first["message"], f"/settings{first['path']}"), envelope.message_id)
        return
    answer: dict[str, Any] = {"status": "ready" if report.status == "healthy" else "degraded"}
    if report.message:
        answer["message"] = bounded(report.message)
    answer["capabilities"] = [
        {
            "id": capability.id,
            "version": capability.version,
            "operations": [{"name": o.name, "operationVersion": o.operation_version} for o in capability.operations],
        }
        for capability in c.plugin.package.manifest.capabilities
    ]
    if c._state.state == "INITIALIZING":
        c.send("initAck", strictjson.dumps(answer), envelope.message_id, envelope.trace_id)
        c._state.move("READY")


async def _validate(c: "Connection", settings: dict[str, Any]) -> tuple[Optional[dict[str, Any]], list[dict[str, str]]]:
    """Returns the settings as the plugin uses them, or what is wrong with them."""
    uri = c.plugin.package.manifest.settings_schema
    if uri is not None:
        found = c.schema(uri).validate(settings)
        if found:
            return None, [{"path": p.path, "message": p.message, "code": p.code} for p in found]
    try:
        normalized = await c.plugin._validate_settings(settings)
    except SettingsError as fault:
        wrong = fault.problems
        return None, [{"path": p.path, "message": bounded(p.message), "code": codes.INVALID_ARGUMENT} for p in wrong]
    _, read = strictjson.check(normalized)
    return read, []


def settings_validate(c: "Connection", envelope: Envelope, body: dict[str, Any]) -> None:
    """Checks settings that are not put in force."""
    c.start(_answer_settings(c, envelope, body["settings"]))


async def _answer_settings(c: "Connection", envelope: Envelope, settings: dict[str, Any]) -> None:
    try:
        normalized, problems = await _validate(c, settings)
    except Exception as fault:
        log_exception("checking settings", fault, debug=False)
        error = error_body(codes.INTERNAL, "the plugin's own check of the settings failed", blame="plugin")
        c.send("error", strictjson.dumps(error), envelope.message_id, envelope.trace_id)
        return
    answer: dict[str, Any] = {"valid": not problems}
    if normalized is not None:
        answer["normalized"] = normalized
    answer["problems"] = [{"path": p["path"], "message": p["message"]} for p in problems]
    c.send("settingsValidated", strictjson.dumps(answer), envelope.message_id, envelope.trace_id)

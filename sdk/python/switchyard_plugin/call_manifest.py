"""The manifest of the call protocol, plugin.json."""

from __future__ import annotations

import re
from typing import Any

from .call_errors import CallManifestError
from .call_read import Wrong, filled_text, read_object, string, strings
from .call_words import (
    CAPABILITY_INSPECT,
    CAPABILITY_OPERATE,
    MANIFEST_FILE,
    MANIFEST_VERSION,
    MAX_MANIFEST_BYTES,
    NEEDS,
    PROTOCOL,
    SCOPES,
)
from .wire import strictjson


def parse_manifest(document: bytes) -> dict[str, Any]:
    """Reads a plugin.json of the call protocol. Raises CallManifestError."""
    if len(document) > MAX_MANIFEST_BYTES:
        raise CallManifestError(f"{MANIFEST_FILE}: more than {MAX_MANIFEST_BYTES} bytes")
    try:
        found = read_object(
            strictjson.loads(document),
            "",
            {
                "schemaVersion": string,
                "id": string,
                "name": filled_text,
                "version": filled_text,
                "protocolVersion": string,
                "executable": filled_text,
                "arguments": strings,
                "capabilities": strings,
                "requestedScopes": strings,
            },
        )
        _check_manifest(found)
    except (strictjson.StrictError, Wrong) as fault:
        raise CallManifestError(f"{MANIFEST_FILE}: {fault}") from None
    order = ("schemaVersion", "id", "name", "version", "protocolVersion", "executable", "arguments", "capabilities", "requestedScopes")
    return {name: found[name] for name in order}


def _check_manifest(found: dict[str, Any]) -> None:
    for name, wanted in (("schemaVersion", MANIFEST_VERSION), ("protocolVersion", PROTOCOL)):
        if found[name] != wanted:
            raise Wrong(f'{name} must be "{wanted}"')
    if not re.fullmatch(r"[a-z][a-z0-9.-]{0,63}", found["id"]):
        raise Wrong("id must match ^[a-z][a-z0-9.-]{0,63}$")
    for name, least, most, known in (
        ("capabilities", 1, 16, (CAPABILITY_INSPECT, CAPABILITY_OPERATE)),
        ("requestedScopes", 0, 16, SCOPES),
    ):
        values = found[name]
        if not least <= len(values) <= most or len(set(values)) != len(values) or any(v not in known for v in values):
            raise Wrong(f"{name} must be {least} to {most} different ones of {', '.join(known)}")
    for capability in found["capabilities"]:
        if NEEDS[capability] not in found["requestedScopes"]:
            raise Wrong(f"{capability} needs {NEEDS[capability]} among requestedScopes")

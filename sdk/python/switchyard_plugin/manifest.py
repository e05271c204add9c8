"""The manifest of a session package, plugin.json, as a plugin reads it about itself.

The host has looked at it before; what is checked here is everything that the SDK
relies on: the members, their forms, and that names and versions agree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Optional

from .formats import uri
from .wire import codes, features, jcs, shapes
from .wire.fault import Fault

FILE_NAME = "plugin.json"
SCHEMA_VERSION = "urn:switchyard:plugin-manifest:1"
MAX_BYTES = 256 << 10
"""Bytes of plugin.json."""


class ManifestError(ValueError):
    """A manifest that breaks a rule; the message says where."""


@dataclass(frozen=True)
class OperationSpec:
    """What the manifest declares of one operation. The schemas are named by URI."""

    capability_id: str
    name: str
    operation_version: str
    request_schema: str
    response_schema: str
    streams_request: bool
    streams_response: bool
    idempotent: bool
    receipts: bool


@dataclass(frozen=True)
class Capability:
    """A versioned group of operations."""

    id: str
    version: str
    operations: tuple[OperationSpec, ...]


@dataclass(frozen=True)
class SessionManifest:
    """The manifest of a session package. document is the whole of it."""

    plugin_id: str
    publisher_id: str
    package_version: str
    protocol_min_version: str
    protocol_max_version: str
    features: tuple[str, ...]
    capabilities: tuple[Capability, ...]
    accepted_classes: tuple[str, ...]
    requires_heartbeat: bool
    settings_schema: Optional[str]
    settings_version: Optional[str]
    deprecations: tuple[dict[str, Any], ...]
    manifest_digest: str
    schema_digests: dict[str, str]
    document: dict[str, Any]

    def operation(self, capability_id: str, name: str) -> Optional[OperationSpec]:
        """Returns an operation, or None."""
        for capability in self.capabilities:
            if capability.id == capability_id:
                for spec in capability.operations:
                    if spec.name == name:
                        return spec
        return None


def _uri(value: Any, path: str) -> str:
    if type(value) is not str or not uri(value):
        raise Fault(codes.SCHEMA_MISMATCH, "must be a URI with a scheme", path)
    return value


def _file(value: Any, path: str) -> str:
    """A path that names a file of the package."""
    parts = value.split("/") if type(value) is str else []
    depth = 0
    for part in parts:
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            break
    if not 1 <= len("".join(parts)) <= 240 or parts[0] == "" or parts[-1] in ("", ".", "..") or depth < 1 or re.search(r"[\\:\x00-\x1f\x7f-\x9f]", value):
        raise Fault(codes.SCHEMA_MISMATCH, 'must name a file inside the package, relative to it, with "/"', path)
    return str(value)


def _list(check: shapes.Check, least: int = 0, most: int = 1024, unique: bool = False) -> shapes.Check:
    walk = shapes.array(check, most, unique)

    def checked(value: Any, path: str) -> Any:
        found = walk(value, path)
        if len(found) < least:
            raise Fault(codes.SCHEMA_MISMATCH, f"must have at least {least} elements", path)
        return found

    return checked


_name = shapes.matching(r"[a-z][a-z0-9._-]{1,63}", "a name as catalog.index")
_dns = shapes.matching(r"[a-z0-9]+(?:\.[a-z0-9-]+)+", "a reverse-DNS name")
_plugin_id = shapes.matching(r"(?=.{1,64}\Z)[a-z][a-z0-9]*(?:\.[a-z0-9-]+)+", "a reverse-DNS name of at most 64 bytes that begins with a letter")
_number = "(?:0|[1-9][0-9]*)"
_identifier = "(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_semver = shapes.matching(
    rf"(?=.{{1,64}}\Z){_number}\.{_number}\.{_number}(?:-{_identifier}(?:\.{_identifier})*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    "a semantic version",
)
_digest = shapes.matching(r"sha256:[0-9A-Fa-f]{64}", '"sha256:" and 64 hexadecimal digits')
_ref = shapes.Shape({"uri": _uri, "digest": _digest})
_class = shapes.one_of(*shapes.PAYLOAD_CLASSES)
_scope = shapes.one_of(
    "settings.read", "settings.write", "filesystem.read", "filesystem.write", "network.connect",
    "clipboard.read", "clipboard.write", "ui.contribute", "background.run", "bounded.private-data",
)  # fmt: skip
_element = shapes.matching(
    r"(?:capability|feature|permission):[a-z][a-z0-9._-]{1,63}|operation:[a-z][a-z0-9._-]{1,63}/[a-z][a-z0-9._-]{1,63}|setting:/.{1,1022}",
    "capability:ID, operation:CAPABILITY/NAME, feature:TOKEN, permission:ID or setting:/POINTER",
)
_display = shapes.Shape({"displayName": shapes.text(1, 128), "description": shapes.text(0, 4096)}, optional="displayName description")

_MANIFEST = shapes.Shape(
    {
        "manifestSchemaVersion": shapes.one_of(SCHEMA_VERSION),
        "plugin": shapes.Shape(
            {
                "pluginId": _plugin_id,
                "displayName": shapes.text(1, 128),
                "description": shapes.text(0, 4096),
                "categories": _list(_name, most=32, unique=True),
                "localization": shapes.free_object,
            },
            optional="description categories localization",
        ),
        "publisher": shapes.Shape({"publisherId": _dns, "displayName": shapes.text(1, 128), "website": _uri}, optional="website"),
        "packageVersion": _semver,
        "protocol": shapes.Shape({"minVersion": shapes.version, "maxVersion": shapes.version, "features": _list(_name, unique=True)}),
        "entryPoints": shapes.Shape(
            {
                "executable": shapes.Shape({"path": _file, "arguments": _list(shapes.text(0, 4096), most=32)}),
                "python": shapes.Shape(
                    {
                        "module": shapes.matching(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*", "a module's name"),
                        "callable": shapes.matching(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*", "a callable's name"),
                        "pythonVersion": shapes.version,
                    }
                ),
                "dotnet": shapes.Shape({"assembly": _file, "type": shapes.text(1, 1024), "targetFramework": _name}),
            },
            optional="executable python dotnet",
        ),
        "capabilities": _list(
            shapes.Shape(
                {
                    "id": _name,
                    "version": _semver,
                    "operations": _list(
                        shapes.Shape(
                            {
                                "name": _name,
                                "operationVersion": shapes.version,
                                "requestSchema": _ref,
                                "responseSchema": _ref,
                                "streaming": shapes.Shape({"request": shapes.boolean, "response": shapes.boolean}),
                                "idempotent": shapes.boolean,
                                "receipts": shapes.boolean,
                            },
                            optional="receipts",
                        ),
                        least=1,
                    ),
                }
            ),
            least=1,
        ),
        "permissions": _list(
            shapes.Shape(
                {"id": _name, "required": shapes.boolean, "scope": _scope, "justification": shapes.text(0, 1024)},
                optional="justification",
            )
        ),
        "settings": shapes.Shape({"schema": _ref, "version": _semver}, optional="schema version"),
        "runtime": shapes.Shape(
            {
                "os": _list(shapes.one_of("windows", "linux", "macos"), unique=True),
                "architectures": _list(shapes.one_of("x64", "arm64"), unique=True),
                "minHostVersion": shapes.version,
            },
            optional="minHostVersion",
        ),
        "network": shapes.Shape(
            {
                "destinations": _list(
                    shapes.Shape(
                        {"scheme": shapes.one_of("https", "wss"), "hostPattern": shapes.text(1, 255), "port": shapes.integer(1, 65535)},
                        optional="port",
                    )
                )
            },
            optional="destinations",
        ),
        "dataDeclarations": shapes.Shape(
            {
                "acceptedClasses": _list(_class, unique=True),
                "defaultInboundClass": _class,
                "defaultReceiptClass": shapes.one_of("public", "internal", "sensitive"),
            },
            optional="acceptedClasses defaultInboundClass defaultReceiptClass",
        ),
        "lifecycle": shapes.Shape(
            {
                "supportsHealthWatch": shapes.boolean,
                "requiresHeartbeat": shapes.boolean,
                "backgroundBehavior": shapes.one_of("none", "on-demand", "scheduled", "continuous"),
            },
            optional="supportsHealthWatch requiresHeartbeat backgroundBehavior",
        ),
        "deprecations": _list(
            shapes.Shape(
                {
                    "element": _element,
                    "deprecatedSince": shapes.timestamp,
                    "sunsetAfter": shapes.timestamp,
                    "replacement": shapes.nullable(_element),
                    "behaviorAfterSunset": shapes.one_of("error"),
                }
            )
        ),
        "provenance": shapes.Shape(
            {"manifestDigest": _digest, "signatureRefs": _list(_uri), "sbomRef": _uri, "provenanceRef": _uri},
            optional="signatureRefs sbomRef provenanceRef",
        ),
    },
    optional="settings network dataDeclarations lifecycle deprecations",
)


def digest(document: dict[str, Any]) -> str:
    """Returns the manifest digest: over the canonical form without the member provenance.manifestDigest."""
    provenance = {n: v for n, v in document["provenance"].items() if n != "manifestDigest"}
    return jcs.digest({**document, "provenance": provenance})


def parse(document: Any) -> SessionManifest:
    """Reads a manifest that strictjson.loads has read. Raises ManifestError."""
    try:
        m = _MANIFEST(document)
    except Fault as fault:
        raise ManifestError(f"{FILE_NAME}: {fault.path or '/'}: {fault.args[0].removeprefix(fault.path).strip()}") from None
    found = digest(document)
    if found != m["provenance"]["manifestDigest"].lower():
        raise ManifestError(f"{FILE_NAME}: /provenance/manifestDigest: the digest of this manifest is {found}")
    protocol = m["protocol"]
    lowest, highest = features.parse_version(protocol["minVersion"]), features.parse_version(protocol["maxVersion"])
    assert lowest is not None and highest is not None
    if lowest > highest:
        raise ManifestError(f"{FILE_NAME}: /protocol/minVersion: is above maxVersion")
    if not m["entryPoints"]:
        raise ManifestError(f"{FILE_NAME}: /entryPoints: must have at least one of executable, python and dotnet")
    schemas: dict[str, str] = {}

    def reference(ref: dict[str, str]) -> str:
        if schemas.setdefault(ref["uri"], ref["digest"].lower()) != ref["digest"].lower():
            raise ManifestError(f"{FILE_NAME}: the schema {ref['uri']} is named with two digests")
        return ref["uri"]

    capabilities = tuple(
        Capability(
            c["id"],
            c["version"],
            tuple(
                OperationSpec(
                    c["id"], o["name"], o["operationVersion"], reference(o["requestSchema"]), reference(o["responseSchema"]),
                    o["streaming"]["request"], o["streaming"]["response"], o["idempotent"], o.get("receipts", True),
                )
                for o in c["operations"]
            ),
        )
        for c in m["capabilities"]
    )  # fmt: skip
    _different("/capabilities", [c.id for c in capabilities])
    for i, c in enumerate(capabilities):
        _different(f"/capabilities/{i}/operations", [o.name for o in c.operations])
    _different("/permissions", [p["id"] for p in m["permissions"]])
    if "flow.credit.v1" not in protocol["features"] and any(o.streams_request or o.streams_response for c in capabilities for o in c.operations):
        raise ManifestError(f"{FILE_NAME}: /protocol/features: operations that stream need flow.credit.v1")
    settings = m.get("settings", {})
    data = m.get("dataDeclarations", {})
    return SessionManifest(
        plugin_id=m["plugin"]["pluginId"],
        publisher_id=m["publisher"]["publisherId"],
        package_version=m["packageVersion"],
        protocol_min_version=protocol["minVersion"],
        protocol_max_version=protocol["maxVersion"],
        features=tuple(protocol["features"]),
        capabilities=capabilities,
        accepted_classes=tuple(data.get("acceptedClasses", ("public", "internal"))),
        requires_heartbeat=m.get("lifecycle", {}).get("requiresHeartbeat", False),
        settings_schema=reference(settings["schema"]) if "schema" in settings else None,
        settings_version=settings.get("version"),
        deprecations=tuple(m.get("deprecations", ())),
        manifest_digest=found,
        schema_digests=schemas,
        document=document,
    )


def _different(path: str, names: list[str]) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ManifestError(f"{FILE_NAME}: {path}/{i}: {name} occurs twice")

"""Versions and features of the session protocol, and how two sides agree on them."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional, Sequence

from . import DEFAULT_MAX_FRAME, MAX_VERSION, MIN_VERSION, codes
from .fault import Fault

Version = tuple[int, int]

HEALTH_WATCH = "health.watch.v1"
TRANSPORT_UNIX = "transport.unix.v1"
CODEC_CBOR = "codec.cbor.v1"
CANCEL = "cancel.v1"
PROGRESS = "progress.v1"
FLOW_CREDIT = "flow.credit.v1"
RECEIPTS = "receipt.v1"
RECEIPT_SIGNATURE = "receipt.signature.v1"
HEARTBEAT = "heartbeat.v1"
SECRETS_INJECT = "secrets.inject.v1"
SETTINGS_VALIDATE = "settings.validate.v1"

FEATURES: dict[str, Version] = {
    HEALTH_WATCH: (1, 0),
    TRANSPORT_UNIX: (1, 0),
    CODEC_CBOR: (1, 0),
    CANCEL: (1, 1),
    PROGRESS: (1, 1),
    FLOW_CREDIT: (1, 1),
    RECEIPTS: (1, 2),
    RECEIPT_SIGNATURE: (1, 2),
    HEARTBEAT: (1, 2),
    SECRETS_INJECT: (1, 2),
    SETTINGS_VALIDATE: (1, 2),
}
"""Every feature and the version from which on it exists."""

IMPLEMENTED = frozenset(FEATURES) - {CODEC_CBOR, RECEIPT_SIGNATURE}
"""The features that this SDK can turn on."""

_version = re.compile(r"(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})")


def parse_version(text: str) -> Optional[Version]:
    """Reads "MAJOR.MINOR", two numbers of at most six digits without needless zeros; None for anything else."""
    match = _version.fullmatch(text)
    return (int(match[1]), int(match[2])) if match else None


def format_version(version: Version) -> str:
    """Writes a version."""
    return f"{version[0]}.{version[1]}"


def in_version(feature: str, version: Version) -> bool:
    """Reports whether a feature exists in a version. A token that is no feature is in none."""
    since = FEATURES.get(feature)
    return since is not None and since[0] == version[0] and since <= version


class Offer(NamedTuple):
    """What one side of a connection can do."""

    min_version: Version
    max_version: Version
    requires: Sequence[str]
    supports: Sequence[str]
    codecs: Sequence[str] = ("json",)
    max_frame_bytes: int = DEFAULT_MAX_FRAME


class Agreement(NamedTuple):
    """What is in force for a connection."""

    version: Version
    features: tuple[str, ...]
    codec: str
    max_frame_bytes: int


class Disagreement(Fault):
    """Why there is no connection, with the versions that this side speaks and the one it recommends."""

    def __init__(self, code: str, message: str, plugin: Offer, recommended: Optional[Version] = None) -> None:
        super().__init__(code, message)
        self.min_version = plugin.min_version
        self.max_version = plugin.max_version
        self.recommended = recommended


def plugin_offer(
    minimum: Version, maximum: Version, features: Sequence[str], *, streams: bool, requires_heartbeat: bool
) -> Offer:
    """Returns what a plugin with this manifest offers.

    A version in which a declared capability would be lost does not count: streams
    need flow.credit.v1, and a plugin that requires heartbeats needs heartbeat.v1.
    """
    requires = [f for f, needed in ((FLOW_CREDIT, streams), (HEARTBEAT, requires_heartbeat)) if needed]
    lowest = max([minimum, MIN_VERSION, *(FEATURES[f] for f in requires)])
    return Offer(lowest, min(maximum, MAX_VERSION), requires, [f for f in features if f in IMPLEMENTED])


def negotiate(host: Offer, plugin: Offer) -> Agreement:
    """Chooses the highest version that both speak and the features that both name. Raises Disagreement."""
    # A range may span major versions: within it, all of those below the last are spoken.
    version = min(host.max_version, plugin.max_version)
    if version < host.min_version or version < plugin.min_version:
        # Where the host is too new, the plugin's last is the nearest; else its first.
        nearest = plugin.max_version if host.min_version > plugin.max_version else plugin.min_version
        raise Disagreement(
            codes.UNSUPPORTED_PROTOCOL,
            f"this plugin speaks {format_version(plugin.min_version)} to {format_version(plugin.max_version)},"
            f" the host {format_version(host.min_version)} to {format_version(host.max_version)}",
            plugin,
            nearest,
        )
    on = {f for f in (*host.requires, *host.supports) if in_version(f, version)}
    features = tuple(f for f in plugin.supports if f in on)
    missing = [f for f in host.requires if f not in features]
    if missing:
        raise Disagreement(
            codes.MISSING_REQUIRED_FEATURE,
            f"{len(missing)} of the features that the host requires are not offered in {format_version(version)}",
            plugin,
        )
    if "json" not in host.codecs:
        raise Disagreement(codes.MISSING_REQUIRED_FEATURE, "this plugin knows the codec json only", plugin)
    return Agreement(version, features, "json", min(host.max_frame_bytes, plugin.max_frame_bytes))

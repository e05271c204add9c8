"""The words and numbers of the call protocol."""

from __future__ import annotations

PROTOCOL = "switchyard.plugin/v1"
MANIFEST_VERSION = "switchyard.plugin-manifest/v1"
MANIFEST_FILE = "plugin.json"
MAX_MANIFEST_BYTES = 64 << 10
MAX_MESSAGE_BYTES = 1 << 20
"""Bytes of one request or response, without its line feed."""
MAX_ERROR_BYTES = 1024
"""Bytes of the message of an error."""

SCOPE_METADATA_READ = "project.metadata.read"
SCOPE_FILES_READ = "project.files.read"
SCOPE_OPERATE = "project.operate"
SCOPES = (SCOPE_METADATA_READ, SCOPE_FILES_READ, SCOPE_OPERATE)
CAPABILITY_INSPECT = "project.inspect"
CAPABILITY_OPERATE = "project.operate"

METHOD_INITIALIZE = "initialize"
METHOD_HEALTH = "plugin.health"

OPERATE_STATUSES = ("succeeded", "partially_succeeded", "failed")

MALFORMED = -32700
UNKNOWN_METHOD = -32601
BAD_PARAMS = -32602
INTERNAL = -32603
APPLICATION = -32000
PROTOCOL_MISMATCH = -32001
STATE = -32002
NOT_GRANTED = -32003

NEEDS = {CAPABILITY_INSPECT: SCOPE_METADATA_READ, CAPABILITY_OPERATE: SCOPE_OPERATE}
"""The scope that a capability needs."""

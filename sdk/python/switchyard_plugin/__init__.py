"""The SDK for Switchyard plugins in Python.

Both protocols are here: SessionPlugin serves typed operations with streams,
receipts, progress and cancellation, CallPlugin inspects and operates on a project.
docs/sdk-python.md says how to write one. It needs Python 3.11 and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .call import CallPlugin
    from .call_errors import CallError, bad_input, not_granted, unknown_action
    from .call_models import Action, Fact, HealthResult, InspectRequest, InspectResult, OperateRequest, OperateResult, Project
    from .launch import run
    from .manifest import Capability, ManifestError, OperationSpec, SessionManifest
    from .models import (
        Grant,
        HealthReport,
        Limits,
        OperationContext,
        OperationReceipt,
        PluginError,
        ProgressUpdate,
        SettingsError,
        SettingsProblem,
        format_time,
    )
    from .operation import Operation
    from .package import Package, PackageError
    from .plugin import HandlerError, SessionPlugin
    from .receipts import ReceiptStore
    from .schema import Schema
    from .schema_problems import Problem, SchemaError

_PLACES = {
    "Action": "call_models",
    "CallError": "call_errors",
    "CallPlugin": "call",
    "Fact": "call_models",
    "HealthResult": "call_models",
    "InspectRequest": "call_models",
    "InspectResult": "call_models",
    "OperateRequest": "call_models",
    "OperateResult": "call_models",
    "Project": "call_models",
    "bad_input": "call_errors",
    "not_granted": "call_errors",
    "unknown_action": "call_errors",
    "run": "launch",
    "Capability": "manifest",
    "ManifestError": "manifest",
    "OperationSpec": "manifest",
    "SessionManifest": "manifest",
    "Grant": "models",
    "HealthReport": "models",
    "Limits": "models",
    "OperationContext": "models",
    "OperationReceipt": "models",
    "PluginError": "models",
    "ProgressUpdate": "models",
    "SettingsError": "models",
    "SettingsProblem": "models",
    "format_time": "models",
    "Operation": "operation",
    "Package": "package",
    "PackageError": "package",
    "HandlerError": "plugin",
    "SessionPlugin": "plugin",
    "ReceiptStore": "receipts",
    "Problem": "schema_problems",
    "Schema": "schema",
    "SchemaError": "schema_problems",
}

__all__ = [
    "Action",
    "CallError",
    "CallPlugin",
    "Capability",
    "Fact",
    "Grant",
    "HandlerError",
    "HealthReport",
    "HealthResult",
    "InspectRequest",
    "InspectResult",
    "Limits",
    "ManifestError",
    "OperateRequest",
    "OperateResult",
    "Operation",
    "OperationContext",
    "OperationReceipt",
    "OperationSpec",
    "Package",
    "PackageError",
    "PluginError",
    "Problem",
    "ProgressUpdate",
    "Project",
    "ReceiptStore",
    "Schema",
    "SchemaError",
    "SessionManifest",
    "SessionPlugin",
    "SettingsError",
    "SettingsProblem",
    "bad_input",
    "format_time",
    "not_granted",
    "run",
    "unknown_action",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Imports what is asked for: a start loads only the parts that the plugin uses."""
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{place}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

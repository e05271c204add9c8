"""What handlers of the call protocol are given and what they return."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Optional


@dataclass(frozen=True)
class Project:
    """What the host tells about a project; root is None unless project.files.read was granted."""

    id: str
    display_name: str
    root: Optional[str] = None


@dataclass(frozen=True)
class HealthResult:
    """The answer to plugin.health: healthy, degraded or unhealthy; checked now unless it says when."""

    status: str
    message: str = ""
    checked_at: Optional[datetime] = None


@dataclass(frozen=True)
class InspectRequest:
    """Asks what the plugin sees in a project."""

    project: Project
    granted_scopes: tuple[str, ...]

    def granted(self, scope: str) -> bool:
        """Whether the host granted a scope to this process."""
        return scope in self.granted_scopes


@dataclass(frozen=True)
class OperateRequest:
    """Asks for one action; input is any JSON value."""

    project: Project
    action: str
    input: Any
    granted_scopes: tuple[str, ...]

    def granted(self, scope: str) -> bool:
        """Whether the host granted a scope to this process."""
        return scope in self.granted_scopes


@dataclass(frozen=True)
class Fact:
    """One thing that the plugin found out. Only value and warning may be blank."""

    id: str
    label: str
    value: str
    source: str
    warning: str = ""


@dataclass(frozen=True)
class Action:
    """Something that the plugin offers to do through project.operate; risk is free text."""

    id: str
    name: str
    description: str
    risk: str


@dataclass(frozen=True)
class InspectResult:
    """The answer to project.inspect."""

    summary: str
    facts: tuple[Fact, ...] | list[Fact] = ()
    actions: tuple[Action, ...] | list[Action] = ()
    warnings: tuple[str, ...] | list[str] = ()
    observed_at: Optional[datetime] = None


@dataclass(frozen=True)
class OperateResult:
    """The answer to project.operate: status is succeeded, partially_succeeded or failed; output is any JSON value, {} where there is nothing to say."""

    status: str
    summary: str
    output: Any = field(default_factory=dict)

"""The five state machines of a session as data: what a table does not list is refused."""

from __future__ import annotations

from . import codes
from .fault import Fault

Edges = tuple[tuple[str, str], ...]


class Table:
    """A state machine: its states in the order of the protocol's page, the first one initial, and its edges."""

    def __init__(self, name: str, states: str, edges: Edges) -> None:
        self.name = name
        self.states = tuple(states.split())
        self.initial = self.states[0]
        self.edges = frozenset(edges)

    def allows(self, before: str, after: str) -> bool:
        """Reports whether the machine may go from one state to the other."""
        return (before, after) in self.edges

    def final(self, state: str) -> bool:
        """Reports whether no edge leads out of state."""
        return not any(before == state for before, _ in self.edges)

    def start(self) -> "Machine":
        """Returns a machine in the initial state."""
        return Machine(self)


class Machine:
    """One machine, in one state of its table."""

    __slots__ = ("table", "state")

    def __init__(self, table: Table) -> None:
        self.table = table
        self.state = table.initial

    def move(self, to: str) -> None:
        """Goes to a state, or raises a Fault with state.violation and stays."""
        if (self.state, to) not in self.table.edges:
            raise Fault(codes.STATE_VIOLATION, f"{self.table.name}: {to} does not follow {self.state}")
        self.state = to


def _each(states: str, after: str) -> Edges:
    return tuple((before, after) for before in states.split())


CONNECTION = Table(
    "connection",
    "DISCONNECTED CONNECTING NEGOTIATING INITIALIZING READY DRAINING FAILED CLOSED",
    (
        ("DISCONNECTED", "CONNECTING"),
        ("CONNECTING", "NEGOTIATING"),
        ("NEGOTIATING", "INITIALIZING"),
        ("INITIALIZING", "READY"),
        ("READY", "DRAINING"),
        ("READY", "CLOSED"),
        ("DRAINING", "CLOSED"),
        *_each("DISCONNECTED CONNECTING NEGOTIATING INITIALIZING READY DRAINING", "FAILED"),
        ("FAILED", "CLOSED"),
    ),
)
"""The life of a connection, the same on both sides."""

LIFECYCLE = Table(
    "lifecycle",
    "DISCOVERED LOADED STARTING READY BUSY DEGRADED STOPPING STOPPED TERMINATED",
    (
        ("DISCOVERED", "LOADED"),
        ("LOADED", "STARTING"),
        ("STARTING", "READY"),
        ("READY", "BUSY"),
        ("BUSY", "READY"),
        *_each("READY BUSY", "DEGRADED"),
        ("DEGRADED", "READY"),
        ("DEGRADED", "BUSY"),
        *_each("DEGRADED READY BUSY", "STOPPING"),
        ("STOPPING", "STOPPED"),
        ("STOPPED", "TERMINATED"),
    ),
)
"""The life of a plugin, as a host sees it."""

OPERATION = Table(
    "operation",
    "ACCEPTED VALIDATING RUNNING STREAMING CANCELLING COMPLETED FAILED CANCELLED TERMINAL",
    (
        ("ACCEPTED", "VALIDATING"),
        ("VALIDATING", "RUNNING"),
        ("RUNNING", "STREAMING"),
        *_each("ACCEPTED VALIDATING RUNNING STREAMING", "CANCELLING"),
        *_each("ACCEPTED VALIDATING RUNNING STREAMING CANCELLING", "FAILED"),
        *_each("RUNNING STREAMING CANCELLING", "COMPLETED"),
        ("CANCELLING", "CANCELLED"),
        *_each("COMPLETED FAILED CANCELLED", "TERMINAL"),
    ),
)
"""The life of one request."""

CANCELLATION = Table(
    "cancellation",
    "NONE REQUESTED ACKNOWLEDGED RESOLVED",
    (
        ("NONE", "REQUESTED"),
        ("REQUESTED", "ACKNOWLEDGED"),
        *_each("NONE REQUESTED ACKNOWLEDGED", "RESOLVED"),
    ),
)
"""What becomes of the wish to end a request early."""

SHUTDOWN = Table(
    "shutdown",
    "RUNNING DRAIN_ANNOUNCED CANCEL_INFLIGHT FLUSH_TERMINALS CLOSE_TRANSPORT EXITED",
    (
        ("RUNNING", "DRAIN_ANNOUNCED"),
        ("DRAIN_ANNOUNCED", "CANCEL_INFLIGHT"),
        *_each("DRAIN_ANNOUNCED CANCEL_INFLIGHT", "FLUSH_TERMINALS"),
        ("FLUSH_TERMINALS", "CLOSE_TRANSPORT"),
        ("CLOSE_TRANSPORT", "EXITED"),
    ),
)
"""The orderly end of a session."""

TABLES = (CONNECTION, LIFECYCLE, OPERATION, CANCELLATION, SHUTDOWN)

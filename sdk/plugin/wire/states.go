package wire

import "slices"

// A State is one of a table.
type State string

// An Edge is a transition that is allowed, and what makes it.
type Edge struct {
	From, To State
	On       string
}

// A Table is a state machine as data: what it does not list is refused.
type Table struct {
	Name    string
	Initial State
	States  []State // in the order of the protocol's page
	Edges   []Edge
}

// Allows reports whether the machine may go from one state to the other.
func (t *Table) Allows(from, to State) bool {
	for i := range t.Edges {
		if e := &t.Edges[i]; e.From == from && e.To == to {
			return true
		}
	}
	return false
}

// Final reports whether no edge leads out of s.
func (t *Table) Final(s State) bool {
	return !slices.ContainsFunc(t.Edges, func(e Edge) bool { return e.From == s })
}

// Start returns a machine in the table's initial state.
func (t *Table) Start() Machine { return Machine{table: t, state: t.Initial} }

// A Machine is in one state of a table. It is not safe for concurrent use.
type Machine struct {
	table *Table
	state State
}

// State returns where the machine is.
func (m *Machine) State() State { return m.state }

// Is reports whether the machine is in one of the states.
func (m *Machine) Is(states ...State) bool { return slices.Contains(states, m.state) }

// Move goes to a state. The error is a *Fault with state.violation, and then the
// machine stays where it is.
func (m *Machine) Move(to State) error {
	if !m.table.Allows(m.state, to) {
		return faultf(CodeStateViolation, 0, "%s: %s does not follow %s", m.table.Name, to, m.state)
	}
	m.state = to
	return nil
}

// The states of a connection.
const (
	ConnectionDisconnected State = "DISCONNECTED"
	ConnectionConnecting   State = "CONNECTING"
	ConnectionNegotiating  State = "NEGOTIATING"
	ConnectionInitializing State = "INITIALIZING"
	ConnectionReady        State = "READY"
	ConnectionDraining     State = "DRAINING"
	ConnectionFailed       State = "FAILED"
	ConnectionClosed       State = "CLOSED"
)

// Connection is the life of a connection, the same on both sides.
var Connection = &Table{
	Name:    "connection",
	Initial: ConnectionDisconnected,
	States: []State{ConnectionDisconnected, ConnectionConnecting, ConnectionNegotiating, ConnectionInitializing,
		ConnectionReady, ConnectionDraining, ConnectionFailed, ConnectionClosed},
	Edges: []Edge{
		{ConnectionDisconnected, ConnectionConnecting, "the process is started or the socket connected"},
		{ConnectionConnecting, ConnectionNegotiating, "hello"},
		{ConnectionNegotiating, ConnectionInitializing, "helloAck"},
		{ConnectionInitializing, ConnectionReady, "initAck"},
		{ConnectionReady, ConnectionDraining, "goAway sent or received"},
		{ConnectionReady, ConnectionClosed, "the host closes its end"},
		{ConnectionDraining, ConnectionClosed, "the last request is terminal and the host closes its end"},
		{ConnectionDisconnected, ConnectionFailed, "the process does not start"},
		{ConnectionConnecting, ConnectionFailed, "a fatal fault, or the other side is gone"},
		{ConnectionNegotiating, ConnectionFailed, "a fatal fault, or the other side is gone"},
		{ConnectionInitializing, ConnectionFailed, "a fatal fault, or the other side is gone"},
		{ConnectionReady, ConnectionFailed, "a fatal fault, or the other side is gone"},
		{ConnectionDraining, ConnectionFailed, "a fatal fault, or the other side is gone"},
		{ConnectionFailed, ConnectionClosed, "the transport is closed"},
	},
}

// The states of a plugin's life, as a host sees it.
const (
	LifecycleDiscovered State = "DISCOVERED"
	LifecycleLoaded     State = "LOADED"
	LifecycleStarting   State = "STARTING"
	LifecycleReady      State = "READY"
	LifecycleBusy       State = "BUSY"
	LifecycleDegraded   State = "DEGRADED"
	LifecycleStopping   State = "STOPPING"
	LifecycleStopped    State = "STOPPED"
	LifecycleTerminated State = "TERMINATED"
)

// Lifecycle is the life of a plugin.
var Lifecycle = &Table{
	Name:    "lifecycle",
	Initial: LifecycleDiscovered,
	States: []State{LifecycleDiscovered, LifecycleLoaded, LifecycleStarting, LifecycleReady, LifecycleBusy,
		LifecycleDegraded, LifecycleStopping, LifecycleStopped, LifecycleTerminated},
	Edges: []Edge{
		{LifecycleDiscovered, LifecycleLoaded, "the manifest is read and its digests hold"},
		{LifecycleLoaded, LifecycleStarting, "the process is started"},
		{LifecycleStarting, LifecycleReady, "initAck"},
		{LifecycleReady, LifecycleBusy, "a request is in flight"},
		{LifecycleBusy, LifecycleReady, "the last request is terminal"},
		{LifecycleReady, LifecycleDegraded, "health or initAck says degraded"},
		{LifecycleBusy, LifecycleDegraded, "health says degraded"},
		{LifecycleDegraded, LifecycleReady, "health says healthy, nothing is in flight"},
		{LifecycleDegraded, LifecycleBusy, "health says healthy, requests are in flight"},
		{LifecycleDegraded, LifecycleStopping, "goAway, or the connection failed"},
		{LifecycleReady, LifecycleStopping, "goAway, or the connection failed"},
		{LifecycleBusy, LifecycleStopping, "goAway, or the connection failed"},
		{LifecycleStopping, LifecycleStopped, "the connection is closed"},
		{LifecycleStopped, LifecycleTerminated, "no process of the plugin is left"},
	},
}

// The states of an operation.
const (
	OperationAccepted   State = "ACCEPTED"
	OperationValidating State = "VALIDATING"
	OperationRunning    State = "RUNNING"
	OperationStreaming  State = "STREAMING"
	OperationCancelling State = "CANCELLING"
	OperationCompleted  State = "COMPLETED"
	OperationFailed     State = "FAILED"
	OperationCancelled  State = "CANCELLED"
	OperationTerminal   State = "TERMINAL"
)

// Operation is the life of one request.
var Operation = &Table{
	Name:    "operation",
	Initial: OperationAccepted,
	States: []State{OperationAccepted, OperationValidating, OperationRunning, OperationStreaming, OperationCancelling,
		OperationCompleted, OperationFailed, OperationCancelled, OperationTerminal},
	Edges: []Edge{
		{OperationAccepted, OperationValidating, "the request is read"},
		{OperationAccepted, OperationFailed, "error"},
		{OperationAccepted, OperationCancelling, "cancel"},
		{OperationValidating, OperationRunning, "the request is admitted"},
		{OperationValidating, OperationFailed, "error"},
		{OperationValidating, OperationCancelling, "cancel"},
		{OperationRunning, OperationStreaming, "the first streamItem in either direction"},
		{OperationRunning, OperationCompleted, "response"},
		{OperationRunning, OperationFailed, "error"},
		{OperationRunning, OperationCancelling, "cancel"},
		{OperationStreaming, OperationCompleted, "response"},
		{OperationStreaming, OperationFailed, "error"},
		{OperationStreaming, OperationCancelling, "cancel"},
		{OperationCancelling, OperationCancelled, "cancelled"},
		{OperationCancelling, OperationCompleted, "response that won the race"},
		{OperationCancelling, OperationFailed, "error that won the race"},
		{OperationCompleted, OperationTerminal, "the terminal frame is sent or received"},
		{OperationFailed, OperationTerminal, "the terminal frame is sent or received"},
		{OperationCancelled, OperationTerminal, "the terminal frame is sent or received"},
	},
}

// The states of the cancellation of one request.
const (
	CancellationNone         State = "NONE"
	CancellationRequested    State = "REQUESTED"
	CancellationAcknowledged State = "ACKNOWLEDGED"
	CancellationResolved     State = "RESOLVED"
)

// Cancellation is what becomes of the wish to end a request early.
var Cancellation = &Table{
	Name:    "cancellation",
	Initial: CancellationNone,
	States:  []State{CancellationNone, CancellationRequested, CancellationAcknowledged, CancellationResolved},
	Edges: []Edge{
		{CancellationNone, CancellationRequested, "cancel"},
		{CancellationNone, CancellationResolved, "a terminal frame, and no cancel before it"},
		{CancellationRequested, CancellationAcknowledged, "cancelAck"},
		{CancellationRequested, CancellationResolved, "a terminal frame before cancelAck"},
		{CancellationAcknowledged, CancellationResolved, "a terminal frame"},
	},
}

// The states of a host's shutdown.
const (
	ShutdownRunning        State = "RUNNING"
	ShutdownDrainAnnounced State = "DRAIN_ANNOUNCED"
	ShutdownCancelInFlight State = "CANCEL_INFLIGHT"
	ShutdownFlushTerminals State = "FLUSH_TERMINALS"
	ShutdownCloseTransport State = "CLOSE_TRANSPORT"
	ShutdownExited         State = "EXITED"
)

// Shutdown is the orderly end of a session.
var Shutdown = &Table{
	Name:    "shutdown",
	Initial: ShutdownRunning,
	States: []State{ShutdownRunning, ShutdownDrainAnnounced, ShutdownCancelInFlight, ShutdownFlushTerminals,
		ShutdownCloseTransport, ShutdownExited},
	Edges: []Edge{
		{ShutdownRunning, ShutdownDrainAnnounced, "goAway is sent; no new requests"},
		{ShutdownDrainAnnounced, ShutdownCancelInFlight, "the grace is over and requests are in flight"},
		{ShutdownDrainAnnounced, ShutdownFlushTerminals, "nothing is in flight"},
		{ShutdownCancelInFlight, ShutdownFlushTerminals, "every request is cancelled or ended"},
		{ShutdownFlushTerminals, ShutdownCloseTransport, "every terminal frame is read"},
		{ShutdownCloseTransport, ShutdownExited, "the process is gone"},
	},
}

// Tables lists the five state machines.
var Tables = []*Table{Connection, Lifecycle, Operation, Cancellation, Shutdown}

package wire_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

// The edges that the report draws and those that complete them, written down a
// second time: a table that changes by accident differs from them.
var edges = map[string]string{
	"connection": `DISCONNECTED>CONNECTING CONNECTING>NEGOTIATING NEGOTIATING>INITIALIZING INITIALIZING>READY READY>DRAINING READY>FAILED READY>CLOSED
		DRAINING>CLOSED FAILED>CLOSED DISCONNECTED>FAILED CONNECTING>FAILED NEGOTIATING>FAILED INITIALIZING>FAILED DRAINING>FAILED`,
	"lifecycle": `DISCOVERED>LOADED LOADED>STARTING STARTING>READY READY>BUSY BUSY>READY READY>DEGRADED BUSY>DEGRADED DEGRADED>READY DEGRADED>BUSY
		DEGRADED>STOPPING READY>STOPPING BUSY>STOPPING STOPPING>STOPPED STOPPED>TERMINATED`,
	"operation": `ACCEPTED>VALIDATING VALIDATING>RUNNING RUNNING>STREAMING RUNNING>COMPLETED RUNNING>FAILED RUNNING>CANCELLING STREAMING>COMPLETED
		STREAMING>FAILED STREAMING>CANCELLING CANCELLING>CANCELLED CANCELLING>COMPLETED CANCELLING>FAILED COMPLETED>TERMINAL FAILED>TERMINAL
		CANCELLED>TERMINAL ACCEPTED>FAILED ACCEPTED>CANCELLING VALIDATING>FAILED VALIDATING>CANCELLING`,
	"cancellation": `NONE>REQUESTED REQUESTED>ACKNOWLEDGED REQUESTED>RESOLVED ACKNOWLEDGED>RESOLVED NONE>RESOLVED`,
	"shutdown": `RUNNING>DRAIN_ANNOUNCED DRAIN_ANNOUNCED>CANCEL_INFLIGHT DRAIN_ANNOUNCED>FLUSH_TERMINALS CANCEL_INFLIGHT>FLUSH_TERMINALS
		FLUSH_TERMINALS>CLOSE_TRANSPORT CLOSE_TRANSPORT>EXITED`,
}

// TestStateTables tries every pair of states of every machine.
func TestStateTables(t *testing.T) {
	if len(wire.Tables) != len(edges) {
		t.Fatalf("%d tables", len(wire.Tables))
	}
	for _, table := range wire.Tables {
		want := strings.Fields(edges[table.Name])
		if len(want) == 0 || len(want) != len(table.Edges) {
			t.Errorf("%s has %d edges, want %d", table.Name, len(table.Edges), len(want))
		}
		if !slices.Contains(table.States, table.Initial) {
			t.Errorf("%s begins outside of itself", table.Name)
		}
		reached := map[wire.State]bool{table.Initial: true}
		for _, from := range table.States {
			for _, to := range table.States {
				allowed := slices.Contains(want, string(from)+">"+string(to))
				if table.Allows(from, to) != allowed {
					t.Errorf("%s: %s → %s: allowed %v", table.Name, from, to, !allowed)
				}
				m := at(t, table, from)
				err := m.Move(to)
				if (err == nil) != allowed || allowed && m.State() != to || !allowed && (m.State() != from || code(err) != wire.CodeStateViolation) {
					t.Errorf("%s: move %s → %s: %v, now %s", table.Name, from, to, err, m.State())
				}
				if allowed {
					reached[to] = true
				}
			}
		}
		for _, e := range table.Edges {
			if !slices.Contains(table.States, e.From) || !slices.Contains(table.States, e.To) || e.On == "" {
				t.Errorf("%s: edge %v", table.Name, e)
			}
		}
		if len(reached) != len(table.States) {
			t.Errorf("%s: only %d of %d states can be reached", table.Name, len(reached), len(table.States))
		}
		if !table.Final(table.States[len(table.States)-1]) || table.Final(table.Initial) {
			t.Errorf("%s: the last state must be final, the first not", table.Name)
		}
	}
}

// at returns a machine that went to a state by allowed moves.
func at(t *testing.T, table *wire.Table, goal wire.State) wire.Machine {
	t.Helper()
	queue, seen := []wire.Machine{table.Start()}, map[wire.State]bool{}
	for len(queue) > 0 {
		m := queue[0]
		queue = queue[1:]
		if m.State() == goal {
			return m
		}
		if seen[m.State()] {
			continue
		}
		seen[m.State()] = true
		for _, e := range table.Edges {
			if next := m; e.From == m.State() && next.Move(e.To) == nil {
				queue = append(queue, next)
			}
		}
	}
	t.Fatalf("%s: no way to %s", table.Name, goal)
	return wire.Machine{}
}

// codes is the contract's table of errors: retryable (y, n, i for idempotent
// only), fatal, blame.
const codes = `
unsupported_protocol n fatal plugin
missing_required_feature n fatal plugin
identity.mismatch n fatal plugin
frame.invalid n fatal sender
frame.too_large n fatal sender
envelope.invalid n fatal sender
sequence.violation n fatal sender
state.violation n fatal sender
json.syntax n fatal sender
json.duplicate_name n fatal sender
json.invalid_unicode n fatal sender
json.limit n fatal sender
json.number n fatal sender
flow_control_violation n - sender
invalid_argument n - sender
schema.mismatch n - sender
schema.unknown_member n - sender
unknown_operation n - sender
unsupported_operation_version n - sender
deprecated.sunset n - sender
permission_denied n - host
grant.expired n - host
untrusted n - host
fingerprint.changed n - host
revoked n - host
project.untrusted n - host
payload_class.denied n - host
failed_precondition n - caller
not_found n - caller
already_exists n - caller
conflict y - caller
resource_exhausted y - environment
unavailable y - environment
deadline_exceeded y - environment
secret.unresolved n - environment
plugin.crashed i - plugin
plugin.timeout i - plugin
plugin.malformed i - plugin
internal n - plugin
`

func TestCodes(t *testing.T) {
	rows := strings.Split(strings.TrimSpace(codes), "\n")
	if len(rows) != len(wire.Codes) {
		t.Errorf("%d codes, want %d", len(wire.Codes), len(rows))
	}
	for _, row := range rows {
		f := strings.Fields(row)
		c := wire.Code(f[0])
		if _, known := c.Rule(); !known {
			t.Errorf("%s is not known", c)
		}
		if c.Fatal() != (f[2] == "fatal") {
			t.Errorf("%s: fatal %v", c, c.Fatal())
		}
		if c.Retryable(false) != (f[1] == "y") || c.Retryable(true) != (f[1] != "n") {
			t.Errorf("%s: retryable %v, if idempotent %v", c, c.Retryable(false), c.Retryable(true))
		}
		want := wire.Blame(f[3])
		if f[3] == "sender" {
			want = wire.BlameTransport
		}
		if got := c.Blame(wire.BlameTransport); got != want {
			t.Errorf("%s: blame %s, want %s", c, got, want)
		}
	}
	if r, known := wire.Code("nonsense").Rule(); known || r.Fatal || wire.Code("nonsense").Retryable(true) {
		t.Error("a code that is none is known")
	}
}

func TestFeatures(t *testing.T) {
	want := map[string]string{"1.0": "health.watch.v1 transport.unix.v1 codec.cbor.v1", "1.1": "cancel.v1 progress.v1 flow.credit.v1",
		"1.2": "receipt.v1 receipt.signature.v1 heartbeat.v1 secrets.inject.v1 settings.validate.v1"}
	n := 0
	for since, list := range want {
		v, _ := wire.ParseVersion(since)
		for _, name := range strings.Fields(list) {
			n++
			f := wire.Feature(name)
			if got, ok := f.Since(); !ok || got != v || !f.In(v) || !f.In(wire.Version{Major: 1, Minor: v.Minor + 1}) ||
				f.In(wire.Version{Major: 1, Minor: v.Minor - 1}) || f.In(wire.Version{Major: 2, Minor: 5}) {
				t.Errorf("%s: since %v", f, got)
			}
		}
	}
	if n != len(wire.Features) || wire.Feature("x.v1").In(wire.MaxVersion) {
		t.Errorf("%d features, want %d", len(wire.Features), n)
	}
	var none wire.FeatureSet
	if none.Has(wire.Cancel) || !none.Has("") || !(wire.FeatureSet{wire.Cancel}).Has(wire.Cancel) {
		t.Error("Has")
	}
}

func TestMessages(t *testing.T) {
	if len(wire.Messages) != 23 {
		t.Errorf("%d messages", len(wire.Messages))
	}
	for _, m := range wire.Messages {
		body := wire.NewBody(m.Type)
		if body == nil || body.Type() != m.Type {
			t.Errorf("%s: body %T", m.Type, body)
		}
		if got, ok := m.Type.Describe(); !ok || got.Feature != m.Feature || len(m.From) == 0 || !m.MaySend(m.From[0]) {
			t.Errorf("%s: %+v", m.Type, got)
		}
	}
	if wire.NewBody("pause") != nil {
		t.Error("a body for no type")
	}
	if m, _ := wire.TypeRequest.Describe(); m.MaySend(wire.Plugin) {
		t.Error("a plugin may send requests")
	}
}

package plugin

import (
	"encoding/json"
	"time"
)

// The order of the fields below is the order of the members on the wire.

// InitializeParams open a connection. GrantedScopes is the only authority that
// the process has.
type InitializeParams struct {
	ProtocolVersion string  `json:"protocolVersion"`
	HostVersion     string  `json:"hostVersion"`
	GrantedScopes   []Scope `json:"grantedScopes"`
}

// InitializeResult is what the running plugin says it is. The host compares it
// with the manifest that was reviewed.
type InitializeResult struct {
	ProtocolVersion string   `json:"protocolVersion"`
	Plugin          Identity `json:"plugin"`
	GrantedScopes   []Scope  `json:"grantedScopes"`
}

// Project is what the host tells about a project.
type Project struct {
	ID          string `json:"id"`
	DisplayName string `json:"displayName"`
	// Root is the absolute path of the project, "" unless project.files.read
	// was granted.
	Root string `json:"root,omitempty"`
}

// A HealthStatus is how well the plugin is.
type HealthStatus string

// The states of health.
const (
	Healthy   HealthStatus = "healthy"
	Degraded  HealthStatus = "degraded"  // works, with less than everything
	Unhealthy HealthStatus = "unhealthy" // a call would fail
)

// HealthResult answers plugin.health.
type HealthResult struct {
	Status    HealthStatus `json:"status"`
	Message   string       `json:"message,omitempty"`
	CheckedAt time.Time    `json:"checkedAt"` // zero: the time of the answer
}

// InspectRequest asks what the plugin sees in a project.
type InspectRequest struct {
	Project Project `json:"project"`
}

// A Fact is one thing the plugin found out.
type Fact struct {
	ID      string `json:"id"`                // stable, for programs; required
	Label   string `json:"label"`             // for people; required
	Value   string `json:"value"`             // may be empty
	Source  string `json:"source"`            // where it was seen, as a path; required
	Warning string `json:"warning,omitempty"` // why the value is to be doubted
}

// An Action is something the plugin offers to do through project.operate. All
// members are required; Risk is free text for the person who decides.
type Action struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Risk        string `json:"risk"`
}

// InspectResult answers project.inspect. Nil slices are written as [].
type InspectResult struct {
	Summary    string    `json:"summary"` // one sentence; required
	Facts      []Fact    `json:"facts"`
	Actions    []Action  `json:"actions"`
	Warnings   []string  `json:"warnings"`
	ObservedAt time.Time `json:"observedAt"` // zero: the time of the answer
}

// OperateRequest asks for one action. DecodeInput reads Input strictly.
type OperateRequest struct {
	Project Project         `json:"project"`
	Action  string          `json:"action"`
	Input   json.RawMessage `json:"input"` // any JSON value
}

// An OperateStatus is how an action ended.
type OperateStatus string

// The ends of an action.
const (
	Succeeded          OperateStatus = "succeeded"
	PartiallySucceeded OperateStatus = "partially_succeeded" // some of it is done, and stays
	Failed             OperateStatus = "failed"
)

// OperateResult answers project.operate. An action that could not even be tried
// is an error instead.
type OperateResult struct {
	Status  OperateStatus   `json:"status"`
	Summary string          `json:"summary"` // one sentence; required
	Output  json.RawMessage `json:"output"`  // any JSON value; nil is written as {}
}

type request struct {
	id     json.RawMessage
	method string
	params json.RawMessage // nil if absent
}

type failure struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   *Error          `json:"error"`
}

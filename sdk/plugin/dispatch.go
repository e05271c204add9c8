package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// dispatch takes the decisions about one request in their order: state, method,
// capability and grant, parameters; only then the handler runs.
func (s *server) dispatch(ctx context.Context, r request) (any, *Error) {
	if r.method == MethodInitialize {
		return s.initialize(r.params)
	}
	if !s.initialized {
		return nil, bounded(CodeState, "initialize must be called first")
	}
	ctx = withGrants(ctx, s.grants)
	switch r.method {
	case MethodHealth:
		if fault := params(r.params); fault != nil {
			return nil, fault
		}
		return call(s, r.method, healthGrace, func() (HealthResult, error) { return s.handler.Health(ctx) }, validHealth)
	case MethodInspect:
		if fault := s.allowed(CapabilityInspect); fault != nil {
			return nil, fault
		}
		var q InspectRequest
		if fault := params(r.params, projectField(&q.Project)); fault != nil {
			return nil, fault
		}
		if fault := s.mayHaveRoot(q.Project); fault != nil {
			return nil, fault
		}
		return call(s, r.method, 0, func() (InspectResult, error) { return s.handler.(Inspector).Inspect(ctx, q) }, validInspect)
	case MethodOperate:
		if fault := s.allowed(CapabilityOperate); fault != nil {
			return nil, fault
		}
		var q OperateRequest
		if fault := params(r.params, projectField(&q.Project),
			strict.Required("action", strict.Text(&q.Action)),
			strict.Required("input", strict.Raw(&q.Input)),
		); fault != nil {
			return nil, fault
		}
		if fault := s.mayHaveRoot(q.Project); fault != nil {
			return nil, fault
		}
		return call(s, r.method, 0, func() (OperateResult, error) { return s.handler.(Operator).Operate(ctx, q) }, validOperate)
	}
	return nil, bounded(CodeUnknownMethod, "unknown method "+strict.Quote(r.method))
}

// initialize succeeds once. A refused attempt changes nothing.
func (s *server) initialize(raw json.RawMessage) (any, *Error) {
	if s.initialized {
		return nil, bounded(CodeState, "initialize was called already")
	}
	var p InitializeParams
	if fault := params(raw,
		strict.Required("protocolVersion", strict.String(&p.ProtocolVersion)),
		strict.Required("hostVersion", strict.String(&p.HostVersion)),
		strict.Required("grantedScopes", strict.Strings(&p.GrantedScopes)),
	); fault != nil {
		return nil, fault
	}
	if p.ProtocolVersion != Protocol {
		return nil, bounded(CodeProtocolMismatch, fmt.Sprintf("this plugin speaks %s, not %s", Protocol, strict.Quote(p.ProtocolVersion)))
	}
	for i, scope := range p.GrantedScopes {
		switch {
		case slices.Contains(p.GrantedScopes[:i], scope):
			return nil, bounded(CodeBadParams, fmt.Sprintf("params.grantedScopes[%d] occurs twice", i))
		case !s.manifest.Requests(scope):
			return nil, bounded(CodeNotGranted, fmt.Sprintf("the scope %s was never requested", strict.Quote(string(scope))))
		}
	}
	s.initialized, s.grants = true, p.GrantedScopes
	return InitializeResult{ProtocolVersion: Protocol, Plugin: s.manifest.Identity(), GrantedScopes: s.grants}, nil
}

// allowed refuses a method whose capability was not declared or whose scope was
// not granted.
func (s *server) allowed(c Capability) *Error {
	if !s.manifest.Has(c) {
		return bounded(CodeNotGranted, fmt.Sprintf("the capability %s is not declared", c))
	}
	if scope := c.Requires(); !slices.Contains(s.grants, scope) {
		return bounded(CodeNotGranted, fmt.Sprintf("%s needs the scope %s, which is not granted", c, scope))
	}
	return nil
}

// mayHaveRoot refuses a root that the host had no grant to send.
func (s *server) mayHaveRoot(p Project) *Error {
	if p.Root != "" && !slices.Contains(s.grants, ScopeFilesRead) {
		return bounded(CodeNotGranted, fmt.Sprintf("a project root needs the scope %s, which is not granted", ScopeFilesRead))
	}
	return nil
}

func params(raw json.RawMessage, fields ...strict.Field) *Error {
	if raw == nil {
		return bounded(CodeBadParams, "params is required")
	}
	if err := strict.Object(raw, fields...); err != nil {
		return bounded(CodeBadParams, "params: "+err.Error())
	}
	return nil
}

func projectField(p *Project) strict.Field {
	return strict.Required("project", func(value []byte) error {
		return strict.Object(value,
			strict.Required("id", strict.Text(&p.ID)),
			strict.Required("displayName", strict.String(&p.DisplayName)),
			strict.Optional("root", func(value []byte) error {
				if err := strict.Text(&p.Root)(value); err != nil {
					return err
				}
				if !filepath.IsAbs(p.Root) {
					return &strict.MemberError{Message: "must be an absolute path"}
				}
				return nil
			}),
		)
	})
}

// healthGrace is how long an answer about health may take before it is watched:
// mostly it is there at once, and the two goroutines cost more than it does.
const healthGrace = 10 * time.Millisecond

// soon reports whether done is closed within the grace. Where it is closed at once,
// which yielding finds out, no timer is set.
func soon(done <-chan struct{}, grace time.Duration) bool {
	for range 2 {
		runtime.Gosched()
		select {
		case <-done:
			return true
		default:
		}
	}
	select {
	case <-done:
		return true
	case <-time.After(grace):
		return false
	}
}

// call runs one handler method and checks what it returns. After the grace the
// call is watched; without one it is from its beginning. The goroutine of its own
// keeps a handler that ends its goroutine from ending the connection.
func call[T any](s *server, method string, grace time.Duration, run func() (T, error), valid func(T) (T, error)) (any, *Error) {
	var result T
	fault := bounded(CodeInternal, "the handler failed")
	done := make(chan struct{})
	if grace == 0 {
		s.watch()
	}
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				fmt.Fprintf(s.log, "%s: panic in the handler of %s: %v\n%s", s.manifest.ID, method, v, debug.Stack())
			}
		}()
		got, err := run()
		if err != nil {
			fault = onWire(err)
			return
		}
		if got, err = valid(got); err != nil {
			fault = bounded(CodeInternal, "the handler returned an invalid result: "+err.Error())
			return
		}
		result, fault = got, nil
	}()
	if grace > 0 && !soon(done, grace) {
		s.watch()
	}
	<-done
	if fault != nil {
		return nil, fault
	}
	return result, nil
}

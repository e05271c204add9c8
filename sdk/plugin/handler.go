package plugin

import (
	"context"
	"fmt"
	"slices"
)

// A Handler is the plugin's work. Every plugin answers for its health; what its
// manifest declares beyond that it offers as Inspector and Operator.
//
// The context of a call is cancelled when the host closes standard input or the
// process is asked to terminate. A handler should then stop soon, put right
// what it left half done and return; after 3 seconds the host ends the process.
// That of Health is so from the tenth millisecond on.
// Calls never overlap. A handler must not use standard input or output.
//
// An error becomes an error response: an *Error as it is, any other error as an
// application error with its text.
type Handler interface {
	Health(ctx context.Context) (HealthResult, error)
}

// An Inspector implements the capability project.inspect. It observes and
// changes nothing.
type Inspector interface {
	Inspect(ctx context.Context, r InspectRequest) (InspectResult, error)
}

// An Operator implements the capability project.operate.
type Operator interface {
	Operate(ctx context.Context, r OperateRequest) (OperateResult, error)
}

// Granted reports whether the host granted s to this process. The context is
// one that a handler was called with; in any other nothing is granted.
func Granted(ctx context.Context, s Scope) bool {
	grants, _ := ctx.Value(grantsKey{}).([]Scope)
	return slices.Contains(grants, s)
}

type grantsKey struct{}

func withGrants(ctx context.Context, grants []Scope) context.Context {
	return context.WithValue(ctx, grantsKey{}, grants)
}

// implements reports as an error what m declares and h lacks.
func implements(m Manifest, h Handler) error {
	if h == nil {
		return fmt.Errorf("plugin %s: no handler", m.ID)
	}
	if _, ok := h.(Inspector); m.Has(CapabilityInspect) && !ok {
		return fmt.Errorf("plugin %s: the manifest declares %s, but %T has no method Inspect", m.ID, CapabilityInspect, h)
	}
	if _, ok := h.(Operator); m.Has(CapabilityOperate) && !ok {
		return fmt.Errorf("plugin %s: the manifest declares %s, but %T has no method Operate", m.ID, CapabilityOperate, h)
	}
	return nil
}

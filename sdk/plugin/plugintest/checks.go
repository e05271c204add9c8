package plugintest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// A check holds one rule of the protocol.
type check struct {
	name string
	// applies returns why the rule does not concern the plugin, or "". nil: it
	// always does.
	applies func(*subject) string
	// atRest looks at the package without starting it.
	atRest func(*subject) error
	// run uses a connection that is initialized with grants.
	grants func(*subject) []plugin.Scope // nil: not initialized
	run    func(context.Context, *subject, *Client) error
}

// result runs the check, on a connection of its own if it needs one.
func (k check) result(ctx context.Context, s *subject) Result {
	r := Result{Name: k.name}
	if k.applies != nil {
		if r.Skipped = k.applies(s); r.Skipped != "" {
			return r
		}
	}
	if k.atRest != nil {
		r.Err = k.atRest(s)
		return r
	}
	c, err := s.dial()
	if err != nil {
		r.Err = err
		return r
	}
	if k.grants != nil {
		_, err = c.Initialize(ctx, k.grants(s)...)
	}
	if err == nil {
		err = k.run(ctx, s, c)
	}
	if end := c.Close(); err == nil {
		err = end
	}
	r.Err = err
	return r
}

func everything(s *subject) []plugin.Scope { return s.Manifest.RequestedScopes }
func nothing(*subject) []plugin.Scope      { return nil }

// without grants everything but one scope.
func without(scope plugin.Scope) func(*subject) []plugin.Scope {
	return func(s *subject) []plugin.Scope {
		return slices.DeleteFunc(slices.Clone(s.Manifest.RequestedScopes), func(x plugin.Scope) bool { return x == scope })
	}
}

func declares(c plugin.Capability) func(*subject) string {
	return func(s *subject) string {
		if !s.Manifest.Has(c) {
			return fmt.Sprintf("the manifest does not declare %s", c)
		}
		return ""
	}
}

// refused asks for the error code of the answer to one line. An answer to what
// is not a request has the id null, any other the id 7.
func refused(ctx context.Context, c *Client, line string, codes ...plugin.Code) error {
	r, err := c.Exchange(ctx, []byte(line))
	if err != nil {
		return fmt.Errorf("%s: %w", strict.Quote(line), err)
	}
	id := "7"
	if codes[0] == plugin.CodeMalformed {
		id = "null"
	}
	switch {
	case r.Error == nil:
		return violated("%.200s: accepted, must be refused with code %d", line, codes[0])
	case !slices.Contains(codes, r.Error.Code):
		return violated("%.200s: refused with code %d (%q), must be %d", line, r.Error.Code, r.Error.Message, codes[0])
	case r.ID != id:
		return violated("%.200s: answered with id %s, must be %s", line, r.ID, id)
	}
	return nil
}

func refusedAll(ctx context.Context, c *Client, code plugin.Code, lines ...string) error {
	for _, line := range lines {
		if err := refused(ctx, c, line, code); err != nil {
			return err
		}
	}
	return nil
}

// request is a request with the id 7.
func request(method, params string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":` + params + `}`
}

func initialize(protocol string, grants ...string) string {
	list := ""
	if len(grants) > 0 {
		list = `"` + strings.Join(grants, `","`) + `"`
	}
	return request(plugin.MethodInitialize, `{"protocolVersion":"`+protocol+`","hostVersion":"plugintest","grantedScopes":[`+list+`]}`)
}

const (
	someProject = `{"id":"p","displayName":"P"}`
	someAction  = `plugintest.no-such-action`
)

// checks lists every check in the order in which they run.
func checks() []check {
	return slices.Concat(openingChecks(), methodChecks(), readingChecks())
}

// answers is satisfied by a valid health answer.
func answers(ctx context.Context, _ *subject, c *Client) error {
	_, err := c.Health(ctx)
	return err
}

// isError reports whether err is an error response with one of the codes.
func isError(err error, codes ...plugin.Code) bool {
	var fault *plugin.Error
	return errors.As(err, &fault) && slices.Contains(codes, fault.Code)
}

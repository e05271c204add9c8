package plugin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// The functions of this file return a result that is fit to be sent, or say why
// there is none. They leave what the handler returned as it is: a handler may
// return the same slice again.

func validHealth(h HealthResult) (HealthResult, error) {
	switch h.Status {
	case Healthy, Degraded, Unhealthy:
	default:
		return h, fmt.Errorf("status must be one of %q, %q, %q", Healthy, Degraded, Unhealthy)
	}
	h.Message = strict.Clean(h.Message)
	h.CheckedAt = moment(h.CheckedAt)
	return h, nil
}

func validInspect(r InspectResult) (InspectResult, error) {
	c := checked{}
	r.Summary = c.required("summary", r.Summary)
	r.Facts = append([]Fact{}, r.Facts...)
	for i := range r.Facts {
		f, at := &r.Facts[i], fmt.Sprintf("facts[%d].", i)
		f.ID = c.required(at+"id", f.ID)
		f.Label = c.required(at+"label", f.Label)
		f.Value = strict.Clean(f.Value)
		f.Source = c.required(at+"source", f.Source)
		f.Warning = strict.Clean(f.Warning)
	}
	r.Actions = append([]Action{}, r.Actions...)
	for i := range r.Actions {
		a, at := &r.Actions[i], fmt.Sprintf("actions[%d].", i)
		a.ID = c.required(at+"id", a.ID)
		a.Name = c.required(at+"name", a.Name)
		a.Description = c.required(at+"description", a.Description)
		a.Risk = c.required(at+"risk", a.Risk)
		if slices.ContainsFunc(r.Actions[:i], func(b Action) bool { return a.ID == b.ID }) {
			c.add(at + "id occurs twice")
		}
	}
	r.Warnings = append([]string{}, r.Warnings...)
	for i, w := range r.Warnings {
		r.Warnings[i] = strict.Clean(w)
	}
	r.ObservedAt = moment(r.ObservedAt)
	return r, c.err
}

func validOperate(r OperateResult) (OperateResult, error) {
	c := checked{}
	switch r.Status {
	case Succeeded, PartiallySucceeded, Failed:
	default:
		c.add(fmt.Sprintf("status must be one of %q, %q, %q", Succeeded, PartiallySucceeded, Failed))
	}
	r.Summary = c.required("summary", r.Summary)
	if len(r.Output) == 0 {
		r.Output = json.RawMessage("{}")
	}
	if err := strict.Check(r.Output); err != nil {
		c.add("output: " + err.Error())
	}
	return r, c.err
}

// checked keeps the first fault of a result.
type checked struct{ err error }

func (c *checked) add(message string) {
	if c.err == nil {
		c.err = &strict.MemberError{Message: message}
	}
}

func (c *checked) required(member, s string) string {
	if strings.TrimSpace(s) == "" {
		c.add(member + " must not be blank")
	}
	return strict.Clean(s)
}

// moment returns t in UTC, or the present time for the zero value.
func moment(t time.Time) time.Time {
	if t.IsZero() {
		t = time.Now()
	}
	return t.UTC()
}

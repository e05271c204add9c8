package mutant

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// handlers are the operations of docs/conformance.md.
var handlers = map[string]func(*op) (string, error){
	"conformance.basic/echo":         echo,
	"conformance.basic/versioned":    echo,
	"conformance.basic/typed":        echo,
	"conformance.aging/aging":        echo,
	"conformance.aging/old":          echo,
	"conformance.basic/fail":         fail,
	"conformance.basic/raise":        func(o *op) (string, error) { panic("raised: " + payloadOf[struct{ Marker string }](o).Marker) },
	"conformance.basic/bad-result":   func(*op) (string, error) { return `{"wrong":true}`, nil },
	"conformance.basic/context":      tellContext,
	"conformance.basic/print":        printText,
	"conformance.basic/blob":         blob,
	"conformance.basic/set-health":   setHealth,
	"conformance.basic/exit":         func(o *op) (string, error) { os.Exit(payloadOf[struct{ Status int }](o).Status); return "", nil },
	"conformance.stream/count":       count,
	"conformance.stream/sum":         sum,
	"conformance.stream/relay":       relay,
	"conformance.work/slow":          slow,
	"conformance.work/hold":          hold,
	"conformance.work/stubborn":      stubborn,
	"conformance.effects/append":     appendLine,
	"conformance.effects/note":       appendLine,
	"conformance.effects/count-once": countOnce,
	"conformance.guarded/read":       read,
	"conformance.guarded/secret":     secret,
}

func payloadOf[T any](o *op) (v T) {
	_ = json.Unmarshal(o.b.Payload, &v) // it was validated
	return v
}

func echo(o *op) (string, error) {
	if o.s.p.has("rewrites-numbers") {
		var v any
		_ = json.Unmarshal(o.b.Payload, &v) // it was validated
		return strings.ReplaceAll(text(v), "9007199254740991", "9007199254740990"), nil
	}
	if o.s.p.has("normalizes-text") {
		return strings.ReplaceAll(string(o.b.Payload), "e\u0301", "\u00e9"), nil
	}
	if o.s.p.has("drops-nulls") {
		return strings.ReplaceAll(string(o.b.Payload), `"value":null`, `"value":false`), nil
	}
	return string(o.b.Payload), nil
}

func fail(o *op) (string, error) {
	v := payloadOf[struct {
		Code, Message, Effect string
		Retryable             bool
	}](o)
	if v.Message == "" {
		v.Message = "failed as asked"
	}
	o.declare(v.Effect, "none")
	return "", &pluginError{v.Code, v.Message, v.Retryable}
}

// declare says what the operation has changed so far.
func (o *op) declare(effect, otherwise string) { o.effect = cmp.Or(effect, otherwise) }

func tellContext(o *op) (string, error) {
	settings := o.s.settings()
	var deadline *string
	if d := o.b.DeadlineUtc; d != nil {
		s := d.UTC().Format("2006-01-02T15:04:05.999999Z")
		deadline = &s
	}
	if o.s.p.has("counts-no-attempts") {
		o.b.Attempt = 1
	}
	return text(map[string]any{
		"requestId": o.b.RequestID, "operationId": o.b.OperationID, "idempotencyKey": o.b.IdempotencyKey, "attempt": o.b.Attempt, "deadlineUtc": deadline,
		"traceId": json.RawMessage(o.trace), "payloadClass": o.b.PayloadClass, "permissions": o.s.permissions(), "greeting": settings.Greeting, "retries": settings.Retries,
	}), nil
}

func printText(o *op) (string, error) {
	t := payloadOf[struct{ Text string }](o).Text
	fmt.Println(t)
	fmt.Fprintln(os.Stderr, t)
	return "{}", nil
}

func blob(o *op) (string, error) {
	return `{"value":"` + strings.Repeat("x", payloadOf[struct{ Size int }](o).Size) + `"}`, nil
}

func setHealth(o *op) (string, error) {
	v := payloadOf[struct{ Status, Message string }](o)
	o.s.setHealth(healthReport{v.Status, v.Message})
	return "{}", nil
}

type countRequest struct{ To, Size, DelayMs, FailAt, InvalidAt int }

func count(o *op) (string, error) {
	v := payloadOf[countRequest](o)
	for n := 1; n <= v.To; n++ {
		if err := o.sleep(v.DelayMs); err != nil {
			return "", err
		}
		item := fmt.Sprintf(`{"n":%d}`, n)
		switch {
		case n == v.FailAt:
			return "", &pluginError{"unavailable", "failed as asked", false}
		case n == v.InvalidAt:
			item = `{"wrong":true}`
		case v.Size > 0:
			item = fmt.Sprintf(`{"n":%d,"filler":"%s"}`, n, strings.Repeat("x", v.Size))
		}
		if err := o.item(item); err != nil {
			return "", err
		}
	}
	return "null", nil
}

// sleep waits, or returns why the operation must end.
func (o *op) sleep(ms int) error {
	if ms > 0 {
		select {
		case <-time.After(time.Duration(ms) * time.Millisecond):
		case <-o.ctx.Done():
		}
	}
	if o.ctx.Err() != nil {
		return context.Cause(o.ctx)
	}
	return nil
}

func sum(o *op) (string, error) {
	total, n := 0, 0
	for {
		item, ok, err := o.next()
		if err != nil {
			return "", err
		}
		if !ok {
			return fmt.Sprintf(`{"sum":%d,"items":%d}`, total, n), nil
		}
		var v struct{ N int }
		_ = json.Unmarshal(item, &v) // it was validated
		total, n = total+v.N, n+1
	}
}

func relay(o *op) (string, error) {
	for {
		item, ok, err := o.next()
		if err != nil || !ok {
			return "null", err
		}
		if err := o.item(string(item)); err != nil {
			return "", err
		}
	}
}

func slow(o *op) (string, error) {
	v := payloadOf[struct{ Steps, StepMs int }](o)
	for k := 1; k <= v.Steps; k++ {
		if err := o.sleep(v.StepMs); err != nil {
			return "", err
		}
		o.tell(fmt.Sprintf("step %d", k), fmt.Sprintf(`,"percentCompleted":%v,"current":%d,"total":%d`, 100*float64(k)/float64(v.Steps), k, v.Steps))
	}
	return fmt.Sprintf(`{"steps":%d}`, v.Steps), nil
}

func hold(o *op) (string, error) {
	v := payloadOf[struct {
		Then, Cleanup string
		CleanupMs     int
	}](o)
	o.tell("holding", "")
	<-o.ctx.Done()
	if o.s.p.has("kills-what-is-cancelled") {
		return "", context.Cause(o.ctx)
	}
	time.Sleep(time.Duration(v.CleanupMs) * time.Millisecond)
	if v.Cleanup != "" {
		o.s.appendTo("cleanup.log", v.Cleanup)
	}
	switch v.Then {
	case "answer":
		return `{"held":true}`, nil
	case "fail":
		return "", &pluginError{"internal", "failed while cancelled", false}
	}
	return "", context.Cause(o.ctx)
}

func stubborn(o *op) (string, error) {
	v := payloadOf[struct {
		Ms   int
		Then string
	}](o)
	o.tell("working", "")
	time.Sleep(time.Duration(v.Ms) * time.Millisecond)
	if o.s.p.has("cancels-what-answered") && context.Cause(o.ctx) == errCancelled {
		return "", errCancelled
	}
	if v.Then == "fail" {
		return "", &pluginError{"internal", "failed as asked", false}
	}
	return `{"ignored":true}`, nil
}

// appendTo appends a line to a file of the state directory.
func (s *session) appendTo(name, line string) {
	f, err := os.OpenFile(filepath.Join(s.p.state, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		panic(err)
	}
}

func (s *session) lines(name string) (list []string) {
	text, err := os.ReadFile(filepath.Join(s.p.state, name))
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func appendLine(o *op) (string, error) {
	v := payloadOf[struct {
		Line, Effect, Then, Code string
		Retryable                *bool
		WaitMs, FailTimes        int
	}](o)
	if v.Code == "" {
		v.Code = "unavailable"
	}
	failure := &pluginError{v.Code, "failed as asked", v.Retryable == nil || *v.Retryable}
	o.s.appendTo("attempts.log", v.Line)
	tries := 0
	for _, l := range o.s.lines("attempts.log") {
		if l == v.Line {
			tries++
		}
	}
	if tries <= v.FailTimes {
		o.declare("none", "")
		return "", failure
	}
	if v.Effect != "none" {
		o.s.appendTo("effects.log", v.Line)
	}
	o.declare(v.Effect, "committed")
	switch v.Then {
	case "fail":
		return "", failure
	case "raise":
		panic("raised: " + v.Line)
	case "exit":
		os.Exit(7)
	case "hold":
		o.tell("holding", "")
		<-o.ctx.Done()
		return "", context.Cause(o.ctx)
	case "wait":
		o.tell("holding", "")
		if err := o.sleep(v.WaitMs); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf(`{"line":%s,"count":%d}`, quote(v.Line), len(o.s.lines("effects.log"))), nil
}

func countOnce(o *op) (string, error) {
	o.s.appendTo("effects.log", "count")
	o.declare("committed", "")
	return count(o)
}

// require returns the grant of a permission.
func (o *op) require(permission string) (*grant, error) {
	for i, g := range o.s.init.Grants {
		if g.PermissionID != permission {
			continue
		}
		if g.ExpiresAtUtc != nil && !g.ExpiresAtUtc.After(time.Now()) && !o.s.p.has("ignores-expiry") {
			return nil, &pluginError{"grant.expired", "the grant has expired", false}
		}
		return &o.s.init.Grants[i], nil
	}
	if o.s.p.has("grants-everything") {
		return &grant{PermissionID: permission, Scope: "filesystem.read"}, nil
	}
	return nil, &pluginError{"permission_denied", "the permission is not granted", false}
}

func read(o *op) (string, error) {
	g, err := o.require("files")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`{"permissionId":"files","scope":%s}`, quote(g.Scope)), nil
}

func secret(o *op) (string, error) {
	value, ok := o.b.Secrets["/apiToken"]
	if !ok {
		return "", &pluginError{"secret.unresolved", "the secret was not given", false}
	}
	if o.s.p.has("logs-secrets") {
		fmt.Fprintln(os.Stderr, "using", value)
	}
	switch payloadOf[struct{ Then string }](o).Then {
	case "fail":
		return "", &pluginError{"unavailable", "the service refused the token", true}
	case "raise":
		panic("raised with " + value)
	}
	sum := sha256.Sum256([]byte(value))
	return fmt.Sprintf(`{"sha256":%q,"length":%d}`, hex.EncodeToString(sum[:]), len(value)), nil
}

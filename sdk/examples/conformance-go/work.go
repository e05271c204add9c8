package main

import (
	"bytes"
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

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// An item is what streams carry.
type item struct {
	N      int64  `json:"n"`
	Filler string `json:"filler,omitempty"`
}

func count(ctx context.Context, op *plugin.Operation) (any, error) {
	var in struct {
		To        int64 `json:"to"`
		Size      int   `json:"size"`
		DelayMs   int64 `json:"delayMs"`
		FailAt    int64 `json:"failAt"`
		InvalidAt int64 `json:"invalidAt"`
	}
	if err := op.DecodePayload(&in); err != nil {
		return nil, err
	}
	filler := strings.Repeat("x", in.Size)
	for n := int64(1); n <= in.To; n++ {
		if in.DelayMs > 0 {
			if err := sleep(ctx, in.DelayMs); err != nil {
				return nil, err
			}
		}
		var err error
		switch n {
		case in.FailAt:
			return nil, &plugin.PluginError{Code: plugin.Unavailable, Message: "failed as asked"}
		case in.InvalidAt:
			err = op.Send(map[string]bool{"wrong": true})
		default:
			err = op.Send(item{n, filler})
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func sum(_ context.Context, op *plugin.Operation) (any, error) {
	var total, items int64
	for raw, err := range op.Items() {
		if err != nil {
			return nil, err
		}
		var i item
		if err := json.Unmarshal(raw, &i); err != nil {
			return nil, err
		}
		total += i.N
		items++
	}
	return map[string]int64{"sum": total, "items": items}, nil
}

func relay(_ context.Context, op *plugin.Operation) (any, error) {
	for raw, err := range op.Items() {
		if err != nil {
			return nil, err
		}
		if err := op.Send(raw); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func slow(ctx context.Context, op *plugin.Operation) (any, error) {
	var in struct {
		Steps  int64 `json:"steps"`
		StepMs int64 `json:"stepMs"`
	}
	if err := op.DecodePayload(&in); err != nil {
		return nil, err
	}
	for k := int64(1); k <= in.Steps; k++ {
		if err := sleep(ctx, in.StepMs); err != nil {
			return nil, err
		}
		percent := 100 * float64(k) / float64(in.Steps)
		op.Progress(plugin.ProgressUpdate{Message: fmt.Sprintf("step %d", k), Current: &k, Total: &in.Steps, PercentCompleted: &percent})
	}
	return map[string]int64{"steps": in.Steps}, nil
}

func (p *program) hold(ctx context.Context, op *plugin.Operation) (any, error) {
	in := struct {
		Then      string `json:"then"`
		Cleanup   string `json:"cleanup"`
		CleanupMs int64  `json:"cleanupMs"`
	}{Then: "cancelled"}
	if err := op.DecodePayload(&in); err != nil {
		return nil, err
	}
	op.Progress(plugin.ProgressUpdate{Message: "holding"})
	<-ctx.Done()
	time.Sleep(time.Duration(in.CleanupMs) * time.Millisecond)
	if in.Cleanup != "" {
		if err := p.appendLine("cleanup.log", in.Cleanup); err != nil {
			return nil, err
		}
	}
	switch in.Then {
	case "answer":
		return map[string]bool{"held": true}, nil
	case "fail":
		return nil, plugin.NewPluginError(plugin.Internal, "failed while cancelled")
	}
	return nil, context.Cause(ctx)
}

func stubborn(_ context.Context, op *plugin.Operation) (any, error) {
	in := struct {
		Ms   int64  `json:"ms"`
		Then string `json:"then"`
	}{Then: "answer"}
	if err := op.DecodePayload(&in); err != nil {
		return nil, err
	}
	op.Progress(plugin.ProgressUpdate{Message: "working"})
	time.Sleep(time.Duration(in.Ms) * time.Millisecond)
	if in.Then != "answer" {
		return nil, plugin.NewPluginError(plugin.Internal, "failed as asked")
	}
	return map[string]bool{"ignored": true}, nil
}

func (p *program) append(ctx context.Context, op *plugin.Operation) (any, error) {
	in := struct {
		Line      string             `json:"line"`
		Effect    plugin.EffectState `json:"effect"`
		Then      string             `json:"then"`
		Code      plugin.ErrorCode   `json:"code"`
		Retryable bool               `json:"retryable"`
		WaitMs    int64              `json:"waitMs"`
		FailTimes int                `json:"failTimes"`
	}{Effect: plugin.EffectCommitted, Then: "answer", Code: plugin.Unavailable, Retryable: true}
	if err := op.DecodePayload(&in); err != nil {
		return nil, err
	}
	if err := p.appendLine("attempts.log", in.Line); err != nil {
		return nil, err
	}
	failed := &plugin.PluginError{Code: in.Code, Message: "failed as asked", Retryable: in.Retryable}
	attempts, err := p.lines("attempts.log")
	if err != nil {
		return nil, err
	}
	if occurrences(attempts, in.Line) <= in.FailTimes {
		op.Effect(plugin.EffectNone)
		return nil, failed
	}
	if in.Effect != plugin.EffectNone {
		if err := p.appendLine("effects.log", in.Line); err != nil {
			return nil, err
		}
	}
	op.Effect(in.Effect)
	switch in.Then {
	case "fail":
		return nil, failed
	case "raise":
		panic("raised as asked")
	case "exit":
		os.Exit(7)
	case "hold":
		op.Progress(plugin.ProgressUpdate{Message: "holding"})
		<-ctx.Done()
		return nil, context.Cause(ctx)
	case "wait":
		op.Progress(plugin.ProgressUpdate{Message: "holding"})
		if err := sleep(ctx, in.WaitMs); err != nil {
			return nil, err
		}
	}
	effects, err := p.lines("effects.log")
	if err != nil {
		return nil, err
	}
	return map[string]any{"line": in.Line, "count": len(effects)}, nil
}

func (p *program) countOnce(ctx context.Context, op *plugin.Operation) (any, error) {
	if err := p.appendLine("effects.log", "count"); err != nil {
		return nil, err
	}
	op.Effect(plugin.EffectCommitted)
	return count(ctx, op)
}

// lines returns the lines of a file of the state directory.
func (p *program) lines(file string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(p.state, file))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	list := []string{}
	for line := range bytes.Lines(text) {
		list = append(list, string(bytes.TrimSuffix(line, []byte("\n"))))
	}
	return list, nil
}

func occurrences(list []string, want string) int {
	n := 0
	for _, s := range list {
		if s == want {
			n++
		}
	}
	return n
}

func read(_ context.Context, op *plugin.Operation) (any, error) {
	grant, err := op.Grant("files")
	if err != nil {
		return nil, err
	}
	return map[string]string{"permissionId": grant.PermissionID, "scope": grant.Scope}, nil
}

func secret(_ context.Context, op *plugin.Operation) (any, error) {
	in := struct {
		Then string `json:"then"`
	}{Then: "answer"}
	if err := op.DecodePayload(&in); err != nil {
		return nil, err
	}
	value, err := op.Secret("/apiToken")
	if err != nil {
		return nil, err
	}
	switch in.Then {
	case "fail":
		return nil, &plugin.PluginError{Code: plugin.Unavailable, Message: "the service refused the token"}
	case "raise":
		panic("the service refused " + value)
	}
	digest := sha256.Sum256([]byte(value))
	return map[string]any{"sha256": hex.EncodeToString(digest[:]), "length": len([]rune(value))}, nil
}

func sleep(ctx context.Context, ms int64) error {
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

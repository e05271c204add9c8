package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

func echo(_ context.Context, op *plugin.Operation) (any, error) { return op.Payload, nil }

func fail(_ context.Context, op *plugin.Operation) (any, error) {
	in := struct {
		Code      plugin.ErrorCode   `json:"code"`
		Message   string             `json:"message"`
		Retryable bool               `json:"retryable"`
		Effect    plugin.EffectState `json:"effect"`
		Marker    string             `json:"marker"`
	}{Message: "failed as asked", Effect: plugin.EffectNone}
	if err := op.DecodePayload(&in); err != nil {
		return nil, err
	}
	op.Effect(in.Effect)
	return nil, &plugin.PluginError{Code: in.Code, Message: in.Message, Retryable: in.Retryable}
}

func raise(_ context.Context, op *plugin.Operation) (any, error) {
	var in struct {
		Marker string `json:"marker"`
	}
	if err := op.DecodePayload(&in); err != nil {
		return nil, err
	}
	panic("raised as asked: " + in.Marker)
}

func badResult(context.Context, *plugin.Operation) (any, error) {
	return map[string]bool{"wrong": true}, nil
}

func describe(_ context.Context, op *plugin.Operation) (any, error) {
	settings := struct {
		Greeting string `json:"greeting"`
		Retries  int    `json:"retries"`
	}{Retries: 3}
	if err := op.DecodeSettings(&settings); err != nil {
		return nil, err
	}
	permissions := []string{}
	for _, g := range op.Grants() {
		permissions = append(permissions, g.PermissionID)
	}
	sort.Strings(permissions)
	c := op.Context
	var deadline *string
	if !c.DeadlineUTC.IsZero() {
		text := plugin.FormatTime(c.DeadlineUTC)
		deadline = &text
	}
	return map[string]any{
		"requestId": c.RequestID, "operationId": c.OperationID, "idempotencyKey": orNull(c.IdempotencyKey), "attempt": c.Attempt,
		"deadlineUtc": deadline, "traceId": orNull(c.TraceID), "payloadClass": c.PayloadClass, "permissions": permissions,
		"greeting": settings.Greeting, "retries": settings.Retries,
	}, nil
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func printText(_ context.Context, op *plugin.Operation) (any, error) {
	var in struct {
		Text string `json:"text"`
	}
	if err := op.DecodePayload(&in); err != nil {
		return nil, err
	}
	fmt.Println(in.Text)
	fmt.Fprintln(os.Stderr, in.Text)
	return struct{}{}, nil
}

func blob(_ context.Context, op *plugin.Operation) (any, error) {
	var in struct {
		Size int `json:"size"`
	}
	if err := op.DecodePayload(&in); err != nil {
		return nil, err
	}
	return map[string]string{"value": strings.Repeat("x", in.Size)}, nil
}

func exit(_ context.Context, op *plugin.Operation) (any, error) {
	var in struct {
		Status int `json:"status"`
	}
	if err := op.DecodePayload(&in); err != nil {
		return nil, err
	}
	os.Exit(in.Status)
	return nil, errors.New("the process goes on")
}

func (p *program) setHealth(_ context.Context, op *plugin.Operation) (any, error) {
	var in struct {
		Status  plugin.HealthStatus `json:"status"`
		Message string              `json:"message"`
	}
	if err := op.DecodePayload(&in); err != nil {
		return nil, err
	}
	p.session.SetHealth(in.Status, in.Message)
	return struct{}{}, nil
}

// started begins as degraded where the settings say so.
func (p *program) started(_ context.Context, settings json.RawMessage) error {
	var s struct {
		Mode string `json:"mode"`
	}
	if err := json.Unmarshal(settings, &s); err != nil {
		return err
	}
	if s.Mode == "degraded" {
		p.session.SetHealth(plugin.Degraded, "degraded by settings")
	}
	return nil
}

// validSettings is the program's own check of settings.
func validSettings(_ context.Context, settings json.RawMessage) (any, error) {
	var s map[string]json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(settings)).Decode(&s); err != nil {
		return nil, err
	}
	if raw, ok := s["greeting"]; ok {
		var greeting string
		if err := json.Unmarshal(raw, &greeting); err != nil {
			return nil, err
		}
		greeting = strings.Trim(greeting, " ")
		if greeting == "" || greeting == "forbidden" {
			return nil, &plugin.SettingsError{Problems: []plugin.SettingsProblem{{Path: "/greeting", Message: "this greeting is not allowed"}}}
		}
		text, err := plugin.JSON(greeting)
		if err != nil {
			return nil, err
		}
		s["greeting"] = text
	}
	if _, ok := s["retries"]; !ok {
		s["retries"] = json.RawMessage("3")
	}
	return s, nil
}

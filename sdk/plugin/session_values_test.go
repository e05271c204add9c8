package plugin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/plugintest"
)

// TestSessionValues has a handler look at everything that it is told beside its payload.
func TestSessionValues(t *testing.T) {
	limits := plugin.Limits{RequestTimeoutMs: 30_000, HeartbeatIntervalMs: 4000, MaxInFlight: 3}
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	look := func(_ context.Context, o *plugin.Operation) (any, error) {
		if got := o.Limits(); got != limits {
			return nil, fmt.Errorf("limits %+v", got)
		}
		if g := o.Grants(); len(g) != 1 || g[0].PermissionsGrantID != "live" || !g[0].ExpiresAtUTC.Equal(future.Truncate(time.Microsecond)) {
			return nil, fmt.Errorf("grants %+v", g)
		}
		if s := o.Secrets(); !slices.Equal(s, []string{"/token"}) {
			return nil, fmt.Errorf("secrets %q", s)
		}
		var settings struct{ Depth int }
		if err := o.DecodeSettings(&settings); err != nil || settings.Depth != 2 || string(o.Settings()) != `{"depth":2}` {
			return nil, fmt.Errorf("settings %+v %s %v", settings, o.Settings(), err)
		}
		return plugin.FormatTime(o.Context.DeadlineUTC), nil
	}
	p := newSession(t, op{name: "look", request: "any", response: "any", handler: look})
	p.Health(func(context.Context) (plugin.HealthReport, error) {
		return plugin.HealthReport{Status: plugin.Degraded, Message: "slow"}, nil
	})
	s := plugintest.OpenSession(t, p, plugintest.SessionConfig{
		Settings: map[string]int{"depth": 2}, Limits: limits,
		Grants: []plugin.Grant{
			{PermissionsGrantID: "old", PermissionID: "files", Scope: "filesystem.read", ExpiresAtUTC: past},
			{PermissionsGrantID: "live", PermissionID: "files", Scope: "filesystem.read", ExpiresAtUTC: future},
		},
	})
	deadline := time.Date(9999, 12, 31, 23, 59, 59, 500_000_000, time.UTC)
	out := call(t, s, plugintest.Request{Operation: "look", Payload: 1, Deadline: deadline, Secrets: map[string]string{"/token": "s"}})
	if out.Error != nil || string(out.Response.Payload) != `"9999-12-31T23:59:59.5Z"` {
		t.Errorf("%+v %+v", out.Error, out.Response)
	}
	if h, err := s.Health(false); err != nil || h.Status != plugin.Degraded || h.Message != "slow" {
		t.Errorf("%+v %v", h, err)
	}
}

// TestErrorTexts has what errors say to those who log them.
func TestErrorTexts(t *testing.T) {
	for want, err := range map[string]error{
		"unavailable: busy":                        plugin.NewPluginError(plugin.Unavailable, "bu%s", "sy"),
		"/a is wrong (and 1 more)":                 &plugin.SettingsError{Problems: []plugin.SettingsProblem{{Path: "/a", Message: "is wrong"}, {Path: "/b"}}},
		"the scope project.operate is not granted": plugin.NotGranted(plugin.ScopeOperate),
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err.Error(), want)
		}
	}
	m := plugin.MustParseManifest(json.RawMessage(`{"schemaVersion":"switchyard.plugin-manifest/v1","id":"a","name":"A","version":"1","protocolVersion":"switchyard.plugin/v1","executable":"a","arguments":[],"capabilities":["project.inspect"],"requestedScopes":["project.metadata.read"]}`))
	if m.ID != "a" {
		t.Errorf("%+v", m)
	}
	defer func() {
		if recover() == nil {
			t.Error("a manifest that is none is taken")
		}
	}()
	plugin.MustParseManifest([]byte("{}"))
}

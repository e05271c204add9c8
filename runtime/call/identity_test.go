package call

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

func TestIdentity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		old, new string
		want     Code
		field    string
	}{
		{"", "", "", ""},
		{`"result":{"protocolVersion":"switchyard.plugin/v1"`, `"result":{"protocolVersion":"switchyard.plugin/v2"`, CodeProtocolMismatch, "protocolVersion"},
		{`plugin-manifest/v1`, `plugin-manifest/v2`, CodeIdentityMismatch, "plugin.schemaVersion"},
		{`"id":"sample"`, `"id":"Sample"`, CodeIdentityMismatch, "plugin.id"},
		{`"Sample"`, `"Sample "`, CodeIdentityMismatch, "plugin.name"},
		{`"1.0.0"`, `"1.0.00"`, CodeIdentityMismatch, "plugin.version"},
		{`"version":"1.0.0","protocolVersion":"switchyard.plugin/v1"`, `"version":"1.0.0","protocolVersion":""`, CodeIdentityMismatch, "plugin.protocolVersion"},
		{`"capabilities":["project.operate","project.inspect"]`, `"capabilities":["project.operate"]`, CodeIdentityMismatch, "plugin.capabilities"},
		{`"capabilities":["project.operate",`, `"capabilities":["project.operate","project.delete",`, CodeIdentityMismatch, "plugin.capabilities"},
		{`"capabilities":["project.operate",`, `"capabilities":["project.operate","project.operate",`, CodeIdentityMismatch, "plugin.capabilities"},
		{`"requestedScopes":["project.operate",`, `"requestedScopes":[`, CodeIdentityMismatch, "plugin.requestedScopes"},
		{`"grantedScopes":["project.files.read",`, `"grantedScopes":[`, CodeIdentityMismatch, "grantedScopes"},
		{`"grantedScopes":[`, `"grantedScopes":["project.operate",`, CodeIdentityMismatch, "grantedScopes"},
		{`"grantedScopes":[`, `"grantedScopes":["everything",`, CodeIdentityMismatch, "grantedScopes"},
		{`"executable"`, ``, "", ""},
		{`"plugin":{`, `"plugin":{"executable":"x",`, CodeUnknownField, "/result/plugin/executable"},
		{`"name":"Sample",`, ``, CodeMalformed, "/result/plugin"},
		{`"capabilities":["project.operate","project.inspect"]`, `"capabilities":null`, CodeMalformed, "/result/plugin/capabilities"},
		{`,"grantedScopes":["project.files.read","project.metadata.read","project.operate"]`, ``, CodeMalformed, "/result"},
	} {
		client, p, _ := connect(t)
		p.answers(strings.Replace(goodHello, c.old, c.new, 1) + "\n")
		err := client.Initialize(context.Background(), hello)
		var f *Fault
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.new, err)
			}
		} else if !errors.As(err, &f) || f.Code != c.want || f.Field != c.field {
			t.Errorf("%s: %v, want %s at %q", c.new, err, c.want, c.field)
		} else if f.Code == CodeIdentityMismatch && (f.Expected == "" || f.Found == "") {
			t.Errorf("%s: facts are missing: %+v", c.new, f)
		}
	}
}

func TestGrantsAreKept(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	fresh := func(granted ...manifest.Scope) *Client {
		c, p, _ := connect(t)
		list, _ := json.Marshal(append([]manifest.Scope{}, granted...))
		p.answers(strings.Replace(goodHello, `["project.files.read","project.metadata.read","project.operate"]`, string(list), 1) + "\n")
		if err := c.Initialize(ctx, Hello{Identity: identity, Grants: granted}); err != nil {
			t.Fatal(err)
		}
		return c
	}
	inspect := func(c *Client, root string) error {
		_, err := c.Inspect(ctx, plugin.Project{ID: "p", Root: root})
		return err
	}
	operate := func(c *Client, root string) error {
		_, err := c.Operate(ctx, plugin.OperateRequest{Project: plugin.Project{Root: root}, Action: "a", Input: json.RawMessage("{}")})
		return err
	}
	for name, err := range map[string]error{
		"inspect without its scope":     inspect(fresh(manifest.ScopeOperate, manifest.ScopeFilesRead), ""),
		"inspect with a withheld root":  inspect(fresh(manifest.ScopeMetadataRead), "/srv"),
		"operate without its scope":     operate(fresh(manifest.ScopeMetadataRead, manifest.ScopeFilesRead), ""),
		"operate with a withheld root":  operate(fresh(manifest.ScopeOperate), "/srv"),
		"operate without a capability":  operate(&Client{grants: allScopes, identity: manifest.Identity{Capabilities: []manifest.Capability{manifest.CapabilityInspect}}}, ""),
		"inspect before initialize":     inspect(&Client{identity: identity}, ""),
		"inspect with a grant to spare": inspect(fresh(), ""),
	} {
		if !errors.Is(err, ErrNotGranted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, p, _ := connect(t)
	if _, err := c.Health(ctx); !errors.Is(err, ErrNotGranted) {
		t.Errorf("health before initialize: %v", err)
	}
	p.stdout.Close()
	for _, input := range []string{"", "{", `{"a":1,"a":2}`, "\xff", `{"n":1e400}`, "1 2"} {
		_, err := fresh(allScopes...).Operate(ctx, plugin.OperateRequest{Action: "a", Input: json.RawMessage(input)})
		if !errors.Is(err, ErrInput) {
			t.Errorf("input %q: %v", input, err)
		}
	}
	if err := inspect(fresh(allScopes...), "/srv/\xff"); !errors.Is(err, ErrInput) {
		t.Errorf("root that is not UTF-8: %v", err)
	}
}

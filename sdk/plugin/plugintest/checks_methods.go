package plugintest

import (
	"context"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// methodChecks are about what the methods answer and refuse.
func methodChecks() []check {
	inspects, operates := declares(plugin.CapabilityInspect), declares(plugin.CapabilityOperate)
	return []check{{
		name:   "health/params",
		grants: nothing,
		run: func(ctx context.Context, _ *subject, c *Client) error {
			return refusedAll(ctx, c, plugin.CodeBadParams,
				request(plugin.MethodHealth, `{"extra":1}`), request(plugin.MethodHealth, `[]`), request(plugin.MethodHealth, `null`))
		},
	}, {
		name:    "inspect/result",
		applies: inspects,
		grants:  everything,
		run: func(ctx context.Context, s *subject, c *Client) error {
			p := s.Project
			if !s.Manifest.Requests(plugin.ScopeFilesRead) {
				p.Root = ""
			}
			_, err := c.Inspect(ctx, p)
			return err
		},
	}, {
		name:    "inspect/without-root",
		applies: inspects,
		grants:  func(*subject) []plugin.Scope { return []plugin.Scope{plugin.ScopeMetadataRead} },
		run: func(ctx context.Context, s *subject, c *Client) error {
			p := s.Project
			p.Root = ""
			_, err := c.Inspect(ctx, p)
			if isError(err, plugin.CodeApplication, plugin.CodeNotGranted) {
				return nil // the plugin may say that it needs the files
			}
			return err
		},
	}, {
		name:    "inspect/grant",
		applies: inspects,
		grants:  without(plugin.ScopeMetadataRead),
		run: func(ctx context.Context, _ *subject, c *Client) error {
			return refused(ctx, c, request(plugin.MethodInspect, `{"project":`+someProject+`}`), plugin.CodeNotGranted)
		},
	}, {
		name:    "inspect/root-grant",
		applies: inspects,
		grants:  without(plugin.ScopeFilesRead),
		run: func(ctx context.Context, _ *subject, c *Client) error {
			return refused(ctx, c, request(plugin.MethodInspect, `{"project":{"id":"p","displayName":"P","root":"/srv/p"}}`), plugin.CodeNotGranted)
		},
	}, {
		name:    "inspect/params",
		applies: inspects,
		grants:  everything,
		run: func(ctx context.Context, _ *subject, c *Client) error {
			return refusedAll(ctx, c, plugin.CodeBadParams,
				request(plugin.MethodInspect, `{}`),
				request(plugin.MethodInspect, `{"project":null}`),
				request(plugin.MethodInspect, `{"project":{"id":"p"}}`),
				request(plugin.MethodInspect, `{"project":{"id":7,"displayName":"P"}}`),
				request(plugin.MethodInspect, `{"project":{"id":"p","displayName":"P","root":null}}`),
				request(plugin.MethodInspect, `{"project":{"id":"p","displayName":"P","path":"/srv/p"}}`),
				request(plugin.MethodInspect, `{"project":`+someProject+`,"deep":true}`))
		},
	}, {
		name:    "operate/unknown-action",
		applies: operates,
		grants:  everything,
		run: func(ctx context.Context, s *subject, c *Client) error {
			p := plugin.Project{ID: "p", DisplayName: "P"}
			r, err := c.Operate(ctx, p, someAction, struct{}{})
			switch {
			case isError(err, plugin.CodeApplication, plugin.CodeBadParams, plugin.CodeNotGranted):
				return nil
			case err == nil && r.Status != plugin.Failed:
				return violated("an action that the plugin cannot know ended as %s", r.Status)
			}
			return err
		},
	}, {
		name:    "operate/grant",
		applies: operates,
		grants:  without(plugin.ScopeOperate),
		run: func(ctx context.Context, _ *subject, c *Client) error {
			return refused(ctx, c, request(plugin.MethodOperate, `{"project":`+someProject+`,"action":"`+someAction+`","input":{}}`), plugin.CodeNotGranted)
		},
	}, {
		name:    "operate/root-grant",
		applies: operates,
		grants:  without(plugin.ScopeFilesRead),
		run: func(ctx context.Context, _ *subject, c *Client) error {
			return refused(ctx, c, request(plugin.MethodOperate,
				`{"project":{"id":"p","displayName":"P","root":"/srv/p"},"action":"`+someAction+`","input":{}}`), plugin.CodeNotGranted)
		},
	}, {
		name:    "operate/params",
		applies: operates,
		grants:  everything,
		run: func(ctx context.Context, _ *subject, c *Client) error {
			return refusedAll(ctx, c, plugin.CodeBadParams,
				request(plugin.MethodOperate, `{}`),
				request(plugin.MethodOperate, `{"project":`+someProject+`,"action":"`+someAction+`"}`),
				request(plugin.MethodOperate, `{"project":`+someProject+`,"input":{}}`),
				request(plugin.MethodOperate, `{"project":`+someProject+`,"action":"","input":{}}`),
				request(plugin.MethodOperate, `{"project":`+someProject+`,"action":7,"input":{}}`),
				request(plugin.MethodOperate, `{"action":"`+someAction+`","input":{}}`),
				request(plugin.MethodOperate, `{"project":`+someProject+`,"action":"`+someAction+`","input":{},"force":true}`))
		},
	}, {
		name: "capability/undeclared",
		applies: func(s *subject) string {
			if s.Manifest.Has(plugin.CapabilityInspect) && s.Manifest.Has(plugin.CapabilityOperate) {
				return "every capability is declared"
			}
			return ""
		},
		grants: everything,
		run: func(ctx context.Context, s *subject, c *Client) error {
			if !s.Manifest.Has(plugin.CapabilityInspect) {
				return refused(ctx, c, request(plugin.MethodInspect, `{"project":`+someProject+`}`), plugin.CodeNotGranted)
			}
			return refused(ctx, c, request(plugin.MethodOperate, `{"project":`+someProject+`,"action":"`+someAction+`","input":{}}`), plugin.CodeNotGranted)
		},
	}, {
		name:   "method/unknown",
		grants: everything,
		run: func(ctx context.Context, s *subject, c *Client) error {
			if err := refusedAll(ctx, c, plugin.CodeUnknownMethod,
				request("project.destroy", `{}`), request("Plugin.health", `{}`), request("plugin.health ", `{}`)); err != nil {
				return err
			}
			return answers(ctx, s, c)
		},
	}}
}

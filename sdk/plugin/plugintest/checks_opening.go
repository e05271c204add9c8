package plugintest

import (
	"context"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// openingChecks are about the package, initialize and the end.
func openingChecks() []check {
	return []check{{
		name: "package/executable",
		applies: func(s *subject) string {
			if s.Package == "" {
				return "not a package"
			}
			return ""
		},
		atRest: func(s *subject) error { return checkExecutable(s.Package, s.Manifest.Executable) },
	}, {
		name: "end/unused",
		run:  func(context.Context, *subject, *Client) error { return nil },
	}, {
		name:   "end/after-call",
		grants: everything,
		run:    answers,
	}, {
		name:   "initialize/identity",
		grants: everything, // Initialize compares
		run:    func(context.Context, *subject, *Client) error { return nil },
	}, {
		name:   "initialize/no-grants",
		grants: nothing,
		run:    answers,
	}, {
		name: "initialize/each-grant",
		run: func(ctx context.Context, s *subject, _ *Client) error {
			for _, scope := range s.Manifest.RequestedScopes {
				c, err := s.dial()
				if err != nil {
					return err
				}
				_, err = c.Initialize(ctx, scope)
				if end := c.Close(); err == nil {
					err = end
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}, {
		name: "initialize/first",
		run: func(ctx context.Context, _ *subject, c *Client) error {
			return refusedAll(ctx, c, plugin.CodeState,
				request(plugin.MethodHealth, `{}`),
				request(plugin.MethodInspect, `{"project":`+someProject+`}`),
				request(plugin.MethodOperate, `{"project":`+someProject+`,"action":"`+someAction+`","input":{}}`))
		},
	}, {
		name:   "initialize/once",
		grants: nothing,
		run: func(ctx context.Context, s *subject, c *Client) error {
			if err := refused(ctx, c, initialize(plugin.Protocol), plugin.CodeState); err != nil {
				return err
			}
			return answers(ctx, s, c)
		},
	}, {
		name: "initialize/protocol",
		run: func(ctx context.Context, _ *subject, c *Client) error {
			return refusedAll(ctx, c, plugin.CodeProtocolMismatch,
				initialize("switchyard.plugin/v2"), initialize("switchyard.plugin/v1.0"), initialize("Switchyard.plugin/v1"))
		},
	}, {
		name: "initialize/undeclared-scope",
		run: func(ctx context.Context, s *subject, c *Client) error {
			lines := []string{initialize(plugin.Protocol, "plugintest.everything")}
			for _, scope := range []plugin.Scope{plugin.ScopeMetadataRead, plugin.ScopeFilesRead, plugin.ScopeOperate} {
				if !s.Manifest.Requests(scope) {
					lines = append(lines, initialize(plugin.Protocol, string(scope)))
				}
			}
			if err := refusedAll(ctx, c, plugin.CodeNotGranted, lines...); err != nil {
				return err
			}
			// A refused attempt leaves the plugin as it was.
			return refused(ctx, c, request(plugin.MethodHealth, `{}`), plugin.CodeState)
		},
	}, {
		name: "initialize/params",
		run: func(ctx context.Context, _ *subject, c *Client) error {
			return refusedAll(ctx, c, plugin.CodeBadParams,
				request(plugin.MethodInitialize, `{}`),
				request(plugin.MethodInitialize, `[]`),
				request(plugin.MethodInitialize, `{"protocolVersion":"switchyard.plugin/v1","hostVersion":"t"}`),
				request(plugin.MethodInitialize, `{"protocolVersion":"switchyard.plugin/v1","hostVersion":"t","grantedScopes":null}`),
				request(plugin.MethodInitialize, `{"protocolVersion":"switchyard.plugin/v1","hostVersion":1,"grantedScopes":[]}`),
				request(plugin.MethodInitialize, `{"protocolVersion":"switchyard.plugin/v1","hostVersion":"t","grantedScopes":[],"extra":1}`))
		},
	}}
}

package plugintest

import (
	"context"
	"strings"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// readingChecks are about how strictly and how robustly requests are read.
func readingChecks() []check {
	return []check{{
		name: "malformed/not-json",
		run: survives(
			"", "hello", "{", `{"jsonrpc":"2.0","id":7,"method":"plugin.health","params":{}`,
			`{'jsonrpc':'2.0'}`, request(plugin.MethodHealth, `{"a":NaN}`), request(plugin.MethodHealth, `{},`),
			request(plugin.MethodHealth, `{}`)+` {}`, "\xEF\xBB\xBF"+request(plugin.MethodHealth, `{}`),
			strings.Repeat("[", 100_000)),
	}, {
		name: "malformed/not-a-request",
		run: survives(
			`[]`, `7`, `null`, `"hello"`, `{}`, `[`+request(plugin.MethodHealth, `{}`)+`]`,
			`{"id":7,"method":"plugin.health","params":{}}`,
			`{"jsonrpc":"1.0","id":7,"method":"plugin.health","params":{}}`,
			`{"jsonrpc":2.0,"id":7,"method":"plugin.health","params":{}}`,
			`{"jsonrpc":"2.0","method":"plugin.health","params":{}}`,
			`{"jsonrpc":"2.0","id":null,"method":"plugin.health","params":{}}`,
			`{"jsonrpc":"2.0","id":7,"params":{}}`,
			`{"jsonrpc":"2.0","id":7,"method":7,"params":{}}`),
	}, {
		name: "malformed/unknown-member",
		run: survives(
			`{"jsonrpc":"2.0","id":7,"method":"plugin.health","params":{},"extra":1}`,
			`{"jsonrpc":"2.0","id":7,"Method":"plugin.health","params":{}}`),
	}, {
		name: "malformed/duplicate-name",
		run: survives(
			`{"jsonrpc":"2.0","id":7,"id":8,"method":"plugin.health","params":{}}`,
			request(plugin.MethodHealth, `{"a":1,"\u0061":2}`)),
	}, {
		name: "malformed/unicode",
		run: survives(
			request(plugin.MethodHealth, `{"a":"`+"\xff"+`"}`),
			request(plugin.MethodHealth, `{"a":"\ud800"}`)),
	}, {
		name:   "id/echo",
		grants: nothing,
		run: func(ctx context.Context, _ *subject, c *Client) error {
			for _, id := range []string{"0", "-1", "1", "1", "9007199254740991"} {
				r, err := c.Exchange(ctx, []byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"plugin.health","params":{}}`))
				switch {
				case err != nil:
					return err
				case r.ID != id:
					return violated("a response with id %s to a request with id %s", r.ID, id)
				case r.Error != nil:
					return violated("a request with id %s is refused: %v", id, r.Error)
				}
			}
			return nil
		},
	}, {
		name:   "reading/spelling",
		grants: nothing,
		run: func(ctx context.Context, _ *subject, c *Client) error {
			r, err := c.Exchange(ctx, []byte(" {\t\"params\" : { } , \"method\":\"plugin.he\\u0061lth\",\"id\":7,\"jsonrpc\":\"2.0\"}\r"))
			switch {
			case err != nil:
				return err
			case r.Error != nil || r.ID != "7":
				return violated("white space, escapes and the order of members must not matter: id %s, %v", r.ID, r.Error)
			}
			return nil
		},
	}, {
		name:   "limit/request",
		grants: nothing,
		run: func(ctx context.Context, s *subject, c *Client) error {
			padded := func(size int) string {
				r := request(plugin.MethodHealth, `{}`)
				return r[:len(r)-1] + strings.Repeat(" ", size-len(r)) + "}"
			}
			for _, size := range []int{plugin.MaxMessageBytes - 1, plugin.MaxMessageBytes} {
				r, err := c.Exchange(ctx, []byte(padded(size)))
				switch {
				case err != nil:
					return err
				case r.Error != nil || r.ID != "7":
					return violated("a request of %d bytes must be answered: id %s, %v", size, r.ID, r.Error)
				}
			}
			for _, size := range []int{plugin.MaxMessageBytes + 1, 2*plugin.MaxMessageBytes + 1} {
				if err := refused(ctx, c, padded(size), plugin.CodeMalformed); err != nil {
					return err
				}
			}
			return answers(ctx, s, c)
		},
	}}
}

// survives holds that each line is refused as malformed, and that the plugin
// can still be initialized afterwards.
func survives(lines ...string) func(context.Context, *subject, *Client) error {
	return func(ctx context.Context, s *subject, c *Client) error {
		if err := refusedAll(ctx, c, plugin.CodeMalformed, lines...); err != nil {
			return err
		}
		if _, err := c.Initialize(ctx); err != nil {
			return err
		}
		return answers(ctx, s, c)
	}
}

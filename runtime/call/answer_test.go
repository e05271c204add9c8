package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// An answer to health that the client must refuse, or take, whatever else.
func TestAnswers(t *testing.T) {
	t.Parallel()
	result := func(r string) string { return `{"jsonrpc":"2.0","id":2,"result":` + r + "}\n" }
	health := func(at string) string { return result(`{"status":"healthy","checkedAt":"` + at + `"}`) }
	for _, c := range []struct {
		name, text string
		want       Code // "" if it is accepted
		field      string
	}{
		{"plain", goodHealth + "\n", "", ""},
		{"crlf", goodHealth + "\r\n", "", ""},
		{"no line feed at the end", goodHealth, "", ""},
		{"spaces", " \t" + strings.ReplaceAll(goodHealth, `,"`, "\t, \"") + " \n", "", ""},
		{"members in another order", `{"result":{"checkedAt":"2024-01-01T00:00:00Z","status":"healthy"},"id":2,"jsonrpc":"2.0"}` + "\n", "", ""},
		{"escaped", strings.Replace(goodHealth, "slow", `\u0073low`, 1) + "\n", "", ""},
		{"zulu", health("2024-01-01T00:00:00Z"), "", ""},
		{"offset", health("2024-01-01T00:00:00-08:00"), "", ""},
		{"fraction", health("2024-01-01T00:00:00.000001Z"), "", ""},

		{"nothing", "", CodeExited, ""},
		{"half a message", goodHealth[:30], CodeExited, ""},
		{"empty line", "\n" + goodHealth + "\n", CodeMalformed, ""},
		{"blank line", " \r\n", CodeMalformed, ""},
		{"text", "hello\n", CodeMalformed, ""},
		{"text at the end", "panic: oh", CodeMalformed, ""},
		{"byte order mark", "\ufeff" + goodHealth + "\n", CodeMalformed, ""},
		{"array", "[" + goodHealth + "]\n", CodeMalformed, ""},
		{"two on a line", goodHealth + goodHealth + "\n", CodeMalformed, ""},
		{"across lines", strings.Replace(goodHealth, ",", ",\n", 1) + "\n", CodeMalformed, ""},
		{"not UTF-8", strings.Replace(goodHealth, "slow", "sl\xffow", 1) + "\n", CodeMalformed, "/result/message"},
		{"duplicate member", strings.Replace(goodHealth, `"id":2`, `"id":2,"id":2`, 1) + "\n", CodeMalformed, "/id"},
		{"duplicate in result", result(`{"status":"healthy","st\u0061tus":"healthy","checkedAt":"2024-01-01T00:00:00Z"}`), CodeMalformed, "/result/status"},
		{"deep", result(strings.Repeat("[", 70) + strings.Repeat("]", 70)), CodeMalformed, "*"},
		{"huge number", result(`{"status":1e999}`), CodeMalformed, "*"},
		{"no version", `{"id":2,"result":{}}` + "\n", CodeMalformed, ""},
		{"wrong version", strings.Replace(goodHealth, "2.0", "1.0", 1) + "\n", CodeMalformed, "jsonrpc"},
		{"no id", `{"jsonrpc":"2.0","result":{}}` + "\n", CodeMalformed, ""},
		{"another id", strings.Replace(goodHealth, `"id":2`, `"id":1`, 1) + "\n", CodeWrongID, "id"},
		{"string id", strings.Replace(goodHealth, `"id":2`, `"id":"2"`, 1) + "\n", CodeWrongID, "id"},
		{"null id", strings.Replace(goodHealth, `"id":2`, `"id":null`, 1) + "\n", CodeWrongID, "id"},
		{"fractional id", strings.Replace(goodHealth, `"id":2`, `"id":2.0`, 1) + "\n", CodeWrongID, "id"},
		{"object id", strings.Replace(goodHealth, `"id":2`, `"id":{"a":1}`, 1) + "\n", CodeWrongID, "id"},
		{"unknown member", strings.Replace(goodHealth, `"id"`, `"x":1,"id"`, 1) + "\n", CodeUnknownField, "/x"},
		{"wrong case", strings.Replace(goodHealth, `"id"`, `"ID"`, 1) + "\n", CodeUnknownField, "/ID"},
		{"unknown in result", result(`{"status":"healthy","checkedAt":"2024-01-01T00:00:00Z","x":{}}`), CodeUnknownField, "/result/x"},
		{"wrong case in result", result(`{"Status":"healthy","checkedAt":"2024-01-01T00:00:00Z"}`), CodeUnknownField, "/result/Status"},
		{"unknown in error", `{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"m","data":1}}` + "\n", CodeUnknownField, "/error/data"},
		{"both", `{"jsonrpc":"2.0","id":2,"result":{},"error":{"code":1,"message":"m"}}` + "\n", CodeMalformed, ""},
		{"both, one null", `{"jsonrpc":"2.0","id":2,"result":{},"error":null}` + "\n", CodeMalformed, ""},
		{"neither", `{"jsonrpc":"2.0","id":2}` + "\n", CodeMalformed, ""},
		{"null result", result("null"), CodeMalformed, "/result"},
		{"null error", `{"jsonrpc":"2.0","id":2,"error":null}` + "\n", CodeMalformed, "/error"},
		{"empty result", result("{}"), CodeMalformed, "/result"},
		{"null member", result(`{"status":null,"checkedAt":"2024-01-01T00:00:00Z"}`), CodeMalformed, "/result/status"},
		{"unknown status", result(`{"status":"great","checkedAt":"2024-01-01T00:00:00Z"}`), CodeMalformed, "/result/status"},
		{"no time", result(`{"status":"healthy"}`), CodeMalformed, "/result"},
		{"no such day", health("2023-02-29T00:00:00Z"), CodeMalformed, "/result/checkedAt"},
		{"no zone", health("2024-01-01T00:00:00"), CodeMalformed, "/result/checkedAt"},
		{"lower-case t", health("2024-01-01t00:00:00Z"), CodeMalformed, "/result/checkedAt"},
		{"leap second", health("2016-12-31T23:59:60Z"), CodeMalformed, "/result/checkedAt"},
		{"comma", health("2024-01-01T00:00:00,5Z"), CodeMalformed, "/result/checkedAt"},
		{"date", health("2024-01-01"), CodeMalformed, "/result/checkedAt"},
		{"error", `{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"m"}}` + "\n", CodeError, ""},
		{"error to an unread request", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}` + "\n", CodeError, ""},
		{"error without id", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m"}}` + "\n", CodeWrongID, "id"},
		{"error without message", `{"jsonrpc":"2.0","id":2,"error":{"code":-32000}}` + "\n", CodeMalformed, "/error"},
		{"error with text code", `{"jsonrpc":"2.0","id":2,"error":{"code":"x","message":"m"}}` + "\n", CodeMalformed, "/error/code"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			client, _ := open(t, c.text)
			_, err := client.Health(context.Background())
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var f *Fault
			if !errors.As(err, &f) {
				t.Fatalf("%v, want %s", err, c.want)
			}
			if f.Code != c.want || c.field != "*" && f.Field != c.field || f.Method != plugin.MethodHealth {
				t.Errorf("%s at %q: %v\nwant %s at %q", f.Code, f.Field, f, c.want, c.field)
			}
			if _, err := client.Health(context.Background()); !errors.Is(err, ErrUnusable) {
				t.Errorf("after the fault: %v", err)
			}
			if err := client.End(context.Background()); !errors.Is(err, ErrUnusable) {
				t.Errorf("end after the fault: %v", err)
			}
		})
	}
}

func TestOtherResults(t *testing.T) {
	t.Parallel()
	inspect := func(c *Client) error {
		_, err := c.Inspect(context.Background(), plugin.Project{ID: "p"})
		return err
	}
	operate := func(c *Client) error {
		_, err := c.Operate(context.Background(), plugin.OperateRequest{Action: "a", Input: json.RawMessage("1")})
		return err
	}
	for _, c := range []struct {
		name   string
		call   func(*Client) error
		answer string
		want   Code
		field  string
	}{
		{"inspect", inspect, goodInspect, "", ""},
		{"no facts", inspect, strings.Replace(goodInspect, `"facts":`, `"facets":`, 1), CodeUnknownField, "/result/facets"},
		{"missing list", inspect, strings.Replace(goodInspect, `"warnings":["w"],`, ``, 1), CodeMalformed, "/result"},
		{"null fact", inspect, strings.Replace(goodInspect, `"facts":[`, `"facts":[null,`, 1), CodeMalformed, "/result/facts/0"},
		{"unknown in fact", inspect, strings.Replace(goodInspect, `"label":"B"`, `"label":"B","x":1`, 1), CodeUnknownField, "/result/facts/1/x"},
		{"number as value", inspect, strings.Replace(goodInspect, `"value":"1"`, `"value":1`, 1), CodeMalformed, "/result/facts/0/value"},
		{"action without risk", inspect, strings.Replace(goodInspect, `,"risk":"free text"`, ``, 1), CodeMalformed, "/result/actions/0"},
		{"operate", operate, goodOperate, "", ""},
		{"null output", operate, strings.Replace(goodOperate, `{"n":[1,2.5,null]}`, `null`, 1), "", ""},
		{"no output", operate, strings.Replace(goodOperate, `,"output":{"n":[1,2.5,null]}`, ``, 1), CodeMalformed, "/result"},
		{"unknown status", operate, strings.Replace(goodOperate, `partially_succeeded`, `done`, 1), CodeMalformed, "/result/status"},
		{"duplicate in output", operate, strings.Replace(goodOperate, `"n":[1`, `"n":1,"n":[1`, 1), CodeMalformed, "/result/output/n"},
		{"integer beyond 2^53", operate, strings.Replace(goodOperate, `2.5`, `9007199254740993`, 1), CodeMalformed, "/result/output/n/1"},
	} {
		client, _ := open(t, c.answer+"\n")
		err := c.call(client)
		var f *Fault
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		} else if !errors.As(err, &f) || f.Code != c.want || f.Field != c.field {
			t.Errorf("%s: %v, want %s at %q", c.name, err, c.want, c.field)
		}
	}
}

func TestErrorAnswers(t *testing.T) {
	t.Parallel()
	var f *Fault
	answer := func(code int, message string) *Client {
		c, _ := open(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"error":{"code":%d,"message":"%s"}}`+"\n", code, message))
		return c
	}
	for _, code := range []plugin.Code{-32700, -32601, -32602, -32603, -32000, -32001, -32002, -32003} {
		if _, err := answer(int(code), "m").Health(context.Background()); !errors.As(err, &f) || f.Code != CodeError || f.RPC == nil || f.RPC.Code != code {
			t.Errorf("%d: %v", code, err)
		}
	}
	for _, code := range []int{0, 1, -1, 32000, -31999, -32004, -32600, -32701, 9007199254740991} {
		if _, err := answer(code, "m").Health(context.Background()); !errors.As(err, &f) || f.Code != CodeMalformed || f.Field != "/error/code" || f.RPC != nil {
			t.Errorf("%d: %v", code, err)
		}
	}
	// Bytes are counted, once the JSON is read.
	longest := strings.Repeat("é", plugin.MaxErrorBytes/2)
	for _, message := range []string{longest, strings.Repeat(`\u00e9`, plugin.MaxErrorBytes/2), longest[2:] + "x"} {
		if _, err := answer(-32003, message).Health(context.Background()); !errors.As(err, &f) || f.Code != CodeError || f.RPC == nil || f.RPC.Code != plugin.CodeNotGranted ||
			!strings.HasPrefix(longest+"x", strings.TrimSuffix(f.RPC.Message, "x")) {
			t.Errorf("a message of %d bytes: %v", len(message), err)
		}
	}
	if _, err := answer(-32003, longest+"x").Health(context.Background()); !errors.As(err, &f) || f.Code != CodeMalformed || f.Field != "/error/message" || f.RPC != nil {
		t.Errorf("a message of %d bytes: %v", len(longest)+1, err)
	}
	c, p, _ := connect(t)
	p.answers(`{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"only v9"}}` + "\n")
	if err := c.Initialize(context.Background(), hello); !errors.As(err, &f) || f.Code != CodeProtocolMismatch || f.RPC.Message != "only v9" {
		t.Errorf("%v", err)
	}
}

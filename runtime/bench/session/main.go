// Program session is the session plugin that the benchmarks call: it answers a request
// with its payload, and counts as a stream.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/switchyard-plugins/switchyard/runtime/bench/echo/items"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

func main() {
	pkg, err := plugin.LoadPackage(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "session:", err)
		os.Exit(1)
	}
	p := plugin.NewSessionPlugin(pkg)
	p.Handle("bench", "echo", func(_ context.Context, op *plugin.Operation) (any, error) { return op.Payload, nil })
	p.Handle("bench", "count", count)
	plugin.SessionMain(p)
}

func count(_ context.Context, op *plugin.Operation) (any, error) {
	total, err := items.ReadCount(op.Payload)
	if err != nil {
		return nil, err
	}
	var item json.RawMessage
	for n := range total {
		item = items.Append(item[:0], n)
		if err := op.Send(item); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

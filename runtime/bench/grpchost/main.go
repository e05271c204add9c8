// Program grpchost is a go-plugin host that does what `switchyard run` of an operation
// with a response stream does: it starts the plugin, asks for N items, writes each on a
// line of its own as it came, and ends the plugin.
//
//	grpchost PLUGIN N
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/switchyard-plugins/switchyard/runtime/bench/echo"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "grpchost:", err)
		os.Exit(1)
	}
}

func run(plugin, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	client, kill, err := echo.Start(plugin)
	if err != nil {
		return err
	}
	defer kill()
	next, err := client.Count(context.Background(), n)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(os.Stdout, 64<<10)
	for {
		item, err := next()
		if err == io.EOF {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		out.Write(item)
		if err := out.WriteByte('\n'); err != nil {
			return err
		}
	}
}

// Program bench measures what docs/performance.md promises: every figure is a
// ratio of two ways of doing the same work, run in turns in one go. It builds what
// it runs in a temporary directory, talks to nothing outside the machine, and
// ends with status 1 when a ratio is missed.
//
//	go run . [-runs 15] [-only run,list,…]
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	runs := flag.Int("runs", 15, "rounds of each pair")
	only := flag.String("only", "", "comma-separated names of pairs; empty for all")
	flag.Parse()
	missed, err := run(*runs, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if missed > 0 {
		fmt.Fprintf(os.Stderr, "bench: %d ratios missed\n", missed)
		os.Exit(1)
	}
}

func run(runs int, only string) (missed int, err error) {
	dir, err := os.MkdirTemp("", "switchyard-bench-")
	if err != nil {
		return 0, err
	}
	defer removeAll(dir)
	w, err := build(dir)
	if err != nil {
		return 0, err
	}
	pairs, err := w.pairs(runs, selected(only))
	if err != nil {
		return 0, err
	}
	var rows []row
	for _, p := range pairs {
		fmt.Fprintf(os.Stderr, "%s …\n", p.name)
		r, err := measure(p)
		if err != nil {
			return 0, err
		}
		rows = append(rows, r)
		if r.missed() {
			missed++
		}
	}
	print(os.Stdout, rows)
	return missed, nil
}

// selected returns a predicate over the names of pairs.
func selected(only string) func(string) bool {
	if only == "" {
		return func(string) bool { return true }
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(only, ",") {
		wanted[name] = true
	}
	return func(name string) bool { return wanted[name] }
}

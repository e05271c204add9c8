// Switchyard-verify is the verify worker as a program. It is started by switchyard,
// beside which it stands, and is of no use by itself.
package main

import (
	"fmt"
	"os"

	"github.com/switchyard-plugins/switchyard/verify/worker"
)

func main() {
	if err := worker.Run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "switchyard-verify: %v\n", err)
		os.Exit(1)
	}
}

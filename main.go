// Switchyard packs, installs, reviews, trusts, pins, runs and revokes
// out-of-process plugins.
package main

import (
	"os"

	"github.com/switchyard-plugins/switchyard/commands"
)

func main() {
	reserve(len(os.Args))
	os.Exit(commands.Main(commands.OSEnv()))
}

// reserve gives this goroutine the stack that a command needs in one step. Else it
// grows on the way, and each time what is on it is walked and copied to fresh pages: a
// twentieth of what `list` takes. The frame is all that counts.
//
//go:noinline
func reserve(n int) byte {
	var frame [24 << 10]byte
	return frame[n%len(frame)]
}

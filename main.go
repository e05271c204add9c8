// Switchyard packs, installs, reviews, trusts, pins, runs and revokes
// out-of-process plugins.
package main

import (
	"os"

	"github.com/switchyard-plugins/switchyard/commands"
)

func main() {
	os.Exit(commands.Main(commands.OSEnv()))
}

//go:build !unix

package misbehave

import (
	"os"
	"os/exec"
	"os/signal"
)

func detach(*exec.Cmd, bool, bool) {}

func signalSelf() { os.Exit(137) }

func stopSelf() {}

func ignoreSignals() { signal.Ignore() }

func raiseLimits() {}

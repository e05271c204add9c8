package commands

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"
)

// Env is everything that a command takes from the world around it. Nothing in
// this package touches os.Args, the standard streams, the environment or the
// clock but through an Env, so that every command runs inside a test.
type Env struct {
	Program string   // how to type the program's name again: "switchyard", or the path it was started by
	Args    []string // without the program's name

	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Executable is where this program's file lies.
	Executable func() (string, error)
	LookupEnv  func(string) (string, bool)
	Getwd      func() (string, error)
	Now        func() time.Time

	// Terminal reports whether a standard stream (0, 1, 2) is a terminal.
	Terminal func(stream int) bool
	// ReadPassword asks on the terminal and reads one line that is not shown.
	ReadPassword func(prompt string) ([]byte, error)
	// DiscardInput throws away what was typed on the terminal before a question was
	// asked: it cannot be the answer to it.
	DiscardInput func()
	// Width returns the terminal's width in cells, 0 where there is none.
	Width func() int

	// Interrupts returns a context that ends with the first interrupt or
	// termination signal. The second one closes force, or where that is nil ends
	// the process at once; so does the third. stop gives the signals their default
	// meaning back.
	Interrupts func(parent context.Context, force chan<- struct{}) (ctx context.Context, stop func())
}

// OSEnv returns the Env of the running process.
func OSEnv() Env {
	return Env{
		Program:    programName(os.Args),
		Args:       os.Args[min(1, len(os.Args)):],
		Stdin:      os.Stdin,
		Stdout:     os.Stdout,
		Stderr:     os.Stderr,
		Executable: os.Executable,
		LookupEnv:  os.LookupEnv,
		Getwd:      os.Getwd,
		Now:        time.Now,
		Terminal:   func(stream int) bool { return term.IsTerminal(descriptor(stream)) },
		ReadPassword: func(prompt string) ([]byte, error) {
			fmt.Fprint(os.Stderr, prompt)
			words, err := term.ReadPassword(descriptor(0))
			fmt.Fprintln(os.Stderr)
			return words, err
		},
		Width: func() int {
			width, _, err := term.GetSize(descriptor(1))
			if err != nil {
				return 0
			}
			return width
		},
		DiscardInput: discardInput,
		Interrupts:   interrupts,
	}
}

// programName keeps a path that was typed, because the bare name may not be in
// PATH or may be another program there.
func programName(args []string) string {
	const name = "switchyard"
	if len(args) == 0 || !strings.ContainsRune(args[0], filepath.Separator) {
		return name
	}
	return args[0]
}

func descriptor(stream int) int {
	return int([...]*os.File{os.Stdin, os.Stdout, os.Stderr}[stream].Fd())
}

// interrupts takes the end of the terminal (SIGHUP) like an interrupt. It leaves a
// signal alone that the process was started to ignore, as nohup does, and shells
// for what runs in the background. A signal that ends the process meets
// its default action; children die with it.
func interrupts(parent context.Context, force chan<- struct{}) (context.Context, func()) {
	var signals []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	if len(signals) == 0 {
		return parent, func() {}
	}
	ctx, cancel := context.WithCancel(parent)
	arrived := make(chan os.Signal, 2)
	signal.Notify(arrived, signals...)
	stopped := make(chan struct{})
	go func() {
		defer signal.Stop(arrived)
		for range 2 {
			select {
			case <-stopped:
				return
			case <-arrived:
			}
			if ctx.Err() == nil {
				cancel()
				if force == nil {
					return
				}
				continue
			}
			close(force)
		}
	}()
	return ctx, sync.OnceFunc(func() { close(stopped); cancel() })
}

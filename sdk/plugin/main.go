package plugin

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main serves standard input and output and ends the program: with status 0
// after the host closed standard input, else with status 1 and a line on
// standard error. SIGTERM and an interrupt cancel the running call.
//
// The protocol is kept out of everybody else's reach: while Main runs,
// os.Stdout writes to standard error, so that a forgotten fmt.Println is a log
// line and not a protocol error, and os.Stdin is empty.
func Main(m Manifest, h Handler) {
	if err := serveStdio(m, h); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", m.ID, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serveStdio(m Manifest, h Handler) error {
	in, out, err := takeStdio()
	if err != nil {
		return err
	}
	return serve(context.Background(), in, out, os.Stderr, m, h, interrupts)
}

// interrupts calls cancel when the process is asked to terminate. Until then that
// ends the process at once, as it should while nothing is under way.
func interrupts(cancel context.CancelCauseFunc) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	go func() { cancel(fmt.Errorf("stopped by the signal: %v", <-asked)) }()
}

// takeStdio returns the two ends of the protocol after it put something
// harmless in the place of each.
func takeStdio() (in, out *os.File, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, err
	}
	if out, err = divertStdout(); err != nil {
		return nil, nil, fmt.Errorf("standard output: %w", err)
	}
	in, os.Stdin = os.Stdin, null
	os.Stdout = os.Stderr
	return in, out, nil
}

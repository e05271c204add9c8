package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/runtime"
	"github.com/switchyard-plugins/switchyard/runtime/bench/echo"
	"github.com/switchyard-plugins/switchyard/runtime/bench/echo/items"
	"github.com/switchyard-plugins/switchyard/runtime/session"
)

// sessionID names the session package.
const sessionID = "org.switchyard.bench.session"

// sessionHome makes a data directory in which the session package is installed, trusted
// and enabled.
func (w *world) sessionHome(name string) (string, error) {
	data, dir := filepath.Join(w.dir, "data-"+name), filepath.Join(w.dir, "packages-"+name, "session")
	if err := os.CopyFS(dir, os.DirFS("session/package")); err != nil {
		return "", err
	}
	program, err := os.ReadFile(w.session)
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "session"), program, 0o755); err != nil {
		return "", err
	}
	if err := w.quiet(data, "install", dir); err != nil {
		return "", err
	}
	digest, err := w.packageDigest(data, sessionID)
	if err != nil {
		return "", err
	}
	if err := w.quiet(data, "trust", sessionID, "--fingerprint", digest); err != nil {
		return "", err
	}
	return data, w.quiet(data, "enable", sessionID)
}

// trips is how many round trips one round of a unary pair makes.
const trips = 2000

func (w *world) unary(runs int) (pair, error) { return w.roundTrips("unary", 1, runs) }

func (w *world) unary8(runs int) (pair, error) { return w.roundTrips("unary-8", 8, runs) }

// roundTrips compares round trips over a connection that is open: of a session, with the
// payload held against the operation's schemas on both sides and in both directions, and
// of go-plugin, which carries the same payload as bytes and looks at nothing. As many
// calls are in flight on one side as on the other.
func (w *world) roundTrips(name string, inFlight, runs int) (pair, error) {
	data, err := w.sessionHome(name)
	if err != nil {
		return pair{}, err
	}
	calls, limit := "1 call in flight", 1.0/3
	if inFlight > 1 {
		calls, limit = fmt.Sprintf("%d calls in flight", inFlight), 0 // there to be seen
	}
	p := pair{runs: runs * 2, limit: limit,
		ourUse: fmt.Sprintf("%d round trips of a session, schemas checked on both sides, %s", trips, calls),
		vs:     "go-plugin's unary gRPC, same payload, same calls in flight"}
	p.begin = func(p *pair) (func() error, error) {
		client, end, err := openSession(data)
		if err != nil {
			return nil, err
		}
		service, kill, err := echo.Start(w.grpcEcho)
		if err != nil {
			return nil, errors.Join(err, end())
		}
		payload := []byte(items.Payload)
		p.ours = func() error {
			return together(inFlight, func(ctx context.Context) error {
				call, err := client.Do(ctx, session.Request{CapabilityID: "bench", OperationName: "echo", Payload: payload})
				if err != nil {
					return err
				}
				result, err := call.Result()
				if err != nil {
					return err
				}
				return same(result.Payload)
			})
		}
		p.other = func() error {
			return together(inFlight, func(ctx context.Context) error {
				got, err := service.Echo(ctx, payload)
				if err != nil {
					return err
				}
				return same(got)
			})
		}
		return func() error { kill(); return end() }, nil
	}
	return p, nil
}

func same(got []byte) error {
	if string(got) != items.Payload {
		return fmt.Errorf("%q came back", got)
	}
	return nil
}

// together makes the round trips of one round from so many goroutines.
func together(inFlight int, trip func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var all sync.WaitGroup
	for range inFlight {
		all.Go(func() {
			for range trips / inFlight {
				if err := trip(ctx); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// openSession opens a session as `run` does. The returned function ends it.
func openSession(data string) (*session.Client, func() error, error) {
	home, err := pkgmgr.Open(data, pkgmgr.Options{})
	if err != nil {
		return nil, nil, err
	}
	host := &runtime.Host{Home: home, Version: "bench", Lookup: os.LookupEnv}
	request := runtime.SessionRequest{CallRequest: pkgmgr.CallRequest{Ref: pkgmgr.Ref{ID: sessionID}}}
	opened, over, ended := make(chan *session.Client), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := host.RunSession(context.Background(), request, func(_ context.Context, s *runtime.Session) error {
			opened <- s.Client
			<-over
			return nil
		})
		ended <- err
	}()
	select {
	case client := <-opened:
		return client, func() error { close(over); return <-ended }, nil
	case err := <-ended:
		return nil, nil, err
	}
}

// streamed is how many items a whole process of the stream's pair takes.
const streamed = 200_000

// stream compares whole processes that start a plugin, take a stream of items and write
// each on a line of its own as it came.
func (w *world) stream(runs int) (pair, error) {
	data, err := w.sessionHome("stream")
	n := strconv.Itoa(streamed)
	return pair{runs: max(5, runs), limit: 1.25,
		ourUse: fmt.Sprintf("`run` of a stream of %d items of 400 bytes a frame, as NDJSON, whole process", streamed),
		vs:     "go-plugin's server stream, same payload, as NDJSON, whole process",
		ours:   start(w.command(data, "run", sessionID, "bench/count", "--deadline", "10m", "--input", string(items.Count(streamed)))),
		other:  start(exec.Command(w.grpcHost, w.grpcEcho, n))}, err
}

//go:build unix

package pkgmgr

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// start starts a part in a process of its own; wait returns its failure.
func start(part string, args ...string) (wait func() error) {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), partEnv+"="+part)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return func() error { return err }
	}
	return func() error {
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("%w: %s", err, out.String())
		}
		return nil
	}
}

// watch lists, reviews and runs in a loop until stop is closed, and reports whatever
// is no state between two commands.
func (s *site) watch(stop <-chan struct{}, known map[digest.Digest]sample, enabled digest.Digest) (rounds int, err error) {
	for {
		select {
		case <-stop:
			return rounds, nil
		default:
		}
		rounds++
		list, err := s.List(s.ctx, nil, true)
		if err != nil {
			return rounds, err
		}
		defaults := 0
		for _, i := range list {
			p, ok := known[i.Package]
			switch {
			case i.Err != nil:
				return rounds, fmt.Errorf("round %d: %w", rounds, i.Err)
			case !ok || i.ID != p.id || i.Version != p.version:
				return rounds, fmt.Errorf("round %d: a mixture: %+v", rounds, i)
			case i.Recorded != i.Package:
				return rounds, fmt.Errorf("round %d: recorded %s, found %s: %s", rounds, i.Recorded, i.Package, i.Status)
			case i.Status != StatusUntrusted && i.Package != enabled, i.Status != StatusEnabled && i.Package == enabled:
				return rounds, fmt.Errorf("round %d: %s %s is %s", rounds, i.ID, i.Version, i.Status)
			}
			if i.Default {
				defaults++
			}
		}
		if len(list) > 0 && defaults != 1 {
			return rounds, fmt.Errorf("round %d: %d defaults: %q", rounds, defaults, lines(list))
		}
		if len(list) == 0 {
			continue
		}
		r, err := s.Review(s.ctx, Ref{ID: "x"}, nil)
		if err != nil {
			return rounds, err
		}
		if r.Status == StatusChanged {
			return rounds, fmt.Errorf("round %d: reviewed as changed: %+v", rounds, r)
		}
		if enabled == "" {
			continue
		}
		if got, err := s.run(CallRequest{Ref: Ref{ID: "x", Digest: enabled}, Method: MethodHealth}); err != nil || got != enabled {
			return rounds, fmt.Errorf("round %d: run: %s, %w", rounds, got, err)
		}
		checks, err := s.Verify(s.ctx, nil, nil)
		if err != nil {
			return rounds, err
		}
		for _, v := range checks {
			if v.Verdict == Failed {
				return rounds, fmt.Errorf("round %d: verify: %+v", rounds, v)
			}
		}
	}
}

// Twenty processes install at once, the same package and different versions, while
// others read in a loop: no reader sees a mixture, or a change where there is none.
func TestParallelInstalls(t *testing.T) {
	const processes = 20
	for name, versions := range map[string]int{"the same package": 1, "different versions": 5} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			known := map[digest.Digest]sample{}
			var sources []string
			for i := range versions {
				p := sample{id: "x", version: fmt.Sprintf("1.%d.0", i), files: map[string]string{"lib/data": strings.Repeat(fmt.Sprint(i), 200_000)}}
				known[p.digest(t)] = p
				sources = append(sources, p.archive(t))
			}
			first := known[s.install(sources[0]).Package]
			s.trust("x")
			s.enable("x", manifest.ScopeMetadataRead)

			stop := make(chan struct{})
			var readers sync.WaitGroup
			rounds := make([]int, 3)
			for i := range rounds {
				readers.Go(func() {
					reader := &site{Home: s.Home, t: t, ctx: s.ctx}
					var err error
					if rounds[i], err = reader.watch(stop, known, first.digest(t)); err != nil {
						t.Error(err)
					}
				})
			}
			var waits []func() error
			for i := range processes {
				// Each process installs every version, in an order of its own.
				args := []string{s.Path()}
				for j := range sources {
					args = append(args, "!"+sources[(i+j)%len(sources)])
				}
				waits = append(waits, start("install", args...))
			}
			for _, wait := range waits {
				if err := wait(); err != nil {
					t.Error(err)
				}
			}
			close(stop)
			readers.Wait()
			if slices.Min(rounds) < 2 {
				t.Errorf("the readers made %d rounds", rounds)
			}
			t.Logf("%d processes, readers made %d rounds", processes, rounds)
			if got := len(s.list(true)); got != versions {
				t.Errorf("%d versions are installed", got)
			}
			s.sound()
			checks, err := s.Verify(s.ctx, nil, nil)
			must(t, err)
			for _, v := range checks {
				if v.Verdict != Unsigned {
					t.Errorf("%+v", v)
				}
			}
			if got, err := s.health("x@1.0.0"); err != nil || got != first.digest(t) {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

// The first install of an id, by twenty processes into an empty data directory.
func TestParallelFirstInstalls(t *testing.T) {
	s := newSite(t)
	p := sample{id: "x", version: "1.0.0", files: map[string]string{"lib/data": strings.Repeat("x", 300_000)}}
	known := map[digest.Digest]sample{p.digest(t): p}
	source := p.archive(t)
	stop, read := make(chan struct{}), make(chan error)
	go func() {
		_, err := s.watch(stop, known, "")
		read <- err
	}()
	var waits []func() error
	for range 20 {
		waits = append(waits, start("install", s.Path(), source))
	}
	for _, wait := range waits {
		if err := wait(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	must(t, <-read)
	wantLines(t, s.list(true), "x* 1.0.0 untrusted")
	s.sound()
	events, err := s.History(s.ctx, "x", 0)
	must(t, err)
	if len(events) != 1 {
		t.Errorf("%d installs are recorded", len(events))
	}
}

// Installs, uses, uninstalls and listings of several processes and goroutines: every
// refusal is one that a person can act on, and the end is sound.
func TestEverythingAtOnce(t *testing.T) {
	s := newSite(t)
	one, two := sample{id: "x", version: "1.0.0"}, sample{id: "x", version: "2.0.0"}
	sources := []string{one.archive(t), two.archive(t)}
	for _, source := range sources {
		s.install(source)
	}
	known := map[digest.Digest]sample{one.digest(t): one, two.digest(t): two}
	var wg sync.WaitGroup
	loop := func(do func(i int) error) {
		wg.Go(func() {
			for i := range 15 {
				err := do(i)
				var missing *NotFound
				var denied *Revoked
				var needs *NeedsDecision
				var busy *Busy
				switch {
				case err == nil, errorsAs(err, &missing), errorsAs(err, &denied), errorsAs(err, &busy):
				case errorsAs(err, &needs) && needs.Status != StatusChanged:
				default:
					t.Errorf("%T %v", err, err)
				}
			}
		})
	}
	loop(func(i int) error {
		_, err := s.Install(s.ctx, sources[i%2], InstallOptions{Default: DefaultReplace})
		return err
	})
	loop(func(i int) error { return start("install unless revoked", s.Path(), "!"+sources[i%2])() })
	loop(func(i int) error {
		_, err := s.Use(s.ctx, Ref{ID: "x", Version: fmt.Sprintf("%d.0.0", i%2+1)})
		return err
	})
	loop(func(i int) error {
		_, err := s.Uninstall(s.ctx, Ref{ID: "x", Version: fmt.Sprintf("%d.0.0", i%2+1)})
		return err
	})
	loop(func(i int) error { _, err := s.GC(s.ctx, GCOptions{}); return err })
	loop(func(i int) error {
		d := Denial{PluginID: "x", Range: fmt.Sprintf("%d.0.0", i%2+1), Reason: "r"}
		if _, err := s.Revoke(s.ctx, d); err != nil {
			return err
		}
		_, err := s.Unrevoke(s.ctx, d.Subject())
		return err
	})
	loop(func(i int) error {
		r, err := s.Review(s.ctx, Ref{ID: "x"}, nil)
		if err != nil {
			return err
		}
		_, err = s.Trust(s.ctx, Ref{ID: "x", Digest: r.Package}, nil, r.Package)
		return err
	})
	loop(func(i int) error { _, err := s.health("x"); return err })
	loop(func(i int) error {
		list, err := s.List(s.ctx, nil, true)
		for _, i := range list {
			if _, ok := known[i.Package]; !ok || i.Err != nil || i.Status == StatusChanged {
				t.Errorf("%+v", i)
			}
		}
		return err
	})
	loop(func(i int) error {
		checks, err := s.Verify(s.ctx, nil, nil)
		for _, v := range checks {
			var denied *Revoked
			if v.Verdict == Failed && !errorsAs(v.Err, &denied) {
				t.Errorf("%+v", v)
			}
		}
		return err
	})
	wg.Wait()
	s.sound()
}

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/verify"
)

// maxAuthorities bounds the file that SSL_CERT_FILE names, in bytes.
const maxAuthorities = 4 << 20

// offlineError says that --offline stands in the way.
type offlineError struct{}

func (e *offlineError) Error() string { return "--offline: no connection is opened" }

// network is how the verify worker, whose own environment is empty, reaches others: by
// HTTPS_PROXY and NO_PROXY, knowing the authorities of SSL_CERT_FILE.
func (in *invocation) network() (verify.Network, error) {
	if in.globals.offline {
		return verify.Network{}, &offlineError{}
	}
	first := func(names ...string) string {
		for _, name := range names {
			if v := in.getenv(name); v != "" {
				return v
			}
		}
		return ""
	}
	n := verify.Network{Proxy: first("HTTPS_PROXY", "https_proxy"), NoProxy: first("NO_PROXY", "no_proxy")}
	path := in.getenv("SSL_CERT_FILE")
	if path == "" {
		return n, nil
	}
	text, err := readUpTo(path, maxAuthorities)
	if errors.Is(err, os.ErrNotExist) {
		err = &pkgmgr.NotFound{Kind: "file", Name: path}
	}
	if err == nil && len(text) > maxAuthorities {
		err = fmt.Errorf("%s has more than %d bytes", path, maxAuthorities)
	}
	if err != nil {
		return n, fmt.Errorf("SSL_CERT_FILE: %w", err)
	}
	n.Roots = string(text)
	return n, nil
}

// fetcher starts a verify worker that fetches. It is another one than the one that proves:
// what a server does to it spoils no proof.
func (in *invocation) fetcher(ctx context.Context) (pkgmgr.Fetcher, error) {
	n, err := in.network()
	if err != nil {
		return nil, err
	}
	s, err := in.startWorker(ctx)
	if err != nil {
		return nil, err
	}
	return &fetching{s, n}, nil
}

type fetching struct {
	*verify.Session
	network verify.Network
}

func (f *fetching) Fetch(ctx context.Context, r verify.FetchRequest, w io.Writer) (*verify.Fetched, error) {
	r.Network = f.network
	return f.Session.Fetch(ctx, r, w)
}

// classifyNetwork knows what can happen to connections.
func (in *invocation) classifyNetwork(err error, f *failure) bool {
	var (
		offline *offlineError
		fetch   *pkgmgr.FetchRefused
	)
	switch {
	case errors.As(err, &offline):
		f.code, f.hint = "network.offline", in.withoutOffline()
	case errors.As(err, &fetch):
		f.code, f.message = string(fetch.Refusal.Code), fetch.Error()
		f.details = fetchDetails{fetch.URL, fetch.Project}
		f.hint = in.next("revocations", "update", fetch.URL)
		switch fetch.Refusal.Code {
		case verify.CodeNetworkAddress:
			f.exit = exitPermission
			f.more = []string{"a project's file may lead to the public internet only; who names the source in person may lead anywhere"}
		case verify.CodeNetworkTLS, verify.CodeNetworkRequest:
			f.hint = in.next("help", "revocations", "update")
		}
	default:
		return false
	}
	return true
}

type fetchDetails struct {
	URL     string `json:"url"`
	Project bool   `json:"project"`
}

// withoutOffline is this command line without --offline.
func (in *invocation) withoutOffline() string {
	words := []string{in.env.Program}
	for i, word := range in.env.Args {
		if word == "--" {
			words = append(words, in.env.Args[i:]...)
			break
		}
		if word != "--offline" {
			words = append(words, word)
		}
	}
	return render.Command(words...)
}

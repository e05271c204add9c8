package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/verify"
)

// maxRootsFile bounds the file of certificate authorities, in bytes.
const maxRootsFile = 4 << 20

// offlineError says that --offline stands in the way.
type offlineError struct{}

func (e *offlineError) Error() string { return "--offline: no connection is opened" }

// network is how the worker reaches others, as the environment says: the worker's own is
// empty.
func (in *invocation) network() (verify.Network, error) {
	n := verify.Network{Proxy: in.eitherCase("HTTPS_PROXY"), NoProxy: in.eitherCase("NO_PROXY")}
	if path := in.getenv("SSL_CERT_FILE"); path != "" {
		text, err := readUpTo(path, maxRootsFile)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return n, &pkgmgr.NotFound{Kind: "file", Name: path}
		case err != nil:
			return n, fmt.Errorf("SSL_CERT_FILE: %w", err)
		case len(text) > maxRootsFile:
			return n, fmt.Errorf("SSL_CERT_FILE: %s has more than %d bytes", path, maxRootsFile)
		case len(text) == 0:
			return n, fmt.Errorf("SSL_CERT_FILE: %s is empty", path)
		}
		n.Roots = string(text)
	}
	return n, nil
}

// eitherCase is a variable that many programs read in both spellings.
func (in *invocation) eitherCase(name string) string {
	if v := in.getenv(name); v != "" {
		return v
	}
	return in.getenv(strings.ToLower(name))
}

// fetcher starts a verify worker that fetches. It is another one than the one that proves:
// what a server does to it spoils no proof.
func (in *invocation) fetcher(ctx context.Context) (pkgmgr.Fetcher, error) {
	if in.globals.offline {
		return nil, &offlineError{}
	}
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
		f.hint = in.again()
		switch fetch.Refusal.Code {
		case verify.CodeNetworkAddress:
			f.exit, f.hint = exitPermission, in.next("revocations", "update", fetch.URL)
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

package worker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/switchyard-plugins/switchyard/verify"
)

// The bounds of one connection.
const (
	dialTime      = 10 * time.Second
	headerTime    = time.Minute // until an answer begins; a caller's own bound is less
	maxHeaders    = 64 << 10    // bytes of an answer's head
	maxRoots      = 4 << 20     // bytes of PEM
	maxURL        = 2 << 10     // bytes of a URL
	maxConnection = 8           // open at once
)

// limits are what a caller of the network allows.
type limits struct {
	body      int64 // bytes of an answer's body
	redirects int   // how many are followed; 0: each is refused
	// control looks at an address before it is connected to; nil: every one may be. Behind
	// a proxy it sees the proxy's.
	control func(network, address string, c syscall.RawConn) error
}

// newClient returns a client that speaks TLS with servers that it knows, or plain http on
// this machine alone. Every error of it is one that networkError knows. A redirect never
// leads from https to http.
func newClient(n verify.Network, l limits) (*http.Client, error) {
	roots, err := certificateRoots(n.Roots)
	if err != nil {
		return nil, err
	}
	proxy, err := proxyOf(n)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport: &guarded{limits: l, next: &http.Transport{
			Proxy:                  proxy,
			DialContext:            l.dial,
			TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    dialTime,
			ResponseHeaderTimeout:  headerTime,
			MaxResponseHeaderBytes: maxHeaders,
			MaxConnsPerHost:        maxConnection,
			DisableKeepAlives:      true,
			ForceAttemptHTTP2:      true,
		}},
		CheckRedirect: func(to *http.Request, via []*http.Request) error {
			switch {
			case len(via) > l.redirects:
				return refuse(verify.CodeNetworkRedirect, "%s points on more than %d times", place(via[0].URL), l.redirects)
			case via[len(via)-1].URL.Scheme == "https" && to.URL.Scheme != "https":
				return refuse(verify.CodeNetworkRedirect, "%s points away from https, to %s", place(via[len(via)-1].URL), place(to.URL))
			}
			return nil
		},
	}, nil
}

// dial connects. A name that stands for this machine must lead there.
func (l limits) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTime, Control: l.control}
	if host, _, err := net.SplitHostPort(address); err == nil && isLoopback(host) {
		dialer.Control = func(network, address string, c syscall.RawConn) error {
			if to, err := netip.ParseAddrPort(address); err != nil || !to.Addr().Unmap().IsLoopback() {
				return refuse(verify.CodeNetworkRequest, "%s leads to %s, which is not this machine", host, address)
			}
			if l.control != nil {
				return l.control(network, address, c)
			}
			return nil
		}
	}
	return dialer.DialContext(ctx, network, address)
}

// certificateRoots reads the certificate authorities that servers are checked against.
// nil means the system's.
func certificateRoots(text string) (*x509.CertPool, error) {
	if text == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if len(text) > maxRoots {
		return nil, refuse(verify.CodeNetworkRequest, "the certificate authorities have more than %d bytes", maxRoots)
	}
	if !pool.AppendCertsFromPEM([]byte(text)) {
		return nil, refuse(verify.CodeNetworkRequest, "the certificate authorities hold no certificate in PEM")
	}
	return pool, nil
}

// proxyOf chooses the proxy of a request as the conventions of HTTPS_PROXY and NO_PROXY say.
// A proxy for plain http there is never one: it stays on this machine.
func proxyOf(n verify.Network) (func(*http.Request) (*url.URL, error), error) {
	if n.Proxy == "" {
		return nil, nil
	}
	// The library takes a proxy that it cannot read for none, or for another one.
	text := n.Proxy
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" {
		// Its words would repeat the password.
		return nil, refuse(verify.CodeNetworkRequest, "the proxy is no URL that can be used")
	}
	choose := (&httpproxy.Config{HTTPSProxy: u.String(), NoProxy: n.NoProxy}).ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return choose(r.URL) }, nil
}

// checkURL refuses whatever is not https, except plain http on this machine.
func checkURL(u *url.URL) error {
	switch {
	case u.Host == "" || u.Opaque != "" || u.Hostname() == "":
		return refuse(verify.CodeNetworkRequest, "%q names no server", place(u))
	case u.User != nil:
		return refuse(verify.CodeNetworkRequest, "%s holds a user name, which would be sent along", place(u))
	case u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return refuse(verify.CodeNetworkRequest, "%s is not https", place(u))
}

// parseURL reads a URL that a request names.
func parseURL(text string) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, refuse(verify.CodeNetworkRequest, "a URL of more than %d bytes", maxURL)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, refuse(verify.CodeNetworkRequest, "%q is no URL", text)
	}
	return u, checkURL(u)
}

// isLoopback reports whether a host is this machine by its name.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// place is a URL for people, without what may be secret in it.
func place(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// guarded looks at every request and bounds every answer.
type guarded struct {
	limits limits
	next   http.RoundTripper
}

func (g *guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := checkURL(r.URL); err != nil {
		return nil, err
	}
	response, err := g.next.RoundTrip(r)
	if err != nil {
		return nil, networkError(r.URL, err)
	}
	if to := response.Header.Get("Location"); g.limits.redirects == 0 && response.StatusCode/100 == 3 {
		// Here and not in the client: libraries make clients of their own.
		response.Body.Close()
		u, err := r.URL.Parse(to)
		if err != nil {
			u = &url.URL{Path: "nowhere"}
		}
		return nil, refuse(verify.CodeNetworkRedirect, "%s points to %s, and is not followed", place(r.URL), place(u))
	}
	if response.ContentLength > g.limits.body {
		response.Body.Close()
		return nil, tooLarge(r.URL, g.limits.body)
	}
	response.Body = &bounded{ReadCloser: response.Body, url: r.URL, most: g.limits.body, left: g.limits.body}
	return response, nil
}

func tooLarge(u *url.URL, most int64) error {
	return refuse(verify.CodeNetworkTooLarge, "%s answers with more than %d bytes", place(u), most)
}

// bounded is a body that ends with an error where it is too large.
type bounded struct {
	io.ReadCloser
	url        *url.URL
	most, left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		// One byte more decides.
		var next [1]byte
		n, err := b.ReadCloser.Read(next[:])
		switch {
		case n > 0:
			return 0, tooLarge(b.url, b.most)
		case err == nil || err == io.EOF:
			return 0, err
		}
		return 0, networkError(b.url, err)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && err != io.EOF {
		err = networkError(b.url, err)
	}
	return n, err
}

// networkError gives what went wrong with a connection a code. What is a refusal already
// stays what it is.
func networkError(u *url.URL, err error) error {
	var (
		refusal     *verify.Refusal
		unknown     x509.UnknownAuthorityError
		host        x509.HostnameError
		invalid     x509.CertificateInvalidError
		untrusted   *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		timeout     net.Error
		systemRoots x509.SystemRootsError
	)
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.As(err, &untrusted), errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &invalid),
		errors.As(err, &record), errors.As(err, &alert), errors.As(err, &systemRoots):
		return refuse(verify.CodeNetworkTLS, "%s does not prove who it is: %v", place(u), err)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return refuse(verify.CodeNetworkTimeout, "%s does not answer in time", place(u))
	}
	return refuse(verify.CodeNetworkUnreachable, "%s cannot be reached: %v", place(u), err)
}

package worker

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/switchyard-plugins/switchyard/verify"
)

// maxRedirects is how many redirects of a fetch are followed.
const maxRedirects = 5

// The bounds of waiting in a fetch.
var (
	fetchBegin = time.Minute      // until the file begins, redirects included
	fetchIdle  = 30 * time.Second // until more of it comes
	fetchTime  = verify.FetchTime // for everything
)

// fetch gets a file over https and sends it in chunks.
func fetch(r verify.FetchRequest, send func(chunk []byte) error) (*verify.Fetched, error) {
	url, err := parseURL(r.URL)
	switch {
	case err != nil:
		return nil, err
	case url.Scheme != "https":
		return nil, refuse(verify.CodeNetworkRequest, "%s is not https", place(url))
	case r.Limit < 1:
		return nil, refuse(verify.CodeNetworkRequest, "a file of at most %d bytes is none", r.Limit)
	}
	client, err := fetchClient(r)
	if err != nil {
		return nil, err
	}
	tooSlow := refuse(verify.CodeNetworkTimeout, "%s does not answer in time", place(url))
	ctx, cancel := context.WithTimeoutCause(context.Background(), fetchTime(r.Limit), tooSlow)
	defer cancel()
	ctx, idle := context.WithCancelCause(ctx)
	defer idle(nil)
	watch := time.AfterFunc(fetchBegin, func() { idle(tooSlow) })
	defer watch.Stop()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url.String(), nil)
	if err != nil {
		return nil, refuse(verify.CodeNetworkRequest, "\"%s\" is no URL", r.URL)
	}
	request.Header.Set("User-Agent", "switchyard")
	// The bytes as they are: what is packed could be as large as it likes when unpacked.
	request.Header.Set("Accept-Encoding", "identity")
	response, err := client.Do(request)
	if err != nil {
		return nil, fetchError(ctx, err)
	}
	defer response.Body.Close()
	from := place(response.Request.URL)
	switch encoding := response.Header.Get("Content-Encoding"); {
	case response.StatusCode == http.StatusNotFound, response.StatusCode == http.StatusGone:
		return nil, refuse(verify.CodeNetworkNotFound, "%s does not exist (%d)", from, response.StatusCode)
	case response.StatusCode != http.StatusOK:
		return nil, refuse(verify.CodeNetworkStatus, "%s answers %d %s", from, response.StatusCode, http.StatusText(response.StatusCode))
	case encoding != "" && encoding != "identity":
		return nil, refuse(verify.CodeNetworkAnswer, "%s is encoded as \"%s\", which was not asked for", from, encoding)
	}
	done := &verify.Fetched{}
	for chunk := make([]byte, verify.MaxChunk); ; {
		watch.Reset(fetchIdle)
		n, err := response.Body.Read(chunk)
		if n > 0 {
			done.Bytes += int64(n)
			watch.Stop() // who reads the chunks may take its time
			if err := send(chunk[:n]); err != nil {
				return nil, err
			}
		}
		switch {
		case err == io.EOF:
			return done, nil
		case err != nil:
			return nil, fetchError(ctx, err)
		}
	}
}

// fetchClient returns a client that follows redirects from https to https, without a word
// about where it comes from.
func fetchClient(r verify.FetchRequest) (*http.Client, error) {
	l := limits{body: r.Limit, redirects: maxRedirects}
	if r.Public {
		l.control = onlyPublic
	}
	client, err := newClient(r.Network, l)
	if err != nil {
		return nil, err
	}
	proxy, err := proxyOf(r.Network)
	if err != nil {
		return nil, err
	}
	next, redirect := client.Transport, client.CheckRedirect
	client.Transport = roundTrip(func(to *http.Request) (*http.Response, error) {
		if r.Public && proxy != nil {
			// Behind a proxy nobody here sees where the connection ends.
			if through, err := proxy(to); err != nil || through != nil {
				return nil, refuse(verify.CodeNetworkAddress, "%s would be reached through a proxy, which hides where it leads", place(to.URL))
			}
		}
		return next.RoundTrip(to)
	})
	client.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		to.Header.Del("Referer")
		return redirect(to, via)
	}
	return client, nil
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// fetchError returns the refusal in err; the end of the time comes first.
func fetchError(ctx context.Context, err error) error {
	var refusal *verify.Refusal
	if cause := context.Cause(ctx); errors.As(cause, &refusal) || errors.As(err, &refusal) {
		return refusal
	}
	return refuse(verify.CodeNetworkAnswer, "%v", err)
}

// onlyPublic refuses to connect to what is no address of the public internet. It sees each
// address just before the connection is made, whatever a name or a redirect said before.
func onlyPublic(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return refuse(verify.CodeNetworkAddress, "%s is no address", address)
	}
	if !mayReach(to) {
		host, _, _ := net.SplitHostPort(address)
		return refuse(verify.CodeNetworkAddress, "it leads to %s, which is no address of the public internet", host)
	}
	return nil
}

// mayReach says what onlyPublic lets through. Tests have only this machine.
var mayReach = func(to netip.AddrPort) bool { return isPublic(to.Addr()) }

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, one := range list {
		out[i] = netip.MustParsePrefix(one)
	}
	return out
}

var (
	// What the registries of special-purpose addresses (RFC 6890) call not global, with
	// multicast, reserved ones, and one with which a cloud reaches its guests.
	notPublic4 = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
		"168.63.129.16/32", "224.0.0.0/3")
	// Of IPv6 only global unicast is public, and of that not what embeds other addresses
	// (Teredo, 6to4) or is for documents.
	public6    = netip.MustParsePrefix("2000::/3")
	notPublic6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
	// What lies behind the well-known prefix of NAT64 (RFC 6052) is an IPv4 address.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
)

// isPublic reports whether an address is one of the public internet. A NAT64 with a prefix
// of its own cannot be told from it.
func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if nat64.Contains(a) {
		raw := a.As16()
		a = netip.AddrFrom4([4]byte(raw[12:]))
	}
	within := func(list []netip.Prefix) bool {
		for _, p := range list {
			if p.Contains(a) {
				return true
			}
		}
		return false
	}
	if a.Is4() {
		return !within(notPublic4)
	}
	return public6.Contains(a) && !within(notPublic6)
}

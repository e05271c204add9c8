package worker

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/switchyard-plugins/switchyard/verify"
)

// TestProxy holds that a proxy is used for https to other machines, with its password,
// unless NO_PROXY names the server, and never for this machine.
func TestProxy(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }))
	t.Cleanup(server.Close)
	var asked atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, words, ok := basicProxyAuth(r); r.Method != http.MethodConnect || r.Host != "example.com:443" || !ok || user != "me" || words != "words" {
			http.Error(w, "no", http.StatusProxyAuthRequired)
			return
		}
		asked.Add(1)
		to, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer to.Close()
		from, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer from.Close()
		io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		go io.Copy(to, from)
		io.Copy(from, to)
	}))
	t.Cleanup(proxy.Close)
	through := strings.Replace(proxy.URL, "//", "//me:words@", 1)
	get := func(n verify.Network, from string) (string, error) {
		n.Roots = certificateOf(server)
		client, err := newClient(n, limits{body: 5})
		if err != nil {
			return "", err
		}
		response, err := client.Get(from)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return string(text), err
	}
	if text, err := get(verify.Network{Proxy: through}, "https://example.com/"); err != nil || text != "hello" || asked.Load() != 1 {
		t.Errorf("%q, %v, asked %d times", text, err, asked.Load())
	}
	if text, err := get(verify.Network{Proxy: through}, server.URL); err != nil || text != "hello" || asked.Load() != 1 {
		t.Errorf("this machine: %q, %v, asked %d times", text, err, asked.Load())
	}
	_, err := get(verify.Network{Proxy: strings.Replace(through, "words", "guess", 1)}, "https://example.com/")
	refused(t, err, verify.CodeNetworkUnreachable)
	if err != nil && strings.Contains(err.Error(), "guess") {
		t.Errorf("the password stands in %v", err)
	}
	choose, err := proxyOf(verify.Network{Proxy: through, NoProxy: "example.com,.example.org"})
	if err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]bool{"https://example.com/": false, "https://a.example.org/": false, "https://example.net/": true, "http://127.0.0.1/": false} {
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := choose(&http.Request{URL: u}); err != nil || (p != nil) != want {
			t.Errorf("%s: %v, %v", to, p, err)
		}
	}
}

func basicProxyAuth(r *http.Request) (user, words string, ok bool) {
	as := &http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	return as.BasicAuth()
}

// TestRedirects holds how many redirects are followed, and that none leads from https to
// http, not even to this machine.
func TestRedirects(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "plain") }))
	t.Cleanup(plain.Close)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := strings.Count(r.URL.Path, "x"); n > 0 {
			http.Redirect(w, r, "/"+strings.Repeat("x", n-1), http.StatusFound)
			return
		}
		switch r.URL.Path {
		case "/off":
			http.Redirect(w, r, plain.URL, http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://example.com/", http.StatusFound)
		default:
			io.WriteString(w, "there")
		}
	}))
	t.Cleanup(server.Close)
	for _, c := range []struct {
		path    string
		allowed int
		code    verify.Code
	}{
		{"/", 0, ""}, {"/xx", 2, ""}, {"/xxx", 2, verify.CodeNetworkRedirect}, {"/x", 0, verify.CodeNetworkRedirect},
		{"/off", 2, verify.CodeNetworkRedirect}, {"/away", 2, verify.CodeNetworkRedirect}, {"/off", 0, verify.CodeNetworkRedirect},
	} {
		client, err := newClient(verify.Network{Roots: certificateOf(server)}, limits{body: 100, redirects: c.allowed})
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Get(server.URL + c.path)
		if c.code != "" {
			refused(t, err, c.code)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		response.Body.Close()
	}
}

// TestBoundedBody holds the bound of an answer to the byte, whether its length is told
// before or not.
func TestBoundedBody(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/untold" {
			w.(http.Flusher).Flush()
		}
		io.WriteString(w, "12345")
	}))
	t.Cleanup(server.Close)
	for _, path := range []string{"/told", "/untold"} {
		for most, good := range map[int64]bool{0: false, 4: false, 5: true, 6: true} {
			client, err := newClient(verify.Network{}, limits{body: most})
			if err != nil {
				t.Fatal(err)
			}
			var text []byte
			response, err := client.Get(server.URL + path)
			if err == nil {
				text, err = io.ReadAll(response.Body)
				response.Body.Close()
			}
			if good && (err != nil || string(text) != "12345") {
				t.Errorf("%s, %d: %q, %v", path, most, text, err)
			}
			if !good {
				refused(t, err, verify.CodeNetworkTooLarge)
			}
		}
	}
}

// TestAddressesAreLookedAt holds that a caller can refuse an address, and that a name of
// this machine leads nowhere else.
func TestAddressesAreLookedAt(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	var seen string
	client, err := newClient(verify.Network{}, limits{body: 1 << 10, control: func(_, address string, _ syscall.RawConn) error {
		seen = address
		return refuse(verify.CodeNetworkRequest, "not there")
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Get(server.URL)
	refused(t, err, verify.CodeNetworkRequest)
	if seen != server.Listener.Addr().String() {
		t.Errorf("%q was looked at", seen)
	}
	for host, want := range map[string]bool{"localhost": true, "LOCALHOST": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"localhost.example.com": false, "127.0.0.1.example.com": false, "10.0.0.1": false, "0.0.0.0": false, "169.254.169.254": false, "": false} {
		if got := isLoopback(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

// TestNetworkErrorsKeepTheirCode holds that what is a refusal already stays that one.
func TestNetworkErrorsKeepTheirCode(t *testing.T) {
	u := &url.URL{Scheme: "https", Host: "example.com"}
	refused(t, networkError(u, &url.Error{Op: "Get", URL: "x", Err: refuse(verify.CodeNetworkRedirect, "x")}), verify.CodeNetworkRedirect)
	refused(t, networkError(u, errors.New("x")), verify.CodeNetworkUnreachable)
}

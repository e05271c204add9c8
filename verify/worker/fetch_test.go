//go:build unix

package worker

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/verify"
)

// quiet takes what servers say about clients that end a connection.
var quiet = log.New(io.Discard, "", 0)

// serve starts a server of this machine and returns what reaches it.
func serve(t *testing.T, handle http.HandlerFunc) (*httptest.Server, verify.Network) {
	t.Helper()
	s := httptest.NewUnstartedServer(handle)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = quiet
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, verify.Network{Roots: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))}
}

// fetched fetches in this process.
func fetched(r verify.FetchRequest) ([]byte, error) {
	if r.Limit == 0 {
		r.Limit = 1 << 20
	}
	var all bytes.Buffer
	done, err := fetch(r, func(chunk []byte) error {
		if len(chunk) == 0 || len(chunk) > verify.MaxChunk {
			return fmt.Errorf("a chunk of %d bytes", len(chunk))
		}
		all.Write(chunk)
		return nil
	})
	if err == nil && done.Bytes != int64(all.Len()) {
		err = fmt.Errorf("%d bytes are told, %d came", done.Bytes, all.Len())
	}
	return all.Bytes(), err
}

func refusedFetch(t *testing.T, r verify.FetchRequest, code verify.Code, says string) {
	t.Helper()
	_, err := fetched(r)
	var refusal *verify.Refusal
	if !errors.As(err, &refusal) || refusal.Code != code || !strings.Contains(refusal.Message, says) {
		t.Errorf("error is %v, want %s that says %q", err, code, says)
	}
}

func TestFetch(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	s, network := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for name, want := range map[string]string{"Accept-Encoding": "identity", "User-Agent": "switchyard", "Referer": "", "Cookie": "", "Authorization": ""} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", r.URL, name, got)
			}
		}
		switch r.URL.Path {
		case "/file":
			w.Write(content)
		case "/5", "/4", "/3", "/2", "/1":
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
			http.Redirect(w, r, map[byte]string{'5': "4", '4': "3", '3': "2", '2': "1", '1': "file"}[r.URL.Path[1]], http.StatusFound)
		}
	})
	for _, path := range []string{"/file", "/5"} {
		got, err := fetched(verify.FetchRequest{Network: network, URL: s.URL + path, Limit: int64(len(content))})
		if err != nil || sha256.Sum256(got) != sha256.Sum256(content) {
			t.Errorf("%s: %d bytes, %v", path, len(got), err)
		}
	}
}

// TestFetchIsRefused holds what no server can make of a fetch.
func TestFetchIsRefused(t *testing.T) {
	defer func(begin, idle time.Duration) { fetchBegin, fetchIdle = begin, idle }(fetchBegin, fetchIdle)
	fetchBegin, fetchIdle = 300*time.Millisecond, 300*time.Millisecond
	flush := func(w http.ResponseWriter) { http.NewResponseController(w).Flush() }
	raw := func(w http.ResponseWriter, answer string) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(c, answer)
		c.Close()
	}
	var bomb bytes.Buffer
	packed := gzip.NewWriter(&bomb)
	packed.Write(make([]byte, 10<<20))
	packed.Close()
	for name, c := range map[string]struct {
		handle http.HandlerFunc
		code   verify.Code
		says   string
	}{
		"to http": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1/x", http.StatusFound)
		},
			verify.CodeNetworkRedirect, "away from https"},
		"to http elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.com/x", http.StatusTemporaryRedirect)
		},
			verify.CodeNetworkRedirect, "away from https"},
		"to a file": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		},
			verify.CodeNetworkRedirect, "away from https"},
		"with a password": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://a:b@"+r.Host+"/x", http.StatusFound)
		},
			verify.CodeNetworkRequest, "holds a user name"},
		"round and round": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) },
			verify.CodeNetworkRedirect, "more than 5 times"},
		"to nowhere":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(302) }, verify.CodeNetworkStatus, "answers 302"},
		"absent":      {http.NotFound, verify.CodeNetworkNotFound, "does not exist (404)"},
		"gone":        {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) }, verify.CodeNetworkNotFound, "(410)"},
		"unchanged":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, verify.CodeNetworkStatus, "answers 304"},
		"no content":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, verify.CodeNetworkStatus, "answers 204"},
		"a part":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(206) }, verify.CodeNetworkStatus, "answers 206"},
		"failing":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, verify.CodeNetworkStatus, "answers 503"},
		"says larger": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1048577") }, verify.CodeNetworkTooLarge, "1048576 bytes"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			for block := make([]byte, 64<<10); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, verify.CodeNetworkTooLarge, "1048576 bytes"},
		"packed": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(bomb.Bytes())
		}, verify.CodeNetworkAnswer, `encoded as "gzip"`},
		"silent":            {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, verify.CodeNetworkTimeout, "in time"},
		"silent after that": {func(w http.ResponseWriter, r *http.Request) { flush(w); <-r.Context().Done() }, verify.CodeNetworkTimeout, "in time"},
		"halfway": {func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "half")
			flush(w)
			<-r.Context().Done()
		}, verify.CodeNetworkTimeout, "in time"},
	} {
		t.Run(name, func(t *testing.T) {
			s, network := serve(t, c.handle)
			refusedFetch(t, verify.FetchRequest{Network: network, URL: s.URL + "/list.json"}, c.code, c.says)
		})
	}
	// What HTTP/2 cannot say.
	for name, c := range map[string]struct {
		answer string
		code   verify.Code
		says   string
	}{
		"cut off":           {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", verify.CodeNetworkUnreachable, "unexpected EOF"},
		"cut off in a part": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf", verify.CodeNetworkUnreachable, "unexpected EOF"},
		"no end":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", verify.CodeNetworkUnreachable, "unexpected EOF"},
		"two lengths":       {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nhalf", verify.CodeNetworkUnreachable, "Content-Length"},
		"a bad length":      {"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\nhalf", verify.CodeNetworkUnreachable, "Content-Length"},
		"huge headers":      {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", verify.CodeNetworkUnreachable, "exceeded"},
		"no HTTP":           {"SSH-2.0-OpenSSH_9.9\r\n", verify.CodeNetworkUnreachable, "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { raw(w, c.answer) }))
			s.Config.ErrorLog = quiet
			s.StartTLS()
			t.Cleanup(s.Close)
			network := verify.Network{Roots: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))}
			refusedFetch(t, verify.FetchRequest{Network: network, URL: s.URL + "/list.json"}, c.code, c.says)
		})
	}
	// A length that is too small cuts the file, which its format shows.
	short := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		raw(w, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhalf")
	}))
	short.StartTLS()
	defer short.Close()
	roots := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: short.Certificate().Raw}))
	if got, err := fetched(verify.FetchRequest{Network: verify.Network{Roots: roots}, URL: short.URL}); err != nil || string(got) != "ha" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestFetchSlowly holds that a server which sends a little now and then is not waited for
// for ever: the whole has a bound, too.
func TestFetchSlowly(t *testing.T) {
	if got, want := verify.FetchTime(1<<20), 64*time.Second; got != want {
		t.Errorf("a root may take %v, want %v", got, want)
	}
	if got := verify.FetchTime(256 << 20); got > 20*time.Minute {
		t.Errorf("a list may take %v", got)
	}
	defer func() { fetchTime = verify.FetchTime }()
	fetchTime = func(int64) time.Duration { return 500 * time.Millisecond }
	s, network := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for tick := time.NewTicker(10 * time.Millisecond); r.Context().Err() == nil; <-tick.C {
			io.WriteString(w, "x")
			http.NewResponseController(w).Flush()
		}
	})
	refusedFetch(t, verify.FetchRequest{Network: network, URL: s.URL}, verify.CodeNetworkTimeout, "in time")
}

// TestFetchIdle holds that a server that falls silent is given up: before the file begins,
// and in the middle of it.
func TestFetchIdle(t *testing.T) {
	defer func(begin, idle time.Duration) { fetchBegin, fetchIdle = begin, idle }(fetchBegin, fetchIdle)
	for _, sends := range []string{"", "x"} {
		fetchBegin, fetchIdle = 200*time.Millisecond, time.Minute
		if sends != "" {
			fetchBegin, fetchIdle = time.Minute, 200*time.Millisecond
		}
		s, network := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if sends != "" {
				io.WriteString(w, sends)
				http.NewResponseController(w).Flush()
			}
			select {
			case <-r.Context().Done():
			case <-time.After(20 * time.Second):
			}
		})
		began := time.Now()
		refusedFetch(t, verify.FetchRequest{Network: network, URL: s.URL}, verify.CodeNetworkTimeout, "in time")
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("after %q it was waited for %v", sends, took)
		}
	}
}

// TestFetchNamesItsServer holds that a server must prove its name, to authorities that are
// known.
func TestFetchNamesItsServer(t *testing.T) {
	s, network := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x") })
	_, other := serve(t, func(http.ResponseWriter, *http.Request) {})
	other.Roots = ""
	refusedFetch(t, verify.FetchRequest{Network: other, URL: s.URL}, verify.CodeNetworkTLS, "does not prove who it is")
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	refusedFetch(t, verify.FetchRequest{Network: network, URL: "https://localhost:" + at.Port()}, verify.CodeNetworkTLS, "localhost")
	for text, says := range map[string]string{
		"http://127.0.0.1/x": "is not https", "http://example.com/x": "is not https", "ftp://example.com/x": "is not https", "https://": "names no server",
		"https:list.json": "names no server", "https://a:b@example.com/": "holds a user name", "https://example.com/\x00": "is no URL",
	} {
		refusedFetch(t, verify.FetchRequest{Network: network, URL: text}, verify.CodeNetworkRequest, says)
	}
	if _, err := fetch(verify.FetchRequest{Network: network, URL: s.URL}, nil); err == nil {
		t.Error("a fetch without a bound is made")
	}
	s.Close()
	refusedFetch(t, verify.FetchRequest{Network: network, URL: s.URL}, verify.CodeNetworkUnreachable, "cannot be reached")
}

// TestFetchPublic holds that what a project names leads to the public internet alone: no
// name, redirect or proxy leads elsewhere.
func TestFetchPublic(t *testing.T) {
	asked := 0
	inside, network := serve(t, func(w http.ResponseWriter, _ *http.Request) { asked++; io.WriteString(w, "secret") })
	at, err := url.Parse(inside.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]"} {
		refusedFetch(t, verify.FetchRequest{Network: network, URL: "https://" + host + ":" + at.Port(), Public: true}, verify.CodeNetworkAddress, "no address of the public internet")
	}
	outside, more := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inside.URL, http.StatusFound) })
	network.Roots += more.Roots
	if got, err := fetched(verify.FetchRequest{Network: network, URL: outside.URL}); err != nil || string(got) != "secret" || asked != 1 {
		t.Fatalf("%q, %v, asked %d times: this test shows nothing", got, err, asked)
	}
	defer func(before func(netip.AddrPort) bool) { mayReach = before }(mayReach)
	mayReach = func(to netip.AddrPort) bool { return "https://"+to.String() == outside.URL || isPublic(to.Addr()) }
	refusedFetch(t, verify.FetchRequest{Network: network, URL: outside.URL, Public: true}, verify.CodeNetworkAddress, "127.0.0.1")
	if asked != 1 {
		t.Error("the redirect was followed")
	}
	network.Proxy = outside.URL
	refusedFetch(t, verify.FetchRequest{Network: network, URL: "https://example.com/", Public: true}, verify.CodeNetworkAddress, "through a proxy")
}

func TestIsPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"1.1.1.1": true, "93.184.216.34": true, "172.15.0.1": true, "172.32.0.1": true, "100.63.0.1": true, "100.128.0.1": true, "2606:4700::1111": true,
		"64:ff9b::101:101": true, "::ffff:1.1.1.1": true,
		"127.0.0.1": false, "127.9.9.9": false, "0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false,
		"192.168.1.1": false, "100.64.0.1": false, "100.100.100.200": false, "169.254.169.254": false, "168.63.129.16": false, "192.0.0.192": false,
		"224.0.0.1": false, "240.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false, "192.0.2.1": false,
		"::": false, "::1": false, "::127.0.0.1": false, "::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::ffff:0:10.0.0.1": false,
		"fe80::1": false, "fe80::1%eth0": false, "fec0::1": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "100::1": false,
		"64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b::a00:1": false, "64:ff9b:1::101:101": false,
		"2001::1": false, "2001:db8::1": false, "2002:7f00:1::": false, "2002:101:101::": false, "3fff::1": false, "5f00::1": false,
	} {
		if got := isPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: public is %v", text, got)
		}
	}
	if isPublic(netip.Addr{}) {
		t.Error("no address is public")
	}
}

// TestFetchByTheProgram holds that the built worker streams a file under its own limits.
func TestFetchByTheProgram(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MiB
	s, network := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(content) })
	r := run(t)
	answer := r.ask(verify.Request{Nonce: "n", Fetch: &verify.FetchRequest{Network: network, URL: s.URL, Limit: 64 << 20}})
	sum := sha256.New()
	for ; answer.Chunk != nil; r.read(&answer) {
		sum.Write(answer.Chunk)
		answer = verify.Response{}
	}
	if answer.Error != nil || answer.Nonce != "n" || answer.Fetched == nil || answer.Fetched.Bytes != int64(len(content)) {
		t.Fatalf("%+v", answer)
	}
	if want := sha256.Sum256(content); !bytes.Equal(sum.Sum(nil), want[:]) {
		t.Error("other bytes came")
	}
	if out := r.ask(verify.Request{Nonce: "m", Fetch: &verify.FetchRequest{Network: network, URL: s.URL, Limit: 64 << 20, Public: true}}); out.Error == nil ||
		out.Error.Code != verify.CodeNetworkAddress {
		t.Errorf("%+v", out)
	}
	if code, stderr := r.ends(); code != 0 || stderr != "" {
		t.Errorf("it ended with %d: %s", code, stderr)
	}
}

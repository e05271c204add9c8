package worker

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/worker/sigstoretest"
)

// A local is an instance of Sigstore behind TLS.
type local struct {
	*sigstoretest.Instance
	t      testing.TB
	server *httptest.Server
	root   []byte
	token  string
}

// address is whom the tokens of tests name.
var address = sigstoretest.Claims{Issuer: vouching, Subject: "4711", Email: somebody, Verified: true, Audience: sigstoretest.Audience}

func newLocal(t testing.TB) *local {
	t.Helper()
	i, err := sigstoretest.New()
	if err != nil {
		t.Fatal(err)
	}
	l := &local{Instance: i, t: t}
	if l.root, err = i.TrustedRoot(); err != nil {
		t.Fatal(err)
	}
	l.token = l.names(address)
	l.server = l.serves(i.Handler())
	return l
}

// names makes a token with these claims that ends in an hour, if it says nothing else.
func (l *local) names(c sigstoretest.Claims) string {
	l.t.Helper()
	if c.Expires == 0 {
		c.Expires = time.Now().Add(time.Hour).Unix()
	}
	token, err := l.Token(c)
	if err != nil {
		l.t.Fatal(err)
	}
	return token
}

func (l *local) serves(h http.Handler) *httptest.Server {
	s := httptest.NewTLSServer(h)
	l.t.Cleanup(s.Close)
	return s
}

// certificateOf is what clients must know of a server.
func certificateOf(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

var archive = []byte("an archive")

// asks is a request that the instance satisfies.
func (l *local) asks() verify.KeylessRequest {
	return verify.KeylessRequest{Artifact: digest.Of(archive), Token: l.token, Fulcio: l.server.URL, Rekor: l.server.URL + "/",
		TrustedRoot: l.root, Now: time.Now(), Network: verify.Network{Roots: certificateOf(l.server)}}
}

// soon is how long a test waits for a server that answers.
var soon = times{token: time.Minute, fulcio: time.Minute, timestamp: time.Minute, rekor: time.Minute}

// TestKeyless holds that a bundle under a certificate is made with what the services
// answer, and proves what it says.
func TestKeyless(t *testing.T) {
	l := newLocal(t)
	check := func(name string, want verify.Signer, edit func(*verify.KeylessRequest)) {
		t.Run(name, func(t *testing.T) {
			r := l.asks()
			edit(&r)
			out, err := signKeyless(r, soon)
			if err != nil {
				t.Fatal(err)
			}
			facts, err := checkBundle(verify.BundleRequest{Kind: verify.Signature, Artifact: digest.Of(archive), Document: out.Bundle, TrustedRoot: l.root, Now: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			if out.Signer != want || facts.Signer != want || len(facts.Log) != 1 || facts.Log[0].Index <= 1000 || len(facts.Times) == 0 {
				t.Errorf("signer %+v, facts %+v", out.Signer, facts)
			}
			stamped := false
			for _, at := range facts.Times {
				stamped = stamped || at.Source == "timestamp-authority"
			}
			if stamped != (r.Timestamp != "") {
				t.Errorf("times %+v", facts.Times)
			}
			if r.Token != "" && bytes.Contains(out.Bundle, []byte(r.Token)) || !bytes.Contains(out.Bundle, []byte(bundleType)) {
				t.Errorf("the bundle is %s", out.Bundle)
			}
			_, err = checkBundle(verify.BundleRequest{Kind: verify.Signature, Artifact: digest.Of([]byte("another")), Document: out.Bundle, TrustedRoot: l.root, Now: time.Now()})
			refused(t, err, verify.CodeSignature)
			_, err = checkBundle(verify.BundleRequest{Kind: verify.Signature, Artifact: digest.Of(archive), Document: out.Bundle, TrustedRoot: newLocal(t).root, Now: time.Now()})
			refused(t, err, verify.CodeLog)
		})
	}
	job := sigstoretest.Claims{Issuer: "https://token.actions.example.com", Subject: "https://example.com/o/r/.github/workflows/release.yml@refs/tags/v1", Audience: sigstoretest.Audience}
	check("an address", verify.Signer{Identity: somebody, Issuer: vouching}, func(*verify.KeylessRequest) {})
	check("a workflow", verify.Signer{Identity: job.Subject, Issuer: job.Issuer}, func(r *verify.KeylessRequest) { r.Token = l.names(job) })
	check("with a timestamp", verify.Signer{Identity: somebody, Issuer: vouching}, func(r *verify.KeylessRequest) {
		r.Timestamp = l.server.URL + sigstoretest.TimestampPath
	})
	check("plain http on this machine", verify.Signer{Identity: somebody, Issuer: vouching}, func(r *verify.KeylessRequest) {
		plain := httptest.NewServer(l.Handler())
		t.Cleanup(plain.Close)
		r.Fulcio, r.Rekor, r.Network.Roots = plain.URL, plain.URL, ""
	})
	check("below a path", verify.Signer{Identity: somebody, Issuer: vouching}, func(r *verify.KeylessRequest) {
		below := l.serves(http.StripPrefix("/some/where", l.Handler()))
		r.Fulcio, r.Rekor = below.URL+"/some/where/", below.URL+"/some/where"
	})
	check("the token of a job", verify.Signer{Identity: job.Subject, Issuer: job.Issuer}, func(r *verify.KeylessRequest) {
		actions := l.serves(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.Header.Get("Authorization") != "Bearer the job's own" || q.URL.Query().Get("audience") != audience || q.URL.Query().Get("api-version") != "2.0" {
				http.Error(w, "no", http.StatusForbidden)
				return
			}
			fmt.Fprintf(w, `{"count":1,"value":%q}`, l.names(job))
		}))
		r.Token, r.Ambient = "", &verify.AmbientToken{URL: actions.URL + "/token?api-version=2.0", Token: "the job's own"}
		r.Network.Roots += certificateOf(actions)
	})
}

// TestKeylessRefused holds that nothing is signed where a service does not answer as it
// should, that the reason has a code, and that no token stands in it.
func TestKeylessRefused(t *testing.T) {
	l, foreign := newLocal(t), newLocal(t)
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	answers := func(path string, with func(w http.ResponseWriter, r *http.Request, asIs func() *httptest.ResponseRecorder)) func(*verify.KeylessRequest) {
		return func(r *verify.KeylessRequest) {
			server := l.serves(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				// A server learns that the other side has gone once it has read all.
				text, err := io.ReadAll(q.Body)
				if err != nil {
					t.Error(err)
				}
				q.Body = io.NopCloser(bytes.NewReader(text))
				asIs := func() *httptest.ResponseRecorder {
					rec := httptest.NewRecorder()
					l.Handler().ServeHTTP(rec, q)
					return rec
				}
				if q.URL.Path != path {
					passOn(w, asIs())
					return
				}
				with(w, q, asIs)
			}))
			r.Fulcio, r.Rekor, r.Network.Roots = server.URL, server.URL, certificateOf(server)
			if path == sigstoretest.TimestampPath {
				r.Timestamp = server.URL + path
			}
		}
	}
	// entry is the log's answer after a change to its only entry.
	entry := func(edit func(e, verification map[string]any)) func(*verify.KeylessRequest) {
		return answers(sigstoretest.EntriesPath, func(w http.ResponseWriter, _ *http.Request, asIs func() *httptest.ResponseRecorder) {
			rec := asIs()
			var list map[string]map[string]any
			if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil || len(list) != 1 {
				t.Errorf("the log answered %s: %v", rec.Body, err)
			}
			for _, e := range list {
				edit(e, e["verification"].(map[string]any))
			}
			rec.Body = new(bytes.Buffer)
			if err := json.NewEncoder(rec.Body).Encode(list); err != nil {
				t.Error(err)
			}
			passOn(w, rec)
		})
	}
	status := func(path string, code int, text string) func(*verify.KeylessRequest) {
		return answers(path, func(w http.ResponseWriter, _ *http.Request, _ func() *httptest.ResponseRecorder) {
			http.Error(w, text, code)
		})
	}
	body := func(path, text string) func(*verify.KeylessRequest) {
		return answers(path, func(w http.ResponseWriter, _ *http.Request, _ func() *httptest.ResponseRecorder) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("ETag", "x")
			if path != sigstoretest.CertificatePath {
				w.WriteHeader(http.StatusCreated)
			}
			io.WriteString(w, text)
		})
	}
	huge := func(path string, told bool) func(*verify.KeylessRequest) {
		return answers(path, func(w http.ResponseWriter, _ *http.Request, _ func() *httptest.ResponseRecorder) {
			const size = 100 << 20
			w.Header().Set("Content-Type", "application/json")
			if told {
				w.Header().Set("Content-Length", strconv.Itoa(size))
			}
			w.WriteHeader(http.StatusCreated)
			block := bytes.Repeat([]byte(" "), 1<<20)
			for range size >> 20 {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
			t.Error("100 MB were read")
		})
	}
	hangs := func(path string) func(*verify.KeylessRequest) {
		return answers(path, func(w http.ResponseWriter, r *http.Request, _ func() *httptest.ResponseRecorder) {
			<-r.Context().Done()
		})
	}
	trickles := func(path string) func(*verify.KeylessRequest) {
		return answers(path, func(w http.ResponseWriter, r *http.Request, _ func() *httptest.ResponseRecorder) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			// A server that saw the other side go must not end the answer well after that.
			defer panic(http.ErrAbortHandler)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, " "); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
	}
	points := func(path string, code int, to string) func(*verify.KeylessRequest) {
		return answers(path, func(w http.ResponseWriter, r *http.Request, _ func() *httptest.ResponseRecorder) {
			http.Redirect(w, r, to, code)
		})
	}
	expired := address
	expired.Expires = time.Now().Add(-time.Hour).Unix()
	elsewhere := address
	elsewhere.Audience = "somebody else"

	for _, c := range []struct {
		name string
		code verify.Code
		says string // in the message
		edit func(*verify.KeylessRequest)
	}{
		// The request.
		{"no digest", verify.CodeRequestMalformed, "sha256:12", func(r *verify.KeylessRequest) { r.Artifact = "sha256:12" }},
		{"http to another machine", verify.CodeNetworkRequest, "is not https", func(r *verify.KeylessRequest) { r.Fulcio = "http://fulcio.example.com" }},
		{"http to another machine, the log", verify.CodeNetworkRequest, "is not https", func(r *verify.KeylessRequest) { r.Rekor = "http://192.0.2.1" }},
		{"http to another machine, the timestamp authority", verify.CodeNetworkRequest, "is not https", func(r *verify.KeylessRequest) { r.Timestamp = "http://tsa.example.com/x" }},
		{"a name that begins as this machine's", verify.CodeNetworkRequest, "is not https", func(r *verify.KeylessRequest) { r.Fulcio = "http://localhost.example.com" }},
		{"no server", verify.CodeNetworkRequest, "names no server", func(r *verify.KeylessRequest) { r.Fulcio = "https://" }},
		{"a file", verify.CodeNetworkRequest, "", func(r *verify.KeylessRequest) { r.Rekor = "file:///etc/passwd" }},
		{"a user in the URL", verify.CodeNetworkRequest, "user name", func(r *verify.KeylessRequest) { r.Rekor = "https://me:secret@rekor.example.com" }},
		{"a broken trusted root", verify.CodeRootMalformed, "", func(r *verify.KeylessRequest) {
			r.TrustedRoot, r.Fulcio = []byte("{"), "https://127.0.0.1:1" // before anybody is asked
		}},
		{"roots that are none", verify.CodeNetworkRequest, "no certificate", func(r *verify.KeylessRequest) { r.Network.Roots = "x" }},
		{"a proxy that is none", verify.CodeNetworkRequest, "proxy", func(r *verify.KeylessRequest) { r.Network.Proxy = "http://user:words@[x" }},

		// The token.
		{"no token", verify.CodeTokenMalformed, "is empty", func(r *verify.KeylessRequest) { r.Token = "" }},
		{"a token that is none", verify.CodeTokenMalformed, "is no JWT", func(r *verify.KeylessRequest) { r.Token = "some-words-that-are-secret" }},
		{"a token with a line end", verify.CodeTokenMalformed, "is no JWT", func(r *verify.KeylessRequest) { r.Token += "\r\nX-More: 1" }},
		{"a token whose claims are none", verify.CodeTokenMalformed, "claims", func(r *verify.KeylessRequest) { r.Token = "a.b!.c" }},
		{"a token about nobody", verify.CodeTokenMalformed, "names nobody", func(r *verify.KeylessRequest) {
			r.Token = "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"aud":"sigstore"}`)) + ".c2ln"
		}},
		{"a huge token", verify.CodeTokenMalformed, "too long", func(r *verify.KeylessRequest) { r.Token += strings.Repeat("x", verify.MaxToken) }},
		{"an expired token", verify.CodeTokenExpired, "expired at", func(r *verify.KeylessRequest) { r.Token = l.names(expired) }},
		{"an expired token, by the authority's clock", verify.CodeTokenRefused, "the token has expired", func(r *verify.KeylessRequest) {
			r.Token, r.Now = l.names(expired), time.Now().Add(-2*time.Hour)
		}},
		{"a token for somebody else", verify.CodeTokenRefused, "not for the audience sigstore", func(r *verify.KeylessRequest) { r.Token = l.names(elsewhere) }},
		{"a token of another issuer", verify.CodeTokenRefused, "status 401", func(r *verify.KeylessRequest) { r.Token = foreign.token }},
		{"a job's token that is refused", verify.CodeNetworkStatus, "status 403", func(r *verify.KeylessRequest) {
			s := l.serves(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				http.Error(w, q.Header.Get("Authorization"), http.StatusForbidden)
			}))
			r.Token, r.Ambient, r.Network.Roots = "", &verify.AmbientToken{URL: s.URL, Token: "the-job's-own-secret"}, certificateOf(s)
		}},
		{"a job's token that is none", verify.CodeNetworkAnswer, "no identity token", func(r *verify.KeylessRequest) {
			s := l.serves(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { io.WriteString(w, `{"value":7}`) }))
			r.Token, r.Ambient, r.Network.Roots = "", &verify.AmbientToken{URL: s.URL, Token: "x"}, certificateOf(s)
		}},

		// The connection.
		{"nobody listens", verify.CodeNetworkUnreachable, "cannot be reached", func(r *verify.KeylessRequest) {
			s := httptest.NewServer(http.NotFoundHandler())
			s.Close()
			r.Fulcio = s.URL
		}},
		{"a server that is not known", verify.CodeNetworkTLS, "does not prove who it is", func(r *verify.KeylessRequest) { r.Network.Roots = "" }},
		{"a certificate for another name", verify.CodeNetworkTLS, "does not prove who it is", func(r *verify.KeylessRequest) {
			r.Fulcio = strings.Replace(l.server.URL, "127.0.0.1", "localhost", 1)
		}},
		{"no TLS", verify.CodeNetworkTLS, "does not prove who it is", func(r *verify.KeylessRequest) {
			s := httptest.NewServer(l.Handler())
			t.Cleanup(s.Close)
			r.Fulcio = strings.Replace(s.URL, "http:", "https:", 1)
		}},
		{"a proxy that is not there", verify.CodeNetworkUnreachable, "", func(r *verify.KeylessRequest) {
			r.Fulcio, r.Network.Proxy = "https://fulcio.example.com", "http://user:words@127.0.0.1:1"
		}},

		// Fulcio.
		{"a certificate for another key", verify.CodeCertificate, "for another key", answers(sigstoretest.CertificatePath,
			func(w http.ResponseWriter, _ *http.Request, _ func() *httptest.ResponseRecorder) {
				certify(t, w, l, &other.PublicKey)
			})},
		{"a certificate of another authority", verify.CodeCertificate, "does not prove itself", func(r *verify.KeylessRequest) {
			r.Fulcio, r.Token, r.Network.Roots = foreign.server.URL, foreign.token, certificateOf(l.server)+certificateOf(foreign.server)
		}},
		{"no certificate", verify.CodeNetworkAnswer, "no certificates", body(sigstoretest.CertificatePath, `{}`)},
		{"a certificate that is none", verify.CodeNetworkAnswer, "cannot be read", body(sigstoretest.CertificatePath,
			`{"signedCertificateEmbeddedSct":{"chain":{"certificates":["-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]}}}`)},
		{"no JSON from Fulcio", verify.CodeNetworkAnswer, "cannot be read", body(sigstoretest.CertificatePath, `<html>`)},
		{"Fulcio fails", verify.CodeNetworkStatus, "status 500 Internal Server Error: out of order", status(sigstoretest.CertificatePath, 500, "out of order")},
		{"Fulcio does not know the way", verify.CodeNetworkStatus, "status 404", status(sigstoretest.CertificatePath, 404, "")},
		{"Fulcio repeats the token", verify.CodeTokenRefused, "[token]", answers(sigstoretest.CertificatePath,
			func(w http.ResponseWriter, r *http.Request, _ func() *httptest.ResponseRecorder) {
				http.Error(w, "bad token: "+r.Header.Get("Authorization")+" "+r.Header.Get("Authorization")[40:], http.StatusUnauthorized)
			})},
		{"Fulcio repeats the token in an answer that cannot be read", verify.CodeNetworkAnswer, "", answers(sigstoretest.CertificatePath,
			func(w http.ResponseWriter, r *http.Request, _ func() *httptest.ResponseRecorder) {
				io.WriteString(w, r.Header.Get("Authorization"))
			})},
		{"100 MB from Fulcio", verify.CodeNetworkTooLarge, "more than 262144 bytes", huge(sigstoretest.CertificatePath, false)},
		{"100 MB from Fulcio, told before", verify.CodeNetworkTooLarge, "more than 262144 bytes", huge(sigstoretest.CertificatePath, true)},
		{"Fulcio hangs", verify.CodeNetworkTimeout, "in time", hangs(sigstoretest.CertificatePath)},
		{"Fulcio trickles", verify.CodeNetworkTimeout, "in time", trickles(sigstoretest.CertificatePath)},
		{"Fulcio points to http", verify.CodeNetworkRedirect, "points to http://", points(sigstoretest.CertificatePath, 302, "http://fulcio.example.com/")},
		{"Fulcio points elsewhere with the request", verify.CodeNetworkRedirect, "points to ", points(sigstoretest.CertificatePath, 307, foreign.server.URL+sigstoretest.CertificatePath)},

		// Rekor.
		{"an entry whose hash was changed", verify.CodeNetworkAnswer, "verifying signature", entry(func(e, _ map[string]any) {
			text, err := base64.StdEncoding.DecodeString(e["body"].(string))
			if err != nil {
				t.Error(err)
			}
			e["body"] = base64.StdEncoding.EncodeToString(bytes.Replace(text, []byte(digest.Of(archive).Hex()), []byte(digest.Of([]byte("another")).Hex()), 1))
		})},
		{"an entry about another hash", verify.CodeLog, "does not prove itself", func(r *verify.KeylessRequest) {
			var first *httptest.ResponseRecorder
			answers(sigstoretest.EntriesPath, func(w http.ResponseWriter, _ *http.Request, asIs func() *httptest.ResponseRecorder) {
				if first == nil {
					first = asIs()
				}
				passOn(w, first)
			})(r)
			of := *r
			of.Artifact = digest.Of([]byte("another"))
			if _, err := signKeyless(of, soon); err != nil {
				t.Fatal(err)
			}
		}},
		{"the entry of another log", verify.CodeLog, "does not prove itself", func(r *verify.KeylessRequest) {
			r.Rekor, r.Network.Roots = foreign.server.URL, certificateOf(l.server)+certificateOf(foreign.server)
		}},
		{"no promise and no timestamp", verify.CodeTime, "does not prove itself", entry(func(_, v map[string]any) { delete(v, "signedEntryTimestamp") })},
		{"a promise that was changed", verify.CodeLog, "does not prove itself", entry(func(e, _ map[string]any) { e["integratedTime"] = time.Now().Unix() + 1 })},
		{"no proof", verify.CodeNetworkAnswer, "no proof of inclusion", entry(func(_, v map[string]any) { delete(v, "inclusionProof") })},
		{"a proof that was changed", verify.CodeLog, "does not prove itself", entry(func(_, v map[string]any) {
			v["inclusionProof"].(map[string]any)["rootHash"] = digest.Of(nil).Hex()
		})},
		{"no verification", verify.CodeNetworkAnswer, "no proof of inclusion", entry(func(e, _ map[string]any) { delete(e, "verification") })},
		{"no index", verify.CodeNetworkAnswer, "logIndex", entry(func(e, _ map[string]any) { delete(e, "logIndex") })},
		{"no body", verify.CodeNetworkAnswer, "body", entry(func(e, _ map[string]any) { delete(e, "body") })},
		{"a body that is none", verify.CodeNetworkAnswer, "cannot be read", entry(func(e, _ map[string]any) { e["body"] = "e30=" })},
		{"no entry", verify.CodeNetworkAnswer, "not one entry", body(sigstoretest.EntriesPath, `{}`)},
		{"null", verify.CodeNetworkAnswer, "not one entry", body(sigstoretest.EntriesPath, `null`)},
		{"another entry than it says", verify.CodeNetworkAnswer, "its head names", body(sigstoretest.EntriesPath, `{"y":{}}`)},
		{"an entry without anything", verify.CodeNetworkAnswer, "cannot be read", body(sigstoretest.EntriesPath, `{"x":{}}`)},
		{"no JSON from Rekor", verify.CodeNetworkAnswer, "cannot be read", body(sigstoretest.EntriesPath, `<html>`)},
		{"Rekor refuses", verify.CodeNetworkStatus, "status 400 Bad Request: no", status(sigstoretest.EntriesPath, 400, "no")},
		{"Rekor has it already", verify.CodeNetworkStatus, "status 409", status(sigstoretest.EntriesPath, 409, "")},
		{"100 MB from Rekor", verify.CodeNetworkTooLarge, "more than 262144 bytes", huge(sigstoretest.EntriesPath, false)},
		{"Rekor hangs", verify.CodeNetworkTimeout, "in time", hangs(sigstoretest.EntriesPath)},
		{"Rekor trickles", verify.CodeNetworkTimeout, "in time", trickles(sigstoretest.EntriesPath)},
		{"Rekor points to http", verify.CodeNetworkRedirect, "points to http://", points(sigstoretest.EntriesPath, 302, "http://rekor.example.com/")},

		// The timestamp authority.
		{"a timestamp that is none", verify.CodeNetworkAnswer, "cannot be read", body(sigstoretest.TimestampPath, `x`)},
		{"a timestamp of another authority", verify.CodeTime, "does not prove itself", func(r *verify.KeylessRequest) {
			r.Timestamp, r.Network.Roots = foreign.server.URL+sigstoretest.TimestampPath, certificateOf(l.server)+certificateOf(foreign.server)
		}},
		{"the timestamp authority fails", verify.CodeNetworkStatus, "status 503", status(sigstoretest.TimestampPath, 503, "")},
		{"the timestamp authority hangs", verify.CodeNetworkTimeout, "in time", hangs(sigstoretest.TimestampPath)},
		{"100 MB from the timestamp authority", verify.CodeNetworkTooLarge, "more than 262144 bytes", huge(sigstoretest.TimestampPath, false)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := l.asks()
			c.edit(&r)
			within := soon
			if c.code == verify.CodeNetworkTimeout {
				within = times{token: time.Second, fulcio: 500 * time.Millisecond, timestamp: 500 * time.Millisecond, rekor: 500 * time.Millisecond}
			}
			started := time.Now()
			out, err := signKeyless(r, within)
			refused(t, err, c.code)
			if out != nil {
				t.Error("a signature beside the refusal")
			}
			if took := time.Since(started); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %q, not %q", err, c.says)
			}
			var secrets []string
			if r.Ambient != nil && len(r.Ambient.Token) > 8 {
				secrets = append(secrets, r.Ambient.Token)
			}
			for _, part := range strings.Split(r.Token, ".") {
				if len(part) > 8 {
					secrets = append(secrets, part)
				}
			}
			for _, secret := range append(secrets, "words") {
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("a secret stands in %q", err)
				}
			}
		})
	}
}

func passOn(w http.ResponseWriter, rec *httptest.ResponseRecorder) {
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(rec.Code)
	w.Write(rec.Body.Bytes())
}

// certify answers as Fulcio with a good certificate for a key.
func certify(t testing.TB, w http.ResponseWriter, l *local, key *ecdsa.PublicKey) {
	chain, err := l.Certify(key, address)
	if err == nil {
		err = json.NewEncoder(w).Encode(sigstoretest.Certificates(chain))
	}
	if err != nil {
		t.Error(err)
	}
}

// TestKeylessWithoutPromise holds that a timestamp authority's time is enough where the
// log promises none: its proof says that the entry is there.
func TestKeylessWithoutPromise(t *testing.T) {
	l := newLocal(t)
	server := l.serves(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		rec := httptest.NewRecorder()
		l.Handler().ServeHTTP(rec, q)
		if q.URL.Path == sigstoretest.EntriesPath {
			var list map[string]map[string]any
			if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil {
				t.Error(err)
			}
			for _, e := range list {
				delete(e["verification"].(map[string]any), "signedEntryTimestamp")
			}
			rec.Body = new(bytes.Buffer)
			if err := json.NewEncoder(rec.Body).Encode(list); err != nil {
				t.Error(err)
			}
		}
		passOn(w, rec)
	}))
	r := l.asks()
	r.Rekor, r.Timestamp, r.Network.Roots = server.URL, l.server.URL+sigstoretest.TimestampPath, certificateOf(l.server)+certificateOf(server)
	out, err := signKeyless(r, soon)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Facts.Times) != 1 || out.Facts.Times[0].Source != "timestamp-authority" || len(out.Facts.Log) != 1 {
		t.Errorf("facts %+v", out.Facts)
	}
}

// TestKeylessWithoutCertificateTimestamp holds that a certificate which no log of
// certificates has promised to hold is refused under a trusted root that names such logs.
func TestKeylessWithoutCertificateTimestamp(t *testing.T) {
	l, bare := newLocal(t), newLocal(t)
	var made protobundle.Bundle
	out, err := signKeyless(l.asks(), soon)
	if err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(out.Bundle, &made); err != nil {
		t.Fatal(err)
	}
	// The trusted root of the one with the certificates' log of the other.
	swapped := func(of, from []byte) []byte {
		var a, b map[string]any
		if err := errors.Join(json.Unmarshal(of, &a), json.Unmarshal(from, &b)); err != nil {
			t.Fatal(err)
		}
		a["ctlogs"] = b["ctlogs"]
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	r := l.asks()
	r.TrustedRoot = swapped(l.root, bare.root)
	_, err = signKeyless(r, soon)
	refused(t, err, verify.CodeCertificate)
}

package commands

import (
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// misbehaviours are what a server of scripts does with one file.
var misbehaviours = map[string]func(w http.ResponseWriter, r *http.Request, argument string){
	"redirect": func(w http.ResponseWriter, r *http.Request, to string) { http.Redirect(w, r, to, http.StatusFound) },
	"endless": func(w http.ResponseWriter, _ *http.Request, _ string) {
		for block := make([]byte, 64<<10); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	},
	"cut": func(w http.ResponseWriter, _ *http.Request, text string) {
		answerRaw(w, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"+text)
	},
	"short": func(w http.ResponseWriter, _ *http.Request, text string) {
		answerRaw(w, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"+text)
	},
	"headers": func(w http.ResponseWriter, _ *http.Request, _ string) {
		answerRaw(w, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
	},
	"packed": func(w http.ResponseWriter, _ *http.Request, _ string) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(make([]byte, 16<<20))
		z.Close()
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(b.Bytes())
	},
	"page": func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "<html>There is no such page</html>")
	},
	"found": func(w http.ResponseWriter, _ *http.Request, _ string) {
		io.WriteString(w, "<html>There is no such page</html>")
	},
	"unchanged": func(w http.ResponseWriter, _ *http.Request, _ string) { w.WriteHeader(http.StatusNotModified) },
	"hang": func(w http.ResponseWriter, r *http.Request, pipe string) {
		io.WriteString(w, "{")
		http.NewResponseController(w).Flush()
		if f, err := os.OpenFile(pipe, os.O_WRONLY, 0); err == nil {
			f.Close()
		}
		<-r.Context().Done()
	},
	"failing": func(w http.ResponseWriter, _ *http.Request, _ string) { w.WriteHeader(http.StatusServiceUnavailable) },
}

// answerRaw writes an answer that HTTP does not know.
func answerRaw(w http.ResponseWriter, answer string) {
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		io.WriteString(c, answer)
		c.Close()
	}
}

// serveFiles starts a server of this machine that serves a directory over https until the
// script ends, with one file that misbehaves where one is named. NAME becomes its address,
// NAME_LOG a file with the paths that were asked for, SSL_CERT_FILE who vouches for it.
func serveFiles(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 5 {
		ts.Fatalf("usage: serve NAME DIR [BEHAVIOUR FILE [ARGUMENT]]")
	}
	name, dir := args[0], ts.MkAbs(args[1])
	args = append(args[2:], "", "", "")
	misbehave, ok := misbehaviours[args[0]]
	if args[0] != "" && !ok {
		ts.Fatalf("serve: no behaviour %q", args[0])
	}
	logFile := ts.MkAbs(name + ".log")
	ts.Check(os.WriteFile(logFile, nil, 0o644))
	var logging sync.Mutex
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		logging.Lock()
		if f, err := os.OpenFile(logFile, os.O_APPEND|os.O_WRONLY, 0); err == nil {
			io.WriteString(f, r.URL.Path+"\n")
			f.Close()
		}
		logging.Unlock()
		if misbehave != nil && path.Base(r.URL.Path) == args[1] {
			misbehave(w, r, args[2])
			return
		}
		http.FileServer(http.Dir(dir)).ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	ts.Defer(s.Close)
	authorities := filepath.Join(ts.Getenv("HOME"), "authorities.pem")
	ts.Check(os.WriteFile(authorities, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o644))
	ts.Setenv("SSL_CERT_FILE", authorities)
	ts.Setenv(name, s.URL)
	ts.Setenv(name+"_LOG", logFile)
}

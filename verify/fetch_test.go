//go:build unix

package verify

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// fetchModes are what workers answer to a fetch.
var fetchModes = map[string]func(Request) []Response{
	"good": func(Request) []Response {
		return []Response{{Chunk: []byte("he")}, {Chunk: []byte("llo")}, {Fetched: &Fetched{Bytes: 5}}}
	},
	"empty": func(Request) []Response { return []Response{{Fetched: &Fetched{}}} },
	"refuses": func(Request) []Response {
		return []Response{{Error: &Refusal{Code: CodeNetworkNotFound, Message: "no"}}}
	},
	"refuses halfway": func(Request) []Response {
		return []Response{{Chunk: []byte("he")}, {Error: &Refusal{Code: CodeNetworkTimeout}}}
	},
	"miscounts":   func(Request) []Response { return []Response{{Chunk: []byte("hello")}, {Fetched: &Fetched{Bytes: 4}}} },
	"nothing":     func(Request) []Response { return []Response{{}} },
	"facts":       func(Request) []Response { return []Response{{Facts: &Facts{}}} },
	"empty chunk": func(Request) []Response { return []Response{{Chunk: []byte{}}} },
	"huge chunk":  func(Request) []Response { return []Response{{Chunk: make([]byte, MaxChunk+1)}} },
	"both":        func(Request) []Response { return []Response{{Chunk: []byte("hello"), Fetched: &Fetched{Bytes: 5}}} },
	"other nonce": func(Request) []Response { return []Response{{Nonce: "0", Chunk: []byte("hello")}} },
	"too much":    func(Request) []Response { return []Response{{Chunk: []byte("hello")}, {Chunk: []byte("hello")}} },
	"endless":     func(Request) []Response { return nil },
	"mute":        func(Request) []Response { return []Response{{Chunk: []byte("he")}} },
}

// TestFetch holds that a fetched file counts only where the worker did just what was
// asked, and that nothing more is asked of one that did not.
func TestFetch(t *testing.T) {
	defer func(before time.Duration) { fetchSilence = before }(fetchSilence)
	for mode, want := range map[string]string{
		"good": "", "empty": "", "refuses": "no", "refuses halfway": "", "miscounts": "answered something else", "nothing": "answered something else",
		"facts": "answered something else", "empty chunk": "answered something else", "huge chunk": "answered something else", "both": "answered something else",
		"other nonce": "answered another request", "too much": "more than the 9 bytes", "endless": "more than the", "mute": "nothing was heard",
	} {
		t.Run(mode, func(t *testing.T) {
			fetchSilence = 20 * time.Second
			if mode == "mute" {
				fetchSilence = 200 * time.Millisecond
			}
			s, err := startWorker(t, t.Context(), mode)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			limit := int64(9)
			if mode == "endless" || mode == "huge chunk" {
				limit = 4 << 20
			}
			for range 2 {
				var got bytes.Buffer
				done, err := s.Fetch(t.Context(), FetchRequest{URL: "https://example.com/", Limit: limit}, &got)
				var refusal *Refusal
				var broken *Broken
				switch {
				case mode == "good" || mode == "empty":
					if err != nil || done.Bytes != int64(got.Len()) || mode == "good" && got.String() != "hello" {
						t.Fatalf("%q, %v", got.String(), err)
					}
				case strings.HasPrefix(mode, "refuses"):
					if !errors.As(err, &refusal) {
						t.Fatalf("error is %v", err)
					}
				case !errors.As(err, &broken) || !strings.Contains(err.Error(), want):
					t.Fatalf("error is %v", err)
				case int64(got.Len()) > limit:
					t.Fatalf("%d bytes were written", got.Len())
				}
			}
		})
	}
}

type fullDisk struct{}

var errFull = errors.New("no space left")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// TestFetchThatCannotBeKept holds that what follows is not taken for another answer.
func TestFetchThatCannotBeKept(t *testing.T) {
	s, err := startWorker(t, t.Context(), "good")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Fetch(t.Context(), FetchRequest{URL: "https://example.com/", Limit: 9}, fullDisk{}); !errors.Is(err, errFull) {
		t.Errorf("error is %v", err)
	}
	var broken *Broken
	if _, err := s.Bundle(t.Context(), request()); !errors.As(err, &broken) {
		t.Errorf("error is %v", err)
	}
}

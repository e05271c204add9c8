package plugin

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/lines"
	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// FuzzAnswer holds that whatever one line of input is, the answer is one line
// that a strict reader accepts, with a result or an error and never both.
func FuzzAnswer(f *testing.F) {
	files, _ := filepath.Glob("../../testdata/transcripts/call/*.txtar")
	seeds := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for l := range strings.Lines(string(text)) {
			if request, ok := strings.CutPrefix(l, "> "); ok {
				f.Add([]byte(strings.TrimSuffix(request, "\n")), true)
				f.Add([]byte(strings.TrimSuffix(request, "\n")), false)
				seeds++
			}
		}
	}
	if seeds < 40 {
		f.Fatalf("only %d seeds", seeds)
	}
	f.Fuzz(func(t *testing.T, text []byte, initialized bool) {
		s := &server{manifest: sample(), handler: work{}, log: io.Discard, watch: func() {}, initialized: initialized}
		if initialized {
			s.grants = sample().RequestedScopes
		}
		got := s.answer(context.Background(), lines.Line{Text: text, TooLong: len(text) > MaxMessageBytes})
		if bytes.Count(got, []byte("\n")) != 1 || got[len(got)-1] != '\n' || len(got) > MaxMessageBytes+1 {
			t.Fatalf("not one line: %q", got)
		}
		if err := strict.Check(got); err != nil {
			t.Fatalf("%v: %q", err, got)
		}
		members, err := strict.Members(got)
		if err != nil || len(members) != 3 || members[0].Name != "jsonrpc" || members[1].Name != "id" {
			t.Fatalf("not a response: %q", got)
		}
		last, id := members[2], string(members[1].Value)
		malformed := last.Name == "error" && bytes.HasPrefix(last.Value, []byte(`{"code":-32700,`))
		if last.Name != "result" && last.Name != "error" || (id == "null") != malformed {
			t.Fatalf("not a response: %q", got)
		}
	})
}

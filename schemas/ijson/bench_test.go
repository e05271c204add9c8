package ijson_test

import (
	stdjson "encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// envelope is a health and inspect answer in one, of about 400 bytes.
const envelope = `{"jsonrpc":"2.0","id":7,"result":{"summary":"A Go module with 41 files and a Makefile",` +
	`"facts":[{"id":"languages","label":"Languages","value":"Go, Python","source":"file extensions"},` +
	`{"id":"vcs","label":"Version control","value":"git","source":".git"}],` +
	`"actions":[{"id":"inventory","name":"Write inventory","description":"Lists files","risk":"low"}],"warnings":[],` +
	`"observedAt":"2024-05-06T07:08:09Z"}}`

type fact struct {
	ID      string `json:"id"`
	Label   string `json:"label"`
	Value   string `json:"value"`
	Source  string `json:"source"`
	Warning string `json:"warning,omitempty"`
}

type action struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Risk        string `json:"risk"`
}

type answer struct {
	Version string `json:"jsonrpc"`
	ID      int64  `json:"id"`
	Result  struct {
		Summary    string   `json:"summary"`
		Facts      []fact   `json:"facts"`
		Actions    []action `json:"actions"`
		Warnings   []string `json:"warnings"`
		ObservedAt string   `json:"observedAt"`
	} `json:"result"`
}

func BenchmarkEnvelope(b *testing.B) {
	doc := []byte(envelope)
	run := func(name string, read func([]byte, any) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				var v answer
				if err := read(doc, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("ijson", ijson.Unmarshal)
	run("plain", func(doc []byte, v any) error { return json.Unmarshal(doc, v, json.RejectUnknownMembers(true)) })
	run("stdlib", stdjson.Unmarshal)
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			if err := ijson.Check(doc); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRatio reports what the rules cost on top of decoding alone, as the
// median of interleaved pairs: other work on the machine hits both alike.
func BenchmarkRatio(b *testing.B) {
	doc := []byte(envelope)
	batch := func(read func([]byte, any) error) time.Duration {
		begin := time.Now()
		for range 32 {
			var v answer
			if err := read(doc, &v); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(begin)
	}
	decode := func(doc []byte, v any) error { return json.Unmarshal(doc, v, json.RejectUnknownMembers(true)) }
	var ratios []float64
	for b.Loop() {
		ratios = append(ratios, float64(batch(ijson.Unmarshal))/float64(batch(decode)))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkRefusal(b *testing.B) {
	doc := []byte(strings.Replace(envelope, `"id":7`, `"id":1e400`, 1))
	b.ReportAllocs()
	for b.Loop() {
		var v answer
		if ijson.Unmarshal(doc, &v) == nil {
			b.Fatal("accepted")
		}
	}
}

func BenchmarkMegabyte(b *testing.B) {
	doc := []byte(`{"text":"` + strings.Repeat("é and plain text, ", 1<<20/19) + `"}`)
	for name, read := range map[string]func([]byte, any) error{
		"ijson": ijson.Unmarshal,
		"plain": func(doc []byte, v any) error { return json.Unmarshal(doc, v) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				var v struct {
					Text string `json:"text"`
				}
				if err := read(doc, &v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The package and the libraries that only it brings must not slow the start of
// a program that links it.
func TestNoInitWork(t *testing.T) {
	if os.Getenv("SWITCHYARD_TEST_INIT") == "1" {
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestNoInitWork$")
	cmd.Env = append(os.Environ(), "SWITCHYARD_TEST_INIT=1", "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "init runtime ") {
		t.Fatalf("no trace of initialisation:\n%s", out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "init github.com/switchyard-plugins/switchyard/schemas/ijson ") {
			t.Errorf("the package does work at start: %s", line)
		}
	}
}

package plugin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

const transcripts = "../../testdata/transcripts/call"

// TestTranscripts replays every recorded connection and compares bytes.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(transcripts, "*.txtar"))
	if err != nil || len(files) < 15 {
		t.Fatalf("found %d transcripts in %s (%v)", len(files), transcripts, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { replay(t, file) })
	}
}

func replay(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var m plugin.Manifest
	var input, want bytes.Buffer
	h := &scripted{}
	for _, f := range archive.Files {
		switch f.Name {
		case "plugin.json":
			if m, err = plugin.ParseManifest(f.Data); err != nil {
				t.Fatal(err)
			}
		case "returns":
			h.script = bytes.Split(bytes.TrimSuffix(f.Data, []byte("\n")), []byte("\n"))
		case "exchange":
			for text := range strings.Lines(string(f.Data)) {
				switch text[:2] {
				case "> ":
					input.WriteString(text[2:])
				case "< ":
					want.WriteString(text[2:])
				default:
					t.Fatalf("a line that is neither sent nor received: %q", text)
				}
			}
		default:
			t.Fatalf("unknown file %s", f.Name)
		}
	}
	if input.Len() == 0 || want.Len() == 0 {
		t.Fatal("nothing is exchanged")
	}
	var got bytes.Buffer
	if err := plugin.Serve(context.Background(), &input, &got, m, h); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Errorf("answers\n%s\nwant\n%s", got.String(), want.String())
	}
	if len(h.script) != 0 {
		t.Errorf("%d scripted returns were not asked for", len(h.script))
	}
}

// scripted is a handler that does what a transcript says.
type scripted struct{ script [][]byte }

func (h *scripted) next(result any) error {
	if len(h.script) == 0 {
		return fmt.Errorf("the script has ended")
	}
	var step struct {
		Result json.RawMessage `json:"result"`
		Error  *plugin.Error   `json:"error"`
		Panic  any             `json:"panic"`
	}
	if err := json.Unmarshal(h.script[0], &step); err != nil {
		return err
	}
	h.script = h.script[1:]
	switch {
	case step.Panic != nil:
		panic(step.Panic)
	case step.Error != nil:
		return step.Error
	}
	d := json.NewDecoder(bytes.NewReader(step.Result))
	d.DisallowUnknownFields()
	return d.Decode(result)
}

func (h *scripted) Health(context.Context) (r plugin.HealthResult, err error) {
	err = h.next(&r)
	return r, err
}

func (h *scripted) Inspect(context.Context, plugin.InspectRequest) (r plugin.InspectResult, err error) {
	err = h.next(&r)
	return r, err
}

func (h *scripted) Operate(context.Context, plugin.OperateRequest) (r plugin.OperateResult, err error) {
	err = h.next(&r)
	return r, err
}

package plugin

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"
)

type options struct {
	Path  string                  `json:"path"`
	Depth *int                    `json:"depth,omitempty"`
	When  time.Time               `json:"when"`
	Rules []struct{ Name string } `json:"rules"`
	Named map[string]struct {
		On bool `json:"on"`
	} `json:"named"`
}

func TestDecodeInput(t *testing.T) {
	for _, tc := range []struct{ input, fault string }{
		{`{"path":"a","depth":2,"when":"2026-01-01T00:00:00Z","rules":[{"Name":"x"}],"named":{"ON":{"on":true}}}`, ""},
		{`{}`, ""},
		{`null`, ""},
		{`{"path":7}`, "input: path must not be a JSON number"},
		{`[]`, "input: must not be a JSON array"},
		{`{"paths":"a"}`, `input: unknown field "paths"`},
		{`{"PATH":"a"}`, `input: unknown member "PATH"`},
		{`{"rules":[{"Name":"x"},{"name":"y"}]}`, `input: unknown member "name"`},
		{`{"named":{"a":{"On":true}}}`, `input: unknown member "On"`},
	} {
		var o options
		err := OperateRequest{Input: json.RawMessage(tc.input)}.DecodeInput(&o)
		if tc.fault == "" {
			if err != nil {
				t.Errorf("%s: %v", tc.input, err)
			}
			continue
		}
		var fault *Error
		if !errors.As(err, &fault) || fault.Code != CodeBadParams || fault.Message != tc.fault {
			t.Errorf("%s: %v, want %s", tc.input, err, tc.fault)
		}
	}
}

func TestJSON(t *testing.T) {
	if raw, err := JSON(map[string]int{"a": 1}); err != nil || string(raw) != `{"a":1}` {
		t.Errorf("%s, %v", raw, err)
	}
	if raw, err := JSON(math.NaN()); err == nil {
		t.Errorf("NaN became %s", raw)
	}
}

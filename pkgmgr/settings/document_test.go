package settings_test

import (
	"errors"
	"testing"

	"github.com/switchyard-plugins/switchyard/pkgmgr/settings"
	"github.com/switchyard-plugins/switchyard/schemas/subset"
)

func TestSet(t *testing.T) {
	for _, c := range []struct{ before, pointer, value, after string }{
		{`{}`, "/a", `1`, `{"a":1}`},
		{`{}`, "/a/b~1c/~0", `"<x>"`, `{"a":{"b/c":{"~":"<x>"}}}`},
		{`{"a":[1,2]}`, "/a/1", `3`, `{"a":[1,3]}`},
		{`{"a":[]}`, "/a/-", `{"b":1.50}`, `{"a":[{"b":1.50}]}`},
		{`{"a":null}`, "/a/b", `true`, `{"a":{"b":true}}`},
		{`{"a":1}`, "", `{"b":2}`, `{"b":2}`},
	} {
		d, err := settings.Parse([]byte(c.before))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Set(c.pointer, []byte(c.value)); err != nil {
			t.Errorf("%s %s: %v", c.before, c.pointer, err)
		}
		if got := string(d.JSON()); got != c.after {
			t.Errorf("%s %s: %s, want %s", c.before, c.pointer, got, c.after)
		}
	}
}

func TestSetRefuses(t *testing.T) {
	for _, c := range []struct {
		pointer, value string
		want           error
	}{
		{"a", `1`, settings.ErrPointer},
		{"/a~2", `1`, settings.ErrPointer},
		{"/a~", `1`, settings.ErrPointer},
		{"/text/b", `1`, settings.ErrNoRoom},
		{"/list/7", `1`, settings.ErrNoRoom},
		{"/list/01", `1`, settings.ErrNoRoom},
		{"/a", `{"b":1,"b":2}`, nil},
		{"/a", `1 2`, nil},
		{"", `[]`, nil},
	} {
		const before = `{"list":[1],"text":"x"}`
		d, err := settings.Parse([]byte(before))
		if err != nil {
			t.Fatal(err)
		}
		err = d.Set(c.pointer, []byte(c.value))
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s %s: %v", c.pointer, c.value, err)
		}
		if string(d.JSON()) != before {
			t.Errorf("%s %s left %s", c.pointer, c.value, d.JSON())
		}
	}
}

func TestGetAndRemove(t *testing.T) {
	d, err := settings.Parse([]byte(`{"a":{"b":[1,{"c":2},3]},"d":4}`))
	if err != nil {
		t.Fatal(err)
	}
	if v, err := d.Get("/a/b/1/c"); err != nil || string(v) != "2" {
		t.Errorf("%s, %v", v, err)
	}
	for _, none := range []string{"/x", "/a/b/3", "/a/b/-1", "/d/x"} {
		if _, err := d.Get(none); !errors.Is(err, settings.ErrNoPlace) {
			t.Errorf("%s: %v", none, err)
		}
		if err := d.Remove(none); !errors.Is(err, settings.ErrNoPlace) {
			t.Errorf("%s: %v", none, err)
		}
	}
	for _, there := range []string{"/a/b/0", "/a/b/0/c", "/d"} {
		if err := d.Remove(there); err != nil {
			t.Errorf("%s: %v", there, err)
		}
	}
	if got := string(d.JSON()); got != `{"a":{"b":[{},3]}}` {
		t.Error(got)
	}
	if err := d.Remove(""); err != nil || !d.Empty() {
		t.Errorf("%v, %s", err, d.JSON())
	}
}

func TestShown(t *testing.T) {
	notes := []subset.Note{{Pointer: "/pin", Private: true}, {Pointer: "/deep/list/0", Private: true}, {Pointer: "/token", Secret: true}}
	const text = `{"pin":{"a":"hunter2"},"deep":{"list":["hunter2",1]},"token":{"secretRef":{"name":"n","provider":"env"}}}`
	const want = `{"deep":{"list":["[redacted]",1]},"pin":"[redacted]","token":{"secretRef":{"name":"n","provider":"env"}}}`
	if got := string(settings.Shown([]byte(text), notes)); got != want {
		t.Error(got)
	}
	for _, hidden := range []string{`{"pin":`, `[1]`} {
		if got := string(settings.Shown([]byte(hidden), nil)); got != `"[redacted]"` {
			t.Errorf("%s: %s", hidden, got)
		}
	}
	if got := string(settings.Shown([]byte(text), []subset.Note{{Private: true}})); got != `"[redacted]"` {
		t.Error(got)
	}
	for pointer, want := range map[string]bool{"": true, "/pin": true, "/pin/a": true, "/deep": true, "/deep/list/1": false, "/pinned": false, "/token": false} {
		if settings.Private(pointer, notes) != want {
			t.Errorf("%q", pointer)
		}
	}
}

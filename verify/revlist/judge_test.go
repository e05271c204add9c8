package revlist

import (
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/digest"
)

func TestJudge(t *testing.T) {
	const issuer = "security.example.com"
	h := Header{Issuer: issuer, Version: 7, IssuedAt: day0, ExpiresAt: day0.Add(24 * time.Hour), Digest: sha(7)}
	state := State{Issuer: issuer, Floor: 7, Digest: sha(7), Issued: day0}
	with := func(edit func(*State)) State { s := state; edit(&s); return s }
	header := func(edit func(*Header)) *Header { n := h; edit(&n); return &n }
	now := day0.Add(time.Hour)
	for _, c := range []struct {
		name  string
		state State
		h     *Header
		now   time.Time
		want  Outcome
		adopt bool
	}{
		{"the same again", state, &h, now, Fresh, true},
		{"nothing known", State{Issuer: issuer}, &h, now, Fresh, true},
		{"a newer version", with(func(s *State) { s.Floor, s.Digest = 6, sha(6) }), &h, now, Fresh, true},
		{"a floor without a digest", with(func(s *State) { s.Digest = "" }), &h, now, Fresh, true},
		{"none", state, nil, now, Absent, false},
		{"another issuer", state, header(func(h *Header) { h.Issuer = "example.com" }), now, WrongIssuer, false},
		{"another issuer, in every other way bad", state, &Header{Issuer: "x"}, now, WrongIssuer, false},
		{"rollback", with(func(s *State) { s.Floor = 8 }), &h, now, Rollback, false},
		{"rollback of an expired list", with(func(s *State) { s.Floor = 8 }), &h, day0.Add(48 * time.Hour), Rollback, false},
		{"rollback after a rotation", with(func(s *State) { s.Issued = day0.Add(time.Second) }).Rotated(), &h, now, Rollback, false},
		{"a low version after a rotation", state.Rotated(), header(func(h *Header) { h.Version = 1 }), now, Fresh, true},
		{"equivocation", with(func(s *State) { s.Digest = sha(8) }), &h, now, Equivocation, false},
		{"frozen: one second before", state, &h, day0.Add(24*time.Hour - time.Second), Fresh, true},
		{"frozen: the moment", state, &h, day0.Add(24 * time.Hour), Expired, true},
		{"frozen: years", state, &h, day0.AddDate(9, 0, 0), Expired, true},
		{"future: within the skew", state, &h, day0.Add(-Skew), Fresh, true},
		{"future: beyond the skew", state, &h, day0.Add(-Skew - time.Second), Future, false},
		{"too old: just not", with(func(s *State) { s.MaxAge = time.Hour }), &h, now, Fresh, true},
		{"too old", with(func(s *State) { s.MaxAge = time.Hour }), &h, now.Add(1), TooOld, true},
	} {
		v := Judge(c.state, c.h, c.now)
		if v.Outcome != c.want || v.Adoptable() != c.adopt || v.Silence() != (c.want == Fresh) {
			t.Errorf("%s: %+v, adoptable %v; want %s, %v", c.name, v, v.Adoptable(), c.want, c.adopt)
		}
		if (v.Message == "") != (c.want == Fresh) {
			t.Errorf("%s: message %q", c.name, v.Message)
		}
		if v.Code() != Code("list."+string(c.want)) {
			t.Errorf("%s: code %s", c.name, v.Code())
		}
	}
	if v := Judge(state, &Header{Issuer: strings.Repeat("\x1b", 1000)}, now); len(v.Message) > 500 || strings.Contains(v.Message, "\x1b") {
		t.Errorf("a foreign issuer is shown as %q", v.Message)
	}
	// The zero value knows no issuer, and so takes nobody's list.
	if v := Judge(State{}, &h, now); v.Outcome != WrongIssuer {
		t.Errorf("zero state: %+v", v)
	}
	if got := (State{Issuer: issuer}).Adopted(h); Judge(got, header(func(h *Header) { h.Digest = digest.Of(nil) }), now).Outcome != Equivocation {
		t.Errorf("adopted state is %+v", got)
	}
}

// TestStolenListKey follows a thief of a list key from the forged list to the
// rotation that locks the thief out.
func TestStolenListKey(t *testing.T) {
	stolen, next, boss := key(1), key(2), person("boss")
	root1 := &Root{Issuer: "example.com", Version: 1, ListSigners: signersOf(stolen), ListThreshold: 1,
		RootSigners: signersOf(boss), RootThreshold: 1, ExpiresAt: day0.AddDate(1, 0, 0)}
	state := State{Issuer: "example.com", Floor: 5, Digest: sha(5), Issued: day0}
	forged := Header{Issuer: "example.com", Version: MaxVersion, IssuedAt: day0.Add(time.Hour), ExpiresAt: day0.AddDate(1, 0, 0), Digest: sha(6)}
	now := day0.Add(time.Hour)
	if err := root1.AcceptsList(signersOf(stolen)); err != nil || Judge(state, &forged, now).Outcome != Fresh {
		t.Fatal("the forged list was not taken: this test shows nothing")
	}
	state = state.Adopted(forged)
	honest := Header{Issuer: "example.com", Version: 6, IssuedAt: day0.Add(2 * time.Hour), ExpiresAt: day0.Add(48 * time.Hour), Digest: sha(7)}
	now = day0.Add(2 * time.Hour)
	if v := Judge(state, &honest, now); v.Outcome != Rollback {
		t.Fatalf("before the rotation: %+v", v)
	}
	root2 := *root1
	root2.Version, root2.ListSigners = 2, signersOf(next)
	if err := Rotate(root1, &root2, signersOf(stolen)); err == nil {
		t.Fatal("the thief rotated the root")
	}
	if err := Rotate(root1, &root2, signersOf(boss)); err != nil {
		t.Fatal(err)
	}
	state = state.Rotated()
	if v := Judge(state, &honest, now); v.Outcome != Fresh {
		t.Errorf("after the rotation: %+v", v)
	}
	if err := root2.AcceptsList(signersOf(stolen)); err == nil {
		t.Error("the stolen key still signs lists")
	}
	old := Header{Issuer: "example.com", Version: 4, IssuedAt: day0.Add(-time.Hour), ExpiresAt: day0.AddDate(1, 0, 0), Digest: sha(4)}
	if v := Judge(state, &old, now); v.Outcome != Rollback {
		t.Errorf("a list from before the rotation: %+v", v)
	}
}

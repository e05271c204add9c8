package pkgmgr

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestUUID(t *testing.T) {
	at := time.UnixMilli(1_796_000_123_456)
	seen := map[string]bool{}
	for range 1000 {
		s := newUUID(at)
		u, err := uuid.Parse(s)
		if err != nil || u.String() != s {
			t.Fatalf("%q: %v", s, err)
		}
		if u.Version() != 7 || u.Variant() != uuid.RFC4122 {
			t.Fatalf("%q: version %v, variant %v", s, u.Version(), u.Variant())
		}
		if sec, nsec := u.Time().UnixTime(); sec != at.Unix() || nsec/1e6 != at.UnixMilli()%1000 {
			t.Fatalf("%q: time %d.%09d, want %v", s, sec, nsec, at)
		}
		if !isUUID(s) || seen[s] {
			t.Fatalf("%q: isUUID %v, seen %v", s, isUUID(s), seen[s])
		}
		seen[s] = true
	}
	if a, b := newUUID(at), newUUID(at.Add(time.Millisecond)); a >= b {
		t.Errorf("%q does not order before %q", a, b)
	}
	for _, s := range []string{"", "x", "../../../../../../../../../../etc/passwd", newUUID(at) + "0", "0190A0A0-0000-7000-8000-000000000000"} {
		if isUUID(s) {
			t.Errorf("isUUID(%q)", s)
		}
	}
}

package revlist

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/verify"
)

func signersOf(s ...verify.Signer) []verify.Signer {
	return slices.SortedFunc(slices.Values(s), compareSigners)
}

func sampleRoot() *Root {
	return &Root{
		Issuer: "security.example.com", Version: 3,
		ListSigners: signersOf(key(1), key(2), person("list")), ListThreshold: 2,
		RootSigners: signersOf(key(3), key(4), person("root")), RootThreshold: 2,
		ExpiresAt: day0,
	}
}

func writtenRoot(t testing.TB, r *Root) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteRoot(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRootIsCanonicalAndReadsBack(t *testing.T) {
	root := sampleRoot()
	b := writtenRoot(t, root)
	isCanonical(t, b)
	got, err := ReadRoot(bytes.NewReader(b))
	if err != nil || !reflect.DeepEqual(got, root) {
		t.Errorf("%+v, %v", got, err)
	}
	unsorted := *root
	unsorted.ListSigners = slices.Clone(root.ListSigners)
	slices.Reverse(unsorted.ListSigners)
	if !bytes.Equal(writtenRoot(t, &unsorted), b) {
		t.Error("the order of signers shows in the document")
	}
	for n := range b {
		_, err := ReadRoot(bytes.NewReader(b[:n]))
		if e := fault(t, err, "root.truncated"); e.Offset != int64(n) {
			t.Fatalf("cut at %d, reported at %d", n, e.Offset)
		}
	}
}

func TestRootRefusals(t *testing.T) {
	good := string(writtenRoot(t, sampleRoot()))
	k1 := fmt.Sprintf(`{"key":"%s"}`, signersOf(key(1), key(2))[0].Key)
	k2 := fmt.Sprintf(`{"key":"%s"}`, signersOf(key(1), key(2))[1].Key)
	for _, c := range []struct {
		name, old, new string
		code           Code
	}{
		{"unknown member", `"version"`, `"versions"`, "root.unknown_member"},
		{"missing member", `"issuer":"security.example.com",`, ``, "root.missing_member"},
		{"white space", `:3}`, `:3 }`, "root.not_canonical"},
		{"trailing", `:3}`, `:3}{}`, "root.trailing_data"},
		{"version 0", `:3}`, `:0}`, "root.number"},
		{"huge version", `:3}`, `:9007199254740993}`, "root.number"},
		{"threshold 0", `"listThreshold":2`, `"listThreshold":0`, "root.number"},
		{"threshold above the signers", `"listThreshold":2`, `"listThreshold":4`, "root.number"},
		{"huge threshold", `"rootThreshold":2`, `"rootThreshold":4294967298`, "root.number"},
		{"signers out of order", k1 + "," + k2, k2 + "," + k1, "root.not_sorted"},
		{"a signer twice", k1 + "," + k2, k1 + "," + k1, "root.duplicate"},
		{"signer with two natures", `{"identity"`, `{"identity":"x","identity"`, "root.duplicate_member"},
		{"signer with an unknown member", `{"identity"`, `{"id":"x","identity"`, "root.unknown_member"},
		{"identity without issuer", `,"issuer":"https://accounts.example.com"`, ``, "root.value"},
		{"empty key", key(1).Key, ``, "root.value"},
		{"short key", key(1).Key, `sha256:00`, "root.value"},
		{"another schema", "revocations-root/v1", "revocations/v1", "root.schema_version"},
		{"bad time", "2030-01-02", "2030-13-02", "root.value"},
	} {
		if !strings.Contains(good, c.old) {
			t.Fatalf("%s: %s is not there", c.name, c.old)
		}
		_, err := ReadRoot(strings.NewReader(strings.Replace(good, c.old, c.new, 1)))
		var e *Error
		if !errors.As(err, &e) || e.Code != c.code {
			t.Errorf("%s: %v, want %s", c.name, err, c.code)
		}
	}
	// A list signer that is a root signer too.
	shared := sampleRoot()
	shared.ListSigners, shared.ListThreshold = signersOf(key(1)), 1
	both := strings.Replace(string(writtenRoot(t, shared)), key(1).Key, key(3).Key, 1)
	_, err := ReadRoot(strings.NewReader(both))
	fault(t, err, "root.value")
	_, err = ReadRoot(&repeat{next: func(b []byte) []byte { return append(b, `{"expiresAt":"2030-01-02T03:04:05Z","issuer":"`...) }})
	if err == nil {
		t.Error("an endless root was read")
	}
	many := `{"expiresAt":"2030-01-02T03:04:05Z","issuer":"a","listSigners":[`
	for i, s := range signersOf(keys(MaxSigners + 1)...) {
		if i > 0 {
			many += ","
		}
		many += `{"key":"` + s.Key + `"}`
	}
	_, err = ReadRoot(strings.NewReader(many))
	fault(t, err, "root.too_many")
}

func keys(n int) []verify.Signer {
	var list []verify.Signer
	for i := range n {
		list = append(list, key(1000+i))
	}
	return list
}

func TestWriteRootRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*Root){
		"both roles":         func(r *Root) { r.RootSigners = append(slices.Clone(r.RootSigners), r.ListSigners[0]) },
		"a signer twice":     func(r *Root) { r.RootSigners = append(slices.Clone(r.RootSigners), r.RootSigners[0]) },
		"no root signers":    func(r *Root) { r.RootSigners = nil },
		"threshold 0":        func(r *Root) { r.RootThreshold = 0 },
		"threshold":          func(r *Root) { r.ListThreshold = 4 },
		"version":            func(r *Root) { r.Version = 0 },
		"issuer":             func(r *Root) { r.Issuer = "" },
		"expiry":             func(r *Root) { r.ExpiresAt = time.Time{} },
		"an empty signer":    func(r *Root) { r.ListSigners = signersOf(verify.Signer{}, key(1)) },
		"too many signers":   func(r *Root) { r.ListSigners = keys(MaxSigners + 1) },
		"identity unvouched": func(r *Root) { r.ListSigners = signersOf(verify.Signer{Identity: "a"}, key(1)) },
	} {
		r := sampleRoot()
		spoil(r)
		var b bytes.Buffer
		var e *Error
		if err := WriteRoot(&b, r); !errors.As(err, &e) || b.Len() > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestThresholdsCountDistinctSigners(t *testing.T) {
	r := sampleRoot()
	for _, c := range []struct {
		name   string
		signed []verify.Signer
		ok     bool
	}{
		{"nobody", nil, false},
		{"one", signersOf(key(1)), false},
		{"one, three times", []verify.Signer{key(1), key(1), key(1)}, false},
		{"two", []verify.Signer{key(2), key(1)}, true},
		{"a key and a person", []verify.Signer{key(2), person("list")}, true},
		{"one and a stranger", []verify.Signer{key(2), key(99)}, false},
		{"one and the person by another issuer", []verify.Signer{key(2), {Identity: "list@example.com", Issuer: "https://evil.example.com"}}, false},
		{"root signers", []verify.Signer{key(3), key(4)}, false},
	} {
		err := r.AcceptsList(c.signed)
		var few *TooFewError
		if (err == nil) != c.ok || err != nil && (!errors.As(err, &few) || few.Threshold != 2) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if (&Root{}).AcceptsList(signersOf(key(1))) == nil {
		t.Error("the zero root accepts lists")
	}
	// A role that names a signer twice, as no document can.
	twice := &Root{ListSigners: []verify.Signer{key(1), key(1)}, ListThreshold: 2}
	if twice.AcceptsList(signersOf(key(1))) == nil {
		t.Error("a signer that is named twice counted twice")
	}
}

func TestRotate(t *testing.T) {
	old := sampleRoot()
	next := sampleRoot()
	next.Version = 4
	next.RootSigners = signersOf(key(4), key(5), key(6))
	with := func(edit func(*Root)) *Root { n := *next; edit(&n); return &n }
	few := func(err error) bool { var e *TooFewError; return errors.As(err, &e) }
	is := func(code Code) func(error) bool {
		return func(err error) bool { var e *RootError; return errors.As(err, &e) && e.Code == code }
	}
	for _, c := range []struct {
		name   string
		next   *Root
		signed []verify.Signer
		want   func(error) bool
	}{
		{"both thresholds", next, []verify.Signer{key(3), key(4), key(5)}, nil},
		{"old signers only", next, []verify.Signer{key(3), person("root")}, few},
		{"new signers only", next, []verify.Signer{key(5), key(6)}, few},
		{"one of both, twice", next, []verify.Signer{key(4), key(4)}, few},
		{"one old, two new", next, []verify.Signer{key(4), key(5), key(6)}, few},
		{"list signers", next, []verify.Signer{key(1), key(2)}, few},
		{"nobody", next, nil, few},
		{"the same version", with(func(r *Root) { r.Version = 3 }), []verify.Signer{key(3), key(4), key(5)}, is(RootVersion)},
		{"a version left out", with(func(r *Root) { r.Version = 5 }), []verify.Signer{key(3), key(4), key(5)}, is(RootVersion)},
		{"an older version", with(func(r *Root) { r.Version = 2 }), []verify.Signer{key(3), key(4), key(5)}, is(RootVersion)},
		{"another issuer", with(func(r *Root) { r.Issuer = "example.com" }), []verify.Signer{key(3), key(4), key(5)}, is(RootWrongIssuer)},
		{"a root that cannot be", with(func(r *Root) { r.RootThreshold = 0 }), []verify.Signer{key(3), key(4), key(5)},
			func(err error) bool { var e *Error; return errors.As(err, &e) }},
	} {
		err := Rotate(old, c.next, c.signed)
		if c.want == nil && err != nil || c.want != nil && (err == nil || !c.want(err)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := old.Current(day0.Add(-1)); err != nil {
		t.Error(err)
	}
	if err := old.Current(day0); !is(RootExpired)(err) {
		t.Errorf("expired: %v", err)
	}
	if old.AcceptsItself(signersOf(key(3), person("root"))) != nil || !few(old.AcceptsItself(signersOf(key(3)))) {
		t.Error("a root's own threshold")
	}
}

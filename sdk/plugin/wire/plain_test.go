package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/internal/strict"
)

// byMember reads a frame without the way for plain ones.
func byMember(frame []byte) (Envelope, error) {
	s := scan{Scanner: strict.Scanner{Data: frame}}
	err := s.message()
	return s.e, err
}

// holdsAlike fails unless a frame is read alike both ways, its item too.
func holdsAlike(t *testing.T, frame []byte) {
	t.Helper()
	var got Envelope
	gotErr := Scan(frame, &got)
	want, wantErr := byMember(frame)
	if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
		t.Fatalf("%q\nat once:   %v\nby member: %v", frame, gotErr, wantErr)
	}
	if gotErr != nil {
		return
	}
	var item, wantItem StreamItem
	if want.Type == TypeStreamItem {
		gotErr, wantErr = got.ReadItem(&item), Decode(want.Body, &wantItem)
		if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || wantErr == nil && !reflect.DeepEqual(item, wantItem) {
			t.Fatalf("%q\nat once:   %v, %v\nby member: %v, %v", frame, item, gotErr, wantItem, wantErr)
		}
	}
	got.item, got.itemRead = StreamItem{}, false
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q\nat once:   %+v\nby member: %+v", frame, got, want)
	}
}

// plainFrames are frames as this package writes them.
func plainFrames() [][]byte {
	e := Envelope{Version: MaxVersion, MessageID: NewUUID(), Sequence: 7, Timestamp: time.Unix(1_700_000_000, 123_456_000)}
	traced := e
	traced.TraceID, _ = ParseTraceID(strings.Repeat("0a", 16))
	traced.CausationID = Some(NewUUID())
	item := &StreamItem{RequestID: NewUUID(), OperationID: NewUUID(), Index: 30, Payload: json.RawMessage(`{"a":[1,-2.5e3,"\u00e9é",null],"b":{"c":true}}`)}
	return [][]byte{
		AppendMessage(nil, &e, item), AppendMessage(nil, &traced, item),
		AppendMessage(nil, &traced, &Response{RequestID: NewUUID(), OperationID: NewUUID(), PayloadClass: ClassInternal, Payload: json.RawMessage(`"x"`)}),
	}
}

// TestPlainFrames holds that a frame which is spelt as AppendMessage spells it is read at
// once, and that with any byte of it changed, left out or doubled it is read or refused as
// it is member by member.
func TestPlainFrames(t *testing.T) {
	for _, frame := range plainFrames() {
		var e Envelope
		if !plain(frame, &e) {
			t.Fatalf("%s is not read at once", frame)
		}
		if e.itemRead != (e.Type == TypeStreamItem) {
			t.Fatalf("%s: its item is read at once: %t", frame, e.itemRead)
		}
		holdsAlike(t, frame)
		for i := range frame {
			for _, c := range []byte("\x00 \"\\{}[],:0159aAfgZ-.+eE\x7f\x80\xC3\xFF") {
				changed := bytes.Clone(frame)
				changed[i] = c
				holdsAlike(t, changed)
			}
			holdsAlike(t, append(bytes.Clone(frame[:i]), frame[i+1:]...))
			holdsAlike(t, append(bytes.Clone(frame[:i+1]), frame[i:]...))
			holdsAlike(t, frame[:i])
		}
	}
}

// TestPlainFrameLimits holds that what a payload may be at most is the same both ways.
func TestPlainFrameLimits(t *testing.T) {
	const member = `"m000000":0,`
	var all []byte
	for i := range strict.MaxMembers {
		all = fmt.Appendf(all, `"m%06d":0,`, i)
	}
	members := func(n int) string { return "{" + string(all[:n*len(member)-1]) + "}" }
	bodies := map[string]func(payload string) []byte{}
	e := Envelope{Version: MaxVersion, MessageID: NewUUID(), Sequence: 7, Timestamp: time.Now()}
	bodies["item"] = func(p string) []byte {
		return AppendMessage(nil, &e, &StreamItem{Payload: json.RawMessage(p)})
	}
	bodies["response"] = func(p string) []byte {
		return AppendMessage(nil, &e, &Response{PayloadClass: ClassInternal, Payload: json.RawMessage(p)})
	}
	for name, frame := range bodies {
		for _, depth := range []int{61, 62, 63, 64} {
			holdsAlike(t, frame(strings.Repeat("[", depth)+strings.Repeat("]", depth)))
		}
		for beside := 8; beside <= 14; beside++ { // an envelope has 9 members, an item 4
			holdsAlike(t, frame(members(strict.MaxMembers-beside)))
		}
		for _, payload := range []string{`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `"\ufdd0"`, `9007199254740992`, `1e400`, `{"requestId":1}`, `"` + strings.Repeat("x", strict.MaxString+1) + `"`,
			`1,"more":2`, `1}`, ``, `1 `, ` 1`, "\uFEFF1"} {
			holdsAlike(t, frame(payload))
		}
		if Scan(frame(members(strict.MaxMembers)), new(Envelope)) == nil {
			t.Errorf("%s: more than %d members in a frame are read", name, strict.MaxMembers)
		}
	}
	for _, n := range []string{"0", "00", "01", "-0", "-1", "1.0", "1e2", "999999999999999", "1000000000000000", "9007199254740991", "9007199254740992"} {
		frame := bodies["item"]("1")
		holdsAlike(t, bytes.Replace(frame, []byte(`"index":0`), []byte(`"index":`+n), 1))
		holdsAlike(t, bytes.Replace(frame, []byte(`"sequence":7`), []byte(`"sequence":`+n), 1))
	}
}

func FuzzPlainFrame(f *testing.F) {
	for _, frame := range plainFrames() {
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) { holdsAlike(t, frame) })
}

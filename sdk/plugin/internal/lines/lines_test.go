package lines

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestNext(t *testing.T) {
	const max = 40 << 10 // more than the buffer holds
	long := strings.Repeat("x", max)
	input := "one\n\n" + long + "\n" + long + "y\ntwo\r\n" + long + long + long + "\nlast"
	want := []Line{
		{Text: []byte("one")}, {}, {Text: []byte(long)}, {TooLong: true}, {Text: []byte("two\r")}, {TooLong: true}, {Text: []byte("last")},
	}
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(input), "halves": iotest.HalfReader(strings.NewReader(input)),
		"data with EOF": iotest.DataErrReader(strings.NewReader(input)),
	} {
		l := NewReader(r, max)
		for i, w := range want {
			got, err := l.Next()
			if err != nil || string(got.Text) != string(w.Text) || got.TooLong != w.TooLong {
				t.Fatalf("%s: line %d: %d bytes, %v, %v", name, i, len(got.Text), got.TooLong, err)
			}
		}
		if _, err := l.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: at the end: %v", name, err)
		}
	}
}

func TestNextError(t *testing.T) {
	broken := errors.New("broken")
	l := NewReader(io.MultiReader(strings.NewReader("half a li"), iotest.ErrReader(broken)), 100)
	if got, err := l.Next(); !errors.Is(err, broken) {
		t.Errorf("%q, %v", got.Text, err)
	}
}

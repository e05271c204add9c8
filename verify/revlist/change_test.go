package revlist

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchyard-plugins/switchyard/verify"
)

func TestNextRoot(t *testing.T) {
	old := sampleRoot()
	before := writtenRoot(t, old)
	next, err := old.Next(RootChange{
		List: RoleChange{Add: []verify.Signer{key(9)}, Remove: []verify.Signer{key(1)}},
		Root: RoleChange{Add: []verify.Signer{person("third")}, Threshold: 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &Root{
		Issuer: old.Issuer, Version: 4, ListSigners: signersOf(key(2), key(9), person("list")), ListThreshold: 2,
		RootSigners: signersOf(key(3), key(4), person("root"), person("third")), RootThreshold: 3, ExpiresAt: old.ExpiresAt,
	}
	if !reflect.DeepEqual(next, want) {
		t.Errorf("got  %+v\nwant %+v", next, want)
	}
	if err := Rotate(old, next, append(slices.Clone(old.RootSigners), next.RootSigners...)); err != nil {
		t.Error(err)
	}
	if !slices.Equal(writtenRoot(t, old), before) {
		t.Error("the root before was changed")
	}
	later := old.ExpiresAt.Add(time.Hour + time.Millisecond)
	if next, err = old.Next(RootChange{ExpiresAt: later}); err != nil || !next.ExpiresAt.Equal(old.ExpiresAt.Add(time.Hour)) || !next.SameLists(old) {
		t.Errorf("%+v, %v", next, err)
	}
}

func TestNextRootRefusals(t *testing.T) {
	last := sampleRoot()
	last.Version = MaxVersion
	for name, c := range map[string]struct {
		root   *Root
		change RootChange
		says   string
	}{
		"nothing":                {nil, RootChange{}, "it would say what version 3 says"},
		"the same threshold":     {nil, RootChange{List: RoleChange{Threshold: 2}}, "it would say what version 3 says"},
		"there already":          {nil, RootChange{List: RoleChange{Add: signersOf(key(1))}}, "in listSigners already"},
		"twice":                  {nil, RootChange{Root: RoleChange{Add: []verify.Signer{key(9), key(9)}}}, "in rootSigners already"},
		"removed and added":      {nil, RootChange{List: RoleChange{Add: signersOf(key(1)), Remove: signersOf(key(1))}}, "in listSigners already"},
		"not there":              {nil, RootChange{Root: RoleChange{Remove: signersOf(key(9))}}, "is not in rootSigners"},
		"both roles":             {nil, RootChange{List: RoleChange{Add: signersOf(key(3))}}, "both listSigners and rootSigners"},
		"threshold out of reach": {nil, RootChange{List: RoleChange{Threshold: 4}}, "listThreshold is 4, with 3 listSigners"},
		"too few are left":       {nil, RootChange{Root: RoleChange{Remove: signersOf(key(3), key(4))}}, "rootThreshold is 2, with 1 rootSigners"},
		"negative threshold":     {nil, RootChange{Root: RoleChange{Threshold: -1}}, "rootThreshold is -1"},
		"no signer":              {nil, RootChange{List: RoleChange{Add: []verify.Signer{{Identity: "x"}}}}, "an identity with its issuer"},
		"no version left":        {last, RootChange{List: RoleChange{Threshold: 1}}, "version is not between"},
	} {
		root := c.root
		if root == nil {
			root = sampleRoot()
		}
		next, err := root.Next(c.change)
		if next != nil || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %+v, %v", name, next, err)
			continue
		}
		if e := new(Error); !errors.As(err, &e) || e.Offset != -1 {
			t.Errorf("%s: %#v", name, err)
		}
	}
}

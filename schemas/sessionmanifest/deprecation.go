package sessionmanifest

import (
	"slices"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/format"
)

// The kinds of an element that can be deprecated; see CheckElement.
const (
	KindCapability = "capability"
	KindOperation  = "operation"
	KindFeature    = "feature"
	KindPermission = "permission"
	KindSetting    = "setting"
)

// SplitElement cuts an element into kind and name; ok is false if it has no form of
// these:
//
//	capability:CAPABILITY  operation:CAPABILITY/OPERATION  feature:TOKEN
//	permission:PERMISSION  setting:JSON-POINTER
func SplitElement(element string) (kind, name string, ok bool) {
	kind, name, _ = strings.Cut(element, ":")
	switch kind {
	case KindCapability, KindFeature, KindPermission:
		ok = isName(name)
	case KindOperation:
		capability, operation, _ := strings.Cut(name, "/")
		ok = isName(capability) && isName(operation)
	case KindSetting:
		ok = len(name) > 1 && name[0] == '/' && len(name) <= MaxJustification
	}
	return kind, name, ok
}

// Sunset returns when the element has ended, the zero time if that cannot be read.
func (d Deprecation) Sunset() time.Time {
	t, err := time.Parse(time.RFC3339Nano, d.SunsetAfter)
	if err != nil {
		return time.Time{}
	}
	return t
}

// declares reports whether the manifest has the element; of settings it cannot know.
func (m *Manifest) declares(kind, name string) bool {
	switch kind {
	case KindCapability:
		c, _, _ := m.Operation(name, "")
		return c != nil
	case KindOperation:
		capability, operation, _ := strings.Cut(name, "/")
		_, _, ok := m.Operation(capability, operation)
		return ok
	case KindFeature:
		return slices.Contains(m.Protocol.Features, name)
	case KindPermission:
		return slices.ContainsFunc(m.Permissions, func(p Permission) bool { return p.ID == name })
	}
	return m.Settings != nil && m.Settings.Schema != nil
}

func (v *validation) deprecations(m *Manifest) {
	const forms = "must be capability:ID, operation:CAPABILITY/NAME, feature:TOKEN, permission:ID or setting:/POINTER"
	elements := make([]string, len(m.Deprecations))
	for i, d := range m.Deprecations {
		at := pointer("deprecations", i)
		elements[i] = d.Element
		if kind, name, ok := SplitElement(d.Element); !ok {
			v.mismatch(at+"/element", forms)
		} else if !m.declares(kind, name) {
			v.add(at+"/element", CodeDeprecation, "the manifest declares no such %s", kind)
		}
		since, until := format.UTC(d.DeprecatedSince, 6), format.UTC(d.SunsetAfter, 6)
		if !since {
			v.mismatch(at+"/deprecatedSince", "must be an RFC 3339 timestamp with Z")
		}
		if !until {
			v.mismatch(at+"/sunsetAfter", "must be an RFC 3339 timestamp with Z")
		}
		if since && until {
			if begin, err := time.Parse(time.RFC3339Nano, d.DeprecatedSince); err != nil || d.Sunset().Before(begin) {
				v.add(at+"/sunsetAfter", CodeDeprecation, "is before deprecatedSince")
			}
		}
		if d.Replacement != nil {
			if _, _, ok := SplitElement(*d.Replacement); !ok {
				v.mismatch(at+"/replacement", forms)
			} else if *d.Replacement == d.Element {
				v.add(at+"/replacement", CodeDeprecation, "nothing replaces itself")
			}
		}
		if d.BehaviorAfterSunset != BehaviorError {
			v.mismatch(at+"/behaviorAfterSunset", "must be %q", BehaviorError)
		}
	}
	v.uniqueMember("/deprecations", "element", elements)
}

package call

import (
	"slices"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// A statement is what an initialize result says.
type statement struct {
	protocol string
	identity manifest.Identity
	grants   []manifest.Scope
}

// compare returns the first difference from what was reviewed and sent, or nil.
func (s statement) compare(want statement) *Fault {
	const method = plugin.MethodInitialize
	if s.protocol != want.protocol {
		return mismatch(CodeProtocolMismatch, method, "protocolVersion", want.protocol, s.protocol)
	}
	got, reviewed := s.identity, want.identity
	for _, m := range []struct{ member, want, got string }{
		{"plugin.schemaVersion", reviewed.SchemaVersion, got.SchemaVersion},
		{"plugin.id", reviewed.ID, got.ID},
		{"plugin.name", reviewed.Name, got.Name},
		{"plugin.version", reviewed.Version, got.Version},
		{"plugin.protocolVersion", reviewed.ProtocolVersion, got.ProtocolVersion},
	} {
		if m.got != m.want {
			return mismatch(CodeIdentityMismatch, method, m.member, m.want, m.got)
		}
	}
	if f := compareSets(method, "plugin.capabilities", reviewed.Capabilities, got.Capabilities); f != nil {
		return f
	}
	if f := compareSets(method, "plugin.requestedScopes", reviewed.RequestedScopes, got.RequestedScopes); f != nil {
		return f
	}
	return compareSets(method, "grantedScopes", want.grants, s.grants)
}

// compareSets compares without regard to order; an element that is repeated
// makes a list no set.
func compareSets[T ~string](method, member string, want, got []T) *Fault {
	a, b := slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))
	if slices.Equal(slices.Compact(a), b) {
		return nil
	}
	return mismatch(CodeIdentityMismatch, method, member, join(a), join(b))
}

func join[T ~string](set []T) string {
	if len(set) == 0 {
		return "(none)"
	}
	s := make([]string, len(set))
	for i, v := range set {
		s[i] = string(v)
	}
	return strings.Join(s, ", ")
}

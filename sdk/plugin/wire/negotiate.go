package wire

import (
	"slices"
	"strings"
)

// An Offer is what a plugin brings to a negotiation.
type Offer struct {
	Protocol      VersionRange // as the manifest says
	Features      []Feature    // as the manifest says, in its order
	Needs         []Feature    // without which the manifest's promises cannot be kept
	MaxFrameBytes int64
}

// lowest returns the first version in which everything exists that the plugin
// needs: further down a downgrade must not go.
func (o Offer) lowest() Version {
	v := o.Protocol.Min
	if v.Compare(MinVersion) < 0 {
		v = MinVersion
	}
	for _, f := range o.Needs {
		if since, ok := f.Since(); ok && since.Compare(v) > 0 {
			v = since
		}
	}
	return v
}

// highest returns the last version that both the manifest and this package speak.
func (o Offer) highest() Version {
	if o.Protocol.Max.Compare(MaxVersion) > 0 {
		return MaxVersion
	}
	return o.Protocol.Max
}

// Range returns the versions that the plugin can really speak.
func (o Offer) Range() VersionRange { return VersionRange{Min: o.lowest(), Max: o.highest()} }

// Agreed is what a negotiation came to.
type Agreed struct {
	Version       Version
	Features      FeatureSet
	MaxFrameBytes int64
}

// Accept is the plugin's side of a negotiation: what it agrees to, or the fatal
// error with which it refuses. It decides on nothing but its arguments.
func Accept(h *Hello, o Offer) (Agreed, *Error) {
	version, refusal := choose(h.Protocol, o)
	if refusal != nil {
		return Agreed{}, refusal
	}
	if !slices.Contains(h.Codecs, CodecJSON) {
		return Agreed{}, Fatal(CodeMissingRequiredFeature, BlamePlugin, "this plugin speaks the codec json only")
	}
	agreed := Agreed{Version: version, MaxFrameBytes: min(h.MaxFrameBytes, o.MaxFrameBytes)}
	for _, f := range o.Features {
		if f != CodecCBOR && f.In(version) && (slices.Contains(h.Requires, f) || slices.Contains(h.Supports, f)) {
			agreed.Features = append(agreed.Features, f)
		}
	}
	if missing := without(h.Requires, agreed.Features); missing != "" {
		return Agreed{}, Fatal(CodeMissingRequiredFeature, BlamePlugin, "this plugin lacks a required feature in version "+version.String()+": "+missing)
	}
	return agreed, nil
}

// choose returns the highest version that both speak.
func choose(host VersionRange, o Offer) (Version, *Error) {
	low, high := o.lowest(), o.highest()
	if host.Min.Compare(low) > 0 {
		low = host.Min
	}
	if host.Max.Compare(high) < 0 {
		high = host.Max
	}
	if low.Compare(high) <= 0 && low.Major == high.Major {
		return high, nil
	}
	own := o.Range()
	refusal := Fatal(CodeUnsupportedProtocol, BlamePlugin, "this plugin speaks the versions "+own.Min.String()+" to "+own.Max.String())
	refusal.SupportedProtocol = &own
	recommended := own.Max
	if host.Max.Compare(own.Min) < 0 {
		recommended = own.Min
	}
	refusal.RecommendedVersion = &recommended
	return Version{}, refusal
}

// without lists what of the wanted features is not there.
func without(wanted, have []Feature) string {
	var missing []string
	for _, f := range wanted {
		if !slices.Contains(have, f) {
			missing = append(missing, string(f))
		}
	}
	return strings.Join(missing, ", ")
}

// Ack returns the helloAck for what was agreed.
func (a Agreed) Ack(o Offer, manifestDigest string, plugin Identity, deprecations []Deprecation) *HelloAck {
	return &HelloAck{
		ProtocolVersion: a.Version, EnabledFeatures: a.Features, Requires: o.Needs, Codec: CodecJSON,
		MaxFrameBytes: a.MaxFrameBytes, ManifestDigest: manifestDigest, Plugin: plugin, Deprecations: deprecations,
	}
}

// Confirm is the host's side of a negotiation: it holds the plugin's choice
// against its own hello. Whether the identity and the manifest are the expected
// ones is for the host to compare.
func Confirm(h *Hello, ack *HelloAck) (Agreed, *Error) {
	known := slices.Concat(h.Requires, h.Supports)
	chosen := ack.ProtocolVersion
	switch {
	case chosen.Compare(h.Protocol.Min) < 0 || chosen.Compare(h.Protocol.Max) > 0 ||
		chosen.Compare(MinVersion) < 0 || chosen.Compare(MaxVersion) > 0:
		own := h.Protocol
		refusal := Fatal(CodeUnsupportedProtocol, BlamePlugin, "the plugin chose a version that was not offered")
		refusal.SupportedProtocol = &own
		return Agreed{}, refusal
	case ack.Codec != CodecJSON || !slices.Contains(h.Codecs, ack.Codec):
		return Agreed{}, Fatal(CodeStateViolation, BlamePlugin, "the plugin chose a codec that was not offered")
	case ack.MaxFrameBytes > h.MaxFrameBytes:
		return Agreed{}, Fatal(CodeStateViolation, BlamePlugin, "the plugin chose larger frames than were offered")
	}
	if missing := without(ack.Requires, known); missing != "" {
		return Agreed{}, Fatal(CodeMissingRequiredFeature, BlamePlugin, "the host lacks a feature that the plugin requires: "+missing)
	}
	for _, f := range ack.EnabledFeatures {
		if !slices.Contains(known, f) || !f.In(chosen) {
			return Agreed{}, Fatal(CodeStateViolation, BlamePlugin, "the plugin turned on a feature that was not offered or is not in version "+chosen.String())
		}
	}
	if missing := without(h.Requires, ack.EnabledFeatures); missing != "" {
		return Agreed{}, Fatal(CodeMissingRequiredFeature, BlamePlugin, "the plugin left off a feature that the host requires: "+missing)
	}
	if missing := without(ack.Requires, ack.EnabledFeatures); missing != "" {
		return Agreed{}, Fatal(CodeMissingRequiredFeature, BlamePlugin, "the plugin left off a feature that it requires itself: "+missing)
	}
	return Agreed{Version: chosen, Features: ack.EnabledFeatures, MaxFrameBytes: ack.MaxFrameBytes}, nil
}

// Fatal returns an error that ends the connection.
func Fatal(code Code, blame Blame, message string) *Error {
	return &Error{Code: code, Message: message, BlameDomain: code.Blame(blame), Severity: SeverityFatal}
}

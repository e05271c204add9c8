package wire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/plugin/wire"
)

func versions(text string) wire.VersionRange {
	from, to, _ := strings.Cut(text, "-")
	a, ok1 := wire.ParseVersion(from)
	b, ok2 := wire.ParseVersion(to)
	if !ok1 || !ok2 {
		panic(text)
	}
	return wire.VersionRange{Min: a, Max: b}
}

func features(text string) (list []wire.Feature) {
	for _, f := range strings.Fields(text) {
		list = append(list, wire.Feature(f))
	}
	return list
}

func TestNegotiation(t *testing.T) {
	const all = "flow.credit.v1 cancel.v1 receipt.v1 health.watch.v1 codec.cbor.v1"
	for _, tc := range []struct {
		name               string
		host, requires     string
		supports           string
		plugin, offer      string
		needs              string
		want               string // version and features, or a code
		supported, advised string
	}{
		{"same", "1.0-1.2", "", all, "1.0-1.2", all, "", "1.2 flow.credit.v1 cancel.v1 receipt.v1 health.watch.v1", "", ""},
		{"lower plugin", "1.0-1.2", "", all, "1.0-1.1", all, "", "1.1 flow.credit.v1 cancel.v1 health.watch.v1", "", ""},
		{"lower host", "1.0-1.0", "", all, "1.0-1.2", all, "", "1.0 health.watch.v1", "", ""},
		{"newer host", "1.1-2.3", "", all, "1.0-1.2", all, "", "1.2 flow.credit.v1 cancel.v1 receipt.v1 health.watch.v1", "", ""},
		{"newer plugin", "1.0-1.2", "", all, "1.0-2.0", all, "", "1.2 flow.credit.v1 cancel.v1 receipt.v1 health.watch.v1", "", ""},
		{"manifest's order", "1.2-1.2", "receipt.v1", "cancel.v1", "1.0-1.2", "cancel.v1 receipt.v1", "", "1.2 cancel.v1 receipt.v1", "", ""},
		{"unknown optional", "1.0-1.2", "", "warp.v9 cancel.v1", "1.0-1.2", "cancel.v1", "", "1.2 cancel.v1", "", ""},
		{"no major in common", "2.0-2.1", "", "", "1.0-1.2", "", "", "unsupported_protocol", "1.0-1.2", "1.2"},
		{"host too old", "1.0-1.0", "", all, "1.1-1.2", all, "", "unsupported_protocol", "1.1-1.2", "1.1"},
		{"host too new", "1.2-1.2", "", all, "1.0-1.1", all, "", "unsupported_protocol", "1.0-1.1", "1.1"},
		{"upside down", "1.2-1.0", "", all, "1.0-1.2", all, "", "unsupported_protocol", "1.0-1.2", "1.2"},
		{"downgrade loses streams", "1.0-1.0", "", all, "1.0-1.2", all, "flow.credit.v1", "unsupported_protocol", "1.1-1.2", "1.1"},
		{"downgrade keeps streams", "1.0-1.1", "", all, "1.0-1.2", all, "flow.credit.v1", "1.1 flow.credit.v1 cancel.v1 health.watch.v1", "", ""},
		{"heartbeats need 1.2", "1.0-1.1", "", all, "1.0-1.2", all, "heartbeat.v1", "unsupported_protocol", "1.2-1.2", "1.2"},
		{"required and there", "1.0-1.2", "cancel.v1", "", "1.0-1.2", all, "", "1.2 cancel.v1", "", ""},
		{"required and unknown", "1.0-1.2", "warp.v9", all, "1.0-1.2", all, "", "missing_required_feature", "", ""},
		{"required and not offered", "1.0-1.2", "heartbeat.v1", all, "1.0-1.2", all, "", "missing_required_feature", "", ""},
		{"required and too new for the version", "1.0-1.1", "receipt.v1", all, "1.0-1.2", all, "", "missing_required_feature", "", ""},
		{"required codec", "1.0-1.2", "codec.cbor.v1", all, "1.0-1.2", all, "", "missing_required_feature", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hello := &wire.Hello{HostVersion: "1", Protocol: versions(tc.host), Requires: features(tc.requires), Supports: features(tc.supports),
				Codecs: []string{"cbor", "json"}, MaxFrameBytes: 1 << 20}
			offer := wire.Offer{Protocol: versions(tc.plugin), Features: features(tc.offer), Needs: features(tc.needs), MaxFrameBytes: 8 << 20}
			agreed, refusal := wire.Accept(hello, offer)
			got := strings.TrimSpace(agreed.Version.String() + " " + strings.Trim(fmt.Sprint(agreed.Features), "[]"))
			if refusal != nil {
				got = string(refusal.Code)
				if refusal.Severity != wire.SeverityFatal || refusal.Retryable || refusal.BlameDomain != wire.BlamePlugin {
					t.Errorf("%+v", refusal)
				}
				if tc.supported != "" && (refusal.SupportedProtocol == nil || *refusal.SupportedProtocol != versions(tc.supported) ||
					refusal.RecommendedVersion == nil || refusal.RecommendedVersion.String() != tc.advised) {
					t.Errorf("supported %v, recommended %v", refusal.SupportedProtocol, refusal.RecommendedVersion)
				}
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if refusal != nil {
				return
			}
			// What a plugin accepts, its host confirms.
			confirmed, refusal := wire.Confirm(hello, agreed.Ack(offer, "", wire.Identity{}, nil))
			if tc.needs == "" && (refusal != nil || confirmed.Version != agreed.Version || !slices.Equal(confirmed.Features, agreed.Features) || confirmed.MaxFrameBytes != 1<<20) {
				t.Errorf("confirmed %+v, %v", confirmed, refusal)
			}
		})
	}
	hello := &wire.Hello{Protocol: versions("1.0-1.2"), Codecs: []string{"cbor"}, MaxFrameBytes: 1 << 20}
	if _, refusal := wire.Accept(hello, wire.Offer{Protocol: versions("1.0-1.2"), MaxFrameBytes: 1}); refusal == nil || refusal.Code != wire.CodeMissingRequiredFeature {
		t.Errorf("no common codec: %v", refusal)
	}
}

func TestConfirm(t *testing.T) {
	hello := &wire.Hello{Protocol: versions("1.0-1.2"), Requires: features("cancel.v1"), Supports: features("progress.v1 receipt.v1"), Codecs: []string{"json"}, MaxFrameBytes: 4096}
	good := func() *wire.HelloAck {
		return &wire.HelloAck{ProtocolVersion: wire.Version{Major: 1, Minor: 1}, EnabledFeatures: features("cancel.v1 progress.v1"), Requires: features("progress.v1"), Codec: "json", MaxFrameBytes: 4096}
	}
	for name, tc := range map[string]struct {
		change func(*wire.HelloAck)
		want   wire.Code
	}{
		"good":                      {func(*wire.HelloAck) {}, ""},
		"version below":             {func(a *wire.HelloAck) { a.ProtocolVersion = wire.Version{Major: 0, Minor: 9} }, wire.CodeUnsupportedProtocol},
		"version above":             {func(a *wire.HelloAck) { a.ProtocolVersion = wire.Version{Major: 1, Minor: 3} }, wire.CodeUnsupportedProtocol},
		"codec":                     {func(a *wire.HelloAck) { a.Codec = "cbor" }, wire.CodeStateViolation},
		"frames":                    {func(a *wire.HelloAck) { a.MaxFrameBytes = 4097 }, wire.CodeStateViolation},
		"unknown requirement":       {func(a *wire.HelloAck) { a.Requires = features("heartbeat.v1") }, wire.CodeMissingRequiredFeature},
		"feature never offered":     {func(a *wire.HelloAck) { a.EnabledFeatures = features("cancel.v1 progress.v1 health.watch.v1") }, wire.CodeStateViolation},
		"feature of a later minor":  {func(a *wire.HelloAck) { a.EnabledFeatures = features("cancel.v1 progress.v1 receipt.v1") }, wire.CodeStateViolation},
		"required feature left off": {func(a *wire.HelloAck) { a.EnabledFeatures = features("progress.v1") }, wire.CodeMissingRequiredFeature},
		"own requirement left off":  {func(a *wire.HelloAck) { a.EnabledFeatures = features("cancel.v1") }, wire.CodeMissingRequiredFeature},
	} {
		ack := good()
		tc.change(ack)
		_, refusal := wire.Confirm(hello, ack)
		if got := wire.Code(""); refusal != nil && refusal.Code != tc.want || refusal == nil && got != tc.want {
			t.Errorf("%s: %v, want %s", name, refusal, tc.want)
		}
	}
}

func TestCredit(t *testing.T) {
	var c wire.Credit
	if c.Take(0) || c.TooLarge(1<<40) {
		t.Error("no credit is some")
	}
	c.Grant(2, 100)
	if !c.Take(60) || c.Take(41) || !c.Take(40) || c.Take(0) {
		items, bytes := c.Left()
		t.Errorf("left %d items, %d bytes", items, bytes)
	}
	if !c.TooLarge(101) || c.TooLarge(100) {
		t.Error("an item larger than every grant")
	}
	c.Grant(1, 150)
	if c.TooLarge(150) || !c.Take(150) {
		t.Error("grants do not add")
	}
	c.Grant(1<<62, 1<<62)
	c.Grant(1<<62, 1<<62)
	c.Grant(1<<62, 1<<62)
	if items, bytes := c.Left(); items < 1<<62 || bytes < 1<<62 {
		t.Error("credit overflowed")
	}

	var r wire.Credit // the receiver's ledger
	r.Grant(1, 100)
	if !r.Receive(100) || !r.Receive(10) || r.Receive(10) {
		t.Error("one item beyond the credit is tolerated, and no second")
	}
	r.Grant(1, 5)
	if r.Receive(1) {
		t.Error("the bytes are still overdrawn")
	}
	r.Grant(1, 5)
	if !r.Receive(1) || r.Receive(1) {
		t.Error("the grants made up for the overdraft; one more is tolerated")
	}
	r = wire.Credit{}
	r.Grant(5, 10)
	if !r.Receive(11) || r.Receive(1) {
		t.Error("an item that bytes alone do not cover is the tolerated one")
	}
}

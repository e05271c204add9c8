package commands

import (
	"fmt"
	"strings"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
)

// sessionData is what only a session package's manifest says.
type sessionData struct {
	Publisher      string          `json:"publisher" doc:"The id of who says to have made it: a claim, which signatures may back."`
	PublisherName  string          `json:"publisherName" doc:"The name that the publisher gives itself."`
	MinProtocol    string          `json:"minProtocol" doc:"The lowest version of the protocol that it speaks."`
	MaxProtocol    string          `json:"maxProtocol" doc:"The highest."`
	Features       []string        `json:"features" doc:"The features of the protocol that it knows."`
	Operations     []operationInfo `json:"operations" doc:"What it can be asked for."`
	OS             []string        `json:"os" doc:"The systems that it runs on."`
	Architectures  []string        `json:"architectures" doc:"The architectures that it runs on."`
	MinHostVersion string          `json:"minHostVersion" doc:"The lowest version of this program that it runs under, or empty."`
	Destinations   []string        `json:"destinations" doc:"Where it says to connect to."`
	Accepts        []string        `json:"accepts" doc:"The classes of data that it takes."`
	Settings       string          `json:"settings" doc:"The schema of its settings, empty where it has none."`
	Deprecations   []deprecation   `json:"deprecations" doc:"Parts of it that go away."`
}

type operationInfo struct {
	Name           string `json:"name" doc:"CAPABILITY/OPERATION, as run takes it."`
	Capability     string `json:"capability" doc:"The version of the capability."`
	Version        string `json:"version" doc:"The operation's version."`
	RequestSchema  string `json:"requestSchema" doc:"The schema of its input, or of each item of its input."`
	ResponseSchema string `json:"responseSchema" doc:"The schema of its result, or of each item of its result."`
	StreamsIn      bool   `json:"streamsIn" doc:"Whether its input is a stream of items."`
	StreamsOut     bool   `json:"streamsOut" doc:"Whether its result is a stream of items."`
	Idempotent     bool   `json:"idempotent" doc:"Whether it may be repeated without a second effect."`
	Receipts       bool   `json:"receipts" doc:"Whether it keeps receipts."`
}

type deprecation struct {
	Element     string `json:"element" doc:"KIND:NAME."`
	Since       string `json:"since" doc:"When it was deprecated."`
	SunsetAfter string `json:"sunsetAfter" doc:"From then on it fails."`
	Replacement string `json:"replacement" doc:"What takes its place, or empty."`
}

// newSessionData returns nil for a package of the call protocol.
func newSessionData(m pkgmgr.Manifest) *sessionData {
	s := m.Session
	if s == nil {
		return nil
	}
	d := &sessionData{Publisher: s.Publisher.PublisherID, PublisherName: s.Publisher.DisplayName, MinProtocol: s.Protocol.MinVersion,
		MaxProtocol: s.Protocol.MaxVersion, Features: words(s.Protocol.Features), OS: words(s.Runtime.OS), Architectures: words(s.Runtime.Architectures),
		MinHostVersion: sessionmanifest.Or(s.Runtime.MinHostVersion, ""), Operations: newOperations(s)}
	if s.Network != nil {
		for _, one := range s.Network.Destinations {
			text := one.Scheme + "://" + one.HostPattern
			if one.Port != nil {
				text += fmt.Sprintf(":%d", *one.Port)
			}
			d.Destinations = append(d.Destinations, text)
		}
	}
	for _, c := range sessionmanifest.Classes {
		if s.DataDeclarations.Accepts(c) {
			d.Accepts = append(d.Accepts, string(c))
		}
	}
	if s.Settings != nil && s.Settings.Schema != nil {
		d.Settings = s.Settings.Schema.URI
	}
	for _, one := range s.Deprecations {
		d.Deprecations = append(d.Deprecations, deprecation{one.Element, one.DeprecatedSince, one.SunsetAfter, sessionmanifest.Or(one.Replacement, "")})
	}
	return d
}

func newOperations(s *sessionmanifest.Manifest) []operationInfo {
	list := []operationInfo{}
	for _, c := range s.Capabilities {
		for _, o := range c.Operations {
			list = append(list, operationInfo{Name: c.ID + "/" + o.Name, Capability: c.Version, Version: o.OperationVersion, RequestSchema: o.RequestSchema.URI,
				ResponseSchema: o.ResponseSchema.URI, StreamsIn: o.Streaming.Request, StreamsOut: o.Streaming.Response,
				Idempotent: o.Idempotent, Receipts: o.HasReceipts()})
		}
	}
	return list
}

// network and classes say in words what a manifest declares.
func (d *sessionData) network() string {
	if len(d.Destinations) == 0 {
		return "says that it connects to nothing; nothing keeps it from doing so"
	}
	return "says that it connects to " + strings.Join(d.Destinations, ", ") + "; nothing keeps it from connecting elsewhere"
}

func (d *sessionData) classes() string {
	if len(d.Accepts) == 0 {
		return "accepts data of no class; it can read whatever you can"
	}
	return "accepts " + strings.Join(d.Accepts, ", ") + "; it can read whatever you can"
}

// session tells what only a session package's manifest says.
func (p *page) session(d *sessionData) {
	p.field("publisher", "%s (%s)", d.Publisher, d.PublisherName)
	p.field("versions", "session protocol %s to %s", d.MinProtocol, d.MaxProtocol)
	p.field("features", "%s", orNone(d.Features))
	platforms := strings.Join(d.OS, ", ") + " on " + strings.Join(d.Architectures, ", ")
	if d.MinHostVersion != "" {
		platforms += ", under switchyard " + d.MinHostVersion + " or newer"
	}
	p.field("runs on", "%s", platforms)
	if d.Settings != "" {
		p.field("settings", "%s", d.Settings)
	}
	for _, one := range d.Deprecations {
		text := one.Element + " ends after " + one.SunsetAfter
		if one.Replacement != "" {
			text += "; instead: " + one.Replacement
		}
		p.field("deprecated", "%s", text)
	}
}

// operations lists what a session package can be asked for.
func (p *page) operations(list []operationInfo) {
	for _, o := range list {
		var traits []string
		for _, t := range []struct {
			is   bool
			text string
		}{{o.StreamsIn, "takes a stream"}, {o.StreamsOut, "answers with a stream"}, {o.Idempotent, "may be repeated"}, {o.Receipts, "keeps receipts"}} {
			if t.is {
				traits = append(traits, t.text)
			}
		}
		text := o.Name + " " + o.Version
		if len(traits) > 0 {
			text += ": " + strings.Join(traits, ", ")
		}
		p.line("  %s", text)
	}
}

package pkgmgr

import (
	"fmt"
	"strings"

	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
)

// A sessionMember is one thing that a session manifest says, as a review compares it.
type sessionMember struct{ name, value string }

// sessionMembers lists what a session manifest says, the same members in the same
// order for every manifest.
func sessionMembers(m *sessionmanifest.Manifest) []sessionMember {
	var operations, permissions, destinations, deprecations []string
	for _, c := range m.Capabilities {
		for _, o := range c.Operations {
			text := fmt.Sprintf("%s/%s %s (%s)", c.ID, o.Name, o.OperationVersion, c.Version)
			for _, t := range []struct {
				is   bool
				text string
			}{{o.Streaming.Request, "stream in"}, {o.Streaming.Response, "stream out"}, {o.Idempotent, "idempotent"}, {!o.HasReceipts(), "no receipts"}} {
				if t.is {
					text += ", " + t.text
				}
			}
			operations = append(operations, text)
		}
	}
	for _, p := range m.Permissions {
		text := p.ID + ": " + string(p.Scope)
		if p.Required {
			text += ", required"
		}
		permissions = append(permissions, text)
	}
	if m.Network != nil {
		for _, d := range m.Network.Destinations {
			destinations = append(destinations, fmt.Sprintf("%s://%s:%d", d.Scheme, d.HostPattern, sessionmanifest.Or(d.Port, 0)))
		}
	}
	for _, d := range m.Deprecations {
		deprecations = append(deprecations, d.Element+" until "+d.SunsetAfter)
	}
	list := []sessionMember{
		{"publisher", m.Publisher.PublisherID},
		{"name", m.Plugin.DisplayName},
		{"version", m.PackageVersion},
		{"protocol", m.Protocol.MinVersion + " to " + m.Protocol.MaxVersion + " with " + strings.Join(m.Protocol.Features, " ")},
		{"entry points", entries(m.EntryPoints)},
		{"operations", strings.Join(operations, "; ")},
		{"schemas", schemas(m)},
		{"permissions", strings.Join(permissions, "; ")},
		{"runs on", fmt.Sprint(m.Runtime.OS, m.Runtime.Architectures, " ", sessionmanifest.Or(m.Runtime.MinHostVersion, ""))},
		{"network", strings.Join(destinations, " ")},
		{"deprecations", strings.Join(deprecations, "; ")},
	}
	data, life := "", ""
	if d := m.DataDeclarations; d != nil {
		data = fmt.Sprint(d.AcceptedClasses, " in ", sessionmanifest.Or(d.DefaultInboundClass, ""), " receipts ", sessionmanifest.Or(d.DefaultReceiptClass, ""))
	}
	if l := m.Lifecycle; l != nil {
		life = fmt.Sprintf("health watch %t, heartbeat %t, background %s", l.SupportsHealthWatch, l.RequiresHeartbeat, sessionmanifest.Or(l.BackgroundBehavior, ""))
	}
	return append(list, sessionMember{"data classes", data}, sessionMember{"lifecycle", life})
}

func entries(e sessionmanifest.EntryPoints) string {
	var list []string
	if x := e.Executable; x != nil {
		words := []string{quoteArgument(x.Path)}
		for _, a := range x.Arguments {
			words = append(words, quoteArgument(a))
		}
		list = append(list, strings.Join(words, " "))
	}
	if p := e.Python; p != nil {
		list = append(list, "python "+p.Version+" "+p.Module+":"+p.Callable)
	}
	if d := e.DotNet; d != nil {
		list = append(list, "dotnet "+d.TargetFramework+" "+d.Assembly+" "+d.Type)
	}
	return strings.Join(list, "; ")
}

// schemas shows each schema by the start of its digest: a review says that one
// changed, and the file is among those that changed.
func schemas(m *sessionmanifest.Manifest) string {
	var list []string
	for _, r := range m.SchemaRefs() {
		sum := strings.ToLower(strings.TrimPrefix(r.Digest, "sha256:"))
		list = append(list, r.URI+"@"+sum[:min(len(sum), 12)])
	}
	if m.Settings != nil {
		list = append(list, "settings "+sessionmanifest.Or(m.Settings.Version, ""))
	}
	return strings.Join(list, " ")
}

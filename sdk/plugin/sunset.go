package plugin

import (
	"time"

	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
)

// A sunset is the end of an operation, or of a whole capability.
type sunset struct {
	kind, name string
	at         time.Time
}

func (p *Package) findSunsets() {
	for _, d := range p.Manifest.Deprecations {
		kind, name, _ := sessionmanifest.SplitElement(d.Element)
		if kind == sessionmanifest.KindCapability || kind == sessionmanifest.KindOperation {
			p.sunsets = append(p.sunsets, sunset{kind, name, d.Sunset()})
		}
	}
}

// sunk reports whether an operation is past its sunset.
func (p *Package) sunk(capability, operation string, now time.Time) bool {
	for _, s := range p.sunsets {
		if now.After(s.at) && (s.kind == sessionmanifest.KindCapability && s.name == capability ||
			s.kind == sessionmanifest.KindOperation && s.name == capability+"/"+operation) {
			return true
		}
	}
	return false
}

package verify

import "runtime/debug"

// build is set by the linker in both programs alike.
var build string

// Build names how this program was built. Two programs of one build have the same
// name; "devel" is what a plain go build makes where nothing else is known.
func Build() string {
	if build != "" {
		return build
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	name := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
			name += " " + s.Value
		}
	}
	if name == "" || name == "(devel)" {
		return "devel"
	}
	return name
}

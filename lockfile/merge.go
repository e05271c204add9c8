package lockfile

import "slices"

// A Conflict is one difference that Merge does not resolve: Was is our value and
// Now theirs, of a plugin that both sides changed. For Removed and Added one
// side removed the plugin and the other changed it.
type Conflict = Change

// Merge joins two locks that grew from base; base is nil when there was none. An
// entry that only one side changed is taken from that side. An entry that both
// sides changed must agree in everything, and may differ only in which platforms
// it has: differing versions, sources, grants, signers, digests or evidence are
// conflicts, never a union. Revocation floors take the higher value, and one
// that either side has stays.
//
// Without a base, what only one side has counts as added by it. With conflicts
// the returned lock is nil. A merged lock is an edit like any other: it approves
// nothing.
func Merge(base, ours, theirs *File) (*File, []Conflict) {
	merged, conflicts := merge(base, ours, theirs)
	if len(conflicts) > 0 {
		return nil, conflicts
	}
	return merged, nil
}

// Take says which side decides where Merge finds a conflict.
type Take int

const (
	TakeNone Take = iota // neither: it stays a conflict
	TakeOurs
	TakeTheirs
)

// taken adds to merged, for each plugin in conflict, what the taken side says of it.
func taken(merged *File, conflicts []Conflict, ours, theirs *File, take Take) *File {
	from := ours
	if take == TakeTheirs {
		from = theirs
	}
	for _, c := range conflicts {
		if p, ok := from.Plugin(c.ID); ok {
			merged = merged.With(p)
		}
	}
	return merged
}

// merge returns what is joined and leaves out each plugin in conflict.
func merge(base, ours, theirs *File) (*File, []Conflict) {
	base, ours, theirs = base.canonical(), ours.canonical(), theirs.canonical()
	merged := &File{Revocations: slices.Concat(ours.Revocations, theirs.Revocations)}
	var conflicts []Conflict
	for _, id := range pluginIDs(base, ours, theirs) {
		p, more := mergePlugin(side(base, id), side(ours, id), side(theirs, id))
		conflicts = append(conflicts, more...)
		if p != nil && len(more) == 0 {
			merged.Plugins = append(merged.Plugins, *p)
		}
	}
	merged.sort()
	return merged, conflicts
}

// side returns a lock's entry of an id, or nil.
func side(f *File, id string) *Plugin {
	if p, ok := f.Plugin(id); ok {
		return &p
	}
	return nil
}

func samePlugin(a, b *Plugin) bool {
	if a == nil || b == nil {
		return a == b
	}
	return len(diffPlugin(*a, *b)) == 0
}

// mergePlugin merges one id; nil stands for absence on a side.
func mergePlugin(base, ours, theirs *Plugin) (*Plugin, []Conflict) {
	switch {
	case samePlugin(ours, theirs), samePlugin(theirs, base):
		return ours, nil
	case samePlugin(ours, base):
		return theirs, nil
	case ours == nil:
		return nil, []Conflict{{Kind: Added, ID: theirs.ID, Now: theirs.Version}}
	case theirs == nil:
		return nil, []Conflict{{Kind: Removed, ID: ours.ID, Was: ours.Version}}
	}
	var conflicts []Conflict
	for _, c := range diffPlugin(*ours, *theirs) {
		if c.Kind != PlatformAdded && c.Kind != PlatformMissing {
			conflicts = append(conflicts, c)
		}
	}
	if len(conflicts) > 0 {
		return nil, conflicts
	}
	return mergePlatforms(base, *ours, *theirs)
}

// mergePlatforms joins the platforms of two entries that agree in all else.
func mergePlatforms(base *Plugin, ours, theirs Plugin) (*Plugin, []Conflict) {
	var before map[string]Platform
	if base != nil && base.Version == ours.Version {
		before = base.Platforms
	}
	merged := ours.canonical()
	var oneSided, conflicts []Conflict
	for _, key := range sortedSet(append(ours.keys(), theirs.keys()...)) {
		a, inOurs := ours.Platforms[key]
		b, inTheirs := theirs.Platforms[key]
		if inOurs && inTheirs {
			continue
		}
		c := Conflict{Kind: PlatformAdded, ID: ours.ID, Platform: key, Was: string(a.Package), Now: string(b.Package)}
		if inOurs {
			c.Kind = PlatformMissing
		}
		oneSided = append(oneSided, c)
		switch old, inBase := before[key]; {
		case !inBase && inTheirs:
			merged.Platforms[key] = b
		case !inBase:
		case inOurs && samePlatform(a, old), inTheirs && samePlatform(b, old):
			delete(merged.Platforms, key) // the other side removed it
		default:
			conflicts = append(conflicts, c) // removed on one side, changed on the other
		}
	}
	switch {
	case len(conflicts) > 0:
		return nil, conflicts
	case len(merged.Platforms) == 0, mixesAny(merged.Platforms):
		return nil, oneSided // each side is a lock, together they are none
	}
	return &merged, nil
}

func samePlatform(a, b Platform) bool {
	return a.Archive == b.Archive && a.Package == b.Package && a.Manifest == b.Manifest &&
		a.Fingerprint == b.Fingerprint && slices.Equal(a.Evidence, b.Evidence)
}

package archive

import (
	"errors"
	"fmt"
)

// A Rule names what an entry broke. Its spelling is stable.
type Rule string

// Rules about the container.
const (
	RuleFormat      Rule = "format"           // not an archive that is read here
	RuleCorrupt     Rule = "corrupt"          // a checksum, a length or a structure is wrong
	RuleTruncated   Rule = "truncated"        // the data end before the archive does
	RuleTrailing    Rule = "trailing-data"    // something follows the archive's end
	RuleUnlisted    Rule = "unlisted-data"    // bytes that belong to no entry
	RuleDisagree    Rule = "headers-disagree" // two headers say different things of one entry
	RuleUnsupported Rule = "unsupported"      // an optional feature that is not read here
	RuleEncrypted   Rule = "encrypted"        // an entry needs a password
	RuleGlobal      Rule = "global-header"    // a tar's global header names more than a comment
	RuleEmpty       Rule = "empty"            // no file at all
)

// Rules about one path.
const (
	RuleAbsolute  Rule = "absolute-path" // starts at a root or a drive
	RuleParent    Rule = "parent-path"   // has a ".." component
	RuleForm      Rule = "path-form"     // empty, or with an empty or "." component
	RuleBackslash Rule = "backslash"     // a separator on some systems only
	RuleControl   Rule = "control"       // control characters, NUL included
	RuleEncoding  Rule = "encoding"      // not, or not surely, UTF-8
	RuleInvisible Rule = "invisible"     // bidirectional, zero-width or unprintable characters
	RuleReserved  Rule = "reserved-name" // illegal on some operating system
)

// Rules about several paths.
const (
	RuleDuplicate Rule = "duplicate"    // the same path twice
	RuleCollision Rule = "collision"    // paths that differ in case or Unicode form only
	RuleUnderFile Rule = "under-a-file" // one path is a file and a directory
)

// Rules about what an entry is.
const (
	RuleLink    Rule = "link"    // a hard or symbolic link
	RuleSpecial Rule = "special" // a device, pipe, socket or the like
	RuleSparse  Rule = "sparse"  // a file with holes
	RuleMode    Rule = "mode"    // set-user-id, set-group-id, sticky, or file capabilities
)

// Bounds, one for each field of Limits that can be exceeded.
const (
	RuleArchiveSize  Rule = "archive-size"
	RuleUnpackedSize Rule = "unpacked-size"
	RuleEntries      Rule = "entries"
	RulePathLength   Rule = "path-length"
	RuleDepth        Rule = "depth"
	RuleRatio        Rule = "ratio"
	RuleWindow       Rule = "zstd-window"
	RuleHeaderSize   Rule = "header-size"
	RuleOverhead     Rule = "overhead"
)

// Rules about a directory as a source.
const (
	RuleIgnoreFile Rule = "ignore-file" // a pattern that means nothing
	RuleChanged    Rule = "changed"     // a file changed while it was read
)

// A Refusal says that an archive or tree is not acceptable, and why.
type Refusal struct {
	Archive string // as the caller called it; a directory's path for a tree
	Entry   string // as the archive spells it; "" if the fault is not one entry's
	Rule    Rule
	Detail  string // one clause, lower case; may hold text from the archive
}

// Error holds names of the archive as they are: who shows it escapes it.
func (r *Refusal) Error() string {
	where := `"` + r.Archive + `"`
	if r.Entry != "" {
		where += `: entry "` + r.Entry + `"`
	}
	return fmt.Sprintf("%s: %s: %s", where, r.Rule, r.Detail)
}

// ErrFormatName is returned for a file name whose ending names no Format.
var ErrFormatName = errors.New("file name does not end in .tar.zst, .tar.gz or .zip")

// refuse makes a Refusal whose Archive is filled in at the package's boundary.
func refuse(entry string, rule Rule, format string, args ...any) *Refusal {
	return &Refusal{Entry: entry, Rule: rule, Detail: fmt.Sprintf(format, args...)}
}

// named gives a refusal on its way out the archive's name and, where the fault
// was found below the level of entries, the entry that was being read.
func named(err error, archive, entry string) error {
	var r *Refusal
	if errors.As(err, &r) {
		r.Archive = archive
		if r.Entry == "" {
			r.Entry = entry
		}
		return r
	}
	return err
}

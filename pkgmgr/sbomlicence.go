package pkgmgr

import (
	"path"
	"slices"
	"strings"
)

// maxLicenceText bounds a file that is looked at for a licence's text, in bytes.
const maxLicenceText = 64 << 10

// isLicenceFile reports whether a file has a name under which licences stand.
func isLicenceFile(p string) bool {
	base := strings.ToLower(path.Base(p))
	return strings.HasPrefix(base, "licen") || strings.HasPrefix(base, "copying")
}

// A licenceText is how the text of a licence is known: it has these phrases and none of
// the others, begins and ends as it does, and is no longer than it is with the names of its
// holders. Anything else may be a licence with conditions of somebody's own.
type licenceText struct {
	id      string
	most    int    // bytes of the text, its spaces made one
	heading string // "" where the holders' names come first
	phrases []string
	without []string
	endings []string
}

// licenceTexts lists the licences that are recognised. The GNU licences are not among
// them: their texts do not say whether a later version may be chosen, and that makes
// another licence.
func licenceTexts() []licenceText {
	const (
		source = "Redistributions of source code must retain the above copyright notice, this list of conditions and the following disclaimer."
		binary = "Redistributions in binary form must reproduce the above copyright notice, this list of conditions and the following disclaimer in the documentation"
		damage = "EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE."
	)
	return []licenceText{
		{id: "MIT", most: 1400, phrases: []string{
			`Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software`,
			"shall be included in all copies or substantial portions of the Software.", `THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND`},
			endings: []string{"OTHER DEALINGS IN THE SOFTWARE."}},
		{id: "Apache-2.0", most: 10500, heading: "Apache License Version 2.0, January 2004", phrases: []string{
			"TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION", "2. Grant of Copyright License.", "9. Accepting Warranty or Additional Liability.", "END OF TERMS AND CONDITIONS"},
			endings: []string{"END OF TERMS AND CONDITIONS", "limitations under the License."}},
		{id: "BSD-3-Clause", most: 2000, phrases: []string{source, binary, "Neither the name of", "may be used to endorse or promote products derived from this software without specific prior written permission."},
			without: []string{"All advertising materials", "nuclear"}, endings: []string{damage}},
		{id: "BSD-2-Clause", most: 1700, phrases: []string{source, binary, `"AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES`},
			without: []string{"Neither the name of", "endorse or promote", "advertising", "official policies"}, endings: []string{damage}},
		{id: "ISC", most: 1000, phrases: []string{
			"Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the above copyright notice and this permission notice appear in all copies.",
			`THE SOFTWARE IS PROVIDED "AS IS" AND`}, endings: []string{"THE USE OR PERFORMANCE OF THIS SOFTWARE."}},
		{id: "MPL-2.0", most: 17500, heading: "Mozilla Public License Version 2.0", phrases: []string{"1. Definitions", "10. Versions of the License", "This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0."},
			endings: []string{"as defined by the Mozilla Public License, v. 2.0."}},
		{id: "Unlicense", most: 1500, heading: "This is free and unencumbered software released into the public domain.", phrases: []string{"Anyone is free to copy, modify, publish, use, compile, sell, or distribute this software"},
			endings: []string{"<http://unlicense.org>", "<http://unlicense.org/>", "<https://unlicense.org>", "<https://unlicense.org/>"}},
		{id: "CC0-1.0", most: 7500, phrases: []string{"CC0 1.0 Universal", "Statement of Purpose", "4. Limitations and Disclaimers."}, endings: []string{"with respect to this CC0 or use of the Work."}},
	}
}

// recogniseLicence returns the SPDX id of the one licence that a text certainly is,
// else NOASSERTION.
func recogniseLicence(text []byte) string {
	words := strings.Join(strings.Fields(strings.NewReplacer("“", `"`, "”", `"`, "``", `"`, "''", `"`).Replace(string(text))), " ")
	var found []licenceText
	for _, l := range licenceTexts() {
		if l.within(words) {
			found = append(found, l)
		}
	}
	if len(found) != 1 || !found[0].bounds(words) {
		return noAssertion
	}
	return found[0].id
}

// within reports whether a licence is in a text, whatever else there is.
func (l licenceText) within(words string) bool {
	in := func(p string) bool { return strings.Contains(words, p) }
	return !slices.ContainsFunc(l.phrases, func(p string) bool { return !in(p) }) && !slices.ContainsFunc(l.without, in)
}

// bounds reports whether a text that a licence is in has no room for more.
func (l licenceText) bounds(words string) bool {
	return len(words) <= l.most && strings.HasPrefix(words, l.heading) &&
		slices.ContainsFunc(l.endings, func(e string) bool { return strings.HasSuffix(words, e) })
}

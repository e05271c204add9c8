package pkgmgr

import (
	"path"
	"strings"
)

// maxLicenceText bounds a file that is looked at for a licence's text, in bytes.
const maxLicenceText = 64 << 10

// isLicenceFile reports whether a file has a name under which licences stand.
func isLicenceFile(p string) bool {
	base := strings.ToLower(path.Base(p))
	return strings.HasPrefix(base, "licen") || strings.HasPrefix(base, "copying")
}

// A licenceText is how the text of a licence is known: every phrase must be in it, in
// any place, and none of the others. A text that begins otherwise may be a licence with
// conditions of somebody's own before it.
type licenceText struct {
	id      string
	most    int // bytes of the text, its spaces made one; 0: any
	heading string
	phrases []string
	without []string
}

// licenceTexts lists the licences that are recognised. The GNU licences are not among
// them: their texts do not say whether a later version may be chosen, and that makes
// another licence.
func licenceTexts() []licenceText {
	const (
		source = "Redistributions of source code must retain the above copyright notice, this list of conditions and the following disclaimer."
		binary = "Redistributions in binary form must reproduce the above copyright notice, this list of conditions and the following disclaimer in the documentation"
	)
	return []licenceText{
		{id: "MIT", most: 1400, phrases: []string{
			`Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software`,
			"shall be included in all copies or substantial portions of the Software.", `THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND`}},
		{id: "Apache-2.0", most: 12000, heading: "Apache License Version 2.0, January 2004", phrases: []string{
			"TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION", "2. Grant of Copyright License.", "9. Accepting Warranty or Additional Liability.", "END OF TERMS AND CONDITIONS"}},
		{id: "BSD-3-Clause", most: 2000, phrases: []string{source, binary, "Neither the name of", "may be used to endorse or promote products derived from this software without specific prior written permission."},
			without: []string{"All advertising materials", "nuclear"}},
		{id: "BSD-2-Clause", most: 1700, phrases: []string{source, binary, `"AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES`},
			without: []string{"Neither the name of", "endorse or promote", "advertising", "official policies"}},
		{id: "ISC", most: 1000, phrases: []string{
			"Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the above copyright notice and this permission notice appear in all copies.",
			`THE SOFTWARE IS PROVIDED "AS IS" AND`}},
		{id: "MPL-2.0", most: 17500, heading: "Mozilla Public License Version 2.0", phrases: []string{"1. Definitions", "10. Versions of the License", "This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0."}},
		{id: "Unlicense", most: 1500, heading: "This is free and unencumbered software released into the public domain.", phrases: []string{"Anyone is free to copy, modify, publish, use, compile, sell, or distribute this software"}},
		{id: "CC0-1.0", most: 7500, phrases: []string{"CC0 1.0 Universal", "Statement of Purpose", "4. Limitations and Disclaimers."}},
	}
}

// recogniseLicence returns the SPDX id of the one licence that a text certainly is,
// else NOASSERTION.
func recogniseLicence(text []byte) string {
	words := strings.Join(strings.Fields(strings.NewReplacer("“", `"`, "”", `"`, "``", `"`, "''", `"`).Replace(string(text))), " ")
	found := noAssertion
	for _, l := range licenceTexts() {
		if !l.is(words) {
			continue
		}
		if found != noAssertion {
			return noAssertion
		}
		found = l.id
	}
	return found
}

func (l licenceText) is(words string) bool {
	if l.most > 0 && len(words) > l.most || !strings.HasPrefix(words, l.heading) {
		return false
	}
	for _, p := range l.phrases {
		if !strings.Contains(words, p) {
			return false
		}
	}
	for _, p := range l.without {
		if strings.Contains(words, p) {
			return false
		}
	}
	return true
}

package main

import (
	"path"
	"strings"
	"unicode"

	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

const unknownLicence = "unknown"

// isLicenceFile reports whether a path is where a project states its licence:
// at the root by the usual names, or in LICENSES/ by SPDX id.
func isLicenceFile(p string) bool {
	dir, name := path.Split(p)
	if dir == "LICENSES/" {
		return extension(name) == ".txt"
	}
	if dir != "" {
		return false
	}
	if l := languageOf(name); l != "" && l != "Markdown" {
		return false // license.go is a program
	}
	upper := strings.ToUpper(name)
	for _, stem := range []string{"LICENSE", "LICENCE", "COPYING", "UNLICENSE"} {
		rest, ok := strings.CutPrefix(upper, stem)
		if ok && (rest == "" || strings.ContainsRune(".-_", rune(rest[0]))) {
			return true
		}
	}
	return false
}

func licenceFact(f file, max int64) plugin.Fact {
	fact := plugin.Fact{ID: "licence", Label: "Licence", Value: unknownLicence, Source: f.path}
	if id, ok := strings.CutPrefix(f.path, "LICENSES/"); ok {
		fact.Value = strings.TrimSuffix(id, path.Ext(id))
		return fact
	}
	text, err := readStart(f, max)
	if err != nil {
		fact.Warning = "cannot be read"
		return fact
	}
	ids := licences(string(text))
	switch {
	case len(ids) == 0:
		fact.Warning = "the text is not one that is recognized"
	default:
		fact.Value = strings.Join(ids, " and ")
		if strings.Contains(fact.Value, "GPL-") {
			fact.Warning = "the text alone does not say whether later versions apply"
		}
	}
	return fact
}

// A mark is what gives a licence away: phrases that its text must hold and
// phrases that it must not, all in the form that plain makes.
type mark struct {
	id           string
	has, without []string
}

const (
	bsdStart = "redistribution and use in source and binary forms, with or without modification, are permitted"
	bsdThird = "neither the name of"
	mitStart = "permission is hereby granted, free of charge, to any person obtaining a copy"
	mitTerms = "permission notice shall be included in all copies"
	iscStart = "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted"
	iscTerms = "provided that the above copyright notice and this permission notice appear in all copies"
)

var marks = []mark{
	{"AGPL-3.0", []string{"gnu affero general public license version 3, 19 november 2007"}, nil},
	{"GPL-2.0", []string{"gnu general public license version 2, june 1991"}, nil},
	{"GPL-3.0", []string{"gnu general public license version 3, 29 june 2007"}, nil},
	{"LGPL-2.1", []string{"gnu lesser general public license version 2.1, february 1999"}, nil},
	{"LGPL-3.0", []string{"gnu lesser general public license version 3, 29 june 2007"}, nil},
	{"Apache-2.0", []string{"apache license version 2.0, january 2004"}, nil},
	{"MPL-2.0", []string{"mozilla public license version 2.0", "covered software"}, nil},
	{"EPL-2.0", []string{"eclipse public license - v 2.0"}, nil},
	{"BSL-1.0", []string{"boost software license - version 1.0"}, nil},
	{"CC0-1.0", []string{"cc0 1.0 universal"}, nil},
	{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}, nil},
	{"Zlib", []string{"in no event will the authors be held liable", "altered source versions must be plainly marked as such"}, nil},
	{"BSD-3-Clause", []string{bsdStart, bsdThird}, nil},
	{"BSD-2-Clause", []string{bsdStart}, []string{bsdThird}},
	{"MIT", []string{mitStart, mitTerms}, nil},
	{"MIT-0", []string{mitStart}, []string{mitTerms}},
	{"ISC", []string{iscStart, iscTerms}, nil},
	{"0BSD", []string{iscStart}, []string{iscTerms}},
}

// licences returns the SPDX ids of the licences whose text is recognized.
func licences(text string) []string {
	text = plain(text)
	var ids []string
	for _, m := range marks {
		if containsAll(text, m.has) && !containsAny(text, m.without) {
			ids = append(ids, m.id)
		}
	}
	return ids
}

// plain lowers the case, makes every run of white space one space and drops
// what decorates lines in Markdown and in comments.
func plain(text string) string {
	fields := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return unicode.IsSpace(r) || r == '*' || r == '#' || r == '>'
	})
	return strings.Join(fields, " ")
}

func containsAll(text string, phrases []string) bool {
	for _, p := range phrases {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

func containsAny(text string, phrases []string) bool {
	for _, p := range phrases {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

package main

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// A library is the index's file and who may change it.
type library struct {
	path      string
	minLength int
	mu        sync.Mutex // held by who changes the file
}

// An index is the documents, and the lines in which each word stands.
type index struct {
	Documents map[string][]string `json:"documents"` // name to lines
	Words     map[string][]place  `json:"words"`
}

type place struct {
	Name string `json:"name"`
	Line int    `json:"line"` // from 1 on
}

type document struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

type hit struct {
	Name string `json:"name"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// load reads the index; a file that does not exist yet is an empty one.
func (x *library) load() (*index, error) {
	i := &index{Documents: map[string][]string{}, Words: map[string][]place{}}
	text, err := os.ReadFile(x.path)
	if errors.Is(err, os.ErrNotExist) {
		return i, nil
	}
	if err != nil {
		return nil, err
	}
	return i, json.Unmarshal(text, i)
}

// save replaces the index's file.
func (x *library) save(i *index) error {
	text, err := json.Marshal(i)
	if err != nil {
		return err
	}
	f, err := os.Create(x.path + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), x.path)
}

// put adds a document, or replaces the one of the same name.
func (i *index) put(d document, minLength int) {
	for word, places := range i.Words {
		i.Words[word] = slices.DeleteFunc(places, func(p place) bool { return p.Name == d.Name })
		if len(i.Words[word]) == 0 {
			delete(i.Words, word)
		}
	}
	lines := strings.Split(d.Text, "\n")
	i.Documents[d.Name] = lines
	for n, line := range lines {
		seen := map[string]bool{}
		for _, word := range words(line) {
			if !seen[word] && len([]rune(word)) >= minLength {
				seen[word] = true
				i.Words[word] = append(i.Words[word], place{d.Name, n + 1})
			}
		}
	}
}

// find returns the lines in which a word stands, by name and line.
func (i *index) find(word string) []hit {
	var hits []hit
	for _, p := range i.Words[strings.ToLower(word)] {
		hits = append(hits, hit{p.Name, p.Line, i.Documents[p.Name][p.Line-1]})
	}
	slices.SortFunc(hits, func(a, b hit) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	return hits
}

func (i *index) size() size { return size{len(i.Documents), len(i.Words)} }

func words(line string) []string {
	return strings.FieldsFunc(strings.ToLower(line), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

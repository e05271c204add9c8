package lockfile

import (
	"bytes"
	"slices"

	"github.com/switchyard-plugins/switchyard/lockfile/tomlstrict"
)

// MergeText merges three texts of a lock, as git hands them to a merge driver
// (%O, %A, %B). A base of white space only means that there was none. Without
// conflicts text is the canonical merged lock. With conflicts it is that lock
// with each plugin in conflict as a marked block of both sides and the base,
// which SplitConflict takes apart again. A side that is no valid lock is an
// error (Faults), and nothing is merged.
func MergeText(base, ours, theirs []byte) (text []byte, conflicts []Conflict, err error) {
	return mergeTexts([3]string{"base", "ours", "theirs"}, base, ours, theirs, TakeNone)
}

// mergeTexts is MergeText with the names that messages use.
func mergeTexts(names [3]string, base, ours, theirs []byte, take Take) (text []byte, conflicts []Conflict, err error) {
	var b *File
	if len(bytes.TrimSpace(base)) > 0 {
		if b, err = Parse(names[0], base); err != nil {
			return nil, nil, err
		}
	}
	o, err := Parse(names[1], ours)
	if err != nil {
		return nil, nil, err
	}
	t, err := Parse(names[2], theirs)
	if err != nil {
		return nil, nil, err
	}
	merged, conflicts := merge(b, o, t)
	if len(conflicts) == 0 {
		return merged.Format(), nil, nil
	}
	if take != TakeNone {
		return taken(merged, conflicts, o, t, take).Format(), conflicts, nil
	}
	return conflictText(merged, conflicts, b, o, t), conflicts, nil
}

// conflictText writes merged with the plugins in conflict as marked blocks.
func conflictText(merged *File, conflicts []Conflict, base, ours, theirs *File) []byte {
	ids := pluginIDs(merged)
	for _, c := range conflicts {
		ids = append(ids, c.ID)
	}
	text := appendHead(nil)
	for _, id := range sortedSet(ids) {
		text = append(text, '\n')
		if p, ok := merged.Plugin(id); ok {
			text = p.append(text)
			continue
		}
		text = appendSide(text, "<<<<<<< ours\n", ours, id)
		text = appendSide(text, "||||||| base\n", base, id)
		text = appendSide(text, "=======\n", theirs, id)
		text = append(text, ">>>>>>> theirs\n"...)
	}
	return appendFloors(text, merged.Revocations)
}

func appendSide(text []byte, marker string, f *File, id string) []byte {
	text = append(text, marker...)
	if p, ok := f.Plugin(id); ok {
		text = p.append(text)
	}
	return text
}

// Sides are the texts that a file with conflict markers was made of, with an
// empty line for each line that is not theirs, so that line numbers stay those of
// the file. Base is nil unless every block shows it.
type Sides struct{ Base, Ours, Theirs []byte }

// SplitConflict takes apart a file that holds git's conflict markers, plain or
// diff3. What stands outside of the blocks is part of every side. A file without
// markers, or with markers out of order, is an error: Faults that match
// ErrConflict.
//
// Outside of its blocks git has already joined the sides line by line, so what
// comes out may mix them within one plugin. Where git still has the whole sides
// (the stages of the index), merge those.
func SplitConflict(name string, data []byte) (*Sides, error) {
	const (
		outside = iota
		inOurs
		inBase
		inTheirs
	)
	var s Sides
	state, blocks, bases, opened := outside, 0, 0, 0
	number := 0
	misplaced := func(marker string) error {
		return conflictFault(name, number, "the conflict marker "+marker+" is out of order")
	}
	for line := range bytes.Lines(data) {
		number++
		marker := conflictMarker(line)
		switch {
		case marker == '<':
			if state != outside {
				return nil, misplaced("<<<<<<<")
			}
			state, blocks, opened = inOurs, blocks+1, number
		case marker == '|':
			if state != inOurs {
				return nil, misplaced("|||||||")
			}
			state, bases = inBase, bases+1
		case marker == '=' && state != outside:
			if state == inTheirs {
				return nil, misplaced("=======")
			}
			state = inTheirs
		case marker == '>':
			if state != inTheirs {
				return nil, misplaced(">>>>>>>")
			}
			state = outside
		default:
			marker = 0
		}
		keep := func(side *[]byte, in ...int) {
			if marker != 0 || !slices.Contains(in, state) {
				*side = append(*side, '\n')
				return
			}
			*side = append(*side, line...)
		}
		keep(&s.Ours, outside, inOurs)
		keep(&s.Base, outside, inBase)
		keep(&s.Theirs, outside, inTheirs)
	}
	switch {
	case state != outside:
		return nil, conflictFault(name, opened, "the conflict that starts here does not end")
	case blocks == 0:
		return nil, conflictFault(name, 1, "the file holds no conflict")
	case bases < blocks:
		s.Base = nil
	}
	return &s, nil
}

// conflictMarker returns the character of a marker line, which has it exactly
// seven times, alone or before a label; 0 for any other line.
func conflictMarker(line []byte) byte {
	line = bytes.TrimRight(line, "\r\n")
	if len(line) < 7 || len(line) > 7 && line[7] != ' ' {
		return 0
	}
	c := line[0]
	if !bytes.ContainsRune([]byte("<|=>"), rune(c)) || !bytes.Equal(line[:7], bytes.Repeat(line[:1], 7)) {
		return 0
	}
	if c == '=' && len(line) > 7 {
		return 0
	}
	return c
}

func conflictFault(name string, line int, message string) error {
	return Faults{&SyntaxError{File: name, Line: line, Column: 1, Message: message, Err: tomlstrict.ErrConflict}}
}

// MergeConflicted merges a file that holds git's conflict markers, as MergeText
// does with its sides. A base that is no lock by itself, as in git's zdiff3
// style, counts as none.
func MergeConflicted(name string, data []byte) (text []byte, conflicts []Conflict, err error) {
	s, err := SplitConflict(name, data)
	if err != nil {
		return nil, nil, err
	}
	return s.Merge(name, TakeNone)
}

// Merge merges the sides as MergeText does; name is the file's in messages. With a
// side to take the text is a lock in any case, and the conflicts are those that the
// side decided. A base that is no lock by itself counts as none.
func (s *Sides) Merge(name string, take Take) (text []byte, conflicts []Conflict, err error) {
	base := s.Base
	if _, err := Parse(name, base); err != nil {
		base = nil
	}
	return mergeTexts([3]string{name, name, name}, base, s.Ours, s.Theirs, take)
}

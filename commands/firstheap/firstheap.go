// Package firstheap asks the system, once and as early as an import can, to back
// the program's first heap with one huge page.
//
// A program that lives for some milliseconds spends a good part of them on page
// faults: each page of a fresh heap costs one when it is first touched. One call
// takes the place of a hundred of them. It is a request: where the system knows no
// such call, has no huge page at hand or is busy, pages come one by one as always, and
// nothing else changes.
package firstheap

func init() {
	if idle() {
		collapse()
	}
}

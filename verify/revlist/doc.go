// Package revlist holds revocation lists: their canonical format, the strict
// reader that takes them as a stream, edits, the rules that say what a list's
// state is worth, the root documents that name who may sign lists, the index that
// answers one lookup at a constant cost, and local dissent.
//
// It checks no signature: a caller hands it bytes whose signatures were checked,
// and the signers that made them. It opens no connection, asks no clock (the time
// is a parameter), prints nothing and knows no package manager; what a range of
// versions means is a function that the caller gives.
//
// It repairs nothing. A document that is not, byte for byte, the RFC 8785 form of
// what it says is refused with an *Error, and a damaged index is an error and
// never the answer that nothing is revoked. The formats and the codes are those of
// docs/revocation-lists.md.
package revlist

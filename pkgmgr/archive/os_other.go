//go:build !unix

package archive

// unixModes: files have no owner's execute bit.
const unixModes = false

const openFlags = 0

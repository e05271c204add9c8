package pkgmgr

// noWait is nothing here: no pipe stands in a directory.
const noWait = 0

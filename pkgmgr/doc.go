// Package pkgmgr owns a package's life in a data directory: staging, digests,
// bounded extraction, the store, default versions, discovery, review, trust,
// grants, approval, revocation and the lockfile's relation to all of them.
//
// It decides who may run and says why; it never starts a plugin and never
// prints. A child process is started by package runtime, and only for an
// Approval, which only this package can make.
package pkgmgr

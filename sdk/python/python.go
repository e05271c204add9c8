// Package python holds the source of the Python SDK, so that a project that is started
// with it contains it. It is data here; python_test.go runs its tests.
package python

import "embed"

// Package is the name of the SDK's Python package and of its directory in Files.
const Package = "switchyard_plugin"

// Files are the SDK's files.
//
//go:embed switchyard_plugin/*.py switchyard_plugin/py.typed switchyard_plugin/wire/*.py
var Files embed.FS

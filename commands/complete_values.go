package commands

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/state"
	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/schemas/sessionmanifest"
	"github.com/switchyard-plugins/switchyard/sdk/scaffold"
)

// values returns what can stand as the next argument of a command after the
// arguments that are there.
func (in *invocation) values(command string, arguments []string) []candidate {
	n := len(arguments)
	files := []candidate{{filesMark, ""}}
	switch command {
	case "completion":
		return when(n == 0, plain("bash", "zsh", "fish"))
	case "help":
		if n == 0 {
			return commandWords("")
		}
		return secondWords(arguments[0], "")
	case "install":
		return files
	case "check", "init", "pack", "sbom", "project trust":
		return when(n == 0, files)
	case "review":
		return when(n == 0, append(in.pluginNames(), files...))
	case "verify":
		return append(in.pluginNames(), files...)
	case "show", "approve", "trust", "enable", "disable", "untrust", "uninstall", "actions", "logs", "history", "revoke", "operations list", "receipts list",
		"config list", "config get", "config set", "config unset", "secrets list", "secrets set", "secrets unset":
		return when(n == 0, in.pluginNames())
	case "use":
		return when(n == 0, in.versions())
	case "pin":
		return in.pluginNames()
	case "unpin":
		return in.lockedNames()
	case "project untrust":
		return when(n == 0, in.projectRoots())
	case "operations show", "operations cancel":
		return when(n == 0, in.operationIDs(command == "operations cancel"))
	case "run", "dev":
		switch n {
		case 0:
			if command == "dev" {
				return files
			}
			return in.pluginNames()
		case 1:
			return plain(string(pkgmgr.MethodHealth), string(pkgmgr.MethodInspect), string(pkgmgr.MethodOperate))
		case 2:
			return when(command == "run" && arguments[1] == string(pkgmgr.MethodOperate), in.actionNames(arguments[0]))
		}
	}
	return nil
}

// flagValues returns what can stand as the value of a flag. A fingerprint is not
// offered: it comes from a review.
func (in *invocation) flagValues(flag string) []candidate {
	switch flag {
	case "data-dir", "project", "output", "sdk":
		return []candidate{{filesMark, ""}}
	case "scope":
		var out []candidate
		for _, s := range manifest.Scopes {
			out = append(out, candidate{string(s), s.Meaning()})
		}
		for _, s := range sessionmanifest.Scopes {
			if s.Offered() {
				out = append(out, candidate{string(s), s.Meaning()})
			}
		}
		return out
	case "platform":
		return plain("linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64")
	case "transport":
		return plain(transportStdio, transportUnix)
	case "lang":
		return plain(scaffold.Languages()...)
	}
	return nil
}

func when(fits bool, list []candidate) []candidate {
	if !fits {
		return nil
	}
	return list
}

func plain(values ...string) []candidate {
	out := make([]candidate, len(values))
	for i, v := range values {
		out[i].value = v
	}
	return out
}

// completionPatience bounds how long a completion waits for another process.
const completionPatience = 500 * time.Millisecond

// peek reads the database of the data directory and writes nothing anywhere. What
// cannot be read offers nothing.
func (in *invocation) peek(read func(*state.Tx) error) {
	dir, err := in.dataDir()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
	defer cancel()
	_ = state.At(dir).View(ctx, read)
}

// offer appends a candidate, spaces included: the shell's script quotes it. Everything
// read from the data directory goes through it, and what means anything to a shell but
// a space is not offered.
func offer(out []candidate, value, about string) []candidate {
	if value == "" || !shellSafe(value) || slices.ContainsFunc(out, func(c candidate) bool { return c.value == value }) {
		return out
	}
	if !shellSafe(about) {
		about = ""
	}
	return append(out, candidate{value, about})
}

// shellSafe accepts letters and digits of every script, spaces, and the punctuation of
// names, versions and paths.
func shellSafe(s string) bool {
	for i, r := range s {
		switch {
		case unicode.IsLetter(r) && render.Visible(r), unicode.IsDigit(r):
		case r == '-' && i > 0, strings.ContainsRune("_./:@+ ", r):
		default:
			return false
		}
	}
	return true
}

func (in *invocation) pluginNames() (out []candidate) {
	in.peek(func(tx *state.Tx) error {
		defaults, err := tx.Defaults()
		for _, d := range defaults {
			out = offer(out, d.ID, "")
		}
		return err
	})
	return out
}

func (in *invocation) versions() (out []candidate) {
	in.peek(func(tx *state.Tx) error {
		installs, err := tx.Installs()
		for _, i := range installs {
			out = offer(out, i.ID+"@"+i.Version, "")
		}
		return err
	})
	return out
}

func (in *invocation) projectRoots() (out []candidate) {
	in.peek(func(tx *state.Tx) error {
		trusts, err := tx.ProjectTrusts()
		for _, t := range trusts {
			out = offer(out, t.Root, "")
		}
		return err
	})
	return out
}

func (in *invocation) operationIDs(running bool) (out []candidate) {
	in.peek(func(tx *state.Tx) error {
		const most = 50
		ops, err := tx.Operations(most, func(o state.Operation) bool { return !running || o.State == state.Running })
		for _, o := range ops {
			out = offer(out, o.ID, o.PluginID+" "+o.Action+" "+string(o.State))
		}
		return err
	})
	return out
}

// lockedNames are the ids that the project's lock names.
func (in *invocation) lockedNames() (out []candidate) {
	if lock := in.lockOrNone(); lock != nil {
		for _, p := range lock.File.Plugins {
			out = offer(out, p.ID, "")
		}
	}
	return out
}

// actionNames are the actions of a plugin that succeeded before: only the
// plugin itself knows the others, and completion asks no plugin.
func (in *invocation) actionNames(name string) (out []candidate) {
	ref, err := pkgmgr.ParseRef(name)
	if err != nil {
		return nil
	}
	in.peek(func(tx *state.Tx) error {
		const most = 1000
		ops, err := tx.Operations(most, func(o state.Operation) bool {
			return o.PluginID == ref.ID && (o.State == state.Succeeded || o.State == state.PartiallySucceeded)
		})
		for _, o := range ops {
			out = offer(out, o.Action, "")
		}
		return err
	})
	return out
}

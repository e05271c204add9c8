package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/switchyard-plugins/switchyard/schemas/manifest"
)

// writePlugin writes a package whose executable is a shell script that speaks the
// call protocol without any help from this project. Modes:
//
//	good       (default) healthy; inspect finds one fact and offers the action "note"
//	partial    operate succeeds partially
//	failing    operate reports failure
//	error      operate answers with an error
//	degraded   health says so
//	unhealthy  health says so
//	banner     prints a line before the protocol
//	crash      exits 3 in the middle of a call
//	impostor   states another version than its manifest
//	slow       opens its last argument for writing when operate arrives, and never answers
//	thief      takes its last argument, a file, away before it answers inspect or
//	           operate; the action "crash" exits 3 then
//	reader     requests project.files.read and reports whether it got the root
func writePlugin(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: plugin DIR ID VERSION [MODE [ARGUMENT…]]")
	}
	dir, mode, more := ts.MkAbs(args[0]), "good", []string{}
	if len(args) > 3 {
		mode, more = args[3], args[4:]
	}
	ts.Check(makePlugin(dir, args[1], args[2], mode, more...))
}

// makePlugin is writePlugin outside of scripts.
func makePlugin(dir, id, version, mode string, more ...string) error {
	m := manifest.Manifest{
		SchemaVersion: manifest.SchemaVersion, ID: id, Name: "Test plugin " + id, Version: version,
		ProtocolVersion: manifest.Protocol, Executable: "bin/plugin", Arguments: append([]string{mode}, more...),
		Capabilities:    []manifest.Capability{manifest.CapabilityInspect, manifest.CapabilityOperate},
		RequestedScopes: []manifest.Scope{manifest.ScopeMetadataRead, manifest.ScopeOperate},
	}
	if mode == "reader" {
		m.RequestedScopes = append(m.RequestedScopes, manifest.ScopeFilesRead)
	}
	identity := m.Identity()
	if mode == "impostor" {
		identity.Version += "-other"
	}
	stated, err := json.Marshal(identity)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, manifest.FileName), append(text, '\n'), 0o644); err != nil {
		return err
	}
	script := strings.ReplaceAll(pluginScript, "@IDENTITY@", string(stated))
	return os.WriteFile(filepath.Join(dir, "bin", "plugin"), []byte(script), 0o755)
}

const pluginScript = `#!/bin/sh
mode=$1 pipe=$2
[ "$mode" = banner ] && echo "Welcome to the plugin"
answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while IFS= read -r request; do
    id=${request#*'"id":'} id=${id%%[,\}]*}
    case $mode$request in
    thief*'"method":"project.'*)
        mv "$pipe" "$pipe.aside"
        case $request in *'"action":"crash"'*) exit 3 ;; esac
        ;;
    esac
    case $request in
    *'"method":"initialize"'*)
        grants=${request#*'"grantedScopes":'} grants=${grants%%]*}]
        answer '"result":{"protocolVersion":"switchyard.plugin/v1","plugin":@IDENTITY@,"grantedScopes":'"$grants"'}'
        ;;
    *'"method":"plugin.health"'*)
        case $mode in
        degraded | unhealthy) answer '"result":{"status":"'"$mode"'","message":"the test wants it","checkedAt":"2024-02-29T12:00:00Z"}' ;;
        *) answer '"result":{"status":"healthy","checkedAt":"2024-02-29T12:00:00Z"}' ;;
        esac
        ;;
    *'"method":"project.inspect"'*)
        echo "inspecting with token=abcdef0123456789abcdef" >&2
        root=absent
        case $request in *'"root":'*) root=present ;; esac
        answer '"result":{"summary":"one fact","facts":[{"id":"root","label":"Root","value":"'"$root"'","source":"request"}],"actions":[{"id":"note","name":"Take a note","description":"Writes nothing.","risk":"none"}],"warnings":[],"observedAt":"2024-02-29T12:00:00Z"}'
        ;;
    *'"method":"project.operate"'*)
        case $mode in
        slow)
            : >"$pipe"
            while :; do sleep 60; done
            ;;
        crash) exit 3 ;;
        partial) answer '"result":{"status":"partially_succeeded","summary":"half of it","output":{"done":1,"left":1}}' ;;
        failing) answer '"result":{"status":"failed","summary":"none of it","output":{}}' ;;
        picky) answer '"error":{"code":-32602,"message":"unknown action"}' ;;
        error) answer '"error":{"code":-32000,"message":"cannot do that"}' ;;
        *) answer '"result":{"status":"succeeded","summary":"noted","output":{"request":'"$request"'}}' ;;
        esac
        ;;
    *) answer '"error":{"code":-32601,"message":"unknown method"}' ;;
    esac
done
`

#!/bin/sh
# The life of a real plugin package, from its source to its revocation, in a
# throw-away data directory. Run it with `make demo`; it needs only Go and make.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
cleanup() {
	chmod -R u+w "$work" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
PATH="$root:$PATH"
export SWITCHYARD_DATA_DIR="$work/data"

strong='' command='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-}" != dumb ]; then
	strong=$(printf '\033[1m') command=$(printf '\033[36m') plain=$(printf '\033[0m')
fi
say() { printf '\n%s# %s%s\n' "$strong" "$*" "$plain"; }
show() {
	printf '%s$ %s%s\n' "$command" "$*" "$plain"
	"$@"
}
# refused CODE COMMAND…: the command must end with that exit code.
refused() {
	want=$1
	shift
	printf '%s$ %s%s\n' "$command" "$*" "$plain"
	code=0
	"$@" || code=$?
	[ "$code" -eq "$want" ] || { echo "expected exit $want, got $code" >&2; exit 1; }
	printf '(exit %s)\n' "$code"
}
package_digest() { switchyard show "$1" --json | sed -n 's/.*"package": *"\(sha256:[0-9a-f]*\)".*/\1/p' | head -n 1; }

say "Build the sample plugin repo-facts from this repository, and pack it"
cp -R sdk/examples/repo-facts/package "$work/package"
go build -trimpath -ldflags='-s -w' -o "$work/package/bin/repo-facts" ./sdk/examples/repo-facts
mkdir -p "$work/project/dist"
cd "$work/project"
show switchyard check "$work/package"
show switchyard pack "$work/package" -o dist/repo-facts.tar.zst

say "Install it: nothing is executed, and it is untrusted"
show switchyard install dist/repo-facts.tar.zst
refused 5 switchyard run repo-facts health

say "Review it, and trust exactly what was reviewed"
show switchyard review repo-facts
show switchyard trust repo-facts --fingerprint "$(package_digest repo-facts)"

say "Enable it with two of the scopes that it asks for"
show switchyard enable repo-facts --scope project.metadata.read --scope project.files.read

say "Pin it in a project's switchyard.lock"
git init -q . 2>/dev/null || mkdir .git
show switchyard pin repo-facts
show cat switchyard.lock

say "Elsewhere: an empty data directory, and only the lock"
export SWITCHYARD_DATA_DIR="$work/data-elsewhere"
show switchyard project trust .
show switchyard ci --trust-lock
show switchyard list

say "Run it on a real project: this repository"
refused 10 switchyard run repo-facts inspect --project "$root"
show switchyard project trust "$root"
show switchyard run repo-facts inspect --project "$root"

say "Operate needs a scope that was not granted"
refused 10 switchyard run repo-facts operate write-inventory --project "$root" --input '{}'

say "Revoke it: refused everywhere, whatever was trusted or locked"
show switchyard revoke "$(package_digest repo-facts)" --reason "demonstration"
refused 6 switchyard run repo-facts health
refused 6 switchyard ci
show switchyard list

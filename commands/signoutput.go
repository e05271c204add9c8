package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
)

// A signedByOther says that somebody else's signature over the same archive lies where
// this one would.
type signedByOther struct {
	path, by string
	instead  string // what -o may say
}

func (e *signedByOther) Error() string {
	return e.path + " is the signature of " + e.by + " over the same archive; it is never overwritten"
}

// A notAnArchive says that what is to be signed is no file.
type notAnArchive struct {
	path      string
	directory bool
}

func (e *notAnArchive) Error() string {
	if e.directory {
		return e.path + " is a directory; pack it first"
	}
	return e.path + " is no regular file"
}

// otherSigner is whom the bundle at path names, if it is over the same bytes and not of
// signer; else "". One under a certificate names nobody without a proof: it is of another
// signer than any key.
func otherSigner(path string, sum digest.Digest, signer verify.Signer) string {
	if !isRegular(path) {
		return ""
	}
	text, err := readUpTo(path, verify.MaxBundle)
	if err != nil {
		return ""
	}
	var b bundleHead
	if err := json.Unmarshal(text, &b); err != nil || sumOf(b.Signature.Digest.Sum) != sum || b.key() == signer.Key {
		return ""
	}
	if b.key() == "" {
		return "an identity under a certificate"
	}
	return "the key " + b.key()
}

// freeLabel is what stands between the names of an archive and of one more signature: a
// label after the file of the key that nothing beside the archive has.
func freeLabel(archive, key string) string {
	label := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r == '-' {
			return r
		}
		return -1
	}, strings.ToLower(strings.TrimSuffix(filepath.Base(key), ".key")))
	if key == "" || label == "" || label == "provenance" {
		label = "second"
	}
	return freeName(archive+"."+label[:min(len(label), 28)], bundleSuffix)[len(archive):]
}

// freeName is name, or name-2 and so on, which stands before none of the suffixes yet.
func freeName(name string, suffixes ...string) string {
	for n, free := 2, name; ; n++ {
		if !slices.ContainsFunc(suffixes, func(s string) bool { _, err := os.Lstat(free + s); return err == nil }) {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
}

// withOutput is the command line as it was typed, with another value of -o; "" where that
// is not known.
func (in *invocation) withOutput(value string) string {
	if value == "" {
		return ""
	}
	words := slices.Clone(in.env.Args)
	for i, a := range words {
		switch name, _, joined := strings.Cut(a, "="); {
		case name != "-o" && name != "-output" && name != "--output":
			continue
		case joined:
			words[i] = name + "=" + value
		case i+1 < len(words):
			words[i+1] = value
		}
		return render.Command(append([]string{in.env.Program}, words...)...)
	}
	return in.again("-o", value)
}

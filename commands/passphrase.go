package commands

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"strings"

	"github.com/urfave/cli/v2"
)

// A passphrase is where a key's passphrase comes from.
type passphrase struct {
	from string
	none bool
}

// maxPassphrase bounds it, in bytes.
const maxPassphrase = 4096

func (p *passphrase) flag() cli.Flag {
	return &cli.StringFlag{Name: "passphrase", Destination: &p.from, Usage: "`WHERE` the key's passphrase stands: @FILE, env:NAME or - (standard input); asked for on a terminal"}
}

// An asking says how often a passphrase is asked for.
type asking int

const (
	once  asking = iota
	twice        // a new one: to be sure
)

// passphrase returns the words, from where they were said to be or from the
// terminal. One line feed at the end of a file is not part of them. nil means that
// there are none.
func (in *invocation) passphrase(p passphrase, how asking) ([]byte, error) {
	switch {
	case p.none && p.from != "":
		return nil, in.usage("--no-passphrase and --passphrase exclude each other")
	case p.none:
		return nil, nil
	case p.from != "":
		words, err := in.secret("passphrase", "a passphrase", p.from, maxPassphrase)
		if err != nil {
			return nil, err
		}
		words = bytes.TrimSuffix(bytes.TrimSuffix(words, []byte("\n")), []byte("\r"))
		if len(words) == 0 {
			return nil, in.usage("--passphrase: %s is empty", p.from)
		}
		return words, nil
	}
	if !in.interactive() {
		return nil, &unaskedError{question: "the key's passphrase is asked for, and there is no terminal to ask on",
			instead: wanting(in.again("--passphrase", "@FILE"), "FILE is where its passphrase stands; env:NAME and - are read, too")}
	}
	words, err := in.env.ReadPassword("Passphrase: ")
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return nil, errNoPassphrase
	}
	if how == twice {
		again, err := in.env.ReadPassword("The same again: ")
		if err != nil {
			return nil, err
		}
		if subtle.ConstantTimeCompare(words, again) != 1 {
			return nil, errPassphrasesDiffer
		}
	}
	return words, nil
}

// secret is content for what is never an argument.
func (in *invocation) secret(flag, what, from string, limit int) ([]byte, error) {
	if from != "-" && !strings.HasPrefix(from, "@") && !strings.HasPrefix(from, "env:") {
		return nil, in.usage("--%s: %s itself is never an argument, which other users can see; give @FILE, env:NAME or -", flag, what)
	}
	return in.content(flag, from, limit)
}

var (
	errNoPassphrase      = errors.New("no passphrase was typed")
	errPassphrasesDiffer = errors.New("the two passphrases differ")
)

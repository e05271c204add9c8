package commands

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
)

// content returns what a flag's value stands for: "-" is standard input, "@FILE"
// a file, "env:NAME" an environment variable, anything else itself. Values that
// may hold secrets are given in one of the first three ways, because arguments
// show in process lists and shell histories. More than limit bytes are an error.
func (in *invocation) content(flag, value string, limit int) ([]byte, error) {
	var (
		data []byte
		err  error
		from string
	)
	switch {
	case value == "-":
		from = "standard input"
		data, err = io.ReadAll(io.LimitReader(in.env.Stdin, int64(limit)+1))
	case strings.HasPrefix(value, "@"):
		from = value[1:]
		data, err = readGiven(from, limit)
	case strings.HasPrefix(value, "env:"):
		from = value
		v, set := in.env.LookupEnv(value[len("env:"):])
		if !set {
			return nil, in.usage("--%s: environment variable %s is not set", flag, value[len("env:"):])
		}
		data = []byte(v)
	default:
		from = "the argument"
		data = []byte(value)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	if len(data) > limit {
		return nil, in.usage("--%s: %s holds more than %d bytes", flag, from, limit)
	}
	return data, nil
}

// readGiven is readUpTo for a file that the command line names: one that is not there is
// a *pkgmgr.NotFound.
func readGiven(path string, limit int) ([]byte, error) {
	text, err := readUpTo(path, limit)
	return text, missingFile(path, err)
}

// missingFile says of a file that the command line names that it is not there.
func missingFile(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &pkgmgr.NotFound{Kind: "file", Name: path}
	}
	return err
}

func readUpTo(path string, limit int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(limit)+1))
}

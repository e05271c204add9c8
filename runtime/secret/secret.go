// Package secret resolves references to secrets, which settings hold in the place of the
// secrets themselves, and keeps those that a person gave this host to keep.
//
// A kept secret is sealed with AES-256-GCM (NIST SP 800-38D) under a key of the data
// directory, bound to its plugin and name. That keeps it out of what is searched, copied
// or shown by the file; whoever can read the whole data directory, as every program of
// the same user can, can open it.
//
// The package shows no secret and puts none into an error.
package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/switchyard-plugins/switchyard/lockfile/textfile"
	"github.com/switchyard-plugins/switchyard/schemas/ijson"
)

// The providers of secrets that this host knows.
const (
	Kept        = "switchyard" // sealed in the data directory; the name is free
	Environment = "env"        // a variable of the command's environment
	File        = "file"       // a file by its absolute path, readable by its owner alone
)

// Max bounds one secret in bytes.
const Max = 64 << 10

// Names below the data directory.
const (
	KeyFile  = "secrets.key" // below the directory of keys
	storeDir = "secrets"
	maxStore = 4 << 20
)

// A Ref names a secret.
type Ref struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
	Version  string `json:"version,omitzero"`
}

// RefOf reads the settings' value {"secretRef": {…}}.
func RefOf(value []byte) (Ref, bool) {
	var v struct {
		Ref *Ref `json:"secretRef"`
	}
	if ijson.Unmarshal(value, &v) != nil || v.Ref == nil {
		return Ref{}, false
	}
	return *v.Ref, true
}

// JSON is the settings' value of a reference.
func (r Ref) JSON() json.RawMessage {
	raw, _ := json.Marshal(map[string]Ref{"secretRef": r}) // strings
	return raw
}

// Unresolved says that a reference leads to no secret.
type Unresolved struct {
	Pointer string // in the settings, or ""
	Ref     Ref
	Reason  string
}

func (e *Unresolved) Error() string {
	at := ""
	if e.Pointer != "" {
		at = " for " + e.Pointer
	}
	return fmt.Sprintf("the secret%s (%s of %s) cannot be had: %s", at, e.Ref.Name, e.Ref.Provider, e.Reason)
}

// ErrValue is wrapped by the error of a value that cannot be a secret.
var ErrValue = errors.New("cannot be a secret")

// Check refuses what cannot be given to a plugin as a secret.
func Check(value []byte) error {
	switch {
	case len(value) == 0:
		return fmt.Errorf("an empty value %w", ErrValue)
	case len(value) > Max:
		return fmt.Errorf("what has more than %d bytes %w", Max, ErrValue)
	case !utf8.Valid(value):
		return fmt.Errorf("what is not UTF-8 %w", ErrValue)
	}
	quoted, err := json.Marshal(string(value))
	if err == nil {
		err = ijson.Check(quoted)
	}
	if err != nil {
		return fmt.Errorf("what no JSON string can hold %w", ErrValue)
	}
	return nil
}

// Trim takes away the one line end that an editor, or echo, puts at a file's end.
func Trim(value []byte) []byte {
	if n := len(value); n > 0 && value[n-1] == '\n' {
		value = value[:n-1]
		if n := len(value); n > 0 && value[n-1] == '\r' {
			value = value[:n-1]
		}
	}
	return value
}

// A Store is where this host keeps secrets, and from where it looks for others.
type Store struct {
	Dir    string                      // the data directory
	Keys   string                      // the directory of its keys
	Lookup func(string) (string, bool) // the environment
}

// Resolve returns the secret that a plugin's settings refer to. The error is an
// *Unresolved, or tells what is wrong with the store.
func (s *Store) Resolve(plugin string, ref Ref) (string, error) {
	var value []byte
	var err error
	why := func(reason string) (string, error) { return "", &Unresolved{Ref: ref, Reason: reason} }
	if ref.Version != "" {
		return why("no provider here keeps versions of a secret")
	}
	switch ref.Provider {
	case Kept:
		if value, err = s.get(plugin, ref.Name); errors.Is(err, fs.ErrNotExist) {
			return why("no such secret is kept here")
		}
		if err != nil {
			return "", err
		}
	case Environment:
		v, ok := s.Lookup(ref.Name)
		if !ok {
			return why("the environment variable is not set")
		}
		value = []byte(v)
	case File:
		if value, err = readFile(ref.Name); err != nil {
			return why(err.Error())
		}
	default:
		return why(fmt.Sprintf("this host knows the providers %s, %s and %s", Kept, Environment, File))
	}
	if err := Check(value); err != nil {
		return why(err.Error())
	}
	return string(value), nil
}

// readFile reads a secret's file; the error is a reason that names no content.
func readFile(path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		return nil, errors.New("the path is not absolute")
	}
	raw, err := textfile.Read(path, Max)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("the file does not exist")
	}
	if err != nil {
		return nil, err
	}
	if err := private(path); err != nil {
		return nil, err
	}
	return Trim(raw), nil
}

// private refuses a file that others can read.
func private(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if open := info.Mode().Perm() & exposed; open != 0 {
		return fmt.Errorf("%s can be read by others (mode %04o)", path, info.Mode().Perm())
	}
	return nil
}

// stored is the file of one plugin's secrets: sealed values by name.
type stored struct {
	Secrets map[string]string `json:"secrets"`
}

func (s *Store) path(plugin string) string { return filepath.Join(s.Dir, storeDir, plugin+".json") }

// Set keeps a secret of a plugin.
func (s *Store) Set(plugin, name string, value []byte) error {
	if err := Check(value); err != nil {
		return err
	}
	aead, err := s.cipher(makeKey)
	if err != nil {
		return err
	}
	nonce := make([]byte, aead.NonceSize())
	rand.Read(nonce)
	sealed := base64.RawURLEncoding.EncodeToString(aead.Seal(nonce, nonce, value, bound(plugin, name)))
	return s.edit(plugin, func(all map[string]string) { all[name] = sealed })
}

// Remove forgets a secret, or with name "" every secret of a plugin.
func (s *Store) Remove(plugin, name string) error {
	if name == "" {
		if err := os.Remove(s.path(plugin)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if _, err := os.Lstat(s.path(plugin)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.edit(plugin, func(all map[string]string) { delete(all, name) })
}

func (s *Store) edit(plugin string, change func(map[string]string)) error {
	if err := os.MkdirAll(filepath.Join(s.Dir, storeDir), 0o700); err != nil {
		return err
	}
	return textfile.EditPrivate(s.path(plugin), maxStore, func(text []byte, exists bool) ([]byte, error) {
		f := stored{}
		if exists {
			if err := ijson.Unmarshal(text, &f); err != nil {
				return nil, fmt.Errorf("%s: %w", s.path(plugin), err)
			}
		}
		if f.Secrets == nil {
			f.Secrets = map[string]string{}
		}
		change(f.Secrets)
		out, err := json.MarshalIndent(f, "", "  ")
		if err == nil && len(out) >= maxStore {
			err = fmt.Errorf("the secrets of %s have more than %d bytes", plugin, maxStore)
		}
		return append(out, '\n'), err
	})
}

// Names returns the names of a plugin's kept secrets, sorted.
func (s *Store) Names(plugin string) ([]string, error) {
	all, err := s.read(plugin)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, err
}

func (s *Store) read(plugin string) (map[string]string, error) {
	raw, err := textfile.Read(s.path(plugin), maxStore)
	if err != nil {
		return nil, err
	}
	var f stored
	if err := ijson.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", s.path(plugin), err)
	}
	return f.Secrets, private(s.path(plugin))
}

// get opens a kept secret; fs.ErrNotExist where there is none.
func (s *Store) get(plugin, name string) ([]byte, error) {
	all, err := s.read(plugin)
	if err != nil {
		return nil, err
	}
	text, ok := all[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	aead, err := s.cipher(openKey)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the key that secrets are sealed with, %s, is gone: they are to be given again", filepath.Join(s.Keys, KeyFile))
	}
	if err != nil {
		return nil, err
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err == nil && len(sealed) < aead.NonceSize() {
		err = errors.New("too short")
	}
	var value []byte
	if err == nil {
		value, err = aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], bound(plugin, name))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the secret %s was not sealed with this host's key for this plugin: it is to be given again", s.path(plugin), name)
	}
	return value, nil
}

// bound is what a sealed secret belongs to: one plugin, one name.
func bound(plugin, name string) []byte {
	return []byte("switchyard secret\x00" + plugin + "\x00" + name)
}

type keyUse int

const (
	openKey keyUse = iota
	makeKey        // where there is none
)

const keyBytes = 32

// cipher returns what seals, by the key of the data directory.
func (s *Store) cipher(use keyUse) (cipher.AEAD, error) {
	path := filepath.Join(s.Keys, KeyFile)
	key, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) && use == makeKey {
		if err := os.MkdirAll(s.Keys, 0o700); err != nil {
			return nil, err
		}
		err = textfile.EditPrivate(path, 1<<10, func(_ []byte, exists bool) ([]byte, error) {
			if exists {
				return nil, nil // another process was quicker
			}
			fresh := make([]byte, keyBytes)
			rand.Read(fresh)
			return []byte(base64.RawURLEncoding.EncodeToString(fresh) + "\n"), nil
		})
		if err != nil {
			return nil, err
		}
		key, err = readKey(path)
	}
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func readKey(path string) ([]byte, error) {
	raw, err := textfile.Read(path, 1<<10)
	if err != nil {
		return nil, err
	}
	if err := private(path); err != nil {
		return nil, err
	}
	key, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimSpace(string(raw)))
	if err != nil || len(key) != keyBytes {
		return nil, fmt.Errorf("%s is no key of secrets", path)
	}
	return key, nil
}

package verify

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// WorkerName is the program's name, without the suffix of the system.
const WorkerName = "switchyard-verify"

// A Worker is the verify worker that stands beside a program, looked at and found
// fit to be started.
type Worker struct {
	path string
	info fs.FileInfo
}

// Unusable says why there is no worker to start.
type Unusable struct {
	Path   string
	Reason string
	Err    error // may be nil
}

func (e *Unusable) Error() string {
	text := "the verify worker " + e.Path + " " + e.Reason
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *Unusable) Unwrap() error { return e.Err }

// Find looks for the worker beside an executable, in the directory that the
// executable really lies in. No other place is ever looked at: not PATH, not the
// working directory, not the environment. What belongs to somebody else than the
// executable, or can be written by others, is not started. The error is an *Unusable.
func Find(executable string) (*Worker, error) {
	name := WorkerName
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	real, err := filepath.EvalSymlinks(executable)
	if err != nil {
		return nil, &Unusable{Path: filepath.Join(filepath.Dir(executable), name), Reason: "cannot be looked for", Err: err}
	}
	w := &Worker{path: filepath.Join(filepath.Dir(real), name)}
	own, err := os.Stat(real)
	if err != nil {
		return nil, w.unusable("cannot be looked for", err)
	}
	w.info, err = os.Lstat(w.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, w.unusable("is missing", nil)
	case err != nil:
		return nil, w.unusable("cannot be looked at", err)
	case !w.info.Mode().IsRegular():
		return nil, w.unusable("is no regular file", nil)
	}
	if err := mayStart(own, w.info); err != nil {
		return nil, w.unusable(err.Error(), nil)
	}
	dir, err := os.Stat(filepath.Dir(w.path))
	if err != nil {
		return nil, w.unusable("cannot be looked at", err)
	}
	if err := mayStart(own, dir); err != nil {
		return nil, w.unusable("lies in a directory that "+err.Error(), nil)
	}
	return w, nil
}

func (w *Worker) unusable(reason string, err error) *Unusable {
	return &Unusable{Path: w.path, Reason: reason, Err: err}
}

// Path is where the worker lies.
func (w *Worker) Path() string { return w.path }

// errWritable and its like end a sentence that begins with the file.
func errOwner(uid int) error {
	return fmt.Errorf("belongs to another user (uid %d) than the program", uid)
}

var errWritable = errors.New("can be written by others")

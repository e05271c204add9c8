package commands

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/switchyard-plugins/switchyard/lockfile"
	"github.com/switchyard-plugins/switchyard/runtime/process"
)

// gitTime bounds one question to git.
const gitTime = 10 * time.Second

// git returns how to ask git about the repository that root lies in, or nil where
// there is no git. The repository may be anybody's: git is taken from PATH without
// what the project could have put there, and nothing that its configuration names is
// started. An answer has at most lockfile.MaxBytes bytes.
func (in *invocation) git(root string) func(ctx context.Context, args ...string) ([]byte, error) {
	environment := process.Environment(in.env.LookupEnv, "", root)
	path := ""
	for _, v := range environment {
		if dirs, ok := strings.CutPrefix(v, "PATH="); ok {
			path = firstProgram(dirs, "git")
		}
	}
	if path == "" {
		return nil
	}
	environment = append(environment,
		// A blob that is missing in a partial clone would be fetched, by a command or a
		// helper of the configuration's choice.
		"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_SSH_COMMAND=false", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false",
		"GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	if home, ok := in.env.LookupEnv("HOME"); ok { // where the user says which directories are safe
		environment = append(environment, "HOME="+home)
	}
	settings := []string{"-C", root}
	for _, c := range []string{"core.fsmonitor=false", "core.hooksPath=" + os.DevNull, "core.sshCommand=false", "core.pager=cat",
		"protocol.allow=never", "safe.bareRepository=explicit", "credential.helper="} {
		settings = append(settings, "-c", c)
	}
	return func(ctx context.Context, args ...string) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, gitTime)
		defer cancel()
		cmd := exec.CommandContext(ctx, path, append(settings, args...)...)
		cmd.Env, cmd.Dir, cmd.WaitDelay = environment, root, time.Second
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		text, err := io.ReadAll(io.LimitReader(out, lockfile.MaxBytes+1))
		if len(text) > lockfile.MaxBytes {
			err = fmt.Errorf("git answers with more than %d bytes", lockfile.MaxBytes)
		}
		if err != nil {
			cancel()
			cmd.Wait()
			return nil, err
		}
		return text, cmd.Wait()
	}
}

// firstProgram looks a program up in a list of directories.
func firstProgram(dirs, name string) string {
	for _, dir := range filepath.SplitList(dirs) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

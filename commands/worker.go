package commands

import (
	"context"
	"errors"

	"github.com/switchyard-plugins/switchyard/verify"
)

// worker starts the verify worker that stands beside this program. The caller
// closes it.
func (in *invocation) worker() (*verify.Session, error) {
	return in.startWorker(in.context())
}

func (in *invocation) startWorker(ctx context.Context) (*verify.Session, error) {
	executable, err := in.env.Executable()
	if err != nil {
		return nil, err
	}
	w, err := verify.Find(executable)
	if err != nil {
		return nil, err
	}
	return w.Start(ctx)
}

// classifyWorker knows what the verify worker refuses, and what can be wrong with
// it itself.
func (in *invocation) classifyWorker(err error, f *failure) bool {
	var (
		unusable *verify.Unusable
		broken   *verify.Broken
		refusal  *verify.Refusal
		token    *tokenMissing
	)
	switch {
	case errors.As(err, &unusable):
		f.code, f.hint = "worker.unusable", reinstall
		f.details = workerDetails{Path: unusable.Path}
	case errors.As(err, &broken) && !in.interrupted(): // else it was ended, and did not break
		f.code, f.hint = "worker.broken", reinstall
		f.details = workerDetails{Path: broken.Path, Stderr: broken.Stderr}
	case errors.As(err, &token):
		f.code, f.hint = "token.missing", in.next(helpOn(in.commandName())...)
	case errors.As(err, &refusal):
		f.exit, f.code = exitEvidence, string(refusal.Code)
		switch refusal.Code {
		case verify.CodeKeyMalformed, verify.CodeKeyAlgorithm:
			f.exit, f.hint = exitFailed, in.next("help", "keygen")
		case verify.CodeKeyPassphrase:
			f.exit, f.hint = exitFailed, in.next(helpOn(in.commandName())...)
		case verify.CodeRootMalformed:
			f.hint = in.next("trusted-root", "show")
			if in.commandName() == "trusted-root show" && len(in.given) == 0 { // the configured one
				f.hint = in.next("trusted-root", "update", "--replace")
			}
		case verify.CodeTokenMalformed, verify.CodeTokenExpired, verify.CodeTokenRefused,
			verify.CodeNetworkRequest, verify.CodeNetworkTLS:
			f.exit, f.hint = exitFailed, in.next(helpOn(in.commandName())...)
		case verify.CodeNetworkUnreachable, verify.CodeNetworkTimeout, verify.CodeNetworkRedirect, verify.CodeNetworkStatus,
			verify.CodeNetworkAnswer, verify.CodeNetworkTooLarge:
			f.exit = exitFailed
		case verify.CodeRequestMalformed:
			f.exit = exitFailed
		}
	default:
		return false
	}
	return true
}

// reinstall builds and installs both programs, of one build, beside each other.
const reinstall = "make install"

type workerDetails struct {
	Path   string `json:"path" doc:"Where the verify worker is looked for: beside this program."`
	Stderr string `json:"stderr,omitempty" doc:"The last that it wrote to standard error."`
}

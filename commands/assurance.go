package commands

import (
	"context"
	"fmt"
	"sync"

	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/project"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/policy"
)

// assurance returns what evidence is judged by, read when it is first asked for: most
// commands never do. The project of the working directory has the last word, for it
// can only ask for more.
func (in *invocation) assurance() func() (*pkgmgr.Assurance, error) {
	return sync.OnceValues(func() (*pkgmgr.Assurance, error) {
		dir, err := pkgmgr.ConfigDir(in.getenv)
		if err != nil {
			return nil, err
		}
		a, err := pkgmgr.ReadAssurance(dir)
		if err != nil {
			return nil, err
		}
		a.Start = in.prover
		if in.adjust != nil {
			if err := in.adjust(a); err != nil {
				return nil, err
			}
		}
		here, err := in.env.Getwd()
		if err != nil {
			return nil, err
		}
		narrowing, err := project.Narrowing(here)
		if err != nil && in.heedless {
			in.warn("the project's file is not heeded: %v", err)
			return a, nil
		}
		if err != nil {
			return nil, err
		}
		a.Policy = a.Policy.Narrow(narrowing)
		return a, nil
	})
}

// nobodysAssurance checks what holds for everybody: what lies beside a package that is
// being made is no user's to judge.
func (in *invocation) nobodysAssurance() (*pkgmgr.Assurance, error) {
	return &pkgmgr.Assurance{Policy: policy.Default(), Start: in.prover}, nil
}

// prover starts the verify worker that stands beside this program.
func (in *invocation) prover(ctx context.Context) (pkgmgr.Prover, error) {
	s, err := in.startWorker(ctx)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// evidenceFlags makes of --key and --trusted-root what they change: with keys, one of
// them must have signed, and who else may does not count.
func evidenceFlags(keys []string, root string) func(*pkgmgr.Assurance) error {
	if len(keys) == 0 && root == "" {
		return nil
	}
	return func(a *pkgmgr.Assurance) error {
		if root != "" {
			text, err := readGiven(root, verify.MaxTrustedRoot)
			if err != nil {
				return fmt.Errorf("--trusted-root: %w", err)
			}
			a.TrustedRoot = text
		}
		if len(keys) == 0 {
			return nil
		}
		everything, err := policy.ParseIDPattern("*")
		if err != nil {
			return err
		}
		a.Policy, a.Keys = policy.Default(), nil
		a.Policy.Signature = policy.Required
		for _, path := range keys {
			text, err := readGiven(path, maxKeyFile)
			if err != nil {
				return fmt.Errorf("--key: %w", err)
			}
			id, err := verify.KeyID(string(text))
			if err != nil {
				return fmt.Errorf("--key: %s %w", path, err)
			}
			a.Keys = append(a.Keys, string(text))
			a.Policy.Publishers = append(a.Policy.Publishers, policy.Publisher{Plugins: []policy.IDPattern{everything}, Key: id})
		}
		return nil
	}
}

func newSigners(list []verify.Signer) []signerData {
	out := make([]signerData, len(list))
	for i, s := range list {
		out[i] = newSignerData(s)
	}
	return out
}

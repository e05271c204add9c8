package commands

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/switchyard-plugins/switchyard/commands/render"
	"github.com/switchyard-plugins/switchyard/pkgmgr"
	"github.com/switchyard-plugins/switchyard/pkgmgr/archive"
	"github.com/switchyard-plugins/switchyard/schemas/digest"
	"github.com/switchyard-plugins/switchyard/verify"
	"github.com/switchyard-plugins/switchyard/verify/revlist"
)

// wanting is a command with a word in it that only its reader can know, and where that
// word comes from. A shell takes it for a comment.
func wanting(command, where string) string { return command + "  # " + render.Text(where) }

// A signPlan is how those who have not signed a list or a root yet may do so.
type signPlan struct {
	private []string // the files of private keys that lie here, as many as are enough
	absent  []string // the ids of keys that do not
	names   []string // identities, which sign without a key
	enough  bool     // whether those who have signed, and private, are enough
}

// planSigning finds the keys of signers that lie here, as keygen leaves them.
func (in *invocation) planSigning(file string, signers []verify.Signer, enough func([]verify.Signer) bool) (p signPlan) {
	chosen := slices.DeleteFunc(keysOfBundles(file+pkgmgr.BundlesSuffix), func(s verify.Signer) bool { return !slices.Contains(signers, s) })
	here := privateKeys(in.keyDirs(file)...)
	for _, s := range signers {
		switch private, ok := here[s.Key]; {
		case s.Key == "":
			p.names = append(p.names, s.Identity)
		case slices.Contains(chosen, s):
		case !ok:
			p.absent = append(p.absent, s.Key)
		case !enough(chosen):
			chosen = append(chosen, s)
			p.private = append(p.private, private)
		}
	}
	p.enough = enough(chosen)
	return p
}

// signCommands are the commands by which those of signers who have not signed a list or a
// root yet do so.
func (in *invocation) signCommands(file string, signers []verify.Signer, enough func([]verify.Signer) bool) (commands []string) {
	p := in.planSigning(file, signers, enough)
	for _, private := range p.private {
		commands = append(commands, in.next("revocations", "sign", file, "--key", private))
	}
	if len(p.absent) > 0 && !p.enough {
		commands = append(commands, wanting(in.next("revocations", "sign", file, "--key", "FILE"),
			"FILE is what keygen wrote as NAME.key, the private half of "+strings.Join(p.absent, " or ")))
	}
	if len(p.names) > 0 {
		commands = append(commands, wanting(in.next("revocations", "sign", file, "--keyless"), "as "+strings.Join(p.names, " or ")))
	}
	return commands
}

// tooFewHint is the command that signs what an update from a directory found to be signed
// by too few, where a key for that lies here: its publisher forgot to. Whoever only
// follows the list has none, and looks at what is in force.
func (in *invocation) tooFewHint(refused *pkgmgr.ListRefused) string {
	file := listPath(refused.Source)
	path := filepath.Join(filepath.Dir(file), pkgmgr.RootFile)
	if root := rootAt(path); root != nil && !pkgmgr.IsListURL(refused.Source) {
		signers, enough := root.ListSigners, atLeast(root.ListThreshold)
		if refused.Code == pkgmgr.CodeRootSigners {
			file, signers, enough = path, root.RootSigners, atLeast(root.RootThreshold)
		}
		if p := in.planSigning(file, signers, enough); len(p.private) > 0 {
			return in.next("revocations", "sign", file, "--key", p.private[0])
		}
	}
	return in.next("revocations", "list")
}

// rootAt reads a root for a hint: nil where there is none that can be read.
func rootAt(path string) *revlist.Root {
	if !isRegular(path) {
		return nil
	}
	text, err := readUpTo(path, revlist.MaxRootBytes)
	if err != nil {
		return nil
	}
	root, err := revlist.ReadRoot(bytes.NewReader(text))
	if err != nil {
		return nil
	}
	return root
}

// atLeast is enough where n different signers are.
func atLeast(n int) func([]verify.Signer) bool {
	return func(list []verify.Signer) bool { return len(list) >= n }
}

// signListCommands are signCommands for a list, by the root that lies beside it.
func (in *invocation) signListCommands(list string) []string {
	if root := rootAt(filepath.Join(filepath.Dir(list), pkgmgr.RootFile)); root != nil {
		return in.signCommands(list, root.ListSigners, atLeast(root.ListThreshold))
	}
	return []string{wanting(in.next("revocations", "sign", list, "--key", "FILE"),
		"FILE is what keygen wrote as NAME.key, the private half of a key that "+pkgmgr.RootFile+" names in listSigners")}
}

// signRootHint is the command that brings a root that too few have signed nearer.
func (in *invocation) signRootHint(path string) string {
	if root := rootAt(path); root != nil {
		if all := in.signCommands(path, root.RootSigners, atLeast(root.RootThreshold)); len(all) > 0 {
			return all[0]
		}
	}
	return in.next("help", "revocations", "sign")
}

// keyDirs are where a key for a file may lie: where it is, above and below that, and
// where the keys are that the command line names.
func (in *invocation) keyDirs(file string) []string {
	dirs := []string{".", filepath.Dir(file), filepath.Dir(filepath.Dir(file))}
	for _, a := range in.env.Args {
		if strings.HasSuffix(a, ".pub") {
			dirs = append(dirs, filepath.Dir(a[strings.Index(a, "=")+1:]))
		}
	}
	for i, sub := range children(".") {
		if info, err := os.Lstat(sub); i < maxPairs && err == nil && info.IsDir() {
			dirs = append(dirs, sub)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// maxPairs bounds how many public keys of a directory, and directories, are looked at.
const maxPairs = 256

// privateKeys finds key pairs as keygen leaves them: the path of NAME.key by the id of
// NAME.pub. What cannot be read is left out.
func privateKeys(dirs ...string) map[string]string {
	found := map[string]string{}
	for _, dir := range dirs {
		for _, public := range publicKeys(dir) {
			private := strings.TrimSuffix(public, ".pub") + ".key"
			if !isRegular(public) || !isRegular(private) {
				continue
			}
			text, err := readUpTo(public, maxKeyFile)
			if err != nil {
				continue
			}
			if id, err := verify.KeyID(string(text)); err == nil && found[id] == "" {
				found[id] = private
			}
		}
	}
	return found
}

// publicKeys are the paths of what is called a public key in a directory.
func publicKeys(dir string) []string {
	list := slices.DeleteFunc(children(dir), func(p string) bool { return !strings.HasSuffix(p, ".pub") })
	return list[:min(len(list), maxPairs)]
}

func isRegularOrDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && (info.Mode().IsRegular() || info.IsDir())
}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// bundleHead is what a Sigstore bundle says of itself. Nothing of it is proved.
type bundleHead struct {
	Material struct {
		Key struct {
			Hint []byte `json:"hint"`
		} `json:"publicKey"`
	} `json:"verificationMaterial"`
	Signature struct {
		Digest struct {
			Sum []byte `json:"digest"`
		} `json:"messageDigest"`
	} `json:"messageSignature"`
}

// key is the id of the key that the bundle names, "" where it names none.
func (b *bundleHead) key() string { return string(sumOf(b.Material.Key.Hint)) }

func sumOf(sum []byte) digest.Digest {
	if len(sum) != sha256.Size {
		return ""
	}
	return digest.FromBytes(sum)
}

// keysOfBundles are the keys that bundles, one a line, say that they were signed with.
// Nobody is believed that: a hint says who else may sign.
func keysOfBundles(path string) (signers []verify.Signer) {
	if !isRegular(path) {
		return nil
	}
	text, err := readUpTo(path, maxBundlesHint)
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(text) {
		var b bundleHead
		if err := json.Unmarshal(line, &b); err != nil || b.key() == "" {
			continue
		}
		if s := (verify.Signer{Key: b.key()}); !slices.Contains(signers, s) {
			signers = append(signers, s)
		}
	}
	return signers
}

// maxBundlesHint bounds what is read of bundles for a hint, in bytes.
const maxBundlesHint = 1 << 20

// signArchiveHint is the command that signs with a new key the archive that lies in the
// working directory, where there is exactly one that nobody signed yet.
func (in *invocation) signArchiveHint(key string, secret passphrase) string {
	var archives []string
	for _, path := range children(".") {
		if _, err := archive.FormatOf(path); err != nil || !isRegular(path) || isRegular(path+bundleSuffix) {
			continue
		}
		if strings.HasPrefix(path, "-") {
			path = "./" + path
		}
		archives = append(archives, path)
	}
	words := []string{"sign", "ARCHIVE", "--key", key}
	if secret.from != "" {
		words = append(words, "--passphrase", secret.from)
	}
	if len(archives) != 1 {
		return wanting(in.next(words...), "ARCHIVE is the file that pack wrote")
	}
	words[1] = archives[0]
	return in.next(words...)
}

package plugintest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/switchyard-plugins/switchyard/schemas/manifest"
	"github.com/switchyard-plugins/switchyard/sdk/plugin"
)

// readManifest reads the plugin.json of a package.
func readManifest(dir string) (plugin.Manifest, error) {
	f, err := os.Open(filepath.Join(dir, plugin.ManifestFile))
	if err != nil {
		return plugin.Manifest{}, err
	}
	defer f.Close()
	document, err := io.ReadAll(io.LimitReader(f, manifest.MaxBytes+1))
	if err != nil {
		return plugin.Manifest{}, err
	}
	return plugin.ParseManifest(document)
}

// checkExecutable applies the rules for the executable that survive packing: a
// regular file of bounded size, no symbolic link on the way, some execute bit.
// Who else may write to it is not looked at: installing sets the modes.
func checkExecutable(dir, executable string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	path := filepath.FromSlash(filepath.Clean(executable))
	for at := filepath.Dir(path); ; at = filepath.Dir(at) {
		info, err := root.Lstat(at)
		switch {
		case err != nil:
			return violated("the executable's directory: %v", err)
		case !info.IsDir():
			return violated("%s is not a directory", at)
		}
		if at == "." {
			break
		}
	}
	info, err := root.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return violated("the executable %s does not exist", executable)
	case err != nil:
		return fmt.Errorf("executable: %w", err)
	case !info.Mode().IsRegular():
		return violated("the executable %s is not a regular file", executable)
	case info.Size() > manifest.MaxExecutableBytes:
		return violated("the executable has %d bytes, more than %d", info.Size(), manifest.MaxExecutableBytes)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0:
		return violated("the executable %s has no execute bit (mode %v)", executable, info.Mode().Perm())
	}
	return nil
}

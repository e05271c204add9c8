package conformance_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/switchyard-plugins/switchyard/sdk/conformance"
)

// TestPackageInOddDirectory finds the schema of the settings wherever the package lies.
func TestPackageInOddDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[1] b")
	if err := os.CopyFS(dir, os.DirFS("corpus/package")); err != nil {
		t.Fatal(err)
	}
	pkg, err := conformance.OpenPackage(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := pkg.UseSettings([]byte(`{"greeting":"hi"}`)); err != nil {
		t.Error(err)
	}
}

// TestPackageWithRequiredSettings holds a plugin whose settings are required and which asks
// for permissions to every case for any package; without settings it is refused before a
// case runs.
func TestPackageWithRequiredSettings(t *testing.T) {
	pkg, err := conformance.OpenPackage("corpus/package")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", `{"greeting":""}`, `{"greeting":"hi","none":1}`, `{"greeting":"hi"`, `{"greeting":"hi","greeting":"ho"}`} {
		given := []byte(text)
		if text == "" {
			given = nil
		}
		err := pkg.UseSettings(given)
		var misfit *conformance.SettingsError
		if err == nil || errors.As(err, &misfit) && (len(misfit.Problems) == 0 || misfit.Given != (text != "")) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := pkg.UseSettings([]byte(`{ "greeting": "hi" }`)); err != nil {
		t.Fatal(err)
	}
	mine := pkg.Cases(cases(t))
	results, err := (&conformance.Runner{Command: program(t), Package: pkg}).Run(t.Context(), mine)
	if err != nil || len(results) < 100 {
		t.Fatal(len(results), err)
	}
	for _, r := range results {
		if r.Failure != nil {
			t.Errorf("%s: %s", r.Case.Name, r.Failure.Summary())
		}
	}
}

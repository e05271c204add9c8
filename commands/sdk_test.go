package commands

import "testing"

func TestReleaseOf(t *testing.T) {
	for v, want := range map[string]string{
		"v1.2.3":                               "v1.2.3",
		"1.2.3":                                "v1.2.3",
		"v1.2.3-rc.1":                          "v1.2.3-rc.1",
		"devel":                                "",
		"cd378d4":                              "",
		"cd378d4-dirty":                        "",
		"v1.2.3-dirty":                         "",
		"v1.2.3-4-gcd378d4":                    "",
		"v1.2.3-4-gcd378d4-dirty":              "",
		"v0.0.0-20260102030405-0123456789ab":   "",
		"v1.2.4-0.20260102030405-0123456789ab": "",
		"v1.2.4-rc.0.20260102030405-0123456789ab": "",
		"v1.2.3+dirty": "",
		"v1.2":         "",
		"v01.2.3":      "",
		"v0.0.0":       "",
		"":             "",
	} {
		got, ok := releaseOf(v)
		if got != want || ok != (want != "") {
			t.Errorf("releaseOf(%q) = %q, %v; want %q", v, got, ok, want)
		}
	}
}

func TestIsCheckout(t *testing.T) {
	if !isCheckout("..") {
		t.Error("this checkout is none")
	}
	for _, dir := range []string{".", t.TempDir(), "../sdk/scaffold/starter-go"} {
		if isCheckout(dir) {
			t.Errorf("%s is a checkout", dir)
		}
	}
}

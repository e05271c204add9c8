package archive

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// ignoreTree is what the patterns below are tried on.
var ignoreTree = []string{
	"a", "a.log", "b", "build/out.o", "build/keep.txt", "build/sub/out.o", "debug", "dir/a", "dir/a.log", "dir/build/out.o",
	"dir/deep/er/a.log", "dir/deep/er/b", "foo/bar/baz", "foo/x/bar/baz", "logs/1.log", "logs/important.log", "plugin.json",
	"# hash", "!bang", "sp ace", "t[x]", "text-1", "text-a", "text-é", "ü/a", "bar", "x/bar", "star*", "q?", "back^", "tail ",
}

// TestIgnorePatterns compares the subset of gitignore with git itself where git
// is installed, and with the recorded answer everywhere.
func TestIgnorePatterns(t *testing.T) {
	for _, c := range []struct{ name, patterns, left string }{
		{"nothing", "", ""},
		{"comments and blanks", "# a\n\n   \n", ""},
		{"a name, anywhere", "a\n", "a dir/a ü/a"},
		{"an ending", "*.log\n", "a.log dir/a.log dir/deep/er/a.log logs/1.log logs/important.log"},
		{"a directory, anywhere", "build/\n", "build/out.o build/keep.txt build/sub/out.o dir/build/out.o"},
		{"a directory only", "debug/\n", ""},
		{"anchored", "/a\n", "a"},
		{"anchored by a slash inside", "dir/a\n", "dir/a"},
		{"anchored directory", "/build/\n", "build/out.o build/keep.txt build/sub/out.o"},
		{"taken back", "*.log\n!important.log\n", "a.log dir/a.log dir/deep/er/a.log logs/1.log"},
		{"not taken back below", "logs/\n!logs/important.log\n", "logs/1.log logs/important.log"},
		{"taken back below a star", "logs/*\n!logs/important.log\n", "logs/1.log"},
		{"the last one counts", "!a\na\n", "a dir/a ü/a"},
		{"leading deep", "**/bar\n", "bar x/bar foo/bar/baz foo/x/bar/baz"},
		{"leading deep, longer", "**/bar/baz\n", "foo/bar/baz foo/x/bar/baz"},
		{"deep in the middle", "foo/**/baz\n", "foo/bar/baz foo/x/bar/baz"},
		{"deep at the end", "dir/**\n", "dir/a dir/a.log dir/build/out.o dir/deep/er/a.log dir/deep/er/b"},
		{"deep of nothing", "foo/**/bar\n", "foo/bar/baz foo/x/bar/baz"},
		{"deep twice", "**/deep/**/b\n", "dir/deep/er/b"},
		{"star stays in a component", "dir/*.log\n", "dir/a.log"},
		{"star of nothing", "debug*\n", "debug"},
		{"two stars in a component", "de**g\n", "debug"},
		{"question mark", "text-?\n", "text-1 text-a text-é"},
		{"question mark is no slash", "dir?a\n", ""},
		{"class", "text-[0-9]\n", "text-1"},
		{"class of letters", "text-[a-zé]\n", "text-a text-é"},
		{"negated class", "text-[!0-9]\n", "text-a text-é"},
		{"negated class, other sign", "text-[^a]\n", "text-1 text-é"},
		{"class with a bracket", "t[[]x[]]\n", "t[x]"},
		{"class with a dash", "text[a-]1\n", "text-1"},
		{"escapes", "\\# hash\n\\!bang\nstar\\*\nq\\?\nt\\[x\\]\n", "# hash !bang star* q? t[x]"},
		{"escape in a class", "back[\\^]\n", "back^"},
		{"space inside", "sp ace\n", "sp ace"},
		{"spaces at the end", "debug   \n", "debug"},
		{"escaped space at the end", "tail\\ \n", "tail "},
		{"carriage returns", "debug\r\nbar\r\n", "debug bar x/bar foo/bar/baz foo/x/bar/baz"},
		{"no newline at the end", "debug", "debug"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules, err := parseIgnore(c.patterns)
			if err != nil {
				t.Fatal(err)
			}
			got := kept(&ignoreList{patterns: rules})
			var want []string
			gone := splitLeft(c.left)
			for _, p := range ignoreTree {
				if !slices.Contains(gone, p) {
					want = append(want, p)
				}
			}
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("kept %q\nwant %q", got, want)
			}
			// Git's ? and classes match bytes; here they match characters.
			want = slices.DeleteFunc(want, notASCII)
			if git, ok := keptByGit(t, c.patterns); ok && !slices.Equal(slices.DeleteFunc(git, notASCII), want) {
				t.Errorf("git keeps %q\nwant %q", git, want)
			}
		})
	}
}

// splitLeft splits a list of paths of ignoreTree, some of which have spaces.
func splitLeft(s string) []string {
	var gone []string
	for s != "" {
		best := ""
		for _, p := range ignoreTree {
			if (s == p || strings.HasPrefix(s, p+" ")) && len(p) > len(best) {
				best = p
			}
		}
		if best == "" {
			return append(gone, "unknown: "+s)
		}
		gone = append(gone, best)
		s = strings.TrimPrefix(strings.TrimPrefix(s, best), " ")
	}
	return gone
}

// kept walks ignoreTree as list walks a directory.
func kept(l *ignoreList) []string {
	var all []string
next:
	for _, p := range ignoreTree {
		for i := range len(p) {
			if p[i] == '/' && l.skip(p[:i], true) {
				continue next
			}
		}
		if !l.skip(p, false) {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	return all
}

func notASCII(s string) bool { return !isASCII(s) }

func keptByGit(t *testing.T, patterns string) ([]string, bool) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Log("not compared with git, which is not installed")
		return nil, false
	}
	dir := t.TempDir()
	for _, p := range ignoreTree {
		write(t, dir, p, p)
	}
	write(t, dir, IgnoreFile, patterns)
	cmd := exec.Command("sh", "-ec", "git init -q . && git ls-files -z --others --exclude-from="+IgnoreFile)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for p := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		if s := string(p); s != IgnoreFile {
			all = append(all, s)
		}
	}
	slices.Sort(all)
	return all, true
}

// TestIgnoreErrors are patterns that git would quietly take for nothing.
func TestIgnoreErrors(t *testing.T) {
	for _, p := range []string{"[a", "[", "[]", "[!]", "[z-a]", "[a-", "[a\\", "a\\", "!", "/", "//", "a//b", "./a", "a/../b", "\xff"} {
		_, err := parseIgnore("fine\n" + p + "\n")
		wantRefusal(t, named(err, "x", ""), RuleIgnoreFile, IgnoreFile)
		if err != nil && p != "\xff" && !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: the message does not say where: %v", p, err)
		}
	}
}

// TestLitter holds that version control and litter never get into a package,
// even against the ignore file's will.
func TestLitter(t *testing.T) {
	dir := t.TempDir()
	write(t, dir,
		"plugin.json", manifest, IgnoreFile, "!.git\n!*\n!"+IgnoreFile+"\n",
		".git/config", "x", "sub/.git", "gitdir: elsewhere", ".GIT/config", "x", ".hg/a", "x", ".svn/a", "x", ".jj/a", "x", ".bzr/a", "x", "_darcs/a", "x", "CVS/Root", "x",
		".DS_Store", "x", "sub/Thumbs.db", "x", "desktop.ini", "x", "._plugin.json", "x",
		".gitignore", "ships", "sub/"+IgnoreFile, "ships", "cvs", "ships",
	)
	want := []string{".gitignore", "cvs", "plugin.json", "sub/" + IgnoreFile}
	_, tree := mustPack(t, dir, TarZst)
	var got []string
	for _, f := range tree.Files {
		got = append(got, f.Path)
	}
	if !slices.Equal(got, want) {
		t.Errorf("packed %q, want %q", got, want)
	}
	s := newSandbox(t)
	if _, err := copyPath(t, dir, s.dst(), Options{}); err != nil {
		t.Fatal(err)
	}
	s.check(tree)
}

// TestIgnoreTime holds that a pattern made to be slow is not.
func TestIgnoreTime(t *testing.T) {
	rules, err := parseIgnore(strings.Repeat("a*", 200) + "b\n" + strings.Repeat("**/a/", 30) + "b\n")
	if err != nil {
		t.Fatal(err)
	}
	l := &ignoreList{patterns: rules}
	deep := strings.TrimSuffix(strings.Repeat("a/", 100), "/")
	for range 200 {
		if l.skip(strings.Repeat("a", 240), false) || l.skip(deep, false) {
			t.Fatal("matched")
		}
	}
}

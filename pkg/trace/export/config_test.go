package export

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestRead takes and refuses what kube-apiserver v1.36.3 does, in its words: testdata/answers.yaml has what it said to
// each file of testdata/files. An empty answer is that it took the file. What follows "in scheme" is a place in its
// sources.
func TestRead(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/answers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var answers map[string]string
	if err := yaml.Unmarshal(text, &answers); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/files/*.yaml")
	if err != nil || len(files)+1 != len(answers) {
		t.Fatalf("%d files, %d answers, %v", len(files), len(answers), err)
	}
	for name, want := range answers {
		got := ""
		c, err := Read(filepath.Join("testdata/files", name))
		if err != nil {
			got = strings.ReplaceAll(err.Error(), "testdata/files/", "")
		}
		want, _, _ = strings.Cut(want, " in scheme ")
		got, _, _ = strings.Cut(got, ": it must be of kind ")
		if got != want || (err == nil) != (c != nil) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

// TestReadBounds: no file makes the reader take much.
func TestReadBounds(t *testing.T) {
	t.Parallel()
	for what, text := range map[string]string{
		"much":    strings.Repeat("# x\n", maxFile),
		"deep":    strings.Repeat("[", 1000) + strings.Repeat("]", 1000),
		"aliases": "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c]\n",
	} {
		path := filepath.Join(t.TempDir(), "x.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil {
			t.Errorf("%s: it is taken", what)
		}
	}
}

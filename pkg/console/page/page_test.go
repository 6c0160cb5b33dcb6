package page

import (
	"io/fs"
	"strings"
	"testing"
)

// TestFiles: the page is there, small, and loads nothing from elsewhere.
func TestFiles(t *testing.T) {
	t.Parallel()
	const most = 300 << 10
	page, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	size, names := 0, ""
	if err := fs.WalkDir(page, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(page, path)
		size += len(text)
		names += " " + path
		for _, foreign := range []string{"src=\"http", "href=\"http", "url(http", "@import", "eval(", "innerHTML"} {
			if strings.Contains(string(text), foreign) {
				t.Errorf("%s has %q", path, foreign)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if names != " console.css console.js index.html" || size > most {
		t.Errorf("%d bytes in%s", size, names)
	}
}

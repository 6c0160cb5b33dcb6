package architecture

import (
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// widest is the number of columns of a line, where a tab counts tabWidth. unbreakable is the width from which a text
// excuses the line that they are in: nothing is gained by cutting them.
const (
	widest      = 120
	tabWidth    = 4
	unbreakable = 60
)

// wideLines returns the numbers of the lines of a Go file that are too wide, except those with a long text or comment
// without a space to break it at.
func wideLines(src []byte) []int {
	excused, texts := map[int]bool{}, map[int]int{}
	fs := token.NewFileSet()
	file := fs.AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		first := file.Line(pos)
		switch {
		case tok == token.STRING:
			for i, line := range strings.Split(lit, "\n") {
				texts[first+i] += columns(line)
				excused[first+i] = excused[first+i] || texts[first+i] >= unbreakable
			}
		case tok == token.COMMENT:
			for i, line := range strings.Split(lit, "\n") {
				for _, word := range strings.Fields(line) {
					excused[first+i] = excused[first+i] || columns(word) >= unbreakable
				}
				excused[first+i] = excused[first+i] || strings.HasPrefix(line, "//\t")
			}
		}
	}
	var wide []int
	for i, line := range strings.Split(string(src), "\n") {
		if columns(line) > widest && !excused[i+1] {
			wide = append(wide, i+1)
		}
	}
	return wide
}

func columns(line string) int {
	return len([]rune(line)) + (tabWidth-1)*strings.Count(line, "\t")
}

// TestWidth: lines of Go code end at column 120.
func TestWidth(t *testing.T) {
	for _, floor := range []string{"api", "cmd", "deploy", "pkg", "test"} {
		err := filepath.WalkDir(filepath.Join(root, floor), func(path string, d os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.Contains(path, "testdata") {
				return err
			}
			src, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, line := range wideLines(src) {
				t.Errorf("%s:%d is wider than %d columns, where a tab counts %d", path, line, widest, tabWidth)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestWideLines: wide code and comments are found; long texts, examples in comments and addresses are excused.
func TestWideLines(t *testing.T) {
	long := strings.Repeat("word ", 30)
	src := strings.Join([]string{
		"package a",                              // 1
		"// " + long,                             // 2: too wide
		"//\t" + long,                            // 3: an example
		"// https://" + strings.Repeat("x", 130), // 4: an address
		"const b = `" + long + "`",               // 5: a text
		"var c = f(" + strings.Repeat("1, ", 50) + ")", // 6: too wide
		"const d = `", // 7
		long,          // 8: within a text
		"`",
	}, "\n")
	if got := fmt.Sprint(wideLines([]byte(src))); got != "[2 6]" {
		t.Errorf("wide lines %s", got)
	}
}

package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// longestSentence is the number of words that a sentence may have (docs/writing.md). Most should have at most 25.
const longestSentence = 40

// badProse are phrases that make a reader stop, with what to write instead.
var badProse = []struct {
	phrase  *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\bof (which|whom|whose)\b`), `make a sentence of its own, or use "whose"`},
	{regexp.MustCompile(`(?i)\b(is|are|be) told\b`), `"receives", "is notified", "learns"`},
	{regexp.MustCompile(`(?i)\bwho (does|do) not\b`), `name the person: "a user without …"`},
	{regexp.MustCompile(`(?i)\btells? whether\b`), `"reports whether"`},
	{regexp.MustCompile(`(?i)\bbut for\b`), `"except"`},
	{regexp.MustCompile(`(?i)\banew\b`), `"again"`},
	{regexp.MustCompile(`(?i)\bof old(?:[.,;:)]|$)`), `"earlier", "from earlier versions"`},
	{regexp.MustCompile(`(?i)\b(is|are) there already\b`), `"exists", "existing"`},
	{regexp.MustCompile(`(?i)\bthat there (is|are) not\b`), `"unknown", "missing"`},
	{regexp.MustCompile(`(?i)\b(says?|said) of\b`), `"says about", or name the thing`},
}

// badComments are the phrases of badProse that comments may not have either: a comment may use "is there already" and
// other plain words that a help text should not.
var badComments = badProse[:7]

// commentFaults returns the bad phrases in the // comments of a file. Directives and quoted text are left out.
func commentFaults(file *ast.File) []string {
	var faults []string
	for _, group := range file.Comments {
		text := quoted.ReplaceAllString(strings.Join(strings.Fields(group.Text()), " "), "code")
		for _, bad := range badComments {
			if found := bad.phrase.FindString(text); found != "" {
				faults = append(faults, fmt.Sprintf("%q in %.60q: write %s", found, text, bad.instead))
			}
		}
	}
	return faults
}

// quoted matches what a comment quotes (code, or the words of somebody else), and "one of which", which is plain
// English.
var quoted = regexp.MustCompile("`[^`]*`|\"[^\"]*\"|" +
	"(?i:\\b(all|any|each|most|none|one|some|two) of (which|whom)\\b)")

// proseFaults returns what is wrong with the English of a text: bad phrases, and sentences that are too long.
func proseFaults(text string) []string {
	var faults []string
	for _, bad := range badProse {
		if found := bad.phrase.FindString(text); found != "" {
			faults = append(faults, fmt.Sprintf("%q: write %s", found, bad.instead))
		}
	}
	for _, sentence := range sentenceEnd.Split(text, -1) {
		if n := len(strings.Fields(sentence)); n > longestSentence {
			faults = append(faults, fmt.Sprintf("a sentence of %d words: %.60s…", n, strings.TrimSpace(sentence)))
		}
	}
	return faults
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?:;](?:\s|$)`)
	inlineCode  = regexp.MustCompile("`[^`]*`")
	linkTarget  = regexp.MustCompile(`\]\([^)]*\)`)
)

// markdownProse returns the pieces of a page that people read as prose: paragraphs, list items and cells of tables.
// Code is left out; a piece of code within a sentence counts as one word.
func markdownProse(page string) []string {
	var (
		pieces    []string
		paragraph strings.Builder
		fenced    bool
	)
	end := func() {
		pieces = append(pieces, paragraph.String())
		paragraph.Reset()
	}
	for line := range strings.Lines(page) {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			fenced = !fenced
			end()
		case fenced:
		case trimmed == "", strings.HasPrefix(trimmed, "#"), strings.HasPrefix(line, "    ") && paragraph.Len() == 0:
			end()
		case strings.HasPrefix(trimmed, "|"):
			end()
			pieces = append(pieces, strings.Split(trimmed, "|")...)
		default:
			if strings.HasPrefix(trimmed, "- ") || strings.HasPrefix(trimmed, "* ") {
				end()
			}
			paragraph.WriteString(trimmed + " ")
		}
	}
	end()
	for i, p := range pieces {
		pieces[i] = linkTarget.ReplaceAllString(inlineCode.ReplaceAllString(p, "code"), "]")
	}
	return pieces
}

// goProse returns the texts of a Go file that users read: the help of commands and flags, and messages of errors.
func goProse(file *ast.File) []string {
	var texts []string
	add := func(e ast.Expr) {
		if text, ok := constantText(e); ok {
			texts = append(texts, text)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && slices.Contains([]string{"Short", "Long"}, key.Name) {
				add(n.Value)
			}
		case *ast.CallExpr:
			called, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || len(n.Args) == 0 {
				break
			}
			receiver, _ := called.X.(*ast.Ident)
			switch {
			case receiver != nil && (receiver.Name+"."+called.Sel.Name == "fmt.Errorf" ||
				receiver.Name+"."+called.Sel.Name == "errors.New"):
				add(n.Args[0])
			case flagDefiner.MatchString(called.Sel.Name) && len(n.Args) >= 3:
				add(n.Args[len(n.Args)-1])
			}
		}
		return true
	})
	return texts
}

// flagDefiner matches the methods of pflag.FlagSet whose last argument is the help of a flag.
var flagDefiner = regexp.MustCompile(
	`^(String|Bool|Int|Int32|Int64|Duration|Float32|Float64|StringSlice|StringArray|IP|Uint)?(Var)?P?$`)

// constantText returns the text of a string literal, or of several that are added up.
func constantText(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, okLeft := constantText(e.X)
		right, okRight := constantText(e.Y)
		return left + right, okLeft && okRight
	}
	return "", false
}

// TestProse: pages, help and errors are plain English (docs/writing.md).
func TestProse(t *testing.T) {
	check := func(path string, pieces []string) {
		var faults []string
		for _, piece := range pieces {
			faults = append(faults, proseFaults(piece)...)
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		if len(faults) > 0 {
			t.Errorf("%s:\n  %s", name, strings.Join(faults, "\n  "))
		}
	}
	for _, page := range documents(t) {
		// writing.md shows what not to write; the reference is made from texts that are checked in the programs.
		if filepath.Base(page) == "writing.md" || strings.Contains(filepath.ToSlash(page), "docs/reference/") {
			continue
		}
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		check(page, markdownProse(string(raw)))
	}
	for _, floor := range []string{"api", "cmd", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, floor), func(path string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			check(path, goProse(file))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestProseOfComments: comments of files that are not tests have no bad phrases.
func TestProseOfComments(t *testing.T) {
	for _, floor := range []string{"api", "cmd", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, floor), func(path string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			for _, f := range commentFaults(file) {
				t.Errorf("%s: %s", path, f)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestProseFaults: every bad phrase and a long sentence are found, where people read them and nowhere else.
func TestProseFaults(t *testing.T) {
	for text, want := range map[string]int{
		"A pod of which nobody knows, as of old.":                        2,
		"The hub is told. The cache tells whether it is new, but for A.": 3,
		strings.Repeat("word ", 41) + ".":                                1,
		strings.Repeat("word ", 40) + ". Another sentence.":              0,
		"RBAC prevents privilege escalation.":                            0,
	} {
		if got := proseFaults(text); len(got) != want {
			t.Errorf("%.40q: %d faults, not %d: %q", text, len(got), want, got)
		}
	}
	page := "# Of which\n\nA paragraph\nof which `of which`.\n\n```\nof which\n```\n\n| a | of whom |\n"
	var faults []string
	for _, piece := range markdownProse(page) {
		faults = append(faults, proseFaults(piece)...)
	}
	if len(faults) != 2 {
		t.Errorf("of a page: %q", faults)
	}
	const source = `package a
// of which
var c = cobra.Command{Short: "of which", Example: "of which"}
func f() error {
	set.StringVar(&x, "name", "", "help " + "anew")
	log.Info("of which")
	return fmt.Errorf("but for %s", errors.New("of old"))
}`
	file, err := parser.ParseFile(token.NewFileSet(), "", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := goProse(file); len(got) != 4 {
		t.Errorf("of a Go file: %q", got)
	}
	const comments = `// Package a is a copy of what there is, of which some is told
// anew.
package a

//go:generate but for
// f quotes "tells whether" and one of which it knows, but for one.
func f() {} // of old`
	if file, err = parser.ParseFile(token.NewFileSet(), "", comments, parser.ParseComments); err != nil {
		t.Fatal(err)
	}
	if got := commentFaults(file); len(got) != 5 {
		t.Errorf("of comments: %d %q", len(got), got)
	}
}

package docbounds

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"
)

// TestYAMLBeforeItIsParsed: a document beyond the bounds costs next to nothing, whichever way it is written.
func TestYAMLBeforeItIsParsed(t *testing.T) { // not parallel: it counts what is allocated
	const size = 1 << 20
	many := func(text string) string { return strings.Repeat(text, size/len(text)) }
	wide := []byte("\xff\xfe")
	for _, u := range utf16.Encode([]rune("[" + many("{},") + "]")) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	max := Bounds{Bytes: 2 * size, Values: 10_000, Depth: 300}
	for name, doc := range map[string]string{
		"objects in brackets":   "[" + many("{},") + "]",
		"scalars in brackets":   "[" + many("a,") + "]",
		"a list under brackets": strings.Repeat("[", 9000) + many("a,") + strings.Repeat("]", 9000),
		"brackets":              many("["),
		"a list":                many("- a\n"),
		"an empty list":         many("-\n"),
		"lists in a line":       many("- "),
		"keys":                  many("a:\n"),
		"explicit keys":         many("? a\n"),
		"empty keys":            many("?\n"),
		"aliases":               "a: &a x\nb: [" + many("*a,") + "]",
		"anchors":               "[" + many("&a a,") + "]",
		"tags":                  many("- !a a\n"),
		"comments between":      many("- a #\n#\n"),
		"comments":              "a:\n  b: c\n" + many("#\n #\n"),
		"comments in a list":    "a: [\n" + many("#\n #\n") + "]",
		"comments alone":        many(" #\n"),
		"after a text":          "a: |\n  \"\n" + many("- a\n"),
		"after a plain text":    "a: b\n \"\nc:\n" + many("- a\n"),
		"after a quote":         "a: \"\\\"\"\nb: 'x'''\nc:\n" + many("- '\n"),
		"after a comment":       "a: b #\"\nc:\n" + many("- a\n"),
		"UTF-16":                string(wide),
		"no end":                many("{a: [b], "),
		"byte order marks":      "\ufeff\"\ufeff\n\"\n" + many("[a],"),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := YAML([]byte(doc), max)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrBeyond) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
		if cost := after.TotalAlloc - before.TotalAlloc; cost > 8*size {
			t.Errorf("%s: %d MiB to refuse 1 MiB", name, cost>>20)
		}
	}
	for name, doc := range map[string]string{
		"a literal text":  "a: |\n" + many(" - {a: [b, \"c\"]}\n"),
		"a folded text":   "a:\n- >2-\n" + many("   - a\n\n") + "  - b",
		"a plain text":    "a:\n - b\n" + many("   - c, [d] {e} 'f\n"),
		"a quoted text":   "a: \"" + many("\\\"- a, [b]: ") + "\"",
		"a long comment":  "a: b\n# " + many("- a: [b] #"),
		"some comments":   "a: b\n" + strings.Repeat("# - a: [b]\n", 10_000),
		"another stream":  "a: b\n---\n" + many("- a\n"),
		"byte order mark": "\ufeffa: \"\ufeff" + many("some text ") + "\"",
		"a line":          "{\"a\": \"" + many("x,") + "\"}",
	} {
		if err := YAML([]byte(doc), max); err != nil {
			t.Errorf("%s: %v, want it within the bounds", name, err)
		}
	}
}

// TestTokensAreThoseOfTheParser: whatever the parser takes, the scanner counts no more than its values, and no less
// than what it needs to bound them: also where the two could disagree about where a text or a comment ends.
func TestTokensAreThoseOfTheParser(t *testing.T) {
	t.Parallel()
	parts := []string{"a", "b", "\"", "'", "\\", "\"x\"", "'y'", " ", " ", "  ", "\n", "\n", "\n ", "\n  ", "\n\n", "\t",
		"\r\n", "\r", "\u0085", "\u2028", "é", "- ", "-", "? ", "?", ": ", ":", ":\n", "[", "]", "{", "}", ", ",
		",", "|", ">", "|\n", ">-\n", "|2", "|1+\n", "#", " #", "&a ", "*a ", "!t ", "!<t> ", "---", "\n---", "\n--- ",
		"...", "\n...\n", "%YAML 1.1\n---\n", "a: ", "- a\n", "@", "%", "x: y\n", "  x: y\n", "  - z\n"}
	random := rand.New(rand.NewPCG(1, 2))
	parsed := 0
	for range 400_000 {
		var doc strings.Builder
		for range 1 + random.IntN(14) {
			doc.WriteString(parts[random.IntN(len(parts))])
		}
		if agree(t, []byte(doc.String())) {
			parsed++
		}
	}
	if parsed < 20_000 {
		t.Errorf("only %d could be parsed", parsed)
	}
}

// TestTokensOfManifests: as for random documents, with those that people write.
func TestTokensOfManifests(t *testing.T) {
	t.Parallel()
	found := 0
	for _, root := range []string{"../../deploy", "../../test", "../../docs"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if ext := filepath.Ext(path); err != nil || d.IsDir() || ext != ".yaml" && ext != ".yml" && ext != ".json" {
				return err
			}
			doc, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if len(doc) < 1<<20 && agree(t, doc) {
				found++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 10 {
		t.Errorf("only %d manifests", found)
	}
}

// agree compares the scanner's counts with the parser's nodes. It answers false if the parser refuses the document.
func agree(t *testing.T, doc []byte) bool {
	t.Helper()
	var root, second yaml.Node
	stream := yaml.NewDecoder(bytes.NewReader(doc))
	if stream.Decode(&root) != nil || root.Kind == 0 {
		return false
	}
	// What follows the document's value without a mark between is refused, but not by who reads the first one alone.
	err := stream.Decode(&second)
	alone := err == nil || errors.Is(err, io.EOF)
	nodes, depth := written(root.Content[0])
	s := newScanner(inUTF8(doc), Bounds{Values: 1 << 30, Depth: 1 << 30})
	for s.next() {
	}
	if alone && (s.values > nodes || s.tokens > tokensPerValue*nodes) || nodes > 2*s.tokens+1 {
		t.Errorf("%.200q: %d values, scanned as %d and %d tokens", doc, nodes, s.values, s.tokens)
	}
	if err := tokens(doc, Bounds{Values: nodes + s.comments, Depth: depth}); alone && err != nil {
		t.Errorf("%.200q: %d values, %d levels: %v", doc, nodes, depth, err)
	}
	return true
}

// written counts the nodes that are written out, and how many collections lie in one another.
func written(n *yaml.Node) (nodes, depth int) {
	nodes = 1
	for _, child := range n.Content {
		more, below := written(child)
		nodes += more
		depth = max(depth, below)
	}
	if n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode {
		depth++
	}
	return nodes, depth
}

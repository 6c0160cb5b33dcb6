package architecture

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// ownTerms are the terms of docs/glossary.md that an exported type may be named by only where the glossary links to it:
// a reader who knows the term must not meet it with another meaning.
var ownTerms = []string{"Place", "Verdict", "Snapshot", "Form", "Keep", "Item", "Row", "Slot", "Sink", "Draft", "Mark"}

// bannedWords may not be part of a name, with what to write instead.
var bannedWords = map[string]string{
	"stranger":      "unauthenticated connection",
	"strangers":     "unauthenticated connections",
	"told":          "a func adapter named by its interface",
	"outward":       "egress",
	"pace":          "bounded frequency",
	"liar":          "negative oracle",
	"initialise":    "initialize",
	"initialised":   "initialized",
	"containerised": "containerized",
}

// glossaryPlace is a link of the glossary to a declaration.
var glossaryPlace = regexp.MustCompile(`\[.([\w./-]+)/[\w-]+\.go:(\w+).\]`)

// terms: one name has one meaning. Exported types that are named as a term of ours are those that docs/glossary.md
// names, and no name has a word in it for which the field has a better one.
func terms(t *tree) (found []finding) {
	meanings := glossary()
	for _, p := range t.packages {
		folder := strings.TrimPrefix(p.path, "bonsai/")
		for _, part := range strings.Split(folder, "/") {
			if instead, banned := bannedWords[part]; banned {
				found = append(found, finding{text: p.path + ": write " + instead, keys: []string{p.path}})
			}
		}
		for _, file := range p.files {
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.TypeSpec); ok && slices.Contains(ownTerms, s.Name.Name) &&
					!slices.Contains(meanings[s.Name.Name], folder) {
					found = append(found, finding{text: t.at(p, s) + " names a type " + s.Name.Name +
						", which docs/glossary.md does not say", keys: []string{p.path + "." + s.Name.Name}})
				}
				for _, name := range declaredNames(n) {
					if word := bannedIn(name.Name); word != "" {
						found = append(found, finding{text: t.at(p, name) + " names " + name.Name + ": write " +
							bannedWords[word], keys: []string{p.path + "." + word}})
					}
				}
				return true
			})
		}
	}
	return found
}

// declaredNames returns the names that a node declares.
func declaredNames(n ast.Node) []*ast.Ident {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{n.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{n.Name}
	case *ast.ValueSpec:
		return n.Names
	case *ast.Field:
		return n.Names
	case *ast.AssignStmt:
		var names []*ast.Ident
		for _, left := range n.Lhs {
			if name, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
				names = append(names, name)
			}
		}
		return names
	}
	return nil
}

// bannedIn returns the first banned word of a name; "" without one. A variable may be called told: only exported names
// that begin with it, which said that a type is a func adapter, are banned.
func bannedIn(name string) string {
	start := 0
	for i, r := range name + "A" {
		if i > 0 && unicode.IsUpper(r) {
			word := name[start:i]
			start = i
			if lower := strings.ToLower(word); bannedWords[lower] != "" && word != "told" {
				return lower
			}
		}
	}
	return ""
}

// glossary returns, for each declaration that docs/glossary.md links to, the folders that it is in.
func glossary() map[string][]string {
	out := map[string][]string{}
	page, err := os.ReadFile(filepath.Join(root, "docs", "glossary.md"))
	if err != nil {
		return out // then every term is found, and the error seen
	}
	for _, m := range glossaryPlace.FindAllStringSubmatch(string(page), -1) {
		out[m[2]] = append(out[m[2]], path.Clean(m[1]))
	}
	return out
}

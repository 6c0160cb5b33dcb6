package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// undescribed is the package whose types neither describe themselves nor are described by what upstream publishes.
const undescribed = "k8s.io/apimachinery/pkg/util/intstr"

// readDescriptions reads what the SwaggerDoc methods of a package tell; nil if it has none.
func readDescriptions(dir string) (map[string]map[string]string, error) {
	path := filepath.Join(dir, "types_swagger_doc_generated.go")
	if _, err := os.Stat(path); err != nil {
		return nil, nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		name, ok := strings.CutPrefix(spec.Names[0].Name, "map_")
		list, isList := spec.Values[0].(*ast.CompositeLit)
		if !ok || !isList {
			return true
		}
		out[name] = map[string]string{}
		for _, e := range list.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				out[name][literal(pair.Key)] = literal(pair.Value)
			}
		}
		return false
	})
	return out, nil
}

func literal(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok {
		v, _ := strconv.Unquote(l.Value) // it was parsed
		return v
	}
	return ""
}

// describe adds a line for a type, or a field of it, whose comment says something else than its SwaggerDoc method,
// which ends at a line that begins with "---" and takes backslashes away.
func (p *pkg) describe(of, field string, doc *ast.CommentGroup) {
	told, ok := p.described[of]
	if !ok && p.path != undescribed {
		return
	}
	words := description(doc)
	if words == told[field] || words == "" {
		return
	}
	key := p.path + "." + of
	if field != "" {
		key += ":" + field
	}
	p.lines = append(p.lines, fmt.Sprintf("%s# %q", key, words))
}

// description is a comment as Kubernetes publishes it: its lines as one, paragraphs apart, and what is set in as it
// stands, without markers and what is still to be done.
func description(doc *ast.CommentGroup) string {
	var out strings.Builder
	last := func() { // takes the last character away
		s := out.String()
		out.Reset()
		out.WriteString(s[:max(0, len(s)-1)])
	}
	for line := range strings.SplitSeq(doc.Text(), "\n") {
		line = strings.TrimRight(line, " ")
		words := strings.TrimLeft(line, " ")
		switch {
		case line == "---":
			return strings.TrimSpace(out.String())
		case line == "":
			last()
			out.WriteString("\n\n")
		case strings.HasPrefix(words, "TODO"), strings.HasPrefix(words, "+"):
		case line[0] == ' ' || line[0] == '\t':
			last()
			out.WriteString("\n" + line + "\n")
		default:
			out.WriteString(line + " ")
		}
	}
	return strings.TrimSpace(out.String())
}

// spaced reports whether the words of a comment end with an empty line, before its markers.
func spaced(doc *ast.CommentGroup) bool {
	last := "x"
	for line := range strings.SplitSeq(strings.TrimSpace(doc.Text()), "\n") {
		if words := strings.TrimSpace(line); !strings.HasPrefix(words, "+") && !strings.HasPrefix(words, "TODO") {
			last = words
		}
	}
	return last == ""
}

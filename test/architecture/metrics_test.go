package architecture

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// metrics: each metric has its row in docs/reference/metrics. The pages are made from the collectors that tests build,
// and a part that no test builds would be missing there. So the names are read from the source here.
func metrics(t *tree) (found []finding) {
	rows, err := metricRows(filepath.Join("..", "..", "docs", "reference", "metrics"))
	if err != nil {
		return []finding{{text: err.Error()}}
	}
	s := newSource(t)
	for _, p := range t.packages {
		if !anyUnder(p.path, []string{"bonsai/pkg", "bonsai/cmd"}) || forTests(p.path) {
			continue
		}
		for _, m := range named(p) {
			names := s.names(p, m.name, nil)
			if len(names) == 0 {
				found = append(found, finding{text: t.at(p, m.at) + " has a metric whose name cannot be read here: " +
					"make it of constants, also through parameters, fields and loops over literals"})
			}
			for _, name := range names {
				if !rows[name] {
					found = append(found, finding{text: t.at(p, m.at) + " has " + name +
						", which no page of docs/reference/metrics has: build its part in the test of the page"})
				}
			}
		}
	}
	return found
}

var metricRow = regexp.MustCompile("(?m)^\\| `([a-z][a-zA-Z0-9_]*)` \\|")

// metricRows are the names that the pages in dir have.
func metricRows(dir string) (map[string]bool, error) {
	pages, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return nil, err
	}
	rows := map[string]bool{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		for _, m := range metricRow.FindAllSubmatch(text, -1) {
			rows[string(m[1])] = true
		}
	}
	return rows, nil
}

// metric is a metric that a package makes: where, and what its name is joined of.
type metric struct {
	at   ast.Node
	name []ast.Expr
}

// named returns the metrics that a package makes.
func named(p *pkg) (all []metric) {
	const library = "github.com/prometheus/client_golang/prometheus"
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				parts := keyed(n)
				from, name := p.qualified(n.Type)
				described := parts["Name"] != nil || parts["Help"] != nil
				switch {
				case described && from == library && strings.HasSuffix(name, "Opts"):
					all = append(all, metric{n, optionsName(parts)})
				case parts["name"] != nil && parts["help"] != nil && parts["kind"] != nil: // of a page of our own
					all = append(all, metric{n, []ast.Expr{parts["name"]}})
				}
			case *ast.CallExpr:
				if from, name := p.qualified(n.Fun); from == library && name == "NewDesc" {
					all = append(all, metric{n, n.Args[:1]})
				}
			}
			return true
		})
	}
	return all
}

// keyed returns the values of a literal by its keys that are names.
func keyed(l *ast.CompositeLit) map[string]ast.Expr {
	all := map[string]ast.Expr{}
	for _, e := range l.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok {
				all[key.Name] = pair.Value
			}
		}
	}
	return all
}

// optionsName returns what the library joins to a name.
func optionsName(parts map[string]ast.Expr) (name []ast.Expr) {
	for _, key := range []string{"Namespace", "Subsystem", "Name"} {
		if e := parts[key]; e != nil && name != nil {
			name = append(name, &ast.BasicLit{Kind: token.STRING, Value: `"_"`}, e)
		} else if e != nil {
			name = []ast.Expr{e}
		}
	}
	return name
}

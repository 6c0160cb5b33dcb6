package architecture

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// comments: a newcomer reads the package comment first.
func comments(t *tree) (found []finding) {
	for _, p := range t.packages {
		if !slices.ContainsFunc(p.files, func(f *ast.File) bool { return f.Doc != nil }) {
			found = append(found, finding{text: p.path + " has no package comment"})
		}
	}
	return found
}

// names: a package is named by what it provides.
func names(t *tree) (found []finding) {
	for _, p := range t.packages {
		for _, part := range strings.Split(p.path, "/") {
			switch part {
			case "util", "utils", "common", "helper", "helpers", "misc":
				found = append(found, finding{text: p.path + ": " + part + " says nothing about what is in it"})
			}
		}
	}
	return found
}

// inits: what is plugged in is an explicit list, not an import's side effect.
func inits(t *tree) (found []finding) {
	for _, p := range t.packages {
		for _, file := range p.files {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
					found = append(found, finding{text: t.at(p, f) + " has an init function"})
				}
			}
		}
	}
	return found
}

// uses finds the names of other packages that forbidden has, "import/path.Name" or "import/path" for all of it, with
// the reason.
func uses(t *tree, p *pkg, file *ast.File, forbidden map[string]string) (found []finding) {
	ast.Inspect(file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		from, name := p.qualified(e)
		for _, what := range []string{from, from + "." + name} {
			if reason := forbidden[what]; from != "" && reason != "" {
				found = append(found, finding{text: t.at(p, e) + " uses " + from + "." + name + ": " + reason})
			}
		}
		return true
	})
	return found
}

// calls: a context comes from the caller, and only a main ends the process.
func calls(t *tree) (found []finding) {
	forbidden := map[string]string{
		"context.Background": "the context comes from the caller (context.WithoutCancel detaches)",
		"context.TODO":       "the context comes from the caller",
		"os.Exit":            "only mains end the process",
		"syscall.Exit":       "only mains end the process",
		"log.Fatal":          "only mains end the process",
		"log.Fatalf":         "only mains end the process",
		"log.Fatalln":        "only mains end the process",
	}
	for _, p := range t.packages {
		if !anyUnder(p.path, []string{"bonsai/api", "bonsai/pkg", "bonsai/deploy"}) || p.name == "main" ||
			forTests(p.path) {
			continue
		}
		for _, file := range p.files {
			found = append(found, uses(t, p, file, forbidden)...)
		}
	}
	return found
}

// sleeps: no one waits by sleeping where a condition, a timer that can be stopped, or the end of a context can be
// waited for.
func sleeps(t *tree) (found []finding) {
	for _, p := range t.packages {
		if !anyUnder(p.path, []string{"bonsai/api", "bonsai/pkg", "bonsai/cmd", "bonsai/deploy"}) {
			continue
		}
		for _, file := range p.files {
			found = append(found, uses(t, p, file,
				map[string]string{"time.Sleep": "wait for the condition, or for a timer beside the context"})...)
		}
	}
	return found
}

// templates: a binary in which a template can run keeps every exported method of every type, for a template may call
// any by its name. That is a fifth of each component's size and of its memory. Cobra runs one if it is given one.
func templates(t *tree) (found []finding) {
	const reason = "the linker then keeps every method of every type"
	for _, p := range t.packages {
		if !anyUnder(p.path, []string{"bonsai/api", "bonsai/pkg", "bonsai/cmd", "bonsai/deploy"}) ||
			under(p.path, "bonsai/pkg/kubectl") {
			continue
		}
		for _, imported := range p.imports {
			if imported == "text/template" || imported == "html/template" {
				found = append(found, finding{text: p.path + " imports " + imported + ": " + reason})
			}
		}
		for _, file := range p.files {
			ast.Inspect(file, func(n ast.Node) bool {
				if e, ok := n.(*ast.SelectorExpr); ok &&
					slices.Contains([]string{"SetVersionTemplate", "SetUsageTemplate", "SetHelpTemplate",
						"SetErrorTemplate"}, e.Sel.Name) {
					found = append(found, finding{text: t.at(p, e) + " uses " + e.Sel.Name + ": " + reason})
				}
				return true
			})
		}
	}
	return found
}

// pure are the packages whose verdicts are functions of their arguments: what is decided can be tested as a table, and
// replayed. In those with files, only these act on what was decided, and are not pure.
var pure = []struct {
	path    string
	impure  []string
	because string
}{
	{path: "bonsai/api", because: "what we know of kinds"},
	{path: "bonsai/pkg/apiserver/patch", because: "patched documents"},
	{path: "bonsai/pkg/cluster/plan", because: "what a cluster is to be"},
	{path: "bonsai/pkg/kubelet/eviction/pressure", because: "what is short, and which pod goes first"},
	{path: "bonsai/pkg/kubelet/lifecycle", because: "what is done to a pod next"},
	{path: "bonsai/pkg/story", because: "what an object's spans tell"},
	{path: "bonsai/pkg/termtext", because: "texts for terminals"},
	{path: "bonsai/pkg/scheduler/plugins", because: "filters and scores"},
	{path: "bonsai/pkg/scheduler/topology", because: "filters and scores"},
	{path: "bonsai/pkg/scheduler/decide", because: "which node"},
	{path: "bonsai/pkg/proxy", impure: []string{"loop.go"}, because: "the rules for Services"},
	{path: "bonsai/pkg/network", because: "the ways between nodes' pods"},
	{path: "bonsai/pkg/network/policy", because: "who may reach a node's pods"},
	{path: "bonsai/pkg/network/nft", because: "the rules for NetworkPolicies"},
	{path: "bonsai/pkg/traces", because: "what a trace is"},
	{path: "bonsai/pkg/traces/store", because: "which traces are kept"},
	{path: "bonsai/pkg/proxy/nft", because: "the rules for Services"},
}

// purity: pure packages take time and randomness as arguments.
func purity(t *tree) (found []finding) {
	const clock, chance = "it is the caller's clock", "chance is the caller's"
	forbidden := map[string]string{
		"time.Now": clock, "time.Since": clock, "time.Until": clock, "time.Sleep": clock, "time.After": clock,
		"time.AfterFunc": clock,
		"time.Tick":      clock, "time.NewTimer": clock, "time.NewTicker": clock, "k8s.io/utils/clock": clock,
		"math/rand": chance, "math/rand/v2": chance, "crypto/rand": chance, "k8s.io/apimachinery/pkg/util/rand": chance,
		"k8s.io/apimachinery/pkg/util/uuid": chance,
	}
	for _, p := range t.packages {
		for _, file := range p.files {
			for _, q := range pure {
				// The rules of a component stand in its root; of others the whole is meant.
				inside := p.path == q.path || !slices.Contains(components, q.path) && under(p.path, q.path)
				if !inside || slices.Contains(q.impure, t.fileName(file)) {
					continue
				}
				for _, f := range uses(t, p, file, forbidden) {
					found = append(found, finding{text: f.text + " (" + q.because + ")"})
				}
			}
		}
	}
	return found
}

// logKeys: an error is logged under "err", whatever the component, so that one search finds them all.
func logKeys(t *tree) (found []finding) {
	for _, p := range t.packages {
		for _, file := range p.files {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				pairs := logged(p, call)
				for i := 0; i+1 < len(pairs); i += 2 {
					key, ok := literal(pairs[i])
					value, named := pairs[i+1].(*ast.Ident)
					switch {
					case !ok:
					case key == "error", named && isError(p, value) && key != "err":
						found = append(found, finding{text: t.at(p, pairs[i]) + " logs an error as " +
							strconv.Quote(key) + `, not "err"`})
					}
				}
				return true
			})
		}
	}
	return found
}

// listening are the packages that make Unix sockets themselves.
var listening = map[string]string{
	"bonsai/pkg/privatesocket": "this is the one way",
	"bonsai/pkg/kubectl/proxy": "users choose who connects, by their umask, as with upstream's kubectl",
}

// sockets: a Unix socket has its mode from its beginning. Whoever changes it by its path comes too late, and may change
// what others put there meanwhile.
func sockets(t *tree) (found []finding) {
	for _, p := range t.packages {
		if !anyUnder(p.path, []string{"bonsai/pkg", "bonsai/cmd"}) || forTests(p.path) {
			continue
		}
		for _, file := range p.files {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				f, ok := call.Fun.(*ast.SelectorExpr)
				if ok && (f.Sel.Name == "Listen" || f.Sel.Name == "ListenUnix") &&
					slices.ContainsFunc(call.Args, isUnix) {
					found = append(found, finding{keys: []string{p.path},
						text: t.at(p, call) + " listens on a Unix socket: pkg/privatesocket gives it its mode"})
				}
				return true
			})
		}
	}
	return found
}

// isUnix reports whether an argument names the network of Unix sockets.
func isUnix(e ast.Expr) bool {
	network, ok := literal(e)
	return ok && network == "unix"
}

// logged returns the keys and values that a call gives to a slog.Logger.
func logged(p *pkg, call *ast.CallExpr) []ast.Expr {
	if from, _ := p.qualified(call.Fun); from == "log/slog" && len(call.Args) == 2 {
		return call.Args // slog.Any and its like
	}
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	first := map[string]int{"With": 0, "Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "DebugContext": 2,
		"InfoContext": 2, "WarnContext": 2, "ErrorContext": 2}
	if n, ok := first[s.Sel.Name]; ok && len(call.Args) > n {
		return call.Args[n:]
	}
	return nil
}

// literal is the value of a string literal.
func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(l.Value)
	return s, err == nil
}

// isError reports whether a variable is named or typed as an error.
func isError(p *pkg, id *ast.Ident) bool {
	v, ok := p.info.Uses[id].(*types.Var)
	return ok && (id.Name == "err" || types.Identical(v.Type(), types.Universe.Lookup("error").Type()))
}

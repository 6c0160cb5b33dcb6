package architecture

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
)

// kubeversion is the package that names the release of Kubernetes that is followed.
const kubeversion = "bonsai/api/kubeversion"

// versions: the release stands in one package. Where it is spelled a second time, it is forgotten when another one is
// followed. Other releases are facts of history.
func versions(t *tree) (found []finding) {
	minor := minorVersion(t)
	spelled := regexp.MustCompile(`(\b|v)1\.` + minor + `\b`)
	// An image or a module has its own name before its version.
	other := regexp.MustCompile(`[:@]v?1\.` + minor)
	for _, p := range t.packages {
		if !anyUnder(p.path, []string{"bonsai/api", "bonsai/pkg", "bonsai/cmd"}) || p.path == kubeversion {
			continue
		}
		for _, file := range p.files {
			ast.Inspect(file, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				switch {
				case ok && lit.Kind == token.STRING &&
					(spelled.MatchString(lit.Value) && !other.MatchString(lit.Value) ||
						lit.Value == strconv.Quote(minor)):
					found = append(found, finding{text: t.at(p, n) + " spells the version in " + lit.Value + ": " +
						kubeversion + " has it"})
				case numbered(n, minor):
					found = append(found, finding{text: t.at(p, n) + " spells the version in numbers: " + kubeversion +
						" has it"})
				}
				return true
			})
		}
	}
	return found
}

// minorVersion returns the constant Minor of kubeversion.
func minorVersion(t *tree) (minor string) {
	for _, p := range t.packages {
		if p.path != kubeversion {
			continue
		}
		for _, file := range p.files {
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.ValueSpec)
				if !ok || spec.Names[0].Name != "Minor" {
					return true
				}
				if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
					minor, _ = strconv.Unquote(lit.Value)
				}
				return false
			})
		}
	}
	return minor
}

// numbered reports whether n makes the version from numbers, as MajorMinor(1, 36) does.
func numbered(n ast.Node, minor string) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) != 2 {
		return false
	}
	first, ok := call.Args[0].(*ast.BasicLit)
	second, also := call.Args[1].(*ast.BasicLit)
	return ok && also && first.Value == "1" && second.Value == minor
}

// Command genmarkers reads the comment markers (+listType, +enum, …) of the Kubernetes API types, what the values of
// enumerations mean, and the descriptions that SwaggerDoc methods tell otherwise, which reflection cannot see, out of
// the modules' sources and prints them as the table that package openapi embeds.
//
//	go run ./api/openapi/genmarkers > api/openapi/markers.txt
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	lines, err := collect()
	if err != nil {
		fmt.Fprintln(os.Stderr, "genmarkers:", err)
		os.Exit(1)
	}
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	for _, l := range lines {
		fmt.Fprintln(w, l)
	}
}

// collect reads all packages of API types that are stable, and those of apimachinery that they are made of.
func collect() ([]string, error) {
	var all []string
	known := map[string]string{}
	for _, module := range []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver",
		"k8s.io/kube-aggregator"} {
		dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		if err != nil {
			return nil, fmt.Errorf("finding %s: %w", module, err)
		}
		root := strings.TrimSpace(string(dir))
		err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() || !wanted(module, strings.TrimPrefix(path, root+"/")) {
				return err
			}
			lines, err := readPackage(path, module+"/"+strings.TrimPrefix(path, root+"/"), known)
			all = append(all, lines...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func wanted(module, dir string) bool {
	switch dir {
	case "pkg/apis/meta/v1", "pkg/runtime", "pkg/api/resource", "pkg/util/intstr", "pkg/apis/apiextensions/v1",
		"pkg/apis/apiregistration/v1", "scheduling/v1alpha3": // the last has types of Jobs
		return true
	}
	base := filepath.Base(dir)
	return module == "k8s.io/api" && !strings.Contains(base, "alpha") && !strings.Contains(base, "beta")
}

func readPackage(dir, path string, known map[string]string) ([]string, error) {
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	p := &pkg{path: path, known: known, enums: map[string][]string{}, docs: map[string]string{},
		isEnum: map[string]bool{}}
	if p.described, err = readDescriptions(dir); err != nil {
		return nil, err
	}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") || strings.Contains(f, "zz_generated") || strings.HasSuffix(f, ".pb.go") {
			continue
		}
		file, err := parser.ParseFile(fset, f, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		p.file(file)
	}
	for i, line := range p.lines {
		p.lines[i] = constantDefault.ReplaceAllStringFunc(line, func(mark string) string {
			return "default=" + strconv.Quote(known[path+"."+constantDefault.FindStringSubmatch(mark)[1]])
		})
	}
	for name := range p.isEnum {
		slices.Sort(p.enums[name])
		p.lines = append(p.lines, fmt.Sprintf("%s.%s enum=%s", path, name, strings.Join(p.enums[name], ",")))
		for _, value := range p.enums[name] {
			if doc := p.docs[name+"="+value]; doc != "" {
				p.lines = append(p.lines, fmt.Sprintf("%s.%s=%s %s", path, name, value, doc))
			}
		}
	}
	return p.lines, nil
}

// constantDefault is a marker that names the default's constant.
var constantDefault = regexp.MustCompile(`default=ref\((\w+)\)`)

// pkg gathers one package's lines.
type pkg struct {
	path string
	// described are the descriptions that SwaggerDoc methods tell, by type and field ("" for the type's own); nil:
	// there are none.
	described map[string]map[string]string
	// known are the string constants of this package and of those read before, by path and name.
	known map[string]string
	lines []string
	// enums are the values of string types, by type, as in the query of a URL.
	enums map[string][]string
	// docs says what the values of enums mean, by TYPE=VALUE.
	docs   map[string]string
	isEnum map[string]bool
}

func (p *pkg) file(f *ast.File) {
	for _, d := range f.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range gen.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				doc := s.Doc
				if doc == nil && !gen.Lparen.IsValid() { // a group's comment is about none of its constants alone
					doc = gen.Doc
				}
				p.constant(f, gen.Tok, s, doc)
			case *ast.TypeSpec:
				doc := s.Doc
				if doc == nil {
					doc = gen.Doc
				}
				p.describe(s.Name.Name, "", doc)
				p.typeSpec(s, markers(doc))
			}
		}
	}
}

// constant takes a value of a string type: const X T = "v", or X = T("v"), or X = T(other.Y) with what was read before.
func (p *pkg) constant(f *ast.File, tok token.Token, s *ast.ValueSpec, doc *ast.CommentGroup) {
	if tok != token.CONST || len(s.Values) != 1 {
		return
	}
	of, value := s.Type, s.Values[0]
	if call, ok := value.(*ast.CallExpr); ok && of == nil && len(call.Args) == 1 {
		of, value = call.Fun, call.Args[0]
	}
	v, ok := p.text(f, value)
	t, named := of.(*ast.Ident)
	if !ok || !named {
		return
	}
	p.known[p.path+"."+s.Names[0].Name] = v
	v = url.QueryEscape(v) // some have blanks
	if !slices.Contains(p.enums[t.Name], v) {
		p.enums[t.Name] = append(p.enums[t.Name], v)
		p.docs[t.Name+"="+v] = meaning(s.Names[0].Name, doc)
	}
}

// text is the string that an expression is: a literal, or another package's constant.
func (p *pkg) text(f *ast.File, e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		v, err := strconv.Unquote(e.Value)
		return v, err == nil && e.Kind == token.STRING
	case *ast.SelectorExpr:
		for _, i := range f.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			name := filepath.Base(path)
			if i.Name != nil {
				name = i.Name.Name
			}
			if x, ok := e.X.(*ast.Ident); err == nil && ok && x.Name == name {
				v, ok := p.known[path+"."+e.Sel.Name]
				return v, ok
			}
		}
	}
	return "", false
}

func (p *pkg) typeSpec(s *ast.TypeSpec, marks []string) {
	for _, m := range marks {
		if m == "enum" {
			p.isEnum[s.Name.Name] = true
		}
	}
	st, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	if own := named(marks, "structType", "union"); len(own) > 0 {
		p.lines = append(p.lines, fmt.Sprintf("%s.%s %s", p.path, s.Name.Name, strings.Join(own, " ")))
	}
	for _, f := range st.Fields.List {
		if f.Tag == nil {
			continue
		}
		tag, _ := strconv.Unquote(f.Tag.Value)
		name, rest, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		m := named(markers(f.Doc), "listType", "listMapKey", "mapType", "structType", "default", "unionDiscriminator")
		if spaced(f.Doc) {
			m = append(m, "spaced")
		}
		p.describe(s.Name.Name, name, f.Doc)
		for _, mark := range markers(f.Doc) {
			omit := strings.Contains(rest, "omitempty") || strings.Contains(rest, "omitzero")
			if mark == "optional" && !omit || mark == "required" && omit {
				m = append(m, mark)
			}
		}
		if len(m) > 0 {
			p.lines = append(p.lines, fmt.Sprintf("%s.%s:%s %s", p.path, s.Name.Name, name, strings.Join(m, " ")))
		}
	}
}

// meaning is a constant's comment in one line, without its name in front. Kubernetes leaves markers in.
func meaning(name string, doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	var words []string
	for _, c := range doc.List {
		words = append(words, strings.Fields(strings.TrimPrefix(c.Text, "//"))...)
	}
	if len(words) > 0 && words[0] == name {
		words = words[1:]
	}
	return strings.Join(words, " ")
}

// markers are the lines of a comment that begin with "+".
func markers(doc *ast.CommentGroup) []string {
	if doc == nil {
		return nil
	}
	var out []string
	for _, c := range doc.List {
		line := strings.TrimSpace(strings.TrimPrefix(c.Text, "//"))
		if rest, ok := strings.CutPrefix(line, "+"); ok {
			out = append(out, strings.ReplaceAll(rest, " ", ""))
		}
	}
	return out
}

func named(marks []string, names ...string) []string {
	var out []string
	for _, m := range marks {
		name, _, _ := strings.Cut(m, "=")
		if slices.Contains(names, name) && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

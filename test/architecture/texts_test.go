package architecture

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"strings"
)

// source finds the texts that an expression can be.
type source struct {
	t     *tree
	flows map[*pkg]*flow
	// bound are the calls from which functions get their parameters; unbound is one that lacks its call.
	bound   map[types.Object]call
	unbound types.Object
}

// call is a call in a package.
type call struct {
	*pkg
	*ast.CallExpr
}

// flow is where the values in a package come from.
type flow struct {
	params   map[types.Object]param
	values   map[types.Object][]ast.Expr // what is assigned to a variable
	elements map[types.Object]loop       // variables of loops
	literals []*ast.CompositeLit
	calls    []*ast.CallExpr
}

// param is the index of a parameter of a function, or of a variable that is a function.
type param struct {
	of    types.Object
	index int
}

// loop is what a loop goes over.
type loop struct {
	over ast.Expr
	key  bool // the variable is the key
}

func newSource(t *tree) *source {
	s := &source{t: t, flows: map[*pkg]*flow{}}
	for _, p := range t.packages {
		s.flows[p] = newFlow(p)
	}
	return s
}

func newFlow(p *pkg) *flow {
	f := &flow{params: map[types.Object]param{}, values: map[types.Object][]ast.Expr{},
		elements: map[types.Object]loop{}}
	object := func(e ast.Expr) types.Object {
		if id, ok := e.(*ast.Ident); ok {
			return p.object(id)
		}
		return nil
	}
	assign := func(to, value ast.Expr) {
		o := object(to)
		if o == nil {
			return
		}
		f.values[o] = append(f.values[o], value)
		if l, ok := value.(*ast.FuncLit); ok {
			f.addParams(p, o, l.Type)
		}
	}
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				f.addParams(p, p.info.Defs[n.Name], n.Type)
			case *ast.AssignStmt:
				for i := range n.Lhs {
					var value ast.Expr // nil: none that can be told
					if len(n.Rhs) == len(n.Lhs) && (n.Tok == token.ASSIGN || n.Tok == token.DEFINE) {
						value = n.Rhs[i]
					}
					assign(n.Lhs[i], value)
				}
			case *ast.ValueSpec:
				for i := range n.Values {
					assign(n.Names[i], n.Values[i])
				}
			case *ast.RangeStmt:
				if o := object(n.Key); o != nil {
					f.elements[o] = loop{n.X, true}
				}
				if o := object(n.Value); o != nil {
					f.elements[o] = loop{n.X, false}
				}
			case *ast.CompositeLit:
				f.literals = append(f.literals, n)
			case *ast.CallExpr:
				f.calls = append(f.calls, n)
			}
			return true
		})
	}
	return f
}

func (f *flow) addParams(p *pkg, of types.Object, fn *ast.FuncType) {
	i := 0
	for _, field := range fn.Params.List {
		for _, name := range field.Names {
			f.params[p.info.Defs[name]] = param{of, i}
			i++
		}
		if len(field.Names) == 0 {
			i++
		}
	}
}

// object is what an identifier means, where it is defined or used.
func (p *pkg) object(id *ast.Ident) types.Object {
	if o := p.info.Defs[id]; o != nil {
		return o
	}
	return p.info.Uses[id]
}

// maxHops bounds how far a value is followed.
const maxHops = 10

// names returns all that the parts can be together, nothing if that cannot be told. All parameters of a function come
// from the same call.
func (s *source) names(p *pkg, parts []ast.Expr, bound map[types.Object]call) (all []string) {
	s.bound, s.unbound = bound, nil
	for i, part := range parts {
		if texts := s.texts(p, part, 0); i == 0 {
			all = texts
		} else {
			all = joined(all, texts)
		}
	}
	fn := s.unbound
	if fn == nil || len(bound) > maxHops {
		return all
	}
	all = nil
	for _, caller := range s.t.packages {
		for _, c := range s.flows[caller].calls {
			if !caller.calls(c, fn) {
				continue
			}
			with := map[types.Object]call{fn: {caller, c}}
			maps.Copy(with, bound)
			names := s.names(p, parts, with)
			if len(names) == 0 {
				return nil
			}
			all = append(all, names...)
		}
	}
	return all
}

// texts returns all that e can be, nothing if that cannot be told.
func (s *source) texts(p *pkg, e ast.Expr, hops int) []string {
	if v := p.info.Types[e].Value; v != nil && v.Kind() == constant.String {
		return []string{constant.StringVal(v)}
	}
	if hops > maxHops {
		return nil
	}
	switch e := e.(type) {
	case *ast.BasicLit: // one that we made
		return []string{strings.Trim(e.Value, `"`)}
	case *ast.ParenExpr:
		return s.texts(p, e.X, hops+1)
	case *ast.BinaryExpr:
		return joined(s.texts(p, e.X, hops+1), s.texts(p, e.Y, hops+1))
	case *ast.Ident:
		return s.all(s.sources(p, p.object(e)), hops)
	case *ast.SelectorExpr:
		return s.all(s.fields(p, p.info.Uses[e.Sel]), hops)
	}
	return nil
}

// origin is an expression in its package.
type origin struct {
	*pkg
	ast.Expr
}

// all returns the texts of all origins, nothing if one cannot be told.
func (s *source) all(origins []origin, hops int) (all []string) {
	for _, at := range origins {
		texts := s.texts(at.pkg, at.Expr, hops+1)
		if len(texts) == 0 {
			return nil
		}
		all = append(all, texts...)
	}
	return all
}

// sources are the expressions whose value a variable can have.
func (s *source) sources(p *pkg, o types.Object) (all []origin) {
	f := s.flows[p]
	if o == nil {
		return nil
	}
	if l, ok := f.elements[o]; ok {
		return s.elements(p, l)
	}
	if param, ok := f.params[o]; ok {
		c, known := s.bound[param.of]
		if !known {
			s.unbound = param.of
			return nil
		}
		if param.index >= len(c.Args) {
			return nil
		}
		return []origin{{c.pkg, c.Args[param.index]}}
	}
	for _, v := range f.values[o] {
		all = append(all, origin{p, v})
	}
	return all
}

// calls reports whether a call in p is one of the function o.
func (p *pkg) calls(call *ast.CallExpr, o types.Object) bool {
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		return p.info.Uses[fn] == o
	case *ast.SelectorExpr:
		if from, name := p.qualified(fn); from != "" {
			return from == o.Pkg().Path() && name == o.Name() && o.Parent() == o.Pkg().Scope()
		}
		return p.info.Uses[fn.Sel] == o
	}
	return false
}

// elements are those of the literals that a loop goes over.
func (s *source) elements(p *pkg, l loop) (all []origin) {
	literals := []ast.Expr{l.over}
	if id, ok := l.over.(*ast.Ident); ok {
		literals = s.flows[p].values[p.object(id)]
	}
	for _, e := range literals {
		literal, ok := e.(*ast.CompositeLit)
		if !ok {
			return nil
		}
		for _, element := range literal.Elts {
			pair, isPair := element.(*ast.KeyValueExpr)
			switch {
			case isPair && l.key:
				all = append(all, origin{p, pair.Key})
			case isPair:
				all = append(all, origin{p, pair.Value})
			case !l.key:
				all = append(all, origin{p, element})
			}
		}
	}
	return all
}

// fields are the values that the package's literals give to a field of a struct.
func (s *source) fields(p *pkg, field types.Object) (all []origin) {
	if v, ok := field.(*types.Var); !ok || !v.IsField() {
		return nil
	}
	for _, l := range s.flows[p].literals {
		in := p.info.Types[l].Type
		if pointer, ok := in.(*types.Pointer); ok {
			in = pointer.Elem()
		}
		if in == nil {
			continue
		}
		fields, ok := in.Underlying().(*types.Struct)
		if !ok {
			continue
		}
		for i := range fields.NumFields() {
			if fields.Field(i) != field {
				continue
			}
			if value := fieldValue(p, l, field, i); value != nil {
				all = append(all, origin{p, value})
			}
		}
	}
	return all
}

// fieldValue is what a literal gives to a field, which is the one at the index; nil: nothing.
func fieldValue(p *pkg, l *ast.CompositeLit, field types.Object, index int) ast.Expr {
	for i, e := range l.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok && i == index {
			return e
		}
		if ok {
			if key, isIdent := pair.Key.(*ast.Ident); isIdent && p.info.Uses[key] == field {
				return pair.Value
			}
		}
	}
	return nil
}

// joined are all texts of the first with one of the second behind it.
func joined(a, b []string) (all []string) {
	for _, x := range a {
		for _, y := range b {
			all = append(all, x+y)
		}
	}
	return all
}

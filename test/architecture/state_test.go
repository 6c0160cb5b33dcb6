package architecture

import (
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
)

// stateful are the package variables that may change, with the reason.
var stateful = map[string]string{
	"bonsai/pkg/apiserver/rest.chunks":                        "a pool: which buffer is lent changes nothing that can be seen",
	"bonsai/pkg/apiserver/rest.compressors":                   "a pool: which compressor is lent changes nothing that can be seen",
	"bonsai/pkg/apiserver/patch.limitCopies":                  "sets the next one once",
	"gopkg.in/evanphx/json-patch.v4.AccumulatedCopySizeLimit": "the library has no other place for this bound; it is always the same",
	"bonsai/pkg/apiserver/storage/storagetest.tick":           "makes the values of tests differ, whichever storage they are for",
}

// state: state has an owner. A package variable may be an error, a compiled pattern, a table that is only read, or an
// interface check. It is not assigned to, neither whole nor in part nor through a pointer, by no file of any package;
// its address is not taken; no method changes it; and it is of no type that is there to be changed.
func state(t *tree) (found []finding) {
	for _, p := range t.packages {
		s := &stateOf{tree: t, pkg: p, aliases: map[types.Object]string{}, changers: map[types.Object]bool{}}
		s.findChangers()
		for _, file := range p.files {
			s.declarations(file)
			ast.Inspect(file, s.visit)
		}
		found = append(found, s.found...)
	}
	return found
}

// stateOf looks for the changes that one package makes.
type stateOf struct {
	*tree
	*pkg
	// aliases are local variables that share what a package variable holds.
	aliases map[types.Object]string
	// changers are the package's own methods that change their receiver.
	changers map[types.Object]bool
	found    []finding
}

func (s *stateOf) report(n ast.Node, does, key string) {
	s.found = append(s.found,
		finding{text: s.at(s.pkg, n) + " " + does + " the package variable " + path.Base(key), keys: []string{key}})
}

// visit looks at one node for what changes a package variable.
func (s *stateOf) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, left := range n.Lhs {
			if n.Tok != token.DEFINE {
				s.written(left)
			}
		}
		if len(n.Lhs) == len(n.Rhs) {
			for i := range n.Lhs {
				s.alias(n.Lhs[i], n.Rhs[i])
			}
		}
	case *ast.ValueSpec:
		if len(n.Names) == len(n.Values) {
			for i := range n.Names {
				s.alias(n.Names[i], n.Values[i])
			}
		}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			s.written(n.Key)
			s.written(n.Value)
		}
		s.alias(n.Value, n.X)
	case *ast.IncDecStmt:
		s.written(n.X)
	case *ast.UnaryExpr:
		if key, alias := s.root(n.X); n.Op == token.AND && key != "" && !alias {
			s.report(n, "takes the address of", key)
		}
	case *ast.CallExpr:
		s.called(n)
	}
	return true
}

// written reports an assignment to a package variable, a part of it, or what it refers to.
func (s *stateOf) written(e ast.Expr) {
	if e == nil {
		return
	}
	key, alias := s.root(e)
	if key != "" && (!alias || s.refers(e)) {
		s.report(e, "changes", key)
	}
}

// refers reports whether an assignment to e changes more than the local variable at its root: it leads through an
// index, a pointer, or the field of what a pointer points to.
func (s *stateOf) refers(e ast.Expr) bool {
	switch v := e.(type) {
	case *ast.ParenExpr:
		return s.refers(v.X)
	case *ast.IndexExpr:
		_, array := s.underlying(v.X).(*types.Array)
		return !array || s.refers(v.X)
	case *ast.StarExpr:
		return true
	case *ast.SelectorExpr:
		_, pointer := s.underlying(v.X).(*types.Pointer)
		return pointer || s.refers(v.X)
	}
	return false
}

func (s *stateOf) underlying(e ast.Expr) types.Type {
	if t := s.info.TypeOf(e); t != nil {
		return t.Underlying()
	}
	return nil
}

// alias remembers that a local variable was made of a package variable.
func (s *stateOf) alias(left, right ast.Expr) {
	id, ok := left.(*ast.Ident)
	if !ok {
		return
	}
	obj := s.info.ObjectOf(id)
	if key, _ := s.root(right); key != "" && obj != nil && !global(obj) && !copied(obj) {
		s.aliases[obj] = key
	}
}

// copied reports whether a variable shares nothing with what it was assigned from, as far as its type is known.
func copied(obj types.Object) bool {
	switch obj.Type().Underlying().(type) {
	case *types.Struct, *types.Array:
		return true
	case *types.Basic:
		return obj.Type() != types.Typ[types.Invalid]
	}
	return false
}

// changes are the functions that change their first argument, and methods the names of methods that change what they
// are called on where the type is not this package's.
var (
	changes = map[string][]string{
		"": {"delete", "clear", "copy"},
		"slices": {"Sort", "SortFunc", "SortStableFunc", "Reverse", "Delete", "DeleteFunc", "Insert", "Replace",
			"Compact", "CompactFunc"},
		"maps": {"Copy", "DeleteFunc", "Insert"},
		"sort": {"Sort", "Stable", "Slice", "SliceStable", "Strings", "Ints", "Float64s"},
	}
	methods = []string{"Add", "And", "Broadcast", "Clear", "Close", "CompareAndDelete", "CompareAndSwap", "Dec",
		"Delete", "Done", "Inc", "Insert",
		"Lock", "LoadAndDelete", "LoadOrStore", "Or", "Pop", "Push", "Put", "RLock", "RUnlock", "Register",
		"MustRegister", "Remove", "Reset",
		"Seed", "Set", "Signal", "Store", "Swap", "TryLock", "TryRLock", "Unlock", "Write", "WriteByte", "WriteRune",
		"WriteString"}
)

// called reports a call that changes a package variable: its argument, or what its method belongs to.
func (s *stateOf) called(call *ast.CallExpr) {
	from, name := s.qualified(call.Fun)
	if id, ok := call.Fun.(*ast.Ident); ok {
		if _, builtin := s.info.Uses[id].(*types.Builtin); builtin {
			name = id.Name
		}
	}
	if name != "" && len(call.Args) > 0 && slices.Contains(changes[from], name) {
		if key, _ := s.root(call.Args[0]); key != "" {
			s.report(call, "changes", key)
		}
		return
	}
	m, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || from != "" {
		return
	}
	key, _ := s.root(m.X)
	if key == "" {
		return
	}
	method, own := s.info.Uses[m.Sel].(*types.Func)
	if own && s.changers[method] || !own && slices.Contains(methods, m.Sel.Name) {
		s.report(call, "changes", key)
	}
}

// root returns the package variable that an operand is a part of or refers to, as "import/path.name", or "" if there is
// none; alias tells that it is known under the name of a local one.
func (s *stateOf) root(e ast.Expr) (key string, alias bool) {
	switch v := e.(type) {
	case *ast.ParenExpr:
		return s.root(v.X)
	case *ast.IndexExpr:
		return s.root(v.X)
	case *ast.SliceExpr:
		return s.root(v.X)
	case *ast.StarExpr:
		return s.root(v.X)
	case *ast.TypeAssertExpr:
		return s.root(v.X)
	case *ast.UnaryExpr:
		if v.Op == token.AND {
			return s.root(v.X)
		}
	case *ast.SelectorExpr:
		if from, name := s.qualified(v); from != "" {
			return from + "." + name, false
		}
		return s.root(v.X)
	case *ast.Ident:
		obj := s.info.Uses[v]
		if obj != nil && global(obj) {
			return s.path + "." + v.Name, false
		}
		if key, ok := s.aliases[obj]; ok {
			return key, true
		}
	}
	return "", false
}

// global reports whether obj is a package's variable.
func global(obj types.Object) bool {
	v, ok := obj.(*types.Var)
	return ok && !v.IsField() && v.Pkg() != nil && v.Parent() == v.Pkg().Scope()
}

// findChangers finds the package's methods that change their receiver, by themselves or by another of them.
func (s *stateOf) findChangers() {
	for before := -1; before != len(s.changers); {
		before = len(s.changers)
		for _, file := range s.files {
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Recv == nil || f.Body == nil || len(f.Recv.List[0].Names) == 0 {
					continue
				}
				if method := s.info.Defs[f.Name]; !s.changers[method] && s.changesReceiver(f) {
					s.changers[method] = true
				}
			}
		}
	}
}

// changesReceiver looks at a method as if its receiver were the only package variable.
func (s *stateOf) changesReceiver(f *ast.FuncDecl) bool {
	receiver := s.info.Defs[f.Recv.List[0].Names[0]]
	if receiver == nil {
		return false
	}
	in := &stateOf{tree: s.tree, pkg: s.pkg, aliases: map[types.Object]string{receiver: s.path + "." + receiver.Name()},
		changers: s.changers}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if _, address := n.(*ast.UnaryExpr); address {
			return true
		}
		return in.visit(n)
	})
	return slices.ContainsFunc(in.found, func(f finding) bool { return f.keys[0] == s.path+"."+receiver.Name() })
}

// declarations reports package variables of types that are there to be changed: locks, pools, atomic values, channels.
func (s *stateOf) declarations(file *ast.File) {
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			for i, name := range v.Names {
				shown := v.Type
				if shown == nil && i < len(v.Values) {
					shown = v.Values[i]
				}
				if name.Name != "_" && s.changeable(shown) {
					s.report(name, "declares as changeable", s.path+"."+name.Name)
				}
			}
		}
	}
}

// changeable reports whether a type, or a value as it is written, holds what is there to be changed.
func (s *stateOf) changeable(e ast.Expr) (yes bool) {
	if e == nil {
		return false
	}
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.FuncType:
			return false
		case *ast.ChanType:
			yes = true
		case *ast.SelectorExpr:
			if from, _ := s.qualified(n); from == "sync" || from == "sync/atomic" {
				yes = true
			}
		case *ast.Ident:
			if own, ok := s.info.Uses[n].(*types.TypeName); ok && own.Pkg() != nil && s.own(own) {
				yes = true
			}
		}
		return !yes
	})
	return yes
}

// own reports whether one of the package's types is declared with a field that is there to be changed.
func (s *stateOf) own(name *types.TypeName) bool {
	for _, file := range s.files {
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				ts := spec.(*ast.TypeSpec)
				st, ok := ts.Type.(*ast.StructType)
				if !ok || s.info.Defs[ts.Name] != types.Object(name) {
					continue
				}
				for _, f := range st.Fields.List {
					if from, _ := s.qualified(f.Type); from == "sync" || from == "sync/atomic" {
						return true
					}
				}
			}
		}
	}
	return false
}

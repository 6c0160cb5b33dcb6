// Package expression compiles and evaluates the CEL expressions that decide on admission: the match conditions of
// webhooks, and what policies say. Variables, functions, limits and messages are upstream's; the functions and the cost
// of each come from its library.
//
// An environment is made when the first expression is compiled that needs it: a server without expressions pays
// nothing.
package expression

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// Compiler compiles expressions. It is safe for concurrent use; one at a time is compiled, as all share its
// environments.
type Compiler struct {
	// Object and Params are the types of "object", "oldObject" and "params", with names of their own; nil: anything.
	// They are set before the first use.
	Object, Params *apiservercel.DeclType

	mu   sync.Mutex
	envs map[Scope]*environment // guarded by mu
}

// SyntaxError is what is wrong with an expression in itself, as the language's compiler says it.
type SyntaxError struct{ Issues string }

func (e *SyntaxError) Error() string { return "compilation failed: " + e.Issues }

// Program is an expression that is ready to be evaluated, by any number of goroutines.
type Program struct {
	text    string
	program cel.Program
	// variables are those that the expression can name; nil: none.
	variables []*variable
	// claims are the fields of "claims" that the expression names; nil outside of Scope.Claims.
	claims map[string]bool
}

// NamesClaim reports whether the expression names a claim: claims.x, claims.?x, claims["x"] or has(claims.x).
func (p *Program) NamesClaim(name string) bool { return p.claims[name] }

// Compile compiles text, which must be of type want or one of more. Its errors are for the one who wrote it, in
// upstream's words.
func (c *Compiler) Compile(text string, in Scope, want *cel.Type, more ...*cel.Type) (*Program, error) {
	in.variables = false
	return c.compile(text, in, nil, append([]*cel.Type{want}, more...))
}

// compile is Compile below variables, which in.variables declares.
func (c *Compiler) compile(text string, in Scope, variables []*variable, want []*cel.Type) (*Program, error) {
	p, _, err := c.check(text, in, variables, want)
	return p, err
}

// check compiles text and returns its type, too.
func (c *Compiler) check(text string, in Scope, variables []*variable, want []*cel.Type) (*Program, *cel.Type, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	env, err := c.environment(in)
	if err != nil {
		return nil, nil, fmt.Errorf("compiler initialization failed: %w", err)
	}
	env.declare(variables)
	checked, issues := env.Compile(text)
	if issues != nil {
		return nil, nil, &SyntaxError{issues.String()}
	}
	got := checked.OutputType()
	if !slices.ContainsFunc(want, func(t *cel.Type) bool { return got.IsExactType(t) || cel.AnyType.IsExactType(t) }) {
		return nil, nil, fmt.Errorf("must evaluate to %s but got %s", oneOf(want), got)
	}
	program, err := env.Program(checked, cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	if err != nil {
		return nil, nil, fmt.Errorf("program instantiation failed: %w", err)
	}
	p := &Program{text: text, program: program, variables: variables}
	if in.Claims {
		p.claims = namedClaims(checked)
	}
	return p, got, nil
}

// namedClaims returns the fields of "claims" that an expression names.
func namedClaims(checked *cel.Ast) map[string]bool {
	names := map[string]bool{}
	ofClaims := func(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == claims }
	ast.PostOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.SelectKind:
			if s := e.AsSelect(); ofClaims(s.Operand()) {
				names[s.FieldName()] = true
			}
		case ast.CallKind: // an index, or a selection of an optional field
			if args := e.AsCall().Args(); len(args) == 2 && ofClaims(args[0]) && args[1].Kind() == ast.LiteralKind {
				if name, ok := args[1].AsLiteral().Value().(string); ok {
					names[name] = true
				}
			}
		}
	}))
	return names
}

func oneOf(types []*cel.Type) string {
	if len(types) == 1 {
		return types[0].String()
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.String()
	}
	return "one of [" + strings.Join(names, " ") + "]"
}

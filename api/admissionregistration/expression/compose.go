package expression

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// Composition are the named expressions of a policy, on which its further ones can build: "variables.name". Each can
// use those before it.
type Composition struct {
	compiler  *Compiler
	variables []*variable
}

// variable is one of them. Of several of one name the last one counts.
type variable struct {
	name    string
	program *Program // nil: it cannot be compiled
	err     error    // why
	kind    *apiservercel.DeclType
}

// Compose begins a Composition without variables.
func (c *Compiler) Compose() *Composition { return &Composition{compiler: c} }

// Add adds a variable. One that cannot be compiled is there all the same, of any type; who uses it fails when it is
// evaluated.
func (k *Composition) Add(name, text string, in Scope) error {
	in.variables = true
	v := &variable{name: name, kind: apiservercel.DynType}
	var kind *cel.Type
	// The capacity is cut, so that what this program sees stays as it is when more are added.
	v.program, kind, v.err = k.compiler.check(text, in, k.variables[:len(k.variables):len(k.variables)],
		[]*cel.Type{cel.AnyType})
	if v.err == nil {
		v.kind = declared(name, kind)
	}
	k.variables = append(k.variables, v)
	return v.err
}

// Compile compiles an expression that can use the variables, as Compiler.Compile does.
func (k *Composition) Compile(text string, in Scope, want *cel.Type, more ...*cel.Type) (*Program, error) {
	in.variables = true
	return k.compiler.compile(text, in, k.variables[:len(k.variables):len(k.variables)],
		append([]*cel.Type{want}, more...))
}

// errUndeclared is a variable that was not compiled; unreachable while expressions are checked.
var errUndeclared = errors.New("it is not declared")

func (v *variable) missing() error {
	err := v.err
	if err == nil {
		err = errUndeclared
	}
	return fmt.Errorf("composited variable %q fails to compile: %w", v.name, err)
}

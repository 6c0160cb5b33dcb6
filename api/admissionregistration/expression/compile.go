// Package expression compiles and evaluates the CEL expressions that decide on admission: the match conditions of webhooks, and
// what policies say. Variables, functions, limits and messages are upstream's; the functions and the cost of each come from
// its library.
//
// An environment is made when the first expression is compiled: a server without expressions pays nothing.
package expression

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// The names of the variables.
const (
	object           = "object"
	oldObject        = "oldObject"
	request          = "request"
	namespaceObject  = "namespaceObject"
	authorizer       = "authorizer"
	requestResource  = "authorizer.requestResource"
	checkInterrupted = celconfig.CheckFrequency
)

// Compiler compiles expressions. It is safe for concurrent use.
type Compiler struct {
	once sync.Once
	env  *cel.Env
	err  error
}

// Program is an expression that is ready to be evaluated, by any number of goroutines.
type Program struct {
	text    string
	program cel.Program
}

// Compile compiles text, which must be of type want. Its errors are for the one who wrote it, in upstream's words.
func (c *Compiler) Compile(text string, want *cel.Type) (*Program, error) {
	c.once.Do(func() { c.env, c.err = newEnvironment() })
	if c.err != nil {
		return nil, fmt.Errorf("compiler initialization failed: %w", c.err)
	}
	ast, issues := c.env.Compile(text)
	if issues != nil {
		return nil, fmt.Errorf("compilation failed: %s", issues)
	}
	if got := ast.OutputType(); !got.IsExactType(want) && !cel.AnyType.IsExactType(want) {
		return nil, fmt.Errorf("must evaluate to %s but got %s", want, got)
	}
	program, err := c.env.Program(ast, cel.InterruptCheckFrequency(checkInterrupted))
	if err != nil {
		return nil, fmt.Errorf("program instantiation failed: %w", err)
	}
	return &Program{text: text, program: program}, nil
}

func newEnvironment() (*cel.Env, error) {
	types, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), // all that this package declares is there always
		EnvOptions: []cel.EnvOption{
			cel.Variable(object, cel.DynType),
			cel.Variable(oldObject, cel.DynType),
			cel.Variable(request, requestType().CelType()),
			cel.Variable(namespaceObject, namespaceType().CelType()),
			cel.Variable(authorizer, library.AuthorizerType),
			cel.Variable(requestResource, library.ResourceCheckType),
		},
		DeclTypes: declared(),
	})
	if err != nil {
		return nil, err
	}
	return types.Env(environment.StoredExpressions)
}

package rules

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"

	"bonsai/api/apiextensions/structural"
)

// The variables of rules: the value, and what it was before.
const (
	self    = "self"
	oldSelf = "oldSelf"
)

// newRules and storedRules are the environments of rules that are being written, which older servers must understand,
// too, and of those that were accepted.
func newRules() *cel.Env    { return base().NewExpressionsEnv() }
func storedRules() *cel.Env { return base().StoredExpressionsEnv() }

func base() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()) // made once for the whole process
}

// environments makes those of the rules of one schema. An environment is large, so values of the same simple type share
// one.
type environments struct {
	base *cel.Env
	// simple are those of types without objects in them, by type and whether oldSelf is optional.
	simple map[simpleType]*cel.Env
}

type simpleType struct {
	name        string
	optionalOld bool
}

func newEnvironments(base *cel.Env) *environments {
	return &environments{base: base, simple: map[simpleType]*cel.Env{}}
}

// of makes the environment in which self is of a declared type.
func (e *environments) of(declared *apiservercel.DeclType, optionalOld bool) (*cel.Env, error) {
	key := simpleType{declared.CelType().String(), optionalOld}
	shared := !holdsObjects(declared)
	if env := e.simple[key]; shared && env != nil {
		return env, nil
	}
	provider := apiservercel.NewDeclTypeProvider(declared)
	provider.SetRecognizeKeywordAsFieldName(true)
	options, err := provider.EnvOptions(e.base.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	old := declared.CelType()
	if optionalOld {
		old = cel.OptionalType(old)
	}
	env, err := e.base.Extend(append(options, cel.Variable(self, declared.CelType()), cel.Variable(oldSelf, old))...)
	if shared && err == nil {
		e.simple[key] = env
	}
	return env, err
}

// holdsObjects reports whether a type is, or is made of, objects with fields.
func holdsObjects(t *apiservercel.DeclType) bool {
	return t != nil && (t.IsObject() || holdsObjects(t.ElemType) || holdsObjects(t.KeyType))
}

// scope is where the rules of one schema are compiled.
type scope struct {
	declared        *apiservercel.DeclType
	environments    *environments
	plain, optional *cel.Env // by what oldSelf is
}

// scope fails when the schema has no type that CEL knows.
func (e *environments) scope(s common.Schema, isResource bool) (*scope, error) {
	declared := common.SchemaDeclType(s, isResource)
	if declared == nil {
		return nil, errors.New("unable to convert structural schema to CEL declarations")
	}
	return &scope{declared: declared.MaybeAssignTypeName("selfType"), environments: e}, nil
}

// env is the environment of a rule.
func (s *scope) env(optionalOld bool) (env *cel.Env, err error) {
	kept := &s.plain
	if optionalOld {
		kept = &s.optional
	}
	if *kept == nil {
		*kept, err = s.environments.of(s.declared, optionalOld)
	}
	return *kept, err
}

// expression is one that is compiled, with the estimate of its cost for one value.
type expression struct {
	ast      *cel.Ast
	program  cel.Program
	cost     uint64
	readsOld bool
}

// expression compiles text, which must be of type want.
func (s *scope) expression(text string, optionalOld bool) (*expression, error) {
	env, err := s.env(optionalOld)
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if issues != nil {
		return nil, fmt.Errorf("compilation failed: %s", issues)
	}
	e := &expression{ast: ast}
	for _, r := range ast.NativeRep().ReferenceMap() {
		e.readsOld = e.readsOld || r.Name == oldSelf
	}
	return e, nil
}

// estimate adds the most that e may cost.
func (s *scope) estimate(e *expression, optionalOld bool) error {
	env, err := s.env(optionalOld)
	if err != nil {
		return err
	}
	cost, err := env.EstimateCost(e.ast, &library.CostEstimator{SizeEstimator: sizes{s.declared}})
	e.cost = cost.Max
	return err
}

// ready makes the program.
func (s *scope) ready(e *expression, optionalOld bool) error {
	env, err := s.env(optionalOld)
	if err != nil {
		return err
	}
	e.program, err = env.Program(e.ast, cel.CostLimit(celconfig.PerCallLimit),
		cel.CostTracking(&library.CostEstimator{}), cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	e.ast = nil // not needed any more
	return err
}

// sizes says how large values of a declared type can be.
type sizes struct{ declared *apiservercel.DeclType }

// EstimateSize implements checker.CostEstimator.
func (s sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	path := element.Path()
	if len(path) == 0 {
		return nil
	}
	t := s.declared
	for _, name := range path[1:] { // the first is self or oldSelf
		switch name {
		case "@items", "@values":
			t = t.ElemType
		case "@keys":
			t = t.KeyType
		default:
			f, ok := t.Fields[name]
			if !ok {
				return nil
			}
			t = f.Type
		}
		if t == nil {
			return nil
		}
	}
	return &checker.SizeEstimate{Max: uint64(t.MaxElements)}
}

// EstimateCallCost implements checker.CostEstimator: the library knows its functions.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// compiled is a rule that is ready, or why it is not.
type compiled struct {
	rule    *apiextensionsv1.ValidationRule
	when    *expression
	message *expression // nil: there is none, or it cannot be compiled
	err     error
}

// transition reports whether the rule is about changes.
func (c *compiled) transition() bool { return c.when != nil && c.when.readsOld }

func (c *compiled) optionalOld() bool { return optionalOld(c.rule) }

func optionalOld(r *apiextensionsv1.ValidationRule) bool {
	return r.OptionalOldSelf != nil && *r.OptionalOldSelf
}

// node holds the rules of one schema and of those below it that have any.
type node struct {
	schema     *structural.Schema
	typed      common.Schema // the same with apiVersion, kind and metadata, if its values are objects of their own
	rules      []compiled
	fields     map[string]*node
	items      *node
	additional *node
}

// Set are the compiled rules of a schema. It does not change, and serves any number of goroutines.
type Set struct{ root *node }

// Compile compiles the rules of a schema that was accepted. What cannot be compiled refuses every object it is asked
// about. nil: there are no rules.
func Compile(s *structural.Schema) *Set {
	if !s.HasRules() {
		return nil
	}
	return &Set{compileNode(newEnvironments(storedRules()), s, true)}
}

func compileNode(e *environments, s *structural.Schema, isRoot bool) *node {
	if s == nil || !s.HasRules() {
		return nil
	}
	n := &node{schema: s, typed: s.CEL()}
	isResource := isRoot || s.Embedded()
	if isResource {
		n.typed = s.CEL().WithTypeAndObjectMeta()
	}
	if len(s.Rules()) > 0 {
		n.rules = compileRules(e, s, isResource)
	}
	s.EachProperty(func(name string, p *structural.Schema) {
		if below := compileNode(e, p, false); below != nil {
			if n.fields == nil {
				n.fields = map[string]*node{}
			}
			n.fields[name] = below
		}
	})
	n.items = compileNode(e, s.Items(), false)
	n.additional = compileNode(e, s.AdditionalProperties(), false)
	return n
}

func compileRules(e *environments, s *structural.Schema, isResource bool) []compiled {
	rules := s.Rules()
	out := make([]compiled, len(rules))
	scope, err := e.scope(s.CEL(), isResource)
	for i := range rules {
		c := &out[i]
		c.rule = &rules[i]
		if err != nil {
			c.err = err
			continue
		}
		if c.when, c.err = scope.condition(c.rule); c.err == nil {
			c.err = scope.ready(c.when, c.optionalOld())
		}
		if c.err == nil && c.rule.MessageExpression != "" {
			if m, err := scope.text(c.rule); err == nil && scope.ready(m, c.optionalOld()) == nil {
				c.message = m
			}
		}
	}
	return out
}

// condition compiles the rule itself.
func (s *scope) condition(r *apiextensionsv1.ValidationRule) (*expression, error) {
	e, err := s.expression(strings.TrimSpace(r.Rule), optionalOld(r))
	if err == nil && !e.ast.OutputType().IsExactType(cel.BoolType) {
		return nil, fmt.Errorf("cel expression must evaluate to a bool")
	}
	return e, err
}

// text compiles what makes the message.
func (s *scope) text(r *apiextensionsv1.ValidationRule) (*expression, error) {
	e, err := s.expression(strings.TrimSpace(r.MessageExpression), optionalOld(r))
	if err != nil {
		return nil, fmt.Errorf("messageExpression %w", err)
	}
	if !e.ast.OutputType().IsExactType(cel.StringType) {
		return nil, fmt.Errorf("messageExpression must evaluate to a string")
	}
	return e, nil
}

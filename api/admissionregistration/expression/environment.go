package expression

import (
	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	celenvironment "k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"
)

// The names of the variables.
const (
	object          = "object"
	oldObject       = "oldObject"
	request         = "request"
	namespaceObject = "namespaceObject"
	params          = "params"
	authorizer      = "authorizer"
	requestResource = "authorizer.requestResource"
	variables       = "variables"
	claims          = "claims"
	user            = "user"
)

// Scope says what an expression can use beside object, oldObject, request and namespaceObject.
type Scope struct {
	// Params declares "params".
	Params bool
	// Authorizer declares "authorizer" and "authorizer.requestResource".
	Authorizer bool
	// Patches declares the types "Object…" and "JSONPatch", and the function jsonpatch.escapeKey.
	Patches bool
	// Claims declares "claims" and nothing else, User "user" and nothing else: the scopes of an authentication
	// configuration.
	Claims, User bool
	// Review declares "request", a SubjectAccessReview's spec, and nothing else: the scope of an authorization
	// configuration.
	Review bool
	// variables declares "variables", whose fields are a Composition's.
	variables bool
}

// environment is what expressions of one scope are compiled in.
type environment struct {
	*cel.Env
	// named are the fields of "variables", which every compilation sets: making an environment for each policy would
	// take a hundred times longer than compiling it. Guarded by the compiler's mutex.
	named map[string]*apiservercel.DeclField
}

// environment returns the environment of a scope. c.mu must be held.
func (c *Compiler) environment(in Scope) (*environment, error) {
	if env := c.envs[in]; env != nil {
		return env, nil
	}
	env, err := newEnvironment(in, c.Object, c.Params)
	if err != nil {
		return nil, err
	}
	if c.envs == nil {
		c.envs = map[Scope]*environment{}
	}
	c.envs[in] = env
	return env, nil
}

func newEnvironment(in Scope, obj, param *apiservercel.DeclType) (*environment, error) {
	switch {
	case in.Claims:
		env, err := extend(celenvironment.VersionedOptions{
			EnvOptions: []cel.EnvOption{cel.Variable(claims, cel.MapType(cel.StringType, cel.AnyType))}})
		return &environment{Env: env}, err
	case in.User:
		t := userType()
		env, err := extend(celenvironment.VersionedOptions{
			EnvOptions: []cel.EnvOption{cel.Variable(user, t.CelType())}, DeclTypes: []*apiservercel.DeclType{t}})
		return &environment{Env: env}, err
	}
	if in.Review {
		t := reviewType()
		env, err := extend(celenvironment.VersionedOptions{
			EnvOptions: []cel.EnvOption{cel.Variable(request, t.CelType())}, DeclTypes: []*apiservercel.DeclType{t}})
		return &environment{Env: env}, err
	}
	opts := []cel.EnvOption{
		cel.Variable(object, typeOf(obj)),
		cel.Variable(oldObject, typeOf(obj)),
		cel.Variable(request, requestType().CelType()),
		cel.Variable(namespaceObject, namespaceType().CelType()),
	}
	types := []*apiservercel.DeclType{requestType(), namespaceType()}
	for _, t := range []*apiservercel.DeclType{obj, param} {
		if t != nil {
			types = append(types, t)
		}
	}
	out := &environment{}
	if in.Params {
		opts = append(opts, cel.Variable(params, typeOf(param)))
	}
	if in.Authorizer {
		opts = append(opts, cel.Variable(authorizer, library.AuthorizerType),
			cel.Variable(requestResource, library.ResourceCheckType))
	}
	if in.variables {
		t := variablesType()
		out.named, types = t.Fields, append(types, t)
		opts = append(opts, cel.Variable(variables, t.CelType()))
	}
	steps := []celenvironment.VersionedOptions{{EnvOptions: opts, DeclTypes: types}}
	if in.Patches { // after the declared types, whose provider does not ask others
		steps = append(steps, celenvironment.VersionedOptions{
			EnvOptions: []cel.EnvOption{common.ResolverEnvOption(&mutation.DynamicTypeResolver{}),
				library.JSONPatch()}})
	}
	var err error
	out.Env, err = extend(steps...)
	return out, err
}

// extend adds steps, in their order, to upstream's environment.
func extend(steps ...celenvironment.VersionedOptions) (*cel.Env, error) {
	set := celenvironment.MustBaseEnvSet(celenvironment.DefaultCompatibilityVersion())
	for _, step := range steps {
		step.IntroducedVersion = version.MajorMinor(1, 0) // all that this package declares is there always
		var err error
		if set, err = set.Extend(step); err != nil {
			return nil, err
		}
	}
	return set.Env(celenvironment.StoredExpressions)
}

// typeOf is any type for nil.
func typeOf(t *apiservercel.DeclType) *cel.Type {
	if t == nil {
		return cel.DynType
	}
	return t.CelType()
}

// declare makes vars the fields of "variables" for what is compiled next.
func (e *environment) declare(vars []*variable) {
	clear(e.named)
	for _, v := range vars {
		e.named[v.name] = apiservercel.NewDeclField(v.name, v.kind, true, nil, nil)
	}
}

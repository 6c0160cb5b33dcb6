package rules

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"bonsai/api/apiextensions/structural"
)

// Limits of the estimated cost, in the units of CEL's library.
const (
	// ruleLimit is what one expression may cost for all values of one object.
	ruleLimit = 10_000_000
	// schemaLimit is what all of a schema may.
	schemaLimit = 100_000_000
	// mostExpressions is how many rules and expressions of messages one schema has. Kubernetes does not bound them but
	// by the size of a request; each takes some 50 KB while objects are written.
	mostExpressions = 1_000
	// mostNamed is how many of the costliest are named when all cost too much, of those that cost a hundredth of
	// schemaLimit.
	mostNamed = 4
)

const simplify = " (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"

// Check tells what is wrong with a schema, with its rules, and with its defaults by its rules.
func Check(p *apiextensionsv1.JSONSchemaProps, path *field.Path) field.ErrorList {
	c := checking{environments: newEnvironments(newRules())}
	var errs field.ErrorList
	expressions := 0
	structural.Walk(p, path, func(p *apiextensionsv1.JSONSchemaProps, path *field.Path) {
		before := len(errs)
		for i := range p.XValidations {
			if expressions++; p.XValidations[i].MessageExpression != "" {
				expressions++
			}
			if expressions <= mostExpressions {
				errs = append(errs, checkFields(p, &p.XValidations[i],
					path.Child("x-kubernetes-validations").Index(i))...)
			}
		}
		if len(errs) > before {
			if c.skip == nil {
				c.skip = map[string]bool{}
			}
			c.skip[path.String()] = true
		}
	})
	if expressions > mostExpressions {
		return append(errs, field.Forbidden(path,
			fmt.Sprintf("must not have more than %d expressions in x-kubernetes-validations, has %d", mostExpressions,
				expressions)))
	}
	defaults := defaultsCheck{budget: celconfig.RuntimeCELCostBudget}
	unsound := structural.Check(p, path, defaults.check)
	if errs = append(errs, unsound...); len(unsound) > 0 {
		return errs
	}
	s, err := structural.Compile(p)
	if err != nil {
		return append(errs, field.InternalError(path, err))
	}
	c.schema(s, path, nesting{count: 1, root: true})
	return append(append(errs, c.errors...), c.total(path)...)
}

// defaultsCheck asks rules about the defaults of one schema. One object could have all of them, so they share what one
// object may cost: else a schema of many defaults would keep the server busy many times as long as any object.
type defaultsCheck struct{ budget int64 }

// check asks the rules of s about its default: they see it as one that stood there before, too.
func (c *defaultsCheck) check(s *structural.Schema, root bool, path *field.Path, value any) field.ErrorList {
	if c.budget < 0 { // which has been said
		return nil
	}
	n := compileNode(newEnvironments(storedRules()), s, root)
	e := evaluation{budget: c.budget, which: every}
	e.value(n, path, value, correlate(n, value), false)
	c.budget = e.budget
	return e.errors
}

// checking gathers what is wrong with the rules of one schema.
type checking struct {
	environments *environments
	skip         map[string]bool // schemas whose rules are not compiled
	errors       field.ErrorList
	costs        []cost
}

// cost is what one expression may cost.
type cost struct {
	path *field.Path
	most uint64
}

// nesting is how a schema is nested in that of its object.
type nesting struct {
	// count is how many values of it there can be in an object; 0: unbounded.
	count uint64
	root  bool
	// lost is where values stop being comparable to what they were; nil: they are.
	lost *field.Path
}

// repeated returns the nesting of a schema for up to most values (nil: any number) in each value of n.
func (n nesting) repeated(most *int64) nesting {
	n.root = false
	if most == nil {
		n.count = 0
	} else {
		n.count = product(n.count, uint64(max(*most, 0)))
	}
	return n
}

// product does not overflow.
func product(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return ^uint64(0)
}

func (c *checking) schema(s *structural.Schema, path *field.Path, at nesting) {
	if !s.HasRules() {
		return
	}
	if len(s.Rules()) > 0 && !c.skip[path.String()] {
		c.rules(s, path.Child("x-kubernetes-validations"), at)
	}
	inside := at
	inside.root = false
	s.EachProperty(func(name string, below *structural.Schema) {
		c.schema(below, path.Child("properties").Key(name), inside)
	})
	if below := s.Items(); below != nil {
		in := at.repeated(s.MaxItems())
		if in.lost == nil && s.ListType() != "map" {
			in.lost = path
		}
		c.schema(below, path.Child("items"), in)
	}
	if below := s.AdditionalProperties(); below != nil {
		c.schema(below, path.Child("additionalProperties"), at.repeated(s.MaxProperties()))
	}
}

func (c *checking) rules(s *structural.Schema, path *field.Path, at nesting) {
	scope, err := c.environments.scope(s.CEL(), at.root || s.Embedded())
	if err != nil {
		c.errors = append(c.errors,
			field.InternalError(path,
				fmt.Errorf("internal error: failed to construct type information for x-kubernetes-validations rules: %w", err)))
		return
	}
	if at.count == 0 { // as many as fit into a request
		at.count = uint64(celconfig.MaxRequestSizeBytes) / uint64(scope.declared.MinSerializedSize+1)
	}
	rules := s.Rules()
	for i := range rules {
		c.rule(scope, &rules[i], path.Index(i), at)
	}
}

func (c *checking) rule(scope *scope, r *apiextensionsv1.ValidationRule, path *field.Path, at nesting) {
	when, err := scope.condition(r)
	if err != nil {
		c.errors = append(c.errors, field.Invalid(path.Child("rule"), written(r), err.Error()))
		if r.OptionalOldSelf != nil {
			c.errors = append(c.errors, unusedOption(r, path))
		}
		return
	}
	if when.readsOld && at.lost != nil {
		c.errors = append(c.errors,
			field.Invalid(path.Child("rule"), r.Rule,
				"oldSelf cannot be used on the uncorrelatable portion of the schema within "+at.lost.String()))
	}
	if r.OptionalOldSelf != nil && !when.readsOld {
		c.errors = append(c.errors, unusedOption(r, path))
	}
	c.cost(scope, r, when, path.Child("rule"), "rule", at)
	if r.MessageExpression == "" {
		return
	}
	text, err := scope.text(r)
	if err != nil {
		c.errors = append(c.errors, field.Invalid(path.Child("messageExpression"), written(r), err.Error()))
		return
	}
	c.cost(scope, r, text, path.Child("messageExpression"), "messageExpression", at)
}

// unusedOption is said of a rule that has oldSelf optional and does not read it, also if nobody can tell what it reads.
func unusedOption(r *apiextensionsv1.ValidationRule, path *field.Path) *field.Error {
	return field.Invalid(path.Child("optionalOldSelf"), *r.OptionalOldSelf,
		"may not be set if oldSelf is not used in rule")
}

// cost notes what e may cost, and that it is too much.
func (c *checking) cost(scope *scope, r *apiextensionsv1.ValidationRule, e *expression, path *field.Path, what string,
	at nesting) {
	if err := scope.estimate(e, optionalOld(r)); err != nil {
		c.errors = append(c.errors, field.InternalError(path, fmt.Errorf("cost estimation failed: %w", err)))
		return
	}
	most := product(e.cost, at.count)
	if what == "rule" || most > ruleLimit { // Kubernetes leaves the other messages out of the total
		c.costs = append(c.costs, cost{path, most})
	}
	if most > ruleLimit {
		c.errors = append(c.errors,
			field.Forbidden(path, "estimated "+what+" cost exceeds budget by factor of "+factor(most, ruleLimit)+
				simplify))
	}
}

// total tells that all expressions together may cost too much.
func (c *checking) total(path *field.Path) field.ErrorList {
	var sum uint64
	for _, one := range c.costs {
		if sum += one.most; sum < one.most {
			sum = ^uint64(0)
			break
		}
	}
	if sum <= schemaLimit {
		return nil
	}
	var errs field.ErrorList
	slices.SortStableFunc(c.costs, func(a, b cost) int { return cmp.Compare(b.most, a.most) })
	for _, one := range c.costs[:min(mostNamed, len(c.costs))] {
		if one.most >= schemaLimit/100 {
			errs = append(errs, field.Forbidden(one.path,
				"contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"))
		}
	}
	return append(errs, field.Forbidden(path,
		"x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of "+
			factor(sum, schemaLimit)+simplify))
}

// factor is how many times the limit a cost is, as messages say it.
func factor(cost, limit uint64) string {
	switch f := float64(cost) / float64(limit); {
	case f > 100:
		return "more than 100x"
	case f < 1.5: // which would read as 1.0
		return fmt.Sprintf("%fx", f)
	default:
		return fmt.Sprintf("%.1fx", f)
	}
}

// shownRule is how Kubernetes shows a rule in errors.
type shownRule struct {
	Rule, Message, MessageExpression string
	Reason                           *apiextensionsv1.FieldValueErrorReason
	FieldPath                        string
	OptionalOldSelf                  *bool
}

func written(r *apiextensionsv1.ValidationRule) shownRule {
	return shownRule{r.Rule, r.Message, r.MessageExpression, r.Reason, r.FieldPath, r.OptionalOldSelf}
}

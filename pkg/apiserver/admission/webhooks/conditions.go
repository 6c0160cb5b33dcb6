package webhooks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/cel/library"

	"bonsai/api/admissionregistration/expression"
	"bonsai/pkg/apiserver/admission"
)

// conditions are the match conditions of a webhook, compiled when they are first asked.
type conditions struct {
	texts    []string
	once     sync.Once
	programs []*expression.Program
	err      error
}

func (c *conditions) compile(with *expression.Compiler) ([]*expression.Program, error) {
	c.once.Do(func() {
		for _, text := range c.texts {
			p, err := with.Compile(text, expression.Scope{Authorizer: true}, expression.Bool())
			if err != nil {
				c.err = fmt.Errorf("compilation error: %w", err)
				return
			}
			c.programs = append(c.programs, p)
		}
	})
	return c.programs, c.err
}

// meets tells whether all match conditions hold. One that does not is enough to leave the webhook out, whatever errors the others
// have; otherwise an error counts as the failure policy says.
func (r *request) meets(ctx context.Context, c *candidate) (bool, error) {
	if len(c.conditions.texts) == 0 {
		return true, nil
	}
	begun := time.Now()
	holds, err := r.evaluate(ctx, c)
	r.metrics.conditions(c.Name, r.kind, string(r.a.Operation), time.Since(begun), holds, err)
	switch {
	case err == nil:
		return holds, nil
	case c.ignores():
		r.Log.Warn("match conditions of a webhook cannot be evaluated, it is left out", "webhook", c.Name, "err", err)
		return false, nil
	}
	r.Log.Warn("match conditions of a webhook cannot be evaluated, the request is refused", "webhook", c.Name, "err", err)
	return false, admission.Forbid(r.a, "%w", err)
}

func (r *request) evaluate(ctx context.Context, c *candidate) (bool, error) {
	programs, err := c.conditions.compile(&r.compiler)
	if err != nil {
		return false, err
	}
	vars, err := r.variables(ctx, c)
	if err != nil {
		return false, err
	}
	budget := expression.Budget(expression.MatchConditionsBudget)
	var errs []error
	for _, p := range programs {
		v, err := p.Evaluate(ctx, expression.NewEvaluation(vars), &budget)
		switch {
		case errors.Is(err, expression.ErrBudget):
			return false, err
		case err != nil:
			errs = append(errs, err)
		case !expression.Holds(v):
			return false, nil
		}
	}
	return len(errs) == 0, utilerrors.NewAggregate(errs)
}

// variables are what the expressions see: the objects in the webhook's version, the request, and what its user may do.
func (r *request) variables(ctx context.Context, c *candidate) (*expression.Variables, error) {
	v, err := r.as(ctx, c)
	if err != nil {
		return nil, err
	}
	out := &expression.Variables{}
	if out.Object, err = v.object.content(); err != nil {
		return nil, err
	}
	if out.OldObject, err = v.old.content(); err != nil {
		return nil, err
	}
	described, err := r.describe(c)
	if err != nil {
		return nil, err
	}
	described.Options = runtime.RawExtension{Object: r.a.Options}
	if out.Request, err = runtime.DefaultUnstructuredConverter.ToUnstructured(described); err != nil {
		return nil, err
	}
	out.Authorizer, out.RequestResource = r.authorizers()
	return out, nil
}

func (r *request) authorizers() (all, own ref.Val) {
	user, may := caller(r.a.User), rights{r.Authorizer}
	return library.NewAuthorizerVal(user, may), library.NewResourceAuthorizerVal(user, may, requestResource{r.a})
}

// requestResource is what "authorizer.requestResource" is about.
type requestResource struct{ a *admission.Attributes }

func (r requestResource) GetName() string        { return r.a.Name }
func (r requestResource) GetNamespace() string   { return namespaceOf(r.a) }
func (r requestResource) GetSubresource() string { return r.a.Subresource }
func (r requestResource) GetResource() schema.GroupVersionResource {
	if !r.a.RequestResource.Empty() {
		return r.a.RequestResource
	}
	return r.a.Resource
}

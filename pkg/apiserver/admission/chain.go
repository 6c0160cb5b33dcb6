package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Chain runs plug-ins in their order.
type Chain struct {
	plugins []Plugin
	times   *times // nil: nobody measures
}

// NewChain returns a Chain of plugins, in the order they run.
func NewChain(plugins ...Plugin) *Chain { return &Chain{plugins: plugins} }

// Measure registers at r how long each plug-in takes. It must be called before the Chain is used.
func (c *Chain) Measure(r prometheus.Registerer) { c.times = newTimes(r, c.plugins) }

// Names returns the plug-ins' names, in order.
func (c *Chain) Names() []string {
	var names []string
	for _, p := range c.plugins {
		names = append(names, p.Name)
	}
	return names
}

// Admit runs the mutating plug-ins; the first refusal ends it. If one of them asks for it with Attributes.Reinvoke, all
// run once more.
func (c *Chain) Admit(ctx context.Context, a *Attributes) (err error) {
	start := time.Now()
	defer func() { c.times.step(start, mutating, a.Operation, err != nil) }()
	a.reinvocation = reinvocation{}
	if err := c.admit(ctx, a); err != nil || !a.reinvocation.wanted {
		return err
	}
	a.reinvocation.second = true
	return c.admit(ctx, a)
}

func (c *Chain) admit(ctx context.Context, a *Attributes) error {
	clock := c.times.start()
	for i := range c.plugins {
		p := &c.plugins[i]
		if p.Mutator == nil {
			continue
		}
		err := p.Mutator.Admit(ctx, a)
		clock.lap(i, mutating, a.Operation, err != nil)
		if err != nil {
			return refused(p.Name, err)
		}
	}
	return nil
}

// Validate runs the validating plug-ins; the first refusal ends it.
func (c *Chain) Validate(ctx context.Context, a *Attributes) (err error) {
	clock := c.times.start()
	start := clock.last
	defer func() { c.times.step(start, validating, a.Operation, err != nil) }()
	for i := range c.plugins {
		p := &c.plugins[i]
		if p.Validator == nil {
			continue
		}
		err := p.Validator.Validate(ctx, a)
		clock.lap(i, validating, a.Operation, err != nil)
		if err != nil {
			return refused(p.Name, err)
		}
	}
	return nil
}

// refused names the plug-in in faults; a Status goes to the client as it is.
func refused(plugin string, err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	return fmt.Errorf("admission plug-in %s: %w", plugin, err)
}

// Forbid returns the 403 that refuses a: `pods "web" is forbidden: <why>`.
func Forbid(a *Attributes, format string, args ...any) error {
	name := a.Name
	if name == "" && a.Object != nil {
		name = nameOf(a.Object)
	}
	return apierrors.NewForbidden(cmp.Or(a.RequestResource, a.Resource).GroupResource(), name,
		fmt.Errorf(format, args...))
}

// Fail returns the 500 without a reason with which some of upstream's plug-ins refuse, and all that cannot decide.
func Fail(format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure,
		Code: http.StatusInternalServerError, Message: fmt.Sprintf(format, args...)}}
}

// Is reports whether a is about the resource itself, or the subresource if one is given as "pods/status".
func (a *Attributes) Is(gr schema.GroupResource) bool {
	resource, sub, _ := strings.Cut(gr.Resource, "/")
	return a.Resource.Group == gr.Group && a.Resource.Resource == resource && a.Subresource == sub
}

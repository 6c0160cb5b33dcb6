package authz

import (
	"context"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Union returns an Authorizer that asks each of list in order. The first Allow or Deny is the answer; if there is none,
// it is NoOpinion with all reasons and errors.
func Union(list ...Authorizer) Authorizer { return union(list) }

type union []Authorizer

func (u union) Authorize(ctx context.Context, a Attributes) (Decision, string, error) {
	var reasons []string
	var errs []error
	for _, z := range u {
		d, reason, err := z.Authorize(ctx, a)
		if d == Allow || d == Deny {
			return d, reason, err
		}
		if reason != "" {
			reasons = append(reasons, reason)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return NoOpinion, strings.Join(reasons, "\n"), utilerrors.NewAggregate(errs)
}

// Named returns z under the name that its reasons begin with when it has no opinion, as in Kubernetes: of several
// authorizers, each says its own.
func Named(name string, z Authorizer) Authorizer { return named{z, name} }

type named struct {
	Authorizer
	name string
}

// Authorize implements Authorizer.
func (n named) Authorize(ctx context.Context, a Attributes) (Decision, string, error) {
	d, reason, err := n.Authorizer.Authorize(ctx, a)
	if d == NoOpinion && reason != "" {
		reason = n.name + ": " + reason
	}
	return d, reason, err
}

// Privileged returns an Authorizer that allows everything to members of the groups (system:masters) and has no opinion
// on others. It comes first, so that an administrator is not shut out by a broken mode.
func Privileged(groups ...string) Authorizer { return privileged(groups) }

type privileged []string

func (p privileged) Authorize(_ context.Context, a Attributes) (Decision, string, error) {
	for _, g := range p {
		if a.User.InGroup(g) {
			return Allow, "", nil
		}
	}
	return NoOpinion, "", nil
}

package delegated

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authnv1 "k8s.io/api/authentication/v1"
)

// AnyOf asks its authorizers in order; the first that allows decides. An empty AnyOf allows nothing. A refusal has the
// last reason that was given. If one of them could not decide, the result is an error instead of a refusal.
type AnyOf []Authorizer

var _ Authorizer = AnyOf(nil)

// Authorize implements Authorizer.
func (all AnyOf) Authorize(ctx context.Context, user authnv1.UserInfo, what Attributes) (bool, string, error) {
	var failed []error
	reason := ""
	for _, a := range all {
		allowed, why, err := a.Authorize(ctx, user, what)
		if allowed {
			return true, why, nil
		}
		if why != "" {
			reason = why
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return false, reason, errors.Join(failed...)
}

// AlwaysAllow authorizes everything (authorization mode AlwaysAllow).
type AlwaysAllow struct{}

var _ Authorizer = AlwaysAllow{}

// Authorize implements Authorizer.
func (AlwaysAllow) Authorize(context.Context, authnv1.UserInfo, Attributes) (bool, string, error) {
	return true, "", nil
}

// Group allows everything to the members of a group.
type Group string

var _ Authorizer = Group("")

// Authorize implements Authorizer.
func (g Group) Authorize(_ context.Context, user authnv1.UserInfo, _ Attributes) (bool, string, error) {
	return slices.Contains(user.Groups, string(g)), "", nil
}

// Paths allows everybody everything with some paths. A path that ends in "*" stands for all that begin so.
type Paths []string

var _ Authorizer = Paths(nil)

// NewPaths checks that "*" is only at the end of a path; the slash before a path may be missing.
func NewPaths(paths []string) (Paths, error) {
	out := make(Paths, 0, len(paths))
	for _, path := range paths {
		if strings.Contains(strings.TrimSuffix(path, "*"), "*") || path == "" {
			return nil, fmt.Errorf("%q is not a path, or has a * before its end", path)
		}
		out = append(out, "/"+strings.TrimPrefix(path, "/"))
	}
	return out, nil
}

// Authorize implements Authorizer.
func (p Paths) Authorize(_ context.Context, _ authnv1.UserInfo, what Attributes) (bool, string, error) {
	return what.Path != nil && slices.ContainsFunc(p, func(path string) bool {
		prefix, all := strings.CutSuffix(path, "*")
		return what.Path.Path == path || all && strings.HasPrefix(what.Path.Path, prefix)
	}), "", nil
}

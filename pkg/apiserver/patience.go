package apiserver

import (
	"context"
	"time"

	"bonsai/pkg/apiserver/request"
)

// rolesPatience bounds how long a refusal waits for the default roles: they are made in a fraction of a second unless
// etcd is unwell.
const rolesPatience = 5 * time.Second

// awaitRoles waits until the authorizer knows the default roles. It reports whether it had to wait, so that a refusal
// should be decided again. Components that start with the server ask before the roles are made, and each would retry
// only after a second. awaitRoles allows nothing by itself. Anonymous requests do not wait, because anybody could make
// any number of them wait.
func (s *Server) awaitRoles(ctx context.Context) bool {
	if s.RolesKnown == nil || request.UserFrom(ctx).Name == request.AnonymousUser {
		return false
	}
	select {
	case <-s.RolesKnown:
		return false
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, rolesPatience)
	defer cancel()
	select {
	case <-s.RolesKnown:
		return true
	case <-lifeOf(ctx).stopping: // they come no more, and nothing has begun that must end
		return false
	case <-ctx.Done():
		return false
	}
}

package apiserver

import (
	"context"
	"time"

	"bonsai/pkg/apiserver/request"
)

// rolesPatience bounds how long a refusal waits for the default roles: they are made in a fraction of a second unless
// etcd is unwell.
const rolesPatience = 5 * time.Second

// awaitRoles waits until the authorizer knows the default roles and reports whether it had to, and what was refused
// should be judged again. Components that start with the server ask before these are made, and each would come again
// only after a second. It allows nothing by itself. Strangers do not wait: anybody could hold as many requests as he
// likes.
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

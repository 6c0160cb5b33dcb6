package apiserver_test

import (
	"context"
	"sync/atomic"
	"testing"

	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
)

// rolesToCome allows "component" everything once it has heard of the roles, and tells each time that it refuses.
type rolesToCome struct {
	roles   atomic.Bool
	refused chan string
}

func (l *rolesToCome) Authorize(_ context.Context, a authz.Attributes) (authz.Decision, string, error) {
	if l.roles.Load() && a.User.Name == "component" {
		return authz.Allow, "", nil
	}
	l.refused <- a.User.Name
	return authz.NoOpinion, "", nil
}

// Who is refused before the default roles are known waits for them and is judged again; unauthenticated requests do not
// wait, and later nobody does.
func TestRefusalsWaitForTheDefaultRoles(t *testing.T) {
	t.Parallel()
	l, known := &rolesToCome{refused: make(chan string, 10)}, make(chan struct{})
	url := start(t, func(c *assemble.Config) { c.Parts.Authorizer, c.Parts.RolesKnown = l, known })
	get := func(user string) int {
		resp, err := plain(user).Get(url + "/api/v1/nodes")
		if err != nil {
			t.Errorf("as %s: %v", user, err)
			return 0
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	if code := get(request.AnonymousUser); code != 403 {
		t.Errorf("unauthenticated: %d", code)
	}
	<-l.refused
	answers := make(chan int, 2)
	for _, user := range []string{"component", "other"} {
		go func() { answers <- get(user) }()
		<-l.refused // and now it waits
	}
	l.roles.Store(true)
	close(known)
	if a, b := <-answers, <-answers; a+b != 200+403 {
		t.Errorf("answers %d and %d, want 200 for the component and 403 for the other", a, b)
	}
	<-l.refused // the other, for the second time
	if code := get("other"); code != 403 {
		t.Errorf("later: %d", code)
	}
	if <-l.refused; len(l.refused) != 0 {
		t.Error("what is refused later was judged twice")
	}
}

package delegated

import (
	"net/http"
	"slices"
	"time"

	authnv1 "k8s.io/api/authentication/v1"

	"bonsai/pkg/frontproxy"
)

// FrontProxy authenticates those whom a trusted front proxy names in headers. Trust is asked at each request.
type FrontProxy struct{ Trust func() frontproxy.Trust }

var _ Authenticator = FrontProxy{}

// Authenticate implements Authenticator.
func (f FrontProxy) Authenticate(r *http.Request) (authnv1.UserInfo, bool, error) {
	trust := f.Trust()
	id, err := trust.Identify(r, time.Now())
	if id == nil || err != nil {
		return authnv1.UserInfo{}, false, err
	}
	user := authnv1.UserInfo{Username: id.Name, UID: id.UID, Groups: id.Groups}
	if !slices.Contains(user.Groups, "system:unauthenticated") &&
		!slices.Contains(user.Groups, "system:authenticated") {
		user.Groups = append(user.Groups, "system:authenticated")
	}
	if len(id.Extra) > 0 {
		user.Extra = make(map[string]authnv1.ExtraValue, len(id.Extra))
		for key, values := range id.Extra {
			user.Extra[key] = values
		}
	}
	return user, true, nil
}

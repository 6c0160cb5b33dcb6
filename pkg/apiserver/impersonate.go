package apiserver

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/apiserver/impersonation"
	"bonsai/pkg/apiserver/request"
)

// impersonate lets a caller act as another user, if the caller may.
//
// The audit record has both users. Everything behind this filter knows only the impersonated one.
func (s *Server) impersonate(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		as, err := s.meant(r)
		if err != nil {
			w.Header().Set(contentTypeOptions, "nosniff")
			s.API.WriteError(w, r, err)
			return
		}
		if as != nil {
			if a := request.AuditOf(r.Context()); a != nil {
				a.Impersonate(as.User, as.Constraint)
			}
			r = r.WithContext(request.WithUser(r.Context(), as.User))
		}
		next(w, r)
	}
}

// meant returns the user that the caller acts as, nil if the caller acts as itself. The headers are removed afterwards,
// so that an aggregated server does not impersonate a second time.
func (s *Server) meant(r *http.Request) (*impersonation.Impersonated, error) {
	wanted, asked := impersonated(r.Header)
	if !asked {
		return nil, nil
	}
	if wanted.Name == "" {
		return nil, apierrors.NewBadRequest(
			fmt.Sprintf("requested &user.DefaultInfo{Name:\"\", UID:%q, Groups:%#v, Extra:%#v} without impersonating a user name", wanted.UID, wanted.Groups, wanted.Extra))
	}
	caller := request.UserFrom(r.Context())
	as, err := s.impersonation.As(r.Context(), caller, wanted, request.InfoFrom(r.Context()))
	if err != nil {
		return nil, err
	}
	for h := range r.Header {
		if strings.HasPrefix(h, "Impersonate-") {
			r.Header.Del(h)
		}
	}
	s.Log.Debug("impersonation", "user", caller.Name, "as", as.User.Name, "constraint", as.Constraint)
	return as, nil
}

// impersonated reads the Impersonate-* headers; asked reports whether there are any. Any Impersonate-* header counts as
// asking, even one that is unknown: ignoring it would run the request with the caller's own, greater rights. Keys of
// extra fields are lower case and percent-encoded, as upstream documents.
func impersonated(h http.Header) (u *request.User, asked bool) {
	u = &request.User{
		Name:   h.Get(authenticationv1.ImpersonateUserHeader),
		UID:    h.Get(authenticationv1.ImpersonateUIDHeader),
		Groups: append([]string(nil), h[authenticationv1.ImpersonateGroupHeader]...),
	}
	for name, values := range h {
		if !strings.HasPrefix(name, "Impersonate-") || name == authenticationv1.ImpersonateUserHeader && u.Name == "" {
			continue
		}
		asked = true
		key, ok := strings.CutPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix)
		if !ok {
			continue
		}
		if unescaped, err := url.PathUnescape(strings.ToLower(key)); err == nil {
			key = unescaped
		}
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[key] = append(u.Extra[key], values...)
	}
	return u, asked
}

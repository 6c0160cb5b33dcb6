package apiserver

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
)

// impersonate lets a caller act as another user, if the caller may "impersonate" each part of that user.
func (s *Server) impersonate(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		user, err := s.meant(r)
		if err != nil {
			w.Header().Set(contentTypeOptions, "nosniff")
			s.API.WriteError(w, r, err)
			return
		}
		if user != nil {
			if a := request.AuditOf(r.Context()); a != nil {
				a.Impersonate(user)
			}
			r = r.WithContext(request.WithUser(r.Context(), user))
		}
		next(w, r)
	}
}

// meant is whom the caller acts as; nil for itself.
func (s *Server) meant(r *http.Request) (*request.User, error) {
	user, asked := impersonated(r.Header)
	if !asked {
		return nil, nil
	}
	if user.Name == "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("requested &user.DefaultInfo{Name:\"\", UID:%q, Groups:%#v, Extra:%#v} without impersonating a user name", user.UID, user.Groups, user.Extra))
	}
	for _, question := range impersonationQuestions(user) {
		a := authz.Attributes{User: request.UserFrom(r.Context()), Info: question}
		decision, reason, err := s.Authorizer.Authorize(r.Context(), a)
		if err != nil || decision != authz.Allow {
			return nil, apierrors.NewForbidden(schema.GroupResource{Group: a.APIGroup, Resource: a.Resource}, a.Name,
				errorString(authz.ForbiddenMessage(a, reason)))
		}
	}
	completeGroups(user)
	for h := range r.Header {
		if strings.HasPrefix(h, "Impersonate-") {
			r.Header.Del(h)
		}
	}
	s.Log.Debug("impersonation", "user", request.UserFrom(r.Context()).Name, "as", user.Name)
	return user, nil
}

type errorString string

func (e errorString) Error() string { return string(e) }

// impersonated reads the Impersonate-* headers; asked tells whether there are any.
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

const serviceAccountPrefix = "system:serviceaccount:"

// impersonationQuestions are what the caller must be allowed, one per part of u.
func impersonationQuestions(u *request.User) []request.Info {
	ask := func(group, resource, subresource, ns, name string) request.Info {
		return request.Info{IsResource: true, Verb: "impersonate", APIGroup: group, APIVersion: "v1", Resource: resource, Subresource: subresource, Namespace: ns, Name: name}
	}
	var out []request.Info
	if ns, name, ok := serviceAccount(u.Name); ok {
		out = append(out, ask("", "serviceaccounts", "", ns, name))
	} else {
		out = append(out, ask("", "users", "", "", u.Name))
	}
	for _, g := range u.Groups {
		out = append(out, ask("", "groups", "", "", g))
	}
	if u.UID != "" {
		out = append(out, ask(authenticationv1.GroupName, "uids", "", "", u.UID))
	}
	for key, values := range u.Extra {
		for _, v := range values {
			out = append(out, ask(authenticationv1.GroupName, "userextras", key, "", v))
		}
	}
	return out
}

// serviceAccount takes the user name of a service account apart. A name that only looks like one is that of a user, whom the right
// to impersonate the accounts of a namespace does not cover.
func serviceAccount(user string) (ns, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, serviceAccountPrefix)
	if !ok {
		return "", "", false
	}
	ns, name, ok = strings.Cut(rest, ":")
	return ns, name, ok && ns != "" && name != "" && !strings.Contains(name, ":")
}

// completeGroups adds the groups that the impersonated user would have by being authenticated.
func completeGroups(u *request.User) {
	if ns, _, ok := serviceAccount(u.Name); ok && len(u.Groups) == 0 {
		u.Groups = append(u.Groups, request.GroupServiceAccounts, request.GroupServiceAccounts+":"+ns)
	}
	if u.Name == request.AnonymousUser {
		if !u.InGroup(request.GroupUnauthenticated) {
			u.Groups = append(u.Groups, request.GroupUnauthenticated)
		}
		return
	}
	if !u.InGroup(request.GroupAuthenticated) && !u.InGroup(request.GroupUnauthenticated) {
		u.Groups = append(u.Groups, request.GroupAuthenticated)
	}
}

// Package request is the vocabulary that the filters of the API server share: who asks (User), what is asked (Info),
// and how both travel in a context. It knows nothing of how they are found out.
package request

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
)

// User is an authenticated identity (authentication.k8s.io/v1 UserInfo).
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// IsServiceAccount reports whether the name is that of a service account.
func (u *User) IsServiceAccount() bool {
	_, _, ok := ServiceAccount(u.Name)
	return ok
}

// InGroup reports whether the user is a member of group.
func (u *User) InGroup(group string) bool { return u != nil && slices.Contains(u.Groups, group) }

// The names that Kubernetes reserves for users and groups.
const (
	AnonymousUser        = "system:anonymous"
	GroupUnauthenticated = "system:unauthenticated"
	GroupAuthenticated   = "system:authenticated"
	GroupMasters         = "system:masters"
	GroupNodes           = "system:nodes"
	GroupServiceAccounts = "system:serviceaccounts"
	NodeUserPrefix       = "system:node:"
	ServiceAccountPrefix = "system:serviceaccount:"
)

// ExtraNodeName is the extra of a service account whose token is bound to a pod that says on which node that is.
const ExtraNodeName = "authentication.kubernetes.io/node-name"

// ServiceAccount takes the user name of a service account apart. A name that only looks like one is that of a user,
// whom the right to impersonate the accounts of a namespace does not cover.
func ServiceAccount(user string) (ns, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, ServiceAccountPrefix)
	if !ok {
		return "", "", false
	}
	ns, name, ok = strings.Cut(rest, ":")
	return ns, name, ok && len(validation.ValidateNamespaceName(ns, false)) == 0 &&
		len(validation.ValidateServiceAccountName(name, false)) == 0
}

// Info is what a request asks for, read from its method and path alone (API conventions: "/api/v1/...",
// "/apis/GROUP/VERSION/...").
type Info struct {
	// IsResource is false for paths such as /healthz or /openapi/v3; then only Path and Verb (the lower-case method)
	// are set.
	IsResource bool
	Path       string
	// Verb is get, list, watch, create, update, patch, delete, deletecollection (or the lower-case method); empty for a
	// method that no resource has.
	Verb       string
	APIPrefix  string // "api" or "apis"
	APIGroup   string // "" is core
	APIVersion string
	Namespace  string
	// InNamespace tells that the resource stands below /namespaces/NAME/ in the path. A Namespace without it is the
	// name of the namespace that the path is about: /namespaces/NAME, /namespaces/NAME/status.
	InNamespace bool
	// WatchPrefix tells that the path has the deprecated /watch/ before all that.
	WatchPrefix bool
	Resource    string
	Subresource string
	Name        string
	// FieldSelector and LabelSelector are the query parameters of a list, watch or deletecollection as they came; the
	// authorizers Node and Webhook read them.
	FieldSelector, LabelSelector string
	// Parts are the path segments from the resource on: [pods web log]. A proxy subresource has its rest there too.
	Parts []string
	// Stream tells of a request that it lasts, where its verb and resource do not: it asks a server behind this one for
	// a connection of another protocol.
	Stream bool
	// Served is what the server served when the request came: a snapshot of package catalog, which is no word of this
	// one. The request sees it to its end, whatever is added or removed meanwhile.
	Served any
	// Waited is the time that the request has waited for its turn and for webhooks, in nanoseconds; nil: nobody counts
	// it. Wait adds to it.
	Waited *atomic.Int64
	// Audit is where the request is noted for the audit log; nil: nowhere.
	Audit Audit
}

// Scope is what a request is about, in the words of metrics: one object ("resource"), those of a namespace
// ("namespace"), or those of the cluster ("cluster"). A creation is about the object that it makes.
func (i *Info) Scope() string {
	switch {
	case i.Name != "" || len(i.Parts) > 1 || i.Verb == "create":
		return "resource"
	case i.Namespace != "":
		return "namespace"
	}
	return "cluster"
}

// Wait notes that the request of ctx waited from begun to now for its turn or for a webhook.
func Wait(ctx context.Context, begun time.Time) {
	if i := InfoFrom(ctx); i != nil && i.Waited != nil {
		i.Waited.Add(int64(time.Since(begun)))
	}
}

type key int

const (
	userKey key = iota
	infoKey
)

// WithUser returns a copy of ctx that carries u.
func WithUser(ctx context.Context, u *User) context.Context {
	return context.WithValue(ctx, userKey, u)
}

// AsServer makes the API server itself the user of what is done with the context.
func AsServer(ctx context.Context) context.Context {
	return WithUser(ctx, &User{Name: "system:apiserver", Groups: []string{GroupMasters, GroupAuthenticated}})
}

// UserFrom returns the user of ctx; nil before authentication.
func UserFrom(ctx context.Context) *User {
	u, _ := ctx.Value(userKey).(*User)
	return u
}

// WithInfo returns a copy of ctx that carries i.
func WithInfo(ctx context.Context, i *Info) context.Context {
	return context.WithValue(ctx, infoKey, i)
}

// InfoFrom returns the request info of ctx, nil if there is none.
func InfoFrom(ctx context.Context) *Info {
	i, _ := ctx.Value(infoKey).(*Info)
	return i
}

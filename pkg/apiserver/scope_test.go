package apiserver_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"

	"bonsai/api/resources"
	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/assemble/assembletest"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/authz/rbac"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/follow"
	"bonsai/pkg/apiserver/storage/memory"
)

// reached counts what came through to a resource or subresource that is more than storing.
type reached struct{ count *atomic.Int64 }

func (r reached) New() runtime.Object { return &metav1.PartialObjectMetadata{} }

func (r reached) Create(context.Context, string, string, runtime.Object, *metav1.CreateOptions) (runtime.Object,
	error) {
	r.count.Add(1)
	return &metav1.Status{}, nil
}

// connected is reached for a subresource that takes over the connection.
type connected struct{ reached }

func (connected) Options(string, url.Values) (runtime.Object, error) { return nil, nil }

func (c connected) Connect(context.Context, string, string, runtime.Object, http.ResponseWriter, *http.Request) error {
	c.count.Add(1)
	return nil
}

// scopes is a server of every kind with RBAC, in which alice is an administrator of the namespace mine and of nothing
// else, and root may do everything. Of each kind there is an object o, of namespaced kinds in each of the namespaces
// mine and theirs; the namespaces are there, too.
type scopes struct {
	t       *testing.T
	rows    []resources.Row
	storage *memory.Storage
	reached *atomic.Int64
	handler http.Handler
}

type byGroup struct{}

func (byGroup) Authenticate(r *http.Request) (*request.User, error) {
	u := &request.User{Name: r.Header.Get("Test-User"), Groups: []string{request.GroupAuthenticated}}
	if u.Name == "root" {
		u.Groups = append(u.Groups, request.GroupMasters)
	}
	return u, nil
}

func newScopes(t *testing.T) *scopes {
	t.Helper()
	facts := &storage.FactsTable{}
	s := &scopes{t: t, rows: rows.All(), storage: memory.New(facts), reached: &atomic.Int64{}}
	served, err := catalog.New(t.Context(), catalog.Config{Facts: facts})
	if err != nil {
		t.Fatal(err)
	}
	source := func(resource string) follow.Resource {
		i := slices.IndexFunc(s.rows, func(r resources.Row) bool { return r.Resource == resource })
		codec := registry.NewCodec(&s.rows[i])
		return follow.Resource{Source: s.storage, Prefix: registry.Prefix(&s.rows[i]),
			Decode: func(value []byte) (runtime.Object, error) {
				return codec.Decode(value, 0)
			}}
	}
	log := slog.New(slog.DiscardHandler)
	roles := rbac.New(rbac.Config{Roles: source("roles"), RoleBindings: source("rolebindings"),
		ClusterRoles: source("clusterroles"), ClusterRoleBindings: source("clusterrolebindings"), Log: log})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := assemble.New(assemble.Config{Catalog: served, Storage: s.storage, Rows: s.rows,
		Parts: assemble.Parts{Authenticator: byGroup{},
			Authorizer: authz.Union(authz.Privileged(request.GroupMasters), roles),
			Behaviours: assembletest.Behaviours(s.rows, reached{s.reached},
				registry.Answerer{Connecter: connected{reached{s.reached}}})},
		HTTP: apiserver.Config{Listener: listener, TLS: certificate(t), Metrics: prometheus.NewRegistry(),
			Version: version.Info{GitVersion: "v1.36.0"}, Log: log}})
	if err != nil {
		t.Fatal(err)
	}
	stores := map[string]*registry.Generic{}
	for _, r := range served.Snapshot().Resources() {
		if r.Store != nil && r.Row.Stored == nil {
			stores[r.Row.StoragePath] = r.Store
			s.fill(r.Row, r.Store)
		}
	}
	s.grant(stores)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- roles.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		listener.Close()
	})
	s.handler = server
	return s
}

// fill makes the objects of one kind, which need not be valid.
func (s *scopes) fill(row *resources.Row, g *registry.Generic) {
	put := func(ns, name string) {
		obj := row.New()
		access, err := meta.Accessor(obj)
		if err != nil {
			s.t.Fatal(err)
		}
		access.SetNamespace(ns)
		access.SetName(name)
		access.SetUID(types.UID("uid-" + ns + name))
		d, err := g.Codec().Draft(obj)
		if err != nil {
			s.t.Fatal(err)
		}
		key := registry.Prefix(row) + name
		if ns != "" {
			key = registry.Prefix(row) + ns + "/" + name
		}
		if _, err := s.storage.Create(s.t.Context(), key, storage.Draft{Value: d.Value}); err != nil {
			s.t.Fatal(err)
		}
	}
	switch {
	case row.Resource == "namespaces":
		put("", "mine")
		put("", "theirs")
		put("", "o")
	case row.Namespaced:
		put("mine", "o")
		put("theirs", "o")
	default:
		put("", "o")
	}
}

// grant makes alice's role and binding, and in the same namespace those of bob, who may update everything, and carol,
// who may create it, too.
func (s *scopes) grant(byPath map[string]*registry.Generic) {
	for name, verbs := range map[string][]string{"bob": {"update"}, "carol": {"update", "create"}} {
		s.bind(byPath, name, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: []rbacv1.PolicyRule{{Verbs: verbs, APIGroups: []string{"*"}, Resources: []string{"*"}}}})
	}
	all := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "cluster-admin"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
		{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}}}
	s.bind(byPath, "alice", all)
}

// bind makes a role, and binds it to user in the namespace mine.
func (s *scopes) bind(byPath map[string]*registry.Generic, user string, role *rbacv1.ClusterRole) {
	bound := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user, Namespace: "mine"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}}
	if _, err := byPath["clusterroles"].Create(s.t.Context(), "", role, &metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	if _, err := byPath["rolebindings"].Create(s.t.Context(), "mine", bound, &metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// A PUT that creates needs the right to create, too.
func TestPutThatCreates(t *testing.T) {
	t.Parallel()
	s := newScopes(t)
	put := verb{method: http.MethodPut, media: "application/json",
		body: `{"metadata":{"name":"missing"},"spec":{"holderIdentity":"x","leaseDurationSeconds":1}}`}
	const path = "/apis/coordination.k8s.io/v1/namespaces/mine/leases/missing"
	if w := s.ask("bob", path, put); w.Code != 403 ||
		!strings.Contains(w.Body.String(), `User \"bob\" cannot create resource \"leases\"`) {
		t.Errorf("who may only update: %d %s", w.Code, w.Body)
	}
	if w := s.ask("carol", path, put); w.Code != 201 {
		t.Errorf("who may create: %d %s", w.Code, w.Body)
	}
}

// verb is one way to ask for a path.
type verb struct{ method, query, body, media string }

var scopeVerbs = []verb{
	{method: http.MethodGet},
	{method: http.MethodHead},
	{method: http.MethodGet, query: "watch=1&timeoutSeconds=1"},
	{method: http.MethodGet, query: "fieldSelector=metadata.name%3Do"},
	{method: http.MethodPost, body: `{"metadata":{"name":"new"}}`, media: "application/json"},
	{method: http.MethodPut, body: `{"metadata":{"name":"o","labels":{"hacked":"yes"}}}`, media: "application/json"},
	{method: http.MethodPatch, body: `{"metadata":{"labels":{"hacked":"yes"}}}`, media: "application/merge-patch+json"},
	{method: http.MethodDelete},
	{method: http.MethodDelete, query: "fieldSelector=metadata.name%3Do"},
	{method: http.MethodOptions},
}

func (s *scopes) ask(user, path string, v verb) *httptest.ResponseRecorder {
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, v.method, "https://x/?"+v.query, strings.NewReader(v.body))
	r.URL.Path = path
	r.Header.Set("Test-User", user)
	if v.media != "" {
		r.Header.Set("Content-Type", v.media)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// touched tells what reached a resource since the last call: a change of the storage, or a connection.
func (s *scopes) touched(revision, count int64) bool {
	now, err := s.storage.Revision(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return now != revision || s.reached.Load() != count
}

// wrongScopes are the paths of a row's objects in a scope that it does not have. tail is what follows the resource.
func wrongScopes(row *resources.Row, tail string) []string {
	head := "/api/v1/"
	if g := row.GVK.Group; g != "" {
		head = "/apis/" + g + "/" + row.GVK.Version + "/"
	}
	below := row.Resource + tail
	all := []string{"namespaces//" + below, "watch/namespaces//" + below, "namespaces/mine/namespaces/theirs/" + below,
		"namespaces/mine//" + below, "proxy/namespaces/mine/" + below,
		"namespaces/mine/../theirs/" + below, "namespaces/mine/./" + below,
		"namespaces/mine/" + strings.ToUpper(row.Resource) + tail}
	switch {
	case !row.Namespaced:
		all = append(all, "namespaces/mine/"+below, "watch/namespaces/mine/"+below)
	case tail != "":
		all = append(all, below, "watch/"+below)
	}
	if strings.Count(tail, "/") > 1 { // a subresource
		all = append(all, "watch/"+below, "watch/namespaces/mine/"+below,
			"namespaces/mine/"+row.Resource+"/"+tail[strings.LastIndexByte(tail, '/'):])
	}
	for i := range all {
		all[i] = head + all[i]
	}
	return all
}

// No kind answers in a scope that it does not have, whatever the question and the user: RBAC was asked about another
// one (CVE-2019-11247). Who may do everything in one namespace reaches nothing elsewhere.
func TestScopes(t *testing.T) {
	t.Parallel()
	s := newScopes(t)
	for i := range s.rows {
		row := &s.rows[i]
		tails := []string{"", "/o", "/theirs"}
		for _, sub := range row.Subresources {
			tails = append(tails, "/o/"+sub.Name, "/theirs/"+sub.Name)
		}
		for _, tail := range tails {
			for _, path := range wrongScopes(row, tail) {
				for _, v := range scopeVerbs {
					for _, user := range []string{"alice", "root"} {
						s.refused(user, path, v, 404)
					}
				}
			}
			s.elsewhere(row, tail)
		}
	}
}

// refused asks and wants no answer but a refusal: 403 where a caller may not even ask, else the given code.
func (s *scopes) refused(user, path string, v verb, code int) {
	revision, err := s.storage.Revision(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	count := s.reached.Load()
	w := s.ask(user, path, v)
	if w.Code != code && (w.Code != 403 || user == "root") || s.touched(revision, count) {
		s.t.Errorf("%s: %s %s?%s: %d %.200s; something was touched: %v", user, v.method, path, v.query, w.Code, w.Body,
			s.touched(revision, count))
	}
}

// elsewhere asks as alice for what is right but not in her namespace, and checks that her own is hers.
func (s *scopes) elsewhere(row *resources.Row, tail string) {
	head := "/api/v1/"
	if g := row.GVK.Group; g != "" {
		head = "/apis/" + g + "/" + row.GVK.Version + "/"
	}
	paths := []string{head + row.Resource + tail}
	if row.Namespaced {
		paths = []string{head + "namespaces/theirs/" + row.Resource + tail}
		if tail == "" {
			paths = append(paths, head+row.Resource)
		}
	}
	for _, path := range paths {
		for _, v := range scopeVerbs {
			s.refused("alice", path, v, 403)
		}
	}
	if row.Namespaced && !row.NotStored && tail == "/o" {
		if w := s.ask("alice", head+"namespaces/mine/"+row.Resource+tail, verb{method: http.MethodGet}); w.Code != 200 {
			s.t.Errorf("alice's own %s: %d %s", row.Resource, w.Code, fmt.Sprint(w.Body))
		}
	}
}

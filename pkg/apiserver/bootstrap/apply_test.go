package bootstrap_test

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/bootstrap"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
)

// stores are the real stores of all resources, over memory.
type stores map[schema.GroupResource]*registry.Generic

func (s stores) Store(gr schema.GroupResource) registry.Store {
	if g, ok := s[gr]; ok {
		return g
	}
	return nil
}

func newStores(t *testing.T) (stores, *memory.Storage) {
	t.Helper()
	facts := &storage.FactsTable{}
	backend, out, all := memory.New(facts), stores{}, rows.All()
	for i := range all {
		if all[i].NotStored || all[i].Stored != nil {
			continue
		}
		g, err := registry.NewGeneric(registry.Config{Row: &all[i], Storage: backend})
		if err != nil {
			t.Fatal(err)
		}
		facts.Register(registry.Prefix(&all[i]), g.Codec().FactsOf)
		out[all[i].GroupResource()] = g
	}
	return out, backend
}

func newBootstrap(t *testing.T, s stores) (*bootstrap.Bootstrap, *bootstrap.Policy) {
	t.Helper()
	policy, err := bootstrap.DefaultPolicy()
	if err != nil {
		t.Fatal(err)
	}
	return bootstrap.New(bootstrap.Config{Stores: s, Policy: policy, Log: slog.New(slog.DiscardHandler),
		Service: &bootstrap.ServiceConfig{Ranges: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
			ClusterIP: netip.MustParseAddr("10.96.0.1"), Port: 6443,
			Servers: func(context.Context) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
			}},
		Authentication: func() (*bootstrap.Authentication, error) {
			return &bootstrap.Authentication{ClientCA: "pem"}, nil
		}}), policy
}

func get[T runtime.Object](t *testing.T, s stores, gr schema.GroupResource, ns, name string) T {
	t.Helper()
	obj, err := s[gr].Get(t.Context(), ns, name)
	if err != nil {
		t.Fatal(err)
	}
	return obj.DeepCopyObject().(T)
}

func put(t *testing.T, s stores, gr schema.GroupResource, obj runtime.Object) {
	t.Helper()
	m := obj.(metav1.Object)
	if _, err := s[gr].Update(t.Context(), m.GetNamespace(), m.GetName(), "",
		func(runtime.Object) (runtime.Object, error) {
			return obj, nil
		}, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Everything is made in an empty storage, and a second time changes nothing.
func TestApplyIsIdempotent(t *testing.T) {
	t.Parallel()
	s, backend := newStores(t)
	b, policy := newBootstrap(t, s)
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, ns := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		get[*corev1.Namespace](t, s, corev1.Resource("namespaces"), "", ns)
	}
	for role, binding := range policy.Names {
		for _, n := range []struct{ one, all, ns, name string }{
			{"roles", "clusterroles", role.Namespace, role.Name},
			{"rolebindings", "clusterrolebindings", binding.Namespace, binding.Name},
		} {
			resource := n.one
			if n.ns == "" {
				resource = n.all
			}
			if n.name != "" {
				get[runtime.Object](t, s, rbacv1.Resource(resource), n.ns, n.name)
			}
		}
	}
	if c := get[*schedulingv1.PriorityClass](t, s, schedulingv1.Resource("priorityclasses"), "",
		"system-node-critical"); c.Value != 2000001000 {
		t.Errorf("system-node-critical is %d", c.Value)
	}
	if svc := get[*corev1.Service](t, s, corev1.Resource("services"), "default",
		"kubernetes"); svc.Spec.ClusterIP != "10.96.0.1" || svc.Spec.Ports[0].TargetPort.IntVal != 6443 {
		t.Errorf("service: %+v", svc.Spec)
	}
	if m := get[*corev1.ConfigMap](t, s, corev1.Resource("configmaps"), "kube-system",
		"extension-apiserver-authentication"); m.Data["client-ca-file"] != "pem" {
		t.Errorf("authentication: %v", m.Data)
	}
	before, err := backend.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after, err := backend.Revision(t.Context()); err != nil || after != before {
		t.Errorf("the second time wrote: revision %d, then %d, %v", before, after, err)
	}
}

// What was taken from a default role or binding comes back, what was added stays, and autoupdate=false opts out.
func TestApplyRepairs(t *testing.T) {
	t.Parallel()
	s, _ := newStores(t)
	b, policy := newBootstrap(t, s)
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	roles, bindings := rbacv1.Resource("clusterroles"), rbacv1.Resource("clusterrolebindings")
	extra := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"example.com"},
		Resources: []string{"things"}}
	view := get[*rbacv1.ClusterRole](t, s, roles, "", "view")
	view.Rules = []rbacv1.PolicyRule{extra}
	put(t, s, roles, view)
	edit := get[*rbacv1.ClusterRole](t, s, roles, "", "edit")
	edit.Rules, edit.Annotations = nil, map[string]string{rbacv1.AutoUpdateAnnotationKey: "false"}
	put(t, s, roles, edit)
	admins := get[*rbacv1.ClusterRoleBinding](t, s, bindings, "", "cluster-admin")
	admins.Subjects = []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "me"}}
	put(t, s, bindings, admins)
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	view = get[*rbacv1.ClusterRole](t, s, roles, "", "view")
	if len(view.Rules) <= len(policy.ClusterRoleRules("view")) ||
		!slices.ContainsFunc(view.Rules, func(r rbacv1.PolicyRule) bool {
			return r.APIGroups[0] == "example.com"
		}) {
		t.Errorf("view has %d rules", len(view.Rules))
	}
	if edit = get[*rbacv1.ClusterRole](t, s, roles, "", "edit"); len(edit.Rules) != 0 {
		t.Errorf("edit was repaired against its annotation: %v", edit.Rules)
	}
	if admins = get[*rbacv1.ClusterRoleBinding](t, s, bindings, "", "cluster-admin"); len(admins.Subjects) != 2 {
		t.Errorf("cluster-admin binds %v", admins.Subjects)
	}
}

// Each part tells for itself whether it is there: one that cannot be made does not hide the others.
func TestPartsTellWhenTheyAreMade(t *testing.T) {
	t.Parallel()
	s, _ := newStores(t)
	b, _ := newBootstrap(t, s)
	made := func() (names []string) {
		for _, p := range b.Parts() {
			if p.Made() {
				names = append(names, p.Name)
			}
		}
		return names
	}
	if got := made(); len(got) > 0 {
		t.Errorf("made before Apply: %v", got)
	}
	classes := schedulingv1.Resource("priorityclasses")
	store := s[classes]
	delete(s, classes)
	if err := b.Apply(t.Context()); err == nil {
		t.Error("what is not served was made")
	}
	want := []string{bootstrap.PartNamespaces, bootstrap.PartServiceCIDR, bootstrap.PartService, bootstrap.PartRoles,
		bootstrap.PartFairness, bootstrap.PartTokenTracking, bootstrap.PartAuthentication}
	if got := made(); !slices.Equal(got, want) {
		t.Errorf("made: %v, want %v", got, want)
	}
	s[classes] = store
	if err := b.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := made(); len(got) != len(want)+1 {
		t.Errorf("made in the end: %v", got)
	}
}

// Run makes all, and then looks after what must not be missing.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := newStores(t)
		b, _ := newBootstrap(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx) }()
		time.Sleep(time.Second)
		synctest.Wait()
		for _, p := range b.Parts() {
			if !p.Made() {
				t.Errorf("%s is not made", p.Name)
			}
		}
		services := corev1.Resource("services")
		if _, _, err := s[services].Delete(ctx, "default", "kubernetes", &metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		get[*corev1.Service](t, s, services, "default", "kubernetes")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// An authority that is renewed while the server runs reaches the servers behind it, and so does what somebody took
// away.
func TestAuthenticationIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := newStores(t)
		ca := "old"
		b := bootstrap.New(bootstrap.Config{Stores: s, Log: slog.New(slog.DiscardHandler),
			Authentication: func() (*bootstrap.Authentication, error) {
				return &bootstrap.Authentication{ClientCA: ca, RequestHeaderCA: "proxy",
					UIDHeaders: []string{"X-Remote-Uid"}}, nil
			}})
		ctx, cancel := context.WithCancel(t.Context())
		go b.Run(ctx) //nolint:errcheck // it ends with the context
		synctest.Wait()
		read := func() *corev1.ConfigMap {
			return get[*corev1.ConfigMap](t, s, corev1.Resource("configmaps"), "kube-system",
				"extension-apiserver-authentication")
		}
		m := read()
		if m.Data["client-ca-file"] != "old" || m.Data["requestheader-uid-headers"] != `["X-Remote-Uid"]` {
			t.Errorf("at first: %v", m.Data)
		}
		m.Data, ca = nil, "new"
		put(t, s, corev1.Resource("configmaps"), m)
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if m := read(); m.Data["client-ca-file"] != "new" || m.Data["requestheader-client-ca-file"] != "proxy" {
			t.Errorf("a minute later: %v", m.Data)
		}
		cancel()
		synctest.Wait()
	})
}

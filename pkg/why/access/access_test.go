package access

import (
	"strings"
	"testing"

	"bonsai/pkg/why"
	"bonsai/pkg/why/whytest"
)

const world = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: shop}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reads, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: web, namespace: shop}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: broken, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: gone}
subjects: [{kind: ServiceAccount, name: web}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: other-place, namespace: other}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "edit; rm -rf ~"}
subjects: [{kind: User, name: eve}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "edit; rm -rf ~"}
rules: [{apiGroups: ["", apps], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:all"}
rules: [{apiGroups: ["*"], resources: [pods, pods/log], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: narrow}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: keeper, namespace: shop}
rules: [{apiGroups: [""], resources: [configmaps, services], verbs: [get, list, watch]}]
`

func TestExplain(t *testing.T) {
	t.Parallel()
	const account = "system:serviceaccount:shop:web"
	for name, c := range map[string]struct {
		a    why.Access
		want []string
		not  []string
	}{
		"a verb that no rule has": {why.Access{User: account, Verb: "delete", Resource: "pods", Namespace: "shop"},
			[]string{"may not delete pods in namespace shop", "it allows get, list of pods, but not delete",
				"broken refers to the Role gone, which does not exist",
				"kubectl create role pods-delete -n shop --verb=delete --resource=pods && kubectl create rolebinding",
				"--serviceaccount=shop:web", "'edit; rm -rf ~'"}, []string{"system:all", "=edit; rm"}},
		"a role of the namespace before one of the cluster": {
			why.Access{User: account, Verb: "get", Resource: "configmaps", Namespace: "shop"},
			[]string{"--role=keeper"}, []string{"narrow"}},
		"a subresource": {why.Access{User: account, Verb: "get", Resource: "pods", Subresource: "log",
			Namespace: "shop"},
			[]string{"it names pods, and not the subresource pods/log", "--resource=pods/log"}, nil},
		"another namespace": {why.Access{User: account, Verb: "list", Resource: "pods", Namespace: "other"},
			[]string{"would allow it, but only in namespace shop; it is asked for in namespace other"}, nil},
		"the whole cluster": {why.Access{User: account, Verb: "list", Resource: "pods"},
			[]string{"it is asked for in all namespaces", "kubectl create clusterrolebinding"}, nil},
		"nobody": {why.Access{User: "mallory", Verb: "get", Resource: "pods", Namespace: "shop"},
			[]string{"No binding names mallory", "--user=mallory"}, nil},
		"a path": {why.Access{User: "eve", Verb: "get", Path: "/metrics"},
			[]string{"may not get the path /metrics", "--non-resource-url=/metrics"}, nil},
		"an account of another namespace": {
			why.Access{User: "system:serviceaccount:tools:web", Verb: "get", Resource: "pods", Namespace: "shop"},
			[]string{"gives rights to the ServiceAccount web of namespace shop, which is somebody else"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := whytest.Parse(t, world)
			s.Can = func(why.Access) (bool, string) { return false, "" }
			a, err := Explain(t.Context(), why.NewCase(why.NewWorld(s), whytest.Now, why.Explainers{}), c.a)
			if err != nil {
				t.Fatal(err)
			}
			text := said(a)
			for _, w := range c.want {
				if !strings.Contains(text, w) {
					t.Errorf("%q is not in\n%s", w, text)
				}
			}
			for _, n := range c.not {
				if strings.Contains(text, n) {
					t.Errorf("%q is in\n%s", n, text)
				}
			}
		})
	}
}

// TestAllowed: the authorizers decide, not the roles.
func TestAllowed(t *testing.T) {
	t.Parallel()
	s := whytest.Parse(t, world)
	s.Can = func(why.Access) (bool, string) { return true, "RBAC: allowed by a binding" }
	a, err := Explain(t.Context(), why.NewCase(why.NewWorld(s), whytest.Now, why.Explainers{}),
		why.Access{User: "mallory", Verb: "get", Resource: "secrets"})
	if err != nil || !a.Well || !strings.Contains(said(a), "allowed by a binding") {
		t.Error(said(a), err)
	}
}

// said is all of an answer as lines.
func said(a why.Answer) string {
	lines := []string{a.State}
	var walk func([]why.Cause)
	walk = func(causes []why.Cause) {
		for _, c := range causes {
			lines = append(lines, c.Text)
			for _, f := range c.Fixes {
				lines = append(lines, f.Text+" "+string(f.Command))
			}
			walk(c.Because)
		}
	}
	walk(a.Causes)
	return strings.Join(lines, "\n")
}

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/apiserver/bootstrap"
)

// rolesSection has the roles and bindings of an empty cluster, at the gates' defaults.
func rolesSection(current, next release) (section, error) {
	s := section{title: "Default roles", against: "our policy (pkg/apiserver/bootstrap/policy.txt)"}
	policy, err := bootstrap.DefaultPolicy()
	if err != nil {
		return s, err
	}
	ours := facts{}
	for _, r := range policy.ClusterRoles {
		ours.clusterRole(r)
	}
	for _, r := range policy.Roles {
		ours.role(r)
	}
	for _, b := range policy.ClusterRoleBindings {
		ours.clusterRoleBinding(b)
	}
	for _, b := range policy.RoleBindings {
		ours.roleBinding(b)
	}
	old, err := rolesOf(current)
	if err != nil {
		return s, err
	}
	all, err := rolesOf(next)
	if err != nil {
		return s, err
	}
	found, known := compare(ours, old, all)
	s.known = known
	s.tasks = words{"Add", "Change", "Remove"}.lines(fold(found, " / "), nil)
	return s, nil
}

// rolesOf are the default roles and bindings of a release.
func rolesOf(r release) (facts, error) {
	const dir = "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata/"
	f := facts{}
	for _, file := range []string{"cluster-roles", "cluster-role-bindings", "controller-roles",
		"controller-role-bindings", "namespace-roles", "namespace-role-bindings"} {
		if err := r.add(f, dir+file+".yaml", facts.rbac); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// rbac adds the objects of a List.
func (f facts) rbac(data []byte) error {
	var list struct{ Items []json.RawMessage }
	if err := yaml.Unmarshal(data, &list); err != nil {
		return err
	}
	for _, raw := range list.Items {
		var kind struct{ Kind string }
		if err := json.Unmarshal(raw, &kind); err != nil {
			return err
		}
		var err error
		switch kind.Kind {
		case "ClusterRole":
			err = decoded(raw, f.clusterRole)
		case "Role":
			err = decoded(raw, f.role)
		case "ClusterRoleBinding":
			err = decoded(raw, f.clusterRoleBinding)
		case "RoleBinding":
			err = decoded(raw, f.roleBinding)
		default:
			err = fmt.Errorf("an item of kind %q", kind.Kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func decoded[T any](raw []byte, add func(*T)) error {
	var obj T
	if err := json.Unmarshal(raw, &obj); err != nil {
		return err
	}
	add(&obj)
	return nil
}

// clusterRole adds a ClusterRole. The rules of an aggregated one are those of others: files leave them out.
func (f facts) clusterRole(r *rbacv1.ClusterRole) {
	name := "ClusterRole " + r.Name
	text := labels(r.Labels)
	if r.AggregationRule != nil {
		for _, s := range r.AggregationRule.ClusterRoleSelectors {
			text = append(text, "aggregates "+strings.Join(labels(s.MatchLabels), " "))
		}
		f[name] = strings.Join(text, " ")
		return
	}
	f[name] = strings.Join(text, " ")
	f.rules(name, r.Rules)
}

func (f facts) role(r *rbacv1.Role) {
	name := "Role " + r.Namespace + "/" + r.Name
	f[name] = strings.Join(labels(r.Labels), " ")
	f.rules(name, r.Rules)
}

func (f facts) clusterRoleBinding(b *rbacv1.ClusterRoleBinding) {
	f.binding("ClusterRoleBinding "+b.Name, b.RoleRef, b.Subjects)
}

func (f facts) roleBinding(b *rbacv1.RoleBinding) {
	f.binding("RoleBinding "+b.Namespace+"/"+b.Name, b.RoleRef, b.Subjects)
}

func (f facts) binding(name string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
	f[name] = ref.Kind + " " + ref.Name
	for _, s := range subjects {
		f[name+" / "+strings.TrimSpace(s.Kind+" "+strings.TrimPrefix(s.Namespace+"/"+s.Name, "/"))] = ""
	}
}

// rules adds what a role allows, by resource: verbs. How rules are put together does not matter.
func (f facts) rules(name string, rules []rbacv1.PolicyRule) {
	verbs := map[string][]string{}
	for _, r := range rules {
		for _, url := range r.NonResourceURLs {
			verbs["url "+url] = append(verbs["url "+url], r.Verbs...)
		}
		for _, group := range r.APIGroups {
			if group == "" {
				group = "core"
			}
			for _, resource := range r.Resources {
				key := group + " " + resource
				if len(r.ResourceNames) == 0 {
					verbs[key] = append(verbs[key], r.Verbs...)
				}
				for _, only := range r.ResourceNames {
					verbs[key+" "+only] = append(verbs[key+" "+only], r.Verbs...)
				}
			}
		}
	}
	for key, allowed := range verbs {
		slices.Sort(allowed)
		f[name+" / "+key] = strings.Join(slices.Compact(allowed), ",")
	}
}

// labels are labels in order, without the one that all default roles have.
func labels(m map[string]string) (out []string) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if key != "kubernetes.io/bootstrapping" {
			out = append(out, key+"="+m[key])
		}
	}
	return out
}

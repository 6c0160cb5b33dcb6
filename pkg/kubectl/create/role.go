package create

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ruleFlags are what a role allows.
type ruleFlags struct{ verbs, resources, names []string }

func (r *ruleFlags) add(set *pflag.FlagSet) {
	set.StringSliceVar(&r.verbs, "verb", nil, "Verb that applies to the resources contained in the rule")
	set.StringSliceVar(&r.resources, "resource", nil, "Resource that the rule applies to")
	set.StringArrayVar(&r.names, "resource-name", nil,
		"Resource in the white list that the rule applies to, repeat this flag for multiple items")
}

// standardVerbs are the verbs of all resources; * stands for all verbs.
var standardVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*"}

// specialVerbs are verbs that exist only for the resources named. Authorizers ask for them beside the standard ones:
// bind and escalate, for example, allow to grant permissions that one does not hold.
var specialVerbs = map[string][]schema.GroupResource{
	"bind":     {{Group: rbacv1.GroupName, Resource: "roles"}, {Group: rbacv1.GroupName, Resource: "clusterroles"}},
	"escalate": {{Group: rbacv1.GroupName, Resource: "roles"}, {Group: rbacv1.GroupName, Resource: "clusterroles"}},
	"impersonate": {{Resource: "users"}, {Resource: "serviceaccounts"}, {Resource: "groups"},
		{Group: "authentication.k8s.io", Resource: "userextras"}},
	"use": {{Group: "policy", Resource: "podsecuritypolicies"},
		{Group: "extensions", Resource: "podsecuritypolicies"}},
}

// verbsOf removes repeated verbs; with * nothing else remains.
func verbsOf(verbs []string) []string {
	if slices.Contains(verbs, "*") {
		return []string{"*"}
	}
	var out []string
	for _, v := range verbs {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// rules builds one rule for each API group of the resources, sorted by group.
func (r *ruleFlags) rules(g *generator, verbs []string) ([]rbacv1.PolicyRule, error) {
	groups := map[string][]string{}
	for _, arg := range r.resources {
		gr, sub, err := resolve(g, arg)
		if err != nil {
			return nil, err
		}
		if err := checkVerbs(g, verbs, gr); err != nil {
			return nil, err
		}
		name := gr.Resource
		if sub != "" {
			name += "/" + sub
		}
		if !slices.Contains(groups[gr.Group], name) {
			groups[gr.Group] = append(groups[gr.Group], name)
		}
	}
	var out []rbacv1.PolicyRule
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: groups[group],
			ResourceNames: r.names})
	}
	return out, nil
}

// resolve finds the resource of "pods", "deployments.apps" or "pods/log".
func resolve(g *generator, arg string) (gr schema.GroupResource, sub string, err error) {
	name, sub, _ := strings.Cut(arg, "/")
	if name == "*" {
		return schema.GroupResource{Resource: "*"}, sub, nil
	}
	gr = schema.ParseGroupResource(name)
	mapper, err := g.factory.Mapper()
	if err != nil {
		return gr, "", err
	}
	gvr, err := mapper.ResourceFor(gr.WithVersion(""))
	if meta.IsNoMatchError(err) {
		msg := fmt.Errorf("the server doesn't have a resource type %q", gr.Resource)
		if gr.Group != "" {
			msg = fmt.Errorf("the server doesn't have a resource type %q in group %q", gr.Resource, gr.Group)
		}
		return gr, "", g.Said(msg)
	}
	return gvr.GroupResource(), sub, err
}

// checkVerbs warns about unknown verbs, which an extension may define, and refuses special verbs of other resources: a
// rule with them would never match.
func checkVerbs(g *generator, verbs []string, gr schema.GroupResource) error {
	for _, v := range verbs {
		if slices.Contains(standardVerbs, v) {
			continue
		}
		special, ok := specialVerbs[v]
		if !ok {
			fmt.Fprintf(g.ErrOut, "Warning: '%s' is not a standard resource verb\n", v)
			continue
		}
		if !slices.Contains(special, gr) {
			return fmt.Errorf("can not perform '%s' on '%s' in group '%s'", v, gr.Resource, gr.Group)
		}
	}
	return nil
}

func role() kind {
	var r ruleFlags
	return kind{
		use:     "role NAME --verb=verb --resource=resource.group/subresource [--resource-name=resourcename] [--dry-run=server|client|none]",
		short:   "Create a role with single rule",
		long:    "Create a role with single rule.",
		example: "  # Create a role named \"pod-reader\" that allows user to perform \"get\", \"watch\" and \"list\" on pods\n  kubectl create role pod-reader --verb=get --verb=list --verb=watch --resource=pods",
		flags:   r.add,
		build: func(_ context.Context, g *generator) (runtime.Object, error) {
			verbs := verbsOf(r.verbs)
			if len(verbs) == 0 {
				return nil, errors.New("at least one verb must be specified")
			}
			if len(r.resources) == 0 {
				return nil, errors.New("at least one resource must be specified")
			}
			rules, err := r.rules(g, verbs)
			if err != nil {
				return nil, err
			}
			return &rbacv1.Role{TypeMeta: rbac("Role"), ObjectMeta: g.meta(), Rules: rules}, nil
		},
	}
}

func clusterRole() kind {
	var r ruleFlags
	var urls []string
	var aggregate string
	return kind{
		use:     "clusterrole NAME --verb=verb --resource=resource.group [--resource-name=resourcename] [--dry-run=server|client|none]",
		example: "  # Allow to read pods\n  kubectl create clusterrole pod-reader --verb=get,list,watch --resource=pods\n\n  # Allow to read one of them\n  kubectl create clusterrole one-pod --verb=get --resource=pods --resource-name=web\n\n  # Allow to read a path\n  kubectl create clusterrole logs --verb=get --non-resource-url=/logs/*\n\n  # Gather the rules of other cluster roles by label\n  kubectl create clusterrole monitoring --aggregation-rule=example.com/monitoring=true",
		short:   "Create a cluster role",
		long:    "Create a cluster role.",
		cluster: true,
		flags: func(set *pflag.FlagSet) {
			r.add(set)
			set.StringSliceVar(&urls, "non-resource-url", nil, "A partial url that user should have access to.")
			set.StringVar(&aggregate, "aggregation-rule", "",
				"An aggregation label selector for combining ClusterRoles.")
		},
		build: func(_ context.Context, g *generator) (runtime.Object, error) {
			out := &rbacv1.ClusterRole{TypeMeta: rbac("ClusterRole"), ObjectMeta: g.meta()}
			verbs := verbsOf(r.verbs)
			if aggregate != "" {
				if len(verbs)+len(r.resources)+len(r.names)+len(urls) > 0 {
					return nil, errors.New("aggregation rule must be specified without nonResourceURLs, verbs, resources or resourceNames")
				}
				s, err := metav1.ParseToLabelSelector(aggregate)
				if err != nil {
					return nil, err
				}
				out.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{*s}}
				return out, nil
			}
			if err := checkClusterRole(verbs, r, urls); err != nil {
				return nil, err
			}
			var err error
			if out.Rules, err = r.rules(g, verbs); err != nil {
				return nil, err
			}
			if len(urls) > 0 {
				out.Rules = append(out.Rules, rbacv1.PolicyRule{Verbs: verbs, NonResourceURLs: urls})
			}
			return out, nil
		},
	}
}

// urlVerbs are the verbs for paths that are not resources: HTTP methods in lower case.
var urlVerbs = []string{"*", "get", "post", "put", "delete", "patch", "head", "options"}

func checkClusterRole(verbs []string, r ruleFlags, urls []string) error {
	switch {
	case len(verbs) == 0:
		return errors.New("at least one verb must be specified")
	case len(r.resources) == 0 && len(urls) == 0:
		return errors.New("one of resource or nonResourceURL must be specified")
	}
	for _, u := range urls {
		if u == "*" {
			continue
		}
		if !strings.HasPrefix(u, "/") {
			return errors.New("nonResourceURL should start with /")
		}
		if i := strings.Index(u, "*"); i >= 0 && i != len(u)-1 {
			return errors.New("nonResourceURL only supports wildcard matches when '*' is at the end")
		}
		for _, v := range verbs {
			if !slices.Contains(urlVerbs, v) {
				return fmt.Errorf("invalid verb: '%s' for nonResourceURL", v)
			}
		}
	}
	return nil
}

// Package clusterrole fills aggregated ClusterRoles: their rules are those of all ClusterRoles that their selectors
// match.
package clusterrole

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/rbac"
	"bonsai/pkg/controller"
)

// Controller reconciles ClusterRoles that have an aggregation rule.
type Controller struct {
	roles  *controller.Informer[*rbacv1.ClusterRole]
	writes *apiclient.Resource[*rbacv1.ClusterRole]
	loop   *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{roles: controller.InformerFor(d.Informers, rbac.ClusterRoles), writes: rbac.ClusterRoles(d.Client)}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "ClusterRoleAggregator", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics},
		c.Reconcile)
	return c, controller.Watch(c.loop, c.roles, controller.All(func(*rbacv1.ClusterRole) {
		for _, r := range c.roles.List() {
			if r.AggregationRule != nil {
				c.loop.Add(controller.KeyOf(r))
			}
		}
	}))
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile writes the collected rules if they changed.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	role, ok := c.roles.Get(key)
	if !ok || role.AggregationRule == nil {
		return controller.Result{}, nil
	}
	rules, err := collect(role, c.roles.List())
	if err != nil {
		return controller.Result{},
			controller.TerminalError(fmt.Errorf("aggregating ClusterRole %s: %w", key.Name, err))
	}
	if equality.Semantic.DeepEqual(role.Rules, rules) {
		return controller.Result{}, nil
	}
	role = role.DeepCopy()
	role.Rules = rules
	if _, err := c.writes.Update(ctx, role); err != nil {
		return controller.Result{}, fmt.Errorf("aggregating ClusterRole %s: %w", key.Name, err)
	}
	return controller.Result{}, nil
}

// collect returns the rules of all roles but role itself that one of its selectors matches, each once, in the order of
// the roles' names within each selector.
func collect(role *rbacv1.ClusterRole, all []*rbacv1.ClusterRole) ([]rbacv1.PolicyRule, error) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b *rbacv1.ClusterRole) int { return strings.Compare(a.Name, b.Name) })
	var out []rbacv1.PolicyRule
	var errs []error
	for i := range role.AggregationRule.ClusterRoleSelectors {
		sel, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, r := range all {
			if r.Name == role.Name || !sel.Matches(labels.Set(r.Labels)) {
				continue
			}
			for _, rule := range r.Rules {
				if !slices.ContainsFunc(out, func(o rbacv1.PolicyRule) bool {
					return equality.Semantic.DeepEqual(o, rule)
				}) {
					out = append(out, rule)
				}
			}
		}
	}
	return out, errors.Join(errs...)
}

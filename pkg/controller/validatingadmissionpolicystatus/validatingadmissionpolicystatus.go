// Package validatingadmissionpolicystatus tells in the status of ValidatingAdmissionPolicies what is wrong with their
// expressions for the kinds that they are about, as far as these are served.
package validatingadmissionpolicystatus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"bonsai/api/admissionregistration/typecheck"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/admissionregistration"
	"bonsai/pkg/controller"
)

// manager is the controller's name as field manager, as upstream.
const manager = "validatingadmissionpolicy-status"

// Controller reconciles ValidatingAdmissionPolicies.
type Controller struct {
	policies *controller.Informer[*admissionregistrationv1.ValidatingAdmissionPolicy]
	writes   *apiclient.Resource[*admissionregistrationv1.ValidatingAdmissionPolicy]
	loop     *controller.Loop[controller.Key]
	server   *server
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{policies: controller.InformerFor(d.Informers, admissionregistration.ValidatingAdmissionPolicies),
		writes: admissionregistration.ValidatingAdmissionPolicies(d.Client), server: newServer(d.Client, d.Now)}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: manager, Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	return c, controller.Watch(c.loop, c.policies,
		controller.All(func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			c.loop.Add(controller.KeyOf(p))
		}))
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// forget is a key that names no policy: its reconcile drops the schemas that no policy has needed lately.
var forget = controller.Key{}

// Reconcile checks a policy that was not checked as it is.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	if key == forget {
		c.server.forget()
		return controller.Result{}, nil
	}
	p, ok := c.policies.Get(key)
	if !ok || observed(p) {
		return controller.Result{}, nil
	}
	defer c.loop.AddAfter(forget, 2*keep)
	var warnings []admissionregistrationv1.ExpressionWarning
	err := c.server.ask(ctx, func(s typecheck.Served) (err error) {
		warnings, err = typecheck.Check(p, s)
		return err
	})
	if err != nil {
		return controller.Result{}, fmt.Errorf("checking the types of ValidatingAdmissionPolicy %s: %w", key.Name, err)
	}
	doc, err := status(p, warnings)
	if err == nil {
		_, err = c.writes.Apply(ctx, "", p.Name, manager, doc, "status")
	}
	if err != nil {
		return controller.Result{}, fmt.Errorf("writing the status of ValidatingAdmissionPolicy %s: %w", key.Name, err)
	}
	return controller.Result{}, nil
}

// observed reports whether a policy was checked as it is.
func observed(p *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
	return p.Generation <= p.Status.ObservedGeneration
}

// status is the apply configuration of a policy's status.
func status(p *admissionregistrationv1.ValidatingAdmissionPolicy,
	warnings []admissionregistrationv1.ExpressionWarning) ([]byte, error) {
	checked := map[string]any{}
	if len(warnings) > 0 {
		checked["expressionWarnings"] = warnings
	}
	return json.Marshal(map[string]any{
		"apiVersion": admissionregistrationv1.SchemeGroupVersion.String(), "kind": "ValidatingAdmissionPolicy",
		"metadata": map[string]any{"name": p.Name},
		"status":   map[string]any{"observedGeneration": p.Generation, "typeChecking": checked},
	})
}

// keep is how long what the server serves is taken to be as it was when it was read.
const keep = 10 * time.Second

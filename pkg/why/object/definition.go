package object

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"bonsai/pkg/why"
)

// definitions explain a kind that is not served although a definition of it exists.
func definitions(ctx context.Context, c *why.Case, o why.Object) (causes []why.Cause) {
	list, _ := why.List[apiextensionsv1.CustomResourceDefinition](ctx, c.World, "", nil)
	for _, d := range list {
		if d.Spec.Names.Kind != o.Kind || o.Group != "" && d.Spec.Group != o.Group {
			continue
		}
		if a, err := Definition(ctx, c, why.ObjectOf(apiextensionsv1.GroupName, "CustomResourceDefinition",
			d)); err == nil {
			causes = append(causes, a.Causes...)
		}
	}
	return causes
}

// Definition explains a CustomResourceDefinition.
func Definition(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	d, known := why.Get[apiextensionsv1.CustomResourceDefinition](ctx, c.World, "", o.Name)
	if d == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := why.ObjectOf(apiextensionsv1.GroupName, "CustomResourceDefinition", d)
	a := why.Answer{Subject: self}
	if d.DeletionTimestamp != nil {
		a.State = fmt.Sprintf("%s has been terminating for %s.", self, why.Span(c.Now.Sub(d.DeletionTimestamp.Time)))
		causes, err := why.Finalizers(ctx, c, self, d)
		a.Causes = append(instances(ctx, c, d), causes...)
		return a, err
	}
	for _, cond := range d.Status.Conditions {
		evidence := why.Condition(self, string(cond.Type), string(cond.Status), cond.Reason, cond.Message,
			cond.LastTransitionTime)
		wrong := cond.Status == apiextensionsv1.ConditionFalse && (cond.Type == apiextensionsv1.NamesAccepted ||
			cond.Type == apiextensionsv1.Established) || cond.Status == apiextensionsv1.ConditionTrue &&
			cond.Type == apiextensionsv1.NonStructuralSchema
		if !wrong {
			continue
		}
		cause := why.Cause{Code: string(cond.Type), Text: fmt.Sprintf("The definition is not accepted (%s): %s.",
			cond.Reason,
			why.Quote(cond.Message)), Evidence: []why.Evidence{evidence}}
		if cond.Type == apiextensionsv1.NamesAccepted {
			cause.Code, cause.Text = "NamesConflict", fmt.Sprintf("Another definition has one of its names: %s.",
				why.Quote(cond.Message))
			a.Causes = []why.Cause{cause}
			continue
		}
		if len(a.Causes) == 0 { // names that are not accepted explain why it is not established
			a.Causes = append(a.Causes, cause)
		}
	}
	if len(d.Status.Conditions) == 0 {
		a.Causes = append(a.Causes, why.Cause{Code: "NotObserved", Text: "The API server has not looked at it yet.",
			Evidence: []why.Evidence{why.See(self, ".status.conditions", "empty")}})
	}
	if a.Well = len(a.Causes) == 0; a.Well {
		a.State = fmt.Sprintf("%s is established: %s are served.", self, d.Spec.Names.Plural)
	} else {
		a.State = fmt.Sprintf("%s is not served as it should be.", self)
	}
	return a, nil
}

// instances explain a definition that goes when its last object has gone.
func instances(ctx context.Context, c *why.Case, d *apiextensionsv1.CustomResourceDefinition) (causes []why.Cause) {
	r, served := c.Served(d.Spec.Group, d.Spec.Names.Kind)
	if !served {
		return nil
	}
	items, _ := c.All(ctx, r, "")
	var left []why.Object
	seen := map[why.Object]why.Evidence{}
	for i := range items {
		if u := &items[i]; u.GetDeletionTimestamp() != nil {
			o := why.ObjectOf(d.Spec.Group, d.Spec.Names.Kind, u)
			left, seen[o] = append(left, o), why.SeeDeleted(o, u)
		}
	}
	groups, err := why.Alike(ctx, c, left)
	if err != nil {
		return nil
	}
	for _, g := range groups {
		causes = append(causes, why.Cause{Code: "ObjectsRemain", Text: g.Remaining(d.Spec.Names.Plural),
			Because: g.Causes, Evidence: []why.Evidence{seen[g.Objects[0]]}})
	}
	return causes
}

// APIService explains an APIService.
func APIService(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	s, known := why.Get[apiregistrationv1.APIService](ctx, c.World, "", o.Name)
	if s == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := why.ObjectOf(apiregistrationv1.GroupName, "APIService", s)
	a := why.Answer{Subject: self, State: fmt.Sprintf("%s is available.", self), Well: true}
	for _, cond := range s.Status.Conditions {
		if cond.Type != apiregistrationv1.Available || cond.Status == apiregistrationv1.ConditionTrue {
			continue
		}
		a.Well = false
		a.State = fmt.Sprintf("%s is not available: discovery lacks its kinds, and namespaces cannot be emptied of "+
			"them.", self)
		cause := why.Cause{Code: "APIServiceDown", Text: fmt.Sprintf("The API server does not reach it (%s): %s.",
			cond.Reason,
			why.Quote(cond.Message)), Evidence: []why.Evidence{why.Condition(self, string(cond.Type),
			string(cond.Status),
			cond.Reason, cond.Message, cond.LastTransitionTime)}}
		if ref := s.Spec.Service; ref != nil {
			cause.Because, _ = c.Causes(ctx, why.Object{Kind: "Service", Namespace: ref.Namespace, Name: ref.Name})
		}
		cause.Fixes = []why.Fix{{Text: "Bring its server back. If it is gone for good, remove the APIService.",
			Command: "kubectl delete apiservice " + why.Word(s.Name)}}
		a.Causes = []why.Cause{cause}
	}
	return a, nil
}

package customresource

import (
	"context"
	"errors"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// inOrder returns those of names that are there, the oldest first: who came first gets a name that two want.
func inOrder(names map[string]bool, view map[string]*definition) []string {
	var out []string
	for name := range names {
		if view[name] != nil {
			out = append(out, name)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		if c := view[a].crd.CreationTimestamp.Compare(view[b].crd.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	return out
}

// settle writes the conditions and names that d is to have, and puts what became of it into view.
func (c *Controller) settle(ctx context.Context, d *definition, view map[string]*definition) error {
	name := d.crd.Name
	var others []v1.CustomResourceDefinitionNames
	for other, o := range view {
		if other != name && o.group() == d.group() {
			others = append(others, o.crd.Status.AcceptedNames)
		}
	}
	serves := c.serves(d)
	now := metav1.NewTime(c.Now()).Rfc3339Copy()
	wanted := d.crd.DeepCopy()
	decide(wanted, d.nonStructural, others, serves, now)
	if apiequality.Semantic.DeepEqual(wanted.Status, d.crd.Status) {
		return nil
	}
	store, err := c.definitions()
	if err != nil {
		return err
	}
	_, err = store.Update(ctx, "", name, "status", func(obj runtime.Object) (runtime.Object, error) {
		crd, ok := obj.(*v1.CustomResourceDefinition)
		if !ok || crd.UID != d.crd.UID || crd.DeletionTimestamp != nil {
			return nil, errSettled // the event that tells so is on its way
		}
		before := crd.Status.DeepCopy()
		decide(crd, d.nonStructural, others, serves && crd.Generation == d.crd.Generation, now)
		if apiequality.Semantic.DeepEqual(before, &crd.Status) {
			return nil, errSettled
		}
		return crd, nil
	}, &metav1.UpdateOptions{})
	if errors.Is(err, errSettled) || apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil { // for the next one of its group; the follower brings the whole
		kept := *d
		kept.crd = wanted
		view[name] = &kept
	}
	return err
}

// serves reports whether this server serves d as it is, which may be nothing.
func (c *Controller) serves(d *definition) bool {
	r := c.served[d.resource()]
	return r != nil && r.of.mark == d.mark || c.idle[d.crd.Name] == d.mark
}

// Package conflict explains a server-side apply that is refused because other field managers own fields.
package conflict

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/why"
)

// owner is who the API server says owns a field: `conflict with "kubectl-edit" using apps/v1 at 2026-01-02T12:00:00Z`.
var owner = regexp.MustCompile(`conflict with "([^"]*)"(?: with subresource "([^"]*)")?`)

// Explain answers whether an object can be applied as a field manager, by a dry run, and who owns the fields that are
// in
// the way.
func Explain(ctx context.Context, c *why.Case, u *unstructured.Unstructured, manager string) (why.Answer, error) {
	gvk := u.GroupVersionKind()
	self := why.ObjectOf(gvk.Group, gvk.Kind, u)
	a := why.Answer{Subject: self}
	err := c.Apply(ctx, u, manager)
	if err == nil {
		a.State, a.Well = fmt.Sprintf("%s can be applied by %q without a conflict.", self, manager), true
		return c.Finish(a), nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsConflict(err) || status.Status().Details == nil {
		a.State = fmt.Sprintf("%s cannot be applied by %q.", self, manager)
		live, _ := c.ByKind(ctx, gvk.Group, gvk.Kind, u.GetNamespace(), u.GetName())
		a.Causes = []why.Cause{refused(ctx, c, self, u, live, err)}
		return c.Finish(a), nil
	}
	live, _ := c.ByKind(ctx, gvk.Group, gvk.Kind, u.GetNamespace(), u.GetName())
	a.State = fmt.Sprintf("%s cannot be applied by %q: others own fields that it would change.", self, manager)
	type conflict struct {
		manager string
		fields  []string
	}
	var found []conflict
	for _, cause := range status.Status().Details.Causes {
		m := owner.FindStringSubmatch(cause.Message)
		if cause.Type != metav1.CauseTypeFieldManagerConflict || m == nil {
			continue
		}
		i := slices.IndexFunc(found, func(f conflict) bool { return f.manager == m[1] })
		if i < 0 {
			found = append(found, conflict{manager: m[1]})
			i = len(found) - 1
		}
		found[i].fields = append(found[i].fields, cause.Field)
	}
	for _, f := range found {
		cause := why.Cause{Code: "FieldOwnedByOther",
			Text: fmt.Sprintf("The field manager %q owns %s%s.", f.manager, why.And(f.fields), last(c, live,
				f.manager))}
		for _, field := range f.fields {
			cause.Evidence = append(cause.Evidence, why.See(self, field, value(live, field)))
		}
		cause.Fixes = []why.Fix{
			{Text: fmt.Sprintf("Leave the fields to %s: remove them from the file.", f.manager)},
			{Text: "Take them over; the other manager may set them again.",
				Command: why.Command("kubectl apply --server-side --force-conflicts --field-manager=%s -f FILE",
					manager)}}
		a.Causes = append(a.Causes, cause)
	}
	return c.Finish(a), nil
}

// last says when a manager last wrote the object, and how.
func last(c *why.Case, live *unstructured.Unstructured, manager string) string {
	if live == nil {
		return ""
	}
	for _, e := range live.GetManagedFields() {
		if e.Manager == manager && e.Time != nil {
			return fmt.Sprintf(", which it last wrote %s ago (%s)", why.Span(c.Now.Sub(e.Time.Time)), e.Operation)
		}
	}
	return ""
}

// value returns what a field has now, if its path goes through maps alone: .spec.replicas.
func value(live *unstructured.Unstructured, path string) string {
	if live == nil || strings.ContainsAny(path, "[]") {
		return ""
	}
	if gvk := live.GroupVersionKind(); gvk.Group == "" && gvk.Kind == "Secret" {
		return "" // answers are shown to others
	}
	v, found, err := unstructured.NestedFieldNoCopy(live.Object, strings.Split(strings.TrimPrefix(path, "."), ".")...)
	if err != nil || !found {
		return ""
	}
	return fmt.Sprint(v)
}

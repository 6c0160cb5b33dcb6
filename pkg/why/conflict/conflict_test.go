package conflict

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/why"
	"bonsai/pkg/why/whytest"
)

const live = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: shop
  managedFields: [{manager: kubectl-edit, operation: Update, time: "2026-01-02T11:00:00Z"}]
data: {a: theirs}
`

// TestExplain: each manager that owns a field in the way is named once, with what it has there.
func TestExplain(t *testing.T) {
	t.Parallel()
	refused := apierrors.NewApplyConflict([]metav1.StatusCause{
		{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "kubectl-edit" using v1`,
			Field: ".data.a"},
		{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "kubectl-edit" using v1`,
			Field: ".data.b"},
		{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "robot" with subresource "status"`,
			Field: ".data.c"},
	}, "Apply failed with 3 conflicts")
	for name, c := range map[string]struct {
		refuse error
		well   bool
		want   []string
	}{
		"none": {nil, true, []string{"without a conflict"}},
		"two managers": {refused, false, []string{`The field manager "kubectl-edit" owns .data.a and .data.b, which it last wrote 1 hour ago (Update).`,
			`The field manager "robot" owns .data.c.`, "theirs", "--field-manager='my tool'"}},
		"another refusal": {apierrors.NewForbidden(corev1.Resource("configmaps"), "settings", nil), false,
			[]string{"cannot be applied"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := whytest.Parse(t, live)
			s.Refuse = func(*unstructured.Unstructured) error { return c.refuse }
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"name": "settings", "namespace": "shop"}}}
			a, err := Explain(t.Context(), why.NewCase(why.NewWorld(s), whytest.Now, why.Explainers{}), u, "my tool")
			if err != nil || a.Well != c.well {
				t.Fatalf("%+v, %v", a, err)
			}
			text := a.State
			for _, cause := range a.Causes {
				text += "\n" + cause.Text
				for _, e := range cause.Evidence {
					text += "\n" + e.Value
				}
				for _, f := range cause.Fixes {
					text += "\n" + string(f.Command)
				}
			}
			for _, w := range c.want {
				if !strings.Contains(text, w) {
					t.Errorf("%q is not in\n%s", w, text)
				}
			}
		})
	}
}

// TestImmutable: for a file that changes what cannot be changed, the answer names the field and the way to go on.
// Values of Secrets are not shown.
func TestImmutable(t *testing.T) {
	t.Parallel()
	const world = `
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: shop}, spec: {replicas: 1, serviceName: db, volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 1Gi}}}, status: {phase: Pending}}]}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: viewers, namespace: shop}, roleRef: {kind: Role, name: viewer}}
---
{apiVersion: v1, kind: Secret, metadata: {name: key, namespace: shop}, immutable: true, data: {a: b2xk}}`
	for name, c := range map[string]struct {
		file, message string
		want          []string
		never         string
	}{
		"a claim template": {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: shop}, spec: {replicas: 2, volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 2Gi}}}}]}}`,
			"spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden",
			[]string{".spec.volumeClaimTemplates[0].spec.resources.requests.storage (1Gi, and 2Gi in the file)",
				"--cascade=orphan", "change the claims"}, "serviceName"},
		"the role of a binding": {`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: viewers, namespace: shop}, roleRef: {kind: Role, name: editor}}`,
			"roleRef: Invalid value: {}: cannot change roleRef", []string{".roleRef.name (viewer, and editor in the file)",
				"kubectl delete"}, "cascade"},
		"a Secret": {`{apiVersion: v1, kind: Secret, metadata: {name: key, namespace: shop}, data: {a: bmV3}}`,
			"data: Forbidden: field is immutable when `immutable` is set", []string{".data.a"}, "bmV3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := whytest.Parse(t, world)
			file := whytest.Parse(t, c.file).Objects[0]
			s.Refuse = func(*unstructured.Unstructured) error {
				return apierrors.NewInvalid(file.GroupVersionKind().GroupKind(), file.GetName(), field.ErrorList{
					field.InternalError(nil, errors.New(c.message))})
			}
			a, err := Explain(t.Context(), why.NewCase(why.NewWorld(s), whytest.Now, why.Explainers{}), file, "ci")
			if err != nil || len(a.Causes) != 1 {
				t.Fatalf("%+v, %v", a, err)
			}
			text := a.Causes[0].Text
			for _, f := range a.Causes[0].Fixes {
				text += "\n" + f.Text + string(f.Command)
			}
			for _, e := range a.Causes[0].Evidence {
				text += "\n" + e.Field + e.Value
			}
			for _, w := range c.want {
				if !strings.Contains(text, w) {
					t.Errorf("%q is not in\n%s", w, text)
				}
			}
			if strings.Contains(text, c.never) {
				t.Errorf("%q is in\n%s", c.never, text)
			}
		})
	}
}

package conflict

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

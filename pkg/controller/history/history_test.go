package history

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestSnapshot(t *testing.T) {
	t.Parallel()
	template := &corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "a<b"}},
			TerminationGracePeriodSeconds: new(int64(1000660000))}}
	template.Labels = map[string]string{"app": "x"}
	got, err := Snapshot(template)
	if err != nil {
		t.Fatal(err)
	}
	// As kube-controller-manager 1.36 writes it.
	want := `{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"image":"a\u003cb","name":"c","resources":{}}],"terminationGracePeriodSeconds":1000660000}}}}`
	if string(got) != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}

func TestExpired(t *testing.T) {
	t.Parallel()
	var old []*appsv1.ControllerRevision
	for n := range 5 {
		r := &appsv1.ControllerRevision{Revision: int64(n + 1)}
		r.Name = fmt.Sprint(n + 1)
		old = append(old, r)
	}
	for _, c := range []struct {
		limit int
		used  string
		want  string
	}{{10, "", ""}, {5, "", ""}, {3, "", "1 2"}, {3, "1", "2 3"}, {0, "", "1 2 3 4 5"}, {0, "2 5", "1 3 4"},
		{4, "1 2 3 4 5", ""}} {
		var got []string
		for _, r := range expired(old, c.limit, func(r *appsv1.ControllerRevision) bool {
			return strings.Contains(c.used, r.Name)
		}) {
			got = append(got, r.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("limit %d, %q in use: %v go, want %q", c.limit, c.used, got, c.want)
		}
	}
	if len(old) != 5 || old[0] == nil {
		t.Error("the list was changed")
	}
}

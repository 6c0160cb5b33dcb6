package podsecurity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/pod-security-admission/api"

	"bonsai/pkg/apiserver/admission"
)

type pods []runtime.Object

func (p pods) List(context.Context, string, string) ([]runtime.Object, error) { return p, nil }

// privilegedPod is one of the controller owner; 0: of none.
func privilegedPod(name string, owner int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "c", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}}}
	if owner > 0 {
		p.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(fmt.Sprint(owner)), Controller: new(true)}}
	}
	return p
}

// stricterNamespace asks the plug-in about a namespace that begins to enforce the baseline, and returns the warnings.
func stricterNamespace(t *testing.T, existing pods, now func() time.Time) []string {
	t.Helper()
	ns := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{api.EnforceLevelLabel: "baseline"}}}
	var warnings []string
	a := &admission.Attributes{Operation: admission.Update,
		Resource: corev1.SchemeGroupVersion.WithResource("namespaces"), Object: ns, OldObject: &corev1.Namespace{},
		Warn: func(s string) { warnings = append(warnings, s) }}
	if err := New(Config{Pods: existing, Now: now}).Validator.Validate(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return warnings
}

// The pods that a namespace has are looked at for a bounded time and number, one of each controller first.
func TestBounds(t *testing.T) {
	t.Parallel()
	var many pods
	for i := range mostPods + 10 {
		many = append(many, privilegedPod(fmt.Sprintf("a%05d", i), 1))
	}
	many = append(many, privilegedPod("z", 2), privilegedPod("zz", 0))
	start := time.Unix(0, 0)
	got := stricterNamespace(t, many, func() time.Time { return start })
	want := []string{
		fmt.Sprintf("new PodSecurity enforce level only checked against the first %d of %d existing pods", mostPods,
			len(many)),
		`existing pods in namespace "ns" violate the new PodSecurity enforce level "baseline:latest"`,
		fmt.Sprintf("a00000 (and %d other pods): privileged", mostPods-1),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	asked := 0
	got = stricterNamespace(t, many, func() time.Time { // a second passes with the fourth question
		asked++
		if asked > 3 {
			return start.Add(2 * mostTime)
		}
		return start
	})
	if len(got) != 3 || !strings.Contains(got[0], "the first 2 of") ||
		got[2] != "a00000 (and 1 other pod): privileged" {
		t.Errorf("got %q", got)
	}
}

func TestOneOfEachFirst(t *testing.T) {
	t.Parallel()
	in := []*corev1.Pod{privilegedPod("a", 1), privilegedPod("b", 1), privilegedPod("c", 0), privilegedPod("d", 2),
		privilegedPod("e", 1), privilegedPod("f", 0)}
	var got []string
	for _, p := range oneOfEachFirst(in) {
		got = append(got, p.Name)
	}
	if strings.Join(got, "") != "acdfbe" {
		t.Error(got)
	}
}

func TestStricter(t *testing.T) {
	t.Parallel()
	latest, old := api.LatestVersion(), api.MajorMinorVersion(1, 25)
	for _, c := range []struct {
		now, before api.LevelVersion
		want        bool
	}{
		{api.LevelVersion{Level: api.LevelBaseline, Version: latest},
			api.LevelVersion{Level: api.LevelPrivileged, Version: latest}, true},
		{api.LevelVersion{Level: api.LevelRestricted, Version: latest},
			api.LevelVersion{Level: api.LevelBaseline, Version: latest}, true},
		{api.LevelVersion{Level: api.LevelBaseline, Version: latest},
			api.LevelVersion{Level: api.LevelRestricted, Version: latest}, false},
		{api.LevelVersion{Level: api.LevelBaseline, Version: latest},
			api.LevelVersion{Level: api.LevelBaseline, Version: latest}, false},
		{api.LevelVersion{Level: api.LevelBaseline, Version: old},
			api.LevelVersion{Level: api.LevelBaseline, Version: latest}, true},
		{api.LevelVersion{Level: api.LevelPrivileged, Version: old},
			api.LevelVersion{Level: api.LevelRestricted, Version: latest}, false},
	} {
		if got := stricter(c.now, c.before); got != c.want {
			t.Errorf("%v after %v: %v", c.now, c.before, got)
		}
	}
}

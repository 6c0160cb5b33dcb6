package rootca

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

const (
	bundle = "-----BEGIN CERTIFICATE-----\n"
	create = "POST /api/v1/namespaces/ns/configmaps"
	update = "PUT /api/v1/namespaces/ns/configmaps/kube-root-ca.crt"
)

func configMap(annotations map[string]string, data ...string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kube-root-ca.crt", UID: "u",
		ResourceVersion: "5", Annotations: annotations}, Data: map[string]string{}}
	for i := 0; i < len(data); i += 2 {
		m.Data[data[i]] = data[i+1]
	}
	return m
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	maps5 := schema.GroupResource{Resource: "configmaps"}
	forbidden := apierrors.NewForbidden(maps5, name, errors.New("no"))
	ending := apierrors.NewForbidden(maps5, name, errors.New("namespace is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	said := map[string]string{annotation: "said"}
	active := corev1.NamespaceActive
	for _, c := range []struct {
		name   string
		phase  corev1.NamespacePhase // "" for no namespace
		have   *corev1.ConfigMap
		answer error
		want   []string
		fails  bool
	}{
		{name: "missing", phase: active, want: []string{create}},
		{name: "as it should be", phase: active, have: configMap(said, dataKey, bundle)},
		{name: "another certificate", phase: active, have: configMap(said, dataKey, "old"), want: []string{update}},
		{name: "one key too many", phase: active, have: configMap(said, dataKey, bundle, "more", "x"),
			want: []string{update}},
		{name: "emptied", phase: active, have: configMap(said), want: []string{update}},
		{name: "not described", phase: active, have: configMap(map[string]string{"mine": "kept"}, dataKey, bundle),
			want: []string{update}},
		{name: "no annotations at all", phase: active, have: configMap(nil, dataKey, "old"), want: []string{update}},
		{name: "namespace gone"},
		{name: "namespace ends", phase: corev1.NamespaceTerminating},
		{name: "namespace began to end", phase: active, answer: ending, want: []string{create}},
		{name: "already there", phase: active, answer: apierrors.NewAlreadyExists(maps5, name), want: []string{create}},
		{name: "may not", phase: active, answer: forbidden, want: []string{create}, fails: true},
		{name: "changed meanwhile", phase: active, have: configMap(said),
			answer: apierrors.NewConflict(maps5, name, errors.New("changed")), want: []string{update}, fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
				return call.Object, c.answer
			}}
			ctl, err := New(fake.Deps(t, time.Unix(0, 0)), []byte(bundle))
			if err != nil {
				t.Fatal(err)
			}
			if c.phase != "" {
				controllertest.Put(t, ctl.namespaces,
					&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"},
						Status: corev1.NamespaceStatus{Phase: c.phase}})
			}
			before := c.have.DeepCopy()
			if c.have != nil {
				controllertest.Put(t, ctl.maps, c.have)
			}
			if _, err := ctl.Reconcile(t.Context(), controller.Key{Name: "ns"}); (err != nil) != c.fails {
				t.Errorf("error %v", err)
			}
			if got := fake.Names(); !slices.Equal(got, c.want) {
				t.Fatalf("calls %v, want %v", got, c.want)
			}
			for _, call := range fake.Calls() {
				check(t, call.Object.(*corev1.ConfigMap), before)
			}
			if before != nil && (!maps.Equal(c.have.Data, before.Data) ||
				!maps.Equal(c.have.Annotations, before.Annotations)) {
				t.Errorf("the object of the cache was changed to %+v", c.have)
			}
		})
	}
}

// check looks at a map that was written in the place of before, nil if there was none.
func check(t *testing.T, got, before *corev1.ConfigMap) {
	t.Helper()
	if got.Name != "kube-root-ca.crt" || got.Namespace != "ns" ||
		!maps.Equal(got.Data, map[string]string{"ca.crt": bundle}) ||
		got.Annotations["kubernetes.io/description"] != description {
		t.Errorf("wrote %+v", got)
	}
	if before == nil {
		return
	}
	if got.ResourceVersion != "5" || got.UID != "u" {
		t.Errorf("wrote over version %q of %q: what another writes meanwhile would be lost", got.ResourceVersion,
			got.UID)
	}
	for k, v := range before.Annotations {
		if k != annotation && got.Annotations[k] != v {
			t.Errorf("lost the annotation %s", k)
		}
	}
}

func TestDeletedNamespaceGetsNothing(t *testing.T) {
	t.Parallel()
	fake := &controllertest.Fake{}
	ctl, err := New(fake.Deps(t, time.Unix(0, 0)), nil)
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	controllertest.Put(t, ctl.namespaces,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", DeletionTimestamp: &now},
			Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}})
	if _, err := ctl.Reconcile(t.Context(), controller.Key{Name: "ns"}); err != nil || len(fake.Calls()) > 0 {
		t.Errorf("%v, %v", fake.Names(), err)
	}
}

package scale_test

import (
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/registry/registrytest"
	"bonsai/pkg/apiserver/registry/scale"
)

func TestEveryAdapter(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Name: "x", Namespace: "default"}
	sel := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: sel.MatchLabels},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	two := int32(2)
	objects := map[schema.GroupResource]runtime.Object{
		{Group: "apps", Resource: "deployments"}: &appsv1.Deployment{ObjectMeta: meta,
			Spec:   appsv1.DeploymentSpec{Replicas: &two, Selector: sel, Template: template},
			Status: appsv1.DeploymentStatus{Replicas: 1}},
		{Group: "apps", Resource: "replicasets"}: &appsv1.ReplicaSet{ObjectMeta: meta,
			Spec:   appsv1.ReplicaSetSpec{Replicas: &two, Selector: sel, Template: template},
			Status: appsv1.ReplicaSetStatus{Replicas: 1}},
		{Group: "apps", Resource: "statefulsets"}: &appsv1.StatefulSet{ObjectMeta: meta,
			Spec:   appsv1.StatefulSetSpec{Replicas: &two, Selector: sel, Template: template},
			Status: appsv1.StatefulSetStatus{Replicas: 1}},
		{Resource: "replicationcontrollers"}: &corev1.ReplicationController{ObjectMeta: meta,
			Spec:   corev1.ReplicationControllerSpec{Replicas: &two, Selector: sel.MatchLabels, Template: &template},
			Status: corev1.ReplicationControllerStatus{Replicas: 1}},
	}
	for gr := range scale.Adapters() {
		t.Run(gr.String(), func(t *testing.T) {
			t.Parallel()
			r, err := scale.New(registrytest.Stores{registrytest.Of(t, gr.String(), objects[gr])}, gr)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Get(t.Context(), "default", "x")
			if err != nil {
				t.Fatal(err)
			}
			s := got.(*autoscalingv1.Scale)
			if s.Spec.Replicas != 2 || s.Status.Replicas != 1 || s.Status.Selector != "app=x" || s.UID != "uid-x" ||
				s.Kind != "Scale" {
				t.Errorf("scale: %+v", s)
			}
			got, err = r.Update(t.Context(), "default", "x", set(5), &metav1.UpdateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if n := got.(*autoscalingv1.Scale).Spec.Replicas; n != 5 {
				t.Errorf("replicas after update: %d", n)
			}
		})
	}
	if _, err := scale.New(nil, schema.GroupResource{Resource: "pods"}); err == nil {
		t.Error("pods have a scale")
	}
}

// Who wrote an object in another version than the stored one keeps what it has when a Scale is written, and the writer
// of that is one of the version that it asked for.
func TestManagedFieldsOfVersions(t *testing.T) {
	t.Parallel()
	gr := schema.GroupResource{Group: "apps", Resource: "deployments"}
	a := scale.Adapters()[gr]
	a.Paths = map[string][]string{"v1": {"spec", "replicas"}, "v2": {"spec", "replicas"}}
	obj := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default",
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "first", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v2",
					FieldsType: "FieldsV1",
					FieldsV1:   &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:paused":{},"f:replicas":{}}}`)}}}},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}
	store := registrytest.Of(t, gr.String(), obj)
	r := scale.NewWith(registrytest.Stores{store}, gr, a)
	ctx := registry.WithCaller(t.Context(),
		registry.Caller{Kind: schema.GroupVersionKind{Group: "apps", Version: "v2", Kind: "Deployment"}})
	if _, err := r.Update(ctx, "default", "x",
		registry.PartChange{Validate: allow, Make: func(current runtime.Object) (runtime.Object, error) {
			s := current.(*autoscalingv1.Scale)
			s.Spec.Replicas = 5
			s.ManagedFields = []metav1.ManagedFieldsEntry{
				{Manager: "second", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "autoscaling/v1",
					Subresource: "scale", FieldsType: "FieldsV1",
					FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:replicas":{}}}`)}}}
			return s, nil
		}}, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	stored, err := store.Get(t.Context(), "default", "x")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range stored.(metav1.Object).GetManagedFields() {
		got[e.Manager] = e.APIVersion + " " + string(e.FieldsV1.Raw)
	}
	if want := map[string]string{"first": `apps/v2 {"f:spec":{"f:paused":{}}}`,
		"second": `apps/v2 {"f:spec":{"f:replicas":{}}}`}; !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func set(n int32) registry.PartChange {
	return registry.PartChange{Validate: allow, Make: func(o runtime.Object) (runtime.Object, error) {
		o.(*autoscalingv1.Scale).Spec.Replicas = n
		return o, nil
	}}
}

// allow is admission that has nothing against it.
func allow(_, _ runtime.Object) error { return nil }

func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*autoscalingv1.Scale)
		is     func(error) bool
	}{
		"below zero":   {func(s *autoscalingv1.Scale) { s.Spec.Replicas = -1 }, apierrors.IsInvalid},
		"old version":  {func(s *autoscalingv1.Scale) { s.ResourceVersion = "0" }, apierrors.IsConflict},
		"another UID":  {func(s *autoscalingv1.Scale) { s.UID = "other" }, apierrors.IsConflict},
		"another name": {func(s *autoscalingv1.Scale) { s.Name = "y" }, apierrors.IsBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gr := schema.GroupResource{Group: "apps", Resource: "deployments"}
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}
			r, err := scale.New(registrytest.Stores{registrytest.Of(t, gr.String(), d)}, gr)
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Update(t.Context(), "default", "x",
				registry.PartChange{Validate: func(_, _ runtime.Object) error {
					t.Error("admission judges what is refused")
					return nil
				},
					Make: func(o runtime.Object) (runtime.Object, error) {
						c.change(o.(*autoscalingv1.Scale))
						return o, nil
					}}, &metav1.UpdateOptions{})
			if !c.is(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

package registry_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
)

// everything is a field manager that gives all fields to the last writer.
type everything struct{}

func (everything) Update(_ context.Context, _ *resources.Row, by registry.Writer, _, obj runtime.Object) error {
	at := metav1.NewTime(by.At)
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes([]byte(`{"f:data":{}}`))
	obj.(metav1.Object).SetManagedFields(
		[]metav1.ManagedFieldsEntry{
			{Manager: by.Name, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: by.Version,
				Subresource: by.Subresource, Time: &at, FieldsType: "FieldsV1", FieldsV1: fields}})
	return nil
}

func (everything) Apply(context.Context, *resources.Row, registry.Writer, runtime.Object, *unstructured.Unstructured,
	bool) (runtime.Object, error) {
	return nil, nil
}

// admits changes objects.
type admits func(*corev1.ConfigMap)

func (f admits) Admit(_ context.Context, a *admission.Attributes) error {
	if f != nil && a.Object != nil {
		f(a.Object.(*corev1.ConfigMap))
	}
	return nil
}

func (admits) Validate(context.Context, *admission.Attributes) error { return nil }

// TestOnlyTimesMove: a write that changes nothing but times in managedFields is none.
func TestOnlyTimesMove(t *testing.T) {
	t.Parallel()
	g := store(t, "configmaps")
	now := g.Now()
	g.Fields, g.Now = everything{}, func() time.Time { now = now.Add(time.Minute); return now }
	made := create(t, g, configMap("a"))
	if len(made.ManagedFields) != 1 || made.ManagedFields[0].Manager != registry.Self {
		t.Fatalf("%+v", made.ManagedFields)
	}
	obj, err := write(t, g, "ns", "a", "", func(runtime.Object) {})
	if m := obj.(*corev1.ConfigMap); err != nil || m.ResourceVersion != made.ResourceVersion ||
		!m.ManagedFields[0].Time.Equal(made.ManagedFields[0].Time) {
		t.Errorf("nothing changed, and version %s became %s, %s %s (%v)", made.ResourceVersion, m.ResourceVersion,
			made.ManagedFields[0].Time, m.ManagedFields[0].Time, err)
	}
	obj, err = write(t, g, "ns", "a", "", func(obj runtime.Object) { obj.(*corev1.ConfigMap).Data["a"] = "c" })
	if m := obj.(*corev1.ConfigMap); err != nil || m.ResourceVersion == made.ResourceVersion ||
		m.ManagedFields[0].Time.Equal(made.ManagedFields[0].Time) {
		t.Errorf("data changed, and the version is %s, the time %s (%v)", m.ResourceVersion, m.ManagedFields[0].Time,
			err)
	}
	obj, err = g.Admitted().Update(t.Context(), "ns", "a", "", func(obj runtime.Object) (runtime.Object, error) {
		obj.(*corev1.ConfigMap).Data["a"] = "d"
		return obj, nil
	}, &metav1.UpdateOptions{FieldManager: "someone"})
	if m := obj.(*corev1.ConfigMap); err != nil || m.Data["a"] != "d" || m.ManagedFields[0].Manager != registry.Self {
		t.Errorf("a write that carries out another one was noted: %+v (%v)", m.ManagedFields, err)
	}
}

// TestFieldsAfterAdmission: what admission does to managedFields counts, unless it makes no sense.
func TestFieldsAfterAdmission(t *testing.T) {
	t.Parallel()
	g := store(t, "configmaps")
	var plugin admits
	g.Fields, g.Admission = everything{}, &plugin
	var warnings []string
	ctx := registry.WithCaller(t.Context(), registry.Caller{Manager: "m", Warn: func(s string) {
		warnings = append(warnings, s)
	}})
	for _, c := range []struct {
		name string
		do   func(*corev1.ConfigMap)
		want string
		warn string
	}{
		{"sense", func(m *corev1.ConfigMap) { m.ManagedFields[0].Manager = "plugin" }, "plugin", ""},
		{"none", func(m *corev1.ConfigMap) { m.ManagedFields[0].Operation = "Nonsense" }, "m",
			".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: operation must be `Apply` or `Update`"},
	} {
		plugin, warnings = func(m *corev1.ConfigMap) {
			m.ManagedFields = append([]metav1.ManagedFieldsEntry(nil), m.ManagedFields...)
			c.do(m)
		}, nil
		obj, err := g.Create(ctx, "ns", configMap(c.name), &metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		warned := ""
		if len(warnings) > 0 {
			warned = warnings[0]
		}
		if got := obj.(*corev1.ConfigMap).ManagedFields; len(got) != 1 || got[0].Manager != c.want || warned != c.warn {
			t.Errorf("%s: %+v, warned %q", c.name, got, warnings)
		}
	}
}

func TestManagerOf(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{"kubectl/v1.36.0 (linux/amd64)": "kubectl", "": "", "a\x01b c/1": "ab c",
		string(make([]byte, 3)): ""} {
		if got := registry.ManagerOf(agent); got != want {
			t.Errorf("%q: %q, want %q", agent, got, want)
		}
	}
	long := "ä"
	for range 7 {
		long += long
	}
	if got := registry.ManagerOf(long + "/1"); len(got) != 128 {
		t.Errorf("%d bytes", len(got))
	}
}

package registry_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
)

// store returns the store of a core resource over a fresh memory, with a clock that stands still.
func store(t *testing.T, resource string) *registry.Generic {
	t.Helper()
	for _, row := range rows.All() {
		if row.GVK.Group != "" || row.Resource != resource {
			continue
		}
		facts := &storage.FactsTable{}
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		g, err := registry.NewGeneric(registry.Config{Row: &row, Storage: memory.New(facts), Now: func() time.Time {
			return now
		}})
		if err != nil {
			t.Fatal(err)
		}
		facts.Register(registry.Prefix(&row), g.Codec().FactsOf)
		return g
	}
	t.Fatalf("no row for %s", resource)
	return nil
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": "b"}}
}

func create(t *testing.T, g *registry.Generic, obj runtime.Object) *corev1.ConfigMap {
	t.Helper()
	out, err := g.Create(t.Context(), "ns", obj, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out.(*corev1.ConfigMap)
}

func TestCreateMetadata(t *testing.T) {
	t.Parallel()
	g := store(t, "configmaps")
	in := configMap("a")
	in.UID, in.Generation, in.SelfLink = "mine", 7, "x"
	in.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	out := create(t, g, in)
	if out.UID == "mine" || out.UID == "" || out.Generation != 7 || out.SelfLink != "" || out.ManagedFields != nil {
		t.Errorf("the system's metadata is the client's, or the generation is not: %+v", out.ObjectMeta)
	}
	if out.Namespace != "ns" || out.ResourceVersion == "" || out.CreationTimestamp.Year() != 2026 {
		t.Errorf("metadata = %+v", out.ObjectMeta)
	}
	if _, err := g.Create(t.Context(), "ns", configMap("a"),
		&metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) || err.Error() != `configmaps "a" already exists` {
		t.Errorf("second create: %v", err)
	}
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	g := store(t, "configmaps")
	for name, c := range map[string]struct {
		change func(*corev1.ConfigMap)
		want   string
	}{
		"version": {func(m *corev1.ConfigMap) {
			m.ResourceVersion = "1"
		}, "resourceVersion should not be set on objects to be created"},
		"version of an invalid object": {func(m *corev1.ConfigMap) {
			m.ResourceVersion, m.Name = "1", "A_b"
		}, `metadata.name: Invalid value: "A_b"`},
		"namespace": {func(m *corev1.ConfigMap) {
			m.Namespace = "other"
		}, "the namespace of the provided object does not match the namespace sent on the request"},
		"name": {func(m *corev1.ConfigMap) {
			m.Name = "A_b"
		}, `metadata.name: Invalid value: "A_b"`},
		"no name": {func(m *corev1.ConfigMap) {
			m.Name = ""
		}, "metadata.name: Required value: name or generateName is required"},
		"finalizer": {func(m *corev1.ConfigMap) {
			m.Finalizers = []string{"foo"}
		}, "name is neither a standard finalizer name nor is it fully qualified"},
	} {
		m := configMap("a")
		c.change(m)
		if _, err := g.Create(t.Context(), "ns", m, &metav1.CreateOptions{}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestDryRunOfVersion: an object that has a version could not be created; a dry run does not say so, and shows it.
func TestDryRunOfVersion(t *testing.T) {
	t.Parallel()
	g := store(t, "configmaps")
	for version, want := range map[string]string{"5": "5", "0": "", "x": ""} {
		m := configMap("a")
		m.ResourceVersion = version
		out, err := g.Create(t.Context(), "ns", m, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil || out.(*corev1.ConfigMap).ResourceVersion != want {
			t.Errorf("%s: %v, %v", version, out, err)
		}
	}
}

func TestGenerateName(t *testing.T) {
	t.Parallel()
	g := store(t, "configmaps")
	draws := []string{"aaaaa", "aaaaa", "bbbbb"}
	g.Random = func(int) string {
		d := draws[0]
		if len(draws) > 1 {
			draws = draws[1:]
		}
		return d
	}
	generated := func() (*corev1.ConfigMap, error) {
		m := configMap("")
		m.GenerateName = "x-"
		out, err := g.Create(t.Context(), "ns", m, &metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		return out.(*corev1.ConfigMap), nil
	}
	if m, err := generated(); err != nil || m.Name != "x-aaaaa" {
		t.Fatalf("%v, %v", m, err)
	}
	if m, err := generated(); err != nil || m.Name != "x-bbbbb" {
		t.Fatalf("a name that is taken is drawn again: %v, %v", m, err)
	}
	if _, err := generated(); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("in the end: %v", err)
	}
	g.Random = registry.RandomSuffix
	long := configMap("")
	long.GenerateName = strings.Repeat("y", 80)
	if out := create(t, g, long); len(out.Name) != 63 {
		t.Errorf("generated name has %d characters, want 63", len(out.Name))
	}
}

func TestDryRunStoresNothing(t *testing.T) {
	t.Parallel()
	g := store(t, "configmaps")
	dry := []string{metav1.DryRunAll}
	out, err := g.Create(t.Context(), "ns", configMap("a"), &metav1.CreateOptions{DryRun: dry})
	if err != nil || out.(*corev1.ConfigMap).ResourceVersion != "" {
		t.Fatalf("create: %v, %v", out, err)
	}
	if _, err := g.Get(t.Context(), "ns", "a"); !apierrors.IsNotFound(err) {
		t.Fatalf("after a dry create: %v", err)
	}
	create(t, g, configMap("a"))
	set := func(o runtime.Object) (runtime.Object, error) {
		o.(*corev1.ConfigMap).Data["a"] = "c"
		return o, nil
	}
	if out, err = g.Update(t.Context(), "ns", "a", "", set, &metav1.UpdateOptions{DryRun: dry}); err != nil ||
		out.(*corev1.ConfigMap).Data["a"] != "c" {
		t.Fatalf("update: %v, %v", out, err)
	}
	if _, gone, err := g.Delete(t.Context(), "ns", "a", &metav1.DeleteOptions{DryRun: dry}); err != nil || !gone {
		t.Fatalf("delete: %v, %v", gone, err)
	}
	now, err := g.Get(t.Context(), "ns", "a")
	if err != nil || now.(*corev1.ConfigMap).Data["a"] != "b" {
		t.Fatalf("after dry runs: %v, %v", now, err)
	}
}

func TestUpdateVersions(t *testing.T) {
	t.Parallel()
	g := store(t, "configmaps")
	was := create(t, g, configMap("a"))
	with := func(version string, value string) error {
		_, err := g.Update(t.Context(), "ns", "a", "", func(o runtime.Object) (runtime.Object, error) {
			m := o.(*corev1.ConfigMap)
			m.ResourceVersion, m.Data["a"] = version, value
			return m, nil
		}, &metav1.UpdateOptions{})
		return err
	}
	if err := with(was.ResourceVersion, "1"); err != nil {
		t.Fatalf("with the version it has: %v", err)
	}
	err := with(was.ResourceVersion, "2")
	if !apierrors.IsConflict(err) ||
		!strings.HasPrefix(err.Error(),
			`Operation cannot be fulfilled on configmaps "a": the object has been modified`) {
		t.Fatalf("with an old version: %v", err)
	}
	if err := with("", "3"); err != nil {
		t.Fatalf("without version: %v", err)
	}
	before, _ := g.Get(t.Context(), "ns", "a")
	if err := with("", "3"); err != nil {
		t.Fatal(err)
	}
	after, _ := g.Get(t.Context(), "ns", "a")
	if before.(*corev1.ConfigMap).ResourceVersion != after.(*corev1.ConfigMap).ResourceVersion {
		t.Error("an update that changes nothing was written")
	}
}

func TestUpdateKeepsSystemMetadata(t *testing.T) {
	t.Parallel()
	g := store(t, "configmaps")
	was := create(t, g, configMap("a"))
	out, err := g.Update(t.Context(), "ns", "a", "", func(runtime.Object) (runtime.Object, error) {
		return configMap("a"), nil
	}, &metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if m := out.(*corev1.ConfigMap); m.UID != was.UID || !m.CreationTimestamp.Equal(&was.CreationTimestamp) {
		t.Errorf("identity was lost: %+v", m.ObjectMeta)
	}
	_, err = g.Update(t.Context(), "ns", "a", "", func(o runtime.Object) (runtime.Object, error) {
		o.(*corev1.ConfigMap).UID = "other"
		return o, nil
	}, &metav1.UpdateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("another uid: %v", err)
	}
}

func TestFinalizersHoldDeletion(t *testing.T) {
	t.Parallel()
	g := store(t, "configmaps")
	m := configMap("a")
	m.Finalizers = []string{"a/b"}
	create(t, g, m)
	obj, gone, err := g.Delete(t.Context(), "ns", "a", &metav1.DeleteOptions{})
	if err != nil || gone || obj.(*corev1.ConfigMap).DeletionTimestamp == nil {
		t.Fatalf("delete: %v, %v, %v", obj, gone, err)
	}
	finalize := func(f ...string) error {
		_, err := g.Update(t.Context(), "ns", "a", "", func(o runtime.Object) (runtime.Object, error) {
			o.(*corev1.ConfigMap).Finalizers = f
			return o, nil
		}, &metav1.UpdateOptions{})
		return err
	}
	if err := finalize("a/b", "a/c"); !apierrors.IsInvalid(err) {
		t.Fatalf("a new finalizer on a deleted object: %v", err)
	}
	if err := finalize(); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Get(t.Context(), "ns", "a"); !apierrors.IsNotFound(err) {
		t.Fatalf("without finalizers: %v", err)
	}
}

func TestPropagationPolicies(t *testing.T) {
	t.Parallel()
	orphan, foreground, background := metav1.DeletePropagationOrphan, metav1.DeletePropagationForeground,
		metav1.DeletePropagationBackground
	for _, c := range []struct {
		policy *metav1.DeletionPropagation
		old    []string
		want   []string
		gone   bool
	}{
		{nil, nil, nil, true},
		{&background, nil, nil, true},
		{&orphan, nil, []string{"orphan"}, false},
		{&foreground, nil, []string{"foregroundDeletion"}, false},
		{&background, []string{"orphan"}, nil, true},
		{nil, []string{"orphan"}, []string{"orphan"}, false},
		{&foreground, []string{"orphan", "a/b"}, []string{"a/b", "foregroundDeletion"}, false},
	} {
		g := store(t, "configmaps")
		m := configMap("a")
		m.Finalizers = c.old
		create(t, g, m)
		obj, gone, err := g.Delete(t.Context(), "ns", "a", &metav1.DeleteOptions{PropagationPolicy: c.policy})
		if err != nil || gone != c.gone {
			t.Errorf("%v: gone %v, %v", c, gone, err)
			continue
		}
		if got := obj.(*corev1.ConfigMap).Finalizers; !c.gone && strings.Join(got, " ") != strings.Join(c.want, " ") {
			t.Errorf("policy %v on %v: finalizers %v, want %v", *c.policy, c.old, got, c.want)
		}
	}
}

// TestDeletionWithoutGarbageCollector: nobody would orphan or delete dependents, so no deletion waits for that
// (--enable-garbage-collector).
func TestDeletionWithoutGarbageCollector(t *testing.T) {
	t.Parallel()
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationOrphan,
		metav1.DeletePropagationForeground, metav1.DeletePropagationBackground} {
		g := store(t, "configmaps")
		g.NoGarbageCollector = true
		create(t, g, configMap("a"))
		if _, gone, err := g.Delete(t.Context(), "ns", "a",
			&metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil || !gone {
			t.Errorf("%s: gone %v, %v", policy, gone, err)
		}
	}
}

func TestDeletePreconditions(t *testing.T) {
	t.Parallel()
	g := store(t, "configmaps")
	create(t, g, configMap("a"))
	uid, version := types.UID("x"), "0"
	for _, p := range []*metav1.Preconditions{{UID: &uid}, {ResourceVersion: &version}} {
		if _, _, err := g.Delete(t.Context(), "ns", "a",
			&metav1.DeleteOptions{Preconditions: p}); !apierrors.IsConflict(err) {
			t.Errorf("%v: %v", p, err)
		}
	}
}

// hook counts what it is asked, and refuses when told to.
type hook struct {
	begun, committed, freed int
}

func (h *hook) BeforeCreate(context.Context, runtime.Object, bool) (func(bool), error) {
	return h.begin(), nil
}
func (h *hook) BeforeUpdate(context.Context, runtime.Object, runtime.Object, bool) (func(bool), error) {
	return h.begin(), nil
}
func (h *hook) AfterDelete(context.Context, runtime.Object) { h.freed++ }
func (h *hook) begin() func(bool) {
	h.begun++
	return func(ok bool) {
		h.begun--
		if ok {
			h.committed++
		}
	}
}

func TestHook(t *testing.T) {
	t.Parallel()
	g := store(t, "configmaps")
	h := &hook{}
	g.Hook = h
	create(t, g, configMap("a"))
	if _, err := g.Create(t.Context(), "ns", configMap("a"), &metav1.CreateOptions{}); err == nil {
		t.Fatal("created twice")
	}
	set := func(o runtime.Object) (runtime.Object, error) {
		o.(*corev1.ConfigMap).Data["a"] = "c"
		return o, nil
	}
	for _, dry := range [][]string{{metav1.DryRunAll}, nil} {
		if _, err := g.Update(t.Context(), "ns", "a", "", set, &metav1.UpdateOptions{DryRun: dry}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := g.Delete(t.Context(), "ns", "a", &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if h.begun != 0 || h.committed != 2 || h.freed != 1 {
		t.Errorf("hook: %+v, want every begin ended, 2 committed, 1 freed", h)
	}
}

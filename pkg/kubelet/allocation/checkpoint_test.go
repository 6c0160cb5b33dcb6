package allocation

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

func cpu(q string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(q)}}
}

func open(t *testing.T, dir string) *Checkpoint {
	t.Helper()
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCheckpointOutlivesTheKubelet(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "allocations")
	c, whole := open(t, dir), cpu("3")
	first := runtime.Allocation{Generation: 1,
		Resources: runtime.Resources{Containers: map[string]corev1.ResourceRequirements{"a": cpu("1")}}}
	second := runtime.Allocation{Generation: 2,
		Resources: runtime.Resources{Pod: &whole, Containers: map[string]corev1.ResourceRequirements{"a": cpu("2")}},
		Actuated:  map[string]corev1.ResourceRequirements{"a": cpu("1")}, PodActuates: true}
	for _, a := range []runtime.Allocation{first, second} {
		if err := c.Save("u", a); err != nil {
			t.Fatal(err)
		}
	}
	// a write that a crash cut off
	if err := os.WriteFile(filepath.Join(dir, "u.json.new"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	got, ok, err := again.Load("u")
	if err != nil || !ok || got.Generation != 2 || !got.Resources.Equal(second.Resources) || !got.PodActuates ||
		!runtime.SameResources(got.Actuated["a"], cpu("1")) {
		t.Errorf("%+v, %v, %v", got, ok, err)
	}
	if _, ok, err := again.Load("other"); ok || err != nil {
		t.Errorf("a pod that never was: %v, %v", ok, err)
	}
	if saved, err := again.Saved(); err != nil || !reflect.DeepEqual(saved, []types.UID{"u"}) {
		t.Errorf("saved: %v, %v", saved, err)
	}
	for range 2 {
		if err := again.Remove("u"); err != nil {
			t.Error(err)
		}
	}
	if _, ok, err := again.Load("u"); ok || err != nil {
		t.Errorf("after its removal: %v, %v", ok, err)
	}
}

// A UID is a name of a file at most: it leads nowhere else, nor does a link.
func TestCheckpointStaysInItsDirectory(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, "allocations")
	c := open(t, dir)
	outside := filepath.Join(base, "x.json")
	if err := os.WriteFile(outside, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	for _, uid := range []types.UID{"../x", "link"} {
		if _, ok, err := c.Load(uid); ok || err == nil {
			t.Errorf("%s was read", uid)
		}
	}
	if err := c.Save("../x", runtime.Allocation{Generation: 9}); err == nil {
		t.Error("written outside")
	}
	if err := c.Remove("../x"); err == nil {
		t.Error("removed outside")
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "{}" {
		t.Errorf("outside: %s, %v", data, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bad.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := c.Load("bad"); ok || err == nil {
		t.Error("a broken file was read")
	}
}

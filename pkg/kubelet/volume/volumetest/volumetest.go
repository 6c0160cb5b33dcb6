// Package volumetest has the tests of the contract that every kind of volume keeps, volume.Source. It needs root where
// a kind mounts.
package volumetest

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/mount-utils"

	"bonsai/pkg/kubelet/volume"
)

// Kind is a kind of volume to be tested.
type Kind struct {
	// New makes the source as a kubelet does that has just started; what it reads from is the same each time.
	New func() volume.Source
	// Volume is one of this kind. PV is the one that it claims, nil if it claims none.
	Volume corev1.Volume
	PV     *corev1.PersistentVolume
	// Others are volumes of all other kinds.
	Others []volume.Spec
}

func (k Kind) spec() volume.Spec { return volume.Spec{Volume: &k.Volume, PV: k.PV} }

// Run tests a kind.
func Run(t *testing.T, k Kind) {
	t.Run("one kind only", k.testSupports)
	t.Run("prepare leaves the place alone", k.testPrepare)
	t.Run("publish", k.testPublish)
	t.Run("a restart of the kubelet", k.testRestart)
	t.Run("take down", k.testTakeDown)
}

// request is for the kind's volume in a new pod. What a failed test leaves mounted is taken down.
func (k Kind) request(t *testing.T) volume.Request {
	t.Helper()
	dir := t.TempDir()
	at := func(part string) string { // the parents are there
		parent := filepath.Join(dir, part, "kubernetes.io~"+k.New().Name())
		if err := os.MkdirAll(parent, 0o750); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(parent, k.spec().VolumeName())
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "uid"},
		Spec: corev1.PodSpec{ServiceAccountName: "sa",
			SecurityContext: &corev1.PodSecurityContext{FSGroup: new(int64(2000))},
			Containers:      []corev1.Container{{Name: "c"}}, Volumes: []corev1.Volume{k.Volume}}}
	r := volume.Request{Place: volume.Place{PodUID: pod.UID, Name: k.spec().VolumeName(), Dir: at("volumes"),
		Notes: at("plugins")}, Pod: pod,
		Spec: volume.Spec{Volume: &pod.Spec.Volumes[0], PV: k.PV}}
	t.Cleanup(func() {
		if err := volume.RemoveTree(context.WithoutCancel(t.Context()), r.Dir); err != nil {
			t.Error(err)
		}
	})
	return r
}

// publish makes the volume with a source.
func publish(t *testing.T, s volume.Source, r volume.Request) volume.Mounted {
	t.Helper()
	f, err := s.Prepare(t.Context(), r)
	if err != nil {
		t.Fatal("prepare:", err)
	}
	m, err := f()
	if err != nil {
		t.Fatal("publish:", err)
	}
	return m
}

// takeDown removes the volume as the Manager does. A source that is no Remover has to have left nothing.
func takeDown(t *testing.T, s volume.Source, r volume.Request) error {
	t.Helper()
	if x, ok := s.(volume.Remover); ok {
		return x.TakeDown(t.Context(), r.Place)
	}
	return nil
}

func (k Kind) testSupports(t *testing.T) {
	s := k.New()
	if n := s.Name(); n == "" || strings.ContainsAny(n, "/\x00") || strings.HasPrefix(n, ".") || n != k.New().Name() {
		t.Errorf("%q is no name for a directory", n)
	}
	if !s.Supports(k.spec()) {
		t.Error("the source does not support its kind")
	}
	for i := range k.Others {
		if s.Supports(k.Others[i]) {
			t.Errorf("the source takes volume %q for its own", k.Others[i].VolumeName())
		}
	}
}

func (k Kind) testPrepare(t *testing.T) {
	r := k.request(t)
	pod := r.Pod.DeepCopy()
	if _, err := k.New().Prepare(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	gone(t, r)
	if !reflect.DeepEqual(pod, r.Pod) {
		t.Error("the pod was changed")
	}
}

func (k Kind) testPublish(t *testing.T) {
	r := k.request(t)
	s := k.New()
	m := publish(t, s, r)
	if (m.Image == nil) == (m.HostPath == "") {
		t.Fatalf("%+v, want either a path or an image", m)
	}
	k.same(t, r, m, s)
	if err := takeDown(t, s, r); err != nil {
		t.Fatal(err)
	}
}

// testRestart: what containers use is taken over as it is.
func (k Kind) testRestart(t *testing.T) {
	r := k.request(t)
	m := publish(t, k.New(), r)
	s := k.New()
	k.same(t, r, m, s)
	if err := takeDown(t, s, r); err != nil {
		t.Fatal(err)
	}
	gone(t, r)
}

// same publishes a volume once more: it must be the same one, with what its containers made of it.
func (k Kind) same(t *testing.T, r volume.Request, m volume.Mounted, s volume.Source) {
	t.Helper()
	if m.Image == nil && !m.ReadOnly { // as a container may
		if err := os.WriteFile(filepath.Join(m.HostPath, "written"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(m.HostPath, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	before, mounts := tree(t, m), mountsAt(t, r.Dir)
	if again := publish(t, s, r); !reflect.DeepEqual(again, m) {
		t.Errorf("published again: %+v, was %+v", again, m)
	}
	if after := tree(t, m); !reflect.DeepEqual(after, before) {
		t.Errorf("published again, it is changed: %v, was %v", after, before)
	}
	if n := mountsAt(t, r.Dir); n != mounts || n > 1 {
		t.Errorf("%d mounts at the volume's directory, were %d", n, mounts)
	}
}

// testTakeDown: a kubelet that has seen nothing of the volume takes it down, whatever was made of it.
func (k Kind) testTakeDown(t *testing.T) {
	r := k.request(t)
	if err := takeDown(t, k.New(), r); err != nil {
		t.Error("a volume that never was:", err)
	}
	m := publish(t, k.New(), r)
	own := strings.HasPrefix(m.HostPath, r.Dir)
	if own && !m.ReadOnly {
		if err := os.WriteFile(filepath.Join(m.HostPath, "written"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := takeDown(t, k.New(), r); err != nil {
			t.Error(err)
		}
	}
	gone(t, r)
	if _, err := os.Stat(m.HostPath); !own && m.HostPath != "" && err != nil {
		t.Error("what others own is gone:", err)
	}
	if err := os.Mkdir(r.Dir, 0o777); err != nil { // the kubelet was killed while it made the volume
		t.Fatal(err)
	}
	if err := takeDown(t, k.New(), r); err != nil {
		t.Error("a volume half made:", err)
	}
	if own {
		gone(t, r)
	}
}

// gone checks that nothing is at the volume's place.
func gone(t *testing.T, r volume.Request) {
	t.Helper()
	for _, path := range []string{r.Dir, r.Notes} {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", path, err)
		}
	}
	if n := mountsAt(t, r.Dir); n > 0 {
		t.Errorf("%d mounts at %s", n, r.Dir)
	}
}

// tree lists all files beneath a volume with their modes and when they were changed.
func tree(t *testing.T, m volume.Mounted) []string {
	t.Helper()
	if m.Image != nil {
		return nil
	}
	var out []string
	err := filepath.Walk(m.HostPath, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			out = append(out, path+" "+info.Mode().String()+" "+info.ModTime().String())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mountsAt(t *testing.T, dir string) int {
	t.Helper()
	infos, err := mount.ParseMountInfo("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, i := range infos {
		if i.MountPoint == dir {
			n++
		}
	}
	return n
}

package volume_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/volume"
)

// hanging is an API server that can stop answering.
type hanging struct {
	*api
	// asked tells of each question; where hang is not nil it is answered when hang is closed, or given up.
	asked chan struct{}
	hang  chan struct{}
}

func (h *hanging) wait(ctx context.Context) error {
	h.mu.Lock()
	hang := h.hang
	h.mu.Unlock()
	if hang == nil {
		return nil
	}
	select {
	case h.asked <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-hang:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *hanging) CreateToken(ctx context.Context, ns, account string, req *authv1.TokenRequest) (*authv1.TokenRequest,
	error) {
	if err := h.wait(ctx); err != nil {
		return nil, err
	}
	return h.api.CreateToken(ctx, ns, account, req)
}

func (h *hanging) ConfigMap(ctx context.Context, ns, name string) (*corev1.ConfigMap, error) {
	cm, err := h.api.ConfigMap(ctx, ns, name)
	if name == "slow" { // what it says was true when it was asked
		if err := h.wait(ctx); err != nil {
			return nil, err
		}
	}
	return cm, err
}

func (h *hanging) set(hang chan struct{}) { h.mu.Lock(); h.hang = hang; h.mu.Unlock() }

func tokenVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name,
		VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token",
				ExpirationSeconds: ptr[int64](1000)}}}}}}
}

func setupHanging(t *testing.T) (*hanging, *volume.Manager) {
	t.Helper()
	h := &hanging{api: &api{}, asked: make(chan struct{}, 16)}
	return h, newManagerOf(t, h.api, h, h)
}

func startRun(t *testing.T, m *volume.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestAHungAPIServerHoldsUpNoPodWithAToken(t *testing.T) {
	t.Parallel()
	needRoot(t)
	h, m := setupHanging(t)
	one, two := podOf(tokenVolume("t"),
		corev1.Volume{Name: "d", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}), podOf(
		corev1.Volume{Name: "c",
			VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("cfg")}}})
	two.UID = "uid-2"
	h.api.set("cm/ns/cfg", map[string]string{"k": "1"})
	mounted, err := m.Mount(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	others, err := m.Mount(t.Context(), two)
	if err != nil {
		t.Fatal(err)
	}
	stop := startRun(t, m)
	h.set(make(chan struct{}))
	h.advance(900 * time.Second) // the token is to be renewed, and still valid
	m.Changed([]types.UID{one.UID})
	<-h.asked // the renewal hangs

	// The pod's containers restart, another one is refreshed.
	if _, err := m.Mount(t.Context(), one); err != nil {
		t.Error("mount:", err)
	}
	if _, err := m.SubPath(one, "c", 0, "d", mounted["d"], "sub"); err != nil {
		t.Error("subPath:", err)
	}
	h.api.set("cm/ns/cfg", map[string]string{"k": "2"})
	m.Changed([]types.UID{two.UID})
	await(t, func() bool { return read(t, others["c"].HostPath, "k") == "2" })

	// One refresh at a time.
	m.Changed([]types.UID{one.UID})
	await(t, func() bool { return m.RefreshDue(one.UID) })
	if len(h.asked) > 0 {
		t.Error("two refreshes of one pod at a time")
	}

	// The pod ends, and nothing of it comes back.
	if err := m.Unmount(t.Context(), one.UID); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := os.Stat(mounted["t"].HostPath); !errors.Is(err, os.ErrNotExist) {
		t.Error("the volume came back:", err)
	}
}

func TestAPodWhoseMountHangsCanBeRemoved(t *testing.T) {
	t.Parallel()
	needRoot(t)
	h, m := setupHanging(t)
	hang := make(chan struct{})
	h.set(hang)
	result := make(chan error)
	go func() { _, err := m.Mount(t.Context(), podOf(tokenVolume("t"))); result <- err }()
	<-h.asked
	if err := m.Remove(t.Context(), "uid-1"); err != nil {
		t.Fatal(err)
	}
	close(hang)
	if err := <-result; !errors.Is(err, volume.ErrUnmounted) {
		t.Error(err)
	}
	if left, _ := os.ReadDir(m.PodsDir()); len(left) > 0 {
		t.Error("left:", left)
	}
}

func TestAnOldAnswerDoesNotReplaceANewerOne(t *testing.T) {
	t.Parallel()
	h, m := setupHanging(t)
	pod := podOf(corev1.Volume{Name: "c",
		VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("slow")}}})
	h.api.set("cm/ns/slow", map[string]string{"k": "1"})
	hang := make(chan struct{})
	h.set(hang)
	result := make(chan error)
	go func() { _, err := m.Mount(t.Context(), pod); result <- err }()
	<-h.asked
	h.set(nil)
	h.api.set("cm/ns/slow", map[string]string{"k": "2"})
	got, err := m.Mount(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	close(hang)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if k := read(t, got["c"].HostPath, "k"); k != "2" {
		t.Errorf("content %q", k)
	}
}

func TestAHalfMadeEmptyDirIsCompleted(t *testing.T) {
	t.Parallel()
	needRoot(t)
	m := newManager(t, &api{})
	pod := podOf(corev1.Volume{Name: "d", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		corev1.Volume{Name: "m",
			VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}})
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr[int64](2000)}
	dir := func(name string) string {
		return filepath.Join(m.PodsDir(), "uid-1", "volumes", "kubernetes.io~empty-dir", name)
	}
	// The kubelet was killed after it had made the directories, before it gave them to the pod's group.
	if err := volume.MakeDir(dir("d"), nil); err != nil {
		t.Fatal(err)
	}
	if err := volume.MakeDir(dir("m"), volume.Tmpfs(1<<20)); err != nil {
		t.Fatal(err)
	}
	check := func(want os.FileMode) {
		t.Helper()
		for _, name := range []string{"d", "m"} {
			if md, st := mode(t, dir(name)); md&^os.ModeSticky != want|os.ModeDir || st.Gid != 2000 {
				t.Errorf("%s: mode %v of group %d, want %v", name, md, st.Gid, want)
			}
		}
	}
	for _, want := range []os.FileMode{0o777 | os.ModeSetgid, 0o750 | os.ModeSetgid} {
		if _, err := m.Mount(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		check(want)
		for _, name := range []string{"d", "m"} { // what the pod makes of its volume stays
			if err := os.Chmod(dir(name), 0o750|os.ModeSetgid); err != nil {
				t.Fatal(err)
			}
		}
	}
}

package userns

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/cm/cmtest"
	"bonsai/pkg/kubelet/runtime"
)

func podOf(uid string, hostUsers *bool) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)},
		Spec: corev1.PodSpec{HostUsers: hostUsers, Containers: []corev1.Container{{Name: "c"}}}}
}

func start(t *testing.T, dir string, count int) *Manager {
	t.Helper()
	m, err := New(Config{PodsDir: dir, Ranges: Ranges{First: DefaultLength, Length: DefaultLength, Count: count}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestProvider(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmtest.Run(t, func() cm.Provider { return start(t, dir, 3) }, podOf("u", new(false)))
}

// No two pods share an id; what a pod had that has ended is given again; a pod that has the node's users takes none.
func TestRanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := start(t, dir, 2)
	give := func(uid string, hostUsers *bool) string {
		t.Helper()
		p := podOf(uid, hostUsers)
		if err := m.Prepare(t.Context(), p); err != nil {
			return err.Error()
		}
		var o runtime.SandboxOptions
		if m.Sandbox(p, &o); o.Users == nil {
			return "none"
		}
		if o.Users.Length != DefaultLength {
			t.Errorf("%s has %d ids", uid, o.Users.Length)
		}
		return map[uint32]string{65536: "first", 131072: "second"}[o.Users.First]
	}
	check := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	check(give("host", nil), "none")
	check(give("true", new(true)), "none")
	check(give("a", new(false)), "first")
	check(give("b", new(false)), "second")
	check(give("a", new(false)), "first")
	check(give("c", new(false)),
		"Failed to create pod sandbox: could not find an empty slot to allocate a user namespace: all 2 are in use")
	check(give("../d", new(false)),
		"Failed to create pod sandbox: could not find an empty slot to allocate a user namespace: all 2 are in use")
	if err := m.Unprepare(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if got := give("../d", new(false)); !strings.Contains(got, "no file name") {
		t.Error(got)
	}
	m = start(t, dir, 2)
	check(give("c", new(false)), "first")
	check(give("b", new(false)), "second")
	data, err := os.ReadFile(filepath.Join(dir, "b", "userns"))
	const want = `{"uidMappings":[{"hostId":131072,"containerId":0,"length":65536}],"gidMappings":[{"hostId":131072,"containerId":0,"length":65536}]}`
	if err != nil || string(data) != want {
		t.Errorf("%s, %v", data, err)
	}
}

// While it cannot be told what a pod has, no other is given anything, for it might be that; pods with the node's users,
// and those that have theirs, go on.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"", "{", "{}",
		`{"uidMappings":[{"hostId":1,"containerId":0,"length":9}],"gidMappings":[{"hostId":2,"containerId":0,"length":9}]}`} {
		dir := t.TempDir()
		if err := start(t, dir, 3).Prepare(t.Context(), podOf("a", new(false))); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, "u"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "u", "userns"), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		m := start(t, dir, 3)
		if err := errors.Join(m.Prepare(t.Context(), podOf("host", nil)),
			m.Prepare(t.Context(), podOf("a", new(false)))); err != nil {
			t.Errorf("%q: %v", data, err)
		}
		for _, uid := range []string{"u", "b"} {
			if err := m.Prepare(t.Context(),
				podOf(uid, new(false))); err == nil ||
				!strings.Contains(err.Error(), "which users a pod has") &&
					!strings.Contains(err.Error(), "not one range") {
				t.Errorf("%q: %s: %v", data, uid, err)
			}
		}
		if all, err := m.Prepared(); err != nil || !slices.Contains(all, "u") || !slices.Contains(all, "a") {
			t.Errorf("%q: prepared %v, %v", data, all, err)
		}
		if err := errors.Join(m.Unprepare(t.Context(), "u"),
			m.Prepare(t.Context(), podOf("b", new(false)))); err != nil {
			t.Errorf("%q: after its end: %v", data, err)
		}
	}
}

func TestSubordinate(t *testing.T) {
	t.Parallel()
	want := Ranges{First: DefaultLength, Length: DefaultLength, Count: 110}
	const enough = "0: kubelet 131072 7208960\n"
	got, err := subordinate(enough, enough, want)
	if err != nil || got != (Ranges{First: 131072, Length: DefaultLength, Count: 110}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range [][2]string{
		{enough, "0: kubelet 196608 7208960"}, {"0: kubelet 131072 65536", "0: kubelet 131072 65536"}, {"", ""},
		{enough + enough, enough + enough},
		{"0: kubelet 100000 7208960", "0: kubelet 100000 7208960"}, {"0: kubelet x 7208960", "0: kubelet x 7208960"},
		{"0: kubelet 0 7208960", "0: kubelet 0 7208960"},
	} {
		if got, err := subordinate(bad[0], bad[1], want); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
	for _, length := range []int64{-1, 0, 1000, 65537, 1 << 32} {
		if r, err := NodeRanges(t.Context(), length, 110); err == nil {
			t.Errorf("%d ids a pod: %+v", length, r)
		}
	}
}

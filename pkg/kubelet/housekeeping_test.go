package kubelet

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/podworker"
	"bonsai/pkg/kubelet/runtime"
)

func TestLogsGoWithTheirPods(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	k := &Kubelet{log: log, cfg: Config{PodLogsDir: t.TempDir(), ContainerLogsDir: t.TempDir()}}
	k.workers = podworker.New(k, func(*corev1.Pod) bool { return false }, func(*corev1.Pod) {}, log)
	k.workers.Update(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "live"}})
	link := func(uid string) string { return filepath.Join(k.cfg.ContainerLogsDir, "p_ns_c-"+uid+".log") }
	for _, uid := range []string{"live", "dead"} {
		dir := filepath.Join(k.cfg.PodLogsDir, "ns_p_"+uid, "c")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		// The log is being rotated: it was renamed, the runtime has not made the new one yet.
		if err := os.Symlink(filepath.Join(dir, "0.log"), link(uid)); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.cleanLogs(); err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[string]bool{"live": true, "dead": false} {
		_, err := os.Stat(filepath.Join(k.cfg.PodLogsDir, "ns_p_"+uid))
		_, lerr := os.Lstat(link(uid))
		if (err == nil) != want || (lerr == nil) != want {
			t.Errorf("%s: logs %v, link %v", uid, err, lerr)
		}
	}
}

func TestUnusedSandboxes(t *testing.T) {
	t.Parallel()
	p := &runtime.PodStatus{UID: types.UID("u"), Sandboxes: []runtime.Sandbox{{ID: "newest"}, {ID: "ready", Ready: true}, {ID: "used"}, {ID: "old"}},
		Containers: []runtime.Container{{Name: "c", SandboxID: "used", State: runtime.StateExited}}}
	if got := unused(p); len(got) != 1 || got[0] != "old" {
		t.Error(got)
	}
}

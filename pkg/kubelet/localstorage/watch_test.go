package localstorage

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// node is a runtime that counts how often it is asked.
type node struct {
	pods   []*runtime.PodStatus
	layers map[string]runtime.DiskUse
	asked  int
}

func (n *node) Pods(context.Context) ([]*runtime.PodStatus, error) { n.asked++; return n.pods, nil }

func (n *node) WritableLayers(context.Context) (map[string]runtime.DiskUse, error) {
	return n.layers, nil
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(size int, parts ...string) {
		path := filepath.Join(append([]string{dir}, parts...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.Repeat([]byte{1}, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pod := func(uid types.UID, limit string, volumes ...corev1.Volume) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid},
			Spec: corev1.PodSpec{Volumes: volumes,
				Containers: []corev1.Container{{Name: "c", Resources: limits(limit)}}}}
	}
	n := &node{layers: map[string]runtime.DiskUse{"new-layer": {Bytes: 2 << 20}, "old-layer": {Bytes: 9 << 20},
		"new-small": {Bytes: 1 << 20}}}
	for _, uid := range []types.UID{"plain", "broken", "log", "message", "layer", "small", "volume"} {
		n.pods = append(n.pods, &runtime.PodStatus{UID: uid, Containers: []runtime.Container{
			{ID: runtime.ContainerID{ID: "new-" + string(uid)}, Name: "c"},
			{ID: runtime.ContainerID{ID: "old-" + string(uid)}, Name: "c"}}})
	}
	write(2<<20, "log", "logs", "c", "0.log")
	write(2<<20, "message", "messages", "c", "0123abcd")
	write(2<<20, "volume", "volumes", "v", "x")
	write(2<<20, "waits", "volumes", "v", "x")
	write(1, "broken", "volumes", "v") // it cannot be measured
	pods := []*corev1.Pod{pod("plain", "")}
	told, measured := map[types.UID]string{}, 0
	w, err := NewWatcher(Config{Runtime: n, Pods: func() []*corev1.Pod {
		return pods
	}, Log: slog.New(slog.DiscardHandler),
		LogDir: func(p *corev1.Pod) string { return filepath.Join(dir, string(p.UID), "logs") },
		EmptyDir: func(p *corev1.Pod, v string) (string, error) {
			return filepath.Join(dir, string(p.UID), "volumes", v), nil
		},
		Messages: func(p *corev1.Pod, c string) (string, error) {
			return filepath.Join(dir, string(p.UID), "messages", c), nil
		},
		Measured: func(time.Duration) { measured++ },
		Exceeded: func(uid types.UID, why runtime.Ending) { told[uid] = why.Signal }})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.measure(t.Context()); err != nil || n.asked > 0 {
		t.Error("pods without limits cost something:", n.asked, err)
	}
	v := volume("v", "1Mi", corev1.StorageMediumDefault)
	pods = append(pods, pod("broken", "", v), pod("log", "1Mi"), pod("message", "1Mi"), pod("layer", "1Mi"), pod("small", "1.5Mi"),
		pod("volume", "", v), pod("waits", "", v))
	if err := w.measure(t.Context()); err != nil || n.asked != 1 {
		t.Error("asked", n.asked, err)
	}
	want := map[types.UID]string{"log": signalPod, "message": signalPod, "layer": signalPod, "volume": signalEmptyDir}
	if !maps.Equal(told, want) {
		t.Error("told of", told)
	}
	if measured != 1 { // only a pod that the runtime knows
		t.Errorf("%d emptyDirs measured", measured)
	}
}

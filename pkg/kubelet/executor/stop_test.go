package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// TestStopOrder: what happens when to the containers of a pod, in seconds after its end began. Each line is a hook's
// begin ("hook c"), or a stop with the grace that is left ("stop c 9s").
//
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination
func TestStopOrder(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}, {Name: "b"}},
		InitContainers: []corev1.Container{{Name: "s1", RestartPolicy: &always}, {Name: "init"},
			{Name: "s2", RestartPolicy: &always}}}}
	now := pod.DeepCopy()
	now.DeletionGracePeriodSeconds = new(int64)
	for _, c := range []struct {
		name  string
		pod   *corev1.Pod
		grace time.Duration
		// hooks and stops are how long each takes.
		hooks, stops map[string]time.Duration
		want         string
	}{
		{"hooks begin together; sidecars are stopped last, in reverse", pod, 30 * time.Second,
			map[string]time.Duration{"a": 3 * time.Second, "s1": 2 * time.Second, "s2": time.Second},
			map[string]time.Duration{"a": time.Second, "b": 5 * time.Second, "s2": time.Second},
			"0s hook a, 0s hook s1, 0s hook s2, 0s stop b 30s, 3s stop a 27s, 5s stop s2 25s, 6s stop s1 24s"},
		{"a sidecar's long hook keeps the regular ones from nothing", pod, 30 * time.Second,
			map[string]time.Duration{"s2": 20 * time.Second},
			map[string]time.Duration{"a": time.Second, "s2": time.Second},
			"0s hook s2, 0s stop a 30s, 0s stop b 30s, 20s stop s2 10s, 21s stop s1 9s"},
		{"a hook may use up the grace period, not more", pod, 10 * time.Second,
			map[string]time.Duration{"a": time.Hour}, nil,
			"0s hook a, 0s stop b 10s, 10s stop a 2s, 10s stop s1 2s, 10s stop s2 2s"},
		{"a sidecar waits no longer than the grace period", pod, 10 * time.Second,
			nil, map[string]time.Duration{"a": 12 * time.Second},
			"0s stop a 10s, 0s stop b 10s, 10s stop s1 2s, 10s stop s2 2s"},
		{"now", now, 0, map[string]time.Duration{"a": time.Second}, nil,
			"0s stop a 0s, 0s stop b 0s, 0s stop s1 0s, 0s stop s2 0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				var mu sync.Mutex
				var got []string
				note := func(format string, args ...any) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, fmt.Sprintf("%v ", time.Since(begun))+fmt.Sprintf(format, args...))
				}
				s := &stopper{pod: c.pod, end: begun.Add(c.grace),
					preStop: func(ctx context.Context, x *runtime.Container) {
						if d := c.hooks[x.Name]; d > 0 {
							note("hook %s", x.Name)
							select {
							case <-time.After(d):
							case <-ctx.Done():
							}
						}
					},
					stop: func(_ context.Context, id string, grace time.Duration) error {
						note("stop %s %v", id, grace)
						time.Sleep(c.stops[id])
						return nil
					}}
				var list []*runtime.Container
				for _, name := range []string{"a", "b", "s1", "s2"} {
					list = append(list, &runtime.Container{Name: name, ID: runtime.ContainerID{ID: name},
						State: runtime.StateRunning})
				}
				if err := s.all(t.Context(), list); err != nil {
					t.Error(err)
				}
				slices.Sort(got)
				slices.SortStableFunc(got, func(a, b string) int { return int(seconds(t, a) - seconds(t, b)) })
				if text := strings.Join(got, ", "); text != c.want {
					t.Errorf("%s\nwant %s", text, c.want)
				}
			})
		})
	}
}

func seconds(t *testing.T, line string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(strings.Fields(line)[0])
	if err != nil {
		t.Fatal(err)
	}
	return d
}

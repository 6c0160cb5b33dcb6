package main

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"bonsai/pkg/scheduler/config"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins/noderesources"
)

// TestMaxInUnschedulablePodsDuration: --pod-max-in-unschedulable-pods-duration says when a pod that nothing helped is
// tried again.
func TestMaxInUnschedulablePodsDuration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, cfg, err := parse(t, "", "--kubeconfig=x", "--pod-max-in-unschedulable-pods-duration=1m")
		if err != nil {
			t.Fatal(err)
		}
		c, err := newClient(&rest.Config{Host: "http://127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		log := slog.New(slog.DiscardHandler)
		s, err := newScheduler(o, cfg, newWorld(c, log), newParts(c, "h", nil, log))
		if err != nil {
			t.Fatal(err)
		}
		s.Queue.Add(model.NewPodInfo(
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "p"},
				Spec: corev1.PodSpec{SchedulerName: config.DefaultSchedulerName}}))
		p, _ := s.Queue.Pop(t.Context())
		s.Queue.Requeue(p, map[string]bool{noderesources.FitName: true}, nil, false)
		begin := time.Now()
		s.Queue.Pop(t.Context())
		if d := time.Since(begin); d < time.Minute || d > 90*time.Second {
			t.Errorf("tried again after %s", d)
		}
	})
}

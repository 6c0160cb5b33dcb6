package kubelet

import (
	"io"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/executor"
	"bonsai/pkg/kubelet/status"
)

// plain returns a Kubelet that can decide, but not act.
func plain() *Kubelet {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	return &Kubelet{log: log, exec: &executor.Executor{}, status: status.New(nil, log),
		states: map[types.UID]*podState{}, mirrors: map[string]*corev1.Pod{}, pods: map[types.UID]*corev1.Pod{},
		admission: admission.New(admission.Config{Node: func() *corev1.Node { return nil }, Wake: func(types.UID) {},
			Allocatable: func() corev1.ResourceList { return corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")} },
			Preempted:   func(types.UID, corev1.ResourceName) {},
			Refuse:      func(*corev1.Pod) *admission.Rejection { return nil }})}
}

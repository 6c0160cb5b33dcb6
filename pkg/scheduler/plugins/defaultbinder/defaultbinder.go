// Package defaultbinder binds a pod to its node through the API server.
package defaultbinder

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// name of the plug-in.
const name = "DefaultBinder"

// Binder posts a Binding.
type Binder interface {
	Bind(ctx context.Context, pod *corev1.Pod, node string) error
}

// Plugin is the DefaultBinder plug-in.
type Plugin struct{ Client Binder }

var _ framework.Bind = Plugin{}

// Name is the plug-in's name.
func (Plugin) Name() string { return name }

// Bind binds; the error of the API server is kept in the status.
func (p Plugin) Bind(ctx context.Context, _ *framework.CycleState, pod *model.PodInfo, node string) *framework.Status {
	return framework.AsStatus(p.Client.Bind(ctx, pod.Pod, node))
}

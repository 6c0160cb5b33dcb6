package rollout

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubectl/resource"
)

// workload is an object of a kind that has rollouts.
type workload interface {
	metav1.Object
	// object is the object itself, to be decoded into.
	object() runtime.Object
	// podTemplate is what its pods are made from.
	podTemplate() *corev1.PodTemplateSpec
	// progress returns a message about the rollout's progress, and whether it is done. It is an error if pinned is
	// not 0 and not the current revision.
	progress(pinned int64) (message string, done bool, err error)
	// history returns the templates that it has had, the oldest first.
	history(ctx context.Context, c *resource.Client) ([]revision, error)
	// noHistory returns the error of undo if there is no previous revision; the kinds word it differently.
	noHistory() error
}

// revision is a template that a workload has had.
type revision struct {
	number   int64
	cause    string // annotation kubernetes.io/change-cause
	template corev1.PodTemplateSpec
	object   runtime.Object // what -o shows
	patch    types.PatchType
	back     []byte // the patch that goes back to it
}

// decode returns the workload that info names. An object of another kind is refused.
func decode(i *resource.Info, refusal string) (workload, error) {
	var w workload
	switch i.Mapping.GroupVersionKind.GroupKind() {
	case appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind():
		w = &deployment{}
	case appsv1.SchemeGroupVersion.WithKind("DaemonSet").GroupKind():
		w = &daemonSet{}
	case appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind():
		w = &statefulSet{}
	default:
		return nil, errors.New(refusal)
	}
	return w, resource.FromUnstructured(i.Object, w.object())
}

// pausable returns the Deployment that info names. An object of another kind is refused.
func pausable(i *resource.Info, refusal string) (*deployment, error) {
	w, err := decode(i, refusal)
	if err != nil {
		return nil, err
	}
	d, ok := w.(*deployment)
	if !ok {
		return nil, errors.New(refusal)
	}
	return d, nil
}

// paused reports whether the workload is a paused Deployment; other kinds cannot be paused.
func paused(w workload) bool {
	d, ok := w.(*deployment)
	return ok && d.Spec.Paused
}

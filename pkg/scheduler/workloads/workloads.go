// Package workloads finds the pods that are alike to a pod, to spread them by default: by the Services that select it
// and by the controller that made it.
package workloads

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// Owner returns the selector of the controller that made pods, nil if it is not known or is no ReplicationController,
// ReplicaSet or StatefulSet. Other controllers' pods are not spread by their selector, as upstream.
type Owner func(namespace string, ref *metav1.OwnerReference) labels.Selector

// Workloads knows the Services by what they select. It is safe for concurrent use.
type Workloads struct {
	owner Owner

	mu       sync.RWMutex
	services map[string]*model.LabelIndex[*corev1.Service] // by namespace
}

var _ framework.Workloads = (*Workloads)(nil)

// New returns Workloads without Services.
func New(owner Owner) *Workloads {
	return &Workloads{owner: owner, services: map[string]*model.LabelIndex[*corev1.Service]{}}
}

// ServiceChanged handles an added (old is nil), changed, or deleted (service is nil) Service; old is the very object
// that was given before.
func (w *Workloads) ServiceChanged(old, service *corev1.Service) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old != nil && len(old.Spec.Selector) > 0 {
		w.services[old.Namespace].Remove(labels.SelectorFromValidatedSet(old.Spec.Selector), old)
	}
	if service == nil || len(service.Spec.Selector) == 0 {
		return
	}
	in := w.services[service.Namespace]
	if in == nil {
		in = &model.LabelIndex[*corev1.Service]{}
		w.services[service.Namespace] = in
	}
	in.Add(labels.SelectorFromValidatedSet(service.Spec.Selector), service)
}

// SelectorFor joins the selectors of the Services that select the pod and that of its controller; nil if there are
// none.
func (w *Workloads) SelectorFor(pod *corev1.Pod) labels.Selector {
	set := labels.Set{}
	w.mu.RLock()
	if in := w.services[pod.Namespace]; in != nil {
		in.Candidates(pod.Labels, func(s *corev1.Service) {
			if labels.SelectorFromValidatedSet(s.Spec.Selector).Matches(labels.Set(pod.Labels)) {
				maps.Copy(set, s.Spec.Selector)
			}
		})
	}
	w.mu.RUnlock()
	var more labels.Requirements
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		if sel := w.owner(pod.Namespace, ref); sel != nil {
			more, _ = sel.Requirements()
		}
	}
	if len(set) == 0 && len(more) == 0 {
		return nil
	}
	return labels.SelectorFromValidatedSet(set).Add(more...)
}

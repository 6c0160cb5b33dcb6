package main

import (
	"log/slog"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/apps"
	"bonsai/pkg/apiclient/core"
)

// ownerInformers are the objects by which pods belong together. Only their selectors are kept.
type ownerInformers struct {
	services    *apiclient.Informer[*corev1.Service]
	controllers *apiclient.Informer[*corev1.ReplicationController]
	replicas    *apiclient.Informer[*appsv1.ReplicaSet]
	sets        *apiclient.Informer[*appsv1.StatefulSet]
}

func newOwnerInformers(c *apiclient.Client, log *slog.Logger) *ownerInformers {
	m := &ownerInformers{
		services:    apiclient.NewInformer(core.Services(c), all(), log),
		controllers: apiclient.NewInformer(core.ReplicationControllers(c), all(), log),
		replicas:    apiclient.NewInformer(apps.ReplicaSets(c), all(), log),
		sets:        apiclient.NewInformer(apps.StatefulSets(c), all(), log),
	}
	m.services.Slim = func(s *corev1.Service) {
		spec := corev1.ServiceSpec{Selector: s.Spec.Selector}
		*s = corev1.Service{ObjectMeta: slimMeta(s.ObjectMeta), Spec: spec}
	}
	m.controllers.Slim = func(r *corev1.ReplicationController) {
		spec := corev1.ReplicationControllerSpec{Selector: r.Spec.Selector}
		*r = corev1.ReplicationController{ObjectMeta: slimMeta(r.ObjectMeta), Spec: spec}
	}
	m.replicas.Slim = func(r *appsv1.ReplicaSet) {
		spec := appsv1.ReplicaSetSpec{Selector: r.Spec.Selector}
		*r = appsv1.ReplicaSet{ObjectMeta: slimMeta(r.ObjectMeta), Spec: spec}
	}
	m.sets.Slim = func(s *appsv1.StatefulSet) {
		spec := appsv1.StatefulSetSpec{Selector: s.Spec.Selector}
		*s = appsv1.StatefulSet{ObjectMeta: slimMeta(s.ObjectMeta), Spec: spec}
	}
	return m
}

func (m *ownerInformers) all() []informer {
	return []informer{m.services, m.controllers, m.replicas, m.sets}
}

// selector returns the selector of the controller that ref names; see workloads.Owner.
func (m *ownerInformers) selector(namespace string, ref *metav1.OwnerReference) labels.Selector {
	key := namespace + "/" + ref.Name
	switch ref.APIVersion + " " + ref.Kind {
	case "v1 ReplicationController":
		if o, ok := m.controllers.Get(key); ok && o.UID == ref.UID {
			return labels.SelectorFromValidatedSet(o.Spec.Selector)
		}
	case "apps/v1 ReplicaSet":
		if o, ok := m.replicas.Get(key); ok && o.UID == ref.UID {
			return parsed(o.Spec.Selector)
		}
	case "apps/v1 StatefulSet":
		if o, ok := m.sets.Get(key); ok && o.UID == ref.UID {
			return parsed(o.Spec.Selector)
		}
	}
	return nil
}

// parsed returns s as a selector, nil if it is not valid.
func parsed(s *metav1.LabelSelector) labels.Selector {
	sel, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil
	}
	return sel
}

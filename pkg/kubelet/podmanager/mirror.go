package podmanager

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/runtime"
)

// mirrorPeriod is how often the mirrors are compared with the static pods, besides immediately after each change. It
// retries what failed.
const mirrorPeriod = 10 * time.Second

// Client is the API server as mirror pods need it.
type Client interface {
	CreatePod(ctx context.Context, pod *corev1.Pod) error
	DeletePod(ctx context.Context, namespace, name string, o metav1.DeleteOptions) error
}

// UpdateMirror records a mirror pod as the API server has it. Its status counts only if it shows the present version of
// the static pod.
func (m *Manager) UpdateMirror(mirror *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mirrors[runtime.FullName(mirror)] = mirror
	if static := m.staticLocked(runtime.FullName(mirror)); static != nil && m.mirrorLocked(static) != nil {
		m.cfg.Status.Observe(static.UID, mirror)
		return
	}
	m.due.Notify()
}

// RemoveMirror records that a mirror pod is gone from the API server. The uid is compared: its successor of the same
// name may have been seen already.
func (m *Manager) RemoveMirror(mirror *corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := runtime.FullName(mirror)
	if known := m.mirrors[name]; known != nil && known.UID == mirror.UID {
		delete(m.mirrors, name)
	}
	delete(m.outlived, mirror.UID)
	if static := m.staticLocked(name); static != nil {
		m.cfg.Status.Unobserve(static.UID)
	}
	m.due.Notify()
}

// staticLocked returns the static pod of that full name, nil if there is none.
func (m *Manager) staticLocked(name string) (found *corev1.Pod) {
	for _, p := range m.pods {
		if runtime.IsStatic(p) && runtime.FullName(p) == name {
			found = p
		}
	}
	return found
}

// mirrorLocked returns the mirror that shows this static pod, nil if there is none.
func (m *Manager) mirrorLocked(pod *corev1.Pod) *corev1.Pod {
	mirror := m.mirrors[runtime.FullName(pod)]
	if mirror == nil || !runtime.IsStatic(pod) || m.outlived[mirror.UID] || !matches(mirror, pod) {
		return nil
	}
	return mirror
}

// Node is the owner of the mirror pods: they are deleted with it.
type Node interface {
	// Registered is closed once the Node exists in the API.
	Registered() <-chan struct{}
	// Object returns the Node as the API has it, nil before it is known.
	Object() *corev1.Node
}

// Run keeps the mirror pods equal to the static pods until ctx ends. It begins when the node is registered, because
// mirrors are owned by it, and when synced reports that all pods and mirrors are known: a mirror must not be deleted
// because its manifest has not been read yet.
func (m *Manager) Run(ctx context.Context, node Node, synced func() bool) error {
	t := time.NewTicker(mirrorPeriod)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-node.Registered():
	}
	for {
		if synced() {
			m.syncMirrors(ctx, node)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		case <-m.due:
		}
	}
}

// syncMirrors makes what is missing and deletes what is too much. The lock is not held while the API server answers.
func (m *Manager) syncMirrors(ctx context.Context, node Node) {
	m.mu.Lock()
	static := map[string]*corev1.Pod{}
	for _, p := range m.pods {
		if runtime.IsStatic(p) {
			static[runtime.FullName(p)] = p
		}
	}
	mirrors, outlived := maps.Clone(m.mirrors), maps.Clone(m.outlived)
	m.mu.Unlock()
	for n, p := range static {
		if mirror := mirrors[n]; mirror != nil && outlived[mirror.UID] {
			continue // it is deleted first
		}
		if err := ensureMirror(ctx, m.cfg.Client, p, mirrors[n], node.Object()); err != nil && ctx.Err() == nil {
			m.cfg.Log.Warn("mirror pod not made, it will be tried again", "pod", n, "err", err)
		}
	}
	for n, mirror := range mirrors {
		if static[n] != nil && !outlived[mirror.UID] {
			continue
		}
		if err := deleteMirror(ctx, m.cfg.Client, mirror); err != nil && ctx.Err() == nil {
			m.cfg.Log.Warn("mirror pod not deleted, it will be tried again", "pod", n, "err", err)
		}
	}
}

// mirrorOf returns the object that shows a static pod. It is owned by the node, so that it is deleted with it. The
// annotation has the hash of the manifest, which says what version the mirror shows.
func mirrorOf(pod *corev1.Pod, node *corev1.Node) *corev1.Pod {
	m := pod.DeepCopy()
	m.ObjectMeta = metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, Labels: m.Labels,
		Annotations: m.Annotations}
	m.Annotations[runtime.AnnotationConfigMirror] = pod.Annotations[runtime.AnnotationConfigHash]
	m.Status = corev1.PodStatus{}
	if node != nil {
		yes := true
		m.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: &yes}}
	}
	return m
}

// matches reports whether a mirror shows this version of the static pod and is not being deleted.
func matches(mirror, pod *corev1.Pod) bool {
	return mirror.DeletionTimestamp == nil &&
		mirror.Annotations[runtime.AnnotationConfigMirror] == pod.Annotations[runtime.AnnotationConfigHash]
}

// ensureMirror makes the mirror of a static pod, and replaces one that shows another version: a pod's spec cannot be
// updated in place. mirror is the known one, or nil.
func ensureMirror(ctx context.Context, client Client, pod, mirror *corev1.Pod, node *corev1.Node) error {
	if mirror != nil {
		if matches(mirror, pod) {
			return nil
		}
		if err := deleteMirror(ctx, client, mirror); err != nil {
			return err
		}
	}
	err := client.CreatePod(ctx, mirrorOf(pod, node))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the mirror pod of %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// deleteMirror deletes a mirror pod without a grace period: it only shows containers, and none end with it. The uid is
// a precondition, so that a successor of the same name survives. A mirror that is gone is no error. One that is deleted
// and that only its finalizers keep is left to these.
func deleteMirror(ctx context.Context, client Client, mirror *corev1.Pod) error {
	if g := mirror.DeletionGracePeriodSeconds; mirror.DeletionTimestamp != nil && g != nil && *g == 0 {
		return nil
	}
	zero := int64(0)
	err := client.DeletePod(ctx, mirror.Namespace, mirror.Name,
		metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &mirror.UID}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete the mirror pod %s/%s: %w", mirror.Namespace, mirror.Name, err)
	}
	return nil
}

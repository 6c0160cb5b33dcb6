package main

import (
	"fmt"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient/coordination"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller/controllertest"
)

// node: a node gets its CIDR; when it stays silent while another one does not, it is tainted, and a pod that does not
// tolerate that leaves.
func (w *world) node(t *testing.T) {
	ns := w.makeNamespace(t, "t-node")
	renew := w.healthyNode(t, "n0")
	if _, err := core.Nodes(w.Client).Create(t.Context(),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "p"}, Spec: corev1.PodSpec{
		NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "one"}},
		Tolerations: []corev1.Toleration{
			{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: new(int64(1))},
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
	}}
	if _, err := core.Pods(w.Client).Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "CIDR, TTL, taints and eviction", func() string {
		renew()
		n, err := core.Nodes(w.Client).Get(t.Context(), "", "n1")
		if err != nil {
			return err.Error()
		}
		p, err := core.Pods(w.Client).Get(t.Context(), ns, "p")
		evicted := err == nil && p.DeletionTimestamp != nil || apierrors.IsNotFound(err)
		if !strings.HasPrefix(n.Spec.PodCIDR, "10.244.") || len(n.Spec.Taints) < 2 || !evicted ||
			n.Annotations[corev1.ObjectTTLAnnotationKey] != "0" {
			return fmt.Sprint(n.Annotations, n.Spec, " evicted: ", evicted, err)
		}
		return ""
	})
}

// healthyNode makes a node that has its range and is ready as long as renew is called every now and then.
func (w *world) healthyNode(t *testing.T, name string) (renew func()) {
	nodes, leases := core.Nodes(w.Client), coordination.Leases(w.Client)
	if _, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	lease, err := leases.Create(t.Context(),
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: name}})
	if err != nil {
		t.Fatal(err)
	}
	renew = func() {
		lease.Spec.RenewTime = new(metav1.NowMicro())
		if lease, err = leases.Update(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
	}
	controllertest.Eventually(t, "the range of "+name, func() string {
		renew()
		n, err := nodes.Get(t.Context(), "", name)
		if err != nil || n.Spec.PodCIDR == "" {
			return fmt.Sprint(n.Spec, err)
		}
		n.Status.Conditions = []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
		_, err = nodes.UpdateStatus(t.Context(), n)
		return text(err)
	})
	return renew
}

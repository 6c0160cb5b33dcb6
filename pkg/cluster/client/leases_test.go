package client

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/cluster/plan"
)

// TestAllFresh: the controller manager goes on when no node's lease is old; leases of what is no node do not matter.
func TestAllFresh(t *testing.T) {
	t.Parallel()
	c, now := plan.Config{Nodes: plan.NodesUpTo(2)}, time.Now()
	lease := func(name string, age time.Duration) *coordinationv1.Lease {
		renewed := metav1.NewMicroTime(now.Add(-age))
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
	}
	for name, leases := range map[string][]*coordinationv1.Lease{
		"true":                 {lease("n1", time.Second), lease("n2", freshLease), lease("n7", time.Hour)},
		"true, none":           nil,
		"false":                {lease("n1", time.Second), lease("n2", freshLease+time.Second)},
		"false, never renewed": {{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}},
	} {
		if got := allFresh(c, leases, now); got != strings.HasPrefix(name, "true") {
			t.Errorf("%s: %t", name, got)
		}
	}
}

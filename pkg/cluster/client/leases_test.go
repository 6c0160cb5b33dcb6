package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
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

// TestRenewalOfJoinedNode: a machine that is a node alone has no administrator's kubeconfig, and its kubelet may read
// the lease of its own node alone.
func TestRenewalOfJoinedNode(t *testing.T) {
	t.Parallel()
	c, since := plantest.Config(t), time.Now()
	c.Joined = &plan.Joined{}
	renewed := metav1.NewMicroTime(since.Add(-time.Second))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(&coordinationv1.Lease{
			TypeMeta:   metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
			ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed},
		}); err != nil {
			t.Error(err)
		}
		renewed = metav1.NewMicroTime(since.Add(time.Second))
	}))
	defer server.Close()
	k := clientcmdapi.NewConfig()
	k.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL}
	k.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	k.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*k, c.Layout().Kubeconfig("kubelet-n1")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := WaitRenewal(ctx, c, "n1", since); err != nil {
		t.Error(err)
	}
	if !renewed.After(since) {
		t.Error("it has not waited")
	}
}

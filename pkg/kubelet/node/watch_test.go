package node

import (
	"log/slog"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"bonsai/pkg/kubelet/kubelettest"
)

// After etcd was restored from a snapshot the watch shows an older Node. It is taken, and its status computed at once.
func TestARestoredNodeIsTaken(t *testing.T) {
	t.Parallel()
	node := func(version, kubelet string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u", ResourceVersion: version},
			Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: kubelet}}}
	}
	for name, version := range map[string]string{"older": "99", "of the same version": "100"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset(node("100", "new"))
			n, err := New(Config{Client: kubelettest.Client{Interface: client}, Name: "n1",
				IPs:     []net.IP{net.ParseIP("10.1.2.3")},
				Runtime: &fakeRuntime{}, Machine: fakeMachine{}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() { n.watchSelf(t.Context()); close(done) }()
			t.Cleanup(func() { <-done })
			waitUntil(t, "the Node seen", func() bool { return n.Object() != nil })
			n.seen(node("101", "newest")) // the answer to a write that the watch has not told of
			waitUntil(t, "the restored Node taken", func() bool {
				// The fake watch may start after the change: write again until it is seen.
				if _, err := client.CoreV1().Nodes().Update(t.Context(), node(version, "old"),
					metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				return n.Object().Status.NodeInfo.KubeletVersion == "old"
			})
			select {
			case <-n.cfg.Changed:
			default:
				t.Error("the status of the restored Node is not computed")
			}
		})
	}
}

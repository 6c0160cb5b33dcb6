package apiserver_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/connlimit/connlimittest"
)

// TestFloodOfConnections: of any number of connections without an authenticated request 2,000 are open at most. Users
// get in meanwhile, and a silent watch stays.
func TestFloodOfConnections(t *testing.T) {
	t.Parallel()
	url := start(t, nil)
	events, err := client(t, url, "admin", "application/json").CoreV1().ConfigMaps("default").Watch(t.Context(),
		metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	connlimittest.WantClosed(t, connlimittest.Flood(t, strings.TrimPrefix(url, "https://"), 2010), 10)
	if _, err := client(t, url, "admin", "application/json").CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if e, ok := <-events.ResultChan(); !ok || e.Object.(metav1.Object).GetName() != "x" {
		t.Errorf("the watch says %v, %v", e, ok)
	}
}

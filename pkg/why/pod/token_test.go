package pod

import "testing"

func TestSaysNoToken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want bool
	}{
		{"panic: unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST must be defined", true},
		{"Error building in-cluster kubeconfig: no token", true},
		{"failed to get InClusterConfig", true},
		{`err="couldn't get current server API group list: Get \"http://localhost:8080/api?timeout=32s\""`, true},
		{`Kubernetes cluster unreachable: Get "http://localhost:8080/version": dial tcp 127.0.0.1:8080`, true},
		{`pods is forbidden: User "system:anonymous" cannot list resource "pods"`, true},
		{"Using in-cluster configuration", false},
		{"GET http://localhost:8080/api/health refused", false},
		{"User alice cannot log in", false},
	} {
		if got := saysNoToken([]string{"starting", c.text}); got != c.want {
			t.Errorf("%s: %v", c.text, got)
		}
	}
}

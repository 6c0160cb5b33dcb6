package main

import (
	"context"
	"fmt"
)

const deploymentsPath = "/apis/apps/v1/namespaces/" + namespace + "/deployments"

// applies are server-side applies by one manager, to n objects of a kind: each makes its object, then is sent again as
// it was, and in the end with another value of a field that it has.
func (s *server) applies(ctx context.Context, n int) []step {
	var out []step
	for _, kind := range []struct {
		name, path string
		config     func(i int, value string) []byte
	}{{"pod", podsPath, appliedPod}, {"deployment", deploymentsPath, deployment}} {
		for _, turn := range []struct {
			name, value string
			want        int
		}{{"new", "a", 201}, {"same", "a", 200}, {"changed", "b", 200}} {
			out = append(out, step{name: fmt.Sprintf("apply %ss, %s, 16 clients", kind.name, turn.name), n: n,
				run: func() (float64, error) {
					return s.load.many(ctx, n, 16, func(i int) request {
						return request{method: "PATCH", path: fmt.Sprintf("%s/a-%d?fieldManager=bench", kind.path, i),
							contentType: "application/apply-patch+yaml", body: kind.config(i, turn.value),
							want: turn.want}
					})
				}})
		}
	}
	return out
}

// appliedPod is the usual pod under another name. What of a pod can change is its metadata.
func appliedPod(i int, value string) []byte {
	return podNamed("a", i, value, "")
}

// deployment is one of ordinary size, without any pods.
func deployment(i int, value string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a-%[1]d","labels":{"app":"bench"}},"spec":{"replicas":0,"selector":{"matchLabels":{"app":"a-%[1]d"}},"template":{"metadata":{"labels":{"app":"a-%[1]d"}},"spec":{"containers":[{"name":"app","image":"example.org/app:%[2]s","resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"memory":"256Mi"}},"env":[{"name":"A","value":"1"},{"name":"POD_NAME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],"ports":[{"containerPort":8080,"name":"http"}],"readinessProbe":{"httpGet":{"path":"/healthz","port":"http"}}}],"tolerations":[{"key":"x","operator":"Exists"}]}}}}`, i, value)
}

package metrics

import (
	"strings"
	"testing"
	"time"
)

// busy is a Deployment whose pods use three times the CPU that they ask for until /tmp/rest is there, and its autoscaler.
const busy = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: busy}
spec:
  selector: {matchLabels: {app: busy}}
  template:
    metadata: {labels: {app: busy}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: c
        image: localhost/busybox:1.0
        command: [sh, -c, "until [ -e /tmp/rest ]; do :; done; exec sleep 1000000"]
        resources: {requests: {cpu: 50m}, limits: {cpu: 150m}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: busy}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: busy}
  maxReplicas: 2
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 100}}}]
  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}
`

// autoscales shows an autoscaler that follows the CPU of its pods, up and down.
func autoscales(t *testing.T, u user) {
	u.must(busy, "apply", "-f", "-")
	t.Cleanup(func() { u.must(busy, "delete", "-f", "-") })
	u.await(t, "2", "get", "deployment", "busy", "-o", "jsonpath={.spec.replicas}")
	if got := u.must("", "get", "hpa", "busy", "-o", `jsonpath={.status.conditions[?(@.type=="ScalingActive")].reason}`); got != "ValidMetricFound" {
		t.Errorf("while it scales it says %q", got)
	}
	u.must("", "rollout", "status", "deployment/busy", "--timeout=60s")
	for _, pod := range strings.Fields(u.must("", "get", "pods", "-l", "app=busy", "-o", "name")) {
		u.must("", "exec", pod, "--", "touch", "/tmp/rest")
	}
	u.await(t, "1", "get", "deployment", "busy", "-o", "jsonpath={.spec.replicas}")
	for _, said := range []string{"New size: 2; reason: cpu resource utilization (percentage of request) above target", "New size: 1; reason: All metrics below target"} {
		if out := u.must("", "describe", "hpa", "busy"); !strings.Contains(out, said) {
			t.Errorf("%q is not among the events:\n%s", said, out)
		}
	}
}

// await asks kubectl until it answers want. Metrics are some rounds of the metrics server and of the controller old: each takes 15 s.
func (u user) await(t *testing.T, want string, args ...string) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for tick := time.NewTicker(time.Second); ; <-tick.C {
		got := u.must("", args...)
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("kubectl %v: %q, want %q\n%s", args, got, want, u.must("", "describe", "hpa"))
		}
	}
}

package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// TestMetrics: metrics-server behind an APIService, asked as its clients ask: kubectl get --raw and kubectl top,
// discovery, explain, and somebody who may not.
func TestMetrics(t *testing.T) {
	isLong(t)
	t.Parallel()
	k := kubectl{t: t, binary: "kubectl", namespace: "kube-system"}
	k.run("wait", "--for=condition=Available", "apiservice/v1beta1.metrics.k8s.io", bound(90))
	var nodes struct {
		Kind  string
		Items []struct {
			Metadata struct{ Name string }
			Usage    map[string]string
		}
	}
	k.eventually("metrics of both nodes", func(out string) bool {
		return json.Unmarshal([]byte(out), &nodes) == nil && len(nodes.Items) == 2
	}, "get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes")
	if n := nodes.Items[0]; nodes.Kind != "NodeMetricsList" || n.Usage["cpu"] == "" || n.Usage["memory"] == "" {
		t.Errorf("%+v", nodes)
	}
	for what, form := range map[string]string{
		"node": `^NAME +CPU\(cores\) +CPU\(%\) +MEMORY\(bytes\) +MEMORY\(%\) *\nn1 +\d+m +\d+% +\d+Mi +\d+% *\nn2 +\d+m`,
		"pod":  `^NAME +CPU\(cores\) +MEMORY\(bytes\) *\ncoredns-\S+ +\d+m +\d+Mi`,
	} {
		k.eventually("kubectl top "+what, regexp.MustCompile(form).MatchString, "top", what)
	}
	if out := k.run("api-resources", "--api-group=metrics.k8s.io"); !strings.Contains(out, "NodeMetrics") {
		t.Errorf("api-resources: %s", out)
	}
	if out := k.run("explain", "nodes.metrics.k8s.io"); !strings.Contains(out, "KIND:       NodeMetrics") {
		t.Errorf("explain: %s", out)
	}
	if out, err := k.try("--as=nobody", "get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes"); err == nil ||
		!strings.Contains(out, "forbidden") {
		t.Errorf("who may not: %s, %v", out, err)
	}
}

// busy is a Deployment whose pods use three times the CPU that they ask for until /tmp/rest is there, and its
// autoscaler.
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

// TestAutoscaling: an autoscaler follows the CPU of its pods, up and down. Each step takes rounds of the metrics server
// and of the controller, of 15 s each.
func TestAutoscaling(t *testing.T) {
	isLong(t)
	t.Parallel()
	k := newNamespace(t, "kubectl", "autoscaling")
	k.apply(busy)
	replicas := []string{"get", "deployment", "busy", "-o", "jsonpath={.spec.replicas}"}
	k.eventually("two replicas", is("2"), replicas...)
	// It scales before it writes its status.
	k.eventually("it says why", is("ValidMetricFound"), "get", "hpa", "busy", "-o",
		`jsonpath={.status.conditions[?(@.type=="ScalingActive")].reason}`)
	k.run("rollout", "status", "deployment/busy", bound(60))
	for _, pod := range strings.Fields(k.run("get", "pods", "-l", "app=busy", "-o", "name")) {
		k.run("exec", pod, "--", "touch", "/tmp/rest")
	}
	k.eventually("one replica", is("1"), replicas...)
	for _, said := range []string{"New size: 2; reason: cpu resource utilization (percentage of request) above target",
		"New size: 1; reason: All metrics below target"} {
		k.eventually("what the autoscaler did", contains(said), "describe", "hpa", "busy")
	}
}

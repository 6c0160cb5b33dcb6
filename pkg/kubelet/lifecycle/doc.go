// Package lifecycle decides what happens to a pod on its node. It is pure: from the pod's spec, what the runtime
// reports, what the probes say, the back-offs and the time it computes the actions to take next (Next), and the status
// to report (Status). It does nothing itself, so every rule can be tested as a table.
//
// The rules are those of https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/ and
// https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/.
//
// The pod's worker calls Next, has the executor carry out the plan, and calls Next again with what the runtime reports
// then. No plan is remembered: each round follows from the facts alone, so that a kubelet that restarts goes on where
// it stopped.
package lifecycle

import (
	"encoding/json"
	"hash/fnv"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// Probes are the probe results of one running container. Results of probes that its spec does not have are ignored.
type Probes struct {
	Startup, Readiness, Liveness runtime.ProbeResult
	// PostStart is set once the container's postStart hook has ended.
	PostStart bool
}

// Facts is everything that the decisions are made from. Next and Status read it and change nothing in it.
//
// A round has one Facts, made by the pod's worker.
type Facts struct {
	Pod *corev1.Pod
	// Runtime is what the runtime knows; never nil.
	Runtime *runtime.PodStatus
	// Probes are the results by container id ("containerd://…").
	Probes map[string]Probes
	// BackOff is the time before which a container, by name, must not be started again; without an entry it may start.
	BackOff map[string]time.Time
	// Resize is the state of the pod's resize. Pod has the resources that the node gave it, not those that its newest
	// spec asks for.
	Resize runtime.Resizing
	// Terminating is set when the pod is being ended: nothing is started any more.
	Terminating bool
	Now         time.Time
}

// Hash identifies the part of a container's spec whose change replaces the container: its name and its image. It is
// stored with the container in the runtime, so its algorithm must not change. Resources are left out, because they
// change in place.
func Hash(c *corev1.Container) string {
	b, err := json.Marshal(struct{ Name, Image string }{c.Name, c.Image})
	if err != nil {
		return ""
	}
	h := fnv.New32a()
	h.Write(b)
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}

// restarts reports whether a container that ended with that exit code is to be started again. The first matching rule
// decides; without one, the container's own restart policy, and without that the pod's.
//
// The rules are KEP-5307. An init container with restartPolicy Always is a sidecar, and always restarts.
func restarts(pod *corev1.Pod, c *corev1.Container, exit int32) bool {
	policy := string(pod.Spec.RestartPolicy)
	if c.RestartPolicy != nil {
		policy = string(*c.RestartPolicy)
	}
	switch rule(c, exit) {
	case corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers:
		return true
	}
	switch corev1.RestartPolicy(policy) {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return exit != 0
	}
	return true
}

// hasStarted reports whether a running container has started up: its startup probe succeeded and its postStart hook
// ended. Sidecars hold back the containers after them until then.
func hasStarted(f Facts, c *corev1.Container, s *runtime.Container) bool {
	if s == nil || s.State != runtime.StateRunning {
		return false
	}
	p := f.Probes[s.ID.String()]
	return (c.StartupProbe == nil || p.Startup == runtime.ProbeSuccess) &&
		(c.Lifecycle == nil || c.Lifecycle.PostStart == nil || p.PostStart)
}

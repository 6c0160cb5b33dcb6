package story

import (
	"slices"
	"strings"
)

// meanings say in words what a step is, for readers to whom the names say nothing.
var meanings = map[string]string{
	"apiserver.create":    "the API server stores the object",
	"scheduler.queue":     "waiting in the scheduler's queue",
	"scheduler.decide":    "the scheduler chooses a node",
	"scheduler.plugin":    "a plug-in of the scheduler",
	"scheduler.bind":      "the scheduler binds the pod to the node",
	"kubelet.seen":        "the kubelet sees the pod",
	"kubelet.admit":       "the kubelet checks that the pod fits the node",
	"kubelet.volumes":     "volumes are mounted",
	"kubelet.pull":        "an image is pulled",
	"kubelet.sandbox":     "the sandbox is made, with its network",
	"kubelet.network":     "the sandbox's network is made (CNI)",
	"kubelet.create":      "a container is created",
	"kubelet.start":       "a container is started",
	"kubelet.poststart":   "a postStart hook runs",
	"kubelet.probe":       "a probe has not yet succeeded",
	"kubelet.status":      "the kubelet writes the pod's status",
	"kubelet.ready":       "until Ready is written",
	"kube-proxy.endpoint": "the endpoint gets into the kernel of a node",
	"kubelet.prestop":     "a preStop hook runs, within the grace period",
	"kubelet.stop":        "containers are stopped, within the grace period",
	"kubelet.unsandbox":   "the sandbox is removed",
	"kubelet.cleanup":     "volumes and directories are removed",
	"kubelet.delete":      "the object is deleted from the API",
	// Those of traces that are inferred.
	"scheduler":               "no node has been chosen",
	"scheduler.unschedulable": "the scheduler finds no node that fits",
	"owner":                   "the owner makes the pod",
	noPod:                     "no pod has been made",
	"kubelet.init":            "an init container runs",
	"kubelet.run":             "a container runs until it ends",
	"readiness gates":         "a readiness gate is not yet true",
}

// Meaning says in words what a step of that name is, "" if that is not known.
func Meaning(name string) string { return meanings[name] }

// doings name steps in a sentence about the time between two of them.
var doings = map[string]string{
	"apiserver.create":        "storing the object",
	"scheduler.queue":         "the scheduler's queue",
	"scheduler.decide":        "choosing a node",
	"scheduler.bind":          "binding the pod to the node",
	"kubelet.seen":            "the kubelet seeing the pod",
	"kubelet.admit":           "admitting the pod",
	"kubelet.volumes":         "mounting volumes",
	"kubelet.pull":            "pulling an image",
	"kubelet.sandbox":         "making the sandbox",
	"kubelet.network":         "making the network",
	"kubelet.create":          "creating a container",
	"kubelet.start":           "starting a container",
	"kubelet.poststart":       "a postStart hook",
	"kubelet.probe":           "a probe",
	"kubelet.status":          "writing the status",
	"kubelet.ready":           "writing that the pod is Ready",
	"kube-proxy.endpoint":     "putting the endpoint into the kernel",
	"kubelet.prestop":         "a preStop hook",
	"kubelet.stop":            "stopping containers",
	"kubelet.unsandbox":       "removing the sandbox",
	"kubelet.cleanup":         "removing volumes",
	"kubelet.delete":          "deleting the object",
	"scheduler":               "scheduling",
	"scheduler.unschedulable": "failing to schedule",
	"owner":                   "the owner making the pod",
	noPod:                     "the wait for a pod",
	"kubelet.init":            "an init container",
	"kubelet.run":             "the run of a container",
	"readiness gates":         "the readiness gates",
	"write":                   "a write of the object",
}

// doing names a step in a sentence. Requests and the rounds of controllers have names of many kinds.
func doing(s *Step) string {
	switch words := doings[s.Name]; {
	case words != "":
		return words
	case s.Component == apiserver:
		return "a request to the API server"
	case s.Component == "kube-controller-manager":
		return "a round of a controller"
	case s.Error != "": // an event of a failure, with its reason as its name
		return "a failure"
	}
	return s.Name
}

// gapName says what was waited for between prev and next. Each is nil at its end of the path.
func gapName(prev, next *Step, p *Phase) string {
	switch {
	case next == nil && prev == nil:
		return "no step is known"
	case next == nil && p.Waits != "":
		return "not Ready: " + p.Waits
	case next == nil && p.Name == Startup && p.Done && p.Ended == "":
		return "waiting to become Ready"
	case next == nil && p.Name == Startup && p.Done && (p.Ended == "succeeded" || p.Ended == "failed" || p.Finite):
		return "until it ended"
	case next == nil && p.Name == Startup && p.Done:
		return "until it was deleted"
	case next == nil:
		return "after " + doing(prev)
	}
	switch part, _, _ := strings.Cut(next.Name, "."); {
	case next.Name == "kubelet.run": // of the starts before it no times are kept
		return "before the last run of a container"
	case next.Name == "kubelet.seen", part == "kubelet" && (prev == nil || prev.Component != next.Component):
		return "waiting for the kubelet to see the pod"
	case next.Name == "kubelet.probe":
		return "waiting for the next probe"
	case part == "scheduler" && (prev == nil || prev.Component != next.Component):
		return "waiting for the scheduler to see the pod"
	case part == "kube-proxy":
		return "waiting for kube-proxy to see the endpoint"
	case prev == nil:
		return "before " + doing(next)
	case prev.Error != "" && slices.Contains(begins, next.Name):
		return "waiting to try again after a failure: " + doing(prev)
	case prev.Name == next.Name && prev.Component == next.Component:
		return "between " + doing(prev) + " and the next time"
	}
	return "between " + doing(prev) + " and " + doing(next)
}

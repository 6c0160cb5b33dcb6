package inferred

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/traces"
	"bonsai/pkg/safetext"
	"bonsai/pkg/story"
)

const (
	kubelet   = "kubelet"
	scheduler = "kube-scheduler"
	// container and image are attributes of OpenTelemetry's semantic conventions.
	container = "k8s.container.name"
	image     = "container.image.name"
)

// ownerDelay is how long after its owner a pod may have been created if that is a step of its startup. A pod of an
// older owner was made for another reason, such as a scale.
const ownerDelay = time.Minute

// lateReady is how long after its containers' start a pod may have become Ready without a note: the condition keeps the
// last time alone.
const lateReady = 10 * time.Minute

// pod is what the trace of a pod is made of.
type pod struct {
	spans
	*corev1.Pod
	created, scheduled, sandboxed, ready time.Time
	notes                                []string
}

// Pod is the trace of a pod, with notes about what it lacks. events are the pod's, owner is nil if it is not known.
func Pod(p *corev1.Pod, events []corev1.Event, owner *Owner) (*traces.Trace, []string) {
	s := &pod{Pod: p, created: p.CreationTimestamp.Time}
	s.scheduled, _ = s.condition(corev1.PodScheduled)
	s.sandboxed, _ = s.condition(corev1.PodReadyToStartContainers)
	var isReady bool
	if s.ready, isReady = s.condition(corev1.PodReady); isReady {
		s.add("pod", kubelet, s.created, s.ready, nil)
	}
	if owner != nil && !owner.Created.After(s.created) && s.created.Sub(owner.Created) <= ownerDelay {
		s.add("owner", "kube-controller-manager", owner.Created, s.created,
			map[string]string{"owner": owner.Kind + " " + owner.Name})
	}
	events = inOrder(events)
	if !s.scheduled.IsZero() {
		if precise := find(events, "Scheduled"); precise.Truncate(time.Second).Equal(s.scheduled) {
			s.scheduled = precise
		}
		s.add("scheduler", scheduler, s.created, s.scheduled, nil)
	}
	if !s.sandboxed.IsZero() && !s.scheduled.IsZero() {
		s.add("kubelet.sandbox", kubelet, s.scheduled, s.sandboxed, nil)
	}
	for i := range events {
		s.event(&events[i])
	}
	s.containers(events)
	s.readiness()
	s.ended()
	s.end(events)
	s.writes(&p.ObjectMeta, func(m string) bool {
		return !slices.Contains([]string{"kubelet", "kube-scheduler", "kube-controller-manager"}, m)
	})
	if len(events) == 0 {
		s.notes = append(s.notes, "no events of "+p.Name+" are left (a server keeps them for an hour): image pulls are unknown")
	}
	for i := range s.all {
		if s.all[i].Component == kubelet {
			s.all[i].Instance = p.Spec.NodeName
		}
	}
	return s.trace("Pod", "pods", &p.ObjectMeta), s.notes
}

func (s *pod) condition(kind corev1.PodConditionType) (time.Time, bool) {
	return condition(s.Status.Conditions, func(c *corev1.PodCondition) (string, bool, metav1.Time) {
		return string(c.Type), c.Status == corev1.ConditionTrue, c.LastTransitionTime
	}, string(kind))
}

// find returns when the first event of that reason happened, the zero time if there is none.
func find(events []corev1.Event, reason string) time.Time {
	for i := range events {
		if events[i].Reason == reason {
			first, _ := Times(&events[i])
			return first
		}
	}
	return time.Time{}
}

var (
	// pulled matches a kubelet's message about a pull: its duration, the duration with the wait for other pulls, and
	// the bytes. Older kubelets write only the first.
	pulled = regexp.MustCompile(`^Successfully pulled image "([^"]*)" in ([0-9a-zµ.]+)(?: \(([0-9a-zµ.]+) including waiting\))?(?:\. Image size: (\d+) bytes)?`)
	// part is the field of an event that is about one container.
	part = regexp.MustCompile(`^spec\.(?:initContainers|containers|ephemeralContainers)\{([^}]*)\}$`)
)

// event adds the step that an event tells of.
func (s *pod) event(e *corev1.Event) {
	first, last := Times(e)
	attributes := map[string]string{}
	if name := partOf(e); name != "" {
		attributes[container] = name
	}
	failed := func(name, component string, from, to time.Time) {
		s.add(name, component, from, to, attributes).Error = counted(e)
	}
	switch e.Reason {
	case "FailedScheduling":
		failed("scheduler.unschedulable", scheduler, first, last)
	case "Pulled":
		m := pulled.FindStringSubmatch(e.Message)
		if m == nil {
			break // the image was on the node
		}
		took, err := time.ParseDuration(m[2])
		if waited, e := time.ParseDuration(m[3]); e == nil && waited > took {
			took = waited
		}
		if err != nil || took < 0 {
			break
		}
		attributes[image] = safetext.Text(m[1])
		if bytes, err := strconv.ParseInt(m[4], 10, 64); err == nil {
			attributes["bytes"] = strconv.FormatInt(bytes, 10)
		}
		s.add("kubelet.pull", kubelet, first.Add(-took), first, attributes)
	case "Unhealthy":
		failed("kubelet.probe", kubelet, first, last)
	case "FailedMount", "FailedAttachVolume":
		failed("kubelet.volumes", kubelet, first, last)
	case "FailedCreatePodSandBox":
		failed("kubelet.sandbox", kubelet, first, last)
	case "BackOff", "Failed", "FailedPostStartHook", "InspectFailed", "ErrImageNeverPull":
		failed("kubelet."+e.Reason, kubelet, first, last)
	}
}

// containers adds the runs of init containers and the starts of the others.
func (s *pod) containers(events []corev1.Event) {
	named := func(c *corev1.ContainerStatus) map[string]string { return map[string]string{container: c.Name} }
	for i := range s.Status.InitContainerStatuses {
		c := &s.Status.InitContainerStatuses[i]
		switch state := c.State; {
		case state.Terminated != nil:
			s.add("kubelet.init", kubelet, state.Terminated.StartedAt.Time, state.Terminated.FinishedAt.Time, named(c))
		case state.Running != nil: // a sidecar, or one that is not done
			s.add("kubelet.start", kubelet, state.Running.StartedAt.Time, state.Running.StartedAt.Time, named(c))
		}
	}
	for i := range s.Status.ContainerStatuses {
		c := &s.Status.ContainerStatuses[i]
		if started := startedAt(c); !started.IsZero() {
			from := started
			if created := ofContainer(events, "Created", c.Name); !created.IsZero() && created.Before(started) {
				from = created
			}
			s.add("kubelet.start", kubelet, from, started, named(c))
		}
		for _, t := range ends(c) {
			if !neverRan(t) && !t.StartedAt.IsZero() && !t.StartedAt.Time.Before(s.created) {
				ran(&s.spans, "kubelet.run", c.Name, t, t.StartedAt.Time)
			}
		}
		if c.RestartCount > 0 {
			s.notes = append(s.notes, fmt.Sprintf("container %s restarted %d times: the object keeps the times of the last "+
				"start only", safetext.Text(c.Name), c.RestartCount))
		}
	}
}

// ended adds the span of the whole for a pod that has ended: its object does not keep when it was Ready.
func (s *pod) ended() {
	if s.Status.Phase != corev1.PodSucceeded && s.Status.Phase != corev1.PodFailed {
		return
	}
	if last := lastEnd(s.Pod); !last.IsZero() && s.ready.IsZero() {
		how := strings.ToLower(string(s.Status.Phase))
		if asked, ok := s.deletion(); ok && asked.Before(last) {
			how = story.Stopped // its containers ended because of that
		}
		s.add("pod", kubelet, s.created, last, map[string]string{story.Ended: how})
	}
	s.notes = append(s.notes, s.Name+" has ended: the object does not keep when it was Ready")
}

// ofContainer returns when an event of that reason about that container happened first.
func ofContainer(events []corev1.Event, reason, name string) time.Time {
	for i := range events {
		if events[i].Reason == reason && partOf(&events[i]) == name {
			first, _ := Times(&events[i])
			return first
		}
	}
	return time.Time{}
}

// startedAt is when a container started the last time, the zero time if it has not.
func startedAt(c *corev1.ContainerStatus) time.Time {
	switch state := c.State; {
	case state.Running != nil:
		return state.Running.StartedAt.Time
	case state.Terminated != nil:
		return state.Terminated.StartedAt.Time
	}
	return time.Time{}
}

// readiness adds what lies between the start of the last container and Ready: probes, and readiness gates.
func (s *pod) readiness() {
	if s.ready.IsZero() {
		return
	}
	var started time.Time
	for i := range s.Status.ContainerStatuses {
		if at := startedAt(&s.Status.ContainerStatuses[i]); at.After(started) {
			started = at
		}
	}
	containersReady, ok := s.condition(corev1.ContainersReady)
	if !ok {
		containersReady = s.ready
	}
	name := "kubelet.ready"
	if slices.ContainsFunc(s.Spec.Containers, func(c corev1.Container) bool {
		return c.ReadinessProbe != nil || c.StartupProbe != nil
	}) {
		name = "kubelet.probe"
	}
	if !started.IsZero() && !containersReady.Before(started) {
		s.add(name, kubelet, started, containersReady, nil)
	}
	if !started.IsZero() && s.ready.Sub(started) > lateReady {
		s.notes = append(s.notes, s.Name+" is Ready since long after its containers started: it may have been Ready before")
	}
	if len(s.Spec.ReadinessGates) > 0 && s.ready.After(containersReady) {
		s.add("readiness gates", "others", containersReady, s.ready, nil)
	}
}

// deletion returns when it was asked to delete the pod.
func (s *pod) deletion() (at time.Time, ok bool) {
	if s.DeletionTimestamp == nil {
		return time.Time{}, false
	}
	at = s.DeletionTimestamp.Time
	if s.DeletionGracePeriodSeconds != nil {
		at = at.Add(-time.Duration(*s.DeletionGracePeriodSeconds) * time.Second)
	}
	return at, true
}

// end adds how the pod stops, from the request to delete it on.
func (s *pod) end(events []corev1.Event) {
	from, ok := s.deletion()
	if !ok {
		return
	}
	if s.ready.IsZero() && s.Status.Phase == corev1.PodRunning {
		s.notes = append(s.notes, s.Name+" is being deleted: the object does not keep whether it was Ready before")
	}
	to := from
	for i := range s.Status.ContainerStatuses {
		if t := s.Status.ContainerStatuses[i].State.Terminated; t != nil && t.FinishedAt.After(to) {
			to = t.FinishedAt.Time
		}
	}
	if killing := find(events, "Killing"); killing.After(to) {
		to = killing
	}
	s.add("kubelet.stop", kubelet, from, to, nil)
}

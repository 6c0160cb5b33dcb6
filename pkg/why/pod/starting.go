package pod

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// starting explains a pod on a healthy node whose containers have not been made yet: it waits for volumes, its network
// or its kubelet.
func (q *inquiry) starting(ctx context.Context) []why.Cause {
	var causes []why.Cause
	for i := range q.pod.Spec.Volumes {
		causes = append(causes, q.volume(ctx, &q.pod.Spec.Volumes[i])...)
	}
	if len(causes) > 0 {
		return causes
	}
	if account := q.pod.Spec.ServiceAccountName; account != "" {
		sa, known := why.Get[corev1.ServiceAccount](ctx, q.World, q.pod.Namespace, account)
		if sa == nil && known && len(q.pod.Status.ContainerStatuses) > 0 {
			return []why.Cause{{Code: "ServiceAccountMissing",
				Text: fmt.Sprintf("The ServiceAccount %s of the pod does not exist any more: the pod gets no token.",
					account),
				Evidence: []why.Evidence{why.Absent("ServiceAccount", q.pod.Namespace, account)},
				Fixes: []why.Fix{{Text: "Create it.", Command: why.Command("kubectl create serviceaccount %s%s",
					account,
					q.self.Flag())}}}}
		}
	}
	for _, f := range []struct{ reason, code, text string }{
		{"FailedPostStartHook", "PostStartHookFailed",
			"The postStart hook of a container fails, and the kubelet kills the container for it"},
		// What is not attached cannot be mounted: that is the symptom.
		{"FailedAttachVolume", "FailedAttachVolume", "A volume of the pod cannot be attached to the node"},
		{"FailedMount", "FailedMount", "A volume of the pod cannot be mounted"},
		{"FailedMapVolume", "FailedMount", "A block volume of the pod cannot be mapped"},
		{"FailedCreatePodSandBox", "FailedCreatePodSandBox", "The runtime cannot make the pod's sandbox and network"},
		{"FailedCreatePodContainer", "FailedCreatePodContainer", "The kubelet cannot make the pod's cgroup"},
		{"NetworkNotReady", "NetworkNotReady", "The node's pod network is not ready"},
		{"FailedPrepareDynamicResources", "FailedPrepareDynamicResources", "The devices of the pod cannot be prepared"},
		{"FailedSync", "FailedSync", "The kubelet cannot bring the pod to its state"},
		{"Failed", "Failed", "A container of the pod cannot be started"},
	} {
		e := q.event(f.reason)
		if e == nil || q.superseded(e) {
			continue
		}
		cause := why.Cause{Code: f.code, Text: f.text + ": " + why.Quote(e.Message) + ".",
			Evidence: []why.Evidence{why.SeeEvent(e)}, Because: attachedElsewhere(ctx, q, e.Message)}
		if class := q.pod.Spec.RuntimeClassName; class != nil && strings.Contains(e.Message, "no runtime for") {
			cause.Because = append(cause.Because, why.Cause{Code: "RuntimeHandlerMissing",
				Text: fmt.Sprintf("The RuntimeClass %s names a handler that the runtime of node %s does not have.", *class,
					q.pod.Spec.NodeName), Evidence: []why.Evidence{why.See(q.self, ".spec.runtimeClassName", *class)},
				Fixes: []why.Fix{{Text: "Set the handler up on the nodes, or let the RuntimeClass select the nodes that have " +
					"it (scheduling.nodeSelector)."}}})
		}
		return []why.Cause{cause}
	}
	return q.justStarting()
}

// superseded reports whether a container was started after an event: what it says is over then.
func (q *inquiry) superseded(e *corev1.Event) bool {
	started := q.event("Started")
	return started != nil && why.LastSeen(started).After(why.LastSeen(e))
}

// justStarting explains a pod that is on its way: nothing is wrong yet.
func (q *inquiry) justStarting() []why.Cause {
	if len(q.pod.Status.ContainerStatuses) == 0 {
		scheduled := condition(q.pod, corev1.PodScheduled)
		if scheduled == nil {
			return nil
		}
		return []why.Cause{{Code: "NotSeenByKubelet",
			Text: fmt.Sprintf("The kubelet of node %s has not reported anything about the pod since it was assigned "+
				"%s ago.",
				q.pod.Spec.NodeName, q.since(scheduled.LastTransitionTime.Time)),
			Evidence: []why.Evidence{why.See(q.self, ".status.containerStatuses", "empty")}}}
	}
	if e := q.event("Pulling"); e != nil && !q.superseded(e) {
		if done := q.event("Pulled"); done == nil || why.LastSeen(done).Before(why.LastSeen(e)) {
			return []why.Cause{{Code: "PullingImage", Text: fmt.Sprintf("The node has been pulling an image for %s: "+
				"%s.",
				q.since(why.LastSeen(e)), why.Quote(e.Message)), Evidence: []why.Evidence{why.SeeEvent(e)}}}
		}
	}
	for _, s := range q.pod.Status.ContainerStatuses {
		if s.State.Waiting != nil {
			return []why.Cause{{Code: "Starting",
				Text: fmt.Sprintf("The kubelet of node %s is making the pod's containers (%s).", q.pod.Spec.NodeName,
					s.State.Waiting.Reason),
				Evidence: []why.Evidence{why.See(q.self, statusField("container", s.Name, "state.waiting.reason"),
					s.State.Waiting.Reason)}}}
		}
	}
	return nil
}

// volume explains a volume whose objects are missing.
func (q *inquiry) volume(ctx context.Context, v *corev1.Volume) (causes []why.Cause) {
	who := "volume " + v.Name
	field := fmt.Sprintf(`.spec.volumes[?(@.name=="%s")]`, v.Name)
	add := func(n need) {
		if cause, ok := q.need(ctx, n, who); ok {
			if e := q.event("FailedMount"); e != nil {
				cause.Evidence = append(cause.Evidence, why.SeeEvent(e))
			}
			causes = append(causes, cause)
		}
	}
	items := func(kind, name string, items []corev1.KeyToPath, o *bool) {
		if optional(o) {
			return
		}
		add(need{kind, name, "", field})
		for _, item := range items {
			add(need{kind, name, item.Key, field})
		}
	}
	switch {
	case v.ConfigMap != nil:
		items("ConfigMap", v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
	case v.Secret != nil:
		items("Secret", v.Secret.SecretName, v.Secret.Items, v.Secret.Optional)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				items("ConfigMap", s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional)
			}
			if s.Secret != nil {
				items("Secret", s.Secret.Name, s.Secret.Items, s.Secret.Optional)
			}
		}
	case v.PersistentVolumeClaim != nil:
		causes = append(causes, q.claim(ctx, v.PersistentVolumeClaim.ClaimName, who)...)
	case v.HostPath != nil:
		if e := q.event("FailedMount"); e != nil && strings.Contains(e.Message, "hostPath type check failed") {
			causes = append(causes, why.Cause{Code: "HostPathMissing",
				Text: fmt.Sprintf("The path %s on node %s is not what volume %s expects: %s.", v.HostPath.Path,
					q.pod.Spec.NodeName, v.Name, why.Quote(e.Message)),
				Evidence: []why.Evidence{why.SeeEvent(e), why.See(q.self, field, v.HostPath.Path)}})
		}
	}
	// The first missing object explains the others of the same name.
	return slices.CompactFunc(causes, func(a, b why.Cause) bool { return a.Text == b.Text })
}

// claim explains a claim that is not bound or does not exist.
func (q *inquiry) claim(ctx context.Context, name, who string) []why.Cause {
	claim, known := why.Get[corev1.PersistentVolumeClaim](ctx, q.World, q.pod.Namespace, name)
	if claim == nil {
		if !known {
			return nil
		}
		return []why.Cause{{Code: "ClaimMissing",
			Text: fmt.Sprintf("The PersistentVolumeClaim %s, which %s needs, does not exist in namespace %s.", name,
				who,
				q.pod.Namespace),
			Evidence: []why.Evidence{why.Absent("PersistentVolumeClaim", q.pod.Namespace, name)}}}
	}
	if claim.Status.Phase == corev1.ClaimBound {
		return nil
	}
	o := why.ObjectOf("", "PersistentVolumeClaim", claim)
	cause := why.Cause{Code: "ClaimNotBound",
		Text:     fmt.Sprintf("The PersistentVolumeClaim %s, which %s needs, is %s.", name, who, claim.Status.Phase),
		Evidence: []why.Evidence{why.See(o, ".status.phase", string(claim.Status.Phase))}}
	if because, err := q.Causes(ctx, o); err == nil {
		cause.Because = because
	}
	return []why.Cause{cause}
}

func sorted(keys map[string]bool) []string { return slices.Sorted(maps.Keys(keys)) }

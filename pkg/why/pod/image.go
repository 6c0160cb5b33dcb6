package pod

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// pullFailures are what runtimes and registries say, and what it means. The first that matches counts: "not found" also
// stands in the answers of registries that want credentials, so those come first.
var pullFailures = []struct {
	code  string
	words []string // one of them
	text  string
	fix   string
}{
	{"ImageTooManyRequests", []string{"toomanyrequests", "429 Too Many", "rate limit"},
		"the registry refuses because too many images were pulled", "Log in to the registry, or pull from a mirror."},
	{"ImagePullDenied", []string{"unauthorized", "authentication required", "pull access denied", "insufficient_scope",
		"403 Forbidden", "denied:", "no basic auth credentials", "authorization failed"},
		"the registry demands credentials, or has no such repository and does not say so",
		"Check the name, and add a Secret of type kubernetes.io/dockerconfigjson to imagePullSecrets."},
	{"ImagePlatform", []string{"no match for platform", "no matching manifest for"},
		"the image is not built for the node's operating system and architecture",
		"Build it for that platform, or select other nodes."},
	{"ImageTrust", []string{"x509:", "certificate signed by unknown authority", "certificate has expired"},
		"the registry's certificate is not trusted by the node", "Add its authority to the runtime's configuration."},
	{"ImagePlainHTTP", []string{"server gave HTTP response to HTTPS client"},
		"the registry speaks HTTP, and the runtime expects HTTPS",
		"Declare the registry as insecure in the runtime's configuration."},
	{"RegistryUnknown", []string{"no such host", "server misbehaving", "Temporary failure in name resolution"},
		"the node cannot find the registry's name in DNS", "Check the registry in the image's name."},
	{"RegistryUnreachable", []string{"connection refused", "i/o timeout", "no route to host", "network is unreachable",
		"deadline exceeded", "TLS handshake timeout", "connection reset"},
		"the node does not reach the registry", "Check the node's network, or load the image into the node."},
	{"NoSpaceForImage", []string{"no space left on device"}, "the node's disk is full", "Remove images from the node."},
	{"ImageNotFound", []string{"not found", "manifest unknown", "does not exist", "name unknown", "NAME_UNKNOWN"},
		"the registry has no such image or tag", "Check the name and the tag."},
}

// image explains a container whose image the node does not get.
func (q *inquiry) image(ctx context.Context, c *corev1.Container, s *corev1.ContainerStatus, what string) why.Cause {
	w := s.State.Waiting
	cause := why.Cause{Code: "ImagePullFailed", Evidence: []why.Evidence{
		why.See(q.self, statusField(what, c.Name, "state.waiting.reason"), w.Reason),
		why.See(q.self, specField(what, c.Name, "image"), c.Image)}}
	intro := fmt.Sprintf("Node %s cannot get the image %s of %s %s", q.pod.Spec.NodeName, c.Image, what, c.Name)
	switch w.Reason {
	case "InvalidImageName":
		cause.Code, cause.Text = "InvalidImageName", fmt.Sprintf("%q, the image of %s %s, is no valid image name: %s.",
			c.Image, what, c.Name, why.Quote(w.Message))
		cause.Fixes = []why.Fix{q.setImage(c)}
		return cause
	case "ErrImageNeverPull":
		cause.Code, cause.Text = "ImageNeverPull", intro+": it is not on the node, and imagePullPolicy is Never."
		cause.Evidence = append(cause.Evidence, why.See(q.self, specField(what, c.Name, "imagePullPolicy"), "Never"))
		cause.Fixes = []why.Fix{{Text: "Load the image into the node, or set imagePullPolicy to IfNotPresent."}}
		return cause
	}
	message := w.Message
	if e := q.pullEvent(c.Image); e != nil {
		message = e.Message
		cause.Evidence = append(cause.Evidence, why.SeeEvent(e))
	}
	cause.Text = intro + "."
	if message != "" && !strings.HasPrefix(message, "Back-off") {
		cause.Text = intro + ": " + why.Quote(message) + "."
	}
	for _, f := range pullFailures {
		if !containsOne(message, f.words...) {
			continue
		}
		cause.Code, cause.Text = f.code, fmt.Sprintf("%s: %s. The kubelet says: %s.", intro, f.text, why.Quote(message))
		cause.Fixes = []why.Fix{{Text: f.fix}}
		if f.code == "ImageNotFound" {
			cause.Fixes = []why.Fix{q.setImage(c)}
		}
		break
	}
	cause.Because = append(onNode(ctx, q, c, what), pullSecrets(ctx, q, c.Image, cause.Code == "ImagePullDenied")...)
	return cause
}

// onNode explains an image that the node has already: by its policy, the kubelet asks the registry at each start.
func onNode(ctx context.Context, q *inquiry, c *corev1.Container, what string) []why.Cause {
	n, _ := why.Get[corev1.Node](ctx, q.World, "", q.pod.Spec.NodeName)
	if n == nil || c.ImagePullPolicy != corev1.PullAlways {
		return nil
	}
	for _, image := range n.Status.Images {
		if !slices.Contains(image.Names, c.Image) {
			continue
		}
		fix := why.Fix{Text: "Set imagePullPolicy to IfNotPresent: the image of the node is taken then."}
		if owner := q.workload(); owner != nil && slices.Contains(withTemplates, owner.Kind) {
			fix.Command = why.Command("kubectl patch %s%s -p %s", owner.Arg(), owner.Flag(), fmt.Sprintf(
				`{"spec":{"template":{"spec":{%q:[{"name":%q,"imagePullPolicy":"IfNotPresent"}]}}}}`, listOf(what), c.Name))
		}
		return []why.Cause{{Code: "ImageOnNode", Fixes: []why.Fix{fix},
			Text: fmt.Sprintf("Node %s has the image already, but imagePullPolicy is Always: the kubelet asks the registry at "+
				"each start of the container.", n.Name),
			Evidence: []why.Evidence{
				why.See(q.self, specField(what, c.Name, "imagePullPolicy"), string(c.ImagePullPolicy)),
				why.See(why.ObjectOf("", "Node", n), ".status.images[*].names", c.Image)}}}
	}
	return nil
}

// pullEvent returns the newest event that says why a pull failed.
func (q *inquiry) pullEvent(image string) *corev1.Event {
	for _, e := range q.events {
		if e.Reason == "Failed" && strings.Contains(e.Message, "pull") && strings.Contains(e.Message, image) {
			return e
		}
	}
	return nil
}

func (q *inquiry) setImage(c *corev1.Container) why.Fix {
	target := q.self
	if owner := q.workload(); owner != nil {
		target = *owner
	}
	return why.Fix{Text: "Set an image that exists.",
		Command: why.Command("kubectl set image %s%s %s=IMAGE", target.Arg(), target.Flag(), c.Name)}
}

// workload is the object whose template the pod was made from: the Deployment of its ReplicaSet, or else its
// controller; nil for a pod of its own.
func (q *inquiry) workload() *why.Object {
	owner := why.Controller(q.pod)
	if owner == nil {
		return nil
	}
	hash := q.pod.Labels["pod-template-hash"]
	if name, ok := strings.CutSuffix(owner.Name, "-"+hash); ok && owner.Kind == "ReplicaSet" && hash != "" {
		return &why.Object{Group: "apps", Kind: "Deployment", Namespace: q.pod.Namespace, Name: name}
	}
	return owner
}

func containsOne(text string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

func containsAll(text string, words ...string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

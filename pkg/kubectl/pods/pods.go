// Package pods finds the pod and container a command means, and streams to and from them.
package pods

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/kubectl/resource"
)

// DefaultContainer is the annotation that names the container commands mean by default.
const DefaultContainer = "kubectl.kubernetes.io/default-container"

// Mapping is the pods resource; it needs no discovery.
func Mapping() *meta.RESTMapping {
	return &meta.RESTMapping{
		Resource:         corev1.SchemeGroupVersion.WithResource("pods"),
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Scope:            meta.RESTScopeNamespace,
	}
}

// Get reads the pod called name. If there is none, the error is about the pod, whether its namespace exists or not.
func Get(ctx context.Context, c *resource.Client, namespace, name string) (*corev1.Pod, error) {
	path, err := resource.ObjectPath(Mapping(), namespace, name)
	if err != nil {
		return nil, err
	}
	data, err := c.Do(ctx, http.MethodGet, path, nil, nil, "Accept", resource.JSON)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(data, pod); err != nil {
		return nil, fmt.Errorf("decode pod %s: %w", name, err)
	}
	return pod, nil
}

// Log reads what the container has written so far.
func Log(ctx context.Context, c *resource.Client, pod *corev1.Pod, container string) ([]byte, error) {
	path, err := resource.ObjectPath(Mapping(), pod.Namespace, pod.Name, "log")
	if err != nil {
		return nil, err
	}
	return c.Do(ctx, http.MethodGet, path, resource.Query(&corev1.PodLogOptions{Container: container}), nil)
}

// List reads the pods with the given labels.
func List(ctx context.Context, c *resource.Client, namespace, selector string) ([]corev1.Pod, error) {
	list, err := c.List(ctx, Mapping(), namespace, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	out := make([]corev1.Pod, len(list.Items))
	for i := range list.Items {
		if err := resource.FromUnstructured(&list.Items[i], &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Find returns the pods that arg ("NAME", "pod/NAME", "deployment/NAME") means, the best one to talk to first. It waits
// up to wait for the pods of a workload that has none yet.
func Find(ctx context.Context, c *resource.Client, namespace, arg string, wait time.Duration) ([]corev1.Pod, error) {
	if !strings.Contains(arg, "/") {
		u, err := c.Get(ctx, Mapping(), namespace, arg)
		if err != nil {
			return nil, err
		}
		pod := corev1.Pod{}
		if err := resource.FromUnstructured(u, &pod); err != nil {
			return nil, err
		}
		return []corev1.Pod{pod}, nil
	}
	infos, err := c.Resolve(ctx, resource.Request{Args: []string{arg}, Namespace: namespace})
	if err != nil {
		return nil, err
	}
	info := infos[0]
	if info.Mapping.GroupVersionKind.GroupKind() == (schema.GroupKind{Kind: "Pod"}) {
		pod := &corev1.Pod{}
		if err := resource.FromUnstructured(info.Object, pod); err != nil {
			return nil, err
		}
		return []corev1.Pod{*pod}, nil
	}
	selector, err := Selector(info.Object)
	if none := (*NoSelectorError)(nil); errors.As(err, &none) {
		return nil, fmt.Errorf("cannot attach to *v1.%s: %w", none.Kind, err)
	}
	if err != nil {
		return nil, err
	}
	return waitForPods(ctx, c, namespace, selector, wait)
}

// waitForPods lists pods until there is one.
func waitForPods(ctx context.Context, c *resource.Client, namespace, selector string, wait time.Duration) ([]corev1.Pod,
	error) {
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		found, err := List(ctx, c, namespace, selector)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			sort.SliceStable(found, func(i, j int) bool { return rank(&found[i]) > rank(&found[j]) })
			return found, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout.C:
			return nil, errors.New("timed out waiting for the condition")
		case <-tick.C:
		}
	}
}

// rank is higher for pods that are better to talk to: assigned, running, ready ones.
func rank(p *corev1.Pod) int {
	n := 0
	if p.Spec.NodeName != "" {
		n++
	}
	if p.Status.Phase == corev1.PodRunning {
		n += 2
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			n += 4
		}
	}
	return n
}

// NoSelectorError says that objects of Kind have no pods.
type NoSelectorError struct{ Kind string }

func (e *NoSelectorError) Error() string {
	return fmt.Sprintf("selector for *v1.%s not implemented", e.Kind)
}

// Selector is the label selector of a workload's or service's pods, a *NoSelectorError if the object is neither.
func Selector(u *unstructured.Unstructured) (string, error) {
	raw, ok, _ := unstructured.NestedMap(u.Object, "spec", "selector")
	if !ok {
		return "", &NoSelectorError{Kind: u.GetKind()}
	}
	if _, isLabelSelector := raw["matchLabels"]; !isLabelSelector && raw["matchExpressions"] == nil {
		set, _, err := unstructured.NestedStringMap(u.Object, "spec", "selector")
		return labels.SelectorFromSet(set).String(), err
	}
	var s struct {
		Spec struct{ Selector metav1.LabelSelector }
	}
	data, err := u.MarshalJSON()
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return "", err
	}
	selector, err := metav1.LabelSelectorAsSelector(&s.Spec.Selector)
	if err != nil {
		return "", err
	}
	return selector.String(), nil
}

// Container is the container that name means: the named one, the one of the annotation, or the first, which is then
// said on note if there are several. note may be nil.
func Container(pod *corev1.Pod, name string, note io.Writer) (string, error) {
	names := containers(pod)
	all := strings.Join(names, ", ")
	if name != "" {
		for _, n := range names {
			if strings.Fields(n)[0] == name {
				return name, nil
			}
		}
		return "", &NoContainerError{Pod: pod.Name, Name: name, All: all}
	}
	if d := pod.Annotations[DefaultContainer]; d != "" {
		for _, c := range pod.Spec.Containers {
			if c.Name == d {
				return d, nil
			}
		}
	}
	if len(pod.Spec.Containers) == 0 {
		return "", fmt.Errorf("pod %s has no containers", pod.Name)
	}
	first := pod.Spec.Containers[0].Name
	if len(names) > 1 && note != nil {
		fmt.Fprintf(note, "Defaulted container %q out of: %s\n", first, all)
	}
	return first, nil
}

// NoContainerError says that the pod has no container called Name; All names those it has.
type NoContainerError struct{ Pod, Name, All string }

func (e *NoContainerError) Error() string {
	return fmt.Sprintf("container %s is not valid for pod %s out of: %s", e.Name, e.Pod, e.All)
}

// containers names all containers, those that are not regular ones with what they are.
func containers(pod *corev1.Pod) []string {
	var out []string
	for _, c := range pod.Spec.Containers {
		out = append(out, c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		out = append(out, c.Name+" (ephem)")
	}
	for _, c := range pod.Spec.InitContainers {
		out = append(out, c.Name+" (init)")
	}
	return out
}

// NotFound words a pod that is not there as logs and its like do.
func NotFound(err error, namespace string) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("error from server (NotFound): %s in namespace %q", err.Error(), namespace)
	}
	return err
}

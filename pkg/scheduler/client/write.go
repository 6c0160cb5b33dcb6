package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// magic begins every protobuf object on the wire.
const magic = "k8s\x00"

// post sends obj as protobuf to path and reads the answer only if it is an error. It does without client-go's request
// builder: there is one such request per scheduled pod.
func (c *Client) post(ctx context.Context, path, apiVersion, kind string, obj interface{ Marshal() ([]byte, error) }) error {
	raw, err := obj.Marshal()
	if err != nil {
		return fmt.Errorf("encoding a %s: %w", kind, err)
	}
	body, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}).Marshal()
	if err != nil {
		return fmt.Errorf("encoding a %s: %w", kind, err)
	}
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(append([]byte(magic), body...)))
	if err != nil {
		return err
	}
	req.Header["Content-Type"] = []string{runtime.ContentTypeProtobuf}
	req.Header["Accept"] = []string{runtime.ContentTypeJSON}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("posting a %s to %s: %w", kind, path, err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 == 2 {
		_, err = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("posting a %s to %s: %s: %w", kind, path, res.Status, err)
	}
	status := metav1.Status{}
	if json.Unmarshal(answer, &status) == nil && status.Status == metav1.StatusFailure {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return fmt.Errorf("posting a %s to %s: %s", kind, path, res.Status)
}

// Bind assigns pod to node. Errors are the API server's: a conflict says that the pod has a node or is being deleted.
func (c *Client) Bind(ctx context.Context, pod *corev1.Pod, node string) error {
	return c.post(ctx, "/api/v1/namespaces/"+pod.Namespace+"/pods/"+pod.Name+"/binding", "v1", "Binding", &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	})
}

// CreateEvent writes an event.
func (c *Client) CreateEvent(ctx context.Context, e *eventsv1.Event) error {
	return c.post(ctx, "/apis/events.k8s.io/v1/namespaces/"+e.Namespace+"/events", "events.k8s.io/v1", "Event", e)
}

// PatchEvent sets the series of an event.
func (c *Client) PatchEvent(ctx context.Context, namespace, name string, series *eventsv1.EventSeries) error {
	patch, err := json.Marshal(map[string]any{"series": series})
	if err != nil {
		return fmt.Errorf("encoding a series: %w", err)
	}
	return c.groups[eventsv1.SchemeGroupVersion].Patch(types.MergePatchType).Namespace(namespace).Resource("events").Name(name).Body(patch).Do(ctx).Error()
}

// PatchStatus sets a condition of the pod and, if nominated is not nil, status.nominatedNodeName.
func (c *Client) PatchStatus(ctx context.Context, pod *corev1.Pod, condition *corev1.PodCondition, nominated *string) error {
	status := map[string]any{}
	if condition != nil {
		status["conditions"] = []*corev1.PodCondition{condition}
	}
	if nominated != nil {
		status["nominatedNodeName"] = *nominated
		if *nominated == "" {
			status["nominatedNodeName"] = nil
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encoding a pod status: %w", err)
	}
	return c.core().Patch(types.StrategicMergePatchType).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("status").Body(patch).Do(ctx).Error()
}

// Preempt marks pod as disrupted by the scheduler and deletes it, if it is still the same pod; nil if it is gone already.
func (c *Client) Preempt(ctx context.Context, pod *corev1.Pod, condition *corev1.PodCondition) error {
	if err := c.PatchStatus(ctx, pod, condition, nil); err != nil {
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return fmt.Errorf("marking pod %s/%s as preempted: %w", pod.Namespace, pod.Name, err)
	}
	err := c.core().Delete().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).
		Body(&metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}).Do(ctx).Error()
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting preempted pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// Budgets lists the disruption budgets of all namespaces; none if the server does not know the kind.
func (c *Client) Budgets(ctx context.Context) ([]policyv1.PodDisruptionBudget, error) {
	out := &policyv1.PodDisruptionBudgetList{}
	err := c.groups[policyv1.SchemeGroupVersion].Get().Resource("poddisruptionbudgets").Do(ctx).Into(out)
	if apierrors.IsNotFound(err) || errors.Is(err, context.Canceled) {
		return nil, nil
	}
	return out.Items, err
}

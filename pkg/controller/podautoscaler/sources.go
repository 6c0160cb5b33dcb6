package podautoscaler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/served"
)

// sources are the three metrics APIs: of resources (https://github.com/kubernetes/metrics), custom and external ones.
//
// They are aggregated APIs, served by add-ons: any of them may be missing, and appear at any time.
type sources struct {
	client *apiclient.Client
	kinds  *served.Finder
}

// The APIs' answers, as far as they are read. A duration is text: "10s".
type (
	podMetrics struct {
		Metadata   metav1.ObjectMeta  `json:"metadata"`
		Timestamp  metav1.Time        `json:"timestamp"`
		Window     metav1.Duration    `json:"window"`
		Containers []containerMetrics `json:"containers"`
	}
	containerMetrics struct {
		Name  string              `json:"name"`
		Usage corev1.ResourceList `json:"usage"`
	}
	// metricValue is one of custom or external metrics.
	metricValue struct {
		DescribedObject corev1.ObjectReference `json:"describedObject"`
		Timestamp       metav1.Time            `json:"timestamp"`
		WindowSeconds   *int64                 `json:"windowSeconds"`
		Value           resource.Quantity      `json:"value"`
	}
	items[T any] struct {
		Items []T `json:"items"`
	}
)

// defaultWindow is what is taken for the window of custom metrics that name none.
const defaultWindow = time.Minute

// read reads one metric; selector is that of the target's pods. A metric whose source does not match its type gives an
// empty reading, which propose refuses.
func (s *sources) read(ctx context.Context, namespace, selector string, m *autoscalingv2.MetricSpec) reading {
	var r reading
	switch {
	case m.Resource != nil && m.Type == autoscalingv2.ResourceMetricSourceType:
		r.pods, r.err = s.resource(ctx, namespace, selector, m.Resource.Name, "")
	case m.ContainerResource != nil && m.Type == autoscalingv2.ContainerResourceMetricSourceType:
		r.pods, r.err = s.resource(ctx, namespace, selector, m.ContainerResource.Name, m.ContainerResource.Container)
	case m.Pods != nil && m.Type == autoscalingv2.PodsMetricSourceType:
		r.pods, r.err = s.ofPods(ctx, namespace, selector, m.Pods.Metric)
	case m.Object != nil && m.Type == autoscalingv2.ObjectMetricSourceType:
		r.values, r.err = s.ofObject(ctx, namespace, m.Object.DescribedObject, m.Object.Metric)
	case m.External != nil && m.Type == autoscalingv2.ExternalMetricSourceType:
		r.values, r.err = s.external(ctx, namespace, m.External.Metric)
	}
	return r
}

// resource reads what pods, or their containers of a name (not ""), use. A pod with a missing value is left out.
//
// One list for all pods of the selector. Pods that the API has not measured yet are simply not in it.
func (s *sources) resource(ctx context.Context, namespace, selector string, name corev1.ResourceName,
	container string) (map[string]podValue, error) {
	var list items[podMetrics]
	at := apiclient.ResourcePath{GroupVersion: schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1beta1"},
		Namespace: namespace, Resource: "pods"}
	if err := s.client.ReadJSON(ctx, at, url.Values{"labelSelector": {selector}}, &list); err != nil {
		return nil, fmt.Errorf("unable to fetch metrics from resource metrics API: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, errors.New("no metrics returned from resource metrics API")
	}
	out := map[string]podValue{}
	for _, p := range list.Items {
		if n, ok := used(p.Containers, name, container); ok {
			out[p.Metadata.Name] = podValue{n, p.Timestamp.Time, p.Window.Duration}
		}
	}
	return out, nil
}

// used is what the containers use together. It is false if one of them has no value: a partial sum would look like a
// pod with little to do.
func used(containers []containerMetrics, name corev1.ResourceName, container string) (sum int64, ok bool) {
	for _, c := range containers {
		if container != "" && c.Name != container {
			continue
		}
		q, known := c.Usage[name]
		if !known {
			return 0, false
		}
		sum, ok = sum+q.MilliValue(), true
	}
	return sum, ok
}

const customGroup = "custom.metrics.k8s.io"

// custom reads metrics at a place of the custom metrics API, in the newest version that is served.
func (s *sources) custom(ctx context.Context, at apiclient.ResourcePath, query url.Values) ([]metricValue, error) {
	const fetching = "unable to fetch metrics from custom metrics API: %w"
	version, err := s.customVersion(ctx)
	if err != nil {
		return nil, fmt.Errorf(fetching, err)
	}
	at.GroupVersion = schema.GroupVersion{Group: customGroup, Version: version}
	var list items[metricValue]
	if err := s.client.ReadJSON(ctx, at, query, &list); err != nil {
		return nil, fmt.Errorf(fetching, err)
	}
	return list.Items, nil
}

// customVersion reads the group's discovery each time, because an adapter may be installed or upgraded at any time. It
// costs one small request.
func (s *sources) customVersion(ctx context.Context) (string, error) {
	var g metav1.APIGroup
	body, err := s.client.Document(ctx, "/apis/"+customGroup, runtime.ContentTypeJSON)
	if err == nil {
		err = json.Unmarshal(body, &g)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	for _, version := range []string{"v1beta2", "v1beta1"} {
		for _, v := range g.Versions {
			if v.Version == version {
				return version, nil
			}
		}
	}
	return "", fmt.Errorf("no custom metrics API (%s) registered", customGroup)
}

// ofPods reads a custom metric of all pods of the selector in one request: the name * stands for each of them.
func (s *sources) ofPods(ctx context.Context, namespace, selector string,
	m autoscalingv2.MetricIdentifier) (map[string]podValue, error) {
	query, err := withSelector(url.Values{"labelSelector": {selector}}, "metricLabelSelector", m.Selector)
	if err != nil {
		return nil, err
	}
	all, err := s.custom(ctx, apiclient.ResourcePath{Namespace: namespace, Resource: "pods", Name: "*", Below: m.Name},
		query)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("no metrics returned from custom metrics API")
	}
	out := map[string]podValue{}
	for _, v := range all {
		window := defaultWindow
		if v.WindowSeconds != nil {
			window = time.Duration(*v.WindowSeconds) * time.Second
		}
		out[v.DescribedObject.Name] = podValue{v.Value.MilliValue(), v.Timestamp.Time, window}
	}
	return out, nil
}

// ofObject reads one value of one object. More or fewer than one is an error, because nothing says which one is meant.
func (s *sources) ofObject(ctx context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference,
	m autoscalingv2.MetricIdentifier) ([]int64, error) {
	query, err := withSelector(url.Values{}, "metricLabelSelector", m.Selector)
	if err != nil {
		return nil, err
	}
	at, err := s.objectPath(ctx, namespace, ref, m.Name)
	if err != nil {
		return nil, err
	}
	all, err := s.custom(ctx, at, query)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("unable to fetch metrics from custom metrics API: the custom metrics API server returned %d results when we asked for exactly one", len(all))
	}
	return []int64{all[0].Value.MilliValue()}, nil
}

// objectPath is where an object's metric is: a namespace's own are below it.
func (s *sources) objectPath(ctx context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference,
	metric string) (apiclient.ResourcePath, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return apiclient.ResourcePath{}, err
	}
	kind := gv.WithKind(ref.Kind).GroupKind()
	if kind == (schema.GroupKind{Kind: "Namespace"}) {
		return apiclient.ResourcePath{Namespace: ref.Name, Resource: "metrics", Name: metric}, nil
	}
	r, err := s.kinds.ForGroupKind(ctx, kind)
	if err != nil {
		return apiclient.ResourcePath{}, err
	}
	at := apiclient.ResourcePath{Resource: r.GroupResource().String(), Name: ref.Name, Below: metric}
	if r.Namespaced {
		at.Namespace = namespace
	}
	return at, nil
}

// external reads all values of an external metric that its selector matches.
func (s *sources) external(ctx context.Context, namespace string, m autoscalingv2.MetricIdentifier) ([]int64, error) {
	query, err := withSelector(url.Values{}, "labelSelector", m.Selector)
	if err != nil {
		return nil, err
	}
	var list items[metricValue]
	at := apiclient.ResourcePath{
		GroupVersion: schema.GroupVersion{Group: "external.metrics.k8s.io", Version: "v1beta1"},
		Namespace:    namespace, Resource: m.Name}
	if err := s.client.ReadJSON(ctx, at, query, &list); err != nil {
		return nil, fmt.Errorf("unable to fetch metrics from external metrics API: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, errors.New("no metrics returned from external metrics API")
	}
	out := make([]int64, len(list.Items))
	for i, v := range list.Items {
		out[i] = v.Value.MilliValue()
	}
	return out, nil
}

// withSelector adds a metric's selector to a query, if it has one.
func withSelector(query url.Values, name string, s *metav1.LabelSelector) (url.Values, error) {
	if s == nil {
		return query, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, err
	}
	query.Set(name, selector.String())
	return query, nil
}

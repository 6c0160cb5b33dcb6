// Package podnodeselector is the admission plug-in PodNodeSelector, which is off unless it is enabled: a namespace says
// on which nodes its pods run. The pods get the node selector of its annotation, or that of the whole cluster, and may
// name no labels that contradict it, nor any beside those that the configuration lists for the namespace.
package podnodeselector

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
)

// annotation of a namespace is the node selector of its pods.
const annotation = "scheduler.alpha.kubernetes.io/node-selector"

// clusterDefault is the name in the configuration for the selector of namespaces without the annotation.
const clusterDefault = "clusterDefaultNodeSelector"

// Configuration is what the configuration file says: node selectors by namespace, beside the cluster's.
type Configuration struct {
	// Cluster is the selector of namespaces that have no annotation.
	Cluster labels.Set
	// Allowed are the labels that the pods of a namespace may select.
	Allowed map[string]labels.Set
}

// ReadConfiguration reads a configuration strictly.
func ReadConfiguration(text []byte) (*Configuration, error) {
	doc, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	var file struct {
		Selectors map[string]string `json:"podNodeSelectorPluginConfig"`
	}
	strict, err := sigsjson.UnmarshalStrict(doc, &file)
	if err = errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	c, at := &Configuration{Allowed: map[string]labels.Set{}}, field.NewPath("podNodeSelectorPluginConfig")
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(file.Selectors)) {
		set, err := labels.ConvertSelectorToLabelsMap(file.Selectors[name])
		if err != nil {
			errs = append(errs, field.Invalid(at.Key(name), file.Selectors[name], err.Error()))
			continue
		}
		if name == clusterDefault {
			c.Cluster = set
		} else {
			c.Allowed[name] = set
		}
	}
	return c, errs.ToAggregate()
}

type plugin struct {
	namespaces registry.Getter
	*Configuration
}

// New returns the plug-in, which changes no namespace that it reads. Without a configuration only annotations count.
func New(namespaces registry.Getter, c *Configuration) admission.Plugin {
	if c == nil {
		c = &Configuration{}
	}
	p := plugin{namespaces, c}
	return admission.Plugin{Name: "PodNodeSelector", Mutator: p, Validator: p}
}

// Admit implements admission.Mutator.
func (p plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, selector, err := p.check(ctx, a)
	if err != nil || pod == nil || len(selector) == 0 {
		return err
	}
	pod.Spec.NodeSelector = labels.Merge(pod.Spec.NodeSelector, selector)
	return p.allowed(a, pod)
}

// Validate implements admission.Validator: a later plug-in, or a webhook, may have changed the pod.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, _, err := p.check(ctx, a)
	if err != nil || pod == nil {
		return err
	}
	return p.allowed(a, pod)
}

// check returns a new pod that does not contradict the selector of its namespace, and that selector; nil for all else.
func (p plugin) check(ctx context.Context, a *admission.Attributes) (*corev1.Pod, labels.Set, error) {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is(corev1.Resource("pods")) || a.Operation != admission.Create {
		return nil, nil, nil
	}
	ns, err := registry.Find[*corev1.Namespace](ctx, p.namespaces, "", a.Namespace)
	if err != nil {
		return nil, nil, err
	}
	selector := p.Cluster
	if text, ok := ns.Annotations[annotation]; ok {
		if selector, err = labels.ConvertSelectorToLabelsMap(text); err != nil {
			return nil, nil, admission.Fail("%v", err)
		}
	}
	if labels.Conflicts(selector, pod.Spec.NodeSelector) {
		return nil, nil, admission.Forbid(a, "pod node label selector conflicts with its namespace node label selector")
	}
	return pod, selector, nil
}

// allowed refuses a pod that selects other labels than its namespace may.
func (p plugin) allowed(a *admission.Attributes, pod *corev1.Pod) error {
	list := p.Allowed[a.Namespace]
	if len(list) == 0 {
		return nil
	}
	for key, value := range pod.Spec.NodeSelector {
		if may, ok := list[key]; !ok || may != value {
			return admission.Forbid(a, "pod node label selector labels conflict with its namespace whitelist")
		}
	}
	return nil
}

// Package extender asks scheduler extenders: programs that filter and score the nodes of a pod, choose the victims of
// preemption or bind, over HTTP (k8s.io/kube-scheduler/extender/v1). One that is slow or gone delays only pods that it
// concerns, but these for its timeout, and the pods behind them: that is the price of extenders, and why plug-ins are
// preferred.
package extender

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// Extender is one extender of the configuration.
type Extender struct {
	config  configv1.Extender
	managed map[corev1.ResourceName]bool // empty: all pods are of interest
	client  *client
	log     *slog.Logger
}

var _ framework.Extender = (*Extender)(nil)

// New returns the extender of a configuration, whose values are valid.
func New(c configv1.Extender, log *slog.Logger) (*Extender, error) {
	cl, err := newClient(&c)
	if err != nil {
		return nil, fmt.Errorf("extender %q: %w", c.URLPrefix, err)
	}
	e := &Extender{config: c, managed: map[corev1.ResourceName]bool{}, client: cl, log: log}
	for _, r := range c.ManagedResources {
		e.managed[corev1.ResourceName(r.Name)] = true
	}
	return e, nil
}

// Name is the extender's URL.
func (e *Extender) Name() string { return e.config.URLPrefix }

// Ignorable reports whether the configuration says so.
func (e *Extender) Ignorable() bool { return e.config.Ignorable }

// Preempts and Binds report whether the configuration has a verb for that.
func (e *Extender) Preempts() bool { return e.config.PreemptVerb != "" }

// Binds reports whether the extender binds.
func (e *Extender) Binds() bool { return e.config.BindVerb != "" }

// Concerns reports whether a container of the pod asks for a resource that the extender manages, or it manages none.
func (e *Extender) Concerns(pod *model.PodInfo) bool {
	if len(e.managed) == 0 {
		return true
	}
	for _, list := range [][]corev1.Container{pod.Pod.Spec.Containers, pod.Pod.Spec.InitContainers} {
		for i := range list {
			for _, resources := range []corev1.ResourceList{list[i].Resources.Requests, list[i].Resources.Limits} {
				for name := range resources {
					if e.managed[name] {
						return true
					}
				}
			}
		}
	}
	return false
}

// arguments are what a filter or prioritize call is about.
func (e *Extender) arguments(pod *model.PodInfo, nodes []*model.NodeInfo) *extenderv1.ExtenderArgs {
	args := &extenderv1.ExtenderArgs{Pod: pod.Pod}
	if e.config.NodeCacheCapable {
		names := make([]string, len(nodes))
		for i, n := range nodes {
			names[i] = n.Name()
		}
		args.NodeNames = &names
		return args
	}
	args.Nodes = &corev1.NodeList{Items: make([]corev1.Node, len(nodes))}
	for i, n := range nodes {
		args.Nodes.Items[i] = *n.Node
	}
	return args
}

// FilterNodes asks the extender's filter verb. Without one all nodes are kept.
func (e *Extender) FilterNodes(ctx context.Context, pod *model.PodInfo, nodes []*model.NodeInfo) ([]*model.NodeInfo,
	map[*model.NodeInfo]*framework.Status, error) {
	if e.config.FilterVerb == "" {
		return nodes, nil, nil
	}
	var answer extenderv1.ExtenderFilterResult
	if err := e.call(ctx, e.config.FilterVerb, e.arguments(pod, nodes), &answer); err != nil {
		return nil, nil, err
	}
	if answer.Error != "" {
		return nil, nil, e.failed(errors.New(answer.Error))
	}
	byName := make(map[string]*model.NodeInfo, len(nodes))
	for _, n := range nodes {
		byName[n.Name()] = n
	}
	var names []string
	switch {
	case e.config.NodeCacheCapable && answer.NodeNames != nil:
		names = *answer.NodeNames
	case answer.Nodes != nil:
		for i := range answer.Nodes.Items {
			names = append(names, answer.Nodes.Items[i].Name)
		}
	}
	kept := make([]*model.NodeInfo, 0, len(names))
	for _, name := range names {
		n := byName[name]
		if n == nil {
			return nil, nil, fmt.Errorf(
				"extender %q claims a filtered node %q which is not found in the input node list", e.Name(), name)
		}
		kept = append(kept, n)
	}
	refused := map[*model.NodeInfo]*framework.Status{}
	for _, r := range []struct {
		nodes extenderv1.FailedNodesMap
		code  framework.Code
		// the later one counts
	}{{answer.FailedNodes, framework.Unschedulable},
		{answer.FailedAndUnresolvableNodes, framework.UnschedulableAndUnresolvable}} {
		for name, why := range r.nodes {
			if n := byName[name]; n != nil {
				refused[n] = framework.NewStatus(r.code, why)
			}
		}
	}
	return kept, refused, nil
}

// ScoreNodes asks the extender's prioritize verb, whose scores go from 0 to 10.
func (e *Extender) ScoreNodes(ctx context.Context, pod *model.PodInfo, nodes []*model.NodeInfo, totals []int64) error {
	if e.config.PrioritizeVerb == "" {
		return nil
	}
	var answer extenderv1.HostPriorityList
	if err := e.call(ctx, e.config.PrioritizeVerb, e.arguments(pod, nodes), &answer); err != nil {
		return err
	}
	scores := make(map[string]int64, len(answer))
	for _, p := range answer {
		scores[p.Host] = p.Score
	}
	for i, n := range nodes {
		totals[i] += scores[n.Name()] * e.config.Weight * (framework.MaxNodeScore / extenderv1.MaxExtenderPriority)
	}
	return nil
}

// Bind asks the extender's bind verb.
func (e *Extender) Bind(ctx context.Context, pod *model.PodInfo, node string) error {
	p := pod.Pod
	var answer extenderv1.ExtenderBindingResult
	if err := e.call(ctx, e.config.BindVerb,
		&extenderv1.ExtenderBindingArgs{PodName: p.Name, PodNamespace: p.Namespace, PodUID: p.UID, Node: node},
		&answer); err != nil {
		return err
	}
	if answer.Error != "" {
		return e.failed(errors.New(answer.Error))
	}
	return nil
}

// call asks the extender, and logs what went wrong: if the extender is ignorable, the error goes no further.
func (e *Extender) call(ctx context.Context, verb string, args, answer any) error {
	if err := e.client.call(ctx, verb, args, answer); err != nil {
		e.log.Warn("asking an extender failed", "extender", e.Name(), "verb", verb, "ignorable", e.config.Ignorable,
			"err", err)
		return e.failed(err)
	}
	return nil
}

func (e *Extender) failed(err error) error { return fmt.Errorf("extender %q: %w", e.Name(), err) }

package extender

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// SparePods asks the extender's preempt verb. A node or pod in the answer that was not asked about is an error.
func (e *Extender) SparePods(ctx context.Context, pod *model.PodInfo,
	victims map[string]framework.Victims) (map[string]framework.Victims, error) {
	args := &extenderv1.ExtenderPreemptionArgs{Pod: pod.Pod}
	if e.config.NodeCacheCapable {
		args.NodeNameToMetaVictims = meta(victims)
	} else {
		args.NodeNameToVictims = whole(victims)
	}
	var answer extenderv1.ExtenderPreemptionResult
	if err := e.call(ctx, e.config.PreemptVerb, args, &answer); err != nil {
		return nil, err
	}
	out := make(map[string]framework.Victims, len(answer.NodeNameToMetaVictims))
	for node, chosen := range answer.NodeNameToMetaVictims {
		offered, ok := victims[node]
		if !ok {
			return nil, fmt.Errorf("extender %q claims a node %q for preemption which was not offered", e.Name(), node)
		}
		if chosen == nil {
			continue
		}
		v := framework.Victims{Violations: chosen.NumPDBViolations}
		byUID := make(map[string]*model.PodInfo, len(offered.Pods))
		for _, p := range offered.Pods {
			byUID[string(p.Pod.UID)] = p
		}
		for _, m := range chosen.Pods {
			p := byUID[m.UID]
			if p == nil {
				return nil, fmt.Errorf("extender %q: pod with UID %q is no candidate for preemption on node %q",
					e.Name(), m.UID, node)
			}
			v.Pods = append(v.Pods, p)
		}
		out[node] = v
	}
	return out, nil
}

// whole are victims as an extender wants them that knows no pods.
func whole(victims map[string]framework.Victims) map[string]*extenderv1.Victims {
	out := make(map[string]*extenderv1.Victims, len(victims))
	for node, v := range victims {
		pods := make([]*corev1.Pod, len(v.Pods))
		for i, p := range v.Pods {
			pods[i] = p.Pod
		}
		out[node] = &extenderv1.Victims{Pods: pods, NumPDBViolations: v.Violations}
	}
	return out
}

// meta are victims as an extender wants them that keeps pods and nodes itself.
func meta(victims map[string]framework.Victims) map[string]*extenderv1.MetaVictims {
	out := make(map[string]*extenderv1.MetaVictims, len(victims))
	for node, v := range victims {
		pods := make([]*extenderv1.MetaPod, len(v.Pods))
		for i, p := range v.Pods {
			pods[i] = &extenderv1.MetaPod{UID: string(p.Pod.UID)}
		}
		out[node] = &extenderv1.MetaVictims{Pods: pods, NumPDBViolations: v.Violations}
	}
	return out
}

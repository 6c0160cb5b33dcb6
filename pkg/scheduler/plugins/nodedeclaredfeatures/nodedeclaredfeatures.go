// Package nodedeclaredfeatures keeps pods off nodes that do not say that they know what the pod's spec needs
// (https://kubernetes.io/docs/concepts/scheduling-eviction/node-declared-features/).
package nodedeclaredfeatures

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	declared "k8s.io/component-helpers/nodedeclaredfeatures"

	"bonsai/api/kubeversion"
	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// name of the plug-in.
const name = "NodeDeclaredFeatures"

// reason why a node is refused.
const reason = "node(s) didn't match Pod's required features"

// Plugin is the NodeDeclaredFeatures plug-in; make it with New.
type Plugin struct {
	// version is that of the API: what every node of it knows is not asked for.
	version *version.Version
}

// New returns the plug-in.
func New() Plugin { return Plugin{kubeversion.Parsed()} }

var (
	_ framework.Filter      = Plugin{}
	_ framework.NodeLocal   = Plugin{}
	_ framework.Interested  = Plugin{}
	_ framework.FieldReader = Plugin{}
)

// Name is the plug-in's name.
func (Plugin) Name() string { return name }

// Fields returns what the features of nodes are inferred from: see the library's InferForScheduling of each.
func (Plugin) Fields() framework.Fields {
	return framework.Fields{
		Pod: []string{
			"spec.containers.restartPolicyRules", "spec.initContainers.restartPolicyRules",
			"spec.hostNetwork", "spec.hostUsers",
			"spec.containers.volumeMounts.bindMountOptions", "spec.initContainers.volumeMounts.bindMountOptions",
			"spec.ephemeralContainers.volumeMounts.bindMountOptions",
		},
		Node: []string{"status.declaredFeatures"},
	}
}

// needs are the features that a pod's node must have.
func (p Plugin) needs(pod *corev1.Pod) (declared.FeatureSet, error) {
	return declared.DefaultFramework.InferForPodScheduling(&declared.PodInfo{Spec: &pod.Spec, Status: &pod.Status},
		p.version)
}

// Reads which features the pod needs.
func (p Plugin) Reads(pod *model.PodInfo, k *model.Key) {
	needs, err := p.needs(pod.Pod)
	if err == nil && needs.IsEmpty() {
		k.Num(0)
		return
	}
	k.Str(needs.String(), fmt.Sprint(err))
}

// Filter refuses nodes that do not declare all features that the pod needs. No pod that goes changes that.
func (p Plugin) Filter(_ *framework.CycleState, pod *model.PodInfo, node *model.NodeInfo) *framework.Status {
	needs, err := p.needs(pod.Pod)
	if err != nil {
		return framework.AsStatus(fmt.Errorf("what a pod asks of its node: %w", err))
	}
	match, err := declared.DefaultFramework.MatchNode(needs, node.Node)
	switch {
	case err != nil:
		return framework.AsStatus(fmt.Errorf("what node %s knows: %w", node.Name(), err))
	case !match.IsMatch:
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, reason)
	}
	return nil
}

// EventsToRegister: a node comes that has what the pod needs, or declares it now.
func (p Plugin) EventsToRegister() []clusterevent.Interest {
	return []clusterevent.Interest{
		{Kind: clusterevent.Node, Action: clusterevent.Add | clusterevent.UpdateDeclaredFeatures,
			Reads: model.KeyOf(p.Reads),
			Hint: func(pod *model.PodInfo, e clusterevent.Event) bool {
				n, ok := e.New.(*corev1.Node)
				return !ok || p.Filter(nil, pod, model.NewNodeInfo(n)).IsSuccess()
			}}}
}

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/plan"
)

// labelledAnnotation lists the labels that the cluster's configuration has given a node. So a label that leaves the
// configuration leaves the node, and one that somebody else has set stays.
const labelledAnnotation = "bonsai.io/configured-labels"

// DescribeNodes gives the nodes, as the administrator, the labels and taints of the configuration. A kubelet sets them
// only when it creates its Node, and may not set all of the labels.
//
// start.WaitNodes calls it once the nodes are Ready. The first failure ends it, and the next start sets the rest.
// Labels need no version in their patch: it names single keys, and others stay as they are.
func DescribeNodes(ctx context.Context, c plan.Config) error {
	api, err := Core(c)
	if err != nil {
		return err
	}
	for _, n := range c.Nodes {
		err := ThroughRestarts(ctx, func() error {
			node, err := core.Nodes(api).Get(ctx, "", n.Name())
			if err != nil {
				return err
			}
			taints, err := taintPatch(node, n.Taints)
			if err == nil && taints != nil { // taints come first: their patch is for the version that was read
				err = core.Nodes(api).SendPatch(ctx, "", n.Name(), types.MergePatchType, taints)
			}
			if err != nil {
				return err
			}
			labels, err := labelPatch(node, n.Labels)
			if err == nil && labels != nil {
				err = core.Nodes(api).SendPatch(ctx, "", n.Name(), types.MergePatchType, labels)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("set labels and taints of the node %s: %w", n.Name(), err)
		}
	}
	return nil
}

// labelPatch returns the merge patch (RFC 7386) that gives a node the wanted labels and removes those of an earlier
// configuration; nil if there is nothing to change.
func labelPatch(node *corev1.Node, wanted map[string]string) ([]byte, error) {
	change := map[string]any{}
	for key, value := range wanted {
		if was, has := node.Labels[key]; !has || was != value {
			change[key] = value
		}
	}
	before := node.Annotations[labelledAnnotation]
	for key := range strings.SplitSeq(before, ",") {
		if _, still := wanted[key]; !still && key != "" {
			// In a merge patch, null removes a key.
			change[key] = nil
		}
	}
	now := strings.Join(slices.Sorted(maps.Keys(wanted)), ",")
	if len(change) == 0 && now == before {
		return nil, nil
	}
	metadata := map[string]any{"labels": change, "annotations": map[string]any{labelledAnnotation: now}}
	if now == "" {
		metadata["annotations"] = map[string]any{labelledAnnotation: nil}
	}
	return json.Marshal(map[string]any{"metadata": metadata})
}

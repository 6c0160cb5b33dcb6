package addon

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/tracestore"
)

// follows reports whether an object is one of the API of traces that says where it is and by which authority: nodes
// come and go, and an authority's certificate is renewed.
func follows(obj *unstructured.Unstructured) bool {
	return obj.GetLabels()["app.kubernetes.io/name"] == tracestore.Name && obj.GetKind() != "Service"
}

// FollowNodes leads to the API of traces by the nodes as they are now.
func FollowNodes(ctx context.Context, c plan.Config) error {
	if !c.HasAddon(tracestore.Addon) {
		return nil
	}
	api, err := connect(c)
	if err != nil {
		return err
	}
	return client.ThroughRestarts(ctx, func() error { return patchEndpoints(ctx, c, api) })
}

// patchEndpoints changes the endpoints alone: whoever changes nodes has no manifests. A user may have deleted the
// slice, which the next start makes again.
func patchEndpoints(ctx context.Context, c plan.Config, api dynamic.Interface) error {
	var endpoints []any
	for _, n := range c.Nodes {
		endpoints = append(endpoints, endpoint(c, n))
	}
	patch, err := json.Marshal(map[string]any{"endpoints": endpoints})
	if err != nil {
		return err
	}
	resource := api.Resource(addonResources[schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}])
	_, err = resource.Namespace(metav1.NamespaceSystem).Patch(ctx, tracestore.Service, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: "bonsai"})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("change the endpoints of the API of traces: %w", err)
	}
	return nil
}

// endpoint is a node as an item of an EndpointSlice's list.
func endpoint(c plan.Config, n plan.Node) map[string]any {
	return map[string]any{"addresses": []any{c.NodeIP(n).String()}, "conditions": map[string]any{"ready": true},
		"nodeName": n.Name()}
}

// apply brings an object to what it is to be.
func apply(ctx context.Context, api dynamic.Interface, obj *unstructured.Unstructured) error {
	r, err := resourceOf(api, obj)
	if err != nil {
		return err
	}
	options := metav1.ApplyOptions{FieldManager: "bonsai", Force: true}
	if _, err := r.Apply(ctx, obj.GetName(), obj, options); err != nil {
		return fmt.Errorf("apply %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return nil
}

// removeTraces deletes what leads to the API of traces. Nobody answers there any longer, and with an API that does not
// answer no namespace can be deleted: it might have objects in it.
func removeTraces(ctx context.Context, c plan.Config, api dynamic.Interface) error {
	objects, err := Read(c, tracestore.Addon)
	if err != nil {
		return err
	}
	for _, obj := range slices.Backward(objects) { // the APIService first
		r, err := resourceOf(api, obj)
		if err != nil {
			return err
		}
		if err := client.ThroughRestarts(ctx, func() error {
			err := r.Delete(ctx, obj.GetName(), metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		}); err != nil {
			return fmt.Errorf("delete %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

// tracesFamily is the type of addresses of the nodes' endpoints.
func tracesFamily(c plan.Config) string {
	if c.IPFamily == plan.IPv6 {
		return "IPv6"
	}
	return "IPv4"
}

// tracesEndpoints are the nodes as items of an EndpointSlice's list.
func tracesEndpoints(c plan.Config) string {
	var all []string
	for _, n := range c.Nodes {
		text, _ := json.Marshal(endpoint(c, n)) // of texts alone
		all = append(all, string(text))
	}
	return strings.Join(all, ", ")
}

// authority is the certificate of the cluster's authority, as caBundle has it. Without the file, of a cluster that has
// never been started, it is empty.
func authority(c plan.Config) string {
	pem, _ := os.ReadFile(c.Layout().PKI("ca.crt"))
	return `"` + base64.StdEncoding.EncodeToString(pem) + `"`
}

package served

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/apiclient"
)

// Metadata returns a client with c's identity that sees only the metadata of objects, of any kind the server has.
func Metadata(c *apiclient.Client) (metadata.Interface, error) {
	m, err := metadata.NewForConfigAndClient(metadata.ConfigFor(c.Config()), c.HTTP())
	if err != nil {
		return nil, fmt.Errorf("building the metadata client: %w", err)
	}
	return m, nil
}

// MetadataListWatch lists and watches the metadata of all objects of a resource, as *metav1.PartialObjectMetadata.
func MetadataListWatch(c metadata.Interface, gvr schema.GroupVersionResource) cache.ListerWatcher {
	r := c.Resource(gvr)
	return apiclient.PlainListWatch{ListWatch: &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return r.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return r.Watch(ctx, o)
		},
	}}
}

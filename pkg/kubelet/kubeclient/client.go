// Package kubeclient is the client of the API server for the kubelet's parts: the few calls that they make, on the
// kinds that they know. What it says to the server is pkg/apiclient's.
package kubeclient

import (
	"context"

	authnv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/coordination"
	"bonsai/pkg/apiclient/core"
)

// Client speaks to the API server with one identity. It is safe for concurrent use.
type Client struct {
	api      *apiclient.Client
	pods     *apiclient.Resource[*corev1.Pod]
	nodes    *apiclient.Resource[*corev1.Node]
	leases   *apiclient.Resource[*coordinationv1.Lease]
	accounts *apiclient.Resource[*corev1.ServiceAccount]
}

// New returns a Client with the identity of config; nothing is sent yet.
func New(config *rest.Config) (*Client, error) {
	s, err := apiclient.NewScheme(corev1.AddToScheme, coordinationv1.AddToScheme, authnv1.AddToScheme,
		nodev1.AddToScheme, storagev1.AddToScheme,
		apiclient.Only(resourcev1.SchemeGroupVersion, &resourcev1.ResourceClaim{}, &resourcev1.ResourceSlice{}),
		apiclient.Only(certificatesv1.SchemeGroupVersion, &certificatesv1.CertificateSigningRequest{},
			&certificatesv1.CertificateSigningRequestList{}, &certificatesv1.PodCertificateRequest{},
			&certificatesv1.PodCertificateRequestList{}, &certificatesv1.ClusterTrustBundle{},
			&certificatesv1.ClusterTrustBundleList{}))
	if err != nil {
		return nil, err
	}
	c, err := apiclient.New(config, s)
	if err != nil {
		return nil, err
	}
	return &Client{api: c, pods: core.Pods(c), nodes: core.Nodes(c), leases: coordination.Leases(c),
		accounts: core.ServiceAccounts(c)}, nil
}

// Scheme knows the kinds it speaks of.
func (c *Client) Scheme() *runtime.Scheme { return c.api.Scheme() }

// Objects lists and watches a resource of the core group, in one namespace or, with "", in all. field is a field
// selector, "" for everything. It begins with the newest state: what a pod needs is not older than the pod, and a
// kubelet that was restarted runs no pod that is gone.
func (c *Client) Objects(resource, namespace, field string) cache.ListerWatcher {
	return c.api.ListWatch(corev1.SchemeGroupVersion.WithResource(resource),
		apiclient.Selection{Namespace: namespace, Fields: field, Newest: true})
}

// RuntimeClasses lists and watches all RuntimeClasses.
func (c *Client) RuntimeClasses() cache.ListerWatcher {
	return c.api.ListWatch(nodev1.SchemeGroupVersion.WithResource("runtimeclasses"), apiclient.Selection{Newest: true})
}

// WatchCSIDriver lists and watches one CSIDriver.
func (c *Client) WatchCSIDriver(name string) cache.ListerWatcher {
	return c.api.ListWatch(storagev1.SchemeGroupVersion.WithResource("csidrivers"),
		apiclient.Selection{Fields: "metadata.name=" + name, Newest: true})
}

// Events returns the sink of the recorder of events. Its requests end with ctx.
func (c *Client) Events(ctx context.Context) record.EventSink { return core.NewEventSink(ctx, c.api) }

package addon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/localimage"
	"bonsai/pkg/cluster/plan/tracestore"
)

// addonResources are the kinds that add-ons may use. The table saves a start the discovery of all resources.
var addonResources = map[schema.GroupKind]schema.GroupVersionResource{
	{Kind: "ServiceAccount"}: {Version: "v1", Resource: "serviceaccounts"},
	{Kind: "ConfigMap"}:      {Version: "v1", Resource: "configmaps"},
	{Kind: "PersistentVolumeClaim"}: {Version: "v1",
		Resource: "persistentvolumeclaims"},
	{Kind: "Service"}: {Version: "v1", Resource: "services"},
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: {Group: "discovery.k8s.io", Version: "v1",
		Resource: "endpointslices"},
	{Group: "apps", Kind: "Deployment"}: {Group: "apps", Version: "v1",
		Resource: "deployments"},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: {Group: "apiregistration.k8s.io", Version: "v1",
		Resource: "apiservices"},
	{Group: "networking.k8s.io", Kind: "IngressClass"}: {Group: "networking.k8s.io", Version: "v1",
		Resource: "ingressclasses"},
	{Group: "storage.k8s.io", Kind: "StorageClass"}: {Group: "storage.k8s.io", Version: "v1",
		Resource: "storageclasses"},
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}: {Group: "rbac.authorization.k8s.io",
		Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}: {Group: "rbac.authorization.k8s.io",
		Version: "v1", Resource: "rolebindings"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}: {Group: "rbac.authorization.k8s.io",
		Version: "v1", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: {Group: "rbac.authorization.k8s.io",
		Version: "v1", Resource: "clusterrolebindings"},
}

// Install creates the objects of the add-ons that do not exist. It changes no existing object, since a user may have
// adapted it, except those that say where the API of traces is.
//
// It stops at the first object that fails. Those created before stay, and the next start goes on after them. It removes
// nothing either, except the API of traces where that is off: PrintLeft names what an add-on that was switched off has
// left.
func Install(ctx context.Context, c plan.Config) error {
	api, err := connect(c)
	if err != nil {
		return err
	}
	objects, err := ReadAll(c)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if err := client.ThroughRestarts(ctx, func() error {
			if follows(obj) {
				return apply(ctx, api, obj)
			}
			return createMissing(ctx, api, obj)
		}); err != nil {
			return err
		}
	}
	if !c.HasAddon(tracestore.Addon) {
		return removeTraces(ctx, c, api)
	}
	return nil
}

// connect returns the administrator's client.
func connect(c plan.Config) (dynamic.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Layout().Kubeconfig(plan.Administrator))
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // one object after the other, and a start waits for them: no limit of the client's own
	return dynamic.NewForConfig(config)
}

// resourceOf returns the client for an object's resource, in its namespace.
func resourceOf(api dynamic.Interface, obj *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	resource, known := addonResources[obj.GroupVersionKind().GroupKind()]
	if !known {
		return nil, fmt.Errorf("add-on %s: kind %s is not supported", obj.GetName(), obj.GroupVersionKind())
	}
	if obj.GetNamespace() != "" {
		return api.Resource(resource).Namespace(obj.GetNamespace()), nil
	}
	return api.Resource(resource), nil
}

// createMissing creates an object unless it exists.
func createMissing(ctx context.Context, api dynamic.Interface, obj *unstructured.Unstructured) error {
	r, err := resourceOf(api, obj)
	if err != nil {
		return err
	}
	// It looks first: the API server refuses a second Service with the same cluster IP for its address, and not because
	// it exists already.
	if _, err := r.Get(ctx, obj.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	_, err = r.Create(ctx, obj,
		metav1.CreateOptions{FieldManager: "bonsai", FieldValidation: metav1.FieldValidationStrict})
	if err == nil {
		return nil
	}
	// another start may have created it meanwhile
	if _, again := r.Get(ctx, obj.GetName(), metav1.GetOptions{}); again != nil {
		return fmt.Errorf("create %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return nil
}

// ReadAll returns the objects of all add-ons that the cluster has, with the cluster's values filled in. Their order is
// that of the files' names and of the documents in a file, so each start creates them in the same order.
func ReadAll(c plan.Config) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(c.Addons, "*.yaml")
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		name = strings.TrimSuffix(name, ".yaml")
		if !c.HasAddon(name) {
			continue
		}
		of, err := Read(c, name)
		if err != nil {
			return nil, err
		}
		objects = append(objects, of...)
	}
	return objects, nil
}

// Read returns the objects of one add-on, with the cluster's values filled in.
func Read(c plan.Config, name string) ([]*unstructured.Unstructured, error) {
	data, err := fs.ReadFile(c.Addons, name+".yaml")
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	// The values go into the text before it is parsed, so that they can stand within a string.
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(addonValues(c).Replace(string(data))), 4096)
	for {
		obj := &unstructured.Unstructured{}
		if err := decoder.Decode(obj); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the add-on %s: %w", name, err)
		}
		if len(obj.Object) > 0 { // a document of comments alone
			objects = append(objects, obj)
		}
	}
}

// addonValues replaces the names of values in manifests. No name begins with another one: the replacer takes the first
// of its names that fits, not the longest. Without egress the cluster's DNS answers NXDOMAIN for other
// names at once, and asks no server that it cannot reach.
func addonValues(c plan.Config) *strings.Replacer {
	upstream := "template ANY ANY {\n            rcode NXDOMAIN\n        }"
	if c.Egress {
		upstream = "forward . /etc/resolv.conf"
	}
	return strings.NewReplacer("$DNS_IP", c.Networks().DNSIP().String(), "$COREDNS_IMAGE", localimage.CoreDNS,
		"$UPSTREAM", upstream,
		"$BUSYBOX_IMAGE", localimage.Busybox, "$METRICS_SERVER_IMAGE", localimage.MetricsServer, "$TRAEFIK_IMAGE",
		localimage.Traefik,
		"$REGISTRY_IMAGE", localimage.DockerRegistry, "$REGISTRY_IP", c.Networks().RegistryIP().String(),
		"$REGISTRY_ADDRESS",
		c.Networks().RegistryAddress(),
		"$REGISTRY_NODE_PORT", strconv.Itoa(plan.RegistryNodePort), "$REGISTRY_HOST", plan.RegistryHost,
		"$TRACES_PORT", strconv.Itoa(tracestore.Port), "$TRACES_FAMILY", tracesFamily(c), "$TRACES_ENDPOINTS",
		tracesEndpoints(c), "$CA_BUNDLE", authority(c))
}

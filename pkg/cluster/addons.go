package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// addonResources are the kinds that add-ons may use.
var addonResources = map[schema.GroupKind]schema.GroupVersionResource{
	{Kind: "ServiceAccount"}:                                         {Version: "v1", Resource: "serviceaccounts"},
	{Kind: "ConfigMap"}:                                              {Version: "v1", Resource: "configmaps"},
	{Kind: "PersistentVolumeClaim"}:                                  {Version: "v1", Resource: "persistentvolumeclaims"},
	{Kind: "Service"}:                                                {Version: "v1", Resource: "services"},
	{Group: "apps", Kind: "Deployment"}:                              {Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:            {Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
	{Group: "networking.k8s.io", Kind: "IngressClass"}:               {Group: "networking.k8s.io", Version: "v1", Resource: "ingressclasses"},
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                  {Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"},
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
}

// dnsAddon is the cluster's DNS among the optional add-ons.
const dnsAddon = "coredns"

// storageAddon is the default StorageClass.
const storageAddon = "local-path"

// optionalAddon is one that a cluster can be without.
type optionalAddon struct {
	name      string // its manifest's and, if it has one, its image's
	byDefault bool
	image     bool
}

// optionalAddons can be switched; the others give the components their rights.
var optionalAddons = [...]optionalAddon{
	{name: dnsAddon, byDefault: true, image: true},
	{name: storageAddon, byDefault: true},
	{name: "metrics-server", image: true},
	{name: registryAddon, image: true},
	{name: "traefik", image: true},
}

// hasAddon tells whether the cluster gets an add-on: one that cannot be switched, or is on by what was said or by default.
func (c Config) hasAddon(name string) bool {
	if name == joinAddon {
		return c.joinable()
	}
	if on, said := c.AddonChoices[name]; said {
		return on
	}
	i := slices.IndexFunc(optionalAddons[:], func(a optionalAddon) bool { return a.name == name })
	return i < 0 || optionalAddons[i].byDefault
}

// WithAddon returns c with an add-on switched on or off; an error if there is none of that name.
func (c Config) WithAddon(name string, on bool) (Config, error) {
	i := slices.IndexFunc(optionalAddons[:], func(a optionalAddon) bool { return a.name == name })
	if i < 0 {
		var names []string
		for _, a := range optionalAddons {
			names = append(names, a.name)
		}
		return c, fmt.Errorf("there is no such add-on (%s)", strings.Join(names, ", "))
	}
	c.AddonChoices = maps.Clone(c.AddonChoices)
	if delete(c.AddonChoices, name); on != optionalAddons[i].byDefault {
		if c.AddonChoices == nil {
			c.AddonChoices = map[string]bool{}
		}
		c.AddonChoices[name] = on
	}
	if len(c.AddonChoices) == 0 {
		c.AddonChoices = nil
	}
	return c, nil
}

// ParseAddons reads add-ons as a user lists them: NAME or NAME=true to switch one on, NAME=false to switch it off.
func (c Config) ParseAddons(list []string) (Config, error) {
	for _, text := range list {
		name, value, given := strings.Cut(text, "=")
		on := true
		var err error
		if given {
			if on, err = strconv.ParseBool(value); err != nil {
				return c, fmt.Errorf("%s must be true or false, not %q", name, value)
			}
		}
		if c, err = c.WithAddon(name, on); err != nil {
			return c, fmt.Errorf("%s: %w", name, err)
		}
	}
	return c, nil
}

// installAddons creates the add-ons' objects that are not there; those that are belong to the user.
func (c Config) installAddons(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.layout().kubeconfig(administrator))
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := c.readAddons()
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if err := throughRestarts(ctx, func() error { return createMissing(ctx, client, obj) }); err != nil {
			return err
		}
	}
	return nil
}

// throughRestarts repeats do, which may be done twice, when a connection breaks, as one of several API servers may end and start while the cluster
// comes up and the others answer, and when somebody else has changed the object meanwhile.
func throughRestarts(ctx context.Context, do func() error) error {
	var last error
	err := host.Poll(ctx, 100*time.Millisecond, func() (bool, error) {
		last = do()
		if utilnet.IsConnectionReset(last) || utilnet.IsConnectionRefused(last) || utilnet.IsProbableEOF(last) || apierrors.IsConflict(last) {
			return false, nil
		}
		return true, last
	})
	if err != nil && last != nil && !errors.Is(err, last) {
		err = fmt.Errorf("%w: %w", err, last)
	}
	return err
}

func createMissing(ctx context.Context, client dynamic.Interface, obj *unstructured.Unstructured) error {
	resource, known := addonResources[obj.GroupVersionKind().GroupKind()]
	if !known {
		return fmt.Errorf("add-on %s: kind %s is not supported", obj.GetName(), obj.GroupVersionKind())
	}
	var r dynamic.ResourceInterface = client.Resource(resource)
	if obj.GetNamespace() != "" {
		r = client.Resource(resource).Namespace(obj.GetNamespace())
	}
	// Asked first: a second Service of the same cluster IP is refused for its address, not for its name.
	if _, err := r.Get(ctx, obj.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	_, err := r.Create(ctx, obj, metav1.CreateOptions{FieldManager: "bonsai", FieldValidation: metav1.FieldValidationStrict})
	if err == nil {
		return nil
	}
	if _, again := r.Get(ctx, obj.GetName(), metav1.GetOptions{}); again != nil { // else another start made it meanwhile
		return fmt.Errorf("create %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return nil
}

// readAddons returns the objects of all manifests with the cluster's values filled in.
func (c Config) readAddons() ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(c.Addons, "*.yaml")
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		name = strings.TrimSuffix(name, ".yaml")
		if !c.hasAddon(name) {
			continue
		}
		of, err := c.readAddon(name)
		if err != nil {
			return nil, err
		}
		objects = append(objects, of...)
	}
	return objects, nil
}

// readAddon returns the objects of one add-on's manifest with the cluster's values filled in.
func (c Config) readAddon(name string) ([]*unstructured.Unstructured, error) {
	data, err := fs.ReadFile(c.Addons, name+".yaml")
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(c.addonValues().Replace(string(data))), 4096)
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

// addonValues fills in what the cluster says of itself in manifests.
func (c Config) addonValues() *strings.Replacer {
	upstream := "template ANY ANY {\n            rcode NXDOMAIN\n        }"
	if c.Egress {
		upstream = "forward . /etc/resolv.conf"
	}
	return strings.NewReplacer("$DNS_IP", c.DNSIP().String(), "$COREDNS_IMAGE", plan.CoreDNSImage, "$UPSTREAM", upstream,
		"$BUSYBOX_IMAGE", plan.BusyboxImage, "$METRICS_SERVER_IMAGE", plan.MetricsServerImage, "$TRAEFIK_IMAGE", plan.TraefikImage,
		"$REGISTRY_IMAGE", plan.RegistryImage, "$REGISTRY_IP", c.registryIP().String(), "$REGISTRY_ADDRESS", c.registryAddress(),
		"$REGISTRY_NODE_PORT", strconv.Itoa(registryNodePort), "$REGISTRY_HOST", registryHost)
}

// waitDNS waits until a pod of the cluster's DNS answers for the kubernetes Service, asked directly from the host.
func (c Config) waitDNS(ctx context.Context) error {
	client, err := c.coreClient()
	if err != nil {
		return err
	}
	var last error
	err = host.Poll(ctx, 50*time.Millisecond, func() (bool, error) {
		var address string
		if address, last = dnsPod(ctx, client); last != nil {
			return false, nil // until ctx ends
		}
		resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(address, "53"))
		}}
		query, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		found, err := resolver.LookupHost(query, "kubernetes.default.svc.cluster.local.")
		if last = err; err == nil {
			last = fmt.Errorf("it says that kubernetes.default is %q", found)
		}
		return err == nil && len(found) == 1 && found[0] == c.ServiceIP().String(), nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

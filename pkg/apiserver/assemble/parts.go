package assemble

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/uuid"

	"bonsai/api/resources"
	"bonsai/api/scheme"
	"bonsai/pkg/apiserver/admission/match"
	"bonsai/pkg/apiserver/bootstrap"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/egress/selector"
	"bonsai/pkg/apiserver/fieldmanager"
	"bonsai/pkg/apiserver/identity"
	"bonsai/pkg/apiserver/masterleases"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/registry/componentstatus"
	"bonsai/pkg/apiserver/registry/serviceip"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/follow"
	"bonsai/pkg/health"
)

// Options say what the parts of a server do, in the words of upstream's flags.
type Options struct {
	Authentication Authentication
	Authorization  Authorization
	// EnableAdmission and DisableAdmission name plug-ins that differ from what is on by default.
	EnableAdmission, DisableAdmission []string
	// Admission configures the plug-ins.
	Admission AdmissionConfiguration
	// NotReadySeconds and UnreachableSeconds are how long pods stay on such a node that do not say it themselves; nil:
	// 300.
	NotReadySeconds, UnreachableSeconds *int64
	// ServiceRanges are where the addresses of services come from: one, or two of different families. The first one's
	// family is the default, and the Service "kubernetes" has its first address.
	ServiceRanges []netip.Prefix
	NodePorts     net.PortRange
	Kubelets      Kubelets
	Fairness      Fairness
	// Components are those whose health componentstatuses show.
	Components []componentstatus.Component
	// Advertise and Port are where pods and other servers reach this one. A loopback address cannot be an endpoint: the
	// Service "kubernetes" is then made without any.
	Advertise netip.Addr
	Port      int
	// NoEndpoints leaves the endpoints of the Service "kubernetes" to somebody else.
	NoEndpoints bool
	// Hostname is the machine's, by which the server's Lease is named.
	Hostname string
	// LocalNetworks are files of network namespaces whose addresses are this machine's, beside those of the server's
	// own namespace.
	LocalNetworks []string
	// Egress chooses the way of the server's connections; nil: all are direct.
	Egress *selector.Selector
	// Metrics takes what the parts count; nil: nobody sees it.
	Metrics prometheus.Registerer
}

// Kubelets say how kubelets are reached. The files may be "".
type Kubelets struct {
	CAFile, CertFile, KeyFile string
	// AddressTypes are tried in order.
	AddressTypes []corev1.NodeAddressType
	// MaxBytesPerSec bounds each direction of an upgraded connection to kubelets, pods and Services; 0: nothing does.
	MaxBytesPerSec int64
}

// NewParts makes the parts of Kubernetes: everything that is plugged in is in the lists of this package.
func NewParts(o Options, c *catalog.Catalog, from storage.Interface, rows []resources.Row, log *slog.Logger) (*Parts,
	error) {
	who, err := newAuthentication(&o, c, log)
	if err != nil {
		return nil, err
	}
	policy, err := bootstrap.DefaultPolicy()
	if err != nil {
		return nil, err
	}
	objects := &sources{from: from, rows: rows}
	may, err := newAuthorization(&o, objects, policy.ClusterRoleRules("system:node"), log)
	if err != nil {
		return nil, err
	}
	client := newWebhookClient(c, o.Egress)
	matcher := match.New(match.Config{Catalog: c, Namespaces: late(c)("", "namespaces"), Authorizer: may.authorizer,
		Metrics: o.Metrics, Log: log})
	hooks, err := newWebhooks(&o, matcher, client, objects, log)
	if err != nil {
		return nil, err
	}
	fields, err := fieldmanager.New(fieldmanager.Config{Scheme: scheme.New(), Log: log})
	if err != nil {
		return nil, err
	}
	rules, err := newPolicies(&o, matcher, fields, objects, log)
	if err != nil {
		return nil, err
	}
	files, err := newManifests(&o, rows, hooks, rules, log)
	if err != nil {
		return nil, err
	}
	chain, err := newAdmission(&o, c, hooks, rules, may, log)
	if err != nil {
		return nil, err
	}
	addresses, err := serviceip.New(
		serviceip.Config{Stores: c, Storage: from, Ranges: o.ServiceRanges, FirstNodePort: o.NodePorts.Base,
			LastNodePort: o.NodePorts.Base + o.NodePorts.Size - 1, Now: time.Now, Log: log})
	if err != nil {
		return nil, err
	}
	behaviours, err := newBehaviours(&o, c, who, may, addresses, log)
	if err != nil {
		return nil, err
	}
	var servers *masterleases.Leases
	if !o.NoEndpoints && !o.Advertise.IsLoopback() {
		servers = masterleases.New(from, o.Advertise, log)
	}
	boot, err := newBootstrap(&o, c, who, may, policy, servers, log)
	if err != nil {
		return nil, err
	}
	known, err := identity.New(
		identity.Config{Stores: c, Hostname: o.Hostname, Instance: string(uuid.NewUUID()), Now: time.Now, Log: log})
	if err != nil {
		return nil, err
	}
	turns, err := newFairness(&o.Fairness, c, objects, log)
	if err != nil {
		return nil, err
	}
	parts := &Parts{
		Authenticator: who.authenticator, Authorizer: may.authorizer, Admission: chain, Fields: fields,
		Behaviours: behaviours, Paths: who.keys,
		Ready: []health.Check{may.informerSync()}, Started: bootstrapChecks(boot, policy, may), Hooks: partHooks(),
		Runs: slices.Concat(who.runs(), may.runs, hooks.Runs(), rules.Runs(), files,
			[]func(context.Context) error{client.Run, boot.Run, known.Run, addresses.Repair}),
		ClientAuthorities: who.authorities(),
		Fairness:          turns,
	}
	if look, roles := rolesKnown(boot, policy, may); look != nil {
		parts.RolesKnown, parts.Runs = roles, append(parts.Runs, look)
	}
	if servers != nil {
		parts.Runs = append(parts.Runs, func(ctx context.Context) error { return servers.Run(ctx, boot.Endpoints) })
		parts.Leave = func(ctx context.Context) { servers.Leave(ctx, boot.Endpoints) }
	}
	if turns != nil {
		parts.Started, parts.Runs = append(parts.Started, fairnessKnown(turns)), append(parts.Runs, turns.Run)
		parts.Hooks = append(parts.Hooks, "priority-and-fairness-filter")
	}
	return parts, objects.missing
}

// partHooks names upstream's start hooks that stand for what every server with the parts of Kubernetes has.
func partHooks() []string {
	return []string{
		"start-apiserver-admission-initializer", // plug-ins have all that they need when the chain is made
		"generic-apiserver-start-informers",     // the authorizer's and the plug-ins' indexes
		"storage-object-count-tracker-hook",     // the store counts as it stores
		"peer-endpoint-reconciler-controller",   // masterleases; a server that publishes no address has no peers
		"start-kube-apiserver-identity-lease-controller",
		"start-kube-apiserver-identity-lease-garbage-collector",
		"storage-readiness", // a request waits until the cache of its resource is filled
		"start-service-ip-repair-controllers",
	}
}

// sources say where the objects of a resource are, for parts that keep an index of all of them.
type sources struct {
	from follow.Source
	rows []resources.Row
	// missing is the first resource that was asked for and has no row.
	missing error
}

func (s *sources) of(group, resource string) follow.Resource {
	gr := schema.GroupResource{Group: group, Resource: resource}
	for i := range s.rows {
		if row := &s.rows[i]; row.GroupResource() == gr {
			codec := registry.NewCodec(row)
			return follow.Resource{Source: s.from, Prefix: registry.Prefix(row),
				Decode: func(value []byte) (runtime.Object, error) {
					return codec.Decode(value, 0)
				}}
		}
	}
	if s.missing == nil {
		s.missing = fmt.Errorf("%s are read, and no row describes them", gr)
	}
	return follow.Resource{}
}

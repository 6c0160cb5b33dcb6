package main

import (
	"errors"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"bonsai/api/kubeversion"
	"bonsai/cmd/internal/daemon"
	"bonsai/cmd/internal/election"
	"bonsai/cmd/internal/guard"
	"bonsai/cmd/internal/profiling"
	"bonsai/pkg/controller/attachdetach"
	"bonsai/pkg/controller/endpointslicemirroring"
	"bonsai/pkg/controller/legacytokencleaner"
	"bonsai/pkg/controller/localpath"
	"bonsai/pkg/controller/nodelifecycle"
	"bonsai/pkg/controller/persistentvolume"
	"bonsai/pkg/controller/podautoscaler"
	"bonsai/pkg/featuregates"
)

// options are the flags, under upstream's names and with upstream's defaults.
//
// workers has the --concurrent-… flags by the controller's name.
type options struct {
	logging   daemon.Logging
	metrics   daemon.MetricFlags
	tracing   daemon.Tracing
	guard     guard.Flags
	listener  daemon.Listener
	serving   daemon.Serving
	profiling profiling.Flags
	gates     featuregates.Flag
	limits    daemon.Limits
	elect     election.Flags

	kubeconfig, master string
	controllers        []string
	useAccounts        bool

	rootCAFile, accountKeyFile     string
	clusterCIDRs, serviceCIDRs     []string
	allocateCIDRs                  bool
	maskSize, maskSize4, maskSize6 int
	monitorPeriod, monitorGrace    time.Duration
	startupGrace                   time.Duration
	evictions                      nodelifecycle.Evictions
	autoscaling                    podautoscaler.Config
	quotaPeriod                    time.Duration
	legacyTokens                   legacytokencleaner.Config
	cloudConfig                    string
	collectGarbage                 bool
	terminatedPodThreshold         int
	maxEndpointsPerSlice           int
	mirroring                      endpointslicemirroring.Config
	signing                        signing
	binding                        persistentvolume.Config
	localPath                      localpath.Config
	attaching                      attachdetach.Config
	noAttachSync                   bool
	workers                        map[string]*int
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	o.logging.AddFlags(fs)
	o.metrics.AddFlags(fs)
	o.tracing.AddFlags(fs)
	o.gates.AddFlag(fs)
	o.guard.AddFlags(fs)
	o.serving.AddFlags(fs)
	o.profiling.AddFlags(fs)
	o.limits.AddFlags(fs, 30)
	o.elect.AddFlags(fs, component)
	fs.StringVar(&o.kubeconfig, "kubeconfig", "",
		"Path to kubeconfig file with authorization and master location information.")
	fs.StringVar(&o.master, "master", "",
		"The address of the Kubernetes API server (overrides any value in kubeconfig).")
	o.listener.AddFlags(fs, component, 10257)
	fs.StringSliceVar(&o.controllers, "controllers", []string{"*"},
		"The controllers to run: '*' is all that are on by default, 'foo' turns foo on, '-foo' turns it off. All: "+
			knownNames())
	fs.BoolVar(&o.useAccounts, "use-service-account-credentials", false,
		"Use a service account of its own for each controller.")
	fs.StringVar(&o.rootCAFile, "root-ca-file", "",
		"Certificate authority published to every namespace and into service account token secrets.")
	fs.StringVar(&o.accountKeyFile, "service-account-private-key-file", "",
		"PEM private RSA or ECDSA key that signs service account token secrets.")
	fs.StringSliceVar(&o.clusterCIDRs, "cluster-cidr", nil,
		"CIDR range for pods; one IPv4 and one IPv6 range for a dual-stack cluster.")
	fs.StringSliceVar(&o.serviceCIDRs, "service-cluster-ip-range", nil,
		"CIDR range for services, from which no pod range is taken.")
	fs.StringVar(&o.cloudConfig, "cloud-config", "",
		"The path to the cloud provider configuration file (YAML): loadBalancerCIDRs lead to the nodes, and Services of type LoadBalancer without a loadBalancerClass get their addresses from them.")
	fs.BoolVar(&o.allocateCIDRs, "allocate-node-cidrs", false, "Allocate a pod CIDR to each node.")
	fs.IntVar(&o.maskSize, "node-cidr-mask-size", 0,
		"Mask size of a node's pod CIDR in a single-stack cluster. Default is 24 for IPv4 and 64 for IPv6.")
	fs.IntVar(&o.maskSize4, "node-cidr-mask-size-ipv4", 0, "Mask size of a node's IPv4 pod CIDR. Default is 24.")
	fs.IntVar(&o.maskSize6, "node-cidr-mask-size-ipv6", 0, "Mask size of a node's IPv6 pod CIDR. Default is 64.")
	fs.IntVar(&o.terminatedPodThreshold, "terminated-pod-gc-threshold", 12500,
		"Number of terminated pods that may exist before the oldest are deleted; 0 and less disables it.")
	fs.IntVar(&o.maxEndpointsPerSlice, "max-endpoints-per-slice", 100,
		"The most endpoints put into one EndpointSlice, 1 to 1000.")
	fs.IntVar(&o.mirroring.MaxPerSubset, "mirroring-max-endpoints-per-subset", 1000,
		"The most addresses of a subset of Endpoints that are mirrored to EndpointSlices, 1 to 1000.")
	fs.DurationVar(&o.mirroring.Batch, "mirroring-endpointslice-updates-batch-period", 0,
		"How long a change of Endpoints waits for more of them before it is mirrored.")
	fs.DurationVar(&o.legacyTokens.CleanUpPeriod, "legacy-service-account-token-clean-up-period", 365*24*time.Hour,
		"How long a token in a secret that was made by itself must be unused before it is marked invalid, and how long after that it is deleted.")
	fs.DurationVar(&o.quotaPeriod, "resource-quota-sync-period", 5*time.Minute,
		"How often the usage of every quota is counted again although nothing seems to have changed.")
	fs.BoolVar(&o.collectGarbage, "enable-garbage-collector", true, "Delete objects whose owners are gone.")
	fs.DurationVar(&o.binding.Period, "pvclaimbinder-sync-period", 15*time.Second,
		"How often persistent volume claims that wait are looked at although nothing seems to have changed.")
	fs.BoolVar(&o.binding.Provisions, "enable-dynamic-provisioning", true,
		"Call for a volume where a claim finds none and its class has a provisioner.")
	fs.DurationVar(&o.attaching.Period, "attach-detach-reconcile-sync-period", time.Minute,
		"How often nodes with volumes to attach are looked at although nothing seems to have changed.")
	fs.BoolVar(&o.noAttachSync, "disable-attach-detach-reconcile-sync", false,
		"Look at nodes with volumes to attach only when something changes.")
	fs.BoolVar(&o.attaching.KeepOnTimeout, "disable-force-detach-on-timeout", false,
		"Never detach a volume from a node that is silent for long, unless it is said to be out of service.")
	fs.StringVar(&o.localPath.Root, "local-path-root", "/var/lib/bonsai/local-path",
		"Directory on every node below which the volumes of "+localpath.Provisioner+" are.")
	o.addAutoscalingFlags(fs)
	o.signing.addFlags(fs)
	o.addNodeFlags(fs)
	o.addWorkerFlags(fs)
	accepted().AddFlags(fs)
	refused().AddFlags(fs)
}

func (o *options) addAutoscalingFlags(fs *pflag.FlagSet) {
	a := &o.autoscaling
	fs.DurationVar(&a.Period, "horizontal-pod-autoscaler-sync-period", 15*time.Second,
		"How often the size of what a HorizontalPodAutoscaler scales is compared with its metrics.")
	fs.DurationVar(&a.Stabilization, "horizontal-pod-autoscaler-downscale-stabilization", 5*time.Minute,
		"For how long the highest recommendation holds, of autoscalers that name no window of their own.")
	fs.Float64Var(&a.Tolerance, "horizontal-pod-autoscaler-tolerance", 0.1,
		"The share of its target by which a metric may miss it without anything being scaled, of autoscalers that name no tolerance of their own.")
	fs.DurationVar(&a.CPUInitialization, "horizontal-pod-autoscaler-cpu-initialization-period", 5*time.Minute,
		"For how long after its start a pod's use of CPU counts only while it is ready.")
	fs.DurationVar(&a.ReadinessDelay, "horizontal-pod-autoscaler-initial-readiness-delay", 30*time.Second,
		"For how long after its start a pod that becomes unready is taken for one that has not become ready yet.")
}

// addNodeFlags adds the flags of the node lifecycle controller; the rates and the threshold are explained at
// nodelifecycle.Evictions.
func (o *options) addNodeFlags(fs *pflag.FlagSet) {
	e := &o.evictions
	fs.DurationVar(&o.monitorPeriod, "node-monitor-period", 5*time.Second,
		"How often the nodes and their zones are looked at while nothing changes.")
	fs.DurationVar(&o.monitorGrace, "node-monitor-grace-period", 50*time.Second,
		"How long a node may be silent before it is marked unhealthy.")
	fs.DurationVar(&o.startupGrace, "node-startup-grace-period", time.Minute,
		"How long a starting node may be silent before it is marked unhealthy.")
	fs.Float32Var(&e.Rate, "node-eviction-rate", 0.1,
		"Nodes per second whose pods are evicted when they fail, in a healthy zone.")
	fs.Float32Var(&e.SecondaryRate, "secondary-node-eviction-rate", 0.01,
		"Nodes per second whose pods are evicted when they fail, in an unhealthy zone; 0 if it has no more nodes than --large-cluster-size-threshold.")
	fs.Float32Var(&e.Threshold, "unhealthy-zone-threshold", 0.55,
		"Fraction of the nodes of a zone (at least 3) that are not ready at which the zone is unhealthy.")
	fs.IntVar(&e.LargeZone, "large-cluster-size-threshold", 50,
		"Number of nodes above which a zone is large for --secondary-node-eviction-rate.")
}

// addWorkerFlags adds one --concurrent-… flag for each controller that upstream has one for.
//
// The numbers are upstream's defaults.
func (o *options) addWorkerFlags(fs *pflag.FlagSet) {
	o.workers = map[string]*int{}
	for _, w := range []struct {
		flag, controller string
		n                int
	}{
		{"concurrent-deployment-syncs", "deployment-controller", 5},
		{"concurrent-replicaset-syncs", "replicaset-controller", 5},
		{"concurrent-rc-syncs", "replicationcontroller-controller", 5},
		{"concurrent-daemonset-syncs", "daemonset-controller", 2},
		{"concurrent-statefulset-syncs", "statefulset-controller", 5},
		{"concurrent-job-syncs", "job-controller", 5},
		{"concurrent-horizontal-pod-autoscaler-syncs", "horizontal-pod-autoscaler-controller", 5},
		{"concurrent-cron-job-syncs", "cronjob-controller", 5},
		{"concurrent-disruption-syncs", "disruption-controller", 1},
		{"concurrent-ttl-after-finished-syncs", "ttl-after-finished-controller", 5},
		{"concurrent-endpoint-syncs", "endpoints-controller", 5},
		{"concurrent-service-endpoint-syncs", "endpointslice-controller", 5},
		{"mirroring-concurrent-service-endpoint-syncs", "endpointslice-mirroring-controller", 5},
		{"concurrent-namespace-syncs", "namespace-controller", 10},
		{"concurrent-gc-syncs", "garbage-collector-controller", 20},
		{"concurrent-resource-quota-syncs", "resourcequota-controller", 5},
		{"concurrent-ephemeralvolume-syncs", "ephemeral-volume-controller", 5},
		{"concurrent-device-taint-eviction-syncs", "device-taint-eviction-controller", 8},
		{"concurrent-resourceclaim-syncs", "resourceclaim-controller", 50},
		{"concurrent-serviceaccount-token-syncs", "serviceaccount-token-controller", 5},
	} {
		o.workers[w.controller] = fs.Int(w.flag, w.n, "How many objects of the "+w.controller+" are worked on at once.")
	}
}

// workersOf is how many objects of a controller are worked on at once.
func (o *options) workersOf(e entry) int {
	if n := o.workers[e.name]; n != nil {
		return *n
	}
	return max(e.workers, 1)
}

// accepted are flags that have no effect: of controllers that are not here, and of what is always done one way.
//
// They are accepted because manifests for upstream pass them; Warn logs the names of those that were given.
func accepted() daemon.AcceptedFlags {
	return daemon.AcceptedFlags{
		{Why: "there is no cloud provider in the controller manager; other values than external are refused",
			Strings: []string{"cloud-provider"}},
		{Why: "no cloud provider makes routes, addresses or volumes",
			Strings:   []string{"cluster-name", "external-cloud-volume-plugin"},
			Bools:     []string{"configure-cloud-routes"},
			Durations: []string{"route-reconciliation-period"}},
		{Why: "pod CIDRs of nodes are always parts of --cluster-cidr", Strings: []string{"cidr-allocator-type"}},
		{Why: "requests are protobuf", Strings: []string{"kube-api-content-type"}},
		{Why: "there are no FlexVolumes", Strings: []string{"flex-volume-plugin-dir"}},
		{Why: "volumes are not recycled, and the controller makes none of hostPath",
			Strings: []string{"pv-recycler-pod-template-filepath-hostpath", "pv-recycler-pod-template-filepath-nfs"},
			Bools:   []string{"enable-hostpath-provisioner"},
			Int32s: []string{"pv-recycler-increment-timeout-nfs", "pv-recycler-minimum-timeout-hostpath",
				"pv-recycler-minimum-timeout-nfs", "pv-recycler-timeout-increment-hostpath"}},
		{Why: "every listening socket has SO_REUSEADDR, as Go sets it", Bools: []string{"permit-address-sharing"}},
		{Why: "a failed lookup is repeated; no client certificate is trusted before one succeeds",
			Bools: []string{"authentication-tolerate-lookup-failure"}},
		{Why: "one lease elects the leader of all controllers", Bools: []string{"enable-leader-migration"},
			Files: []string{"leader-migration-config"}},
		{Why: "the number of workers is fixed",
			Int32s: []string{"concurrent-validating-admission-policy-status-syncs"}},
		{Why: "controllers work on changes as they come", Durations: []string{"min-resync-period",
			"namespace-sync-period", "endpoint-updates-batch-period", "endpointslice-updates-batch-period"}},
		{Why: "controllers start together", Durations: []string{"controller-start-interval"}},
		{Why: "the manager ends when every controller has stopped",
			Durations: []string{"controller-shutdown-timeout"}},
		daemon.AcceptedVersions(),
	}
}

// refused are flags that choose what is served, and that are not built.
//
// Accepting one of these silently would give users something else than they asked for.
func refused() daemon.Refused {
	return daemon.Refused{{Name: "emulated-version", Would: "have the features of another version",
		Usual: []string{kubeversion.API, "kube=" + kubeversion.API}}}
}

// validate returns every problem at once.
func (o *options) validate() error {
	_, cloudConfigError := readCloudConfig(o.cloudConfig)
	_, controllersError := selected(o.controllers)
	a, e, root := o.autoscaling, o.evictions, o.localPath.Root
	return errors.Join(
		o.listener.Validate(),
		checkCIDRs("cluster-cidr", o.clusterCIDRs),
		checkCIDRs("service-cluster-ip-range", o.serviceCIDRs),
		cloudConfigError,
		daemon.Require(o.monitorPeriod > 0 && o.monitorGrace > 0 && o.startupGrace > 0,
			"--node-monitor-period (%s), --node-monitor-grace-period (%s) and --node-startup-grace-period (%s) must be greater than 0",
			o.monitorPeriod, o.monitorGrace, o.startupGrace),
		daemon.Require(!(e.Rate < 0 || e.SecondaryRate < 0 || e.Threshold < 0 || e.Threshold > 1),
			"--node-eviction-rate (%g) and --secondary-node-eviction-rate (%g) must not be negative, --unhealthy-zone-threshold (%g) between 0 and 1",
			e.Rate, e.SecondaryRate, e.Threshold),
		daemon.Require(o.attaching.Period > time.Second,
			"--attach-detach-reconcile-sync-period must be greater than 1s, not %s", o.attaching.Period),
		daemon.Require(o.binding.Period > 0, "--pvclaimbinder-sync-period must be greater than 0, not %s",
			o.binding.Period),
		daemon.Require(filepath.IsAbs(root) && filepath.Clean(root) == root && root != "/",
			"--local-path-root must be an absolute path, clean and not /, not %q", root),
		daemon.Require(o.legacyTokens.CleanUpPeriod > 0,
			"--legacy-service-account-token-clean-up-period must be greater than 0, not %s",
			o.legacyTokens.CleanUpPeriod),
		daemon.Require(o.quotaPeriod > 0, "--resource-quota-sync-period must be greater than 0, not %s", o.quotaPeriod),
		daemon.Require(!(a.Period <= 0 || a.Stabilization < 0 || a.Tolerance < 0 || a.CPUInitialization < 0 ||
			a.ReadinessDelay < 0),
			"--horizontal-pod-autoscaler-sync-period (%s) must be greater than 0, --horizontal-pod-autoscaler-downscale-stabilization (%s), -tolerance (%g), -cpu-initialization-period (%s) and -initial-readiness-delay (%s) must not be negative",
			a.Period, a.Stabilization, a.Tolerance, a.CPUInitialization, a.ReadinessDelay),
		daemon.Require(!o.allocateCIDRs || len(o.clusterCIDRs) > 0, "--allocate-node-cidrs needs --cluster-cidr"),
		daemon.Require(o.maxEndpointsPerSlice >= 1 && o.maxEndpointsPerSlice <= 1000,
			"--max-endpoints-per-slice must be between 1 and 1000, not %d", o.maxEndpointsPerSlice),
		daemon.Require(o.mirroring.MaxPerSubset >= 1 && o.mirroring.MaxPerSubset <= 1000,
			"--mirroring-max-endpoints-per-subset must be between 1 and 1000, not %d", o.mirroring.MaxPerSubset),
		daemon.Require(o.mirroring.Batch >= 0,
			"--mirroring-endpointslice-updates-batch-period must not be negative, not %s", o.mirroring.Batch),
		o.signing.validate(), o.serving.Validate(), o.metrics.Validate(), o.limits.Validate(), o.elect.Validate(),
		o.tracing.Read(),
		o.checkWorkers(),
		controllersError,
	)
}

// checkCIDRs refuses ranges that are no CIDRs.
func checkCIDRs(flag string, ranges []string) error {
	var errs []error
	for _, c := range ranges {
		_, err := netip.ParsePrefix(c)
		errs = append(errs, daemon.Require(err == nil, "--%s: %w", flag, err))
	}
	return errors.Join(errs...)
}

// checkWorkers refuses controllers without a worker: they would start and do nothing.
func (o *options) checkWorkers() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o.workers)) {
		n := *o.workers[name]
		errs = append(errs, daemon.Require(n >= 1,
			"the number of concurrent syncs of the %s must be at least 1, not %d", name, n))
	}
	return errors.Join(errs...)
}

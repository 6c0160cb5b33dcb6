package main

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/attachdetach"
	"bonsai/pkg/controller/bootstrapsigner"
	"bonsai/pkg/controller/clusterrole"
	"bonsai/pkg/controller/cronjob"
	"bonsai/pkg/controller/csrapproving"
	"bonsai/pkg/controller/csrcleaner"
	"bonsai/pkg/controller/csrsigning"
	"bonsai/pkg/controller/daemonset"
	"bonsai/pkg/controller/deployment"
	"bonsai/pkg/controller/devicetainteviction"
	"bonsai/pkg/controller/disruption"
	"bonsai/pkg/controller/endpoints"
	"bonsai/pkg/controller/endpointslice"
	"bonsai/pkg/controller/endpointslicemirroring"
	"bonsai/pkg/controller/ephemeralvolume"
	"bonsai/pkg/controller/expand"
	"bonsai/pkg/controller/garbagecollector"
	"bonsai/pkg/controller/job"
	"bonsai/pkg/controller/legacytokencleaner"
	"bonsai/pkg/controller/localpath"
	"bonsai/pkg/controller/namespace"
	"bonsai/pkg/controller/nodeipam"
	"bonsai/pkg/controller/nodelifecycle"
	"bonsai/pkg/controller/persistentvolume"
	"bonsai/pkg/controller/podautoscaler"
	"bonsai/pkg/controller/podcertificaterequestcleaner"
	"bonsai/pkg/controller/podgc"
	"bonsai/pkg/controller/replicaset"
	"bonsai/pkg/controller/resourceclaim"
	"bonsai/pkg/controller/resourcequota"
	"bonsai/pkg/controller/rootca"
	"bonsai/pkg/controller/service"
	"bonsai/pkg/controller/service/localbalancer"
	"bonsai/pkg/controller/serviceaccount"
	"bonsai/pkg/controller/servicecidr"
	"bonsai/pkg/controller/statefulset"
	"bonsai/pkg/controller/storageprotection"
	"bonsai/pkg/controller/storageversionmigrator"
	"bonsai/pkg/controller/tainteviction"
	"bonsai/pkg/controller/tokencleaner"
	"bonsai/pkg/controller/tokens"
	"bonsai/pkg/controller/trustbundlepublisher"
	"bonsai/pkg/controller/ttl"
	"bonsai/pkg/controller/ttlafterfinished"
	"bonsai/pkg/controller/validatingadmissionpolicystatus"
)

// runner is a controller that works until ctx ends.
type runner interface {
	Run(ctx context.Context) error
}

// entry plugs one controller in.
//
// A controller is a package that knows nothing of the others; this list is the only place where all of them meet.
type entry struct {
	// name is upstream's name, alias the short one that --controllers accepts too.
	name, alias string
	// source is whom the controller's events come from, where upstream says another name; "" is name.
	source string
	// account is the service account in kube-system that the controller acts as; "" is the manager's own identity.
	account string
	// workers is how many objects are worked on at once where no --concurrent-… flag says so; 0 is 1.
	workers int
	// optional controllers run only when named.
	optional bool
	// build returns nil if the options leave the controller nothing to do.
	build func(o *options, d controller.Deps) (runner, error)
}

// entries is the list of all controllers, in the order of their start. The garbage collector is last: it shares the
// caches that the others asked for.
func entries() []entry {
	return []entry{
		{name: "serviceaccount-controller", alias: "serviceaccount", account: "service-account-controller",
			build: plain(serviceaccount.New)},
		{name: "root-ca-certificate-publisher-controller", alias: "root-ca-cert-publisher",
			account: "root-ca-cert-publisher", build: buildRootCA},
		{name: "kube-apiserver-serving-clustertrustbundle-publisher-controller",
			account: "kube-apiserver-serving-clustertrustbundle-publisher", build: buildTrustBundle},
		{name: "deployment-controller", alias: "deployment", account: "deployment-controller",
			build: plain(deployment.New)},
		{name: "replicaset-controller", alias: "replicaset", account: "replicaset-controller",
			build: plain(replicaset.New)},
		{name: "replicationcontroller-controller", alias: "replicationcontroller", account: "replication-controller",
			build: plain(replicaset.NewReplicationController)},
		{name: "daemonset-controller", alias: "daemonset", account: "daemon-set-controller",
			build: plain(daemonset.New)},
		{name: "statefulset-controller", alias: "statefulset", account: "statefulset-controller",
			build: plain(statefulset.New)},
		{name: "horizontal-pod-autoscaler-controller", alias: "horizontalpodautoscaling",
			account: "horizontal-pod-autoscaler", source: "horizontal-pod-autoscaler",
			build: func(o *options, d controller.Deps) (runner, error) {
				return podautoscaler.New(d, o.autoscaling)
			}},
		{name: "disruption-controller", alias: "disruption", account: "disruption-controller",
			build: plain(disruption.New)},
		{name: "cronjob-controller", alias: "cronjob", account: "cronjob-controller", build: plain(cronjob.New)},
		{name: "ttl-after-finished-controller", alias: "ttl-after-finished", account: "ttl-after-finished-controller",
			build: plain(ttlafterfinished.New)},
		{name: "job-controller", alias: "job", account: "job-controller", build: plain(job.New)},
		{name: "endpointslice-controller", alias: "endpointslice", account: "endpointslice-controller",
			build: func(o *options, d controller.Deps) (runner, error) {
				return endpointslice.New(d, o.maxEndpointsPerSlice)
			}},
		{name: "endpointslice-mirroring-controller", alias: "endpointslicemirroring",
			account: "endpointslicemirroring-controller", build: func(o *options, d controller.Deps) (runner, error) {
				return endpointslicemirroring.New(d, o.mirroring)
			}},
		{name: "endpoints-controller", alias: "endpoint", account: "endpoint-controller", build: plain(endpoints.New)},
		{name: "namespace-controller", alias: "namespace", account: "namespace-controller",
			build: plain(namespace.New)},
		{name: "serviceaccount-token-controller", alias: "serviceaccount-token", build: buildTokens},
		{name: "legacy-serviceaccount-token-cleaner-controller", alias: "legacy-service-account-token-cleaner",
			account: "legacy-service-account-token-cleaner",
			build: func(o *options, d controller.Deps) (runner, error) {
				return legacytokencleaner.New(d, o.legacyTokens)
			}},
		{name: "bootstrap-signer-controller", alias: "bootstrapsigner", account: "bootstrap-signer", optional: true,
			build: plain(bootstrapsigner.New)},
		{name: "token-cleaner-controller", alias: "tokencleaner", account: "token-cleaner", optional: true,
			build: plain(tokencleaner.New)},
		{name: "certificatesigningrequest-signing-controller", alias: "csrsigning", account: "certificate-controller",
			build: buildSigning},
		{name: "certificatesigningrequest-approving-controller", alias: "csrapproving",
			account: "certificate-controller", build: plain(csrapproving.New)},
		{name: "certificatesigningrequest-cleaner-controller", alias: "csrcleaner", account: "certificate-controller",
			build: plain(csrcleaner.New)},
		{name: "podcertificaterequest-cleaner-controller", account: "podcertificaterequestcleaner",
			build: plain(podcertificaterequestcleaner.New)},
		{name: "service-lb-controller", alias: "service", source: "service-controller", account: "service-controller",
			build: buildBalancers},
		{name: "node-ipam-controller", alias: "nodeipam", account: "node-controller", workers: 30, build: buildIPAM},
		{name: "node-lifecycle-controller", alias: "nodelifecycle", account: "node-controller", workers: 8,
			build: func(o *options, d controller.Deps) (runner, error) {
				return nodelifecycle.New(d,
					nodelifecycle.Config{Grace: o.monitorGrace, Startup: o.startupGrace, Period: o.monitorPeriod,
						Evictions: o.evictions})
			}},
		{name: "ttl-controller", alias: "ttl", account: "ttl-controller", workers: 5, build: plain(ttl.New)},
		{name: "taint-eviction-controller", alias: "taint-eviction", account: "node-controller", workers: 8,
			build: plain(tainteviction.New)},
		{name: "device-taint-eviction-controller", account: "device-taint-eviction-controller",
			build: plain(devicetainteviction.New)},
		{name: "pod-garbage-collector-controller", alias: "podgc", account: "pod-garbage-collector",
			build: func(o *options, d controller.Deps) (runner, error) {
				return podgc.New(d, o.terminatedPodThreshold)
			}},
		{name: "persistentvolume-binder-controller", alias: "persistentvolume-binder",
			source: "persistentvolume-controller", account: "persistent-volume-binder", workers: 5,
			build: func(o *options, d controller.Deps) (runner, error) {
				return persistentvolume.New(d, o.binding)
			}},
		{name: "persistentvolume-attach-detach-controller", alias: "attachdetach", source: "attachdetach-controller",
			account: "attachdetach-controller", workers: 5, build: func(o *options, d controller.Deps) (runner, error) {
				cfg := o.attaching
				if o.noAttachSync {
					cfg.Period = 0
				}
				return attachdetach.New(d, cfg)
			}},
		{name: "persistentvolume-expander-controller", alias: "persistentvolume-expander", source: "volume_expand",
			account: "expand-controller", build: plain(expand.New)},
		{name: "ephemeral-volume-controller", alias: "ephemeral-volume", source: "ephemeral_volume",
			account: "ephemeral-volume-controller", build: plain(ephemeralvolume.New)},
		{name: "local-path-provisioner-controller", source: localpath.Provisioner, account: "local-path-provisioner",
			workers: 5, build: func(o *options, d controller.Deps) (runner, error) {
				return localpath.New(d, o.localPath)
			}},
		{name: "resourceclaim-controller", alias: "resource-claim-controller", source: "resource_claim",
			account: "resource-claim-controller", build: plain(resourceclaim.New)},
		{name: "persistentvolumeclaim-protection-controller", alias: "pvc-protection",
			account: "pvc-protection-controller", build: plain(storageprotection.NewClaims)},
		{name: "persistentvolume-protection-controller", alias: "pv-protection", account: "pv-protection-controller",
			build: plain(storageprotection.NewVolumes)},
		{name: "volumeattributesclass-protection-controller", account: "volumeattributesclass-protection-controller",
			build: plain(storageprotection.NewAttributesClasses)},
		{name: "service-cidr-controller", alias: "service-cidr", account: "service-cidrs-controller", workers: 5,
			build: plain(servicecidr.New)},
		{name: "clusterrole-aggregation-controller", alias: "clusterrole-aggregation",
			account: "clusterrole-aggregation-controller", workers: 5, build: plain(clusterrole.New)},
		{name: "resourcequota-controller", alias: "resourcequota", account: "resourcequota-controller",
			build: func(o *options, d controller.Deps) (runner, error) {
				return resourcequota.New(d, o.quotaPeriod)
			}},
		{name: "validatingadmissionpolicy-status-controller", account: "validatingadmissionpolicy-status-controller",
			workers: 5, build: plain(validatingadmissionpolicystatus.New)},
		{name: "storage-version-migrator-controller", account: "storage-version-migrator-controller", workers: 5,
			build: plain(storageversionmigrator.New)},
		{name: "garbage-collector-controller", alias: "garbagecollector", account: "generic-garbage-collector",
			build: buildCollector},
	}
}

// elsewhere names upstream's controllers that this manager does not have, so that --controllers may name them.
func elsewhere() []string {
	return []string{
		"node-route-controller", "cloud-node-lifecycle-controller", "selinux-warning-controller",
		"podgroup-protection-controller", "resourcepoolstatusrequest-controller",
		"storageversion-garbage-collector-controller",
	}
}

// plain adapts a constructor that needs no options.
//
// T is the type of the controller: its nil pointer becomes a runner that is not nil, which run recognizes by
// reflection.
func plain[T runner](build func(controller.Deps) (T, error)) func(*options, controller.Deps) (runner, error) {
	return func(_ *options, d controller.Deps) (runner, error) { return build(d) }
}

// buildRootCA has nothing to do without --root-ca-file. The file is read once: a new certificate needs a restart.
func buildRootCA(o *options, d controller.Deps) (runner, error) {
	if o.rootCAFile == "" {
		return nil, nil
	}
	bundle, err := os.ReadFile(o.rootCAFile)
	if err != nil {
		return nil, fmt.Errorf("--root-ca-file: %w", err)
	}
	return rootca.New(d, bundle)
}

// buildTrustBundle has nothing to do without --root-ca-file, which is read once, too.
func buildTrustBundle(o *options, d controller.Deps) (runner, error) {
	if o.rootCAFile == "" {
		return nil, nil
	}
	bundle, err := os.ReadFile(o.rootCAFile)
	if err != nil {
		return nil, fmt.Errorf("--root-ca-file: %w", err)
	}
	return trustbundlepublisher.New(d, bundle)
}

// buildTokens acts as the manager itself: anyone who can fill token secrets could become anybody.
func buildTokens(o *options, d controller.Deps) (runner, error) {
	var cfg tokens.Config
	if o.accountKeyFile != "" {
		key, err := os.ReadFile(o.accountKeyFile)
		if err != nil {
			return nil, fmt.Errorf("--service-account-private-key-file: %w", err)
		}
		if cfg.Signer, err = tokens.NewSigner(key); err != nil {
			return nil, fmt.Errorf("--service-account-private-key-file %q: %w", o.accountKeyFile, err)
		}
	}
	if o.rootCAFile != "" {
		bundle, err := os.ReadFile(o.rootCAFile)
		if err != nil {
			return nil, fmt.Errorf("--root-ca-file: %w", err)
		}
		cfg.RootCA = bundle
	}
	return tokens.New(d, cfg)
}

// buildSigning makes the controller for those signers that have an authority.
//
// The files are read for each signature, so that a renewed authority needs no restart.
func buildSigning(o *options, d controller.Deps) (runner, error) {
	cfg := csrsigning.Config{Duration: o.signing.duration,
		Authorities: map[string]func() (*csrsigning.Authority, error){}}
	for signer, files := range o.signing.authorities() {
		cfg.Authorities[signer] = func() (*csrsigning.Authority, error) {
			return csrsigning.Load(files.cert, files.key)
		}
	}
	if len(cfg.Authorities) == 0 {
		return nil, nil
	}
	return csrsigning.New(d, cfg)
}

// buildBalancers makes the controller where there are addresses to give.
func buildBalancers(o *options, d controller.Deps) (runner, error) {
	ranges, err := readCloudConfig(o.cloudConfig)
	if err != nil || len(ranges) == 0 {
		return nil, err
	}
	return service.New(d, func(services func() []*corev1.Service) (service.Provider, error) {
		return localbalancer.New(ranges, services), nil
	})
}

// buildCollector is called last: a resource that another controller caches is not watched a second time.
func buildCollector(o *options, d controller.Deps) (runner, error) {
	if !o.collectGarbage {
		return nil, nil
	}
	return garbagecollector.New(d)
}

func buildIPAM(o *options, d controller.Deps) (runner, error) {
	if !o.allocateCIDRs {
		return nil, nil
	}
	cfg := nodeipam.Config{}
	for _, text := range o.clusterCIDRs {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--cluster-cidr: %w", err)
		}
		cfg.ClusterCIDRs = append(cfg.ClusterCIDRs, p)
		cfg.MaskSizes = append(cfg.MaskSizes, o.maskFor(p))
	}
	for _, text := range o.serviceCIDRs {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--service-cluster-ip-range: %w", err)
		}
		cfg.ServiceCIDRs = append(cfg.ServiceCIDRs, p)
	}
	return nodeipam.New(d, cfg)
}

// maskFor returns the size of a node's range in the cluster range p: the family's flag, the general one, or the
// default.
func (o *options) maskFor(p netip.Prefix) int {
	if p.Addr().Is6() {
		return cmp.Or(o.maskSize6, o.maskSize, 64)
	}
	return cmp.Or(o.maskSize4, o.maskSize, 24)
}

// selected returns the entries that the value of --controllers turns on. A name given both ways is on if its positive
// form comes first, as upstream reads it.
func selected(flags []string) ([]entry, error) {
	all := entries()
	var unknown []string
	for _, f := range flags {
		name := strings.TrimPrefix(f, "-")
		known := name == "*" || slices.Contains(elsewhere(), name) ||
			slices.ContainsFunc(all, func(e entry) bool { return e.name == name || e.alias == name })
		if !known {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("--controllers: %q is not in the list of known controllers", strings.Join(unknown, ", "))
	}
	return slices.DeleteFunc(all, func(e entry) bool { return !enabled(e, flags) }), nil
}

// enabled reports whether --controllers turns a controller on. The first entry with its name decides; the star counts
// only if none has it.
func enabled(e entry, flags []string) bool {
	star := false
	for _, f := range flags {
		switch f {
		case e.name, e.alias:
			return true
		case "-" + e.name, "-" + e.alias:
			return false
		case "*":
			star = true
		}
	}
	return star && !e.optional
}

func knownNames() string {
	var names []string
	for _, e := range entries() {
		names = append(names, e.name)
	}
	return strings.Join(names, ", ")
}

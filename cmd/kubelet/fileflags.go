package main

import (
	"maps"
	"time"

	"github.com/spf13/pflag"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/featuregates"
)

// fileOptions are flags that set fields of the configuration file. Upstream marks them as deprecated, and old start
// scripts still pass them. Without a flag the file's value stays, or the default.
type fileOptions struct {
	anonymous, webhookTokens, enableServer  bool
	authorizationMode, logMaxSize, imageEnd string
	tokenTTL, allowedTTL, deniedTTL         time.Duration
	manifestCheck, statusUpdate, runtime    time.Duration
	logMaxFiles                             int32
	maxPIDs                                 int64
	seccomp, debugging, protectKernel       bool
	readOnlyPort                            int32

	qosCgroups, attachDetach, isolation, failV1, runOnce, contention bool
	tlsMin                                                           string
	tlsSuites                                                        []string
	podsPerCore, maxImages                                           int32
	gates                                                            map[string]bool
	apiQPS, apiBurst, eventQPS, eventBurst, pullQPS, pullBurst       int32
	openFiles                                                        int64
	hairpin                                                          string
	idle                                                             time.Duration
}

func (o *fileOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.anonymous, "anonymous-auth", false,
		"Accept requests without credentials, as system:anonymous; false: refuse them.")
	fs.BoolVar(&o.webhookTokens, "authentication-token-webhook", true,
		"Let the API server authenticate bearer tokens (TokenReview).")
	fs.DurationVar(&o.tokenTTL, "authentication-token-webhook-cache-ttl", 2*time.Minute,
		"How long the result of authenticating a token is cached.")
	fs.StringVar(&o.authorizationMode, "authorization-mode", "Webhook",
		"AlwaysAllow, or Webhook: the API server authorizes requests (SubjectAccessReview).")
	fs.DurationVar(&o.allowedTTL, "authorization-webhook-cache-authorized-ttl", 5*time.Minute,
		"How long an 'allowed' answer is cached.")
	fs.DurationVar(&o.deniedTTL, "authorization-webhook-cache-unauthorized-ttl", 30*time.Second,
		"How long a 'denied' answer is cached.")
	fs.Int32Var(&o.logMaxFiles, "container-log-max-files", 5,
		"The maximum number of log files of a container, at least 2.")
	fs.StringVar(&o.logMaxSize, "container-log-max-size", "10Mi",
		"The size of a container's log file at which it is rotated.")
	fs.BoolVar(&o.enableServer, "enable-server", true, "Serve the kubelet's API.")
	fs.DurationVar(&o.manifestCheck, "file-check-frequency", 20*time.Second,
		"How often the files of static pods are checked.")
	fs.StringVar(&o.imageEnd, "image-service-endpoint", "",
		"The endpoint of the image service, if it is not that of the container runtime.")
	fs.DurationVar(&o.statusUpdate, "node-status-update-frequency", 10*time.Second,
		"How often the node's status is computed.")
	fs.Int64Var(&o.maxPIDs, "pod-max-pids", -1,
		"The maximum number of processes of a pod; -1: the limit of the node.")
	fs.DurationVar(&o.runtime, "runtime-request-timeout", 2*time.Minute,
		"How long a request to the runtime may take, except for those that wait: pulls, logs, exec and attach.")
	fs.BoolVar(&o.seccomp, "seccomp-default", false,
		"Containers that name no seccomp profile get the runtime's, instead of none.")
	fs.BoolVar(&o.protectKernel, "protect-kernel-defaults", false,
		"Start only if the kernel's settings are those that the kubelet expects: vm.overcommit_memory, vm.panic_on_oom, kernel.panic, kernel.panic_on_oops, kernel.keys.root_maxkeys and kernel.keys.root_maxbytes.")
	fs.Int32Var(&o.readOnlyPort, "read-only-port", 0, "Only 0: there is no port without authentication.")
	fs.BoolVar(&o.qosCgroups, "cgroups-per-qos", true, "Only true: pods have cgroups of their classes.")
	fs.BoolVar(&o.attachDetach, "enable-controller-attach-detach", true,
		"Only true: the controller manager attaches volumes.")
	fs.BoolVar(&o.isolation, "local-storage-capacity-isolation", true,
		"Only true: limits of ephemeral storage are kept.")
	fs.BoolVar(&o.failV1, "fail-cgroupv1", false, "Do not start on a machine with cgroup v1.")
	fs.BoolVar(&o.runOnce, "runonce", false, "Only false: the kubelet goes on running.")
	fs.BoolVar(&o.contention, "contention-profiling", false,
		"Record where goroutines wait for locks, if profiling is on.")
	fs.DurationVar(&o.idle, "streaming-connection-idle-timeout", 4*time.Hour,
		"How long a connection of exec, attach or port-forward may be silent before it is closed, if the container runtime does not close it earlier; 0: for ever. Clients that send pings, such as kubectl, are never silent.")
	fs.BoolVar(&o.debugging, "enable-debugging-handlers", true,
		"Serve the endpoints that read from pods or run commands in them: logs, exec, attach, port-forward.")
	fs.StringVar(&o.tlsMin, "tls-min-version", "",
		"Minimum TLS version supported. Possible values: VersionTLS12, VersionTLS13")
	fs.StringSliceVar(&o.tlsSuites, "tls-cipher-suites", nil,
		"Comma-separated list of cipher suites for TLS 1.2 connections. If omitted, the default Go cipher suites will be used.")
	fs.Int32Var(&o.podsPerCore, "pods-per-core", 0,
		"Number of pods per core that can run on this kubelet, never more than --max-pods; 0: as many as that.")
	fs.Int32Var(&o.maxImages, "node-status-max-images", 50,
		"The maximum number of images to report in the node's status; -1: all.")
	o.addRateFlags(fs)
	fs.Int64Var(&o.openFiles, "max-open-files", 0,
		"How many files the kubelet may have open; 0: the limit that it is started with.")
	fs.StringVar(&o.hairpin, "hairpin-mode", "promiscuous-bridge",
		"none, hairpin-veth or promiscuous-bridge: without effect, as upstream, since it belongs to the network plug-in.")
	featuregates.AddMapFlag(fs, &o.gates)
	accepted().AddFlags(fs)
}

// addRateFlags registers the flags that bound what the kubelet does in a second. Without them nothing is bounded: the
// API server's fair queues bound the requests.
func (o *fileOptions) addRateFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&o.apiQPS, "kube-api-qps", 0,
		"Requests per second that the kubelet may send to the API server, beside those that keep its node alive; 0 is any number.")
	fs.Int32Var(&o.apiBurst, "kube-api-burst", 100,
		"Requests that the kubelet may send at once, if --kube-api-qps limits them.")
	fs.Int32Var(&o.eventQPS, "event-qps", 0, "Events per second that the kubelet may send; 0 is any number.")
	fs.Int32Var(&o.eventBurst, "event-burst", 100, "Events that the kubelet may send at once, if --event-qps limits them.")
	fs.Int32Var(&o.pullQPS, "registry-qps", 0,
		"Images per second that the kubelet may begin to pull; more fail, and are tried again. 0 is any number.")
	fs.Int32Var(&o.pullBurst, "registry-burst", 10,
		"Images that the kubelet may begin to pull at once, if --registry-qps limits them.")
}

// merge writes the given flags into the configuration. Defaults of the flags are only for --help: defaultConfig has
// those that apply.
func (o *fileOptions) merge(fs *pflag.FlagSet, c *kubeletconfig.KubeletConfiguration) {
	a, z := &c.Authentication, &c.Authorization
	for flag, set := range map[string]func(){
		"anonymous-auth":                         func() { a.Anonymous.Enabled = &o.anonymous },
		"authentication-token-webhook":           func() { a.Webhook.Enabled = &o.webhookTokens },
		"authentication-token-webhook-cache-ttl": func() { a.Webhook.CacheTTL.Duration = o.tokenTTL },
		"authorization-mode": func() {
			z.Mode = kubeletconfig.KubeletAuthorizationMode(o.authorizationMode)
		},
		"authorization-webhook-cache-authorized-ttl": func() { z.Webhook.CacheAuthorizedTTL.Duration = o.allowedTTL },
		"authorization-webhook-cache-unauthorized-ttl": func() {
			z.Webhook.CacheUnauthorizedTTL.Duration = o.deniedTTL
		},
		"container-log-max-files": func() { c.ContainerLogMaxFiles = &o.logMaxFiles },
		"container-log-max-size":  func() { c.ContainerLogMaxSize = o.logMaxSize },
		"enable-server":           func() { c.EnableServer = &o.enableServer },
		"file-check-frequency":    func() { c.FileCheckFrequency.Duration = o.manifestCheck },
		"image-service-endpoint":  func() { c.ImageServiceEndpoint = o.imageEnd },
		"node-status-update-frequency": func() {
			c.NodeStatusUpdateFrequency.Duration = o.statusUpdate
		},
		"pod-max-pids":                     func() { c.PodPidsLimit = &o.maxPIDs },
		"seccomp-default":                  func() { c.SeccompDefault = &o.seccomp },
		"enable-debugging-handlers":        func() { c.EnableDebuggingHandlers = &o.debugging },
		"tls-min-version":                  func() { c.TLSMinVersion = o.tlsMin },
		"tls-cipher-suites":                func() { c.TLSCipherSuites = o.tlsSuites },
		"pods-per-core":                    func() { c.PodsPerCore = o.podsPerCore },
		"node-status-max-images":           func() { c.NodeStatusMaxImages = &o.maxImages },
		"runtime-request-timeout":          func() { c.RuntimeRequestTimeout.Duration = o.runtime },
		"protect-kernel-defaults":          func() { c.ProtectKernelDefaults = o.protectKernel },
		"read-only-port":                   func() { c.ReadOnlyPort = o.readOnlyPort },
		"cgroups-per-qos":                  func() { c.CgroupsPerQOS = &o.qosCgroups },
		"enable-controller-attach-detach":  func() { c.EnableControllerAttachDetach = &o.attachDetach },
		"local-storage-capacity-isolation": func() { c.LocalStorageCapacityIsolation = &o.isolation },
		"fail-cgroupv1":                    func() { c.FailCgroupV1 = &o.failV1 },
		"runonce":                          func() { c.RunOnce = o.runOnce },
		"contention-profiling":             func() { c.EnableContentionProfiling = o.contention },
		"kube-api-qps":                     func() { c.KubeAPIQPS = &o.apiQPS },
		"kube-api-burst":                   func() { c.KubeAPIBurst = o.apiBurst },
		"event-qps":                        func() { c.EventRecordQPS = &o.eventQPS },
		"event-burst":                      func() { c.EventBurst = o.eventBurst },
		"registry-qps":                     func() { c.RegistryPullQPS = &o.pullQPS },
		"registry-burst":                   func() { c.RegistryBurst = o.pullBurst },
		"max-open-files":                   func() { c.MaxOpenFiles = o.openFiles },
		"hairpin-mode":                     func() { c.HairpinMode = o.hairpin },
		"feature-gates":                    func() { c.FeatureGates = mergeGates(c.FeatureGates, o.gates) },
	} {
		if fs.Changed(flag) {
			set()
		}
	}
	// 0 is the default in the file, and means no timeout for the flag, as upstream.
	if t := &c.StreamingConnectionIdleTimeout; fs.Changed("streaming-connection-idle-timeout") || t.Duration == 0 {
		t.Duration = o.idle
	}
}

// mergeGates returns the file's gates with the flag's over them.
func mergeGates(file, flag map[string]bool) map[string]bool {
	out := maps.Clone(flag)
	for name, on := range file {
		if _, ok := flag[name]; !ok {
			out[name] = on
		}
	}
	return out
}

// accepted are flags that have no effect: the fields that they set have none either, or nothing of the kind is here.
func accepted() daemon.AcceptedFlags {
	return daemon.AcceptedFlags{
		{Why: "requests are protobuf", Strings: []string{"kube-api-content-type"}},
		{Why: "whoever starts the kubelet sets them (systemd's Slice=)",
			Strings: []string{"kubelet-cgroups", "runtime-cgroups", "system-cgroups"}},
		{Why: "it is for a kubelet without an API server, which is not supported", Strings: []string{"pod-cidr"}},
		{Why: "the kubelet makes no packet rules", Bools: []string{"make-iptables-util-chains"}},
		{Why: "memory is looked at every ten seconds", Bools: []string{"kernel-memcg-notification"}},
		{Why: "hard eviction thresholds always reduce what is allocatable",
			Bools: []string{"experimental-allocatable-ignore-eviction"}},
		{Why: "there are no FlexVolumes, and no mounter but the machine's",
			Strings: []string{"volume-plugin-dir", "experimental-mounter-path"}},
		{Why: "changes are watched", Durations: []string{"sync-frequency"}},
		{Why: "volumes of claims are measured every minute, emptyDirs when somebody asks, once a minute at most",
			Durations: []string{"volume-stats-agg-period"}},
		{Why: "there is no cAdvisor in the kubelet, which reads cgroups itself",
			Durations: []string{"housekeeping-interval"}},
	}
}

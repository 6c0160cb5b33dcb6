package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	goruntime "runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
	kernel "k8s.io/component-helpers/node/util/sysctl"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/api/kubeversion"
	"bonsai/cmd/internal/daemon"
	"bonsai/cmd/internal/profiling"
	"bonsai/pkg/authorities"
	"bonsai/pkg/delegated"
	"bonsai/pkg/kubelet"
	"bonsai/pkg/kubelet/apparmor"
	"bonsai/pkg/kubelet/certificate"
	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/cm/numa"
	"bonsai/pkg/kubelet/cm/userns"
	"bonsai/pkg/kubelet/cri"
	"bonsai/pkg/kubelet/dns"
	"bonsai/pkg/kubelet/eviction/pressure"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/images/credentialprovider"
	"bonsai/pkg/kubelet/kubeclient"
	"bonsai/pkg/kubelet/logs"
	"bonsai/pkg/kubelet/node"
	"bonsai/pkg/kubelet/notify"
	"bonsai/pkg/kubelet/server"
	"bonsai/pkg/kubelet/sysctl"
)

const containerLogsDir = "/var/log/containers"

// run composes the kubelet and its servers and runs them until ctx ends.
func run(ctx context.Context, s *settings, log *slog.Logger) error {
	klog.SetSlogLogger(log)
	if s.file.ProtectKernelDefaults {
		if err := sysctl.CheckKernel(kernel.New().GetSysctl); err != nil {
			return fmt.Errorf("protectKernelDefaults (--protect-kernel-defaults): %w", err)
		}
	}
	name, err := s.nodeName()
	if err != nil {
		return err
	}
	registry := daemon.NewMetrics()
	id, err := connect(ctx, s, name, registry, log)
	if err != nil {
		return err
	}
	daemon.NewRequests(registry).Count(id.connection)
	apiserver, err := kubeclient.New(id.connection)
	if err != nil {
		return fmt.Errorf("make a client for the API server: %w", err)
	}
	for _, dir := range []string{s.rootDir, s.file.PodLogsDir, containerLogsDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	cfg, err := config(s, apiserver, name, log)
	if err != nil {
		return err
	}
	if cfg.Users, err = userns.NodeRanges(ctx, idsPerPod(s.file), int(s.file.MaxPods)); err != nil {
		return err
	}
	cfg.Metrics = registry
	observed := notify.New() // the Node changed in the API, and its addresses with it
	cfg.Node.Observed = observed.Notify
	k, err := kubelet.New(ctx, cfg)
	if err != nil {
		return err
	}
	var serving *certificate.Manager // nil: the certificate stays what it is
	if *s.file.EnableServer && s.file.ServerTLSBootstrap {
		if serving, err = servingCertificates(s, apiserver, name, k.Addresses, observed, registry, log); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, m := range []*certificate.Manager{id.certificates, serving} {
		if m != nil {
			g.Go(func() error { return m.Run(ctx) })
		}
	}
	g.Go(func() error { return k.Run(ctx) })
	if *s.file.EnableServer {
		srv, err := api(s, id.connection, k, name, serving, registry)
		if err != nil {
			return err
		}
		g.Go(func() error { return srv.Run(ctx) })
	}
	health := &daemon.Server{Address: s.file.HealthzBindAddress, Port: int(*s.file.HealthzPort), Insecure: true,
		Log:   log,
		Live:  []daemon.Check{{Name: "syncloop", Run: k.Healthy}},
		Ready: []daemon.Check{{Name: "syncloop", Run: k.Healthy}}}
	g.Go(func() error { return health.Run(ctx) })
	return g.Wait()
}

func config(s *settings, apiserver *kubeclient.Client, name string, log *slog.Logger) (kubelet.Config, error) {
	c := s.file
	host, err := dns.Read(*c.ResolverConfig)
	if err != nil {
		return kubelet.Config{}, err
	}
	n, err := nodeConfig(s)
	if err != nil {
		return kubelet.Config{}, err
	}
	sysctls, err := sysctl.New(c.AllowedUnsafeSysctls)
	if err != nil {
		return kubelet.Config{}, err // was checked with the settings
	}
	evicts, err := evictionPolicy(c)
	if err != nil {
		return kubelet.Config{}, err // was checked with the settings
	}
	reserved, err := reservedCgroups(c)
	if err != nil {
		return kubelet.Config{}, err // was checked with the settings
	}
	cpus, err := cpuSettings(c)
	if err != nil {
		return kubelet.Config{}, err // was checked with the settings
	}
	memories, err := memorySettings(c)
	if err != nil {
		return kubelet.Config{}, err // was checked with the settings
	}
	if err := checkReserved(c, memories, n.Machine.Capacity()); err != nil {
		return kubelet.Config{}, err
	}
	near, most, err := topology(c)
	if err != nil {
		return kubelet.Config{}, err // was checked with the settings
	}
	machine, err := numa.Read("/", goruntime.NumCPU())
	if err != nil {
		return kubelet.Config{}, err
	}
	if near.Nodes = machine.Nodes(); near.Considered() && near.Nodes.Count() > most {
		return kubelet.Config{}, fmt.Errorf("unsupported on machines with more than %d NUMA Nodes", most)
	}
	logSize := resource.MustParse(c.ContainerLogMaxSize) // checked with the settings
	cfg := kubelet.Config{
		NodeName: name, Client: apiserver, RootDir: s.rootDir,
		Logs:       logs.Files{Pods: c.PodLogsDir, Links: containerLogsDir},
		LogMaxSize: logSize.Value(), LogMaxFiles: int(*c.ContainerLogMaxFiles),
		LogPeriod:     c.ContainerLogMonitorInterval.Duration,
		StaticPodPath: c.StaticPodPath, StaticPeriod: c.FileCheckFrequency.Duration,
		Runtime: cri.Config{Endpoint: c.ContainerRuntimeEndpoint, ImageEndpoint: c.ImageServiceEndpoint,
			Timeout: c.RuntimeRequestTimeout.Duration,
			Containers: cri.Containers{SeccompDefault: *c.SeccompDefault,
				SingleProcessOOMKill: *c.SingleProcessOOMKill}},
		Cgroups: cgroup.Config{Root: c.CgroupRoot, Driver: c.CgroupDriver,
			Limit: podLimit(c, n.Machine.Capacity(), n.Resources.Reserved), Reserved: reserved,
			Swap: podSwap(c, n.Machine), Log: log},
		Eviction: evicts,
		Images: images.Config{Serialize: *c.SerializeImagePulls, Log: log,
			Verification: images.Verification{Policy: c.ImagePullCredentialsVerificationPolicy,
				Allowlist: c.PreloadedImagesVerificationAllowlist}},
		Shutdown: shutdownPeriods(c), ImageGC: imagePolicy(c), ContainerGC: s.garbage.containerPolicy(),
		DNS:     dns.Config{ClusterDNS: c.ClusterDNS, ClusterDomain: c.ClusterDomain, Host: host},
		Machine: machine, CPUs: cpus, Memory: memories, Topology: near,
		Node: n, Sysctls: sysctls, AppArmor: apparmor.Enabled("/"), Log: log,
	}
	if s.credentialConfig != "" {
		if cfg.CredentialProviders, err = credentialprovider.ReadConfig(s.credentialConfig); err != nil {
			return kubelet.Config{}, err
		}
		cfg.CredentialProviderDir = s.credentialDir
	}
	if c.PodPidsLimit != nil && *c.PodPidsLimit > 0 {
		cfg.Cgroups.PodPidsLimit = *c.PodPidsLimit
	}
	if c.MaxParallelImagePulls != nil {
		cfg.Images.MaxParallel = int(*c.MaxParallelImagePulls)
	}
	if m := c.CrashLoopBackOff.MaxContainerRestartPeriod; m != nil {
		cfg.MaxBackOff = m.Duration
	}
	return cfg, nil
}

func nodeConfig(s *settings) (node.Config, error) {
	c := s.file
	ips, err := s.nodeIPs()
	if err != nil {
		return node.Config{}, err
	}
	taints, err := parseTaints(s.taints)
	if err != nil {
		return node.Config{}, err
	}
	keep, err := kept(c)
	if err != nil {
		return node.Config{}, err
	}
	policy, err := evictionPolicy(c)
	if err != nil {
		return node.Config{}, err
	}
	machine := node.NewLinux(s.rootDir)
	if err := enough(machine.Capacity(), keep); err != nil {
		return node.Config{}, err
	}
	return node.Config{
		IPs: ips, ExternalCloud: s.cloudProvider == daemon.ExternalCloud, Labels: s.nodeLabels,
		Taints: append(taints, c.RegisterWithTaints...), ProviderID: c.ProviderID, NoRegister: !*c.RegisterNode,
		Machine: machine, Resources: node.Resources{MaxPods: maxPods(c), Reserved: keep,
			Kept: pressure.Reserved(policy.Thresholds, machine.Capacity())},
		MaxImages: int(*c.NodeStatusMaxImages), Port: c.Port, Version: kubeversion.Git,
		Interval: c.NodeStatusUpdateFrequency.Duration, Report: c.NodeStatusReportFrequency.Duration,
		LeaseDuration: time.Duration(c.NodeLeaseDurationSeconds) * time.Second,
	}, nil
}

// api composes the HTTPS server: who may ask, and what it shows. Without a manager of its certificate (serving) it has
// one of its own.
func api(s *settings, connection *rest.Config, k *kubelet.Kubelet, name string, serving *certificate.Manager, registry *prometheus.Registry) (*server.Server, error) {
	c := s.file
	current := serving.Current
	if serving == nil {
		var err error
		if current, err = ownServing(s, name, k.NodeIPs()); err != nil {
			return nil, err
		}
	}
	var clients authorities.Source
	var ask *authorities.Set
	if path := c.Authentication.X509.ClientCAFile; path != "" {
		file, err := authorities.NewFile(path)
		if err != nil {
			return nil, fmt.Errorf("authentication.x509.clientCAFile: %w", err)
		}
		clients, ask = file, authorities.Of(file)
	}
	who, may, err := access(c, clients, connection)
	if err != nil {
		return nil, err
	}
	spoken, err := spokenTLS(c)
	if err != nil {
		return nil, err // was checked with the settings
	}
	logDir := "/var/log"
	if !*c.EnableSystemLogHandler {
		logDir = ""
	}
	profiles := profiling.Flags{Enabled: *c.EnableProfilingHandler, Contention: c.EnableContentionProfiling}
	profiles.Start()
	return k.Server(server.Config{
		Address: net.JoinHostPort(c.Address, strconv.Itoa(int(c.Port))), Certificate: current, TLS: spoken,
		Clients: ask, Authenticator: who, Authorizer: may,
		Registry: registry, Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		Configz: func() any { return c }, LogDir: logDir,
		Pages: s.pages, Profiles: profiles.Paths(), NoDebugging: !*c.EnableDebuggingHandlers,
	})
}

// access composes who is known and what he may do, as the configuration says. Without clients nobody is known by a
// certificate.
func access(c *kubeletconfig.KubeletConfiguration, clients authorities.Source, connection *rest.Config) (delegated.Authenticator, delegated.Authorizer, error) {
	asked, err := delegated.NewClient(connection)
	if err != nil {
		return nil, nil, err
	}
	var known delegated.Union
	if clients != nil {
		known = append(known, delegated.Certificates{Roots: clients})
	}
	if *c.Authentication.Webhook.Enabled {
		known = append(known, delegated.NewTokens(asked, c.Authentication.Webhook.CacheTTL.Duration, time.Now))
	}
	var who delegated.Authenticator = known
	if a := c.Authentication.Anonymous.Enabled; a != nil && *a {
		who = delegated.Anonymous{Known: known}
	}
	if c.Authorization.Mode == "AlwaysAllow" {
		return who, delegated.AlwaysAllow{}, nil
	}
	w := c.Authorization.Webhook
	return who, delegated.NewReviews(asked,
		delegated.ReviewTTL{Allowed: w.CacheAuthorizedTTL.Duration, Denied: w.CacheUnauthorizedTTL.Duration},
		time.Now), nil
}

package main

import (
	"cmp"
	"fmt"
	"log/slog"
	goruntime "runtime"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/api/kubeversion"
	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/kubelet"
	"bonsai/pkg/kubelet/apparmor"
	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/cm/numa"
	"bonsai/pkg/kubelet/cri"
	"bonsai/pkg/kubelet/dns"
	"bonsai/pkg/kubelet/eviction/pressure"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/images/credentialprovider"
	"bonsai/pkg/kubelet/kubeclient"
	"bonsai/pkg/kubelet/logs"
	"bonsai/pkg/kubelet/node"
	"bonsai/pkg/kubelet/sysctl"
)

// config returns the kubelet's configuration from the settings. Most of its errors were found when the settings were
// checked; those about the machine (memory, NUMA nodes) are found only here. It reads the machine's CPUs and NUMA nodes
// once, when the kubelet starts.
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
	// The comparison needs the machine's memory, because eviction thresholds may be percentages of it.
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
	// The number of combinations of NUMA nodes is exponential, so the topology manager has a bound.
	if near.Nodes = machine.Nodes(); near.Considered() && near.Nodes.Count() > most {
		return kubelet.Config{}, fmt.Errorf("unsupported on machines with more than %d NUMA Nodes", most)
	}
	podURL, header, err := staticURL(c)
	if err != nil {
		return kubelet.Config{}, err // was checked with the settings
	}
	allocatable := n.Resources.Allocatable(n.Machine.Capacity())
	memoryUse := memoryQoS(c, allocatable.Memory().Value())
	warnMemoryQoS(memoryUse, n.Machine.Info().KernelVersion, log)
	logSize := resource.MustParse(c.ContainerLogMaxSize) // checked with the settings
	cfg := kubelet.Config{
		NodeName: name, Client: apiserver, RootDir: s.rootDir,
		Logs:       logs.Files{Pods: c.PodLogsDir, Links: s.containerLogsDir},
		LogMaxSize: logSize.Value(), LogMaxFiles: int(*c.ContainerLogMaxFiles),
		LogPeriod:     c.ContainerLogMonitorInterval.Duration,
		StaticPodPath: c.StaticPodPath, StaticPeriod: c.FileCheckFrequency.Duration,
		StaticPodURL: podURL, StaticPodURLHeader: header, StaticURLPeriod: c.HTTPCheckFrequency.Duration,
		Runtime: cri.Config{Endpoint: c.ContainerRuntimeEndpoint, ImageEndpoint: c.ImageServiceEndpoint,
			Timeout: c.RuntimeRequestTimeout.Duration,
			Containers: cri.Containers{SeccompDefault: *c.SeccompDefault,
				SingleProcessOOMKill: *c.SingleProcessOOMKill, CPU: cpuQuota(c), Memory: memoryUse}},
		Cgroups: cgroup.Config{Root: c.CgroupRoot, Driver: c.CgroupDriver,
			Limit: podLimit(c, n.Machine.Capacity(), n.Resources.Reserved), Reserved: reserved,
			Swap: podSwap(c, n.Machine), CPU: cpuQuota(c), Memory: memoryUse,
			Reserve: reserve(c, n.Machine.Capacity(), n.Resources.Reserved), Log: log},
		Eviction: evicts,
		Images: images.Config{Serialize: *c.SerializeImagePulls, Log: log,
			Verification: images.Verification{Policy: c.ImagePullCredentialsVerificationPolicy,
				Allowlist: c.PreloadedImagesVerificationAllowlist}},
		Shutdown: shutdownPeriods(c), ImageGC: imagePolicy(c), ContainerGC: s.garbage.containerPolicy(),
		DNS:     dns.Config{ClusterDNS: c.ClusterDNS, ClusterDomain: c.ClusterDomain, Host: host},
		Machine: machine, CPUs: cpus, Memory: memories, Topology: near,
		Node: n, Sysctls: sysctls, AppArmor: apparmor.Enabled("/"), Log: log,
	}
	cfg.EventLimiter = limiter(c.EventRecordQPS, cmp.Or(c.EventBurst, 100))
	if pulls := limiter(c.RegistryPullQPS, cmp.Or(c.RegistryBurst, 10)); pulls != nil {
		cfg.Images.Allow = pulls.TryAccept
	}
	if s.credentialConfig != "" {
		if cfg.CredentialProviders, err = credentialprovider.ReadConfig(s.credentialConfig); err != nil {
			return kubelet.Config{}, err
		}
		cfg.CredentialProviderDir = s.credentialDir
	}
	// -1 and 0 mean no limit.
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

// nodeConfig returns the configuration of the Node from the settings and the machine. These errors are worth a stop at
// the start: a node that registers with wrong taints or capacity attracts pods that it cannot run.
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

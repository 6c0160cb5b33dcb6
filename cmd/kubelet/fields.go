package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	goruntime "runtime"
	"time"

	logsapi "k8s.io/component-base/logs/api/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/kubelet/cgroup"
)

// What becomes of the configuration file's fields that no part of the kubelet asks for: they are refused where a node
// would not do what it is told (unsupported), and named in a warning where it works without them (idle; docs/stock.md
// tells why).

// unsupported refuses what a user who sets it relies on, by its name.
func unsupported(c *kubeletconfig.KubeletConfiguration) (errs []error) {
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("invalid configuration: "+format, args...))
		}
	}
	isFalse := func(b *bool) bool { return b != nil && !*b }
	refuse(c.StaticPodURL != "" || len(c.StaticPodURLHeader) > 0,
		"staticPodURL (--manifest-url) and staticPodURLHeader are not supported: static pods come from staticPodPath")
	refuse(c.RunOnce, "runOnce (--runonce) is not supported")
	refuse(c.ReadOnlyPort != 0,
		"readOnlyPort (--read-only-port) %d is not supported: it would serve pods and metrics without authentication; the port of --port serves them", c.ReadOnlyPort)
	refuse(len(c.QOSReserved) > 0,
		"qosReserved is not supported (upstream: feature gate QOSReserved, which is off by default)")
	refuse(isFalse(c.CgroupsPerQOS),
		"cgroupsPerQOS (--cgroups-per-qos) false is not supported: pods have cgroups of their classes")
	refuse(isFalse(c.CPUCFSQuota), "cpuCFSQuota (--cpu-cfs-quota) false is not supported: limits of CPU are kept")
	refuse(c.CPUCFSQuotaPeriod != nil && c.CPUCFSQuotaPeriod.Duration != 100*time.Millisecond,
		"cpuCFSQuotaPeriod (--cpu-cfs-quota-period) other than 100ms requires feature gate CustomCPUCFSQuotaPeriod, which is off")
	refuse(isFalse(c.EnableControllerAttachDetach),
		"enableControllerAttachDetach (--enable-controller-attach-detach) false is not supported: the controller manager attaches volumes")
	refuse(isFalse(c.LocalStorageCapacityIsolation),
		"localStorageCapacityIsolation (--local-storage-capacity-isolation) false is not supported: limits of ephemeral storage are kept")
	refuse(c.PodsPerCore < 0, "podsPerCore (--pods-per-core) %v must not be a negative number", c.PodsPerCore)
	refuse(*c.NodeStatusMaxImages < -1, "nodeStatusMaxImages (--node-status-max-images) %v must be -1 or greater",
		*c.NodeStatusMaxImages)
	refuse(c.ContainerLogMonitorInterval.Duration < 3*time.Second,
		"containerLogMonitorInterval must be a positive time duration greater than or equal to 3s")
	refuse(c.NodeLeaseDurationSeconds <= 0, "nodeLeaseDurationSeconds must be greater than 0")
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"fileCheckFrequency", c.FileCheckFrequency.Duration},
		{"nodeStatusUpdateFrequency", c.NodeStatusUpdateFrequency.Duration},
		{"nodeStatusReportFrequency", c.NodeStatusReportFrequency.Duration},
		{"runtimeRequestTimeout", c.RuntimeRequestTimeout.Duration}} {
		refuse(f.d < 0, "%s must not be negative", f.name)
	}
	switch s := c.ConfigMapAndSecretChangeDetectionStrategy; s {
	case "", kubeletconfig.GetChangeDetectionStrategy, kubeletconfig.TTLCacheChangeDetectionStrategy,
		kubeletconfig.WatchChangeDetectionStrategy:
	default:
		refuse(true, "configMapAndSecretChangeDetectionStrategy: unknown strategy %q", s)
	}
	if c.FailCgroupV1 != nil && *c.FailCgroupV1 {
		if m, err := cgroup.New(cgroup.Config{Root: c.CgroupRoot, Driver: c.CgroupDriver}); err == nil {
			refuse(m.Version() == 1, "failCgroupV1 is true, and this machine has cgroup v1")
		}
	}
	return errs
}

// idle names the fields that the file sets to something else than their default and that have no effect.
func idle(c *kubeletconfig.KubeletConfiguration) (names []string) {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"containerLogMaxWorkers", other(c.ContainerLogMaxWorkers, 1)},
		{"contentType", c.ContentType != "" && c.ContentType != "application/vnd.kubernetes.protobuf"},
		{"enableDebugFlagsHandler", other(c.EnableDebugFlagsHandler, true)},
		{"enableSystemLogQuery", other(c.EnableSystemLogQuery, false)},
		{"eventRecordQPS", other(c.EventRecordQPS, 50)},
		{"eventBurst", c.EventBurst != 0 && c.EventBurst != 100},
		{"hairpinMode", c.HairpinMode != "" && c.HairpinMode != kubeletconfig.PromiscuousBridge},
		{"httpCheckFrequency", c.HTTPCheckFrequency.Duration != 0},
		{"iptablesDropBit", other(c.IPTablesDropBit, 15)},
		{"iptablesMasqueradeBit", other(c.IPTablesMasqueradeBit, 14)},
		{"kernelMemcgNotification", c.KernelMemcgNotification},
		{"kubeAPIBurst", c.KubeAPIBurst != 0 && c.KubeAPIBurst != 100},
		{"kubeAPIQPS", other(c.KubeAPIQPS, 50)},
		{"kubeletCgroups", c.KubeletCgroups != ""},
		{"makeIPTablesUtilChains", other(c.MakeIPTablesUtilChains, true)},
		{"maxOpenFiles", c.MaxOpenFiles != 0 && c.MaxOpenFiles != 1000000},
		{"memoryReservationPolicy", c.MemoryReservationPolicy != ""},
		{"memoryThrottlingFactor", other(c.MemoryThrottlingFactor, 0.9)},
		{"oomScoreAdj", other(c.OOMScoreAdj, -999)},
		{"podCIDR", c.PodCIDR != ""},
		{"registryBurst", c.RegistryBurst != 0 && c.RegistryBurst != 10},
		{"registryPullQPS", other(c.RegistryPullQPS, 5)},
		{"showHiddenMetricsForVersion", c.ShowHiddenMetricsForVersion != ""},
		{"streamingConnectionIdleTimeout",
			c.StreamingConnectionIdleTimeout.Duration != 0 && c.StreamingConnectionIdleTimeout.Duration != 4*time.Hour},
		{"syncFrequency", c.SyncFrequency.Duration != 0 && c.SyncFrequency.Duration != time.Minute},
		{"systemCgroups", c.SystemCgroups != ""},
		{"tracing", c.Tracing != nil},
		{"volumePluginDir", c.VolumePluginDir != ""},
		{"volumeStatsAggPeriod",
			c.VolumeStatsAggPeriod.Duration != 0 && c.VolumeStatsAggPeriod.Duration != time.Minute},
	} {
		if f.set {
			names = append(names, f.name)
		}
	}
	return names
}

// other reports whether a field is set, and not to its default.
func other[T comparable](p *T, usual T) bool { return p != nil && *p != usual }

// maxPods is how many pods the node may have, of all and by its cores.
func maxPods(c *kubeletconfig.KubeletConfiguration) int64 {
	most := int64(c.MaxPods)
	if c.PodsPerCore > 0 {
		most = min(most, int64(c.PodsPerCore)*int64(goruntime.NumCPU()))
	}
	return most
}

// spokenTLS is which TLS the kubelet's API speaks.
func spokenTLS(c *kubeletconfig.KubeletConfiguration) (*tls.Config, error) {
	config, err := daemon.Serving{MinVersion: c.TLSMinVersion, CipherSuites: c.TLSCipherSuites}.TLS(nil)
	if err != nil {
		return nil, fmt.Errorf("tlsMinVersion, tlsCipherSuites: %w", err)
	}
	for _, id := range c.TLSCurvePreferences {
		if id <= 0 || id > 1<<16-1 {
			return nil, errors.New("tlsCurvePreferences: the ids of curves are those of Go's crypto/tls, from 1 to 65535")
		}
		config.CurvePreferences = append(config.CurvePreferences, tls.CurveID(id))
	}
	return config, nil
}

// logger is how the flags, or else the file, want the log.
func (s *settings) logger() *daemon.Logging {
	l, file := s.logging, s.file.Logging
	if !s.given("v") && file.Verbosity != 0 {
		l.Verbosity = int(file.Verbosity)
	}
	if !s.given("logging-format") && file.Format != "" && file.Format != logsapi.DefaultLogFormat {
		l.Format = file.Format
	}
	return &l
}

package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	goruntime "runtime"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/kubelet/cgroup"
)

// Fields of the configuration file that no part of the kubelet reads are either refused, where a node would not do what
// its user relies on (limitedFields), or named in a warning, where the kubelet works without them (idleFields).

// limitedField is a field that the kubelet supports only with some values.
type limitedField struct {
	// name is that of the file, flag that of the flag that sets it, if there is one.
	name, flag string
	// why is the error's text after "invalid configuration: ".
	why string
	// refused reports whether the file sets another value.
	refused bool
}

// limitedFields returns the fields whose other values are not built. A node that ignored them would not do what its
// user relies on, so it refuses to start.
func limitedFields(c *kubeletconfig.KubeletConfiguration) []limitedField {
	isFalse := func(b *bool) bool { return b != nil && !*b }
	return []limitedField{
		{"runOnce", "runonce", "runOnce (--runonce) is not supported", c.RunOnce},
		{"readOnlyPort", "read-only-port", fmt.Sprintf("readOnlyPort (--read-only-port) %d is not supported: "+
			"it would serve pods and metrics without authentication; the port of --port serves them", c.ReadOnlyPort),
			c.ReadOnlyPort != 0},
		{"qosReserved", "qos-reserved",
			"qosReserved (--qos-reserved) requires feature gate QOSReserved, which is off by default",
			len(c.QOSReserved) > 0 && !gateOn(c, gateQOSReserved)},
		{"cgroupsPerQOS", "cgroups-per-qos",
			"cgroupsPerQOS (--cgroups-per-qos) false is not supported: pods have cgroups of their classes",
			isFalse(c.CgroupsPerQOS)},
		{"enableControllerAttachDetach", "enable-controller-attach-detach",
			"enableControllerAttachDetach (--enable-controller-attach-detach) false is not supported: " +
				"the controller manager attaches volumes", isFalse(c.EnableControllerAttachDetach)},
		{"localStorageCapacityIsolation", "local-storage-capacity-isolation",
			"localStorageCapacityIsolation (--local-storage-capacity-isolation) false is not supported: " +
				"limits of ephemeral storage are kept", isFalse(c.LocalStorageCapacityIsolation)},
		{"defaultPodSysctls", "", defaultSysctls(c), len(c.DefaultPodSysctls) > 0},
	}
}

// defaultSysctls says why pods have no sysctls but those that they name. Without the gate the words are upstream's.
func defaultSysctls(c *kubeletconfig.KubeletConfiguration) string {
	if gateOn(c, "DefaultPodSysctls") {
		return "defaultPodSysctls is not supported: pods have the sysctls that they name"
	}
	return "DefaultPodSysctls feature gate is required for Kubelet configuration option defaultPodSysctls"
}

// unsupported returns an error for each field with a value that this kubelet cannot honour, or that no kubelet could.
func unsupported(c *kubeletconfig.KubeletConfiguration) (errs []error) {
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("invalid configuration: "+format, args...))
		}
	}
	for _, f := range limitedFields(c) {
		refuse(f.refused, "%s", f.why)
	}
	for _, f := range []struct {
		name, flag string
		value      int64
	}{{"eventBurst", "event-burst", int64(c.EventBurst)}, {"eventRecordQPS", "event-qps", amount(c.EventRecordQPS)},
		{"kubeAPIBurst", "kube-api-burst", int64(c.KubeAPIBurst)}, {"kubeAPIQPS", "kube-api-qps", amount(c.KubeAPIQPS)},
		{"maxOpenFiles", "max-open-files", c.MaxOpenFiles},
		{"registryBurst", "registry-burst", int64(c.RegistryBurst)},
		{"registryPullQPS", "registry-qps", amount(c.RegistryPullQPS)}} {
		refuse(f.value < 0, "%s (--%s) %v must not be a negative number", f.name, f.flag, f.value)
	}
	switch c.HairpinMode {
	case "", kubeletconfig.HairpinNone, kubeletconfig.HairpinVeth, kubeletconfig.PromiscuousBridge:
	default:
		refuse(true, "option %q specified for hairpinMode (--hairpin-mode). Valid options are %q, %q or %q",
			c.HairpinMode, kubeletconfig.HairpinNone, kubeletconfig.HairpinVeth, kubeletconfig.PromiscuousBridge)
	}
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
		{"httpCheckFrequency", c.HTTPCheckFrequency.Duration},
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
	errs = append(errs, checkMemoryQoS(c)...)
	for _, err := range tracingapi.ValidateTracingConfiguration(c.Tracing, nil, field.NewPath("tracing")) {
		errs = append(errs, fmt.Errorf("invalid configuration: %w", err))
	}
	// The machine is asked only if the field is set. An error here is reported when the cgroups are made.
	if c.FailCgroupV1 != nil && *c.FailCgroupV1 {
		if version, err := cgroup.Version(); err == nil {
			refuse(version == 1, "failCgroupV1 is true, and this machine has cgroup v1")
		}
	}
	return errs
}

// idle returns the names of fields that the file sets to another value than the default, and that have no effect. It
// must see the file before flags and defaults are merged.
func idle(c *kubeletconfig.KubeletConfiguration) (names []string) {
	for _, f := range idleFields(c) {
		if f.set {
			names = append(names, f.name)
		}
	}
	return names
}

// idleField is a field of the configuration file that has no effect.
type idleField struct {
	// name is that of the file; why says what the kubelet does instead.
	name, why string
	// set reports whether the file sets it to something else than its default.
	set bool
}

// idleFields returns all fields that have no effect, with the reason.
func idleFields(c *kubeletconfig.KubeletConfiguration) []idleField {
	const (
		starter  = "whoever starts the kubelet sets it (systemd's Slice=)"
		measured = "volumes of claims are measured every minute, emptyDirs when somebody asks, once a minute at most"
	)
	return []idleField{
		{"containerLogMaxWorkers", "logs are rotated one after the other", other(c.ContainerLogMaxWorkers, 1)},
		{"contentType", "requests are protobuf",
			c.ContentType != "" && c.ContentType != "application/vnd.kubernetes.protobuf"},
		{"enableDebugFlagsHandler", "the kubelet serves no flags to set", other(c.EnableDebugFlagsHandler, true)},
		{"enableSystemLogQuery", "the journal is not read", other(c.EnableSystemLogQuery, false)},
		{"iptablesDropBit", "the kubelet makes no packet rules", other(c.IPTablesDropBit, 15)},
		{"iptablesMasqueradeBit", "the kubelet makes no packet rules", other(c.IPTablesMasqueradeBit, 14)},
		{"kernelMemcgNotification", "memory is looked at every ten seconds", c.KernelMemcgNotification},
		{"kubeletCgroups", starter, c.KubeletCgroups != ""},
		{"makeIPTablesUtilChains", "the kubelet makes no packet rules", other(c.MakeIPTablesUtilChains, true)},
		{"podCIDR", "it is for a kubelet without an API server, which is not supported", c.PodCIDR != ""},
		{"showHiddenMetricsForVersion", "no metric is hidden", c.ShowHiddenMetricsForVersion != ""},
		{"syncFrequency", "changes are watched",
			c.SyncFrequency.Duration != 0 && c.SyncFrequency.Duration != time.Minute},
		{"systemCgroups", starter, c.SystemCgroups != ""},
		{"volumePluginDir", "there are no FlexVolumes", c.VolumePluginDir != ""},
		{"volumeStatsAggPeriod", measured,
			c.VolumeStatsAggPeriod.Duration != 0 && c.VolumeStatsAggPeriod.Duration != time.Minute},
	}
}

// amount returns the value of a field, 0 if it is not set.
func amount(p *int32) int64 {
	if p == nil {
		return 0
	}
	return int64(*p)
}

// other reports whether a field is set, and not to its default.
func other[T comparable](p *T, usual T) bool { return p != nil && *p != usual }

// maxPods returns how many pods the node may have: maxPods, or fewer if podsPerCore bounds them.
func maxPods(c *kubeletconfig.KubeletConfiguration) int64 {
	most := int64(c.MaxPods)
	if c.PodsPerCore > 0 {
		most = min(most, int64(c.PodsPerCore)*int64(goruntime.NumCPU()))
	}
	return most
}

// spokenTLS returns the TLS settings of the kubelet's API, without a certificate.
func spokenTLS(c *kubeletconfig.KubeletConfiguration) (*tls.Config, error) {
	config, err := daemon.Serving{MinVersion: c.TLSMinVersion, CipherSuites: c.TLSCipherSuites}.TLS(nil,
		slog.New(slog.DiscardHandler)) // nothing is in files
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

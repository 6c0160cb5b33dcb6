package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/featuregates"
	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/cm/userns"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/node"
	"bonsai/pkg/kubelet/sysctl"
	"bonsai/pkg/zpages"
)

// settings are the flags and the configuration file, merged and checked. Other functions dereference fields of file
// without checks, and rely on its defaults.
type settings struct {
	*options
	file *kubeletconfig.KubeletConfiguration
	// log is how the log is written, by the flags and the file.
	log daemon.Logging
	// idle are the fields that the file sets, but that have no effect.
	idle []string
	// containerLogsDir holds a link to each container's log.
	containerLogsDir string
	// pages are what /statusz and /flagz show.
	pages *zpages.Config
	// given reports whether a flag was given.
	given func(flag string) bool
}

// defaultConfig sets upstream's defaults of the fields that this kubelet uses. It runs after the flags are merged, so a
// given flag is not overwritten.
func defaultConfig(c *kubeletconfig.KubeletConfiguration) {
	text := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	text(&c.ContainerRuntimeEndpoint, "unix:///run/containerd/containerd.sock")
	text((*string)(&c.ImagePullCredentialsVerificationPolicy), string(kubeletconfig.NeverVerifyPreloadedImages))
	text(&c.PodLogsDir, "/var/log/pods")
	text((*string)(&c.MemoryReservationPolicy), string(kubeletconfig.NoneMemoryReservationPolicy))
	text(&c.ContainerLogMaxSize, "10Mi")
	text((*string)(&c.Authorization.Mode), "Webhook")
	yes, no, files, images, score := true, false, int32(5), int32(50), int32(-999)
	pointer(&c.OOMScoreAdj, &score)
	pointer(&c.CPUCFSQuota, &yes)
	pointer(&c.CPUCFSQuotaPeriod, &metav1.Duration{Duration: usualPeriod})
	pointer(&c.EnableDebuggingHandlers, &yes)
	pointer(&c.EnableSystemLogHandler, &yes)
	pointer(&c.EnableProfilingHandler, &yes)
	pointer(&c.SeccompDefault, &no)
	pointer(&c.SingleProcessOOMKill, &no)
	pointer(&c.NodeStatusMaxImages, &images)
	pointer(&c.ContainerLogMonitorInterval, &metav1.Duration{Duration: 10 * time.Second})
	pointer(&c.EnableServer, &yes)
	pointer(&c.Authentication.Webhook.Enabled, &yes)
	pointer(&c.ContainerLogMaxFiles, &files)
	duration(&c.Authentication.Webhook.CacheTTL.Duration, 2*time.Minute)
	duration(&c.Authorization.Webhook.CacheAuthorizedTTL.Duration, 5*time.Minute)
	duration(&c.Authorization.Webhook.CacheUnauthorizedTTL.Duration, 30*time.Second)
	duration(&c.FileCheckFrequency.Duration, 20*time.Second)
	duration(&c.RuntimeRequestTimeout.Duration, 2*time.Minute)
	duration(&c.NodeStatusUpdateFrequency.Duration, 10*time.Second)
	duration(&c.NodeStatusReportFrequency.Duration, 5*time.Minute)
	if c.NodeLeaseDurationSeconds == 0 {
		c.NodeLeaseDurationSeconds = 40
	}
}

func pointer[T any](p **T, v *T) {
	if *p == nil {
		*p = v
	}
}

func duration(d *time.Duration, v time.Duration) {
	if *d == 0 {
		*d = v
	}
}

// check returns all faults of the settings together, so that a user need not start the kubelet once for each.
func (s *settings) check() error {
	c := s.file
	_, logSize := resource.ParseQuantity(c.ContainerLogMaxSize)
	_, sysctls := sysctl.New(c.AllowedUnsafeSysctls)
	_, nodeIPs := s.nodeIPs()
	_, taints := parseTaints(s.taints)
	_, reserved := kept(c)
	_, eviction := evictionPolicy(c)
	_, tls := spokenTLS(c)
	_, qos := reservedPercent(c)
	_, _, static := staticURL(c)
	allowed, gates := featuregates.With(c.FeatureGates)
	verification := images.Verification{Policy: c.ImagePullCredentialsVerificationPolicy,
		Allowlist: c.PreloadedImagesVerificationAllowlist}
	swap := c.MemorySwap.SwapBehavior
	return errors.Join(
		daemon.Require(s.kubeconfig != "", "--kubeconfig is required"),
		daemon.Require(!s.lock.exit || s.lock.path != "",
			"cannot exit on lock file contention: no lock file specified (--lock-file)"),
		daemon.Require(c.CgroupDriver == "cgroupfs" || c.CgroupDriver == "systemd",
			"cgroupDriver %q is neither cgroupfs nor systemd", c.CgroupDriver),
		daemon.Require((c.TLSCertFile == "") == (c.TLSPrivateKeyFile == ""),
			"tlsCertFile and tlsPrivateKeyFile must be given together"),
		daemon.Require(c.Authorization.Mode == "Webhook" || c.Authorization.Mode == "AlwaysAllow",
			"authorization.mode %q is neither Webhook nor AlwaysAllow", c.Authorization.Mode),
		checkImages(imagePolicy(c)),
		daemon.Require(logSize == nil, "containerLogMaxSize: %w", logSize),
		daemon.Require(*c.OOMScoreAdj >= -1000 && *c.OOMScoreAdj <= 1000,
			"invalid configuration: oomScoreAdj (--oom-score-adj) %d must be between -1000 and 1000", *c.OOMScoreAdj),
		daemon.Require(c.MaxPods >= 0, "maxPods %d is negative", c.MaxPods),
		daemon.Require(!*c.FailSwapOn || !swapIsOn(),
			"running with swap on is not supported, please disable swap or set failSwapOn to false"),
		daemon.Require(swap == "" || swap == "NoSwap" || swap == limitedSwap,
			`invalid configuration: memorySwap.swapBehavior %q must be one of: "", "LimitedSwap" or "NoSwap"`, swap),
		daemon.Require((s.credentialConfig == "") == (s.credentialDir == ""),
			"--image-credential-provider-config and --image-credential-provider-bin-dir must be given together"),
		verification.Check(),
		daemon.Require(sysctls == nil, "allowedUnsafeSysctls: %w", sysctls),
		nodeIPs,
		checkNodeLabels(s.nodeLabels),
		taints,
		reserved,
		eviction,
		checkShutdown(c),
		checkEnforced(c),
		tls,
		s.log.Validate(allowed, field.NewPath("logging")),
		daemon.Require(gates == nil, "invalid configuration: featureGates (--feature-gates): %w", gates),
		errors.Join(unsupported(c)...),
		checkManagers(c),
		checkQuota(c),
		qos,
		static,
	)
}

// idsPerPod returns how many user and group ids a pod with its own user namespace gets.
func idsPerPod(c *kubeletconfig.KubeletConfiguration) int64 {
	if u := c.UserNamespaces; u != nil && u.IDsPerPod != nil {
		return *u.IDsPerPod
	}
	return userns.DefaultLength
}

// limitedSwap is the memorySwap.swapBehavior that lets containers of burstable pods swap.
const limitedSwap = "LimitedSwap"

// podSwap returns how much swap pods may use on a machine. With LimitedSwap, each container of a burstable pod gets a
// share in proportion to its memory request (KEP-2400).
func podSwap(c *kubeletconfig.KubeletConfiguration, machine node.Machine) cgroup.Swap {
	memory, swap := machine.Capacity()[corev1.ResourceMemory], machine.Info().Swap
	s := cgroup.Swap{Limited: c.MemorySwap.SwapBehavior == limitedSwap, NodeMemory: memory.Value()}
	if swap != nil && swap.Capacity != nil {
		s.NodeSwap = *swap.Capacity
	}
	return s
}

// swapIsOn reads /proc/swaps, whose first line is a heading.
func swapIsOn() bool {
	b, err := os.ReadFile("/proc/swaps")
	return err == nil && len(strings.Split(strings.TrimSpace(string(b)), "\n")) > 1
}

// reserved parses amounts that a flag, or the field of the same meaning, keeps from pods. Errors name the flag, as
// upstream's do, also if the file set the field.
func reserved(flag string, amounts map[string]string) (corev1.ResourceList, error) {
	out := corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		switch n := corev1.ResourceName(name); n {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, "pid":
			q, err := resource.ParseQuantity(amounts[name])
			if err != nil {
				return nil, fmt.Errorf("%s value failed to parse: failed to parse quantity %q for %q resource: %w",
					flag, amounts[name], name, err)
			}
			if q.Sign() < 0 {
				return nil, fmt.Errorf("%s value failed to parse: resource quantity for %q cannot be negative: %v",
					flag, name, amounts[name])
			}
			out[n] = q
		default:
			return nil, fmt.Errorf("%s value failed to parse: cannot reserve %q resource", flag, name)
		}
	}
	return out, nil
}

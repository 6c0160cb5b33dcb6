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
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/pkg/featuregates"
	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/cm/userns"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/node"
	"bonsai/pkg/kubelet/sysctl"
	"bonsai/pkg/zpages"
)

// settings are the flags and the configuration file, merged and checked.
type settings struct {
	*options
	file *kubeletconfig.KubeletConfiguration
	// idle are the fields that the file sets, but that have no effect.
	idle []string
	// containerLogsDir holds a link to each container's log.
	containerLogsDir string
	// pages are what /statusz and /flagz show.
	pages *zpages.Config
	// given reports whether a flag was given.
	given func(flag string) bool
}

// defaultConfig fills in upstream's defaults of the fields that are used.
func defaultConfig(c *kubeletconfig.KubeletConfiguration) {
	text := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	text(&c.ContainerRuntimeEndpoint, "unix:///run/containerd/containerd.sock")
	text((*string)(&c.ImagePullCredentialsVerificationPolicy), string(kubeletconfig.NeverVerifyPreloadedImages))
	text(&c.PodLogsDir, "/var/log/pods")
	text(&c.ContainerLogMaxSize, "10Mi")
	text((*string)(&c.Authorization.Mode), "Webhook")
	yes, no, files, images := true, false, int32(5), int32(50)
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

// check refuses settings that cannot work; it names all of them.
func (s *settings) check() error {
	c := s.file
	var errs []error
	if s.kubeconfig == "" {
		errs = append(errs, errors.New("--kubeconfig is required"))
	}
	if c.CgroupDriver != "cgroupfs" && c.CgroupDriver != "systemd" {
		errs = append(errs, fmt.Errorf("cgroupDriver %q is neither cgroupfs nor systemd", c.CgroupDriver))
	}
	if (c.TLSCertFile == "") != (c.TLSPrivateKeyFile == "") {
		errs = append(errs, errors.New("tlsCertFile and tlsPrivateKeyFile must be given together"))
	}
	if c.Authorization.Mode != "Webhook" && c.Authorization.Mode != "AlwaysAllow" {
		errs = append(errs, fmt.Errorf("authorization.mode %q is neither Webhook nor AlwaysAllow",
			c.Authorization.Mode))
	}
	if err := checkImages(imagePolicy(c)); err != nil {
		errs = append(errs, err)
	}
	if _, err := resource.ParseQuantity(c.ContainerLogMaxSize); err != nil {
		errs = append(errs, fmt.Errorf("containerLogMaxSize: %w", err))
	}
	if c.MaxPods < 0 {
		errs = append(errs, fmt.Errorf("maxPods %d is negative", c.MaxPods))
	}
	if *c.FailSwapOn && swapIsOn() {
		errs = append(errs, errors.New(
			"running with swap on is not supported, please disable swap or set failSwapOn to false"))
	}
	if b := c.MemorySwap.SwapBehavior; b != "" && b != "NoSwap" && b != limitedSwap {
		errs = append(errs, fmt.Errorf(
			`invalid configuration: memorySwap.swapBehavior %q must be one of: "", "LimitedSwap" or "NoSwap"`, b))
	}
	if (s.credentialConfig == "") != (s.credentialDir == "") {
		errs = append(errs, errors.New(
			"--image-credential-provider-config and --image-credential-provider-bin-dir must be given together"))
	}
	if err := (images.Verification{Policy: c.ImagePullCredentialsVerificationPolicy,
		Allowlist: c.PreloadedImagesVerificationAllowlist}).Check(); err != nil {
		errs = append(errs, err)
	}
	if _, err := sysctl.New(c.AllowedUnsafeSysctls); err != nil {
		errs = append(errs, fmt.Errorf("allowedUnsafeSysctls: %w", err))
	}
	if _, err := s.nodeIPs(); err != nil {
		errs = append(errs, err)
	}
	if err := checkNodeLabels(s.nodeLabels); err != nil {
		errs = append(errs, err)
	}
	if _, err := parseTaints(s.taints); err != nil {
		errs = append(errs, err)
	}
	if _, err := kept(c); err != nil {
		errs = append(errs, err)
	}
	if _, err := evictionPolicy(c); err != nil {
		errs = append(errs, err)
	}
	if err := checkShutdown(c); err != nil {
		errs = append(errs, err)
	}
	if err := checkEnforced(c); err != nil {
		errs = append(errs, err)
	}
	if _, err := spokenTLS(c); err != nil {
		errs = append(errs, err)
	}
	if err := featuregates.Check(c.FeatureGates); err != nil {
		errs = append(errs, fmt.Errorf("invalid configuration: featureGates (--feature-gates): %w", err))
	}
	errs = append(errs, unsupported(c)...)
	if err := checkManagers(c); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// idsPerPod is how many user and group ids a pod with users of its own gets.
func idsPerPod(c *kubeletconfig.KubeletConfiguration) int64 {
	if u := c.UserNamespaces; u != nil && u.IDsPerPod != nil {
		return *u.IDsPerPod
	}
	return userns.DefaultLength
}

// limitedSwap is the memorySwap.swapBehavior that lets containers of burstable pods swap.
const limitedSwap = "LimitedSwap"

// podSwap is the swap that pods may use on a machine.
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

// reserved reads what a flag, or the field of that meaning, keeps from pods.
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

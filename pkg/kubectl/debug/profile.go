package debug

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// The profiles of --profile.
const (
	general    = "general"
	baseline   = "baseline"
	restricted = "restricted"
	netadmin   = "netadmin"
	sysadmin   = "sysadmin"
	legacy     = "legacy"
)

// place is where a debugging container is.
type place int

const (
	ephemeral place = iota // an ephemeral container of a pod that runs
	copied                 // a container of a copy
	onNode                 // the container of a pod on a node
)

// grant gives c, a container of spec, the rights of profile for its place. baseline and restricted replace the security
// context that c may have had in the copied pod.
func grant(profile string, in place, spec *corev1.PodSpec, c *corev1.Container) {
	if in == copied && profile != legacy && spec.ShareProcessNamespace == nil {
		spec.ShareProcessNamespace = new(true)
	}
	if in == onNode && slices.Contains([]string{general, netadmin, sysadmin, legacy}, profile) {
		spec.HostNetwork, spec.HostPID, spec.HostIPC = true, true, true
	}
	if in == onNode && slices.Contains([]string{general, sysadmin, legacy}, profile) {
		mountRoot(spec, c)
	}
	switch profile {
	case general:
		if in != onNode {
			addCapabilities(c, "SYS_PTRACE")
		}
	case baseline:
		c.SecurityContext = nil
	case restricted:
		c.SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true),
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
	case netadmin:
		addCapabilities(c, "NET_ADMIN", "NET_RAW")
	case sysadmin:
		security(c).Privileged = new(true)
	}
}

// mountRoot shows c the node's files at /host.
func mountRoot(spec *corev1.PodSpec, c *corev1.Container) {
	const name = "host-root"
	spec.Volumes = append(spec.Volumes,
		corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/host"})
}

func security(c *corev1.Container) *corev1.SecurityContext {
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	return c.SecurityContext
}

func addCapabilities(c *corev1.Container, names ...corev1.Capability) {
	s := security(c)
	if s.Capabilities == nil {
		s.Capabilities = &corev1.Capabilities{}
	}
	for _, n := range names {
		if !slices.Contains(s.Capabilities.Add, n) {
			s.Capabilities.Add = append(s.Capabilities.Add, n)
		}
	}
}

// customize merges partial, the container of --custom, over c as a strategic merge patch; nil changes nothing. It runs
// last, so that the user's file wins over the profile.
func customize(c, partial *corev1.Container) error {
	if partial == nil {
		return nil
	}
	whole, err := json.Marshal(c)
	if err != nil {
		return err
	}
	named := partial.DeepCopy()
	named.Name = c.Name // always encoded: an empty one would erase the container's
	patch, err := json.Marshal(named)
	if err != nil {
		return err
	}
	merged, err := strategicpatch.StrategicMergePatch(whole, patch, corev1.Container{})
	if err != nil {
		return fmt.Errorf("lay the custom profile over the container: %w", err)
	}
	*c = corev1.Container{}
	return json.Unmarshal(merged, c)
}

// keep says what a copy keeps of its pod.
type keep struct {
	annotations, labels, liveness, readiness, startup, initContainers bool
}

func (k *keep) addFlags(set *pflag.FlagSet) {
	set.BoolVar(&k.annotations, "keep-annotations", false,
		"If true, keep the original pod annotations.(This flag only works when used with '--copy-to')")
	set.BoolVar(&k.initContainers, "keep-init-containers", true,
		"Run the init containers for the pod. Defaults to true.(This flag only works when used with '--copy-to')")
	set.BoolVar(&k.labels, "keep-labels", false,
		"If true, keep the original pod labels.(This flag only works when used with '--copy-to')")
	set.BoolVar(&k.liveness, "keep-liveness", false,
		"If true, keep the original pod liveness probes.(This flag only works when used with '--copy-to')")
	set.BoolVar(&k.readiness, "keep-readiness", false,
		"If true, keep the original pod readiness probes.(This flag only works when used with '--copy-to')")
	set.BoolVar(&k.startup, "keep-startup", false,
		"If true, keep the original startup probes.(This flag only works when used with '--copy-to')")
}

// drop takes out of pod what is not kept.
func (k keep) drop(pod *corev1.Pod) {
	if !k.annotations {
		pod.Annotations = nil
	}
	if !k.labels {
		pod.Labels = nil
	}
	if !k.initContainers {
		pod.Spec.InitContainers = nil
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if !k.liveness {
			c.LivenessProbe = nil
		}
		if !k.readiness {
			c.ReadinessProbe = nil
		}
		if !k.startup {
			c.StartupProbe = nil
		}
	}
}

package cri

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"bonsai/pkg/kubelet/runtime"
)

// Paths of /proc and /sys that containers must not read or write unless procMount says Unmasked
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/, "/proc Mount Type").
var (
	maskedPaths = []string{"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys",
		"/proc/latency_stats", "/proc/timer_list",
		"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap"}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// sandboxSecurity returns the security context of a pod's sandbox. The sandbox's own process only holds the namespaces,
// so it always gets the runtime's seccomp profile.
func sandboxSecurity(pod *corev1.Pod, users *runtime.IDRange) *runtimeapi.LinuxSandboxSecurityContext {
	sc := &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: namespaces(pod, "", users),
		Privileged: privileged(pod),
		Seccomp:    &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}}
	ps := pod.Spec.SecurityContext
	if ps == nil {
		return sc
	}
	sc.RunAsUser, sc.RunAsGroup = int64Value(ps.RunAsUser), int64Value(ps.RunAsGroup)
	if sc.RunAsUser == nil {
		sc.RunAsGroup = nil // a group without a user is not allowed for the sandbox
	}
	sc.SelinuxOptions = selinux(ps.SELinuxOptions)
	sc.SupplementalGroups, sc.SupplementalGroupsPolicy = groups(ps)
	return sc
}

// privileged reports whether the sandbox must be privileged. One container is enough: the runtime refuses a privileged
// container in a sandbox that is not.
func privileged(pod *corev1.Pod) bool {
	has := func(sc *corev1.SecurityContext) bool { return sc != nil && sc.Privileged != nil && *sc.Privileged }
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return has(c.SecurityContext)
	}) ||
		slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return has(c.SecurityContext) })
}

// namespaces chooses between the node's, the pod's, the container's own and another container's namespaces. target is
// the container whose processes an ephemeral container wants to see. It matters only where the pod does not share
// processes already. Sandbox and containers must agree on the user namespace, hence one function for both.
func namespaces(pod *corev1.Pod, target string, users *runtime.IDRange) *runtimeapi.NamespaceOption {
	o := &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_POD, Ipc: runtimeapi.NamespaceMode_POD,
		Pid: runtimeapi.NamespaceMode_CONTAINER}
	if pod.Spec.HostNetwork {
		o.Network = runtimeapi.NamespaceMode_NODE
	}
	if pod.Spec.HostIPC {
		o.Ipc = runtimeapi.NamespaceMode_NODE
	}
	switch {
	case pod.Spec.HostPID:
		o.Pid = runtimeapi.NamespaceMode_NODE
	case pod.Spec.ShareProcessNamespace != nil && *pod.Spec.ShareProcessNamespace:
		o.Pid = runtimeapi.NamespaceMode_POD
	case target != "":
		o.Pid, o.TargetId = runtimeapi.NamespaceMode_TARGET, target
	}
	if users != nil {
		ids := mappings(users)
		o.UsernsOptions = &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: ids, Gids: ids}
	}
	return o
}

// mappings are the pod's ids from 0 on, and those of the node that stand for them; nil: they are the same.
func mappings(users *runtime.IDRange) []*runtimeapi.IDMapping {
	if users == nil {
		return nil
	}
	return []*runtimeapi.IDMapping{{HostId: users.First, Length: users.Length}}
}

// containerSecurity merges the pod's and the container's security contexts; the container's fields win. If neither
// context names a user, the image's user counts, as a number where that is known.
func containerSecurity(q runtime.ContainerRequest, node Containers) *runtimeapi.LinuxContainerSecurityContext {
	pod, o := q.Pod, q.Options
	out := &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: namespaces(pod, o.TargetID, q.Sandbox.Users),
		MaskedPaths: maskedPaths, ReadonlyPaths: readonlyPaths,
		Seccomp: &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}}
	if node.SeccompDefault {
		out.Seccomp.ProfileType = runtimeapi.SecurityProfile_RuntimeDefault
	}
	if ps := pod.Spec.SecurityContext; ps != nil {
		out.RunAsUser, out.RunAsGroup = int64Value(ps.RunAsUser), int64Value(ps.RunAsGroup)
		out.SelinuxOptions = selinux(ps.SELinuxOptions)
		out.SupplementalGroups, out.SupplementalGroupsPolicy = groups(ps)
		if ps.SeccompProfile != nil {
			out.Seccomp = seccomp(ps.SeccompProfile)
		}
		if ps.AppArmorProfile != nil {
			out.Apparmor = apparmor(ps.AppArmorProfile)
		}
	}
	if cs := q.Container.SecurityContext; cs != nil {
		applyContainer(out, cs)
	}
	if out.RunAsUser == nil {
		if o.ImageUID != nil {
			out.RunAsUser = &runtimeapi.Int64Value{Value: *o.ImageUID}
		} else {
			out.RunAsUsername = o.ImageUser
		}
	}
	return out
}

// applyContainer sets what the container's own security context names. The profile of a privileged container is set
// last, because it replaces any other.
func applyContainer(out *runtimeapi.LinuxContainerSecurityContext, cs *corev1.SecurityContext) {
	if cs.RunAsUser != nil {
		out.RunAsUser = int64Value(cs.RunAsUser)
	}
	if cs.RunAsGroup != nil {
		out.RunAsGroup = int64Value(cs.RunAsGroup)
	}
	if cs.SELinuxOptions != nil {
		out.SelinuxOptions = selinux(cs.SELinuxOptions)
	}
	if cs.SeccompProfile != nil {
		out.Seccomp = seccomp(cs.SeccompProfile)
	}
	if cs.AppArmorProfile != nil {
		out.Apparmor = apparmor(cs.AppArmorProfile)
	}
	out.Privileged = cs.Privileged != nil && *cs.Privileged
	out.ReadonlyRootfs = cs.ReadOnlyRootFilesystem != nil && *cs.ReadOnlyRootFilesystem
	out.NoNewPrivs = cs.AllowPrivilegeEscalation != nil && !*cs.AllowPrivilegeEscalation
	if c := cs.Capabilities; c != nil {
		out.Capabilities = &runtimeapi.Capability{}
		for _, x := range c.Add {
			out.Capabilities.AddCapabilities = append(out.Capabilities.AddCapabilities, string(x))
		}
		for _, x := range c.Drop {
			out.Capabilities.DropCapabilities = append(out.Capabilities.DropCapabilities, string(x))
		}
	}
	if out.Privileged {
		out.Seccomp = &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
	}
	if cs.ProcMount != nil && *cs.ProcMount == corev1.UnmaskedProcMount {
		out.MaskedPaths, out.ReadonlyPaths = nil, nil
	}
}

func int64Value(v *int64) *runtimeapi.Int64Value {
	if v == nil {
		return nil
	}
	return &runtimeapi.Int64Value{Value: *v}
}

func selinux(o *corev1.SELinuxOptions) *runtimeapi.SELinuxOption {
	if o == nil {
		return nil
	}
	return &runtimeapi.SELinuxOption{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}

// groups are the process's supplemental groups: the volumes' group and those asked for.
func groups(ps *corev1.PodSecurityContext) ([]int64, runtimeapi.SupplementalGroupsPolicy) {
	var g []int64
	if ps.FSGroup != nil {
		g = append(g, *ps.FSGroup)
	}
	g = append(g, ps.SupplementalGroups...)
	policy := runtimeapi.SupplementalGroupsPolicy_Merge
	if ps.SupplementalGroupsPolicy != nil && *ps.SupplementalGroupsPolicy == corev1.SupplementalGroupsPolicyStrict {
		policy = runtimeapi.SupplementalGroupsPolicy_Strict
	}
	return g, policy
}

func seccomp(p *corev1.SeccompProfile) *runtimeapi.SecurityProfile {
	switch p.Type {
	case corev1.SeccompProfileTypeRuntimeDefault:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
	case corev1.SeccompProfileTypeLocalhost:
		return localhost(p.LocalhostProfile, "/var/lib/kubelet/seccomp/")
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
}

func apparmor(p *corev1.AppArmorProfile) *runtimeapi.SecurityProfile {
	switch p.Type {
	case corev1.AppArmorProfileTypeRuntimeDefault:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
	case corev1.AppArmorProfileTypeLocalhost:
		return localhost(p.LocalhostProfile, "")
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
}

// localhost refers to a profile of the node. A seccomp profile is a file of the node, so its name gets the directory;
// an AppArmor profile is loaded into the kernel and has a name only.
func localhost(name *string, prefix string) *runtimeapi.SecurityProfile {
	p := &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost}
	if name != nil {
		p.LocalhostRef = prefix + *name
	}
	return p
}

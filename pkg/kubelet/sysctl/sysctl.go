// Package sysctl decides which kernel parameters pods may set on the node: those that are known to touch nothing but
// the pod, and those that the node's administrator allows. What a pod of the node's own network or IPC namespace would
// set, it would set for the node; such a pod is refused.
//
// The rules: https://kubernetes.io/docs/tasks/administer-cluster/sysctl-cluster/.
package sysctl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/util/sysctl"
)

// safe are the parameters that every pod may set ("Safe and Unsafe Sysctls").
func safe() []string {
	return []string{"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
		"net.ipv4.ping_group_range",
		"net.ipv4.ip_unprivileged_port_start", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time",
		"net.ipv4.tcp_fin_timeout",
		"net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
		"net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat"}
}

// Allowed are the parameters that pods may set. Only those that have a namespace are ever allowed.
type Allowed struct {
	names    []string
	prefixes []string
}

// New allows the safe parameters and the given ones; a name that ends in "*" stands for all that begin so. It refuses
// parameters of the whole machine.
func New(unsafe []string) (*Allowed, error) {
	a := &Allowed{names: safe()}
	var errs []error
	for _, pattern := range unsafe {
		name := sysctl.NormalizeName(pattern)
		ns, prefix, _ := sysctl.GetNamespace(name)
		switch {
		case name == "" || strings.Contains(strings.TrimSuffix(name, "*"), "*"):
			errs = append(errs, fmt.Errorf("%q is not a kernel parameter, or has a * before its end", pattern))
		case ns == sysctl.UnknownNamespace:
			errs = append(errs, fmt.Errorf("the kernel parameters %q are not known to be namespaced", pattern))
		case strings.HasSuffix(name, "*"):
			a.prefixes = append(a.prefixes, prefix)
		default:
			a.names = append(a.names, name)
		}
	}
	return a, errors.Join(errs...)
}

// Check tells why a pod may not set what it wants to; nil if it may.
func (a *Allowed) Check(pod *corev1.Pod) error {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	for _, s := range pod.Spec.SecurityContext.Sysctls {
		name := sysctl.NormalizeName(s.Name)
		ns, _, _ := sysctl.GetNamespace(name)
		switch {
		case ns == sysctl.NetNamespace && pod.Spec.HostNetwork:
			return fmt.Errorf("%q not allowed with host net enabled", s.Name)
		case ns == sysctl.IPCNamespace && pod.Spec.HostIPC:
			return fmt.Errorf("%q not allowed with host ipc enabled", s.Name)
		case ns == sysctl.UnknownNamespace || !a.has(name):
			return fmt.Errorf("%q not allowlisted", s.Name)
		}
	}
	return nil
}

func (a *Allowed) has(name string) bool {
	return slices.Contains(a.names, name) ||
		slices.ContainsFunc(a.prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

package sysctl

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestCheck: https://kubernetes.io/docs/tasks/administer-cluster/sysctl-cluster/, "Safe and Unsafe Sysctls".
func TestCheck(t *testing.T) {
	t.Parallel()
	plain, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	more, err := New([]string{"kernel.msg*", "net/core/somaxconn", "net.ipv6.neigh.*"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		by               *Allowed
		name             string
		hostNet, hostIPC bool
		want             string
	}{
		{plain, "net.ipv4.tcp_syncookies", false, false, ""},
		{plain, "net/ipv4/ip_local_port_range", false, false, ""},
		{plain, "kernel.shm_rmid_forced", true, false, ""},
		{plain, "kernel.shm_rmid_forced", false, true, `"kernel.shm_rmid_forced" not allowed with host ipc enabled`},
		{plain, "net.ipv4.tcp_syncookies", true, false, `"net.ipv4.tcp_syncookies" not allowed with host net enabled`},
		{plain, "kernel.msgmax", false, false, `"kernel.msgmax" not allowlisted`},
		{plain, "net.core.somaxconn", false, false, `"net.core.somaxconn" not allowlisted`},
		{plain, "kernel.panic", false, false, `"kernel.panic" not allowlisted`},
		{more, "kernel.msgmax", false, false, ""},
		{more, "kernel/msgmni", false, false, ""},
		{more, "kernel.msgmax", false, true, `"kernel.msgmax" not allowed with host ipc enabled`},
		{more, "kernel.msg_of_the_machine", false, false, `"kernel.msg_of_the_machine" not allowlisted`},
		{more, "net.core.somaxconn", false, false, ""},
		{more, "net.core.somaxconn2", false, false, `"net.core.somaxconn2" not allowlisted`},
		{more, "net.ipv6.neigh.eth0.gc_stale_time", false, false, ""},
		{more, "net.ipv6.neighbour", false, false, `"net.ipv6.neighbour" not allowlisted`},
		{more, "vm.swappiness", false, false, `"vm.swappiness" not allowlisted`},
	} {
		err := c.by.Check(&corev1.Pod{Spec: corev1.PodSpec{HostNetwork: c.hostNet, HostIPC: c.hostIPC,
			SecurityContext: &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: c.name}}}}})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if err := plain.Check(&corev1.Pod{}); err != nil {
		t.Error(err)
	}
}

func TestOnlyNamespacedOnesCanBeAllowed(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"kernel.panic", "vm.*", "*", "", "net.*.x", "kernel.*", "netx.*"} {
		if _, err := New([]string{bad}); err == nil {
			t.Errorf("%q allowed", bad)
		}
	}
}

package cri

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"bonsai/pkg/kubelet/runtime"
)

func yes() *bool         { b := true; return &b }
func no() *bool          { b := false; return &b }
func num(n int64) *int64 { return &n }

func testPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u",
		Labels: map[string]string{"app": "x"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x:1",
			Ports: []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080, Protocol: corev1.ProtocolUDP},
				{ContainerPort: 81}}}}}}
}

func TestSandboxConfig(t *testing.T) {
	t.Parallel()
	p := testPod()
	p.Spec.SecurityContext = &corev1.PodSecurityContext{
		Sysctls: []corev1.Sysctl{{Name: "net/ipv4/ip_forward", Value: "1"},
			{Name: "kernel.shm_rmid_forced", Value: "1"}},
		RunAsGroup: num(3), FSGroup: num(7), SupplementalGroups: []int64{9}}
	c := sandboxConfig(p, runtime.SandboxOptions{Attempt: 2, Hostname: "h"}, Containers{})
	if c.Metadata.Attempt != 2 || c.Hostname != "h" || c.Labels["app"] != "x" || c.Labels[labelPodUID] != "u" {
		t.Errorf("%+v", c)
	}
	if len(c.PortMappings) != 1 || c.PortMappings[0].HostPort != 8080 ||
		c.PortMappings[0].Protocol != runtimeapi.Protocol_UDP {
		t.Errorf("ports %v", c.PortMappings)
	}
	if c.Linux.Sysctls["net.ipv4.ip_forward"] != "1" || c.Linux.Sysctls["kernel.shm_rmid_forced"] != "1" {
		t.Errorf("sysctls %v", c.Linux.Sysctls)
	}
	if sc := c.Linux.SecurityContext; sc.RunAsGroup != nil || len(sc.SupplementalGroups) != 2 {
		t.Errorf("a group without a user, or groups: %+v", sc)
	}
	p.Spec.HostNetwork = true
	c = sandboxConfig(p, runtime.SandboxOptions{Hostname: "h"}, Containers{})
	if c.Hostname != "" || len(c.PortMappings) != 0 ||
		c.Linux.SecurityContext.NamespaceOptions.Network != runtimeapi.NamespaceMode_NODE {
		t.Errorf("host network: %+v", c)
	}
}

func security(p *corev1.Pod, c *corev1.Container,
	o runtime.ContainerOptions) *runtimeapi.LinuxContainerSecurityContext {
	return containerSecurity(runtime.ContainerRequest{Pod: p, Container: c, Options: o}, Containers{})
}

// A pod with users of its own has them in its sandbox and in its containers, and the files of its mounts by their own
// ids; one without has the node's.
func TestUsers(t *testing.T) {
	t.Parallel()
	p := testPod()
	for _, users := range []*runtime.IDRange{nil, {First: 131072, Length: 65536}} {
		o := runtime.SandboxOptions{Users: users}
		sandbox := sandboxConfig(p, o, Containers{})
		container := containerConfig(runtime.ContainerRequest{Pod: p, Container: &p.Spec.Containers[0], Sandbox: o,
			Options: runtime.ContainerOptions{Mounts: []runtime.Mount{{ContainerPath: "/a", HostPath: "/b"}}}},
			Containers{})
		for what, got := range map[string][2][]*runtimeapi.IDMapping{
			"sandbox": {sandbox.Linux.SecurityContext.NamespaceOptions.GetUsernsOptions().GetUids(),
				sandbox.Linux.SecurityContext.NamespaceOptions.GetUsernsOptions().GetGids()},
			"container": {container.Linux.SecurityContext.NamespaceOptions.GetUsernsOptions().GetUids(),
				container.Linux.SecurityContext.NamespaceOptions.GetUsernsOptions().GetGids()},
			"mount": {container.Mounts[0].UidMappings, container.Mounts[0].GidMappings},
		} {
			for _, ids := range got {
				if users == nil && len(ids) > 0 ||
					users != nil && (len(ids) != 1 || ids[0].HostId != 131072 || ids[0].ContainerId != 0 ||
						ids[0].Length != 65536) {
					t.Errorf("%s of a pod with users %v: %v", what, users, ids)
				}
			}
		}
		if o := sandbox.Linux.SecurityContext.NamespaceOptions.UsernsOptions; users != nil &&
			o.Mode != runtimeapi.NamespaceMode_POD {
			t.Errorf("mode %s", o.Mode)
		}
	}
}

func TestContainerSecurity(t *testing.T) {
	t.Parallel()
	p := testPod()
	p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: num(1),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	c := &p.Spec.Containers[0]
	sc := security(p, c, runtime.ContainerOptions{ImageUID: num(5)})
	if sc.RunAsUser.Value != 1 || sc.Seccomp.ProfileType != runtimeapi.SecurityProfile_RuntimeDefault ||
		sc.NoNewPrivs || len(sc.MaskedPaths) == 0 {
		t.Errorf("the pod's: %+v", sc)
	}
	c.SecurityContext = &corev1.SecurityContext{RunAsUser: num(2), AllowPrivilegeEscalation: no(),
		ReadOnlyRootFilesystem: yes(),
		Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"},
			Drop: []corev1.Capability{"ALL"}}}
	sc = security(p, c, runtime.ContainerOptions{})
	if sc.RunAsUser.Value != 2 || !sc.NoNewPrivs || !sc.ReadonlyRootfs || sc.Capabilities.DropCapabilities[0] != "ALL" {
		t.Errorf("the container's: %+v", sc)
	}
	c.SecurityContext = &corev1.SecurityContext{Privileged: yes()}
	if sc = security(p, c, runtime.ContainerOptions{}); !sc.Privileged ||
		sc.Seccomp.ProfileType != runtimeapi.SecurityProfile_Unconfined {
		t.Errorf("privileged: %+v", sc)
	}
	p.Spec.SecurityContext, c.SecurityContext = nil, nil
	if sc = security(p, c, runtime.ContainerOptions{ImageUser: "web", TargetID: "t"}); sc.RunAsUsername != "web" ||
		sc.NamespaceOptions.TargetId != "t" {
		t.Errorf("the image's user and the target: %+v", sc)
	}
}

func TestResources(t *testing.T) {
	t.Parallel()
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
			corev1.ResourceMemory: resource.MustParse(memory)}
	}
	p := testPod()
	c := &p.Spec.Containers[0]
	c.Resources = corev1.ResourceRequirements{Requests: list("250m", "256Mi"), Limits: list("500m", "512Mi")}
	p.Status.QOSClass = corev1.PodQOSBurstable
	node := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi"),
		"hugepages-2Mi": resource.MustParse("0"), "hugepages-1Gi": resource.MustParse("4Gi")}
	of := func(node corev1.ResourceList, v2 bool) *runtimeapi.LinuxContainerResources {
		return resources(runtime.ContainerRequest{Pod: p, Container: c, Node: node}, Containers{CgroupV2: v2})
	}
	r := of(node, false)
	if r.CpuShares != 256 || r.CpuQuota != 50_000 || r.MemoryLimitInBytes != 512<<20 || r.OomScoreAdj != 750 ||
		r.Unified != nil {
		t.Errorf("%+v", r)
	}
	c.Resources = corev1.ResourceRequirements{}
	p.Status.QOSClass = corev1.PodQOSBestEffort
	if r = of(node, true); r.CpuShares != 2 || r.CpuQuota != 0 || r.OomScoreAdj != 1000 ||
		r.Unified["memory.oom.group"] != "1" {
		t.Errorf("best effort: %+v", r)
	}
	p.Status.QOSClass = corev1.PodQOSGuaranteed
	if r = of(nil, false); r.OomScoreAdj != -997 {
		t.Errorf("guaranteed: %d", r.OomScoreAdj)
	}
	// Without a limit of memory there is none for both together: 0 asks for nothing.
	for limit, want := range map[string]int64{"0": 0, "512Mi": 512 << 20} {
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
		for _, can := range []bool{false, true} {
			one := resources(runtime.ContainerRequest{Pod: p, Container: c,
				Options: runtime.ContainerOptions{LimitSwap: can}}, Containers{})
			two := resources(runtime.ContainerRequest{Pod: p, Container: c,
				Options: runtime.ContainerOptions{LimitSwap: can}}, Containers{CgroupV2: true})
			if max, set := two.Unified["memory.swap.max"]; set != can || can && max != "0" ||
				two.MemorySwapLimitInBytes != 0 {
				t.Errorf("v2, accounted %v: %+v", can, two)
			}
			if can && one.MemorySwapLimitInBytes != want || !can && one.MemorySwapLimitInBytes != 0 ||
				one.Unified != nil {
				t.Errorf("v1, accounted %v, limit %s: %+v", can, limit, one)
			}
		}
	}
	// A size of huge pages that the container does not list is forbidden, not free.
	c.Resources.Limits = corev1.ResourceList{"hugepages-2Mi": resource.MustParse("6Mi"),
		"hugepages-64Ki": resource.MustParse("64Ki")}
	var pages []string
	for _, l := range of(node, false).HugepageLimits {
		pages = append(pages, fmt.Sprint(l.PageSize, "=", l.Limit))
	}
	if got := strings.Join(pages, " "); got != "1GB=0 2MB=6291456 64KB=65536" {
		t.Errorf("huge pages: %s", got)
	}
	if pageSize("hugepages-2Mi") != "2MB" || pageSize("hugepages-1Gi") != "1GB" {
		t.Error("page sizes")
	}
}

func TestTerminationMessage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	log := write("log", "2030-01-01T00:00:00Z stdout P par\n2030-01-01T00:00:00Z stderr F tial\nbroken\n")
	status := func(log string, policy corev1.TerminationMessagePolicy, files ...string) *runtimeapi.ContainerStatus {
		s := &runtimeapi.ContainerStatus{LogPath: log,
			Annotations: map[string]string{annotationTerminationMessagePath: "/dev/termination-log",
				annotationTerminationMessagePolicy: string(policy)}}
		for _, f := range files {
			s.Mounts = append(s.Mounts, &runtimeapi.Mount{ContainerPath: "/dev/termination-log", HostPath: f})
		}
		return s
	}
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := errors.Join(unix.Mkfifo(pipe, 0o600), os.Symlink(log, link)); err != nil {
		t.Fatal(err)
	}
	const fromFile, fromLog = corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError
	empty, long, own, volume := write("empty", ""), write("long", strings.Repeat("x", 5000)), write("own", "own"),
		write("volume", "a volume's")
	for _, c := range []struct {
		name   string
		status *runtimeapi.ContainerStatus
		exit   int32
		want   string
	}{
		{"a long one is cut off", status(log, fromFile, long), 0, strings.Repeat("x", maxMessageFile)},
		{"no fallback without the policy", status(log, fromFile, empty), 1, ""},
		{"no fallback without an error", status(log, fromLog, empty), 0, ""},
		{"fallback to the log", status(log, fromLog, empty), 1, "partial\n"},
		{"a pipe is not opened", status(log, fromFile, pipe), 1, ""},
		{"a device is not opened", status(log, fromFile, "/dev/zero"), 1, ""},
		{"a link is not followed", status(log, fromFile, link), 1, ""},
		{"a volume at the path is not read", status(log, fromFile, volume, own), 1, "own"},
		{"a log that is a pipe is not opened", status(pipe, fromLog, empty), 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := terminationMessage(c.status, c.exit, func(path string) bool {
				return path != volume
			}); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A node's default profile is that of containers that say nothing: no other's, and not that of privileged ones.
func TestSeccompDefault(t *testing.T) {
	t.Parallel()
	unconfined := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	for name, c := range map[string]struct {
		pod *corev1.PodSecurityContext
		own *corev1.SecurityContext
		on  bool
		is  runtimeapi.SecurityProfile_ProfileType
	}{
		"off": {nil, nil, false, runtimeapi.SecurityProfile_Unconfined},
		"on":  {nil, nil, true, runtimeapi.SecurityProfile_RuntimeDefault},
		"the pod's": {&corev1.PodSecurityContext{SeccompProfile: unconfined}, nil, true,
			runtimeapi.SecurityProfile_Unconfined},
		"its own": {nil, &corev1.SecurityContext{SeccompProfile: unconfined}, true,
			runtimeapi.SecurityProfile_Unconfined},
		"privileged": {nil, &corev1.SecurityContext{Privileged: yes()}, true, runtimeapi.SecurityProfile_Unconfined},
	} {
		p := testPod()
		p.Spec.SecurityContext = c.pod
		p.Spec.Containers[0].SecurityContext = c.own
		q := runtime.ContainerRequest{Pod: p, Container: &p.Spec.Containers[0]}
		if got := containerConfig(q,
			Containers{SeccompDefault: c.on}).Linux.SecurityContext.Seccomp.ProfileType; got != c.is {
			t.Errorf("%s: %v, want %v", name, got, c.is)
		}
	}
}

// The kernel ends all processes of a container together, unless one is asked for.
func TestOOMGroup(t *testing.T) {
	t.Parallel()
	q := runtime.ContainerRequest{Pod: testPod(), Container: &testPod().Spec.Containers[0]}
	for want, all := range map[string]Containers{"1": {CgroupV2: true},
		"0": {CgroupV2: true, SingleProcessOOMKill: true}, "": {SingleProcessOOMKill: true}} {
		if got := resources(q, all).Unified["memory.oom.group"]; got != want {
			t.Errorf("%+v: %q", all, got)
		}
	}
}

package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/cpuquota"
	"bonsai/pkg/kubelet/eviction/pressure"
)

func parse(t *testing.T, file string, args ...string) (*settings, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubelet.yaml")
	if err := os.WriteFile(path,
		[]byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfailSwapOn: false\n"+file),
		0o600); err != nil {
		t.Fatal(err)
	}
	o := &options{}
	fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	o.addFlags(fs)
	if err := fs.Parse(append([]string{"--config=" + path, "--kubeconfig=k"}, args...)); err != nil {
		t.Fatal(err)
	}
	return o.settings(fs)
}

func TestFlagsWinOverTheFile(t *testing.T) {
	t.Parallel()
	s, err := parse(t, "port: 1\nmaxPods: 7\ncgroupRoot: /x\nclusterDNS: [10.0.0.1]\nserializeImagePulls: false\n",
		"--port=2")
	if err != nil {
		t.Fatal(err)
	}
	if s.file.Port != 2 || s.file.MaxPods != 7 || s.file.CgroupRoot != "/x" || *s.file.SerializeImagePulls ||
		s.file.ClusterDNS[0] != "10.0.0.1" {
		t.Errorf("%+v", s.file)
	}
	if s.file.ContainerRuntimeEndpoint != "unix:///run/containerd/containerd.sock" || *s.file.HealthzPort != 10248 ||
		!*s.file.Authentication.Webhook.Enabled {
		t.Errorf("defaults: %+v", s.file)
	}
}

// TestOldFlags: those of fields of the file, as start scripts from before the file give them, win over it; without one
// it holds.
func TestOldFlags(t *testing.T) {
	t.Parallel()
	file := "authentication: {anonymous: {enabled: true}, webhook: {cacheTTL: 9s}}\nauthorization: {mode: AlwaysAllow}\ncontainerLogMaxFiles: 9\npodPidsLimit: 9\n"
	s, err := parse(t, file, "--anonymous-auth=false", "--authorization-mode=Webhook",
		"--authorization-webhook-cache-authorized-ttl=4s", "--authorization-webhook-cache-unauthorized-ttl=3s",
		"--container-log-max-size=1Mi", "--enable-server=false", "--file-check-frequency=7s",
		"--image-service-endpoint=unix:///i", "--node-status-update-frequency=8s", "--pod-max-pids=100",
		"--runtime-request-timeout=6s", "--authentication-token-webhook=false", "--read-only-port=0",
		"--runtime-cgroups=/system.slice/containerd.service", "--protect-kernel-defaults")
	if err != nil {
		t.Fatal(err)
	}
	c := s.file
	a, z := c.Authentication, c.Authorization
	if *a.Anonymous.Enabled || *a.Webhook.Enabled || a.Webhook.CacheTTL.Duration != 9*time.Second ||
		z.Mode != "Webhook" || z.Webhook.CacheAuthorizedTTL.Duration != 4*time.Second ||
		z.Webhook.CacheUnauthorizedTTL.Duration != 3*time.Second || *c.ContainerLogMaxFiles != 9 ||
		c.ContainerLogMaxSize != "1Mi" || *c.EnableServer || c.FileCheckFrequency.Duration != 7*time.Second ||
		c.ImageServiceEndpoint != "unix:///i" || c.NodeStatusUpdateFrequency.Duration != 8*time.Second ||
		*c.PodPidsLimit != 100 || c.RuntimeRequestTimeout.Duration != 6*time.Second {
		t.Errorf("%+v", c)
	}
	if s, err = parse(t, file, "--authentication-token-webhook-cache-ttl=5s",
		"--container-log-max-files=3"); err != nil ||
		s.file.Authentication.Webhook.CacheTTL.Duration != 5*time.Second ||
		*s.file.ContainerLogMaxFiles != 3 || !*s.file.Authentication.Anonymous.Enabled ||
		s.file.Authorization.Mode != "AlwaysAllow" || *s.file.PodPidsLimit != 9 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestBadSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, arg, want string }{
		"unknown field": {"nope: 1\n", "", "nope"},
		"driver":        {"cgroupDriver: x\n", "", "cgroupDriver"},
		"half a pair":   {"tlsCertFile: x\n", "", "tlsPrivateKeyFile"},
		"taint":         {"", "--register-with-taints=a=b:Never", "register-with-taints"},
		"node ip":       {"", "--node-ip=1.2.3", "--node-ip"},
		"cloud": {"", "--cloud-provider=aws",
			`cloud provider "aws" was specified, but built-in cloud providers are disabled`},
		"mode":        {"authorization: {mode: x}\n", "", "authorization.mode"},
		"sysctl":      {"allowedUnsafeSysctls: [kernel.panic]\n", "", "allowedUnsafeSysctls"},
		"sysctl flag": {"", "--allowed-unsafe-sysctls=vm.*", "allowedUnsafeSysctls"},
		"swap": {"memorySwap: {swapBehavior: Some}\n", "",
			`memorySwap.swapBehavior "Some" must be one of: "", "LimitedSwap" or "NoSwap"`},
		"cpu policy":   {"cpuManagerPolicy: x\n", "", "unknown policy: \"x\""},
		"cpu reserved": {"cpuManagerPolicy: static\n", "", "greater than zero"},
		"cpu option": {"cpuManagerPolicy: static\nreservedSystemCPUs: '0'\ncpuManagerPolicyOptions: {x: 'true'}\n",
			"", "unknown CPU Manager Policy option"},
		"alpha option": {"cpuManagerPolicy: static\nreservedSystemCPUs: '0'\ncpuManagerPolicyOptions: {align-by-socket: 'true'}\n", "", "Alpha-level"},
		"cpu set":      {"", "--reserved-cpus=0-x", "reserved-cpus"},
		"topology":     {"", "--topology-manager-policy=x", "unknown policy"},
		"scope":        {"topologyManagerScope: x\n", "", "unknown scope"},
		"numa nodes": {"topologyManagerPolicyOptions: {max-allowable-numa-nodes: '7'}\n", "",
			"max-allowable-numa-nodes"},
		"memory":        {"memoryManagerPolicy: static\n", "", "memoryManagerPolicy"},
		"reserved":      {"kubeReserved: {cpu: x}\n", "", "--kube-reserved value failed to parse"},
		"reserved what": {"", "--system-reserved=foo=1", `cannot reserve "foo" resource`},
		"full": {"imageGCHighThresholdPercent: 101\n", "",
			"imageGCHighThresholdPercent (--image-gc-high-threshold) 101 must be between 0 and 100, inclusive"},
		"low": {"", "--image-gc-low-threshold=90",
			"imageGCLowThresholdPercent (--image-gc-low-threshold) 90 must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) 85"},
		"ages": {"imageMaximumGCAge: 1m\n", "",
			"imageMaximumGCAge 1m0s must be greater than imageMinimumGCAge 2m0s"},
		"critical": {"shutdownGracePeriod: 10s\nshutdownGracePeriodCriticalPods: 20s\n", "",
			"shutdownGracePeriodCriticalPods {20s} must be <= shutdownGracePeriod {10s}"},
		"short": {"shutdownGracePeriod: 100ms\n", "",
			"shutdownGracePeriod {100ms} must be either zero or otherwise >= 1 sec"},
		"two periods": {"shutdownGracePeriod: 10s\nshutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 2}]\n", "", "annot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time"},
		"threshold": {"", "--eviction-hard=memory.available<-1Mi",
			"eviction threshold memory.available must be positive: -1Mi"},
		"no grace": {"", "--eviction-soft=memory.available<1Mi",
			"grace period must be specified for the soft eviction threshold memory.available"},
		"enforced": {"enforceNodeAllocatable: [foo]\n", "", `option "foo" specified for enforceNodeAllocatable`},
		"twice":    {"enforceNodeAllocatable: [pods, pods]\n", "", `duplicated enforcements "pods"`},
		"none and more": {"enforceNodeAllocatable: [none, pods]\n", "",
			`may not contain additional enforcements when "none" is specified`},
		"no cgroup": {"enforceNodeAllocatable: [kube-reserved]\n", "",
			"kubeReservedCgroup (--kube-reserved-cgroup) must be specified"},
		"tls version": {"tlsMinVersion: VersionTLS9\n", "", "tlsMinVersion"},
		"tls suite":   {"", "--tls-cipher-suites=x", "cipher suite x not supported or doesn't exist"},
		"curve":       {"tlsCurvePreferences: [0]\n", "", "tlsCurvePreferences"},
		"pods by URL": {"staticPodURL: file:///x\n", "", "staticPodURL"},
		"once":        {"runOnce: true\n", "", "runOnce"},
		"qos":         {"qosReserved: {memory: 1%}\n", "", "qosReserved"},
		"no classes":  {"cgroupsPerQOS: false\n", "", "cgroupsPerQOS"},
		"period": {"cpuCFSQuotaPeriod: 200ms\nfeatureGates: {CustomCPUCFSQuotaPeriod: false}\n", "",
			"invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {200ms} requires feature gate CustomCPUCFSQuotaPeriod"},
		"long period": {"cpuCFSQuotaPeriod: 2s\n", "",
			"invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {2s} must be between 1ms and 1sec, inclusive"},
		"short period": {"", "--cpu-cfs-quota-period=100us", "must be between 1ms and 1sec, inclusive"},
		"qos, no percent": {"qosReserved: {memory: 1Gi}\nfeatureGates: {QOSReserved: true}\n", "",
			`--qos-reserved value failed to parse: failed to parse percentage "1Gi" for "memory" resource: percentage expected, got '1Gi'`},
		"qos, no number": {"featureGates: {QOSReserved: true}\n", "--qos-reserved=memory=a%",
			"invalid number in percentage 'a%'"},
		"qos, too much": {"qosReserved: {memory: 101%}\nfeatureGates: {QOSReserved: true}\n", "",
			"percentage must be between 0 and 100"},
		"qos of CPU": {"qosReserved: {cpu: 1%}\nfeatureGates: {QOSReserved: true}\n", "",
			`--qos-reserved value failed to parse: cannot reserve "cpu" resource`},
		"header": {"staticPodURL: http://x\nstaticPodURLHeader: {\"a b\": [c]}\n", "",
			`staticPodURLHeader (--manifest-url-header): "a b" is no name of a header`},
		"URL period":    {"httpCheckFrequency: -1s\n", "", "httpCheckFrequency must not be negative"},
		"attaches":      {"enableControllerAttachDetach: false\n", "", "enableControllerAttachDetach"},
		"storage":       {"localStorageCapacityIsolation: false\n", "", "localStorageCapacityIsolation"},
		"cores":         {"podsPerCore: -1\n", "", "podsPerCore"},
		"images":        {"nodeStatusMaxImages: -2\n", "", "nodeStatusMaxImages"},
		"log period":    {"containerLogMonitorInterval: 1s\n", "", "containerLogMonitorInterval"},
		"file period":   {"fileCheckFrequency: -1s\n", "", "fileCheckFrequency must not be negative"},
		"status period": {"nodeStatusUpdateFrequency: -1s\n", "", "nodeStatusUpdateFrequency must not be negative"},
		"lease":         {"nodeLeaseDurationSeconds: -1\n", "", "nodeLeaseDurationSeconds must be greater than 0"},
		"strategy": {"configMapAndSecretChangeDetectionStrategy: x\n", "",
			"configMapAndSecretChangeDetectionStrategy"},
		"both": {"enforceNodeAllocatable: [system-reserved, system-reserved-compressible]\nsystemReservedCgroup: /s\n",
			"", "cannot be specified together"},
	} {
		arg := c.arg
		if arg == "" {
			arg = "-v=0"
		}
		if _, err := parse(t, c.file, arg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Thresholds that are given stand alone, unless they are to be merged with the defaults; flags win over the file.
func TestThresholds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, arg string
		hard      map[string]string
	}{
		{"", "-v=0", pressure.DefaultHard()},
		{"evictionHard: {memory.available: 1Gi}\n", "-v=0", map[string]string{"memory.available": "1Gi"}},
		{"evictionHard: {memory.available: 1Gi}\n", "--eviction-hard=memory.available<2Gi,pid.available<5%",
			map[string]string{"memory.available": "2Gi", "pid.available": "5%"}},
		{"evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true\n", "-v=0",
			map[string]string{"memory.available": "1Gi", "nodefs.available": "10%", "nodefs.inodesFree": "5%",
				"imagefs.available": "15%", "imagefs.inodesFree": "5%"}},
	} {
		s, err := parse(t, c.file, c.arg)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(s.file.EvictionHard, c.hard) ||
			s.file.EvictionPressureTransitionPeriod.Duration != 5*time.Minute ||
			!slices.Equal(s.file.EnforceNodeAllocatable, []string{"pods"}) {
			t.Errorf("%s %s: %v", c.file, c.arg, s.file.EvictionHard)
		}
	}
}

// All pods together may use what is not reserved; what eviction keeps free they may use, but are not given.
func TestPodLimit(t *testing.T) {
	t.Parallel()
	has := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi")}
	s, err := parse(t, "systemReserved: {memory: 1Gi}\nsystemReservedCgroup: /system\n",
		"--kube-reserved=cpu=500m,memory=1Gi", "--enforce-node-allocatable=pods,system-reserved")
	if err != nil {
		t.Fatal(err)
	}
	keep, err := kept(s.file)
	if err != nil {
		t.Fatal(err)
	}
	limit := podLimit(s.file, has, keep)
	if limit.Memory().Value() != 6<<30 || limit.Cpu().MilliValue() != 3500 {
		t.Error(limit)
	}
	cgroups, err := reservedCgroups(s.file)
	if err != nil || len(cgroups) != 1 || cgroups[0].Name != "/system" || cgroups[0].Limit.Memory().Value() != 1<<30 {
		t.Error(cgroups, err)
	}
	if err := enough(has, corev1.ResourceList{"memory": resource.MustParse("9Gi")}); err == nil ||
		enough(has, keep) != nil {
		t.Error("more is reserved than there is:", err)
	}
	s.file.EnforceNodeAllocatable = []string{"none"}
	if limit := podLimit(s.file, has, keep); limit.Memory().Value() != 8<<30 {
		t.Error("none:", limit)
	}
}

// A machine of 32 GiB with 8 GiB of swap, or without.
type swapMachine struct{ swap *corev1.NodeSwapStatus }

func (m swapMachine) Info() corev1.NodeSystemInfo { return corev1.NodeSystemInfo{Swap: m.swap} }
func (m swapMachine) Capacity() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Gi")}
}

func TestSwapBehavior(t *testing.T) {
	t.Parallel()
	for file, limited := range map[string]bool{"": false, "memorySwap: {swapBehavior: NoSwap}\n": false,
		"memorySwap: {swapBehavior: LimitedSwap}\n": true} {
		s, err := parse(t, file, "-v=0")
		if err != nil {
			t.Fatal(file, err)
		}
		want := cgroup.Swap{Limited: limited, NodeMemory: 32 << 30}
		if got := podSwap(s.file, swapMachine{}); got != want {
			t.Errorf("%q without swap: %+v", file, got)
		}
		want.NodeSwap = 8 << 30
		if got := podSwap(s.file, swapMachine{&corev1.NodeSwapStatus{Capacity: new(int64(8 << 30))}}); got != want {
			t.Errorf("%q: %+v", file, got)
		}
	}
}

// TestQuotas: how limits of CPU are kept, and what is reserved for better classes, by file and flags.
func TestQuotas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, arg string
		cpu       cpuquota.Quota
		percent   int64
	}{
		{"", "-v=0", cpuquota.Quota{Period: 100 * time.Millisecond}, 0},
		{"cpuCFSQuota: false\n", "-v=0", cpuquota.Quota{Off: true, Period: 100 * time.Millisecond}, 0},
		{"cpuCFSQuota: false\n", "--cpu-cfs-quota", cpuquota.Quota{Period: 100 * time.Millisecond}, 0},
		{"cpuCFSQuotaPeriod: 5ms\n", "-v=0", cpuquota.Quota{Period: 5 * time.Millisecond}, 0},
		{"cpuCFSQuotaPeriod: 5ms\n", "--cpu-cfs-quota-period=1s", cpuquota.Quota{Period: time.Second}, 0},
		{"qosReserved: {memory: 50%}\n", "--feature-gates=QOSReserved=true",
			cpuquota.Quota{Period: 100 * time.Millisecond}, 50},
		{"qosReserved: {memory: 50%}\nfeatureGates: {AllAlpha: true, AllBeta: true}\n", "--qos-reserved=memory=7%",
			cpuquota.Quota{Period: 100 * time.Millisecond}, 7},
	} {
		s, err := parse(t, c.file, c.arg)
		if err != nil {
			t.Errorf("%s%s: %v", c.file, c.arg, err)
			continue
		}
		list := func(memory string) corev1.ResourceList {
			return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
		}
		if got := reserve(s.file, list("3Gi"), list("1Gi")); cpuQuota(s.file) != c.cpu || got.Percent != c.percent ||
			got.Percent > 0 && got.Allocatable != 2<<30 {
			t.Errorf("%s%s: %+v, %+v", c.file, c.arg, cpuQuota(s.file), got)
		}
	}
}

// TestStaticURL: the URL of static pods and its headers; what others see of them has no secrets.
func TestStaticURL(t *testing.T) {
	t.Parallel()
	s, err := parse(t, "httpCheckFrequency: 7s\n", "--manifest-url=https://u:url-secret@h/m",
		"--manifest-url-header=A:one-secret,B:two:three", "--manifest-url-header=a:four")
	if err != nil {
		t.Fatal(err)
	}
	u, header, err := staticURL(s.file)
	if err != nil || u.Host != "h" || header.Get("B") != "two:three" || len(header["A"]) != 2 ||
		s.file.HTTPCheckFrequency.Duration != 7*time.Second {
		t.Errorf("%v %v %v", u, header, err)
	}
	flags := map[string]string{headerFlag: "A:one-secret", "manifest-url": s.file.StaticPodURL}
	maskFlags(s.file, flags)
	var log bytes.Buffer
	logEffective(s.file, slog.New(slog.NewTextHandler(&log, nil)))
	if !strings.Contains(log.String(), "containerLogMaxSize: 10Mi") {
		t.Errorf("the log has no effective configuration: %s", log.String())
	}
	text := fmt.Sprintf("%+v %+v %s", shown(s.file), flags, log.String())
	for _, secret := range []string{"url-secret", "one-secret", "two", "four"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is shown in %s", secret, text)
		}
	}
	if s.file.StaticPodURLHeader["B"][0] != "two:three" {
		t.Error("the header itself is masked")
	}
	if _, err := parse(t, "staticPodURL: \"https://u:url-secret@h:%zz/\"\n"); err == nil ||
		strings.Contains(err.Error(), "url-secret") {
		t.Error(err)
	}
}

// TestIdleStreams: 0 is the default in the file, and for ever on the command line.
func TestIdleStreams(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, arg string
		want      time.Duration
	}{
		{"", "-v=0", 4 * time.Hour},
		{"streamingConnectionIdleTimeout: 0s\n", "-v=0", 4 * time.Hour},
		{"streamingConnectionIdleTimeout: 5m\n", "-v=0", 5 * time.Minute},
		{"streamingConnectionIdleTimeout: 5m\n", "--streaming-connection-idle-timeout=0", 0},
	} {
		if s, err := parse(t, c.file, c.arg); err != nil || s.file.StreamingConnectionIdleTimeout.Duration != c.want {
			t.Errorf("%s%s: %v, %v", c.file, c.arg, s, err)
		}
	}
}

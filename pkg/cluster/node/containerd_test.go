package node

import (
	"strings"
	"testing"
)

func TestContainerdMajor(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{
		"containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u2": 1,
		"containerd github.com/containerd/containerd/v2 v2.3.7 abc":                   2,
		"containerd containerd.io 1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da":    1,
		"containerd github.com/containerd/containerd/v2 2.1.4 ":                       2,
	} {
		if got := containerdMajor(line); got != want {
			t.Errorf("%q: %d, not %d", line, got, want)
		}
	}
}

// TestOCIRuntimes: each that the machine has is a handler in the file of either containerd, and the cluster's is the
// default.
func TestOCIRuntimes(t *testing.T) {
	t.Parallel()
	for major, plugin := range map[int]string{1: "io.containerd.grpc.v1.cri", 2: "io.containerd.cri.v1.runtime"} {
		toml := containerdConfig(major, true, "overlayfs", "/certs.d", "crun", []string{"runc", "crun"})
		for _, want := range []string{`default_runtime_name = "crun"`,
			"runtimes.crun.options]\n    BinaryName = \"crun\"\n",
			`[plugins."` + plugin + "\".containerd.runtimes.runc]\n  runtime_type = \"io.containerd.runc.v2\"\n"} {
			if !strings.Contains(toml, want) {
				t.Errorf("containerd %d: no %q in\n%s", major, want, toml)
			}
		}
		if toml := containerdConfig(major, true, "overlayfs", "/certs.d", "runc",
			[]string{"runc"}); strings.Contains(toml, "crun") {
			t.Errorf("containerd %d, without crun:\n%s", major, toml)
		}
	}
}

// TestInternalLoopback: containerd 2.x sets up loopback devices without the plug-in; 1.x does not know how.
func TestInternalLoopback(t *testing.T) {
	t.Parallel()
	for major, want := range map[int]bool{1: false, 2: true} {
		toml := containerdConfig(major, true, "overlayfs", "/certs.d", "runc", []string{"runc"})
		if got := strings.Contains(toml,
			".cni]\n    bin_dirs = [\"/opt/cni/bin\"]\n    conf_dir = \"/run/cni/net.d\"\n    use_internal_loopback = true\n"); got != want {
			t.Errorf("containerd %d: use_internal_loopback is %t in\n%s", major, got, toml)
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func parse(t *testing.T, file string, args ...string) (*settings, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubelet.yaml")
	if err := os.WriteFile(path, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfailSwapOn: false\n"+file), 0o600); err != nil {
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
	s, err := parse(t, "port: 1\nmaxPods: 7\ncgroupRoot: /x\nclusterDNS: [10.0.0.1]\nserializeImagePulls: false\n", "--port=2")
	if err != nil {
		t.Fatal(err)
	}
	if s.file.Port != 2 || s.file.MaxPods != 7 || s.file.CgroupRoot != "/x" || *s.file.SerializeImagePulls || s.file.ClusterDNS[0] != "10.0.0.1" {
		t.Errorf("%+v", s.file)
	}
	if s.file.ContainerRuntimeEndpoint != "unix:///run/containerd/containerd.sock" || *s.file.HealthzPort != 10248 || !*s.file.Authentication.Webhook.Enabled {
		t.Errorf("defaults: %+v", s.file)
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
		"mode":          {"authorization: {mode: x}\n", "", "authorization.mode"},
		"sysctl":        {"allowedUnsafeSysctls: [kernel.panic]\n", "", "allowedUnsafeSysctls"},
		"sysctl flag":   {"", "--allowed-unsafe-sysctls=vm.*", "allowedUnsafeSysctls"},
		"swap":          {"memorySwap: {swapBehavior: LimitedSwap}\n", "", "swapBehavior"},
		"reserved":      {"kubeReserved: {cpu: x}\n", "", "reserved"},
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

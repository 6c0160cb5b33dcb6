package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTracking: what is asked for of the kernel's table of connections is written, and nothing else.
func TestTracking(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want map[string]string
	}{
		"nothing": {nil, map[string]string{}},
		"zeros": {[]string{"--conntrack-max-per-core=0", "--conntrack-min=7", "--conntrack-tcp-timeout-established=0"},
			map[string]string{}},
		"all": {[]string{"--conntrack-max-per-core=1", "--conntrack-min=100000", "--conntrack-tcp-be-liberal",
			"--conntrack-tcp-timeout-established=2h", "--conntrack-tcp-timeout-close-wait=1m",
			"--conntrack-udp-timeout=20s", "--conntrack-udp-timeout-stream=90s"},
			map[string]string{"nf_conntrack_max": "100000", "nf_conntrack_tcp_be_liberal": "1",
				"nf_conntrack_tcp_timeout_established": "7200", "nf_conntrack_tcp_timeout_close_wait": "60",
				"nf_conntrack_udp_timeout": "20", "nf_conntrack_udp_timeout_stream": "90"}},
	} {
		s, err := parse(t, append(c.args, "--hostname-override=n1")...)
		if err != nil {
			t.Fatal(err)
		}
		root := t.TempDir()
		dir := filepath.Join(root, "net", "netfilter")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := setTracking(root, &s.tracking); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, f := range files {
			text, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			got[f.Name()] = string(text)
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		for f, want := range c.want {
			if got[f] != want {
				t.Errorf("%s: %s is %q, want %q", name, f, got[f], want)
			}
		}
	}
	s, err := parse(t, "--conntrack-udp-timeout=20s", "--hostname-override=n1")
	if err != nil {
		t.Fatal(err)
	}
	err = setTracking(filepath.Join(t.TempDir(), "none"), &s.tracking)
	if err == nil || !strings.Contains(err.Error(), "conntrack.udpTimeout: set net.netfilter.nf_conntrack_udp_timeout to 20") {
		t.Errorf("a setting that cannot be set: %v", err)
	}
}

// TestWriteConfiguration: what is written is read again as the same settings, and a bad configuration writes nothing.
func TestWriteConfiguration(t *testing.T) {
	t.Parallel()
	run := func(args ...string) error {
		cmd := newCommand()
		cmd.SetArgs(args)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		return cmd.ExecuteContext(t.Context())
	}
	path := filepath.Join(t.TempDir(), "proxy.yaml")
	args := []string{"--proxy-mode=ipvs", "--ipvs-scheduler=lc", "--cluster-cidr=10.7.0.0/16", "--hostname-override=n1"}
	if err := run(append(args, "--write-config-to="+path)...); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), "apiVersion: kubeproxy.config.k8s.io/v1alpha1\n") {
		t.Errorf("%v\n%s", err, text)
	}
	got, err := parse(t, "--config="+path)
	if err != nil || got.mode != modeIPVS || got.ipvs.Scheduler != "lc" || got.node != "n1" || len(got.idle) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := run("--proxy-mode=quick", "--write-config-to="+bad); err == nil {
		t.Error("a bad configuration was written")
	}
	if _, err := os.Stat(bad); err == nil {
		t.Error("a bad configuration left a file")
	}
}

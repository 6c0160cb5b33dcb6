package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

const configHead = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// write writes files, "config" beside a directory of the others, and returns the flags that name them.
func write(t *testing.T, files map[string]string) []string {
	t.Helper()
	dir := t.TempDir()
	at := filepath.Join(dir, "conf.d")
	if err := os.MkdirAll(filepath.Join(at, "50-dir.conf"), 0o755); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--kubeconfig=k", "--config-dir=" + at}
	for name, text := range files {
		path := filepath.Join(at, name)
		if name == "config" {
			path = filepath.Join(dir, name)
			flags = append(flags, "--config="+path)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return flags
}

func settingsOf(t *testing.T, flags []string) (*settings, error) {
	t.Helper()
	o := &options{}
	fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	o.addFlags(fs)
	if err := fs.Parse(flags); err != nil {
		t.Fatal(err)
	}
	return o.settings(fs)
}

// TestDropIns: files of the directory win over the file, the later ones over the earlier ones, and flags over all.
// Fields of fields and maps are merged, lists replaced.
func TestDropIns(t *testing.T) {
	t.Parallel()
	s, err := settingsOf(t, append(write(t, map[string]string{
		"config": configHead + "failSwapOn: false\nport: 1\nmaxPods: 5\nclusterDNS: [10.0.0.1, 10.0.0.2]\nauthorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 5m, cacheUnauthorizedTTL: 7s}}\n" +
			"evictionHard: {memory.available: 1Gi, nodefs.available: 5%}\nregisterWithTaints: [{key: a, value: b, effect: NoSchedule}]\n",
		"20-b.conf": configHead +
			"maxPods: 7\nauthorization: {webhook: {cacheAuthorizedTTL: 8m}}\nregisterWithTaints: [{key: c, effect: NoExecute}]\nport: null\n",
		"10-a.conf": configHead +
			"maxPods: 6\nclusterDNS: [10.0.0.9]\nevictionHard: {memory.available: 2Gi}\naddress: 127.0.0.9\n",
		"30-c.yaml":   "no such file",
		"README.conf": configHead,
	}), "--address=127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	c := s.file
	if c.Port != 1 || c.MaxPods != 7 || c.Address != "127.0.0.1" || !slices.Equal(c.ClusterDNS, []string{"10.0.0.9"}) ||
		!maps.Equal(c.EvictionHard, map[string]string{"memory.available": "2Gi", "nodefs.available": "5%"}) {
		t.Errorf("%+v", c)
	}
	if w := c.Authorization; w.Mode != "Webhook" || w.Webhook.CacheAuthorizedTTL.Duration != 8*time.Minute ||
		w.Webhook.CacheUnauthorizedTTL.Duration != 7*time.Second {
		t.Errorf("authorization %+v", w)
	}
	if len(c.RegisterWithTaints) != 1 || c.RegisterWithTaints[0].Key != "c" || c.RegisterWithTaints[0].Value != "" {
		t.Errorf("taints %+v", c.RegisterWithTaints)
	}
}

// TestBadDropIns: each file is read strictly, and the error names it and the field.
func TestBadDropIns(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		`10-a.conf: error unmarshaling JSON: while decoding JSON: json: unknown field "maxPod"`: configHead +
			"maxPod: 7\n",
		`10-a.conf: error converting YAML to JSON: yaml: unmarshal errors:` + "\n" +
			`  line 4: key "maxPods" already set in map`: configHead + "maxPods: 7\nmaxPods: 8\n",
		"10-a.conf has  , not kubelet.config.k8s.io/v1beta1 KubeletConfiguration": "maxPods: 7\n",
		"maxPods of type int32": configHead + "maxPods: many\n",
	} {
		if _, err := settingsOf(t,
			write(t, map[string]string{"10-a.conf": text})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if _, err := settingsOf(t,
		[]string{"--kubeconfig=k", "--config-dir=/does/not/exist"}); err == nil ||
		!strings.Contains(err.Error(), "--config-dir") {
		t.Error(err)
	}
}

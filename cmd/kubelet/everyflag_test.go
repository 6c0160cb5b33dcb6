package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// readByOptions are the flags that set no field of the configuration file, and what reads them.
var readByOptions = map[string]string{
	"bootstrap-kubeconfig":                  "connect",
	"cert-dir":                              "connect, ownServing",
	"cloud-provider":                        "nodeConfig",
	"config":                                "readConfigs",
	"config-dir":                            "readConfigs",
	"exit-on-lock-contention":               "run",
	"help":                                  "cobra",
	"hostname-override":                     "nodeName",
	"image-credential-provider-bin-dir":     "config",
	"image-credential-provider-config":      "config",
	"kubeconfig":                            "connect",
	"lock-file":                             "run",
	"log-flush-frequency":                   "logging",
	"log-json-info-buffer-size":             "logging",
	"log-json-split-stream":                 "logging",
	"log-text-info-buffer-size":             "logging",
	"log-text-split-stream":                 "logging",
	"logging-format":                        "logging",
	"maximum-dead-containers":               "containerPolicy",
	"maximum-dead-containers-per-container": "containerPolicy",
	"minimum-container-ttl-duration":        "containerPolicy",
	"node-ip":                               "nodeIPs",
	"node-labels":                           "nodeConfig",
	"register-with-taints":                  "nodeConfig",
	"root-dir":                              "config",
	"v":                                     "logging",
	"vmodule":                               "logging",
	"version":                               "daemon.AddVersion",
}

// oddFlags are values that are nobody's default, for flags that take not all values of their type.
var oddFlags = map[string]string{"address": "192.0.2.7", "healthz-bind-address": "192.0.2.7",
	"fail-swap-on": "true", "feature-gates": "AllAlpha=false", "manifest-url-header": "a:b", "reserved-memory": "0:memory=1Gi",
	"eviction-hard": "memory.available<7Mi", "eviction-soft": "memory.available<7Mi"}

// TestEveryFlag: each flag of Kubernetes' kubelet sets a field of the configuration, or is read by name, or is in the
// table of flags without effect. None is only registered.
func TestEveryFlag(t *testing.T) {
	t.Parallel()
	recorded, err := os.ReadFile(filepath.Join("..", "..", "pkg", "cluster", "testdata", "flags", "kubelet.txt"))
	if err != nil {
		t.Fatal(err)
	}
	idle := map[string]bool{}
	for _, group := range accepted() {
		for _, name := range group.Names() {
			idle[name] = true
		}
	}
	plain, err := parse(t, "")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(recorded)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if readByOptions[name] != "" || idle[name] {
			if readByOptions[name] != "" && idle[name] {
				t.Errorf("--%s is read, and said to be without effect", name)
			}
			continue
		}
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		(&options{}).addFlags(fs)
		value := oddFlags[name]
		if f := fs.Lookup(name); value == "" {
			value = oddValue(f)
		}
		// Settings are checked once they are merged: a value that is refused is in them.
		s, err := parse(t, "", "--"+name+"="+value)
		switch {
		case s == nil:
			t.Errorf("--%s=%s: %v", name, value, err)
		case reflect.DeepEqual(s.file, plain.file):
			t.Errorf("--%s=%s changes nothing, and the table of flags without effect does not have it", name, value)
		}
	}
}

// oddValue is a value that is not the flag's default.
func oddValue(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		if f.DefValue == "true" {
			return "false"
		}
		return "true"
	case "int32", "int64", "int":
		return "7"
	case "duration":
		return "7s"
	case "stringToString", "mapStringString":
		return "odd=7"
	}
	return "odd"
}

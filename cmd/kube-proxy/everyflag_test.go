package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	proxyconfig "k8s.io/kube-proxy/config/v1alpha1"
)

// readByOptions are the flags that set no field of the configuration file: what else they do is in command.go.
var readByOptions = []string{"cleanup", "config", "help", "init-only", "log-flush-frequency",
	"log-json-info-buffer-size", "log-json-split-stream", "log-text-info-buffer-size", "log-text-split-stream",
	"logging-format", "master", "v", "version", "vmodule", "write-config-to"}

// oddFlags are values that are nobody's default, for flags that take not all values of their type.
var oddFlags = map[string]string{"bind-address": "192.0.2.7", "healthz-bind-address": "192.0.2.7:7",
	"metrics-bind-address": "192.0.2.7:7", "feature-gates": "AllAlpha=true"}

// TestEveryFlag: each flag of Kubernetes' kube-proxy sets a field of the configuration, or is read by name, or is in
// the table of flags without effect. None is only registered.
func TestEveryFlag(t *testing.T) {
	t.Parallel()
	recorded, err := os.ReadFile(filepath.Join("..", "..", "pkg", "cluster", "testdata", "flags", "kube-proxy.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var idle []string
	for _, group := range accepted() {
		idle = append(idle, group.Names()...)
	}
	plain := configured(t, "--v=0")
	for line := range strings.Lines(string(recorded)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		read := slices.Contains(readByOptions, name)
		if read && slices.Contains(idle, name) {
			t.Errorf("--%s is read, and said to be without effect", name)
		}
		if read || slices.Contains(idle, name) {
			continue
		}
		value := oddFlags[name]
		if value == "" {
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			(&options{}).addFlags(fs)
			value = oddValue(fs.Lookup(name))
		}
		if reflect.DeepEqual(configured(t, "--"+name+"="+value), plain) {
			t.Errorf("--%s=%s changes nothing, and the table of flags without effect does not have it", name, value)
		}
	}
}

// configured is the configuration that a flag makes. It is not checked yet.
func configured(t *testing.T, arg string) *proxyconfig.KubeProxyConfiguration {
	t.Helper()
	o, fs := &options{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.addFlags(fs)
	if err := fs.Parse([]string{arg}); err != nil {
		t.Fatal(err)
	}
	c, err := o.configuration(fs, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// oddValue is a value that is not the flag's default.
func oddValue(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		if f.DefValue == "true" {
			return "false"
		}
		return "true"
	case "int32", "int", "float32":
		return "7"
	case "duration":
		return "7s"
	}
	return "odd"
}

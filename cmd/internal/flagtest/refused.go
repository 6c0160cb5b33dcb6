package flagtest

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"bonsai/cmd/internal/daemon"
)

// protecting are, for each component, the flags that decide who may do what, or what is encrypted, checked, logged or
// served, or have the command end, and that are not built, or whose file is missing: flag to a value that asks for it.
// A flag leaves this table when it works.
var protecting = map[string]map[string]string{
	"kube-apiserver": {
		"admission-control":   "x",
		"enable-logs-handler": "true",
		"emulated-version":    "1.35",
		"peer-ca-file":        "/nowhere",
		"runtime-config":      "resource.k8s.io/v1beta1=true",
		"storage-backend":     "etcd2",
	},
	"kube-controller-manager": {"emulated-version": "1.35", "leader-migration-config": "/nowhere"},
	"kube-scheduler":          {"emulated-version": "1.35", "write-config-to": "/nowhere/x"},
	"kubelet": {"cgroups-per-qos": "false", "enable-controller-attach-detach": "false",
		"local-storage-capacity-isolation": "false",
		"manifest-url":                     "file:///x",
		"qos-reserved":                     "memory=50%", "read-only-port": "10255", "runonce": "true"},
}

// Refused wants the component to end its start with an error that names the flag, for every flag that protects and is
// not built; and every flag of the component's table of refused ones to be among them. command makes the component's
// command.
func Refused(t *testing.T, component string, command func() *cobra.Command, refused daemon.Refused) {
	t.Helper()
	for name, value := range protecting[component] {
		cmd := command()
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		cmd.SetArgs([]string{"--" + name + "=" + value})
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--"+name) {
			t.Errorf("%s --%s=%s starts, or does not name the flag: %v", component, name, value, err)
		}
	}
	for _, f := range refused {
		if protecting[component][f.Name] == "" {
			t.Errorf("%s refuses --%s, and no test holds that", component, f.Name)
		}
	}
}

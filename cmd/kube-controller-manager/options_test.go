package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"bonsai/pkg/controller"
)

func TestControllersFlag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags []string
		on    string
		off   string
	}{
		{[]string{"*"}, "deployment-controller", "token-cleaner-controller"},
		{[]string{"*", "tokencleaner"}, "token-cleaner-controller", ""},
		{[]string{"*", "-deployment"}, "replicaset-controller", "deployment-controller"},
		{[]string{"namespace-controller"}, "namespace-controller", "deployment-controller"},
		{[]string{"*", "bootstrapsigner"}, "podgc", ""},
	} {
		list, err := selected(c.flags)
		if err != nil {
			t.Fatal(err)
		}
		is := func(name string) bool {
			return slices.ContainsFunc(list, func(e entry) bool { return e.name == name || e.alias == name })
		}
		if !is(c.on) || c.off != "" && is(c.off) {
			t.Errorf("%v: %s on %v, %s on %v", c.flags, c.on, is(c.on), c.off, is(c.off))
		}
	}
	if _, err := selected([]string{"*", "nonsense"}); err == nil ||
		!strings.Contains(err.Error(), `"nonsense" is not in the list of known controllers`) {
		t.Errorf("unknown name: %v", err)
	}
}

// TestNoGarbageCollector: --enable-garbage-collector=false leaves the collector out, whatever --controllers says.
func TestNoGarbageCollector(t *testing.T) {
	t.Parallel()
	o, fs := &options{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	o.addFlags(fs)
	if err := fs.Parse([]string{"--enable-garbage-collector=false",
		"--controllers=garbage-collector-controller"}); err != nil {
		t.Fatal(err)
	}
	list, err := selected(o.controllers)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	// It must return before it asks for anything that it would need to run.
	if r, err := list[0].build(o, controller.Deps{}); r != nil || err != nil {
		t.Errorf("built %v, %v", r, err)
	}
}

// TestConcurrency: the flags say how many objects are worked on at once, with the defaults of kube-controller-manager
// v1.36.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	flags := map[string]struct {
		flag   string
		preset int
	}{
		"deployment-controller": {"concurrent-deployment", 5}, "replicaset-controller": {"concurrent-replicaset", 5},
		"replicationcontroller-controller":   {"concurrent-rc", 5},
		"daemonset-controller":               {"concurrent-daemonset", 2},
		"statefulset-controller":             {"concurrent-statefulset", 5},
		"endpoints-controller":               {"concurrent-endpoint", 5},
		"endpointslice-controller":           {"concurrent-service-endpoint", 5},
		"endpointslice-mirroring-controller": {"mirroring-concurrent-service-endpoint", 5},
		"namespace-controller":               {"concurrent-namespace", 10},
		"garbage-collector-controller":       {"concurrent-gc", 20},
		"resourcequota-controller":           {"concurrent-resource-quota", 5},
		"serviceaccount-token-controller":    {"concurrent-serviceaccount-token", 5},
		"job-controller":                     {"concurrent-job", 5}, "cronjob-controller": {"concurrent-cron-job", 5},
		"ttl-after-finished-controller":        {"concurrent-ttl-after-finished", 5},
		"ephemeral-volume-controller":          {"concurrent-ephemeralvolume", 5},
		"device-taint-eviction-controller":     {"concurrent-device-taint-eviction", 8},
		"resourceclaim-controller":             {"concurrent-resourceclaim", 50},
		"horizontal-pod-autoscaler-controller": {"concurrent-horizontal-pod-autoscaler", 5},
	}
	for _, e := range entries() {
		o, fs := &options{}, pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addFlags(fs)
		want, ok := flags[e.name]
		if !ok {
			if n := o.workersOf(e); n != max(e.workers, 1) {
				t.Errorf("%s works on %d at once", e.name, n)
			}
			continue
		}
		if n := o.workersOf(e); n != want.preset {
			t.Errorf("%s works on %d at once, want %d", e.name, n, want.preset)
		}
		if err := fs.Parse([]string{"--" + want.flag + "-syncs=7"}); err != nil || o.workersOf(e) != 7 {
			t.Errorf("%s works on %d at once: %v", e.name, o.workersOf(e), err)
		}
	}
}

func TestBadFlagsAreAllReported(t *testing.T) {
	t.Parallel()
	cmd := newCommand()
	cmd.SetArgs([]string{"--secure-port=70000", "--cluster-cidr=nonsense", "--max-endpoints-per-slice=0",
		"--controllers=x", "--leader-elect-retry-period=1h",
		"--tls-cipher-suites=x", "--kube-api-qps=1", "--kube-api-burst=0"})
	cmd.SetErr(&strings.Builder{})
	cmd.SetOut(&strings.Builder{})
	err := cmd.ExecuteContext(t.Context())
	for _, want := range []string{"--secure-port", "--cluster-cidr", "--max-endpoints-per-slice", "--controllers",
		"--leader-elect", "--tls-cipher-suites", "--kube-api-burst"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not mention %s", err, want)
		}
	}
}

// TestAllProblemsAtOnce: a start with several wrong flags names all of them, in one order.
func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	o, fs := &options{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	o.addFlags(fs)
	if err := o.validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	if err := fs.Parse([]string{"--cluster-cidr=10.0.0.0", "--resource-quota-sync-period=0s", "--local-path-root=/a/..",
		"--cluster-signing-cert-file=/ca.crt", "--concurrent-gc-syncs=0", "--concurrent-job-syncs=-1"}); err != nil {
		t.Fatal(err)
	}
	want := `--cluster-cidr: netip.ParsePrefix("10.0.0.0"): no '/'
--local-path-root must be an absolute path, clean and not /, not "/a/.."
--resource-quota-sync-period must be greater than 0, not 0s
--cluster-signing-cert-file and --cluster-signing-key-file must be given together
the number of concurrent syncs of the garbage-collector-controller must be at least 1, not 0
the number of concurrent syncs of the job-controller must be at least 1, not -1`
	if err := o.validate(); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

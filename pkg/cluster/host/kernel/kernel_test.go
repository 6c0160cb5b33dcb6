package kernel

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeKernel has features by the modules that have them. Modules in onDisk can be loaded.
type fakeKernel struct {
	has, onDisk map[string]bool
	loaded      []string
}

func (k *fakeKernel) load(_ context.Context, module string) error {
	k.loaded = append(k.loaded, module)
	if !k.onDisk[module] {
		return errors.New("FATAL: Module " + module + " not found")
	}
	k.has[module] = true
	return nil
}

// group is of the features of modules, of which the first is what the others build on.
func (k *fakeKernel) group(modules ...string) Group {
	needs := func(modules ...string) func(context.Context) error {
		return func(context.Context) error {
			for _, m := range modules {
				if !k.has[m] {
					return errors.New("operation not supported")
				}
			}
			return nil
		}
	}
	g := Group{all: needs(modules...)}
	for _, m := range modules {
		g.features = append(g.features, Feature{module: m, need: "Services", try: needs(m)})
	}
	return g
}

func set(names ...string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}

// TestCheckKernel: what is missing is loaded, in the order of need, and what cannot be loaded is named with the
// command that loads it.
func TestCheckKernel(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		has, onDisk []string
		loads       []string
		says        []string // of the error; none: there is none
	}{
		{name: "all there", has: []string{"br_netfilter", "nf_tables", "nft_ct", "nft_nat"}},
		{name: "after a reboot", onDisk: []string{"br_netfilter", "nf_tables", "nft_ct", "nft_nat"},
			loads: []string{"br_netfilter", "nf_tables", "nft_ct", "nft_nat"}},
		{name: "one is missing", has: []string{"nf_tables", "nft_ct", "nft_nat"}, onDisk: []string{"br_netfilter"},
			loads: []string{"br_netfilter"}},
		{name: "a kernel without it", has: []string{"nf_tables", "nft_nat"}, loads: []string{"br_netfilter", "nft_ct"},
			says: []string{"kernel module br_netfilter is not loaded", "(run: modprobe br_netfilter)",
				"Module br_netfilter not found", "(run: modprobe nft_ct)"}},
		{name: "what others build on", has: []string{"br_netfilter"}, loads: []string{"nf_tables"},
			says: []string{"(run: modprobe nf_tables)"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			k := &fakeKernel{has: set(test.has...), onDisk: set(test.onDisk...)}
			err := Check(t.Context(), []Group{k.group("br_netfilter"), k.group("nf_tables", "nft_ct", "nft_nat")},
				k.load)
			if !slices.Equal(k.loaded, test.loads) {
				t.Errorf("loads %q, not %q", k.loaded, test.loads)
			}
			if (err != nil) != (len(test.says) > 0) {
				t.Fatalf("error %v", err)
			}
			for _, text := range test.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("does not say %q: %v", text, err)
				}
			}
			if err != nil && len(strings.Split(err.Error(), "\n")) != len(test.loads) {
				t.Errorf("not one line for each module that is missing: %v", err)
			}
		})
	}
}

// TestKernelNeeds tries what a cluster asks of the kernel on the one that the tests run on: where a cluster runs,
// nothing is missing, and each line is one that its program understands.
func TestKernelNeeds(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: network namespaces need root")
	}
	for _, programs := range [][]string{{"iptables-restore"}, {"ip6tables-restore"},
		{"iptables-restore", "ip6tables-restore"}} {
		for _, g := range Needs(true, programs) {
			if err := g.all(t.Context()); err != nil {
				t.Errorf("%q, with others: %v", g.features[0].module, err)
			}
			for _, f := range g.features {
				if err := f.try(t.Context()); err != nil {
					t.Errorf("%s: %v", f.module, err)
				}
			}
		}
	}
}

// TestCheckControllers: a controller that is missing is named, on cgroup v1 and on v2.
func TestCheckControllers(t *testing.T) {
	t.Parallel()
	v2 := t.TempDir()
	if err := os.WriteFile(filepath.Join(v2, "cgroup.controllers"), []byte("cpuset cpu io pids\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	v1 := t.TempDir()
	for _, controller := range []string{"cpu", "cpuset", "pids"} {
		if err := os.Mkdir(filepath.Join(v1, controller), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, root := range []string{v1, v2} {
		err := CheckControllers(root)
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "cgroup_enable=memory") {
			t.Errorf("%v", err)
		}
		if err := errors.Join(os.WriteFile(filepath.Join(v2, "cgroup.controllers"),
			[]byte("cpuset cpu io memory pids\n"), 0o600), os.MkdirAll(filepath.Join(v1, "memory"), 0o700)); err !=
			nil {
			t.Fatal(err)
		}
		if err := CheckControllers(root); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(filepath.Join(v1, "memory")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(v2, "cgroup.controllers"), []byte("cpuset cpu io pids\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
}

package kernel

import (
	"context"
	"errors"
	"os"
	"slices"
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
		g.features = append(g.features, Feature{module: m, option: "CONFIG_" + m, need: "Services", try: needs(m)})
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

// TestCheckKernel: what is missing is loaded, in the order of need, and what cannot be loaded is named.
func TestCheckKernel(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		has, onDisk []string
		loads       []string
		lacks       []string // the modules of the features that are still missing
	}{
		{name: "all there", has: []string{"br_netfilter", "nf_tables", "nft_ct", "nft_nat"}},
		{name: "after a reboot", onDisk: []string{"br_netfilter", "nf_tables", "nft_ct", "nft_nat"},
			loads: []string{"br_netfilter", "nf_tables", "nft_ct", "nft_nat"}},
		{name: "one is missing", has: []string{"nf_tables", "nft_ct", "nft_nat"}, onDisk: []string{"br_netfilter"},
			loads: []string{"br_netfilter"}},
		{name: "a kernel without it", has: []string{"nf_tables", "nft_nat"}, loads: []string{"br_netfilter", "nft_ct"},
			lacks: []string{"br_netfilter", "nft_ct"}},
		{name: "what others build on", has: []string{"br_netfilter"}, loads: []string{"nf_tables"},
			lacks: []string{"nf_tables"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			k := &fakeKernel{has: set(test.has...), onDisk: set(test.onDisk...)}
			lacks := Check(t.Context(), []Group{k.group("br_netfilter"), k.group("nf_tables", "nft_ct", "nft_nat")},
				k.load)
			if !slices.Equal(k.loaded, test.loads) {
				t.Errorf("loads %q, not %q", k.loaded, test.loads)
			}
			var modules []string
			for _, l := range lacks {
				modules = append(modules, l.Module)
				if l.Loaded || l.Err == nil || l.Option != "CONFIG_"+l.Module || l.Need != "Services" {
					t.Errorf("%+v", l)
				}
			}
			if !slices.Equal(modules, test.lacks) {
				t.Errorf("lacks %q, not %q", modules, test.lacks)
			}
		})
	}
}

// TestLoadedInVain: the errors for a missing module and for a loaded one that lacks the feature differ.
func TestLoadedInVain(t *testing.T) {
	t.Parallel()
	useless := func(context.Context, string) error { return nil }
	lacks := Check(t.Context(), []Group{(&fakeKernel{}).group("nf_tables")}, useless)
	if len(lacks) != 1 || !lacks[0].Loaded || lacks[0].Err == nil {
		t.Errorf("%+v", lacks)
	}
}

// TestFirstLine: an error of iptables is on the line after the one that announces it.
func TestFirstLine(t *testing.T) {
	t.Parallel()
	for out, want := range map[string]string{
		"Error: no\nmore\n": "Error: no",
		"iptables-restore v1.8.11 (nf_tables): \nline 3: RULE_APPEND failed\n": "iptables-restore v1.8.11 (nf_tables): line 3: RULE_APPEND failed",
	} {
		if got := firstLine([]byte(out)); got != want {
			t.Errorf("%q: %q, not %q", out, got, want)
		}
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
		for _, g := range Needs(true, programs, "") {
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

// TestIPVSNeeds: Services in IPVS need the virtual servers and their scheduler, and nothing else does.
func TestIPVSNeeds(t *testing.T) {
	t.Parallel()
	with, without := Needs(false, nil, "sh"), Needs(false, nil, "")
	if len(with) != len(without)+1 {
		t.Fatalf("%d groups with IPVS, %d without", len(with), len(without))
	}
	for i, want := range []Feature{{module: "ip_vs", option: "CONFIG_IP_VS"},
		{module: "ip_vs_sh", option: "CONFIG_IP_VS_SH"}} {
		if got := with[len(without)].features[i]; got.module != want.module || got.option != want.option {
			t.Errorf("%s (%s), want %s (%s)", got.module, got.option, want.module, want.option)
		}
	}
}

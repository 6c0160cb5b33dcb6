package cluster

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/cluster/controlplane"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/encryption"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
)

// TestEncryptionFlags: API servers get the cluster's keys, or the user's file alone, or none.
func TestEncryptionFlags(t *testing.T) {
	t.Parallel()
	own := map[string]map[string]string{"kube-apiserver": {"encryption-provider-config": "/own.yaml"}}
	for _, test := range []struct {
		encrypt bool
		flags   map[string]map[string]string
		want    []string
	}{
		{true, nil, []string{"--encryption-provider-config=/data/encryption/config.yaml",
			"--encryption-provider-config-automatic-reload=true"}},
		{true, own, []string{"--encryption-provider-config=/own.yaml"}},
		{false, own, []string{"--encryption-provider-config=/own.yaml"}},
		{false, nil, nil},
	} {
		c := plan.Default("/data", "/bin")
		c.ControlPlanes, c.EncryptSecrets, c.ComponentFlags = 3, test.encrypt, test.flags
		servers := 0
		for _, p := range slices.Concat(controlplane.Processes(c, "/bin/bonsai")[1]) {
			if !strings.HasPrefix(p.Name, "kube-apiserver") {
				continue
			}
			servers++
			var got []string
			for _, arg := range p.Argv {
				if strings.Contains(arg, "encryption") {
					got = append(got, arg)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%t, %v: %s has %q, want %q", test.encrypt, test.flags, p.Name, got, test.want)
			}
		}
		if servers != 3 {
			t.Errorf("%d API servers", servers)
		}
	}
}

// TestCheckKeys: keys that are not this command's to change, and Secrets in an etcd that it does not see, are refused.
func TestCheckKeys(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{"": "", "v": "", "etcd-servers": "--etcd-servers",
		"etcd-servers-overrides":     "--etcd-servers-overrides",
		"encryption-provider-config": "by a file of yours (kube-apiserver --encryption-provider-config=x)"} {
		c := plantest.Config(t)
		c.ComponentFlags = map[string]map[string]string{"kube-apiserver": {flag: "x"}}
		if err := checkKeys(c); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	c := plantest.Config(t)
	c.EncryptSecrets = false
	if err := checkKeys(c); err == nil ||
		!strings.Contains(err.Error(), "(bonsai --data-dir "+c.DataDir+" encryption enable)") {
		t.Error(err)
	}
	c.ComponentFlags = map[string]map[string]string{"kube-apiserver": {"etcd-prefix": "elsewhere/"}}
	if got := secretsPrefix(c); got != "/elsewhere/secrets/" {
		t.Error(got)
	}
}

// TestLostKeys: status does not say that a missing file encrypts, and shows what there is.
func TestLostKeys(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	c.EncryptSecrets = true
	if err := datadir.Save(c); err != nil {
		t.Fatal(err)
	}
	if err := encryption.Make(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(c.Layout().Encryption(), c.Layout().At("elsewhere")); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := PrintEncryption(t.Context(), c.DataDir, &out)
	if err == nil || !strings.Contains(err.Error(), c.Layout().Encryption()+" is missing: it has the keys") ||
		out.Len() > 0 {
		t.Errorf("%v\n%s", err, &out)
	}
	if err := os.Rename(c.Layout().At("elsewhere"), c.Layout().Encryption()); err != nil {
		t.Fatal(err)
	}
	if err := PrintEncryption(t.Context(), c.DataDir, &out); err != nil ||
		!strings.HasPrefix(out.String(), "Secrets are encrypted by aesgcm") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// TestAPIServers: a rotation waits for every API server: the members of this machine, or those of all machines.
func TestAPIServers(t *testing.T) {
	t.Parallel()
	urls := func(c plan.Config) (all []string) {
		for _, s := range apiServers(c) {
			all = append(all, s.url)
		}
		return all
	}
	three := plan.Default("/data", "/bin")
	three.ControlPlanes = 3
	one := plan.Default("/data", "/bin")
	alone := joinableConfig()
	alone.Peers = []plan.Peer{alone.Etcd().Peer}
	for name, test := range map[string]struct {
		c    plan.Config
		want []string
	}{
		"one":     {one, []string{"https://127.0.0.1:6443"}},
		"three":   {three, []string{"https://10.77.0.2:6443", "https://10.77.0.3:6443", "https://10.77.0.4:6443"}},
		"alone":   {alone, []string{alone.LocalServer()}},
		"on two":  {joinedControlPlane(), []string{"https://192.0.2.1:6443", "https://192.0.2.2:6443"}},
		"unknown": {joinableConfig(), []string{joinableConfig().LocalServer()}},
	} {
		if got := urls(test.c); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestPrintKeys: each key has a line, with what needs it, and so has everything else that Secrets are encrypted by.
func TestPrintKeys(t *testing.T) {
	t.Parallel()
	by := func(name string) encryption.Holder {
		return encryption.Holder{Provider: encryption.Provider, Key: name}
	}
	keys := []encryption.Key{{Name: "new"}, {Name: "old"}}
	kept := []encryption.Key{{Name: "old"}, {Name: "older"}, {Name: "oldest"}}
	needed := map[string][]string{"older": {"a", "b"}, "old": {"c"}}
	for _, test := range []struct {
		stored  map[encryption.Holder]int
		inForce bool
		want    string
	}{
		{map[encryption.Holder]int{by("new"): 3, by("lost"): 1, {}: 2}, true, `
PROVIDER   KEY      SECRETS   USE
aesgcm     new      3         writes and reads
aesgcm     old      0         reads, snapshots c
aesgcm     older    0         kept for snapshots a b
aesgcm     oldest   0         nothing: the next rotation forgets it
identity   -        2         not encrypted
aesgcm     lost     1         not a key of this cluster's file
`},
		{nil, false, `
PROVIDER   KEY      SECRETS   USE
aesgcm     new      -         not in force
aesgcm     old      -         not in force, snapshots c
aesgcm     older    -         kept for snapshots a b
aesgcm     oldest   -         nothing: the next rotation forgets it
`},
	} {
		var out strings.Builder
		err := printKeys(&out, keyRows(keys, kept, needed, test.stored, test.inForce))
		if err != nil || out.String() != test.want {
			t.Errorf("%s (%v)\nwant%s", &out, err, test.want)
		}
	}
}

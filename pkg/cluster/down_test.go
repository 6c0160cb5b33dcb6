package cluster

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan/plantest"
)

// TestDownOfLeftData: what is left of a cluster without its configuration is removed, and a directory with anything
// else in it is not. One that is empty goes, too: a start that was killed at its first step leaves no more.
func TestDownOfLeftData(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	for name, c := range map[string]struct {
		dirs, files []string
		found       bool
	}{
		"some of a cluster":     {[]string{"pki", "etcd", "logs"}, []string{"cloud.yaml", "pki/ca.key"}, true},
		"a first file begun":    {nil, []string{"cluster.json.new"}, true},
		"logs alone":            {[]string{"logs"}, nil, false},
		"somebody's file, too":  {[]string{"pki", "etcd"}, []string{"thesis.tex"}, false},
		"somebody's directory":  {[]string{"pki", "photos"}, nil, false},
		"nothing":               {nil, nil, false},
		"etcd of somebody else": {[]string{"etcd", "member"}, nil, false},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		for _, d := range append(c.dirs, ".") {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range c.files {
			if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		found, err := Down(t.Context(), dir, false, false, io.Discard)
		if err != nil || found != c.found {
			t.Errorf("%s: %t, %v", name, found, err)
		}
		empty := len(c.dirs)+len(c.files) == 0
		if _, err := os.Stat(dir); os.IsNotExist(err) != (c.found || empty) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDownOfUnreadable: a machine that may have one of several machines' control planes, and cannot tell, keeps its
// data unless it is forced: its etcd member would count for the majority for ever. Another one's data goes.
func TestDownOfUnreadable(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	for name, test := range map[string]struct {
		config, peers   string
		keepData, force bool
		refused         bool
	}{
		"its control planes":               {peers: "{", refused: true},
		"its configuration":                {config: "{", peers: "[]", refused: true},
		"forced":                           {peers: "{", force: true},
		"data that stays":                  {peers: "{", keepData: true},
		"a configuration without machines": {config: "{"},
	} {
		c := plantest.Config(t)
		if err := datadir.Save(c); err != nil {
			t.Fatal(err)
		}
		for path, content := range map[string]string{c.Layout().Config(): test.config, c.Layout().Peers(): test.peers} {
			if content == "" {
				continue
			}
			if err := host.WriteFile(path, []byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Down(t.Context(), c.DataDir, test.keepData, test.force, io.Discard)
		if (err != nil) != test.refused || err != nil && !strings.Contains(err.Error(), "bonsai down --force") {
			t.Errorf("%s: %v", name, err)
		}
		if left := host.StatError(c.Layout().Config()) == nil; left != (test.refused || test.keepData) {
			t.Errorf("%s: left: %t", name, left)
		}
	}
}

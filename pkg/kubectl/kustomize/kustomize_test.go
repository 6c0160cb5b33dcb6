package kustomize

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"bonsai/pkg/kubectl/cli"
)

// TestFilesStayInTheDirectory: with -o DIR each object gets a file in it, whatever the object is called.
func TestFilesStayInTheDirectory(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "deep", "out")
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"kustomization.yaml": "resources: [all.yaml]",
		"all.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: ../../gone}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: N}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:x/y"}}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := NewCommand(nil, cli.IOStreams{Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}})
	cmd.SetArgs([]string{dir, "-o", out})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := filepath.WalkDir(filepath.Dir(filepath.Dir(out)), func(path string, d os.DirEntry, err error) error {
		if !d.IsDir() {
			rel, _ := filepath.Rel(out, path)
			got = append(got, rel)
		}
		return err
	})
	want := []string{"default_v1_configmap_..-..-gone.yaml", "n_v1_configmap_a.yaml",
		"rbac.authorization.k8s.io_v1_clusterrole_system:x-y.yaml"}
	if slices.Sort(got); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

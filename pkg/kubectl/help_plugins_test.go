package kubectl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestHelpListsPlugins(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for path, mode := range map[string]os.FileMode{
		dir + "/kubectl-foo":                     0o755,
		dir + "/kubectl-foo-bar":                 0o755,
		dir + "/kubectl-two_words":               0o755,
		dir + "/kubectl-get":                     0o755,
		dir + "/kubectl-plain":                   0o644,
		dir + "/kubectl-create-thing":            0o755,
		other + "/kubectl-foo":                   0o755,
		other + "/kubectl-later":                 0o755,
		other + "/kubectl":                       0o755,
		filepath.Join(other, "kubectl-notdir-x"): 0o644,
	} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	root := &cobra.Command{Use: "kubectl"}
	root.AddGroup(&cobra.Group{ID: plugins, Title: "Subcommands provided by plugins:"})
	for _, name := range []string{"get", "create"} {
		root.AddCommand(&cobra.Command{Use: name, Hidden: true, Run: func(*cobra.Command, []string) {}})
	}
	for path, want := range map[string]string{
		"": "Subcommands provided by plugins:\n\n",
		dir + string(os.PathListSeparator) + other: "Subcommands provided by plugins:\n" +
			"  foo           The command foo is a plugin installed by the user\n" +
			"  two-words     The command two-words is a plugin installed by the user\n" +
			"  later         The command later is a plugin installed by the user\n\n",
	} {
		t.Setenv("PATH", path)
		var got strings.Builder
		subcommands(&got, root)
		if got.String() != want {
			t.Errorf("PATH=%s:\n%s\nwant:\n%s", path, got.String(), want)
		}
	}
}

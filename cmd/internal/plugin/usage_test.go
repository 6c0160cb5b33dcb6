package plugin

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/cli"
)

// TestAddClientFlags: the help has the flags of the command first, and those for the connection apart.
func TestAddClientFlags(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	cmd := &cobra.Command{Use: "x", Long: "Does x.", Example: "  x --zoom", Run: func(*cobra.Command, []string) {},
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl x"}}
	cmd.Flags().Bool("zoom", false, "Come nearer.")
	AddClientFlags(cmd, cli.NewFactory("v1.0.0", cli.IOStreams{}))
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--help"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	help := out.String()
	own, connection, ok := strings.Cut(help, "\n\nFlags for the connection to the cluster:\n")
	if !ok {
		t.Fatalf("no group for the connection:\n%s", help)
	}
	for _, want := range []string{"Does x.\n\nUsage:\n  kubectl x [flags]\n\nExamples:\n  x --zoom\n\nFlags:\n", "  -h, --help ",
		"  -n, --namespace ", "--zoom "} {
		if !strings.Contains(own, want) || strings.Contains(connection, want) {
			t.Errorf("%q is not among the flags of the command alone:\n%s", want, help)
		}
	}
	for _, want := range []string{"--context ", "--kubeconfig ", "--as ", "  -s, --server "} {
		if !strings.Contains(connection, want) || strings.Contains(own, want) {
			t.Errorf("%q is not among those for the connection alone:\n%s", want, help)
		}
	}
}

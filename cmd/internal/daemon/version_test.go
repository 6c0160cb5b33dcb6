package daemon

import (
	"bytes"
	"testing"

	"github.com/spf13/cobra"

	"bonsai/api/kubeversion"
)

func TestVersion(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"asked for", []string{"--version"}, "Kubernetes " + kubeversion.Git + "\n"},
		{"not asked for", nil, "ran"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := &cobra.Command{Use: "kube-proxy", RunE: func(cmd *cobra.Command, _ []string) error {
				out.WriteString("ran")
				return nil
			}}
			AddVersion(cmd)
			cmd.SetOut(&out)
			cmd.SetArgs(test.args)
			if err := cmd.Execute(); err != nil || out.String() != test.want {
				t.Errorf("printed %q (%v), want %q", out.String(), err, test.want)
			}
		})
	}
}

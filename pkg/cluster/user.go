package cluster

import (
	"context"
	"io"
	"os"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/plan"
)

// ExportContext writes the context of the cluster in dataDir into the user's kubeconfig, as its start did.
func ExportContext(ctx context.Context, dataDir string, out io.Writer) error {
	c, err := datadir.LoadControlPlane(dataDir)
	if err != nil {
		return err
	}
	return kubeconfig.Export(ctx, c, out)
}

// PrintKubeconfig prints the kubeconfig of the administrator of the cluster in dataDir.
func PrintKubeconfig(dataDir string, out io.Writer) error {
	c, err := datadir.LoadControlPlane(dataDir)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(c.Layout().Kubeconfig(plan.Administrator))
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}
